"""The root command: exit codes, messages, laziness."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import click
import pytest
from vcr_core.cli import group, main
from vcr_core.cli.group import COMMANDS
from vcr_core.cli.output import emit_table
from vcr_core.errors import ComponentUnavailable, ConfigError, VcrError

HEAVY = (
    "torch", "torchvision", "numpy", "mmaction", "mmcv", "mmengine", "pytorchvideo", "diffusers",
    "transformers", "open_clip", "lpips", "cv2", "av", "pandas", "scipy",
)  # fmt: skip


def python(code: str, *, timeout: float = 120, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=timeout,
        env={**os.environ, **env},
        check=False,
    )


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["list"], ["list", "-v"], ["list", "--json"], ["info", "dataset/motion"],
     ["doctor"], ["--version"], ["no-such-command"]],
    ids=" ".join,
)  # fmt: skip
def test_light_commands_import_nothing_heavy(arguments):
    code = (
        "import sys, json\nfrom vcr_core.cli import main\n"
        f"main({arguments!r})\n"
        f"print(json.dumps([name for name in {HEAVY!r} if name in sys.modules]))\n"
        "print(json.dumps(['rich' in sys.modules, 'msgspec' in sys.modules]))\n"
    )
    done = python(code)
    *_, heavy, others = done.stdout.splitlines()
    assert json.loads(heavy) == [], done.stderr
    rich, msgspec = json.loads(others)
    assert not rich
    if arguments[0] != "info":
        assert not msgspec


def test_help_lists_every_command_without_importing_them():
    code = (
        "import sys\nfrom vcr_core.cli import main\nmain(['--help'])\n"
        "print([m for m in sys.modules if m.startswith('vcr_core.cli.')])\n"
    )
    done = python(code)
    *help_lines, modules = done.stdout.splitlines()
    text = "\n".join(help_lines)
    for name in COMMANDS:
        assert f"  {name} " in text
    assert "'vcr_core.cli.list_'" not in modules
    assert "Example: " in text


@pytest.mark.parametrize("name", ["list", "info", "doctor", "new-plugin"])
def test_help_of_a_command_has_an_example_and_the_common_options(vcr, name):
    result = vcr(name, "--help")
    assert result.code == 0
    for word in ("Example: vcr ", "--debug", "--quiet", "--verbose"):
        assert word in result.out
    assert result.out.startswith(f"Usage: vcr {name}")


def test_no_arguments_print_the_help(vcr):
    result = vcr()
    assert result.code == 0
    assert result.out.startswith("Usage: vcr")


def test_version(vcr):
    from vcr_core import __version__

    assert __version__ in vcr("--version").out


def test_unknown_command_and_option(vcr):
    result = vcr("lsit")
    assert (result.code, result.out) == (2, "")
    assert "there is no command 'lsit'; did you mean 'list'?" in result.err
    result = vcr("list", "--nope")
    assert (result.code, result.out) == (2, "")
    assert "--nope" in result.err


def failing(monkeypatch, error):
    @click.command("failing")
    def command():
        raise error

    monkeypatch.setitem(group.root.commands, "list", command)


@pytest.mark.parametrize(
    ("error", "code", "lines"),
    [
        (VcrError("went wrong"), 1, ["error: went wrong"]),
        (ConfigError(["a.toml: x", "a.toml: y"]), 2, ["error: a.toml: x", "error: a.toml: y"]),
        (ComponentUnavailable("not here"), 3, ["error: not here"]),
        (KeyboardInterrupt(), 130, ["interrupted"]),
    ],
    ids=["vcr", "config", "unavailable", "interrupt"],
)
def test_errors_end_with_their_code_and_no_traceback(vcr, monkeypatch, error, code, lines):
    failing(monkeypatch, error)
    result = vcr("list")
    assert (result.code, result.out) == (code, "")
    assert [line for line in result.err.splitlines() if line] == lines


def test_debug_shows_the_traceback(vcr, monkeypatch):
    failing(monkeypatch, ComponentUnavailable("not here"))
    result = vcr("--debug", "list")
    assert result.code == 3
    assert "Traceback" in result.err
    assert result.err.endswith("error: not here\n")


def test_programming_errors_are_not_hidden(monkeypatch):
    failing(monkeypatch, ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        main(["list"])


def test_missing_engine_names_the_extra(vcr, monkeypatch):
    failing(monkeypatch, ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"))
    result = vcr("list")
    assert (result.code, result.out) == (3, "")
    assert result.err == (
        "error: this needs torch, which is not installed; pip install 'vcr-core[engine]'\n"
    )


@pytest.mark.parametrize("returned", [1, 3])
def test_exit_code_of_a_command(vcr, monkeypatch, returned):
    @click.command("failing")
    @click.pass_context
    def command(context):
        context.exit(returned)

    monkeypatch.setitem(group.root.commands, "list", command)
    assert vcr("list").code == returned


def test_closed_pipe_is_quiet():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from vcr_core.cli import main; raise SystemExit(main(['list']))",
            ],
            stdout=writer,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_tables_in_a_pipe_keep_one_line_a_row(capsys):
    emit_table(["a", "b"], [["x\ty", None], ["line\nend", 1.5]])
    assert capsys.readouterr().out == "x y\t\nline end\t1.5\n"


def test_module_is_the_command():
    done = subprocess.run(
        [sys.executable, "-m", "vcr_core", "--version"],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("vcr, version ")
