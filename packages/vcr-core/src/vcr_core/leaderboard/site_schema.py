"""The data files of a leaderboard: what their fields mean, and their JSON Schemas."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from vcr_core.leaderboard.checks import Verification

LEADERBOARD_SCHEMA = 1


class Number(Struct, frozen=True, kw_only=True):
    """A number with its interval.

    Attributes:
        value: rates are fractions in [0, 1]; ``None`` where there is none.
        ci95: ends of the 95 % interval, ``None`` where there is none.
        n: videos that it rests on.
        k: numerator, where the value is a count over a count.
        method: how the interval was computed.
        reason: why ``value`` is ``None``.
    """

    value: float | None
    ci95: list[float] | None = None
    n: int | None = None
    k: int | None = None
    method: str = ""
    reason: str = ""


class RankData(Struct, frozen=True, kw_only=True):
    """A run's place in its ranking.

    Attributes:
        ranking: id of the ranking.
        rank: position by value; ``None`` if another run of the same system counts.
        best: best rank that the tests leave open.
        worst: worst rank that they leave open.
        systems: systems in the ranking.
        superseded_by: the run of the same system that counts instead, or ``""``.
    """

    ranking: str
    rank: int | None
    best: int | None
    worst: int | None
    systems: int
    superseded_by: str


class Entry(Struct, frozen=True, kw_only=True):
    """One run.

    Attributes:
        run: run id.
        page: address of its page, relative to the site.
        data: address of its own JSON file, relative to the site.
        place: where it stands.
        model: reference of the model.
        defenses: references of the defenses in the order in which they apply.
        attack: reference of the attack, ``""`` where nothing was attacked.
        access: what the attack asks of a model.
        knowledge: what the attacker looks at.
        adaptive: whether the attack knew the defense, ``None`` without attack or defense.
        threat: the constraint in words.
        norm: ``linf l2 l1 l0 none``, or ``""`` without an attack.
        eps: radius, fraction of the pixel range for ``linf``.
        targeted: whether the attack aims at a class.
        dataset: reference of the dataset.
        fingerprint: of its videos.
        videos: planned.
        evaluated: with a result; the others failed and are in no rate.
        evaluation_version: of everything that may alter a number.
        seed: of the run.
        clean_accuracy: of the whole system on clean videos.
        robust_accuracy: of the whole system, right before and after the attack.
        attack_success: share of the videos it had right that the attack turned.
        queries: mean forward passes of the attack.
        seconds: mean time of the attack.
        metrics: mean distances over attacked videos.
        flags: health flags.
        ended: end of the run, UTC.
        state: ``checked``: identity and records; ``partly checked``: records alone, since its
            components are not installed; ``re-run``: videos were evaluated again, too.
    """

    run: str
    page: str
    data: str
    place: RankData
    model: str
    defenses: list[str]
    attack: str
    access: str
    knowledge: str
    adaptive: bool | None
    threat: str
    norm: str
    eps: float | None
    targeted: bool
    dataset: str
    fingerprint: str
    videos: int
    evaluated: int
    evaluation_version: int | None
    seed: int | None
    clean_accuracy: Number
    robust_accuracy: Number | None
    attack_success: Number | None
    queries: float | None
    seconds: float | None
    metrics: dict[str, Number]
    flags: list[str]
    ended: str
    state: str


class EntryFile(Struct, frozen=True, kw_only=True):
    """``data/entries/<run>.json``: all that the site has of one run.

    Attributes:
        entry: as in ``leaderboard.json``.
        experiment: the resolved tables.
        experiment_hash: their hash with the evaluation version and the videos.
        components: role, reference, distribution, version, parameters and weights of each.
        environment: Python, torch, devices and versions of the machine that ran it.
        definitions: every rate by name.
        errors: failed videos by type of error.
        verification: what was checked.
        schema: version of this description.
    """

    entry: Entry
    experiment: dict[str, Any]
    experiment_hash: str
    components: list[dict[str, Any]]
    environment: dict[str, Any]
    definitions: dict[str, Number]
    errors: dict[str, int]
    verification: Verification
    schema: int = LEADERBOARD_SCHEMA


class RankingData(Struct, frozen=True, kw_only=True):
    """Runs that may be ranked together.

    Attributes:
        id: short hash of what they share.
        title: attack and threat in words.
        setting: videos and evaluation version in words.
        settings: what tells it from rankings that read the same.
        knowledge: what the attacker looks at.
        shared: what all of its runs have in common, by dotted key.
        pairs: pairs of systems that were tested.
        told_apart: pairs that differ by more than chance explains.
        runs: run ids, best first.
    """

    id: str
    title: str
    setting: str
    settings: str
    knowledge: str
    shared: dict[str, Any]
    pairs: int
    told_apart: int
    runs: list[str]


class LeftOutData(Struct, frozen=True, kw_only=True):
    """A run folder that is not on the leaderboard, and why."""

    run: str
    folder: str
    reasons: list[str]


class Leaderboard(Struct, frozen=True, kw_only=True):
    """``data/leaderboard.json``.

    Attributes:
        generator: what made the site.
        rankings: in the order of the index page.
        entries: by run id.
        left_out: run folders that are not on the leaderboard.
        built: when, UTC, if that was asked for.
        schema: version of this description.
    """

    generator: str
    rankings: list[RankingData]
    entries: list[Entry]
    left_out: list[LeftOutData]
    built: str | None = None
    schema: int = LEADERBOARD_SCHEMA


def encode(value: Struct) -> bytes:
    """Return a data file: indented JSON with a line end, always the same bytes."""
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=1) + b"\n"


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON Schemas of the data files by file name."""
    return {
        "leaderboard.schema.json": msgspec.json.schema(Leaderboard),
        "entry.schema.json": msgspec.json.schema(EntryFile),
    }
