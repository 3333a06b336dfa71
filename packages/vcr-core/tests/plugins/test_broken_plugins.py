"""One broken plugin must not break the others, and must be named with its version."""

from __future__ import annotations

import pytest
from vcr_core.errors import ComponentUnavailable, UnknownComponent
from vcr_core.failures import format_failure

HEAD = "from vcr_core import AttackSpec, MetricSpec, PresetSource, hookimpl\n"
SPEC = 'MetricSpec(name="{}", summary="A metric", target="a.b:C", higher_is_better=True)'


def metrics(body: str) -> str:
    return f"{HEAD}\n@hookimpl\ndef vcr_register_metrics():\n    {body}\n"


BROKEN = {
    "raises-on-import": ("import acme_native\n", "import", "No module named 'acme_native'"),
    "assertion-on-import": ("assert 1 == 2, 'mmcv is too new'\n", "import", "mmcv is too new"),
    "syntax-error": ("def (:\n", "import", "SyntaxError"),
    "exits-on-import": ("import sys\nsys.exit(7)\n", "import", "sys.exit(7)"),
    "exits-in-hook": (metrics("raise SystemExit('bye')"), "specs", "sys.exit('bye')"),
    "wrong-signature": (
        f"{HEAD}\n@hookimpl\ndef vcr_register_metrics(registry):\n    return []\n",
        "hooks",
        "PluginValidationError",
    ),
    "misspelt-hook": (
        f"{HEAD}\n@hookimpl\ndef vcr_register_metric():\n    return []\n",
        "hooks",
        "did you mean 'vcr_register_metrics'",
    ),
    "no-marker": (
        "def vcr_register_metrics():\n    return []\n",
        "hooks",
        "not marked with @hookimpl",
    ),
    "wrong-api": (
        "vcr_plugin_api = 99\n" + metrics("return []"),
        "hooks",
        "plugin API 99, and this vcr-core has 1",
    ),
    "same-name-twice": (
        metrics(f"return [{SPEC.format('twin')}, {SPEC.format('twin')}]"),
        "specs",
        "metric 'twin' is registered twice",
    ),
    "half-way": (
        metrics(f"yield {SPEC.format('first-half')}\n    raise RuntimeError('half-way')"),
        "specs",
        "RuntimeError: half-way",
    ),
    "wrong-type": (metrics("return ['ssim']"), "specs", "returned str; it must return"),
    "wrong-spec": (
        metrics(
            "return [AttackSpec(name='a', summary='s', target='a:b', access='none', "
            "norms=frozenset({'linf'}))]"
        ),
        "specs",
        "returned AttackSpec",
    ),
    "one-spec": (metrics(f"return {SPEC.format('lonely')}"), "specs", "iterable of specs"),
    "bad-name": (metrics(f"return [{SPEC.format('Bad_Name')}]"), "specs", "lower-case"),
    "bad-target": (
        metrics(f"return [{SPEC.format('target').replace('a.b:C', 'a.b.C')}]"),
        "specs",
        "package.module:Attr",
    ),
    "bad-presets": (
        f"{HEAD}\n@hookimpl\ndef vcr_register_presets():\n    return ['presets']\n",
        "specs",
        "iterable of PresetSource",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_plugin_is_named_and_the_rest_works(site, load, case):
    source, stage, reason = BROKEN[case]
    site.good("vcr-alpha", "alpha")
    site.add("vcr-broken", source, version="0.3.1")
    site.good("vcr-omega", "omega")

    found = load()

    (failure,) = found.failures
    assert (failure.distribution, failure.version) == ("vcr-broken", "0.3.1")
    assert failure.stage == stage
    assert reason in failure.reason
    names = {entry.name for entry in found.entries("metric")}
    assert {"alpha", "omega"} <= names
    assert not {"twin", "first-half", "lonely"} & names
    assert "motion" in {entry.name for entry in found.entries("dataset")}


def test_message_has_three_lines_and_says_how_to_silence_it(site, load):
    site.add("vcr-acme-models", "import acme_native\n", module="acme_plugin")
    (failure,) = load().failures
    assert format_failure(failure, silence=True).splitlines() == [
        "plugin vcr-acme-models 0.3.1 could not be loaded: import of acme_plugin failed",
        "  ModuleNotFoundError: No module named 'acme_native'",
        "  Its components are unavailable. `vcr doctor` shows details; "
        "VCR_DISABLE_PLUGINS=vcr-acme-models silences this.",
    ]


def test_failed_plugin_leaves_no_hooks_behind(site, load):
    site.add(
        "vcr-broken",
        metrics("raise RuntimeError")
        + "\n@hookimpl\ndef vcr_run_started(run):\n    raise AssertionError('still registered')\n",
    )
    found = load()
    assert len(found.failures) == 1
    assert found.observers("vcr_run_started") == []


def test_plugin_that_provides_nothing_is_fine(site, load):
    site.add("vcr-none", metrics("return None"))
    site.add("vcr-empty", "")
    found = load()
    assert found.failures == ()
    assert {"vcr-none", "vcr-empty"} <= {p.distribution for p in found.plugins}


def test_generator_hook_is_collected(site, load):
    site.add("vcr-gen", metrics(f"yield {SPEC.format('one')}\n    yield {SPEC.format('two')}"))
    found = load()
    assert found.failures == ()
    assert {"one", "two"} <= {entry.name for entry in found.entries("metric")}


def test_stale_metadata_is_a_broken_plugin_not_a_crash(site, load):
    site.good("vcr-alive", "alive")
    site.add("vcr-gone", None, version="0.0.1")
    (failure,) = load().failures
    assert (failure.distribution, failure.version) == ("vcr-gone", "0.0.1")
    assert failure.location == str(site.folder)


def test_hidden_copy_of_another_version_is_reported(site, load, tmp_path, monkeypatch):
    site.good("vcr-twice", "twice", version="2.0")
    other = tmp_path / "later"
    other.mkdir()
    monkeypatch.syspath_prepend(str(other))
    monkeypatch.syspath_prepend(str(site.folder))
    type(site)(other).good("vcr-twice", "twice", version="1.0")
    found = load()
    (entry,) = [e for e in found.entries("metric") if e.name == "twice"]
    assert entry.version == "2.0"
    assert [(c.distribution, c.version) for c in found.copies] == [("vcr-twice", "1.0")]


def test_malformed_entry_points_of_one_distribution_hide_no_other(site, load):
    site.good("vcr-alpha", "alpha")
    site.add("unrelated", None, entry_points="this is no entry point\n[x]\nbroken\n")
    site.add("vcr-odd", None, entry_points="[vcr]\nno value here\n")
    found = load()
    assert "alpha" in {entry.name for entry in found.entries("metric")}
    (failure,) = found.failures
    assert failure.distribution == "vcr-odd"
    assert failure.stage == "metadata"


def test_metadata_folder_without_metadata_file(site, load):
    site.good("vcr-alpha", "alpha")
    site.add("vcr-half", "import nothing_here\n")
    (site.folder / "vcr_half-0.3.1.dist-info" / "METADATA").unlink()
    found = load()
    assert "alpha" in {entry.name for entry in found.entries("metric")}
    assert [failure.distribution for failure in found.failures] == ["vcr-half"]


def test_egg_info_beside_dist_info_is_one_plugin(site, load):
    module = site.good("vcr-editable", "editable")
    egg = site.folder / "vcr_editable.egg-info"
    egg.mkdir()
    (egg / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: vcr_editable\nVersion: 0.3.1\n")
    (egg / "entry_points.txt").write_text(f"[vcr]\nplugin = {module}\n")
    found = load()
    assert found.failures == ()
    assert [e.name for e in found.entries() if e.distribution == "vcr-editable"] == ["editable"]


def test_one_module_under_two_entry_points_is_loaded_once(site, load):
    site.add(
        "vcr-two",
        metrics(f"return [{SPEC.format('only-once')}]"),
        module="two_mod",
        entry_points="[vcr]\na = two_mod\nb = two_mod\n",
    )
    found = load()
    assert found.failures == ()
    assert [e.name for e in found.entries("metric")].count("only-once") == 1


def test_renamed_distribution_that_left_its_metadata_is_explained(site, load):
    module = site.good("vcr-new-name", "renamed")
    site.add("vcr-old-name", None, module=module)
    found = load()
    (failure,) = found.failures
    assert failure.distribution == "vcr-old-name"
    assert "already provided by vcr-new-name" in failure.reason
    assert "renamed" in {entry.name for entry in found.entries("metric")}


def test_what_a_plugin_prints_goes_to_stderr(site, load, capsys):
    site.add("vcr-loud", "print('hello from import')\n" + metrics("print('hook')\n    return []"))
    load()
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "hello from import" in printed.err
    assert "hook" in printed.err


def test_naming_a_component_of_a_failed_plugin_gives_its_reason(site, load):
    site.add(
        "vcr-broken",
        "import acme_native\n" + metrics(f"return [{SPEC.format('acme-score')}]"),
    )
    found = load()
    for ref in ("acme-score", "Acme_Score", "vcr-broken/anything"):
        with pytest.raises(ComponentUnavailable, match=r"vcr-broken 0\.3\.1") as caught:
            found.find("metric", ref)
        assert caught.value.exit_code == 3
        assert isinstance(caught.value.__cause__, ModuleNotFoundError)
    with pytest.raises(UnknownComponent, match="may provide it"):
        found.find("metric", "something-else")


def test_names_given_before_the_failure_belong_to_the_plugin(site, load):
    name = "'com' + 'puted'"
    spec = SPEC.format("x").replace('"x"', name)
    site.add("vcr-broken", metrics(f"yield {spec}\n    raise RuntimeError('late')"))
    with pytest.raises(ComponentUnavailable, match="late"):
        load().find("metric", "computed")


def test_commands_of_plugins_are_isolated(site, load, caplog):
    site.add(
        "vcr-good",
        """
        import click
        from vcr_core import hookimpl

        @hookimpl
        def vcr_register_commands(cli):
            @cli.command()
            def train():
                click.echo("trained")

            @cli.command("list")
            def other():
                click.echo("not mine")
        """,
    )
    site.add(
        "vcr-bad",
        """
        from vcr_core import hookimpl

        @hookimpl
        def vcr_register_commands(cli):
            cli.command("half")(lambda: None)
            raise RuntimeError("no")
        """,
    )
    commands = load().commands(taken=["list"])
    assert list(commands) == ["train"]
    text = caplog.text
    assert "vcr-bad" in text
    assert "'list' of vcr-good" in text


def test_command_of_two_plugins_is_left_out(site, load, caplog):
    source = """
    from vcr_core import hookimpl

    @hookimpl
    def vcr_register_commands(cli):
        cli.command("train")(lambda: None)
    """
    site.add("vcr-one", source)
    site.add("vcr-two", source)
    assert load().commands() == {}
    assert "vcr-one" in caplog.text
    assert "vcr-two" in caplog.text
