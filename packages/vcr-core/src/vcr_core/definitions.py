"""Every published rate as a small named definition over records.

``y`` is the true label, ``f`` the model, ``d`` the defense, ``x`` and ``a`` the clean and the
attacked video. A rate is a sum over videos divided by another sum; videos with status ``ok`` or
``ineligible`` count, errors are reported beside. A denominator of 0 gives no value.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from vcr_core import outcomes
from vcr_core.errors import UsageError
from vcr_core.outcomes import Draws, RecordMap
from vcr_core.stats import Estimate, Term, bootstrap_ratio, rate

Need: TypeAlias = Literal[
    "attack", "defense", "target", "detector", "draws", "abstention", "certificate", "source"
]
TermOf: TypeAlias = Callable[[RecordMap], Term | None]

NO_VALUE = "denominator is 0"
OWN_LABELS = "the labels are the clean predictions, so it is 100 % by construction"


@dataclass(frozen=True, slots=True)
class Definition:
    """A rate.

    Attributes:
        name: key in ``summary.json``.
        formula: how it is computed, for people.
        term: what one evaluated video adds; ``None`` if it is not in the rate's population.
        needs: what a run must have for the rate to mean anything.
        is_share: whether it is a proportion in [0, 1]; differences of proportions are not.
        only_with: another rate without which this one has no value.
        of_labels: whether it means nothing where the labels are the clean predictions.
    """

    name: str
    formula: str
    term: TermOf
    needs: frozenset[Need] = frozenset()
    is_share: bool = True
    only_with: str | None = None
    of_labels: bool = False


def terms(name: str, records: Iterable[RecordMap]) -> dict[str, Term]:
    """Return what each video adds to a rate, for paired comparisons of two runs.

    Raises:
        UsageError: for a name that is not defined.
    """
    term = definition(name).term
    return {
        record["video"]: value
        for record in records
        if outcomes.is_evaluated(record) and (value := term(record)) is not None
    }


def holds(name: str, records: Iterable[RecordMap]) -> dict[str, bool]:
    """Return for which videos of a rate's population it holds, for McNemar's test.

    With several draws, in more than half of them.
    """
    return {v: 2 * t.num > t.den for v, t in terms(name, records).items() if t.den}


def estimate(name: str, records: Sequence[RecordMap], *, seed: int = 0) -> Estimate:
    """Return a rate with its interval: Wilson for counts, else bootstrap over videos."""
    return _estimate(name, records, list(terms(name, records).values()), seed)


def evaluate(name: str, records: Sequence[RecordMap], *, seed: int = 0) -> dict[str, Any]:
    """Return ``{value, k, n, ci95, method}`` of a rate, with ``reason`` if there is no value.

    ``k`` is ``None`` where the numerator is not a count, as a mean over draws.
    """
    found = list(terms(name, records).values())
    result = _estimate(name, records, found, seed)
    count = sum(term.num for term in found)
    entry: dict[str, Any] = {
        "value": result.value,
        "k": int(count) if count == int(count) and _are_counts(found, signed=True) else None,
        "n": result.n,
        "ci95": result.ci95,
        "method": result.method,
    }
    if result.value is None:
        entry["reason"] = why_none(name, records)
    return entry


def why_none(name: str, records: Iterable[RecordMap]) -> str:
    """Return why a rate has no value over these records."""
    is_void = definition(name).of_labels and any(map(outcomes.has_own_label, records))
    return OWN_LABELS if is_void else NO_VALUE


def _estimate(
    name: str, records: Sequence[RecordMap], found: Sequence[Term], seed: int
) -> Estimate:
    rule = definition(name)
    if rule.only_with and estimate(rule.only_with, records, seed=seed).value is None:
        return Estimate(None, None, None, 0, "wilson")
    if rule.is_share and _are_counts(found):
        return rate(sum(term.num for term in found), sum(term.den for term in found))
    result = bootstrap_ratio(found, seed=seed)
    if rule.is_share and result.low is not None and result.high is not None:
        low, high = max(0.0, result.low), min(1.0, result.high)
        return Estimate(result.value, low, high, result.n, result.method)
    return result


def definition(name: str) -> Definition:
    """Return a definition by name.

    Raises:
        UsageError: for a name that is not defined.
    """
    try:
        return DEFINITIONS[name]
    except KeyError:
        raise UsageError(
            f"no rate is called {name!r}; there are: {', '.join(DEFINITIONS)}"
        ) from None


def applicable(facts: Iterable[Need]) -> list[Definition]:
    """Return the definitions that mean something for a run that has ``facts``."""
    present = frozenset(facts)
    return [rule for rule in DEFINITIONS.values() if rule.needs <= present]


def facts_of(
    records: Sequence[RecordMap], *, among: Container[Need] | None = None
) -> frozenset[Need]:
    """Return what the records show that the run has.

    Args:
        records: any records of the run.
        among: what to look for; everything by default.
    """
    return frozenset(
        need
        for need, is_shown in _SHOWN_BY.items()
        if (among is None or need in among) and is_shown(records)
    )


def _any(shows: Callable[[RecordMap], bool]) -> Callable[[Sequence[RecordMap]], bool]:
    return lambda records: any(map(shows, records))


_SHOWN_BY: Mapping[Need, Callable[[Sequence[RecordMap]], bool]] = {
    "attack": _any(outcomes.has_attack),
    "target": _any(lambda record: record.get("target") is not None),
    "defense": _any(outcomes.has_defense),
    "detector": _any(lambda record: outcomes.clean_rejected(record) is not None),
    "abstention": _any(lambda record: outcomes.clean_abstained(record) is not None),
    "certificate": _any(lambda record: outcomes.certificate(record) is not None),
    "source": _any(lambda record: outcomes.source_right(record) is not None),
    "draws": lambda records: outcomes.draw_count(records) > 1,
}


def _are_counts(found: Sequence[Term], *, signed: bool = False) -> bool:
    nums, dens = {term.num for term in found}, {term.den for term in found}
    return nums <= ({-1, 0, 1} if signed else {0, 1}) and dens <= {0, 1}


def _share(share: Callable[[RecordMap], float | None]) -> TermOf:
    """Return the term of a plain mean of ``share`` over the videos that have one."""

    def term(record: RecordMap) -> Term | None:
        value = share(record)
        return None if value is None else _WHOLE.get(value) or Term(value)

    return term


_WHOLE = {0.0: Term(0.0), 1.0: Term(1.0)}
"""Most terms are one of these."""


def _clean(defended: bool) -> TermOf:
    return _share(partial(outcomes.clean_right, defended=defended))


def _clean_of_labels(record: RecordMap) -> Term | None:
    return None if outcomes.has_own_label(record) else _clean(False)(record)


def _robust(defended: bool, draws: Draws = "mean") -> TermOf:
    return _share(partial(outcomes.stays_right, defended=defended, draws=draws))


def _target(defended: bool, draws: Draws = "mean") -> TermOf:
    return _share(partial(outcomes.hits_target, defended=defended, draws=draws))


def _lost(defended: bool, draws: Draws = "mean") -> TermOf:
    """Return the success of an attack: a label that was right has become another label."""

    def term(record: RecordMap) -> Term | None:
        right = outcomes.clean_right(record, defended=defended, draws=draws)
        lost = outcomes.is_lost(record, defended=defended, draws=draws)
        return None if right is None or lost is None else Term(lost, right)

    return term


def _not_kept(defended: bool) -> TermOf:
    """Return the paper's success, whose complement is robust accuracy: not right any more."""

    def term(record: RecordMap) -> Term | None:
        right = outcomes.clean_right(record, defended=defended)
        still = outcomes.stays_right(record, defended=defended)
        return None if right is None or still is None else Term(right - still, right)

    return term


