"""Use what is installed in an environment, from a folder that knows nothing of the checkout.

    python tools/smoke.py ENVIRONMENT

First what the wheels hold: every command, a run, the demo. Then plugins: the example, a new one
from `vcr new-plugin`, and one that cannot be imported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = ["vcr-core", "vcr-metrics", "vcr-models", "vcr-attacks", "vcr-defenses"]
KINDS = {"model", "attack", "defense", "metric", "dataset", "executor", "reporter"}

BROKEN = {
    "pyproject.toml": """\
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"
[project]
name = "vcr-broken"
version = "0.1"
[project.entry-points.vcr]
plugin = "vcr_broken.plugin"
""",
    "vcr_broken/__init__.py": "",
    "vcr_broken/plugin.py": "import a_library_that_is_not_installed\n",
}


class Failed(Exception):
    """A step did not do what it should."""


class Smoke:
    """An environment and an empty folder to work in."""

    def __init__(self, environment: Path, folder: Path) -> None:
        self.environment = environment.resolve()
        self.scripts = self.environment / ("Scripts" if os.name == "nt" else "bin")
        self.python = str(self.scripts / "python")
        self.folder = folder
        unwanted = ("VCR_", "PYTHON", "VIRTUAL_ENV")
        kept = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}
        self.env = {**kept, "VCR_CACHE_DIR": str(folder / "cache"), "VCR_OFFLINE": "1"}

    def run(self, *arguments: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command in the folder; its exit code has to be `code`."""
        started = time.monotonic()
        done = subprocess.run(
            arguments,
            cwd=self.folder,
            env={**self.env, **env},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        shown = " ".join([Path(arguments[0]).name, *arguments[1:]])
        print(f"  {shown}  [{time.monotonic() - started:.1f} s]", flush=True)
        if done.returncode != code:
            output = (done.stdout + done.stderr)[-6000:]
            raise Failed(f"{shown}: exit code {done.returncode}, not {code}\n{output}")
        return done

    def vcr(self, *arguments: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[str]:
        """Run the installed ``vcr`` command."""
        return self.run(str(self.scripts / "vcr"), *arguments, code=code, **env)

    def listed(self, **env: str) -> Any:
        """Return what ``vcr list --json`` prints."""
        return json.loads(self.vcr("list", "--json", **env).stdout)

    def install_from(self, project: Path) -> None:
        """Build a wheel of a plugin and install it, with what is here already."""
        dist = self.folder / "dist" / project.name
        uv = [sys.executable, "-m", "uv"]
        pins = ["--build-constraints", str(ROOT / "constraints.txt")]
        self.run(*uv, "build", "--quiet", "--wheel", *pins, "--out-dir", str(dist), str(project))
        (wheel,) = dist.glob("*.whl")
        self.run(*uv, "pip", "install", "--quiet", "--python", self.python, "--no-deps", str(wheel))

    def contract(self, distribution: str) -> None:
        """Run the conformance kit over an installed plugin."""
        kit = ["-p", "vcr_core.testing.plugin", "--vcr-contract", distribution]
        # The environment may lie inside the checkout, whose conftest.py is none of its business.
        kit += ["--confcutdir", str(self.environment)]
        done = self.run(self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *kit)
        print(f"    {done.stdout.strip().splitlines()[-1]}")
        expect(" passed" in done.stdout, "no contract test ran")


def expect(condition: bool, message: str) -> None:
    """Stop with a message unless the condition holds."""
    if not condition:
        raise Failed(message)


def wheels_alone(smoke: Smoke) -> None:
    """Check that the packages work, and that they are not the checkout's."""
    modules = [name.replace("-", "_") for name in PACKAGES]
    code = f"import {', '.join(modules)}\nprint(*(m.__file__ for m in ({', '.join(modules)})))"
    for name in smoke.run(smoke.python, "-c", code).stdout.split():
        expect(Path(name).is_relative_to(smoke.environment), f"{name} is not the installed one")
    data = smoke.listed(VCR_STRICT_PLUGINS="1")
    found = {component["kind"] for component in data["components"]}
    expect(found == KINDS, f"kinds listed: {sorted(found)}")
    smoke.vcr("doctor")
    smoke.vcr("config", "show", "demo")
    smoke.vcr("config", "show", "ifgsm.paper", code=2)
    smoke.vcr("info", "attack/ifgsm.paper")
    small = ["--attack", "ifgsm", "--eps", "2/255", "--limit", "2"]
    smoke.vcr("run", "--model", "tiny-r3d", *small)
    (run,) = (smoke.folder / "results").iterdir()
    records = [line for part in run.glob("records/*.jsonl") for line in part.open()]
    expect(len(records) == 2, f"{len(records)} records, not 2")
    smoke.vcr("status")
    smoke.vcr("report", "results", "--format", "md")
    smoke.vcr("export", "results", "--format", "parquet", "--output", "records.parquet")
    table = smoke.vcr("demo", "--limit", "1", "--results", "demo").stdout
    expect("tiny-r3d" in table, f"the demo printed no table:\n{table}")
    page = (smoke.folder / "demo" / "report.html").read_text(encoding="utf-8")
    expect("tiny-r3d" in page, "the report does not show the runs")
    loads = [text for text in ('src="http', "src='http", "@import", "url(http") if text in page]
    expect(not loads, f"the report is not self-contained: {loads}")


def example_plugin(smoke: Smoke, project: Path, distribution: str, prefix: str) -> None:
    """Build, install, list, run and test a plugin of all kinds."""
    smoke.install_from(project)
    components = smoke.listed(VCR_STRICT_PLUGINS="1")["components"]
    names = {c["kind"]: c["name"] for c in components if c["distribution"] == distribution}
    expect(len(names) == 5, f"{distribution} brings {names}, not five kinds")
    expect(all(n.startswith(prefix) for n in names.values()), f"strange names: {names}")
    chosen = [f"--{kind}={names[kind]}" for kind in ("model", "attack", "defense", "dataset")]
    metrics = ["--set", f'metrics.names=["{names["metric"]}"]']
    results = ["--results", f"results-{distribution}"]
    smoke.vcr("run", *chosen, "--limit", "2", *metrics, *results)
    smoke.contract(distribution)


def broken_plugin(smoke: Smoke) -> None:
    """Check that a plugin that cannot be imported takes nothing else with it."""
    project = smoke.folder / "vcr-broken"
    for name, text in BROKEN.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    before = smoke.listed()["components"]
    smoke.install_from(project)
    data = smoke.listed()
    failed = [failure["distribution"] for failure in data["failures"]]
    expect(failed == ["vcr-broken"], f"failures listed: {failed}")
    expect(data["components"] == before, "the broken plugin changed the list of the others")
    clean = ["--model", "tiny-r3d", "--attack", "none", "--limit", "1"]
    done = smoke.vcr("run", *clean, "--results", "results-broken")
    expect("vcr-broken" in done.stderr, f"no warning names vcr-broken:\n{done.stderr}")
    expect("Traceback" not in done.stderr, f"a traceback for a user:\n{done.stderr}")
    smoke.vcr("list", VCR_STRICT_PLUGINS="1", code=3)
    silent = smoke.vcr("list", VCR_DISABLE_PLUGINS="vcr-broken")
    expect(not silent.stderr, f"VCR_DISABLE_PLUGINS did not silence it:\n{silent.stderr}")


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        smoke = Smoke(Path(sys.argv[1]), Path(name).resolve())
        example = ROOT / "examples" / "vcr-example-plugin"
        try:
            print("the wheels", flush=True)
            wheels_alone(smoke)
            print("the example plugin", flush=True)
            example_plugin(smoke, example, "vcr-example-plugin", "example-")
            print("a new plugin", flush=True)
            smoke.vcr("new-plugin", "vcr-acme")
            example_plugin(smoke, smoke.folder / "vcr-acme", "vcr-acme", "acme-")
            print("a broken plugin", flush=True)
            broken_plugin(smoke)
        except Failed as error:
            print(f"failed: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
