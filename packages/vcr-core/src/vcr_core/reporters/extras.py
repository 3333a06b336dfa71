"""Numbers that only some runs have: abstentions, certificates, detection, ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_core.reporters.cells import Cell, cell_from, format_number

if TYPE_CHECKING:
    from vcr_core.adaptive_pairs import AdaptivePair
    from vcr_core.reporters.rows import Row
    from vcr_core.summary import RunView

WORSE = "worse_robust_accuracy"
MEAN_RANK = "mean_rank"
PARETO = "pareto_front"

EXTRA_TITLES: dict[str, str] = {
    WORSE: "Worse of both %",
    "transfer_rate": "Transfer %",
    "transfer_rate_targeted": "Transfer to the target %",
    "clean_abstention_rate": "Abstains, clean %",
    "attacked_abstention_rate": "Abstains, attacked %",
    "certified_accuracy": "Certified %",
    "average_certified_radius": "ACR (L2)",
    "auroc": "AUROC",
    "tpr_at_5_fpr": "TPR at 5 % FPR, %",
    MEAN_RANK: "Mean rank",
    PARETO: "Pareto front",
}
"""Column titles in the order of the columns."""

_RATES = (
    "transfer_rate", "transfer_rate_targeted", "clean_abstention_rate",
    "attacked_abstention_rate", "certified_accuracy",
)  # fmt: skip

LEGEND_WORSE = (
    "Worse of both: the lower robust accuracy of the defended model under this attack, with and "
    "without knowledge of the defense. It is the one to quote."
)
LEGEND_TRANSFER = (
    "Transfer: the attack was computed on the model after “on” and shown to the other one; of the "
    "videos that both had right, those that this one then gets wrong, without its defense. Its "
    "accuracies are on the frames of the attacked model, and queries are what that one was asked."
)
LEGEND_ABSTENTION = (
    "An abstention counts as wrong in accuracies and as no success of the attack in success rates."
)
LEGEND_DETECTION = (
    "AUROC: attacked against clean videos by the detector's score. TPR at 5 % FPR: attacked videos "
    "above the threshold that at most 5 % of the clean ones exceed."
)
LEGEND_RANK = (
    "Mean rank: systems ranked by robust accuracy under each attack that all of them met, 1 is "
    "best, ties share a rank. Ranks say nothing about how large or how certain a difference is; "
    "vcr compare does."
)
LEGEND_PARETO = (
    "Pareto front: 1 for runs that no other one under the same attack matches in robust accuracy, "
    "LPIPS and attack seconds and beats in one of them."
)
LEGEND_OWN_LABELS = (
    "Labels are the clean predictions of the bare model: accuracies are agreement with them, and "
    "ASR is the share of videos whose decision the attack changes. Nothing here says how often the "
    "model is right."
)
_LINF = 8 / 255


def extra_cells(summary: Mapping[str, Any]) -> dict[str, Cell]:
    """Return the cells that a run's summary has; empty for most runs."""
    rates = summary.get("definitions") or {}
    cells = {name: cell_from(rates[name], share=True) for name in _RATES if name in rates}
    certificate = summary.get("certificate")
    if isinstance(certificate, Mapping):
        cells["average_certified_radius"] = cell_from(certificate.get("average_radius"))
    detection = summary.get("detection")
    if isinstance(detection, Mapping):
        cells["auroc"] = cell_from(detection.get("auroc"))
        cells["tpr_at_5_fpr"] = cell_from(detection.get("tpr_at_5_fpr"), share=True)
    return cells


def worse_cells(pairs: Sequence[AdaptivePair]) -> dict[str, Cell]:
    """Return, by run, the lower robust accuracy of the defended model among the run's pairs."""
    worse: dict[str, Cell] = {}
    for pair in pairs:
        cells = [_robust(run) for run in (pair.adaptive, pair.unaware)]
        for run in (pair.adaptive, pair.unaware):
            found = [*cells, worse.get(run.name, cells[0])]
            worse[run.name] = min(found, key=lambda cell: cell.value or 0.0)
    return worse


def _robust(run: RunView) -> Cell:
    return cell_from(run.summary["definitions"]["defended_robust_accuracy"], share=True)


def extra_names(rows: Sequence[Row]) -> list[str]:
    """Return the keys of :data:`EXTRA_TITLES` that some row has."""
    return [name for name in EXTRA_TITLES if any(name in row.extras for row in rows)]


def extra_legends(rows: Sequence[Row]) -> list[str]:
    """Return what a reader has to know about these rows and their extra columns."""
    names = set(extra_names(rows))
    found = []
    if any(row.own_labels for row in rows):
        found.append(LEGEND_OWN_LABELS)
    if WORSE in names:
        found.append(LEGEND_WORSE)
    if "transfer_rate" in names:
        found.append(LEGEND_TRANSFER)
    if "clean_abstention_rate" in names:
        found.append(LEGEND_ABSTENTION)
    if "certified_accuracy" in names:
        found.append(certificate_legend([row.certificate for row in rows if row.certificate]))
    if "auroc" in names:
        found.append(LEGEND_DETECTION)
    if MEAN_RANK in names:
        found.append(LEGEND_RANK)
    if PARETO in names:
        found.append(LEGEND_PARETO)
    return found


def certificate_legend(certificates: Sequence[Mapping[str, Any]]) -> str:
    """Return what certified numbers mean, and what they say nothing about."""
    return (
        "Certified: videos whose true class is certified with an L2 radius above 0, in units of "
        "the pixel range. ACR: mean certified radius, 0 where the class is wrong or there is none. "
        + certificate_scope(certificates)
    )


def certificate_scope(certificates: Sequence[Mapping[str, Any]]) -> str:
    """Return how small L2 radii are beside L∞ budgets: the two must not be read together."""
    known = [c for c in certificates if c.get("dims") and c.get("largest_radius")]
    if not known:
        return "L2 radii say nothing about L∞ budgets."
    best = max(known, key=lambda c: float(c["largest_radius"]))
    radius, dims = float(best["largest_radius"]), int(best["dims"])
    return (
        f"The largest radius that can be certified here, {format_number(radius)}, is "
        f"{format_number(255 * radius / math.sqrt(dims))} levels RMS over the {dims} values of a "
        f"video; an L∞ budget of 8/255 has an L2 norm of up to "
        f"{format_number(_LINF * math.sqrt(dims))}, so these certificates say nothing about it."
    )
