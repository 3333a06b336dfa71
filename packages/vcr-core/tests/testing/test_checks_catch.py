"""Every check catches a component that breaks its rule, and says what is wrong."""

from __future__ import annotations

import pytest
from vcr_core.testing.catalog import CHECKS
from vcr_core.testing.toys import specs

_ATTACKS = "vcr_core.testing.toys.broken.attacks"
_MODELS = "vcr_core.testing.toys.broken.models"
_DEFENSES = "vcr_core.testing.toys.broken.defenses"
_METRICS = "vcr_core.testing.toys.broken.metrics"
_DATASETS = "vcr_core.testing.toys.broken.datasets"

_TRANSFORMS = "vcr_core.testing.toys.broken.transforms"

_LINEAR = specs.TOY_LINEAR
_NORM = specs.TOY_BATCH_NORM
_DESCENT = specs.TOY_DESCENT
_UNIVERSAL = specs.TOY_UNIVERSAL
_DROP = specs.TOY_DROP_ONE
_LATER = specs.TOY_ONE_LATER
_DARKEN = specs.TOY_DARKEN
_NOISE = specs.TOY_NOISE
_QUANTISE = specs.TOY_QUANTISE
_DIFFERENCE = specs.TOY_DIFFERENCE
_LOG_ERROR = specs.TOY_LOG_ERROR
_SHAPES = specs.TOY_SHAPES

