"""Transfer matrices: attacks computed on one model, the source, and shown to all others.

A row a source, a column an evaluated model. What is off the diagonal is the transfer rate, over
the videos that both models had right; the diagonal is what the attack does to the source itself.
The numbers are rates of :mod:`vcr_core.definitions`; what shows them is what shows the tables of
robustness.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from vcr_core import definitions
from vcr_core.manifest import table
from vcr_core.reporters.cells import MISSING, Cell, cell_from
from vcr_core.reporters.robustness import Head, Line, RobustnessReport, Shown, Table
from vcr_core.reporters.rows import NONE, Row
from vcr_core.run_settings import defense_tables, protocol_of, threat_of

if TYPE_CHECKING:
    from vcr_core.summary import RunView

TITLE: Final = "Transfer between models"
ROWS: Final = "Attacked model"
ITSELF: Final = "itself"
NO_RUN: Final = "no such run"

LEGEND: Final = (
    "A row is the model that the attack was computed on, a column the model that its videos were "
    "shown to. In per cent of the videos that both had right before, with 95 % intervals: what the "
    "evaluated model then gets wrong. On the diagonal the attack's success on its own model, of "
    "the videos that this one had right. Every model samples from the frames that the attacked one "
    "looks at."
)
LEGEND_TARGETED: Final = (
    "A row is the model that the attack was computed on, a column the model that its videos were "
    "shown to. In per cent of the videos that both had right before, with 95 % intervals: what the "
    "evaluated model then takes for the target class. On the diagonal the attack's success on its "
    "own model. Every model samples from the frames that the attacked one looks at."
)
LEGEND_DEFENDED: Final = (
    "The evaluated models stand behind the defense, which the attack does not know; so does the "
    "attacked one on the diagonal, where the videos count that it had right with and without it."
)
LEGEND_EARLY: Final = (
    "The attack stopped at its first success on its own model (protocol.stop), which is where the "
    "least of it carries over; with 'budget' it goes on."
)

_ASIDE = frozenset({"attacker_knows_defense", "eval_repeats", "gradient", "eot"})


@dataclass(slots=True)
class TransferMatrix:
    """One attack, all sources against all models.

    Attributes:
        attack: the attack in words, without a source.
        threat: the constraint in words.
        dataset: reference of the dataset.
        defense: what the evaluated models stand behind, or ``none``.
        targeted: whether the attack aims at a class.
        early: whether it stops at its first success.
        rates: rate by source and evaluated model.
        runs: run ids of the same.
    """

    attack: str
    threat: str
    dataset: str
    defense: str
    targeted: bool
    early: bool
    rates: dict[tuple[str, str], Cell] = field(default_factory=dict)
    runs: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def sources(self) -> list[str]:
        """The attacked models."""
        return sorted({source for source, _ in self.rates})

    @property
    def models(self) -> list[str]:
        """The evaluated models, those that were attacked first."""
        found = {model for _, model in self.rates}
        return [*(m for m in self.sources if m in found), *sorted(found.difference(self.sources))]

    @property
    def title(self) -> str:
        """Attack, threat, defense and dataset in a line."""
        words = f"Transfer of {self.attack}, {self.threat}, on {self.dataset}"
        return words if self.defense == NONE else f"{words}, behind {self.defense}"

    def rate(self, source: str, model: str) -> Cell:
        """Return a cell of the matrix; the reason why where there is no number."""
        return self.rates.get((source, model), Cell(reason=NO_RUN, share=True))

    def plain(self) -> dict[str, Any]:
        """Return it as JSON-ready data."""
        return {
            "attack": self.attack,
            "threat": self.threat,
            "dataset": self.dataset,
            "defense": None if self.defense == NONE else self.defense,
            "targeted": self.targeted,
            "cells": [
                {
                    "source": source,
                    "model": model,
                    "rate": cell.value,
                    "low": cell.low,
                    "high": cell.high,
                    "n": cell.n,
                    "itself": source == model,
                    "run": self.runs.get((source, model)),
                }
                for (source, model), cell in sorted(self.rates.items())
            ],
        }


def transfer_matrices(ordered: Sequence[tuple[Row, RunView]]) -> list[TransferMatrix]:
    """Return a matrix per attack, threat, protocol, videos and defense that models were shown."""
    found: dict[str, TransferMatrix] = {}
    own = {
        (_key(row, run), row.model): (row, run)
        for row, run in ordered
        if row.attack != NONE and not row.source and row.adaptive is not True
    }
    for row, run in ordered:
        if not row.source:
            continue
        key = _key(row, run)
        matrix = found.setdefault(key, _matrix(row, run))
        shown, itself = (row.source, row.model), (row.source, row.source)
        matrix.rates.setdefault(shown, _rate(row, run))
        matrix.runs.setdefault(shown, row.run)
        if itself not in matrix.rates:
            made = own.get((key, row.source))
            matrix.rates[itself] = _told(row, run) if made is None else _own_rate(*made)
            if made is not None:
                matrix.runs[itself] = made[0].run
    return _in_order(list(found.values()))


def _in_order(found: Sequence[TransferMatrix]) -> list[TransferMatrix]:
    """Return matrices of one attack together, the one without a defense first."""
    turns: dict[tuple[str, str, str], int] = {}
    for matrix in found:
        turns.setdefault((matrix.dataset, matrix.attack, matrix.threat), len(turns))

    def turn(matrix: TransferMatrix) -> tuple[int, bool, str]:
        place = (matrix.dataset, matrix.attack, matrix.threat)
        return turns[place], matrix.defense != NONE, matrix.defense

    return sorted(found, key=turn)


def transfer_report(ordered: Sequence[tuple[Row, RunView]]) -> RobustnessReport | None:
    """Return the matrices as tables, or ``None`` where nothing was transferred.

    What holds for several of them is said below the first one.
    """
    found = transfer_matrices(ordered)
    if not found:
        return None
    told: set[str] = set()
    tables = []
    for matrix in found:
        notes = [note for note in _notes(matrix) if note not in told]
        told.update(notes)
        tables.append(_table(matrix, notes))
    return RobustnessReport(side_by_side=tuple(tables), chapters=())


def plain_matrices(runs: Sequence[RunView]) -> dict[str, Any]:
    """Return ``{"transfer": [...]}`` for JSON, or nothing where nothing was transferred."""
    from vcr_core.reporters.rows import paired_rows

    found = transfer_matrices(paired_rows(runs))
    return {"transfer": [matrix.plain() for matrix in found]} if found else {}


def _matrix(row: Row, run: RunView) -> TransferMatrix:
    words = ", ".join(filter(None, ("targeted" if row.targeted else "", row.detail)))
    return TransferMatrix(
        attack=f"{row.attack} ({words})" if words else row.attack,
        threat=row.threat,
        dataset=row.dataset,
        defense=row.defense,
        targeted=row.targeted,
        early=table(run.manifest, "protocol").get("stop") == "first_success",
    )


def _rate(row: Row, run: RunView) -> Cell:
    rates = run.summary.get("definitions") or {}
    return cell_from(rates.get(_definition(row)), share=True)


def _own_rate(row: Row, run: RunView) -> Cell:
    """Return what an attack does to its own model, which may stand behind a defense."""
    if row.defense == NONE:
        return row.asr
    # Then the bare model is the one that was attacked, and the defended one was shown the videos.
    records = [{**record, "source": record} for record in run.records]
    return cell_from(definitions.evaluate(_definition(row), records), share=True)


def _told(row: Row, run: RunView) -> Cell:
    """Return what a run with a source tells of it; nothing of it behind a defense."""
    if row.defense != NONE:
        return Cell(reason=NO_RUN, share=True)
    rates = run.summary.get("definitions") or {}
    return cell_from(rates.get("source_asr_targeted" if row.targeted else "source_asr"), share=True)


def _definition(row: Row) -> str:
    prefix = "" if row.defense == NONE else "defended_"
    return f"{prefix}transfer_rate{'_targeted' if row.targeted else ''}"


def _key(row: Row, run: RunView) -> str:
    """Return what runs of one matrix have in common, as text."""
    manifest = run.manifest
    protocol: Mapping[str, Any] = protocol_of(manifest)
    same = {
        "dataset": row.dataset,
        "fingerprint": (manifest.get("dataset") or {}).get("fingerprint"),
        "evaluation_version": manifest.get("evaluation_version"),
        "seed": (manifest.get("experiment") or {}).get("seed"),
        "attack": table(manifest, "attack"),
        "threat": threat_of(manifest),
        "protocol": {k: v for k, v in protocol.items() if k not in _ASIDE},
        "defense": defense_tables(manifest),
    }
    return json.dumps(same, sort_keys=True, default=str)


def _table(matrix: TransferMatrix, notes: Sequence[str]) -> Table:
    models = matrix.models
    return Table(
        title=matrix.title,
        rows=ROWS,
        heads=tuple(Head(title=model) for model in models),
        lines=tuple(
            Line(name=source, cells=tuple(_shown(matrix, source, model) for model in models))
            for source in matrix.sources
        ),
        notes=tuple(notes),
        is_map=True,
    )


def _shown(matrix: TransferMatrix, source: str, model: str) -> Shown:
    cell = matrix.rate(source, model)
    word = f"n = {cell.n}" if cell.n is not None else ""
    if source == model:
        word = ", ".join(filter(None, (ITSELF, word)))
    return Shown(cell=cell, word=word, heat=cell.value)


def _notes(matrix: TransferMatrix) -> Iterator[str]:
    yield LEGEND_TARGETED if matrix.targeted else LEGEND
    if matrix.defense != NONE:
        yield LEGEND_DEFENDED
    if matrix.early:
        yield LEGEND_EARLY
    missing = {
        matrix.rate(source, model).reason
        for source in matrix.sources
        for model in matrix.models
        if matrix.rate(source, model).value is None
    }
    if missing:
        yield f"{MISSING} stands for a missing number: {'; '.join(sorted(missing))}."
