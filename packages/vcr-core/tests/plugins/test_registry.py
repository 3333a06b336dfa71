"""Look-ups, ambiguity, switches, observers."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest
from vcr_core.errors import AmbiguousComponent, ComponentUnavailable, UnknownComponent
from vcr_core.plugins import registry, reset_registry, with_entries


def test_lookups_are_forgiving_and_answers_canonical(site, load):
    site.good("Vcr_Acme.Models", "temporal-score")
    found = load()
    for ref in (
        "temporal-score",
        "Temporal_Score",
        "temporal score",
        "vcr-acme-models/temporal-score",
        "VCR_ACME_MODELS/Temporal-Score",
        "metric/temporal-score",
        "metrics/vcr-acme-models/temporal-score",
    ):
        entry, variant = found.find("metric", ref)
        assert (entry.qualified, variant) == ("vcr-acme-models/temporal-score", "")
    assert found.find("metric", "temporal-score.Strong_1")[1] == "strong-1"
    assert found.find_any("temporal-score")[0].kind == "metric"


def test_unknown_name_says_what_is_near(site, load):
    site.good("vcr-acme", "temporal-score")
    found = load()
    with pytest.raises(UnknownComponent, match="did you mean 'temporal-score'") as caught:
        found.find("metric", "temporal-scores")
    assert caught.value.exit_code == 2
    with pytest.raises(UnknownComponent, match=r"'motion' is a dataset"):
        found.find("metric", "motion")
    with pytest.raises(UnknownComponent, match="kind dataset, not metric"):
        found.find("metric", "dataset/motion")
    with pytest.raises(UnknownComponent, match="no plugin is called 'vcr-acmee'"):
        found.find("metric", "vcr-acmee/temporal-score")
    with pytest.raises(UnknownComponent, match="in vcr-acme"):
        found.find("metric", "vcr-acme/zzz")


def test_two_distributions_with_one_name_are_ambiguous(site, load):
    site.good("vcr-one", "same")
    site.good("vcr-two", "same")
    found = load()
    assert found.failures == ()
    assert found.ambiguous("metric", "same")
    assert not found.ambiguous("dataset", "same")
    with pytest.raises(AmbiguousComponent, match=r"vcr-one/same\.v2, vcr-two/same\.v2"):
        found.find("metric", "same.v2")
    assert found.find("metric", "vcr-one/same")[0].distribution == "vcr-one"
    assert found.find("metric", "vcr-two/same")[0].distribution == "vcr-two"


def test_one_name_in_two_kinds_is_only_ambiguous_without_a_kind(site, load):
    site.good("vcr-one", "motion")
    found = load()
    assert found.find("metric", "motion")[0].distribution == "vcr-one"
    assert found.find_any("dataset/motion")[0].distribution == "vcr-core"
    with pytest.raises(AmbiguousComponent, match="metric/vcr-one/motion, dataset/vcr-core/motion"):
        found.find_any("motion")


def test_entries_are_sorted_and_filtered(site, load):
    site.good("vcr-b", "zeta")
    site.good("vcr-a", "eta")
    found = load()
    mine = [e.name for e in found.entries("metric") if e.distribution in ("vcr-a", "vcr-b")]
    assert mine == ["eta", "zeta"]
    assert {e.kind for e in found.entries("metric")} == {"metric"}
    assert len(found.entries()) > len(found.entries("metric"))


def test_disabled_plugin_is_not_imported(site, load, monkeypatch):
    site.add("vcr-loud", "raise RuntimeError('imported')\n")
    monkeypatch.setenv("VCR_DISABLE_PLUGINS", " Vcr_Loud ,other")
    found = load()
    assert found.failures == ()
    assert found.disabled == ("vcr-loud",)
    with pytest.raises(UnknownComponent, match="disabled by VCR_DISABLE_PLUGINS"):
        found.find("metric", "vcr-loud/x")


def test_strict_turns_a_failure_into_an_error(site, monkeypatch):
    site.add("vcr-broken", "raise RuntimeError('no')\n")
    monkeypatch.setenv("VCR_STRICT_PLUGINS", "1")
    with pytest.raises(ComponentUnavailable, match="vcr-broken"):
        registry()
    monkeypatch.setenv("VCR_STRICT_PLUGINS", "0")
    assert len(registry().failures) == 1


def test_registry_is_built_once_and_warns_once(site, caplog, monkeypatch):
    site.add("vcr-broken", "raise RuntimeError('no')\n")
    with caplog.at_level(logging.WARNING):
        first = registry()
        assert registry() is first
    assert caplog.text.count("vcr-broken 0.3.1 could not be loaded") == 1
    reset_registry()
    assert registry() is not first


def test_observer_errors_are_logged_and_go_no_further(site, load, caplog):
    site.add(
        "vcr-bad",
        """
        from vcr_core import hookimpl

        @hookimpl
        def vcr_record_written(record):
            raise RuntimeError("observer is broken")
        """,
    )
    site.add(
        "vcr-good",
        """
        from vcr_core import hookimpl

        seen = []

        @hookimpl
        def vcr_record_written(run, record):
            seen.append((run["id"], record["video"]))
        """,
        module="observing_mod",
    )
    observers = load().observers("vcr_record_written")
    assert len(observers) == 2
    for observe in observers:
        observe(run={"id": "r"}, record={"video": "v"})
    import observing_mod

    assert observing_mod.seen == [("r", "v")]
    assert "vcr-bad" in caplog.text
    assert "observer is broken" in caplog.text


def test_presets_are_attributed(site, load):
    site.add(
        "vcr-acme",
        """
        from vcr_core import PresetSource, hookimpl

        @hookimpl
        def vcr_register_presets():
            return [PresetSource(package="vcr_acme_mod", folder="recipes")]
        """,
    )
    sources = [(d, s.package, s.folder) for d, s in load().preset_sources]
    assert ("vcr-acme", "vcr_acme_mod", "recipes") in sources


def test_entries_can_be_added_for_a_while(site):
    site.good("vcr-one", "given")
    entry, _ = registry().find("metric", "given")
    extra = replace(entry, spec=replace(entry.spec, name="extra"))
    with with_entries([extra]) as found:
        assert found.find("metric", "extra")[0] is extra
        assert registry() is found
    with pytest.raises(UnknownComponent):
        registry().find("metric", "extra")
