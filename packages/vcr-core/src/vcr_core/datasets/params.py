"""Parameters of the core's datasets; msgspec only, so that a run file is checked without torch."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

OnError = Literal["raise", "truncate"]

Root = Annotated[str, Meta(extra={"path": True}, description="folder that holds the videos")]
ManifestFile = Annotated[
    str,
    Meta(extra={"path": True}, description="subset manifest: these videos, with their hashes"),
]
OptionalManifest = ManifestFile | None
DamagedFiles = Annotated[
    OnError,
    Meta(description="a video that fails after some frames: an error, or the shorter video"),
]


class FileParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What all datasets of files take."""

    root: Root = ""
    manifest: OptionalManifest = None
    on_error: DamagedFiles = "raise"


class FolderParams(FileParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """``root/<class>/<file>``, or videos without labels right in the root."""


class CsvParams(FileParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """A list with the columns ``path``, ``label`` and, if wanted, ``id`` and ``split``."""

    file: Annotated[str, Meta(extra={"path": True}, description="the CSV file")]
    classes: Annotated[
        Annotated[str, Meta(extra={"path": True})] | None,
        Meta(description="file with all class names in order, one a line; else those of the list"),
    ] = None
    label_kind: Annotated[
        Literal["name", "index"],
        Meta(description="whether the label column holds names or positions in the classes file"),
    ] = "name"
    split: Annotated[
        str | None, Meta(description="take only rows with this in their split column")
    ] = None


class Kinetics400Params(FileParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Kinetics-400 files at any depth below the root."""

    split: Literal["train", "val", "test"] = "val"
    annotations: Annotated[
        Annotated[str, Meta(extra={"path": True})] | None,
        Meta(
            description="official CSV, or a list of 'path index' lines; else <split>.csv below "
            "the root, else the names of the folders"
        ),
    ] = None


class Ucf101Params(FileParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """UCF101 with one of its three official splits."""

    split: Literal["train", "test"] = "test"
    fold: Annotated[int, Meta(ge=1, le=3, description="which of the three official splits")] = 1
    annotations: Annotated[
        Annotated[str, Meta(extra={"path": True})] | None,
        Meta(description="folder with classInd.txt and the split lists; else near the root"),
    ] = None


class Ssv2Params(FileParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Something-Something v2; its test split has no public labels."""

    split: Literal["train", "validation"] = "validation"
    annotations: Annotated[
        Annotated[str, Meta(extra={"path": True})] | None,
        Meta(description="folder with the official JSON files; else near the root"),
    ] = None


class MotionParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Generated clips of moving shapes."""

    split: Literal["train", "val", "test"] = "test"
    labels: Annotated[
        Literal["motion", "appearance", "joint"],
        Meta(description="what the classes are: 16 motions, 8 shapes, or their 128 pairs"),
    ] = "motion"
    frames: Annotated[int, Meta(ge=2, le=32, description="frames a clip")] = 16
    size: Annotated[int, Meta(ge=16, le=112, description="side of a frame in pixels")] = 64
    base_seed: Annotated[int, Meta(ge=0, description="seed of the whole dataset")] = 0
    hardness: Annotated[
        float, Meta(ge=0, description="factor on camera jitter, gain drift and sensor noise")
    ] = 1.0
    videos: Annotated[
        Annotated[int, Meta(ge=1)] | None, Meta(description="number of clips; else the split's own")
    ] = None
