"""Every ``bash`` block of a page runs; blocks whose first line names a file become that file.

``console`` blocks show commands that change the environment and are not run.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from vcr_core.specs import AttackSpec, DefenseSpec
from vcr_core.testing.contract import cases

_DOCS = Path(__file__).parent
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"# ([\w./-]+\.(?:py|toml|csv))\n")
_PAGES = sorted(p for p in _DOCS.rglob("*.md") if "```bash\n" in p.read_text(encoding="utf-8"))


@pytest.mark.e2e
@pytest.mark.parametrize("page", _PAGES, ids=[str(p.relative_to(_DOCS)) for p in _PAGES])
def test_the_commands_of_a_page_run(page: Path, tmp_path: Path) -> None:
    """Run a page from top to bottom in an empty folder."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "VCR_CONFIG_DIR": str(tmp_path / "config"),
        "VCR_CACHE_DIR": str(tmp_path / "cache"),
    }
    folder = tmp_path / "here"
    folder.mkdir()
    for language, text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        named = _FILE.match(text)
        if language == "bash":
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                pytest.fail(f"{text}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}")
        elif named:
            content = text[named.end() :] if named[1].endswith(".csv") else text
            (folder / named[1]).write_text(content, encoding="utf-8")


@pytest.mark.contract
def test_the_components_of_the_tutorial_keep_their_contract(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Collect the page's Python blocks into a module and check what it defines."""
    text = (_DOCS / "plugins" / "tutorial.md").read_text(encoding="utf-8")
    blocks = [block for language, block in _BLOCK.findall(text) if language == "python"]
    (tmp_path / "vcr_tutorial.py").write_text("\n".join(blocks), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    attack = AttackSpec(
        name="sign-steps",
        summary="Signed gradient steps",
        target="vcr_tutorial:SignSteps",
        params="vcr_tutorial:SignStepsParams",
        access="white-box",
        norms=frozenset({"linf"}),
        targeted=True,
    )
    defense = DefenseSpec(
        name="quantise",
        summary="Sixteen levels",
        target="vcr_tutorial:Quantise",
        gradient="surrogate",
    )
    for case in cases([attack, defense]):
        case()
