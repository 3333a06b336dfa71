"""Every check of the kit, as data: id, what it asserts, which specs it applies to, its code."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

if TYPE_CHECKING:
    from vcr_core.specs import AttackSpec, ComponentSpec, DefenseSpec, MetricSpec, ModelSpec

When: TypeAlias = "Callable[[ComponentSpec], bool]"


def _always(_spec: ComponentSpec) -> bool:
    return True


def _differentiable(spec: ComponentSpec) -> bool:
    return cast("ModelSpec", spec).differentiable


def _normed(spec: ComponentSpec) -> bool:
    return bool(cast("AttackSpec", spec).norms - {"none"})


def _sees_frames(spec: ComponentSpec) -> bool:
    attack = cast("AttackSpec", spec)
    return attack.access != "none" or attack.stage == "frames"


def _of_source(spec: ComponentSpec) -> bool:
    return cast("AttackSpec", spec).stage == "source"


def _of_plan(spec: ComponentSpec) -> bool:
    return cast("AttackSpec", spec).stage == "plan"


def _queries(spec: ComponentSpec) -> bool:
    return cast("AttackSpec", spec).access not in ("none", "transfer")


def _optimises(spec: ComponentSpec) -> bool:
    attack = cast("AttackSpec", spec)
    return attack.access in ("white-box", "score") and attack.untargeted and _normed(spec)


def _targets(spec: ComponentSpec) -> bool:
    attack = cast("AttackSpec", spec)
    return attack.access in ("white-box", "score") and attack.targeted


def _prepares(spec: ComponentSpec) -> bool:
    return cast("AttackSpec", spec).prepares


def _steady(spec: ComponentSpec) -> bool:
    return not cast("DefenseSpec", spec).stochastic


def _random(spec: ComponentSpec) -> bool:
    return cast("DefenseSpec", spec).stochastic


def _symmetric(spec: ComponentSpec) -> bool:
    return cast("MetricSpec", spec).symmetric


def _has_distance(spec: ComponentSpec) -> bool:
    return cast("MetricSpec", spec).differentiable


def _concurrent(spec: ComponentSpec) -> bool:
    return cast("MetricSpec", spec).concurrent


def _out_of_process(spec: ComponentSpec) -> bool:
    return "in-process" not in spec.tags


@dataclass(frozen=True, slots=True)
class Check:
    """One rule of the contract.

    Attributes:
        id: ``kind/check-name``, stable.
        claim: what holds for a component that passes.
        when: whether the rule applies to a spec, decided from the spec's own claims.
    """

    id: str
    claim: str
    when: When = _always

    @property
    def kind(self) -> str:
        """``plugin`` or the kind of component that it applies to."""
        return self.id.partition("/")[0]

    @property
    def target(self) -> str:
        """``module:function`` of the code, imported only when the check runs."""
        kind, _, name = self.id.partition("/")
        return f"vcr_core.testing.checks.{kind}:{name.replace('-', '_')}"

    def load(self) -> Callable[[Any], None]:
        """Import the function; it takes a subject and raises ``AssertionError``."""
        return cast("Callable[[Any], None]", pkgutil.resolve_name(self.target))


CHECKS: tuple[Check, ...] = (
    Check("plugin/imports-light", "importing the plugin module imports no heavy library"),
    Check("plugin/hooks-known", "the plugin loads, and every vcr_ function in it is a known hook"),
    Check("plugin/specs-valid", "every spec prints as JSON and its fields hold allowed values"),
    Check("plugin/targets-import", "target and params of every available spec import"),
    Check("plugin/names-canonical", "names are canonical and unique within kind"),
    Check("plugin/isolated", "the plugin loads when all others are disabled"),
    Check("model/logits-shape", "logits are finite floats [N, V_crop, num_classes]"),
    Check("model/logits-not-probabilities", "rows are not all in [0, 1] summing to 1"),
    Check("model/eval-deterministic", "same input, same bits, whatever the ambient random state"),
    Check(
        "model/gradient-finite", "the gradient reaches the pixels and is finite", _differentiable
    ),
    Check("model/gradient-nonzero", "the gradient of a class score is not zero", _differentiable),
    Check(
        "model/gradients-independent", "a clip alone has its gradient in a batch", _differentiable
    ),
    Check("model/views-independent", "clips together give what each gives alone, within 1e-4"),
    Check("model/input-untouched", "the input tensor is not changed in place"),
    Check("model/any-resolution", "frames of 64 to 400 pixels, odd and oblong, are accepted"),
    Check("model/labels-match", "labels and clip agree with the spec"),
    Check("model/parameters-frozen", "parameters need no gradient; nothing is in training mode"),
    Check("attack/within-ball", "the result is in each declared norm's ball", _normed),
    Check("attack/within-range", "the result is finite and in [0, 1]", _sees_frames),
    Check(
        "attack/same-shape-dtype-device", "odd oblong shapes come back as they were", _sees_frames
    ),
    Check("attack/eps-zero-is-identity", "radius 0 gives the input bit for bit", _normed),
    Check("attack/input-untouched", "the input tensor is not changed in place", _sees_frames),
    Check(
        "attack/seeded",
        "same seeds, same bits; ambient random state neither used nor changed",
        _sees_frames,
    ),
    Check("attack/order-independent", "permuting the batch permutes the results", _sees_frames),
    Check("attack/budget-kept", "budgets of 1, 2, 10 and 1000 forwards are kept", _queries),
    Check(
        "attack/access-kept", "only calls that the declared access allows are made", _sees_frames
    ),
    Check("attack/succeeds-on-linear", "a linear model falls well before its optimum", _optimises),
    Check("attack/targeted-moves-target", "the target's probability rises", _targets),
    Check("attack/degenerate-models", "constant and saturated models give no NaN", _queries),
    Check("attack/model-untouched", "parameters, flags and modes are as before", _sees_frames),
    Check("attack/output-detached", "the result carries no graph", _sees_frames),
    Check("attack/transforms-whole-videos", "frames keep size and type, with sources", _of_source),
    Check("attack/transforms-seeded", "the video's generator alone decides", _of_source),
    Check("attack/plans-keep-shape", "two plans of the asked shape, or a reason", _of_plan),
    Check("attack/prepare-idempotent", "preparing twice leaves the same files", _prepares),
    Check("attack/prepare-writes-only-its-folder", "no file outside the folder", _prepares),
    Check("attack/fresh-instance-uses-prepared", "a new instance uses the artifacts", _prepares),
    Check("defense/same-shape-range", "clips come back with their shape, finite, in [0, 1]"),
    Check("defense/deterministic-if-claimed", "other seeds change nothing", _steady),
    Check("defense/seeded-if-stochastic", "same seed same bits, another seed differs", _random),
    Check("defense/gradient-as-claimed", "exact, surrogate or none, as the spec says"),
    Check("defense/composes", "it chains with another defense on either side"),
    Check("defense/input-untouched", "the input tensor is not changed in place"),
    Check("defense/accepts-short-clips", "clips of 1 and 2 frames are accepted"),
    Check("metric/identity-value", "a clip with itself gives the declared value"),
    Check("metric/symmetric-if-claimed", "exchanging the clips changes nothing", _symmetric),
    Check("metric/worsens-with-noise", "more noise is worse, in the declared direction"),
    Check("metric/finite-or-none", "values are finite numbers, or missing with a reason"),
    Check("metric/batch-order-free", "a value does not depend on what was measured before"),
    Check("metric/keys-declared", "exactly the declared keys come back"),
    Check("metric/smallest-frame", "the declared smallest frame has values, a smaller one none"),
    Check("metric/differentiable-if-claimed", "the distance has a useful gradient", _has_distance),
    Check("metric/concurrent-if-claimed", "two threads measure what one does alone", _concurrent),
    Check("dataset/ids-unique-stable", "ids are unique and the same for two instances"),
    Check("dataset/labels-in-range", "every label is an index in the label space"),
    Check("dataset/fingerprint-stable", "two instances give the same content hashes and frames"),
    Check("dataset/missing-file-typed-error", "unknown ids and missing files are typed errors"),
    Check("dataset/subset-prefix", "a small subset is a prefix of a large one"),
    Check("executor/equals-inline", "records are those of the inline executor, bit for bit"),
    Check("executor/survives-crash", "a dying worker costs a status, not the run", _out_of_process),
    Check("executor/several-runs", "shards of several runs come together, and all are done"),
    Check("executor/resumes", "running again makes the missing records and no others"),
)
"""In the order of ``docs/plugins/contract.md``."""


def checks_for(spec: ComponentSpec) -> list[Check]:
    """Return the checks that a component's own claims ask for."""
    return [c for c in CHECKS if c.kind == spec.kind and c.when(spec)]


def plugin_checks() -> list[Check]:
    """Return the checks of a whole distribution."""
    return [c for c in CHECKS if c.kind == "plugin"]
