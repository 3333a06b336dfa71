"""Runs and rankings as the data files of the site have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vcr_core.file_names import file_name
from vcr_core.leaderboard.site_schema import (
    Entry,
    EntryFile,
    LeftOutData,
    Number,
    RankData,
    RankingData,
)
from vcr_core.manifest import component_ref, defense_refs, is_adaptive, is_targeted, table
from vcr_core.reporters.rows import eps_of, threat_text

if TYPE_CHECKING:
    from vcr_core.leaderboard.rankings import Place, Ranking
    from vcr_core.leaderboard.submissions import LeftOut, Submission


def ranking_data(ranking: Ranking) -> RankingData:
    """Return a ranking as the data files have it."""
    return RankingData(
        id=ranking.id,
        title=ranking.title,
        setting=ranking.setting,
        settings=ranking.settings,
        knowledge=ranking.knowledge,
        shared=dict(ranking.shared),
        pairs=ranking.pairs,
        told_apart=ranking.told_apart,
        runs=[place.submission.run.name for place in ranking.places],
    )


def entry_of(place: Place, ranking: Ranking) -> Entry:
    """Return a run as the data files have it."""
    submission = place.submission
    run, manifest = submission.run, submission.run.manifest
    rates = run.summary["definitions"]
    attack, defenses = component_ref(manifest, "attack"), defense_refs(manifest)
    threat = table(manifest, "threat")
    norm = str(threat.get("norm", "linf")) if attack else ""
    eps = eps_of(threat) if norm not in ("", "none") else None
    targeted = is_targeted(manifest)
    prefix = "defended_" if defenses else ""
    success = f"{prefix}asr_{'targeted' if targeted else 'untargeted'}"
    costs = run.summary.get("costs") or {}
    counts = run.summary.get("counts") or {}
    name = file_name(run.name)
    return Entry(
        run=run.name,
        page=f"entries/{name}.html",
        data=f"data/entries/{name}.json",
        place=RankData(
            ranking=ranking.id,
            rank=place.rank,
            best=place.best,
            worst=place.worst,
            systems=sum(one.rank is not None for one in ranking.places),
            superseded_by=place.superseded_by,
        ),
        model=run.model,
        defenses=list(defenses),
        attack=attack,
        access=ranking.access,
        knowledge=ranking.knowledge,
        adaptive=is_adaptive(manifest) if attack and defenses else None,
        threat=threat_text(norm, eps) if attack else "",
        norm=norm,
        eps=eps,
        targeted=targeted,
        dataset=run.dataset,
        fingerprint=ranking.fingerprint,
        videos=ranking.videos,
        evaluated=int(counts.get("ok") or 0) + int(counts.get("ineligible") or 0),
        evaluation_version=manifest.get("evaluation_version"),
        seed=manifest.get("seed"),
        clean_accuracy=number(rates.get(f"{prefix}clean_accuracy")),
        robust_accuracy=number(rates.get(f"{prefix}robust_accuracy")) if attack else None,
        attack_success=number(rates.get(success)) if attack else None,
        queries=_mean(costs, "forwards") if attack else None,
        seconds=_mean(costs, "t_attack_s") if attack else None,
        metrics={key: number(found) for key, found in (run.summary.get("metrics") or {}).items()},
        flags=sorted(run.summary.get("flags") or {}),
        ended=str(manifest.get("ended") or ""),
        state=submission.verification.state,
    )


def entry_file(entry: Entry, submission: Submission) -> EntryFile:
    """Return all that the site has of one run."""
    manifest, summary = submission.run.manifest, submission.run.summary
    return EntryFile(
        entry=entry,
        experiment=dict(manifest.get("experiment") or {}),
        experiment_hash=str(manifest.get("experiment_hash") or ""),
        components=[dict(part) for part in manifest.get("components") or ()],
        environment=dict(manifest.get("environment") or {}),
        definitions={name: number(found) for name, found in summary["definitions"].items()},
        errors=dict((summary.get("errors") or {}).get("by_type") or {}),
        verification=submission.verification,
    )


def left_out_data(left_out: Sequence[LeftOut]) -> list[LeftOutData]:
    """Return what is left out as the data files have it."""
    return [
        LeftOutData(run=one.run, folder=one.folder, reasons=list(one.reasons)) for one in left_out
    ]


def number(found: Mapping[str, Any] | None) -> Number:
    """Return an entry of a summary as the data files have it."""
    if found is None:
        return Number(value=None, reason="not measured")
    reasons = found.get("reasons") or {}
    reason = found.get("reason") or "; ".join(f"{text} ({k})" for text, k in reasons.items())
    return Number(
        value=found.get("value"),
        ci95=found.get("ci95"),
        n=found.get("n"),
        k=found.get("k"),
        method=str(found.get("method") or ""),
        reason=str(reason),
    )


def _mean(costs: Mapping[str, Any], name: str) -> float | None:
    value = (costs.get(name) or {}).get("mean")
    return float(value) if isinstance(value, int | float) else None