def _transferred(defended: bool) -> TermOf:
    """Return the success of an attack on another model, of the videos that both had right."""

    def term(record: RecordMap) -> Term | None:
        right, found = outcomes.source_right(record), _lost(defended)(record)
        return (
            None if right is None or found is None else Term(right * found.num, right * found.den)
        )

    return term


def _hit_both(defended: bool) -> TermOf:
    """Return how often a target is hit, of the videos that both models had right."""

    def term(record: RecordMap) -> Term | None:
        hit = outcomes.hits_target(record, defended=defended)
        right = outcomes.clean_right(record, defended=defended)
        return None if hit is None or right is None else Term(hit * right, right)

    return term


def _source_lost(record: RecordMap) -> Term | None:
    right, lost = outcomes.source_right(record), outcomes.source_lost(record)
    return None if right is None or lost is None else Term(lost, right)


def _as_judged(make: Callable[[bool], TermOf]) -> TermOf:
    """Return a rate of the paper's ``h``: the defended model where there is a defense."""
    return lambda record: make(outcomes.has_defense(record))(record)


def _difference(minuend: TermOf, subtrahend: TermOf) -> TermOf:
    def term(record: RecordMap) -> Term | None:
        first, second = minuend(record), subtrahend(record)
        return None if first is None or second is None else Term(first.num - second.num)

    return term


