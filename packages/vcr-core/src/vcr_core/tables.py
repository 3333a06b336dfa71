"""Records as rows with a fixed list of columns, and how tables become text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from vcr_core import outcomes

ColumnType: TypeAlias = Literal["text", "int", "float", "bool"]
Row: TypeAlias = dict[str, Any]

_COST_COLUMNS: dict[str, ColumnType] = {
    "forwards": "int",
    "backwards": "int",
    "surrogate_forwards": "int",
    "iterations": "int",
    "budget_exhausted": "bool",
    "queries_to_first_success": "int",
    "t_decode_s": "float",
    "t_clean_s": "float",
    "t_certify_s": "float",
    "t_attack_s": "float",
    "t_eval_s": "float",
    "t_metrics_s": "float",
    "mem_peak_bytes": "int",
    "chunk": "int",
}
_PERTURBATION_COLUMNS: dict[str, ColumnType] = {
    "linf": "float",
    "l2": "float",
    "l1": "float",
    "l0_fraction": "float",
    "frames_touched": "int",
    "l21": "float",
    "violation": "float",
    "projected": "bool",
    "quantised": "bool",
}
_SIDES = ("clean", "clean_defended", "attacked", "attacked_defended")
_CORNER_COLUMNS: dict[str, ColumnType] = {
    "pred": "int", "p_label": "float", "p_pred": "float", "margin": "float",
}  # fmt: skip

RECORD_COLUMNS: dict[str, ColumnType] = {
    "run": "text",
    "video": "text",
    "batch": "int",
    "attempt": "int",
    "status": "text",
    "label": "int",
    "label_name": "text",
    "target": "int",
    "target_policy": "text",
    **{f"{side}_{key}": kind for side in _SIDES for key, kind in _CORNER_COLUMNS.items()},
    "clean_defended_right": "float",
    "attacked_defended_right": "float",
    "clean_defended_abstained": "float",
    "attacked_defended_abstained": "float",
    "clean_defended_score": "float",
    "attacked_defended_score": "float",
    "clean_defended_rejected": "float",
    "attacked_defended_rejected": "float",
    "certified_class": "int",
    "certified_radius": "float",
    "certified_p_lower": "float",
    "draws": "int",
    "success_changed": "bool",
    "success_target": "bool",
    "success_n": "int",
    "success_of": "int",
    "success_any_query": "bool",
    **_PERTURBATION_COLUMNS,
    **_COST_COLUMNS,
    "flags": "text",
    "error_stage": "text",
    "error_type": "text",
    "error_message": "text",
    "error_oom": "bool",
    "sha256": "text",
    "frames_decoded": "int",
    "device": "text",
    "t_end": "text",
}
"""Columns of schema 1 before those of the metrics, which are named ``metric_<key>``.

Corners with several draws give their first draw; ``*_right``, ``*_abstained`` and ``*_rejected``
are fractions of draws, ``*_score`` their mean. An abstention has no ``*_pred``.
"""

SOURCE_COLUMNS: dict[str, ColumnType] = {
    "source_label": "int",
    "source_clean_pred": "int",
    "source_attacked_pred": "int",
}
"""What the model that was attacked said, by its own classes, where that is another one."""

VCRBENCH_COLUMNS: dict[str, ColumnType] = {
    "video_name": "text",
    "gt_label": "int",
    "gt_class": "text",
    "clear_label": "int",
    "clear_class": "text",
    "clear_conf": "float",
    "target_label": "int",
    "target_class": "text",
    "attacked_label": "int",
    "attacked_class": "text",
    "attacked_conf": "float",
    "benign_conf": "float",
    "psnr": "float",
    "ssim": "float",
    "mse": "float",
    "lpips": "float",
    "vmaf": "float",
    "time": "float",
    "iter_count": "int",
    "query_count": "int",
}
"""The 20 columns of the VCR-Bench per-video file, in its order."""

_VCRBENCH_FORMS = {"ssim": "ssim-uniform7", "lpips": "lpips-vcrbench"}
"""Metrics that are what VCR-Bench's code computes, where the plain name is another form."""


def record_columns(records: Iterable[Mapping[str, Any]]) -> dict[str, ColumnType]:
    """Return the columns of a table of ``records``: the fixed ones, then metrics by name.

    Where attacks were computed on another model, those of that model stand between.
    """
    listed = list(records)
    names = sorted({name for record in listed for name in record.get("metrics") or ()})
    metrics: dict[str, ColumnType] = {f"metric_{name}": "float" for name in names}
    has_source = any(record.get("source") for record in listed)
    return {**RECORD_COLUMNS, **(SOURCE_COLUMNS if has_source else {}), **metrics}


