"""The site: whole, the same every time, self-contained, and safe with any names."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from vcr_core.cli import main
from vcr_core.leaderboard.build import build_site
from vcr_core.leaderboard.site_schema import EntryFile, Leaderboard
from vcr_core.leaderboard.submissions import Rules

pytest.importorskip("jinja2")

MakeRun = Callable[..., Path]
EVIL = "<img src=x onerror=alert(1)>\"'&\u202e"
VOID = {"meta", "link", "br", "input", "hr", "img"}


class Page(HTMLParser):
    """Checks that tags nest, and collects links, ids and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def ids(self) -> list[str]:
        return [str(attrs["id"]) for _, attrs in self.tags if attrs.get("id")]


def build(tmp_path: Path, name: str = "site", **options: Any) -> Path:
    rules = Rules(verified={}, max_errors=0.1)
    return build_site([tmp_path / "runs"], tmp_path / name, rules, **options).folder


def pages(site: Path) -> dict[str, Page]:
    return {
        path.relative_to(site).as_posix(): Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
    }


@pytest.fixture
def some_runs(make_run: MakeRun) -> None:
    """Two models, a defense that one attack knows and another does not, radii, a failed run."""
    make_run(6, model="one")
    make_run(4, model="two")
    make_run(2, model="two", eps="16/255")
    make_run(3, model="one", defense="blur")
    make_run(9, model="one", defense="blur", adaptive=False)
    make_run(attack=None)
    make_run(edit=lambda manifest, _: manifest.update(status="failed"))


@pytest.fixture
def hostile_runs(make_run: MakeRun) -> None:
    def spoil(manifest: dict[str, Any], records: list[dict[str, Any]]) -> None:
        manifest["flags"] = [EVIL]
        manifest["dataset"]["labels"] = [EVIL, "run"]
        manifest["command"] = [EVIL]
        manifest["environment"] = {EVIL: EVIL}
        manifest["components"][1]["params"] = {EVIL: EVIL}
        manifest["run"] = f"{EVIL}{manifest['run']}"
        for record in records:
            record["run"] = manifest["run"]
            record["metrics"] = {EVIL: {"value": 1.0}}
        for key in ("clean", "attacked", "success"):
            records[0].pop(key)
        records[0] |= {
            "status": "error", "error": {"stage": EVIL, "type": EVIL, "message": EVIL},
        }  # fmt: skip

    make_run(model=EVIL, attack=EVIL, dataset="..", edit=spoil)
    make_run(model="../../x", defense=EVIL, edit=spoil)
    make_run(model=EVIL, edit=lambda manifest, _: manifest.update(status=EVIL))


def test_every_link_leads_to_a_page_of_the_site(some_runs: None, tmp_path: Path) -> None:
    site = build(tmp_path)
    found = pages(site)
    assert set(found) == {
        "index.html", "left-out.html", "models/one.html", "models/two.html", "models/net.html",
        "attacks/push.html", "defenses/blur.html", "datasets/clips.html",
        *(f"entries/run-00{i}.html" for i in range(1, 7)),
    }  # fmt: skip
    for address, page in found.items():
        for tag, attributes in page.tags:
            link = attributes.get("href") or attributes.get("src")
            if link is None or link.startswith(("#", "data:")):
                continue
            parts = urlsplit(link)
            assert (parts.scheme, parts.netloc) == ("", ""), (address, tag, link)
            assert not link.startswith("/"), (address, link)
            target = (site / address).parent / unquote(parts.path)
            assert target.is_file(), (address, link)
            if parts.fragment:
                name = target.resolve().relative_to(site.resolve()).as_posix()
                assert parts.fragment in found[name].ids, (address, link)


def test_every_page_is_reached_from_the_index(some_runs: None, tmp_path: Path) -> None:
    site = build(tmp_path)
    found = pages(site)
    seen, waiting = set(), ["index.html"]
    while waiting:
        address = waiting.pop()
        if address in seen or address not in found:
            continue
        seen.add(address)
        for _, attributes in found[address].tags:
            link = urlsplit(attributes.get("href") or "").path
            if link and not link.startswith("data"):
                target = ((site / address).parent / link).resolve()
                waiting.append(target.relative_to(site.resolve()).as_posix())
    assert seen == set(found)