def _recovered(record: RecordMap) -> Term | None:
    gain = _difference(_robust(True), _robust(False))(record)
    lost = _lost(False)(record)
    return None if gain is None or lost is None else Term(gain.num, lost.num)


def _top5(attacked: bool) -> TermOf:
    def term(record: RecordMap) -> Term | None:
        if not attacked and outcomes.has_own_label(record):
            return None
        corners = outcomes.clean_corners(record, defended=False)[:1]
        if attacked:
            corners += outcomes.attacked_corners(record, defended=False)[:1]
        if len(corners) != 1 + attacked or any(not corner.get("top5") for corner in corners):
            return None
        return Term(float(all(record.get("label") in corner["top5"] for corner in corners)))

    return term


def _is_certified(record: RecordMap) -> float | None:
    radius = outcomes.certified_radius(record)
    return None if radius is None else float(radius > 0)


def _certifies_nothing(record: RecordMap) -> float | None:
    found = outcomes.certificate(record)
    return None if found is None else float(found.get("class") is None)


_ATTACK: frozenset[Need] = frozenset({"attack"})
_DEFENSE: frozenset[Need] = frozenset({"defense"})
_TARGET: frozenset[Need] = frozenset({"attack", "target"})
_DETECTOR: frozenset[Need] = frozenset({"detector"})
_DRAWS: frozenset[Need] = frozenset({"draws"})
_ABSTENTION: frozenset[Need] = frozenset({"abstention"})
_CERTIFICATE: frozenset[Need] = frozenset({"certificate"})
_SOURCE: frozenset[Need] = frozenset({"attack", "source"})