def record_row(record: Mapping[str, Any], labels: Sequence[str]) -> Row:
    """Return one record as a flat row; what a record does not have is left out."""
    row: Row = {
        name: record.get(name)
        for name in (
            "run", "video", "batch", "attempt", "status", "label", "target", "target_policy",
            "device", "t_end",
        )
    }  # fmt: skip
    row["label_name"] = label_name(record.get("label"), labels)
    for side in _SIDES:
        defended = side.endswith("_defended")
        of = outcomes.attacked_corners if side.startswith("attacked") else outcomes.clean_corners
        corners = of(record, defended=defended)
        row |= {f"{side}_{key}": corners[0].get(key) for key in _CORNER_COLUMNS if corners}
        if defended and corners:
            right = sum(outcomes.is_right(record, corner) for corner in corners)
            row[f"{side}_right"] = right / len(corners)
            row["draws"] = max(len(corners), row.get("draws") or 0)
            for key in ("abstained", "score", "rejected"):
                row[f"{side}_{key}"] = _mean_of(corners, key)
    certificate = outcomes.certificate(record) or {}
    row |= {f"certified_{key}": certificate.get(key) for key in ("class", "radius", "p_lower")}
    success = record.get("success") or {}
    row |= {f"success_{key}": success.get(key) for key in ("changed", "target", "n", "of")}
    row["success_any_query"] = success.get("any_query")
    row |= _part(record.get("perturbation"), _PERTURBATION_COLUMNS)
    row |= _part(record.get("cost"), _COST_COLUMNS)
    source = record.get("source")
    if source:
        row["source_label"] = source.get("label")
        for side in ("clean", "attacked"):
            row[f"source_{side}_pred"] = (source.get(side) or {}).get("pred")
    row["flags"] = " ".join(record.get("flags") or ()) or None
    failure = record.get("error") or {}
    row |= {f"error_{key}": failure.get(key) for key in ("stage", "type", "message", "oom")}
    facts = record.get("input") or {}
    row |= {key: facts.get(key) for key in ("sha256", "frames_decoded")}
    for name in record.get("metrics") or ():
        row[f"metric_{name}"] = metric_value(record, name)
    return row


def vcrbench_row(record: Mapping[str, Any], labels: Sequence[str]) -> Row:
    """Return one record in the columns of VCR-Bench; no value is an empty cell, never 0.

    ``clear_*`` is ``h(x)`` and ``attacked_*`` the first draw of ``h(a)``, where ``h`` is the
    defended model if there is a defense; ``benign_conf`` is the probability of the clean label
    after the attack. ``ssim`` and ``lpips`` are ``ssim-uniform7`` and ``lpips-vcrbench`` where the
    run measured these, which compare with the official files.
    """
    defended = outcomes.has_defense(record)
    clean = (outcomes.clean_corners(record, defended=defended) or [{}])[0]
    attacked = (outcomes.attacked_corners(record, defended=defended) or [{}])[0]
    # An ineligible video was not attacked: the official file has zeros there, ours has nothing.
    was_attacked = record.get("status") == "ok" and bool(attacked)
    cost = (record.get("cost") or {}) if was_attacked else {}
    spent = [cost.get(key) for key in ("t_clean_s", "t_attack_s", "t_eval_s")]
    row: Row = {
        "video_name": record["video"],
        "gt_label": record.get("label"),
        "clear_label": clean.get("pred"),
        "clear_conf": clean.get("p_pred"),
        "target_label": record.get("target"),
        "attacked_label": attacked.get("pred"),
        "attacked_conf": attacked.get("p_pred"),
        "benign_conf": _benign(record, clean, attacked),
        "time": sum(s for s in spent if s is not None)
        if any(s is not None for s in spent)
        else None,
        "iter_count": cost.get("iterations"),
        "query_count": cost.get("forwards"),
    }
    for prefix in ("gt", "clear", "target", "attacked"):
        row[f"{prefix}_class"] = label_name(row[f"{prefix}_label"], labels)
    for name in ("psnr", "ssim", "mse", "lpips", "vmaf"):
        form = _VCRBENCH_FORMS.get(name, name)
        measured = form if form in (record.get("metrics") or {}) else name
        row[name] = metric_value(record, measured) if was_attacked else None
    return row


def label_name(label: Any, labels: Sequence[str]) -> str | None:
    """Return the name of a label, or ``None`` where there is none."""
    if isinstance(label, int) and 0 <= label < len(labels):
        return str(labels[label])
    return None


def metric_value(record: Mapping[str, Any], name: str) -> float | None:
    """Return a metric of a record, or ``None``."""
    reading = (record.get("metrics") or {}).get(name)
    value = reading.get("value") if isinstance(reading, Mapping) else reading
    return float(value) if isinstance(value, int | float) else None


def to_csv(columns: Mapping[str, ColumnType], rows: Iterable[Row]) -> str:
    r"""Return rows as CSV (RFC 4180, but with line ends ``\n``).

    Text is quoted even where it need not be and numbers never are, so a reader can tell ``"007"``
    and ``"NA"`` from a number and from a missing value, which is an empty cell.

    Example:
        >>> to_csv({"name": "text", "n": "int"}, [{"name": "NA", "n": 7}, {"name": "007"}])
        'name,n\n"NA",7\n"007",\n'
    """
    lines = [",".join(columns)]
    lines += [
        ",".join(_cell(row.get(name), kind) for name, kind in columns.items()) for row in rows
    ]
    return "\n".join(lines) + "\n"


def _cell(value: Any, kind: ColumnType) -> str:
    if value is None:
        return ""
    if kind == "text":
        return '"' + str(value).replace('"', '""') + '"'
    if kind == "bool":
        return "true" if value else "false"
    return repr(float(value)) if kind == "float" else str(int(value))


def _part(values: Any, columns: Mapping[str, ColumnType]) -> Row:
    return {name: (values or {}).get(name) for name in columns}


def _mean_of(corners: Sequence[Mapping[str, Any]], key: str) -> float | None:
    """Return the mean of a fact over draws; ``None`` where a draw has none."""
    found = [corner.get(key) for corner in corners]
    numbers = [float(value) for value in found if isinstance(value, int | float)]
    return sum(numbers) / len(numbers) if len(numbers) == len(found) else None


def _benign(
    record: Mapping[str, Any], clean: Mapping[str, Any], attacked: Mapping[str, Any]
) -> Any:
    """Return the probability of the clean prediction after the attack, where it is recorded."""
    if clean.get("pred") is None:
        return None
    if clean.get("pred") == record.get("label"):
        return attacked.get("p_label")
    return attacked.get("p_pred") if attacked.get("pred") == clean.get("pred") else None
