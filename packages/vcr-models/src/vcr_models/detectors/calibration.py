"""Files of fitted thresholds and weights of ``tamper-baseline``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta, Struct
from vcr_core.errors import ConfigError

from vcr_models.detectors.decision import Logistic, Rules
from vcr_models.detectors.names import LABELS, ORIGINAL
from vcr_models.detectors.scores import SCORES

Positive = Annotated[float, Meta(gt=0)]


class FittedOn(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What a file was fitted on.

    Attributes:
        dataset: the dataset's parameters, with its name.
        split: of the dataset.
        sources: number of recordings.
        videos: number of videos.
        sha256: hash of the sorted ids of the recordings.
    """

    dataset: dict[str, Any]
    split: str
    sources: int
    videos: int
    sha256: str


class ThresholdFile(Struct, forbid_unknown_fields=True, frozen=True, tag_field="kind",
                    tag="thresholds", kw_only=True):  # fmt: skip
    """Thresholds by effect."""

    schema: Literal[1] = 1
    thresholds: dict[str, Positive]
    fitted_on: FittedOn


class LogisticFile(Struct, forbid_unknown_fields=True, frozen=True, tag_field="kind",
                   tag="logistic", kw_only=True):  # fmt: skip
    """A linear model of the features; see :class:`vcr_models.detectors.decision.Logistic`."""

    schema: Literal[1] = 1
    classes: list[str]
    mean: list[float]
    scale: list[Positive]
    weights: list[list[float]]
    bias: list[float]
    fitted_on: FittedOn


def read_calibration(content: bytes, name: str) -> Rules | Logistic:
    """Return what a file says.

    Args:
        content: of the file.
        name: of the file, for messages.

    Raises:
        ConfigError: naming the file and what is wrong with it.
    """
    try:
        file = msgspec.json.decode(content, type=ThresholdFile | LogisticFile)
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise ConfigError(f"{name}: no calibration of tamper-baseline: {error}") from error
    if isinstance(file, ThresholdFile):
        _same(name, "thresholds", set(file.thresholds), set(SCORES))
        return Rules(file.thresholds)
    known = set(LABELS.names)
    strange = [c for c in file.classes if c not in known]
    if strange or ORIGINAL not in file.classes or len(set(file.classes)) < len(file.classes):
        raise ConfigError(f"{name}: classes: found {file.classes}; allowed: {', '.join(known)}")
    width = len(SCORES)
    weights, bias = np.asarray(file.weights), np.asarray(file.bias)
    shapes = (np.shape(file.mean), np.shape(file.scale), weights.shape, bias.shape)
    count = len(file.classes)
    if shapes != ((width,), (width,), (count, width), (count,)):
        raise ConfigError(
            f"{name}: mean, scale, weights and bias have shapes {shapes}; needed are {width} "
            f"features and {count} classes"
        )
    return Logistic(
        tuple(file.classes), np.asarray(file.mean), np.asarray(file.scale), weights, bias
    )


def read_calibration_file(path: str) -> Rules | Logistic:
    """Return what a user's file says.

    Raises:
        ConfigError: if it cannot be read or is wrong.
    """
    try:
        content = Path(path).expanduser().read_bytes()
    except OSError as error:
        raise ConfigError(f"model.calibration: {path} cannot be read: {error.strerror}") from error
    return read_calibration(content, path)


def to_json(file: ThresholdFile | LogisticFile) -> str:
    """Return a file's text, with one line for each key."""
    plain = json.loads(msgspec.json.encode(file))
    return json.dumps(plain, indent=1) + "\n"


def _same(name: str, key: str, found: set[str], wanted: set[str]) -> None:
    if found != wanted:
        raise ConfigError(
            f"{name}: {key}: found {', '.join(sorted(found))}; needed: {', '.join(sorted(wanted))}"
        )
