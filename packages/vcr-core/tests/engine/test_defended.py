"""What defenses may be besides a change of the clips: votes, abstentions, other weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import vcr_core as vcr
from torch import Tensor
from vcr_core.errors import ConfigError
from vcr_core.record_schema import validate_record
from vcr_core.testing.toys.attacks import SignDescent
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.shapes import ShapesDataset


class Told:
    """A defended function that says the same of every video of its last call."""

    def __init__(self, predict: Any, facts: Mapping[str, Any]) -> None:
        self.predict, self.facts, self.count = predict, facts, 0

    def __call__(self, clips: Tensor) -> Tensor:
        self.count = len(clips)
        return self.predict(clips)

    def details(self) -> Sequence[Mapping[str, Any]]:
        return [self.facts] * self.count


class Tells:
    """A defense that changes nothing and tells something."""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts

    def wrap(self, predict: Any, random: Any) -> Any:
        return Told(predict, self.facts)


class AbstainsWhenAttacked:
    """Refuses to predict a video unless its first row of pixels is of one colour, as drawn."""

    def wrap(self, predict: Any, random: Any) -> Any:
        def even(row: Tensor) -> bool:
            return bool((row == row[..., :1]).all())

        class Fn(Told):
            def __call__(self, clips: Tensor) -> Tensor:
                self.seen = clips.detach()[..., 0, :]
                return super().__call__(clips)

            def details(self) -> Sequence[Mapping[str, Any]]:
                return [{"abstained": not even(row)} for row in self.seen]

        return Fn(predict, {})


class Twice:
    """Asks twice and takes the mean."""

    def wrap(self, predict: Any, random: Any) -> Any:
        return lambda clips: (predict(clips) + predict(clips)) / 2


class Swap:
    """Names another model."""

    def checkpoint(self, model: str) -> str:
        return "toy-cnn"

    def wrap(self, predict: Any, random: Any) -> Any:
        return predict


def run(defense: Any, **options: Any) -> list[dict[str, Any]]:
    chosen = {
        "model": ToyCnn(), "attack": SignDescent(), "dataset": ShapesDataset(), "metrics": [],
        "limit": 4, "threat": vcr.Linf("8/255"), **options,
    }  # fmt: skip
    records = list(vcr.evaluate(defense=defense, **chosen).records)
    for record in records:
        validate_record(record)
    return records


def test_facts_land_in_the_defended_corners_only() -> None:
    for record in run(Tells(votes={"1": 3}, score=0.25, rejected=False)):
        assert "votes" not in record["clean"]
        assert "votes" not in record["attacked"]
        for corner in (record["clean_defended"], *record["attacked_defended"]):
            assert corner["votes"] == {"1": 3}
            assert (corner["score"], corner["rejected"]) == (0.25, False)


def test_the_outer_defense_has_the_last_word() -> None:
    [first, *_] = run([Tells(score=1.0), Tells(score=0.0, votes={"0": 1})])
    assert first["clean_defended"]["score"] == 1.0
    assert first["clean_defended"]["votes"] == {"0": 1}


def test_a_single_ballot_does_not_describe_the_result() -> None:
    for record in run([Twice(), Tells(votes={"1": 3})]):
        assert "votes" not in record["clean_defended"]


def test_abstaining_on_everything_leaves_nothing_to_attack() -> None:
    for record in run(Tells(abstained=True)):
        assert record["status"] == "ineligible"
        assert record["clean_defended"]["pred"] is None
        assert record["clean_defended"]["abstained"] is True


def test_an_abstention_is_neither_right_nor_a_success() -> None:
    records = run(AbstainsWhenAttacked())
    attacked = [r for r in records if r["status"] == "ok"]
    assert attacked
    for record in attacked:
        assert record["attacked_defended"][0]["pred"] is None
        assert record["success"]["changed"] is False
        assert record["success"]["n"] == 0


def test_a_model_from_python_cannot_be_replaced_by_name() -> None:
    with pytest.raises(ConfigError, match="given from Python"):
        run(Swap())
