"""Models against attacks in one table, without any defense: accuracy and attack success."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vcr_core.reporters.cells import Cell, cell_from
from vcr_core.reporters.matrix import Score
from vcr_core.reporters.rows import NONE, Row
from vcr_core.transformation import is_transformation

if TYPE_CHECKING:
    from vcr_core.summary import RunView

MODELS_LEGEND = (
    "In every cell robust accuracy, then attack success (the label changed, of the videos that "
    "were right before), both in per cent, without a defense. The lowest accuracy of a model is in "
    "bold: under these attacks it is worth no more than that."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLine:
    """One line.

    Attributes:
        name: a model, or an attack.
        under: the threat of an attack, else ``""``.
        cells: clean accuracies as cells, all others as scores; ``None`` where the two did not meet.
    """

    name: str
    under: str = ""
    cells: tuple[Score | Cell | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsTable:
    """All models against all attacks on one dataset, the more numerous of the two as lines.

    Attributes:
        title: what the table is.
        corner: what the lines are.
        heads: titles of the columns, with the threat where they are attacks.
        lines: models by name, or attacks by name with the clean videos before them.
    """

    title: str
    corner: str
    heads: tuple[tuple[str, str], ...]
    lines: tuple[TableLine, ...]


def models_tables(ordered: Sequence[tuple[Row, RunView]]) -> list[ModelsTable]:
    """Return a table per dataset on which two models or more met two attacks or more."""
    places: dict[str, dict[tuple[str, tuple[str, str]], tuple[Row, RunView]]] = {}
    for row, run in ordered:
        # Shifts, corruptions and tampering are no attacks; they have tables of their own.
        # And attacks on another model have a matrix of their own.
        is_usual = row.attack != NONE and row.defense == NONE and not row.source
        if is_usual and not is_transformation(run.manifest):
            attack = (row.attack_text, row.threat)
            places.setdefault(row.dataset, {}).setdefault((row.model, attack), (row, run))
    tables = []
    for dataset, runs in sorted(places.items()):
        models = sorted({model for model, _ in runs})
        attacks = sorted({attack for _, attack in runs})
        if len(models) > 1 and len(attacks) > 1:
            columns = {
                model: _column([runs.get((model, attack)) for attack in attacks])
                for model in models
            }
            tables.append(_table(f"Models against attacks on {dataset}", attacks, columns))
    return tables


def _table(
    title: str,
    attacks: Sequence[tuple[str, str]],
    columns: Mapping[str, Sequence[Score | Cell | None]],
) -> ModelsTable:
    if len(columns) >= len(attacks):
        return ModelsTable(
            title=title,
            corner="Model",
            heads=(("Clean %", ""), *attacks),
            lines=tuple(TableLine(name=m, cells=tuple(cells)) for m, cells in columns.items()),
        )
    lines = zip([("no attack", ""), *attacks], zip(*columns.values(), strict=True), strict=True)
    return ModelsTable(
        title=title,
        corner="Attack",
        heads=tuple((model, "") for model in columns),
        lines=tuple(
            TableLine(name=name, under=threat, cells=cells) for (name, threat), cells in lines
        ),
    )


def _column(runs: Sequence[tuple[Row, RunView] | None]) -> list[Score | Cell | None]:
    """Return a model's clean accuracy, then its scores, the lowest one marked."""
    scores = [None if found is None else _score(*found) for found in runs]
    values = [s.accuracy.value for s in scores if s is not None and s.accuracy.value is not None]
    lowest = min(values, default=None)
    return [
        next(found[0].undefended.clean for found in runs if found is not None),
        *(
            replace(score, lower=score.accuracy.value == lowest) if score is not None else None
            for score in scores
        ),
    ]


def _score(row: Row, run: RunView) -> Score:
    rates = run.summary.get("definitions") or {}
    return Score(
        accuracy=row.undefended.robust,
        asr=cell_from(rates.get("asr_untargeted"), share=True),
        run=row.run,
    )
