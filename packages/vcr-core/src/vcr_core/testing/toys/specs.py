"""Specs of the toys, as data; ``TOYS`` are the sound ones."""

from __future__ import annotations

from vcr_core.specs import AttackSpec, ClipSpec, DatasetSpec, DefenseSpec, MetricSpec, ModelSpec

_HERE = "vcr_core.testing.toys"

TOY_LINEAR = ModelSpec(
    name="toy-linear",
    summary="A linear classifier whose optimal attack is known in closed form",
    target=f"{_HERE}.linear:make_linear",
    label_space="toy-quadrants",
    num_classes=4,
    clip=ClipSpec(frames=4, size=32),
)
TOY_CNN = ModelSpec(
    name="toy-cnn",
    summary="A 3-D CNN with closed-form weights for the toy-shapes dataset",
    target=f"{_HERE}.cnn:make_cnn",
    label_space="toy-directions",
    num_classes=8,
    clip=ClipSpec(frames=4, stride=2, clips=2, light_clips=1, size=32),
)
TOY_BATCH_NORM = ModelSpec(
    name="toy-batch-norm",
    summary="A frozen network with batch normalisation",
    target=f"{_HERE}.models:make_batch_norm",
    label_space="toy-directions",
    num_classes=8,
    clip=ClipSpec(frames=4, size=32),
)
TOY_DESCENT = AttackSpec(
    name="toy-descent",
    summary="Ten signed gradient steps",
    target=f"{_HERE}.attacks:SignDescent",
    access="white-box",
    norms=frozenset({"linf"}),
    targeted=True,
)
TOY_SEARCH = AttackSpec(
    name="toy-search",
    summary="Random search with quadrant-wise signs",
    target=f"{_HERE}.attacks:BandSearch",
    access="score",
    norms=frozenset({"linf"}),
    targeted=True,
    stochastic=True,
)
TOY_GRAIN = AttackSpec(
    name="toy-grain",
    summary="Random signs at the radius",
    target=f"{_HERE}.attacks:Grain",
    access="none",
    norms=frozenset({"linf"}),
    stochastic=True,
)
TOY_DROP_ONE = AttackSpec(
    name="toy-drop-one",
    summary="One frame of the whole video left out",
    target=f"{_HERE}.transforms:DropOne",
    access="none",
    norms=frozenset({"none"}),
    stage="source",
    stochastic=True,
)
TOY_ONE_LATER = AttackSpec(
    name="toy-one-later",
    summary="The sampling, one frame later",
    target=f"{_HERE}.transforms:OneLater",
    access="none",
    norms=frozenset({"none"}),
    stage="plan",
)
TOY_UNIVERSAL = AttackSpec(
    name="toy-universal",
    summary="One colour shift for all videos, prepared offline",
    target=f"{_HERE}.attacks:Universal",
    access="score",
    norms=frozenset({"linf"}),
    untargeted=True,
    prepares=True,
)
TOY_DARKEN = DefenseSpec(
    name="toy-darken",
    summary="Nine tenths of the brightness",
    target=f"{_HERE}.defenses:Darken",
)
TOY_QUANTISE = DefenseSpec(
    name="toy-quantise",
    summary="Sixteen levels, with the identity as a surrogate gradient",
    target=f"{_HERE}.defenses:Quantise",
    gradient="surrogate",
)
TOY_OPAQUE = DefenseSpec(
    name="toy-opaque",
    summary="Sixteen levels, without a gradient",
    target=f"{_HERE}.defenses:Opaque",
    gradient="none",
)
TOY_NOISE = DefenseSpec(
    name="toy-noise",
    summary="Gaussian noise that every video draws for itself",
    target=f"{_HERE}.defenses:Grain",
    stochastic=True,
)
TOY_VOTE = DefenseSpec(
    name="toy-vote",
    summary="The mean over a clip and its mirror image",
    target=f"{_HERE}.defenses:Vote",
    defense_kind="smooth",
)
TOY_DIFFERENCE = MetricSpec(
    name="toy-difference",
    summary="Mean absolute difference in 8-bit levels",
    target=f"{_HERE}.metrics:MeanDifference",
    higher_is_better=False,
    unit="levels",
    identity_value=0.0,
    value_range=(0.0, 255.0),
)
TOY_LOG_ERROR = MetricSpec(
    name="toy-log-error",
    summary="Minus the logarithm of the squared error",
    target=f"{_HERE}.metrics:LogError",
    higher_is_better=True,
)
TOY_SHAPES = DatasetSpec(
    name="toy-shapes",
    summary="Moving shapes, 8 directions, 24 videos",
    target=f"{_HERE}.shapes:ShapesDataset",
    label_space="toy-directions",
    generated=True,
)

TOY_CRASH = AttackSpec(
    name="toy-crash",
    summary="toy-descent, but the process dies once at one video",
    target=f"{_HERE}.broken.crash:Crash",
    access="white-box",
    norms=frozenset({"linf"}),
)

TOYS = (
    TOY_LINEAR, TOY_CNN, TOY_BATCH_NORM, TOY_DESCENT, TOY_SEARCH, TOY_GRAIN, TOY_DROP_ONE,
    TOY_ONE_LATER, TOY_UNIVERSAL,
    TOY_DARKEN, TOY_QUANTISE, TOY_OPAQUE, TOY_NOISE, TOY_VOTE, TOY_DIFFERENCE, TOY_LOG_ERROR,
    TOY_SHAPES,
)  # fmt: skip