def test_ids_are_unique_and_pages_load_only_the_site(some_runs: None, tmp_path: Path) -> None:
    for address, page in pages(build(tmp_path)).items():
        assert len(page.ids) == len(set(page.ids)), address
        policy = next(a["content"] for _, a in page.tags if a.get("http-equiv"))
        assert policy is not None
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self';")
        for tag, attributes in page.tags:
            assert tag not in ("style", "iframe", "object", "embed", "base")
            assert "style" not in attributes
            assert not any(name.startswith("on") for name in attributes)
    for asset in (tmp_path / "site" / "assets").iterdir():
        assert not re.search(r"@import|url\(|https?:", asset.read_text()), asset


def test_the_same_runs_give_the_same_bytes(some_runs: None, tmp_path: Path) -> None:
    one, other = build(tmp_path, "one"), build(tmp_path, "two/deep")
    files = sorted(p.relative_to(one) for p in one.rglob("*") if p.is_file())
    assert files == sorted(p.relative_to(other) for p in other.rglob("*") if p.is_file())
    for file in files:
        assert (one / file).read_bytes() == (other / file).read_bytes(), file
        assert str(tmp_path).encode() not in (one / file).read_bytes()


def test_the_time_is_said_only_where_it_is_asked_for(some_runs: None, tmp_path: Path) -> None:
    assert "Built by vcr-core" in pages(build(tmp_path))["index.html"].text
    stamped = pages(build(tmp_path, "stamped", built="2026-07-01T00:00:00Z"))
    assert "Built 2026-07-01T00:00:00Z by" in stamped["index.html"].text


def test_names_are_shown_as_text_and_never_as_markup(hostile_runs: None, tmp_path: Path) -> None:
    site = build(tmp_path)
    found = pages(site)
    assert EVIL in found["index.html"].text
    for address, page in found.items():
        scripts = [attrs for tag, attrs in page.tags if tag == "script"]
        assert [set(attrs) for attrs in scripts] == [{"src"}], address
    for path in site.rglob("*"):
        assert re.fullmatch(r"[a-z0-9._-]+", path.name), path
        assert path.resolve().is_relative_to(site.resolve())
    board = json.loads((site / "data" / "leaderboard.json").read_text())
    assert EVIL in {entry["model"] for entry in board["entries"]}
    entry = next(e for e in board["entries"] if e["model"] == EVIL)
    assert found[entry["page"]].text.count(EVIL) > 8
    assert [left["reasons"] for left in board["left_out"]] == [
        [f"not finished: {EVIL}, 10 of 10 videos"]
    ]


def test_numbers_and_ranks_are_those_of_the_records(some_runs: None, tmp_path: Path) -> None:
    board = msgspec.json.decode(
        (build(tmp_path) / "data" / "leaderboard.json").read_bytes(), type=Leaderboard
    )
    entries = {entry.run: entry for entry in board.entries}
    one = entries["run-001"]
    assert one.robust_accuracy is not None
    assert (one.robust_accuracy.value, one.robust_accuracy.k, one.robust_accuracy.n) == (0.6, 6, 10)
    assert one.robust_accuracy.ci95 == pytest.approx([0.3127, 0.8318], abs=1e-4)
    assert (one.place.rank, one.place.systems, one.access) == (1, 3, "white-box")
    assert (entries["run-005"].place.rank, entries["run-005"].place.systems) == (1, 1)
    assert entries["run-005"].knowledge == "sees the bare model"
    assert entries["run-006"].attack == ""
    assert entries["run-006"].robust_accuracy is None
    assert one.metrics["psnr"].value == 44.5
    assert {tuple(r.runs) for r in board.rankings} == {
        ("run-001", "run-002", "run-004"), ("run-003",), ("run-005",), ("run-006",),
    }  # fmt: skip
    assert [(left.run, left.reasons) for left in board.left_out] == [
        ("run-007", ["not finished: failed, 10 of 10 videos"])
    ]


