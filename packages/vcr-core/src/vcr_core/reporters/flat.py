"""Rows as plain columns for machines: every number with the ends of its interval beside it."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from vcr_core.reporters.cells import NO_DEFENSE, NOT_PART, Cell, one_line
from vcr_core.reporters.extras import extra_names
from vcr_core.reporters.rows import NONE, Row, metric_cell, metric_names

_DEFENDED = (
    ("defended_clean_accuracy", "clean"),
    ("defended_robust_accuracy", "robust"),
)


def flat_rows(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return one mapping per run, all with the same keys in the same order.

    Shares are fractions in [0, 1]. A missing number is ``None``, and ``missing`` says why; one that
    would mean nothing, as a robust accuracy without an attack, is ``None`` too.
    """
    names, extras = metric_names(rows), extra_names(rows)
    has_source = any(row.source for row in rows)
    return [_flat(row, names, extras, has_source=has_source) for row in rows]


def delimited(rows: Sequence[Row], *, delimiter: str, missing: str) -> str:
    """Return rows as text with a header line; lines end in a line feed.

    Args:
        rows: what to write.
        delimiter: what separates columns.
        missing: what stands for a missing number.
    """
    flat = flat_rows(rows)
    if not flat:
        return ""
    buffer = io.StringIO()
    writer = csv.DictWriter(
        buffer, fieldnames=list(flat[0]), delimiter=delimiter, lineterminator="\n"
    )
    writer.writeheader()
    for row in flat:
        writer.writerow({key: _plain(value, missing) for key, value in row.items()})
    return buffer.getvalue()


def _flat(
    row: Row, names: Sequence[str], extras: Sequence[str], *, has_source: bool
) -> dict[str, Any]:
    headline = row.headline
    cells: dict[str, Cell] = {
        "headline_clean_accuracy": headline.clean,
        "headline_robust_accuracy": headline.robust,
        "clean_accuracy": row.undefended.clean,
        "robust_accuracy": row.undefended.robust,
    }
    for name, part in _DEFENDED:
        cells[name] = getattr(row.defended, part) if row.defended else Cell(reason=NO_DEFENSE)
    cells["asr"] = row.asr
    cells["defended_asr_untargeted"] = row.defended_asr
    cells["mean_queries"] = row.queries
    cells["mean_attack_s"] = row.seconds
    cells.update((name, row.extras.get(name, Cell(reason=NOT_PART))) for name in extras)
    cells.update((name, metric_cell(row, name)) for name in names)
    flat: dict[str, Any] = {
        "run": row.run,
        "dataset": row.dataset,
        "model": row.model,
        "attack": row.attack_name,
        **({"source": row.source or None} if has_source else {}),
        "detail": row.detail,
        "defense": row.defense,
        "adaptive": row.adaptive,
        "targeted": row.targeted if row.attack != NONE else None,
        "norm": row.norm or None,
        "eps": row.eps,
        "status": row.status,
        "n": row.n,
        "errors": row.errors,
        "headline": "defended" if row.headline_defended else "undefended",
        "asr_definition": row.asr_name if row.attack != NONE else None,
    }
    for name, cell in cells.items():
        flat |= {name: cell.value, f"{name}_low": cell.low, f"{name}_high": cell.high}
    flat["flags"] = " ".join(row.flags)
    flat["missing"] = "; ".join(_reasons(cells))
    return flat


def _reasons(cells: Mapping[str, Cell]) -> list[str]:
    return [f"{name}: {cell.reason}" for name, cell in cells.items() if cell.is_missing]


def _plain(value: Any, missing: str) -> str:
    """Return a cell as text; text from data loses line breaks and leading formula signs.

    A spreadsheet runs cells that begin with ``= + - @``, and run ids may come from elsewhere.
    """
    if value is None:
        return missing
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return repr(round(value, 6))
    if isinstance(value, int):
        return str(value)
    text = one_line(str(value))
    return f"'{text}" if text[:1] in ("=", "+", "-", "@") else text
