"""Runs as table rows: one run, one row, every number with its interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from vcr_core.adaptive_pairs import adaptive_pairs
from vcr_core.health import comparative_flags
from vcr_core.manifest import (
    component_ref,
    dataset_text,
    defense_refs,
    has_own_labels,
    is_adaptive,
    is_targeted,
    table,
)
from vcr_core.reporters.cells import MISSING, NO_ATTACK, NO_DEFENSE, Cell, cell_from
from vcr_core.reporters.distinctions import with_details
from vcr_core.reporters.extras import WORSE, extra_cells, worse_cells
from vcr_core.reporters.standing import with_standing
from vcr_core.reporters.wording import FRAME_WORDS

if TYPE_CHECKING:
    from vcr_core.summary import RunView

NONE = "none"
_NORMS = {"linf": "L∞", "l2": "L2", "l1": "L1", "l0": "L0"}
_METRIC_ORDER = (
    "mse", "psnr", "ssim", "ssim-uniform7", "ms-ssim", "lpips", "lpips-vcrbench", "st-lpips",
    "dists", "vmaf", "flicker", "roughness", "warp_error_delta", "tof", "tlp",
)  # fmt: skip

_NOT_IN_TABLES = ("psnr_of_mean_mse", "psnr_capped_mean")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Clean and robust accuracy of one system: the bare model, or the model behind its defense."""

    clean: Cell
    robust: Cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a table says about one run.

    Attributes:
        run: run id.
        dataset: dataset reference, and whose labels count where they are not its own.
        model: model reference.
        attack: attack reference, or ``none``.
        source: the model that the attack was computed on, ``""`` where it is the evaluated one.
        defense: defense references joined in the order in which they apply, or ``none``.
        adaptive: whether the attacker knows the defense; ``None`` without attack or defense.
        threat: the constraint in words, e.g. ``L∞ 8/255``.
        norm: ``linf l2 l1 l0 none``, or ``""`` without an attack.
        eps: radius, or ``None`` where the norm is ``none`` or there is no attack.
        targeted: whether the attack aims at a class.
        status: the manifest's status.
        n: videos that the rates are over (``ok`` and ``ineligible``).
        errors: videos that failed and are not in the rates.
        undefended: the pair of the bare model.
        defended: the pair of the model behind its defense, if there is one.
        asr: attack success rate of the headline pair.
        asr_name: the definition that ``asr`` is an instance of.
        defended_asr: how often the label of the defended model changed, whatever the headline.
        queries: mean forwards a video.
        seconds: mean attack time a video.
        metrics: distances by name.
        flags: ids of health flags, sorted.
        detail: settings that tell the run from others in the table that would read the same.
        extras: numbers that only some runs have, by the keys of ``extras.EXTRA_TITLES``.
        certificate: the summary's certificates, where the run has some.
        own_labels: whether the labels are what the bare model says of the clean videos.
    """

    run: str
    dataset: str
    model: str
    attack: str
    defense: str
    adaptive: bool | None
    threat: str
    norm: str
    eps: float | None
    targeted: bool
    status: str
    n: int
    errors: int
    undefended: Pair
    defended: Pair | None
    asr: Cell
    asr_name: str
    defended_asr: Cell
    queries: Cell
    seconds: Cell
    metrics: Mapping[str, Cell]
    flags: tuple[str, ...]
    detail: str = ""
    extras: Mapping[str, Cell] = field(default_factory=dict)
    certificate: Mapping[str, Any] | None = None
    own_labels: bool = False
    source: str = ""

    @property
    def headline_defended(self) -> bool:
        """Whether the defended pair is the result of the run.

        It is when the attacker knew the defense, and when nothing was attacked.
        """
        return self.defended is not None and self.adaptive is not False

    @property
    def headline(self) -> Pair:
        """The pair that is the result of the run."""
        return self.defended if self.headline_defended and self.defended else self.undefended

    @property
    def system(self) -> Pair:
        """The pair of the whole system: defended wherever there is a defense."""
        return self.defended or self.undefended

    @property
    def adaptive_text(self) -> str:
        """``yes``, ``no``, or a dash where the word means nothing."""
        return MISSING if self.adaptive is None else ("yes" if self.adaptive else "no")

    @property
    def attack_name(self) -> str:
        """Attack with the model that it was computed on, where that is another one."""
        return f"{self.attack} on {self.source}" if self.source else self.attack

    @property
    def attack_text(self) -> str:
        """Attack with its goal, where it is targeted, and what tells the run from others."""
        words = ", ".join(filter(None, ("targeted" if self.targeted else "", self.detail)))
        return f"{self.attack_name} ({words})" if words else self.attack_name


def make_rows(runs: Iterable[RunView]) -> list[Row]:
    """Return a row per run, ordered by dataset, attack, threat, then headline accuracy."""
    return [row for row, _ in paired_rows(runs)]


def paired_rows(runs: Iterable[RunView]) -> list[tuple[Row, RunView]]:
    """Return :func:`make_rows` with the run of every row beside it."""
    shown = list(runs)
    flags = comparative_flags(shown)
    worse = worse_cells(adaptive_pairs(shown))
    pairs = with_details([(_compared(make_row(run), flags, worse), run) for run in shown])
    return sorted(with_standing(pairs), key=lambda pair: sort_key(pair[0]))


def _compared(row: Row, flags: Mapping[str, set[str]], worse: Mapping[str, Cell]) -> Row:
    """Return ``row`` with what it is next to the other runs: flags, and the worse of a pair."""
    extras = {WORSE: worse[row.run], **row.extras} if row.run in worse else row.extras
    return replace(row, flags=tuple(sorted({*row.flags, *flags.get(row.run, ())})), extras=extras)


def make_row(run: RunView) -> Row:
    """Return the row of one run."""
    manifest = run.manifest
    attack = component_ref(manifest, "attack")
    defenses = defense_refs(manifest)
    threat = table(manifest, "threat")
    definitions = run.summary.get("definitions") or {}
    counts = run.summary.get("counts") or {}
    adaptive = is_adaptive(manifest) if attack and defenses else None
    targeted = is_targeted(manifest)
    norm = str(threat.get("norm", "linf")) if attack else ""
    eps = eps_of(threat) if norm and norm != "none" else None
    asr_name = f"{'defended_' if adaptive else ''}asr_{'targeted' if targeted else 'untargeted'}"
    absent = "not measured" if attack else NO_ATTACK
    return Row(
        run=str(manifest.get("run") or run.folder.name),
        dataset=dataset_text(manifest),
        model=component_ref(manifest, "model") or "?",
        attack=attack or NONE,
        defense=" → ".join(defenses) or NONE,
        adaptive=adaptive,
        threat=threat_text(norm, eps),
        norm=norm,
        eps=eps,
        targeted=targeted,
        status=str(manifest.get("status") or "unknown"),
        n=int(counts.get("ok") or 0) + int(counts.get("ineligible") or 0),
        errors=int(counts.get("error") or 0),
        undefended=_pair(definitions, "", absent),
        defended=_pair(definitions, "defended_", absent) if defenses else None,
        asr=cell_from(definitions.get(asr_name), share=True, absent=absent),
        asr_name=asr_name,
        defended_asr=cell_from(
            definitions.get("defended_asr_untargeted"),
            share=True,
            absent=absent if defenses else NO_DEFENSE,
        ),
        queries=cost_cell(run, "forwards", absent) if attack else Cell(reason=absent),
        seconds=cost_cell(run, "t_attack_s", absent) if attack else Cell(reason=absent),
        metrics={
            name: cell_from(entry, absent=absent)
            for name, entry in (run.summary.get("metrics") or {}).items()
        },
        flags=tuple(sorted(flag_counts(run))),
        extras=extra_cells(run.summary),
        certificate=run.summary.get("certificate"),
        own_labels=has_own_labels(manifest),
        source=component_ref(manifest, "source"),
    )


def run_title(row: Row) -> str:
    """Return what a run is in one line: model, attack, threat, defense."""
    parts = [row.model, row.attack_text if row.attack != NONE else NO_ATTACK]
    parts += [row.threat] if row.attack != NONE else []
    if row.defense != NONE:
        known = {True: ", adaptive", False: ", attack unaware", None: ""}[row.adaptive]
        parts.append(row.defense + known)
    return " \u00b7 ".join(parts)


def metric_names(rows: Sequence[Row]) -> list[str]:
    """Return the names of the metrics that tables show, the usual ones first."""
    found = {name for row in rows for name in row.metrics if not name.endswith(tuple(FRAME_WORDS))}
    found.difference_update(_NOT_IN_TABLES)
    known = [name for name in _METRIC_ORDER if name in found]
    return known + sorted(found.difference(known))


def metric_cell(row: Row, name: str) -> Cell:
    """Return one distance of a run; without an attack there is nothing to measure."""
    absent = NO_ATTACK if row.attack == NONE else "not measured"
    return row.metrics.get(name, Cell(reason=absent))


def flag_counts(run: RunView) -> dict[str, int | None]:
    """Return health flags with the number of videos they concern, where that is known."""
    flags = run.summary.get("flags") or {}
    if not isinstance(flags, Mapping):
        names = [f.get("id") or f.get("flag") if isinstance(f, Mapping) else f for f in flags]
        return {str(name): None for name in names if name}
    found: dict[str, int | None] = {}
    for name, entry in flags.items():
        count = entry.get("count", entry.get("videos")) if isinstance(entry, Mapping) else entry
        known = isinstance(count, int) and not isinstance(count, bool)
        found[str(name)] = count if known else None
    return found


def cost_cell(run: RunView, name: str, absent: str = "not measured") -> Cell:
    """Return the mean of one cost over attacked videos, with its bootstrap interval."""
    entry = (run.summary.get("costs") or {}).get(name)
    cell = cell_from(entry, absent=absent)
    if cell.value is None or cell.low is not None:
        return cell
    values = [
        float(record["cost"][name])
        for record in run.records
        if record.get("status") == "ok" and (record.get("cost") or {}).get(name) is not None
    ]
    if len(values) != cell.n:
        return cell
    from vcr_core.stats import bootstrap_mean

    found = bootstrap_mean(values)
    return replace(cell, low=found.low, high=found.high, method=found.method)


def threat_text(norm: str, eps: float | None) -> str:
    """Return a constraint in words.

    Example:
        >>> threat_text("linf", 8 / 255), threat_text("l2", 0.5), threat_text("none", None)
        ('L∞ 8/255', 'L2 0.5', 'no norm bound')
    """
    if not norm:
        return MISSING
    if norm == "none" or eps is None:
        return "no norm bound"
    return f"{_NORMS.get(norm, norm)} {eps_text(norm, eps)}"


def eps_text(norm: str, eps: float) -> str:
    """Return a radius as users write it: levels of 255 for L∞, a number otherwise."""
    if norm == "linf":
        levels = round(eps * 255, 2)
        if abs(eps * 255 - levels) < 1e-6 * 255:
            return f"{levels:g}/255"
    return f"{eps:.4g}"


def eps_of(threat: Mapping[str, Any]) -> float | None:
    """Return the radius of a threat table; it may be written as a fraction of text."""
    value = threat.get("eps")
    if isinstance(value, str):
        top, _, bottom = value.partition("/")
        return float(top) / float(bottom or 1)
    return float(value) if isinstance(value, int | float) else None


def _pair(definitions: Mapping[str, Any], prefix: str, absent: str) -> Pair:
    return Pair(
        clean=cell_from(definitions.get(f"{prefix}clean_accuracy"), share=True),
        robust=cell_from(definitions.get(f"{prefix}robust_accuracy"), share=True, absent=absent),
    )


def sort_key(row: Row) -> tuple[Any, ...]:
    """Return what orders rows: dataset, attack, threat, then the best robust accuracy first."""
    robust = row.headline.robust.value
    return (
        row.dataset, row.attack != NONE, row.attack, row.source, row.targeted, row.detail,
        row.norm, row.eps or 0.0,
        robust is None, -(robust or 0.0), row.model, row.defense, row.run,
    )  # fmt: skip
