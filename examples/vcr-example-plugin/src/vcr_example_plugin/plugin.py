"""What `vcr` learns about this distribution; imported on every command, so data only."""

from __future__ import annotations

from vcr_core import AttackSpec, ClipSpec, DatasetSpec, DefenseSpec, MetricSpec, ModelSpec, hookimpl

vcr_plugin_api = 1


@hookimpl
def vcr_register_attacks() -> list[AttackSpec]:
    """Describe the attacks of this distribution."""
    return [
        AttackSpec(
            name="example-noise",
            summary="Random signs at the edge of the allowed ball",
            target="vcr_example_plugin.noise:Noise",
            params="vcr_example_plugin.params:NoiseParams",
            access="none",
            norms=frozenset({"linf"}),
            stochastic=True,
            example="vcr run run.toml --set attack.name=example-noise",
        )
    ]


@hookimpl
def vcr_register_defenses() -> list[DefenseSpec]:
    """Describe the defenses of this distribution."""
    return [
        DefenseSpec(
            name="example-average",
            summary="Moving average over neighbouring frames",
            target="vcr_example_plugin.average:Average",
            params="vcr_example_plugin.params:AverageParams",
            gradient="exact",
            example="vcr run run.toml --set defense.name=example-average",
        )
    ]


@hookimpl
def vcr_register_models() -> list[ModelSpec]:
    """Describe the models of this distribution."""
    return [
        ModelSpec(
            name="example-linear",
            summary="Names the primary colour that is strongest on average",
            target="vcr_example_plugin.linear:Linear",
            params="vcr_example_plugin.params:LinearParams",
            label_space="example-colours",
            num_classes=3,
            clip=ClipSpec(frames=4, stride=2, policy="center", size=32),
            example="vcr run run.toml --set model.name=example-linear",
        )
    ]


@hookimpl
def vcr_register_metrics() -> list[MetricSpec]:
    """Describe the metrics of this distribution."""
    return [
        MetricSpec(
            name="example-mae",
            summary="Mean absolute difference, as a fraction of the pixel range",
            target="vcr_example_plugin.mae:Mae",
            higher_is_better=False,
            identity_value=0.0,
            value_range=(0.0, 1.0),
            example="vcr run run.toml --set 'metrics.names=[\"example-mae\"]'",
        )
    ]


@hookimpl
def vcr_register_datasets() -> list[DatasetSpec]:
    """Describe the datasets of this distribution."""
    return [
        DatasetSpec(
            name="example-gradients",
            summary="Generated colour gradients that drift; needs no files",
            target="vcr_example_plugin.gradients:Gradients",
            params="vcr_example_plugin.params:GradientsParams",
            label_space="example-colours",
            generated=True,
            example="vcr run run.toml --set dataset.name=example-gradients",
        )
    ]
