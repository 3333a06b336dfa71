"""Records as CSV, JSON, Parquet, one row a frame, or the files of VCR-Bench."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from vcr_core.atomic import replacing, to_json, write_text
from vcr_core.errors import ComponentUnavailable, UsageError
from vcr_core.manifest import is_adaptive, is_targeted
from vcr_core.other_tables import frames_text, log_text
from vcr_core.tables import (
    VCRBENCH_COLUMNS,
    record_columns,
    record_row,
    to_csv,
    vcrbench_row,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from vcr_core.summary import RunView
    from vcr_core.tables import ColumnType, Row

ExportFormat = Literal["csv", "json", "parquet", "frames", "vcrbench", "vcrbench-log"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = (
    "csv", "json", "parquet", "frames", "vcrbench", "vcrbench-log",
)  # fmt: skip
EXPORT_SCHEMA = 1


def export_text(runs: Sequence[RunView], fmt: ExportFormat) -> str:
    """Return runs in a text format.

    Raises:
        UsageError: for ``parquet``, which is no text, and for more than one run as ``vcrbench``,
            whose files hold one run each.
    """
    if fmt == "csv":
        columns, rows = _record_table(runs)
        return to_csv(columns, rows)
    if fmt == "frames":
        return frames_text(runs)
    if fmt == "vcrbench-log":
        return log_text(runs)
    if fmt == "json":
        return to_json(_as_json(runs), indent=1) + "\n"
    if fmt == "vcrbench":
        if len(runs) != 1:
            raise UsageError(
                f"a VCR-Bench file holds one run and {len(runs)} were given; with --output FOLDER "
                "each gets its own file below it"
            )
        return _vcrbench_text(runs[0])
    raise UsageError("Parquet is not text: name a file with --output")


def export_file(runs: Sequence[RunView], fmt: ExportFormat, output: Path | str) -> list[Path]:
    """Write runs to a file, whole and atomically, and return what was written.

    Args:
        runs: runs to export, in this order.
        fmt: format.
        output: a file. With ``vcrbench`` it may be a folder (one that exists, or a name without
            a suffix): then files are laid out as VCR-Bench has them.

    Raises:
        ComponentUnavailable: for ``parquet`` without pyarrow.
        UsageError: if several ``vcrbench`` runs would share a file.
    """
    output = Path(output)
    if fmt == "parquet":
        _write_parquet(runs, output)
        return [output]
    if fmt == "vcrbench" and (output.is_dir() or not output.suffix):
        return _write_vcrbench_tree(runs, output)
    write_text(output, export_text(runs, fmt))
    return [output]


def vcrbench_path(
    manifest: Mapping[str, Any], attack: str, defenses: Sequence[str], model: str
) -> Path:
    """Return where VCR-Bench would put a run's file, relative to its results folder.

    It spells ``no_defence`` with a c.
    """
    folder = "_".join(
        (
            _file_part(attack or "no_attack"),
            "target" if is_targeted(manifest) else "untarget",
            _file_part("+".join(defenses) or "no_defence"),
            "adaptive" if is_adaptive(manifest) else "non-adaptive",
        )
    )
    return Path(folder) / f"{_file_part(model)}.csv"


def record_rows(run: RunView) -> list[Row]:
    """Return one flat row a record, with every column of the table; ``None`` where it is empty."""
    columns, rows = _record_table([run])
    return [{name: row.get(name) for name in columns} for row in rows]


def _labels(run: RunView) -> Sequence[str]:
    labels = (run.manifest.get("dataset") or {}).get("labels")
    return labels if isinstance(labels, list) else ()


def _record_table(runs: Sequence[RunView]) -> tuple[dict[str, ColumnType], Iterator[Row]]:
    columns = record_columns(record for run in runs for record in run.records)
    rows = (
        {**record_row(record, _labels(run)), "run": record.get("run") or run.name}
        for run in runs
        for record in run.records
    )
    return columns, rows


def _as_json(runs: Sequence[RunView]) -> dict[str, Any]:
    return {
        "schema": EXPORT_SCHEMA,
        "runs": [
            {"manifest": run.manifest, "summary": run.summary, "records": run.records}
            for run in runs
        ],
    }


def _vcrbench_text(run: RunView) -> str:
    # The official file has no row for a video that failed; its count is in summary.json.
    done = (record for record in run.records if record.get("status") in ("ok", "ineligible"))
    return to_csv(VCRBENCH_COLUMNS, (vcrbench_row(record, _labels(run)) for record in done))


def _write_vcrbench_tree(runs: Sequence[RunView], folder: Path) -> list[Path]:
    places: dict[Path, RunView] = {}
    for run in runs:
        path = folder / vcrbench_path(run.manifest, run.attack, run.defenses, run.model)
        if path in places:
            raise UsageError(
                f"{places[path].name} and {run.name} have the same VCR-Bench file name "
                f"({path.name} in {path.parent.name}): its layout knows no budgets or seeds; "
                "export them to different folders"
            )
        places[path] = run
    for path, run in places.items():
        write_text(path, _vcrbench_text(run))
    return list(places)


def _write_parquet(runs: Sequence[RunView], output: Path) -> None:
    try:
        # pyarrow ships no type information.
        pa: Any = importlib.import_module("pyarrow")
        pq: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ComponentUnavailable(
            "Parquet needs pyarrow, which is not installed: pip install 'vcr-core[parquet]'"
        ) from error
    columns, found = _record_table(runs)
    rows = list(found)
    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    schema = pa.schema(
        [pa.field(name, types[kind]) for name, kind in columns.items()],
        metadata={"vcr_schema": str(EXPORT_SCHEMA)},
    )
    arrays = [
        pa.array([row.get(name) for row in rows], type=schema.field(name).type) for name in columns
    ]
    with replacing(output) as temporary:
        pq.write_table(pa.Table.from_arrays(arrays, schema=schema), temporary)


def _file_part(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.+-]+", "_", name) or "_"
