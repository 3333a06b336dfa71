"""What `vcr` learns about its own core; imported on every command, so data only."""

from __future__ import annotations

from vcr_core.hookspecs import hookimpl
from vcr_core.specs import DatasetSpec, ExecutorSpec, PresetSource, ReporterSpec

_DATASETS = "vcr_core.datasets"
_PARAMS = "vcr_core.datasets.params"
_VIDEO = ("av>=18", "numpy>=1.26")
_ENGINE = "vcr-core[engine]"


@hookimpl
def vcr_register_datasets() -> list[DatasetSpec]:
    """Describe the datasets of the core."""
    return [
        DatasetSpec(
            name="motion",
            summary="Generated moving shapes, 16 motions; needs no files",
            target=f"{_DATASETS}.motion.dataset:MotionDataset",
            params=f"{_PARAMS}:MotionParams",
            requires=("numpy>=1.26",),
            extra=_ENGINE,
            label_space="",
            generated=True,
            example="vcr run --set dataset.name=motion --set model.name=tiny-r3d",
        ),
        DatasetSpec(
            name="folder",
            summary="One folder per class with video files inside, or videos without labels",
            target=f"{_DATASETS}.folder:FolderDataset",
            params=f"{_PARAMS}:FolderParams",
            requires=_VIDEO,
            extra=_ENGINE,
            example="vcr run my.toml --set dataset.name=folder --set paths.datasets.folder=videos",
        ),
        DatasetSpec(
            name="csv",
            summary="Video paths and labels from a CSV file",
            target=f"{_DATASETS}.csvlist:CsvDataset",
            params=f"{_PARAMS}:CsvParams",
            requires=_VIDEO,
            extra=_ENGINE,
            example="vcr run my.toml --set dataset.name=csv --set dataset.file=videos.csv",
        ),
        DatasetSpec(
            name="kinetics400",
            summary="Kinetics-400 in any of its usual folder layouts",
            target=f"{_DATASETS}.kinetics400:Kinetics400Dataset",
            params=f"{_PARAMS}:Kinetics400Params",
            requires=_VIDEO,
            extra=_ENGINE,
            label_space="kinetics400",
            reference="https://arxiv.org/abs/1705.06950",
            license="CC-BY-4.0",
            example="vcr run my.toml --set dataset.name=kinetics400 --set dataset.limit=100",
        ),
        DatasetSpec(
            name="ucf101",
            summary="UCF101 with its three official splits",
            target=f"{_DATASETS}.ucf101:Ucf101Dataset",
            params=f"{_PARAMS}:Ucf101Params",
            requires=_VIDEO,
            extra=_ENGINE,
            label_space="ucf101",
            reference="https://arxiv.org/abs/1212.0402",
            example="vcr run my.toml --set dataset.name=ucf101 --set dataset.limit=100",
        ),
        DatasetSpec(
            name="ssv2",
            summary="Something-Something v2 with its official JSON label files",
            target=f"{_DATASETS}.ssv2:Ssv2Dataset",
            params=f"{_PARAMS}:Ssv2Params",
            requires=_VIDEO,
            extra=_ENGINE,
            label_space="ssv2",
            reference="https://arxiv.org/abs/1706.04261",
            license="research use only",
            example="vcr run my.toml --set dataset.name=ssv2 --set dataset.limit=100",
        ),
    ]


@hookimpl
def vcr_register_executors() -> list[ExecutorSpec]:
    """Describe the ways of the core to run shards."""
    return [
        ExecutorSpec(
            name="inline",
            summary="Runs shards one after another in this process",
            target="vcr_core.executors.inline:InlineExecutor",
            tags=frozenset({"in-process"}),
            example="vcr run my.toml --set executor.name=inline",
        ),
        ExecutorSpec(
            name="process",
            summary="Runs shards in worker processes and restarts those that die",
            target="vcr_core.executors.process:ProcessExecutor",
            example="vcr run my.toml --set executor.name=process --set executor.workers=2",
        ),
        ExecutorSpec(
            name="slurm",
            summary="Submits shards as tasks of a Slurm job array and requeues what is left",
            target="vcr_core.executors.slurm_jobs:SlurmExecutor",
            params="vcr_core.executors.slurm_params:SlurmParams",
            requires=("submitit>=1.5",),
            extra="vcr-core[slurm]",
            reference="https://slurm.schedmd.com",
            remote=True,
            example="vcr sweep my.toml --set executor.name=slurm --set executor.workers=8",
        ),
        ExecutorSpec(
            name="ray",
            summary="Gives shards to actors of a Ray cluster, an existing or a local one",
            target="vcr_core.executors.ray_actors:RayExecutor",
            params="vcr_core.executors.ray_params:RayParams",
            requires=("ray>=2.40",),
            extra="vcr-core[ray]",
            reference="https://arxiv.org/abs/1712.05889",
            remote=True,
            example="vcr sweep my.toml --set executor.name=ray --set executor.address=auto",
        ),
    ]


@hookimpl
def vcr_register_reporters() -> list[ReporterSpec]:
    """Describe the ways of the core to show runs."""
    return [
        ReporterSpec(
            name="html",
            summary="One self-contained page with tables, frames and health flags",
            target="vcr_core.reporters.html:HtmlReporter",
            requires=("jinja2>=3.1", "pillow>=10"),
            extra="vcr-core[report]",
            format="html",
            example="vcr report results --format html",
        ),
        ReporterSpec(
            name="terminal",
            summary="A table for the terminal",
            target="vcr_core.reporters.terminal:TerminalReporter",
            format="terminal",
            example="vcr report results --format terminal",
        ),
        ReporterSpec(
            name="md",
            summary="Tables in Markdown",
            target="vcr_core.reporters.markdown:MarkdownReporter",
            format="md",
            example="vcr report results --format md",
        ),
        ReporterSpec(
            name="latex",
            summary="Tables for papers, defenses against attacks where there are any",
            target="vcr_core.reporters.latex:LatexReporter",
            format="latex",
            example="vcr report results --format latex",
        ),
        ReporterSpec(
            name="csv",
            summary="One row per run, comma-separated",
            target="vcr_core.reporters.table_csv:CsvReporter",
            format="csv",
            example="vcr report results --format csv",
        ),
    ]


@hookimpl
def vcr_register_presets() -> list[PresetSource]:
    """Name the folder of the core's presets."""
    return [PresetSource(package="vcr_core")]
