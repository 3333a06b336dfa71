"""What may be ranked together, by which number, and how surely."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vcr_core.leaderboard.boards import KNOWLEDGE_TEXT
from vcr_core.leaderboard.rankings import Ranking, make_rankings
from vcr_core.leaderboard.submissions import Rules, collect
from vcr_core.leaderboard.telling_apart import told_apart

MakeRun = Callable[..., Path]


def rankings(tmp_path: Path) -> list[Ranking]:
    found, left_out = collect([tmp_path / "runs"], Rules(verified={}))
    assert left_out == []
    return make_rankings(found)


def models(ranking: Ranking) -> list[str]:
    return [place.submission.run.model for place in ranking.places]


def test_systems_on_the_same_videos_under_the_same_attack_are_ranked(
    make_run: MakeRun, tmp_path: Path
) -> None:
    make_run(3, model="weak")
    make_run(9, model="strong")
    make_run(5, model="bare", defense="blur")
    (ranking,) = rankings(tmp_path)
    assert models(ranking) == ["strong", "bare", "weak"]
    assert [place.rank for place in ranking.places] == [1, 2, 3]
    assert ranking.title == "push, L∞ 8/255"
    assert ranking.knowledge == "sees the whole system"
    assert ranking.setting == "clips, 10 videos (f00df00d), evaluation version 1"


@pytest.mark.parametrize(
    "other",
    [
        {"fingerprint": "beef" * 8},
        {"dataset": "others"},
        {"eps": "4/255"},
        {"attack": "pull"},
        {"attack": None},
        {"videos": 9, "fingerprint": "cafe" * 8},
        {"edit": lambda manifest, _: manifest.update(evaluation_version=2)},
        {"edit": lambda manifest, _: manifest["experiment"]["attack"].update(steps=20)},
        {"edit": lambda manifest, _: manifest["experiment"]["threat"].update(quantize=False)},
        {"edit": lambda manifest, _: manifest["experiment"]["protocol"].update(stop="first")},
    ],
)
def test_what_differs_in_anything_else_is_ranked_apart(
    make_run: MakeRun, tmp_path: Path, other: dict[str, Any]
) -> None:
    make_run(model="one")
    make_run(model="two", **other)
    assert [models(ranking) for ranking in rankings(tmp_path)] in (
        [["one"], ["two"]], [["two"], ["one"]],
    )  # fmt: skip


def test_a_radius_is_the_same_however_it_is_written(make_run: MakeRun, tmp_path: Path) -> None:
    make_run(model="one", eps="8/255")
    make_run(model="two", eps=8 / 255)
    assert len(rankings(tmp_path)) == 1


def test_an_attack_that_does_not_know_the_defense_is_never_ranked_with_one_that_does(
    make_run: MakeRun, tmp_path: Path
) -> None:
    make_run(2, defense="blur", adaptive=True)
    make_run(9, defense="blur", adaptive=False)
    make_run(4, model="bare")
    whole, unaware = rankings(tmp_path)
    assert (whole.knowledge, models(whole)) == ("sees the whole system", ["bare", "net"])
    assert (unaware.knowledge, models(unaware)) == ("sees the bare model", ["net"])
    # The accuracy of the system, not that of the bare model that the attack looked at.
    assert unaware.places[0].submission.value == 0.9


def test_an_attack_on_another_model_is_ranked_apart_and_says_so(
    make_run: MakeRun, tmp_path: Path
) -> None:
    def shown(manifest: dict[str, Any], records: list[dict[str, Any]]) -> None:
        manifest["experiment"]["source"] = {"name": "vcr-elsewhere/other"}
        for record in records:
            record["source"] = {
                "label": 0, "clean": record["clean"], "attacked": record["attacked"],
                "success": record["success"],
            }  # fmt: skip

    make_run(9, model="one", edit=shown)
    make_run(8, model="two", edit=shown)
    make_run(2, model="one")
    white_box, transfer = rankings(tmp_path)
    assert (white_box.title, models(white_box)) == ("push, L∞ 8/255", ["one"])
    assert (transfer.title, models(transfer)) == ("push on other, L∞ 8/255", ["one", "two"])
    assert transfer.knowledge == "sees another model"
    assert KNOWLEDGE_TEXT[transfer.knowledge] == "the attack was made on another model"


def test_the_lowest_accuracy_of_a_system_counts(make_run: MakeRun, tmp_path: Path) -> None:
    def stronger(manifest: dict[str, Any], _: list[dict[str, Any]]) -> None:
        manifest["experiment"]["protocol"]["eot"] = 20

    make_run(8, defense="noise")
    make_run(3, defense="noise", edit=stronger)
    make_run(5, model="bare")
    (ranking,) = rankings(tmp_path)
    assert [(p.submission.run.name, p.rank, p.superseded_by) for p in ranking.places] == [
        ("run-001", None, "run-002"), ("run-003", 1, ""), ("run-002", 2, ""),
    ]  # fmt: skip
    assert (ranking.places[0].text, ranking.pairs) == ("", 1)


def test_equal_accuracies_share_the_better_rank(make_run: MakeRun, tmp_path: Path) -> None:
    for model in ("a", "b", "c"):
        make_run(5 if model != "c" else 2, model=model)
    (ranking,) = rankings(tmp_path)
    assert [place.rank for place in ranking.places] == [1, 1, 3]


def test_ranks_are_as_wide_as_chance_makes_them(make_run: MakeRun, tmp_path: Path) -> None:
    for model, held in (("best", 40), ("good", 38), ("bad", 5)):
        make_run(held, model=model, videos=40)
    (ranking,) = rankings(tmp_path)
    assert [place.text for place in ranking.places] == ["1\u20132", "1\u20132", "3"]
    assert (ranking.pairs, ranking.told_apart) == (3, 2)


def test_rankings_that_read_the_same_say_what_differs(make_run: MakeRun, tmp_path: Path) -> None:
    make_run()
    make_run(edit=lambda manifest, _: manifest["experiment"]["attack"].update(steps=20))
    assert [ranking.settings for ranking in rankings(tmp_path)] == ["steps = 10", "steps = 20"]


def test_rankings_do_not_depend_on_the_order_of_runs(make_run: MakeRun, tmp_path: Path) -> None:
    for model in ("a", "b"):
        for eps in ("2/255", "8/255"):
            make_run(5, model=model, eps=eps)
    found, _ = collect([tmp_path / "runs"], Rules(verified={}))
    forwards, backwards = make_rankings(found), make_rankings(found[::-1])
    assert [(r.id, models(r)) for r in forwards] == [(r.id, models(r)) for r in backwards]


def test_tests_are_corrected_for_their_number() -> None:
    videos = [f"v{i}" for i in range(30)]

    def right(n: int) -> dict[str, bool]:
        return {video: i < n for i, video in enumerate(videos)}

    # 0 against 6 discordant videos: p = 2 / 2**6 = 0.031, enough for one test and not for three.
    assert told_apart({"a": right(26), "b": right(20)})[0] == {"a": 0, "b": 1}
    three = {"a": right(26), "b": right(20), "c": right(20)}
    assert told_apart(three)[0] == {"a": 0, "b": 0, "c": 0}
    # Holm: once the clearest pair is rejected, the next one meets a milder level.
    better, worse = told_apart({"a": right(30), "b": right(22), "c": right(10)})
    assert better == {"a": 0, "b": 1, "c": 2}
    assert worse == {"a": 2, "b": 1, "c": 0}


def test_only_shared_videos_are_compared() -> None:
    one = {f"v{i}": True for i in range(20)}
    other = {f"w{i}": False for i in range(20)}
    assert told_apart({"one": one, "other": other})[0] == {"one": 0, "other": 0}