_RATES = (
    Definition("clean_accuracy", "mean[f(x)=y]", _clean_of_labels, of_labels=True),
    Definition("defended_clean_accuracy", "mean[d∘f(x)=y]", _clean(True), _DEFENSE),
    Definition("robust_accuracy", "mean[f(x)=y ∧ f(a)=y]", _robust(False), _ATTACK),
    Definition(
        "defended_robust_accuracy",
        "mean[d∘f(x)=y ∧ d∘f(a)=y]",
        _robust(True),
        _ATTACK | _DEFENSE,
    ),
    Definition("asr_untargeted", "#[f(x)=y ∧ f(a)≠y] / #[f(x)=y]", _lost(False), _ATTACK),
    Definition(
        "defended_asr_untargeted",
        "#[d∘f(x)=y ∧ d∘f(a)≠y] / #[d∘f(x)=y], an abstention at a is no success",
        _lost(True),
        _ATTACK | _DEFENSE,
    ),
    Definition("asr_targeted", "#[eligible ∧ f(a)=target] / #[eligible]", _target(False), _TARGET),
    Definition(
        "defended_asr_targeted",
        "#[eligible ∧ d∘f(a)=target] / #[eligible]",
        _target(True),
        _TARGET | _DEFENSE,
    ),
    Definition(
        "asr_paper",
        "#[h(x)=y ∧ not h(a)=y] / #[h(x)=y], h = d∘f if defended else f, also for targeted runs "
        "and for abstentions",
        _as_judged(_not_kept),
        _ATTACK,
    ),
    Definition(
        "robust_accuracy_paper",
        "#[h(x)=y]/n · (1 - asr_paper)",
        _as_judged(_robust),
        _ATTACK,
        only_with="asr_paper",
    ),
    Definition(
        "benefit",
        "defended_robust_accuracy - robust_accuracy",
        _difference(_robust(True), _robust(False)),
        _ATTACK | _DEFENSE,
        is_share=False,
    ),
    Definition(
        "harm",
        "clean_accuracy - defended_clean_accuracy",
        _difference(_clean(False), _clean(True)),
        _DEFENSE,
        is_share=False,
    ),
    Definition(
        "recovered_fraction",
        "(defended_robust_accuracy - robust_accuracy) / (clean_accuracy - robust_accuracy)",
        _recovered,
        _ATTACK | _DEFENSE,
        is_share=False,
    ),
    Definition("clean_top5_accuracy", "mean[y ∈ top5 f(x)]", _top5(False), of_labels=True),
    Definition("robust_top5_accuracy", "mean[y ∈ top5 f(x) ∧ y ∈ top5 f(a)]", _top5(True), _ATTACK),
    Definition(
        "clean_reject_rate", "mean[d rejects x]", _share(outcomes.clean_rejected), _DETECTOR
    ),
    Definition(
        "attacked_reject_rate",
        "#[eligible ∧ d rejects a] / #[eligible]",
        _share(outcomes.attack_rejected),
        _DETECTOR | _ATTACK,
    ),
    Definition(
        "detected_or_correct_rate",
        "#[eligible ∧ (d rejects a or d∘f(a)=y)] / #[eligible]",
        _share(outcomes.rejected_or_right),
        _DETECTOR | _ATTACK,
    ),
    Definition(
        "clean_abstention_rate",
        "mean[d abstains on x]",
        _share(outcomes.clean_abstained),
        _ABSTENTION,
    ),
    Definition(
        "attacked_abstention_rate",
        "#[eligible ∧ d abstains on a] / #[eligible]",
        _share(outcomes.attack_abstained),
        _ABSTENTION | _ATTACK,
    ),
    Definition(
        "certified_accuracy",
        "mean[d certifies y at x with a radius above 0]",
        _share(_is_certified),
        _CERTIFICATE,
    ),
    Definition(
        "certified_abstention_rate",
        "mean[d certifies no class at x]",
        _share(_certifies_nothing),
        _CERTIFICATE,
    ),
    Definition(
        "transfer_rate",
        "#[s(x)=y ∧ f(x)=y ∧ f(a)≠y] / #[s(x)=y ∧ f(x)=y], s the model that was attacked",
        _transferred(False),
        _SOURCE,
    ),
    Definition(
        "defended_transfer_rate",
        "#[s(x)=y ∧ d∘f(x)=y ∧ d∘f(a)≠y] / #[s(x)=y ∧ d∘f(x)=y]",
        _transferred(True),
        _SOURCE | _DEFENSE,
    ),
    Definition(
        "transfer_rate_targeted",
        "#[s(x)=y ∧ f(x)=y ∧ f(a)=target] / #[s(x)=y ∧ f(x)=y]",
        _hit_both(False),
        _SOURCE | _TARGET,
    ),
    Definition(
        "defended_transfer_rate_targeted",
        "#[s(x)=y ∧ d∘f(x)=y ∧ d∘f(a)=target] / #[s(x)=y ∧ d∘f(x)=y]",
        _hit_both(True),
        _SOURCE | _TARGET | _DEFENSE,
    ),
    Definition("source_asr", "#[s(x)=y ∧ s(a)≠y] / #[s(x)=y]", _source_lost, _SOURCE),
    Definition(
        "source_asr_targeted",
        "#[eligible ∧ s(a)=target] / #[eligible]",
        _share(outcomes.source_hit),
        _SOURCE | _TARGET,
    ),
)


def _over_draws() -> Iterable[Definition]:
    rules: tuple[tuple[Draws, str], ...] = (
        ("any", "the attack wins if it wins in any draw"),
        ("majority", "decided by more than half of the draws"),
    )
    needs = _ATTACK | _DEFENSE | _DRAWS
    for draws, text in rules:
        for base, term, more in (
            ("defended_robust_accuracy", _robust(True, draws), needs),
            ("defended_asr_untargeted", _lost(True, draws), needs),
            ("defended_asr_targeted", _target(True, draws), needs | _TARGET),
        ):
            yield Definition(f"{base}_{draws}", f"{base}, {text}", term, more)


DEFINITIONS: Mapping[str, Definition] = {rule.name: rule for rule in (*_RATES, *_over_draws())}
"""Every rate by name, in the order in which reports list them."""
