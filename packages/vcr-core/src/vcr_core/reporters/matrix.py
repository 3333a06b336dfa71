"""Defenses against attacks in one table: accuracy and attack success in every cell.

The layout is that of Table 3 of VCR-Bench, with the attack that knows the defense beside the one
that does not. Rates are those of the whole system: the defended model where there is a defense.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vcr_core import definitions
from vcr_core.reporters.cells import Cell, cell_from
from vcr_core.reporters.rows import NONE, Row
from vcr_core.stats import Term, bootstrap_ratio

if TYPE_CHECKING:
    from vcr_core.summary import RunView

REVERSED = "unaware-beats-adaptive"
NO_DEFENSE = "no defense"

LEGEND = (
    "In every cell robust accuracy, then attack success (the label changed, of the videos that "
    "were right before), both in per cent and of the model behind its defense. The unaware attack "
    "was made against the bare model. The lower accuracy of a pair is in bold: a defense is worth "
    "no more than that."
)
LEGEND_REVERSED = (
    "† The attack succeeded clearly more often without knowledge of the defense, a sign of masked "
    "gradients."
)
LEGEND_MEAN = (
    "Means over models give every model the same weight; their intervals resample videos, not "
    "models."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One run, or the mean of several, as a cell of the matrix shows it.

    Attributes:
        accuracy: robust accuracy of the whole system.
        asr: share of the videos it had right that the attack changed.
        run: id of the run, ``""`` for a mean.
        reversed: whether the attack did clearly better without knowing the defense.
        lower: whether the accuracy is the lower one of its pair, or the only one.
    """

    accuracy: Cell
    asr: Cell
    run: str = ""
    reversed: bool = False
    lower: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Duel:
    """A defense against an attack: without knowledge of the defense, and with it."""

    unaware: Score | None = None
    adaptive: Score | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One defense.

    Attributes:
        defense: its reference, or ``no defense``.
        clean: accuracy of the system on clean videos.
        duels: one per attack, in the order of the matrix; ``unaware`` alone without a defense.
    """

    defense: str
    clean: Cell
    duels: tuple[Duel, ...]

    @property
    def is_bare(self) -> bool:
        """Whether there is no defense, hence nothing that an attack could know of."""
        return self.defense == NO_DEFENSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrix:
    """All defenses against all attacks on one model.

    Attributes:
        title: dataset and model.
        attacks: attack and threat of every column.
        lines: the bare model first.
        has_unaware: whether any defense met an attack that did not know it.
        has_adaptive: whether any met one that did.
        is_mean: whether it is a mean over models.
        unmet: attack and threat of what was tried on the bare model only.
    """

    title: str
    attacks: tuple[tuple[str, str], ...]
    lines: tuple[Line, ...]
    has_unaware: bool
    has_adaptive: bool
    is_mean: bool = False
    unmet: tuple[tuple[str, str], ...] = ()

    @property
    def legends(self) -> tuple[str, ...]:
        """What a reader has to know."""
        scores = [s for line in self.lines for d in line.duels for s in (d.unaware, d.adaptive)]
        found = [LEGEND]
        if any(score is not None and score.reversed for score in scores):
            found.append(LEGEND_REVERSED)
        if self.unmet:
            names = "; ".join(f"{attack}, {threat}" for attack, threat in self.unmet)
            found.append(
                f"Tried on the bare model only, so no defense has a number for it: {names}."
            )
        return (*found, LEGEND_MEAN) if self.is_mean else tuple(found)


@dataclass(slots=True)
class _Table:
    """Runs by place: defense and attack column, then whether the attack knew the defense."""

    runs: dict[tuple[str, tuple[str, str]], dict[bool, tuple[Row, RunView]]] = field(
        default_factory=dict
    )

    def defenses(self) -> list[str]:
        names = dict.fromkeys(defense for defense, _ in self.runs)
        return sorted(names, key=lambda name: (name != NO_DEFENSE, name))

    def of_met_attacks(self) -> _Table:
        """Return the part with the attacks that some defense met; others say nothing here."""
        met = {attack for defense, attack in self.runs if defense != NO_DEFENSE}
        return _Table({place: pair for place, pair in self.runs.items() if place[1] in met})

    def attacks(self) -> list[tuple[str, str]]:
        return sorted({attack for _, attack in self.runs})


def matrices(ordered: Sequence[tuple[Row, RunView]]) -> list[Matrix]:
    """Return a matrix per dataset and model in which an attack meets a defense.

    Where several models met all of the same pairs, the mean over them comes first.
    """
    tables: dict[str, dict[str, _Table]] = {}
    for row, run in ordered:
        if row.attack == NONE:
            continue
        table = tables.setdefault(row.dataset, {}).setdefault(row.model, _Table())
        place = (NO_DEFENSE if row.defense == NONE else row.defense, (row.attack_text, row.threat))
        table.runs.setdefault(place, {})[bool(row.adaptive)] = (row, run)
    found = []
    for dataset, models in sorted(tables.items()):
        met = {model: table.of_met_attacks() for model, table in sorted(models.items())}
        shown = {model: table for model, table in met.items() if table.runs}
        if len(shown) > 1:
            mean = _mean_matrix(dataset, list(shown.values()))
            found += [mean] if mean is not None else []
        found += [
            replace(
                _matrix(f"{model} on {dataset}", table),
                unmet=tuple(a for a in models[model].attacks() if a not in table.attacks()),
            )
            for model, table in shown.items()
        ]
    return found


def _matrix(title: str, table: _Table) -> Matrix:
    def score(found: tuple[Row, RunView]) -> Score:
        row, run = found
        rates = run.summary.get("definitions") or {}
        prefix = "defended_" if row.defended else ""
        return Score(
            accuracy=cell_from(rates.get(f"{prefix}robust_accuracy"), share=True),
            asr=cell_from(rates.get(f"{prefix}asr_untargeted"), share=True),
            run=row.run,
            reversed=REVERSED in row.flags,
        )

    def clean(runs: Sequence[tuple[Row, RunView]]) -> Cell:
        return runs[0][0].system.clean

    duels = {
        place: {known: score(found) for known, found in pair.items()}
        for place, pair in table.runs.items()
    }
    cleans = {defense: clean(_of(table, defense)) for defense in table.defenses()}
    return _built(title, table.defenses(), table.attacks(), duels, cleans)


def _mean_matrix(dataset: str, tables: Sequence[_Table]) -> Matrix | None:
    """Return the mean over models of the places that all of them have; ``None`` without any."""
    common = {
        place: set.intersection(*(set(table.runs.get(place, {})) for table in tables))
        for place in tables[0].runs
    }
    duels = {
        place: {
            known: _mean_score([table.runs[place][known][1] for table in tables], place[0])
            for known in sorted(shared)
        }
        for place, shared in common.items()
        if shared
    }
    shape = _Table({place: {} for place in duels})
    defenses = shape.defenses()
    if not set(defenses) - {NO_DEFENSE}:
        return None
    cleans = {}
    for defense in defenses:
        runs = [_of(table, defense)[0][1] for table in tables]
        name = "clean_accuracy" if defense == NO_DEFENSE else "defended_clean_accuracy"
        cleans[defense] = mean_rate(runs, name)
    title = f"Mean over {len(tables)} models on {dataset}"
    return _built(title, defenses, shape.attacks(), duels, cleans, is_mean=True)


def _built(
    title: str,
    defenses: Sequence[str],
    attacks: Sequence[tuple[str, str]],
    scores: Mapping[tuple[str, tuple[str, str]], Mapping[bool, Score]],
    cleans: Mapping[str, Cell],
    *,
    is_mean: bool = False,
) -> Matrix:
    lines = tuple(
        Line(
            defense=defense,
            clean=cleans[defense],
            duels=tuple(_duel(scores.get((defense, attack), {})) for attack in attacks),
        )
        for defense in defenses
    )
    defended = [duel for line in lines if not line.is_bare for duel in line.duels]
    return Matrix(
        title=title,
        attacks=tuple(attacks),
        lines=lines,
        has_unaware=any(duel.unaware is not None for duel in defended),
        has_adaptive=any(duel.adaptive is not None for duel in defended),
        is_mean=is_mean,
    )


def _duel(scores: Mapping[bool, Score]) -> Duel:
    unaware, adaptive = scores.get(False), scores.get(True)
    if unaware is not None and adaptive is not None:
        values = [s.accuracy.value for s in (unaware, adaptive)]
        if None not in values and values[0] != values[1]:
            first = (values[0] or 0.0) < (values[1] or 0.0)
            unaware, adaptive = replace(unaware, lower=first), replace(adaptive, lower=not first)
    return Duel(unaware=unaware, adaptive=adaptive)


def _mean_score(runs: Sequence[RunView], defense: str) -> Score:
    prefix = "" if defense == NO_DEFENSE else "defended_"
    return Score(
        accuracy=mean_rate(runs, f"{prefix}robust_accuracy"),
        asr=mean_rate(runs, f"{prefix}asr_untargeted"),
    )


def mean_rate(runs: Sequence[RunView], name: str) -> Cell:
    """Return a rate over the videos of several runs: one term a video, the mean over the runs."""
    terms: dict[str, list[Term]] = {}
    for run in runs:
        for video, term in definitions.terms(name, run.records).items():
            terms.setdefault(video, []).append(term)
    found = bootstrap_ratio([_pooled(listed, len(runs)) for listed in terms.values()])
    reason = ""
    if found.value is None:
        records = [record for run in runs for record in run.records]
        reason = definitions.why_none(name, records)
    return Cell(
        value=found.value, low=found.low, high=found.high, n=found.n, method=found.method,
        reason=reason, share=True,
    )  # fmt: skip


def _pooled(terms: Iterable[Term], models: int) -> Term:
    listed = list(terms)
    return Term(sum(t.num for t in listed) / models, sum(t.den for t in listed) / models)


def _of(table: _Table, defense: str) -> list[tuple[Row, RunView]]:
    """Return the runs of a defense, those on the frames of another model last."""
    runs = [
        found
        for (name, _), pair in sorted(table.runs.items())
        if name == defense
        for found in pair.values()
    ]
    return sorted(runs, key=lambda found: bool(found[0].source))