def test_every_entry_has_a_file_of_the_documented_form(some_runs: None, tmp_path: Path) -> None:
    site = build(tmp_path)
    board = msgspec.json.decode((site / "data/leaderboard.json").read_bytes(), type=Leaderboard)
    for entry in board.entries:
        found = msgspec.json.decode((site / entry.data).read_bytes(), type=EntryFile)
        assert found.entry == entry
        assert found.experiment["model"]["name"] == f"vcr-elsewhere/{entry.model}"
        assert found.verification.checks
    schema = json.loads((site / "data" / "leaderboard.schema.json").read_text())
    assert schema["$ref"] == "#/$defs/Leaderboard"
    assert set(schema["$defs"]["Entry"]["required"]) <= set(
        json.loads((site / "data/leaderboard.json").read_text())["entries"][0]
    )


def test_the_index_says_what_kind_of_number_it_shows(some_runs: None, tmp_path: Path) -> None:
    found = pages(build(tmp_path))
    text = found["index.html"].text
    assert "the attack does not know the defense" in text
    assert "3 systems, none of which can be told apart." in text
    assert "no worst case" in found["entries/run-005.html"].text
    assert "no worst case" not in found["entries/run-004.html"].text
    assert "not finished: failed" in found["left-out.html"].text


def test_a_component_page_shows_its_runs_and_nothing_else(some_runs: None, tmp_path: Path) -> None:
    page = pages(build(tmp_path))["models/two.html"]
    assert {i for i in page.ids if i.startswith("run-0")} == set()
    assert {i for i in page.ids if i.startswith("run-run")} == {"run-run-002", "run-run-003"}
    assert "vcr-elsewhere 1.2" in page.text
    assert "not where this site was made" in page.text


def test_an_installed_component_is_explained(toys: None, run: Path, tmp_path: Path) -> None:
    build_site([run], tmp_path / "site", Rules(verified={}))
    text = pages(tmp_path / "site")["models/toy-cnn.html"].text
    assert "label space" in text
    assert "vcr-toys 0" in text


def test_an_empty_site_is_a_site(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    assert "There are no runs yet." in pages(build(tmp_path))["index.html"].text


def test_a_site_is_replaced_and_anything_else_is_left_alone(
    some_runs: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = build(tmp_path)
    (site / "entries" / "old.html").write_text("old")
    build(tmp_path)
    assert not (site / "entries" / "old.html").exists()
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    code = main(["leaderboard", "build", str(tmp_path / "runs"), "--output", str(other)])
    assert code == 2
    assert "is no leaderboard" in capsys.readouterr().err
    assert (other / "thesis.txt").read_text() == "precious"


def test_the_command_says_what_it_made_and_what_it_left_out(
    some_runs: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = tmp_path / "site"
    assert main(["leaderboard", "build", str(tmp_path / "runs"), "--output", str(site)]) == 0
    printed = capsys.readouterr()
    assert printed.out == f"{site / 'index.html'}\n"
    assert "6 runs in 4 rankings, 1 left out" in printed.err
    assert "left out: run-007: not finished: failed" in printed.err
    arguments = ["leaderboard", "build", str(tmp_path / "runs"), "--output", str(site), "--json"]
    assert main(arguments) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["entries"], data["rankings"], len(data["left_out"])) == (6, 4, 1)


def test_verify_and_build_work_together(run: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["leaderboard", "verify", str(run), "--rerun", "2", "--json"]) == 0
    file = tmp_path / "verified.json"
    file.write_text(capsys.readouterr().out)
    site = tmp_path / "site"
    arguments = ["--verified", str(file), "--only-verified", "--output", str(site)]
    assert main(["leaderboard", "build", str(run.parent), *arguments]) == 0
    page = pages(site)[f"entries/{run.name}.html"].text
    assert "Videos evaluated again passed 2 videos give the same records, bit for bit" in page
    assert "re-run" in pages(site)["index.html"].text


def test_only_verified_needs_a_file(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    site = str(tmp_path / "site")
    arguments = ["leaderboard", "build", str(tmp_path / "runs"), "--output", site]
    assert main([*arguments, "--only-verified"]) == 2
    assert main(["leaderboard", "build", str(tmp_path / "no"), "--output", site]) == 2
