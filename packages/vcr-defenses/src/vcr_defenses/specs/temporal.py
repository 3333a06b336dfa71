"""Defenses that mix or move frames."""

from __future__ import annotations

from vcr_core import DefenseSpec

SPECS: tuple[DefenseSpec, ...] = (
    DefenseSpec(
        name="temporal-shuffle",
        summary="Frames in a locally disturbed order",
        target="vcr_defenses.temporal_shuffle:TemporalShuffle",
        params="vcr_defenses.params.temporal:TemporalShuffleParams",
        reference="https://arxiv.org/abs/2112.07921",
        tags=frozenset({"temporal", "transform", "vote"}),
        example="vcr run run.toml --set defense.name=temporal-shuffle --set defense.votes=10",
        stochastic=True,
        gradient="exact",
        preserves_time=False,
        cost="about 0.1 ms a frame of 224x224 for each vote, and a forward pass for each vote",
    ),
    DefenseSpec(
        name="temporal-median",
        summary="Median over nearby frames",
        target="vcr_defenses.temporal_median:TemporalMedian",
        params="vcr_defenses.params.temporal:TemporalMedianParams",
        reference="https://arxiv.org/abs/2610.08936",
        tags=frozenset({"temporal", "transform"}),
        example="vcr run run.toml --set defense.name=temporal-median --set defense.window=5",
        gradient="exact",
        preserves_time=False,
        cost="about 0.3 ms a frame of 224x224",
    ),
    DefenseSpec(
        name="bilateral",
        summary="Bilateral filter over time",
        target="vcr_defenses.bilateral:Bilateral",
        params="vcr_defenses.params.temporal:BilateralParams",
        reference="https://doi.org/10.1109/ICCV.1998.710815",
        tags=frozenset({"temporal", "transform"}),
        example="vcr run run.toml --set defense.name=bilateral --set defense.radius=3",
        gradient="exact",
        preserves_time=False,
        cost="about 1.1 ms a frame of 224x224",
    ),
    DefenseSpec(
        name="domain-transform",
        summary="Recursive smoothing over time that stops at changes",
        target="vcr_defenses.domain_transform:DomainTransform",
        params="vcr_defenses.params.temporal:DomainTransformParams",
        reference="https://doi.org/10.1145/2010324.1964964",
        tags=frozenset({"temporal", "transform"}),
        example="vcr run run.toml --set defense.name=domain-transform "
        "--set defense.sigma_range=0.2",
        gradient="exact",
        preserves_time=False,
        cost="about 0.7 ms a frame of 224x224",
    ),
    DefenseSpec(
        name="temporal-subsample",
        summary="Fewer frames, filled up by interpolation",
        target="vcr_defenses.temporal_subsample:TemporalSubsample",
        params="vcr_defenses.params.temporal:TemporalSubsampleParams",
        tags=frozenset({"temporal", "transform", "vote"}),
        example="vcr run run.toml --set defense.name=temporal-subsample --set defense.stride=4",
        gradient="exact",
        preserves_time=False,
        cost="about 0.5 ms a frame of 224x224",
    ),
)