CAUGHT = [
    ("model/logits-shape", _LINEAR, {"target": f"{_MODELS}:Flat"}, "shape"),
    ("model/logits-shape", _LINEAR, {"num_classes": 5}, "the spec says 5"),
    ("model/logits-not-probabilities", _LINEAR, {"target": f"{_MODELS}:Probabilities"}, "logits"),
    ("model/eval-deterministic", _LINEAR, {"target": f"{_MODELS}:Random"}, "global"),
    ("model/gradient-finite", _LINEAR, {"target": f"{_MODELS}:Infinite"}, "not finite"),
    ("model/gradient-finite", _LINEAR, {"target": f"{_MODELS}:Cut"}, "no graph"),
    ("model/gradient-nonzero", _LINEAR, {"target": f"{_MODELS}:ZeroGradient"}, "zero"),
    ("model/gradients-independent", _LINEAR, {"target": f"{_MODELS}:BatchGradient"}, "contiguous"),
    ("model/views-independent", _LINEAR, {"target": f"{_MODELS}:BatchStatistics"}, "batch"),
    ("model/input-untouched", _LINEAR, {"target": f"{_MODELS}:InPlace"}, "in place"),
    ("model/labels-match", _LINEAR, {"target": f"{_MODELS}:OtherLabels"}, "toy-other"),
    ("model/parameters-frozen", _NORM, {"target": f"{_MODELS}:Training"}, "training mode"),
    ("model/parameters-frozen", _NORM, {"target": f"{_MODELS}:Trainable"}, "requires_grad_"),
    ("attack/within-ball", _DESCENT, {"target": f"{_ATTACKS}:OutOfBall"}, "outside of the ball"),
    ("attack/within-range", _DESCENT, {"target": f"{_ATTACKS}:OutOfRange"}, "the range is"),
    ("attack/within-range", _DESCENT, {"target": f"{_ATTACKS}:NotANumber"}, "not finite"),
    ("attack/same-shape-dtype-device", _DESCENT, {"target": f"{_ATTACKS}:WrongShape"}, "came out"),
    ("attack/same-shape-dtype-device", _DESCENT, {"target": f"{_ATTACKS}:WrongDtype"}, "float64"),
    ("attack/eps-zero-is-identity", _DESCENT, {"target": f"{_ATTACKS}:IgnoresZero"}, "eps = 0"),
    ("attack/input-untouched", _DESCENT, {"target": f"{_ATTACKS}:InPlace"}, "in place"),
    ("attack/seeded", _DESCENT, {"target": f"{_ATTACKS}:GlobalRandom"}, "another seed"),
    ("attack/seeded", _DESCENT, {"stochastic": True}, "five seeds"),
    ("attack/seeded", specs.TOY_SEARCH, {"stochastic": False}, "set stochastic=True"),
    ("attack/order-independent", _DESCENT, {"target": f"{_ATTACKS}:BatchNormalised"}, "batch"),
    ("attack/budget-kept", _DESCENT, {"target": f"{_ATTACKS}:HiddenQuery"}, "around the victim"),
    ("attack/access-kept", _DESCENT, {"target": f"{_ATTACKS}:HiddenQuery"}, "around the victim"),
    (
        "attack/access-kept",
        specs.TOY_SEARCH,
        {"target": f"{_ATTACKS}:ScoresWithGradient"},
        "needs access white-box",
    ),
    ("attack/succeeds-on-linear", _DESCENT, {"target": f"{_ATTACKS}:FalseSuccess"}, "3 of 3"),
    ("attack/succeeds-on-linear", _DESCENT, {"target": f"{_ATTACKS}:WrongSign"}, "3 of 3"),
    ("attack/targeted-moves-target", _DESCENT, {"target": f"{_ATTACKS}:WrongSign"}, "target"),
    ("attack/degenerate-models", _DESCENT, {"target": f"{_ATTACKS}:NotANumber"}, "not finite"),
    ("attack/model-untouched", _DESCENT, {"target": f"{_ATTACKS}:EditsModel"}, "requires_grad"),
    ("attack/output-detached", _DESCENT, {"target": f"{_ATTACKS}:Attached"}, "detached"),
    ("attack/prepare-idempotent", _UNIVERSAL, {"target": f"{_ATTACKS}:PreparesAnew"}, "second"),
    ("attack/prepare-idempotent", _DESCENT, {"prepares": True}, "no method 'prepare'"),
    (
        "attack/prepare-writes-only-its-folder",
        _UNIVERSAL,
        {"target": f"{_ATTACKS}:PreparesElsewhere"},
        "it wrote to",
    ),
    (
        "attack/fresh-instance-uses-prepared",
        _UNIVERSAL,
        {"target": f"{_ATTACKS}:IgnoresPrepared"},
        "not used",
    ),
    ("attack/transforms-whole-videos", _DROP, {"target": f"{_TRANSFORMS}:InPlace"}, "in place"),
    ("attack/transforms-whole-videos", _DROP, {"target": f"{_TRANSFORMS}:Floats"}, "float64"),
    ("attack/transforms-whole-videos", _DROP, {"target": f"{_TRANSFORMS}:ShortMap"}, "map of 1"),
    ("attack/transforms-whole-videos", _LATER, {"stage": "source"}, "a method 'transform'"),
    ("attack/transforms-seeded", _DROP, {"target": f"{_TRANSFORMS}:Forgetful"}, "global"),
    ("attack/transforms-seeded", _DROP, {"stochastic": False}, "set stochastic=True"),
    ("attack/plans-keep-shape", _LATER, {"target": f"{_TRANSFORMS}:OtherShape"}, "became"),
    ("defense/same-shape-range", _DARKEN, {"target": f"{_DEFENSES}:NotANumber"}, "not finite"),
    ("defense/same-shape-range", _DARKEN, {"target": f"{_DEFENSES}:Overshoots"}, "values from"),
    ("defense/same-shape-range", _DARKEN, {"target": f"{_DEFENSES}:DropsClasses"}, "[B, K]"),
    ("defense/deterministic-if-claimed", _DARKEN, {"target": f"{_DEFENSES}:Undeclared"}, "seed"),
    ("defense/seeded-if-stochastic", _NOISE, {"target": f"{_DEFENSES}:GlobalRandom"}, "global"),
    ("defense/seeded-if-stochastic", _NOISE, {"target": f"{_DEFENSES}:Steady"}, "same bits"),
    ("defense/seeded-if-stochastic", _NOISE, {"target": f"{_DEFENSES}:SharedDraw"}, "neighbours"),
    ("defense/gradient-as-claimed", _DARKEN, {"target": f"{_DEFENSES}:Cuts"}, "cuts the graph"),
    ("defense/gradient-as-claimed", _QUANTISE, {"gradient": "exact"}, "zero everywhere"),
    ("defense/composes", _DARKEN, {"target": f"{_DEFENSES}:DropsClasses"}, "shape"),
    ("defense/input-untouched", _DARKEN, {"target": f"{_DEFENSES}:InPlace"}, "in place"),
    ("metric/identity-value", _DIFFERENCE, {"target": f"{_METRICS}:Shifted"}, "the spec says 0"),
    ("metric/identity-value", _LOG_ERROR, {"target": f"{_METRICS}:NoReason"}, "without a reason"),
    ("metric/symmetric-if-claimed", _DIFFERENCE, {"target": f"{_METRICS}:OneSided"}, "symmetric"),
    ("metric/worsens-with-noise", _DIFFERENCE, {"target": f"{_METRICS}:Better"}, "lower is better"),
    ("metric/worsens-with-noise", _DIFFERENCE, {"higher_is_better": True}, "higher is better"),
    ("metric/finite-or-none", _DIFFERENCE, {"target": f"{_METRICS}:Infinite"}, "must be missing"),
    ("metric/finite-or-none", _DIFFERENCE, {"value_range": (0.0, 1.0)}, "> 1"),
    ("metric/batch-order-free", _DIFFERENCE, {"target": f"{_METRICS}:Remembers"}, "became"),
    ("metric/keys-declared", _DIFFERENCE, {"target": f"{_METRICS}:OtherKey"}, "toy-something"),
    ("metric/smallest-frame", _DIFFERENCE, {"min_size": 8}, "frames of 7 px is"),
    ("metric/differentiable-if-claimed", _DIFFERENCE, {"differentiable": True}, "no method"),
    (
        "metric/differentiable-if-claimed",
        _DIFFERENCE,
        {"target": f"{_METRICS}:Flat", "differentiable": True},
        "is zero",
    ),
    (
        "metric/concurrent-if-claimed",
        _DIFFERENCE,
        {"target": f"{_METRICS}:Draws", "concurrent": True},
        "torch's global generator",
    ),
    ("dataset/ids-unique-stable", _SHAPES, {"target": f"{_DATASETS}:Twice"}, "twice"),
    ("dataset/ids-unique-stable", _SHAPES, {"target": f"{_DATASETS}:Shuffled"}, "another order"),
    ("dataset/labels-in-range", _SHAPES, {"target": f"{_DATASETS}:OffByOne"}, "8 classes"),
    ("dataset/fingerprint-stable", _SHAPES, {"target": f"{_DATASETS}:Changing"}, "frames"),
    (
        "dataset/fingerprint-stable",
        _SHAPES,
        {"target": f"{_DATASETS}:Drawing"},
        "numpy's global random",
    ),
    (
        "dataset/missing-file-typed-error",
        _SHAPES,
        {"target": f"{_DATASETS}:AnyId"},
        "the contract is KeyError",
    ),
    (
        "dataset/missing-file-typed-error",
        _SHAPES,
        {"target": f"{_DATASETS}:GoneFiles"},
        "not one of ours",
    ),
    ("dataset/subset-prefix", _SHAPES, {"target": f"{_DATASETS}:Twice"}, "twice"),
    ("plugin/specs-valid", _DIFFERENCE, {"summary": "Ends with a stop."}, "full stop"),
    ("plugin/specs-valid", _DESCENT, {"requires": ("not a requirement!",)}, "PEP 508"),
    ("plugin/specs-valid", _DESCENT, {"norms": frozenset({"l7"})}, "l7"),
    ("plugin/targets-import", _DESCENT, {"target": "vcr_core.nowhere:Nothing"}, "nowhere"),
    ("plugin/names-canonical", _DESCENT, {"name": "Not_Canonical"}, "not canonical"),
]


@pytest.mark.parametrize(
    ("check_id", "spec", "changes", "words"),
    CAUGHT,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(CAUGHT)],
)
def test_a_broken_component_is_caught(verdict, check_id, spec, changes, words):
    assert words in verdict(spec, check_id, **changes)


@pytest.mark.parametrize("target", ["FixedSize", "NeedsFourFrames"])
def test_an_exception_fails_the_check_too(verdict, target):
    if target == "FixedSize":
        with pytest.raises(ValueError, match="32 pixels"):
            verdict(_LINEAR, "model/any-resolution", target=f"{_MODELS}:FixedSize")
    else:
        with pytest.raises(IndexError):
            verdict(_DARKEN, "defense/accepts-short-clips", target=f"{_DEFENSES}:NeedsFourFrames")


def test_every_check_is_seen_to_fail():
    elsewhere = {
        "model/any-resolution", "defense/accepts-short-clips",  # above
        "plugin/imports-light", "plugin/hooks-known", "plugin/isolated",  # test_plugin_checks.py
        "executor/equals-inline", "executor/survives-crash", "executor/resumes",  # test_executor…
            "executor/several-runs",
    }  # fmt: skip
    assert {c.id for c in CHECKS} - elsewhere == {row[0] for row in CAUGHT}
