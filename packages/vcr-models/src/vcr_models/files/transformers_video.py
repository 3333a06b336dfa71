"""Any video classifier of transformers, from a folder or the local Hugging Face cache."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from vcr_core.datasets.labels import kinetics400_names
from vcr_core.errors import ComponentUnavailable
from vcr_core.protocols import LabelSpace
from vcr_core.specs import ClipSpec

from vcr_models.files.checkpoint_folder import checkpoint_folder
from vcr_models.zoo.classifier import ZooClassifier
from vcr_models.zoo.front import Front
from vcr_models.zoo.libraries.transformers import Logits

if TYPE_CHECKING:
    from pathlib import Path

    from vcr_models.files.params import TransformersVideoParams

Three: TypeAlias = tuple[float, float, float]
WHO: Final = "transformers-video"


def build(params: TransformersVideoParams, weights: object) -> ZooClassifier:
    """Read the checkpoint and put it behind the contract.

    What is not given comes from the checkpoint: frames and size from its ``config.json``, pixel
    statistics from its ``preprocessor_config.json``, classes from ``id2label``.

    Raises:
        ComponentUnavailable: if the checkpoint is not here, is no video classifier, or does not say
            what is needed.
    """
    del weights
    folder = checkpoint_folder(params.checkpoint, params.revision, WHO)
    network = _network(folder)
    config = network.model.config
    size = params.size or _number(config, "image_size")
    frames = params.frames or _number(config, "num_frames")
    if not size or not frames:
        raise ComponentUnavailable(
            f"{WHO}: {folder} does not say how many frames or pixels it takes; set model.frames "
            "and model.size"
        )
    mean, std = params.mean, params.std
    if mean is None or std is None:
        said = _statistics(folder)
        mean, std = mean or said[0], std or said[1]
    clip = ClipSpec(
        frames=frames,
        stride=params.stride,
        clips=params.clips,
        crops=params.crops,
        policy=params.policy,
        size=size,
    )
    front = Front(params.resize or size, size, params.crops, mean, std)
    return ZooClassifier(network, _labels(config), clip, front, "NTCHW", params.checkpoint)


def _network(folder: Path) -> Logits:
    from transformers import AutoModelForVideoClassification

    try:
        model, report = AutoModelForVideoClassification.from_pretrained(
            folder, local_files_only=True, trust_remote_code=False, output_loading_info=True
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        text = str(error).strip().splitlines()[0][:200]
        raise ComponentUnavailable(
            f"{WHO}: {folder} cannot be read as a video classifier: {text}"
        ) from error
    wrong = {what: sorted(map(str, keys))[:4] for what, keys in report.items() if keys}
    if wrong:
        text = "; ".join(f"{what}: {', '.join(keys)}" for what, keys in wrong.items())
        raise ComponentUnavailable(f"{WHO}: the weights in {folder} do not fit: {text}")
    return Logits(model)


def _number(config: Any, name: str) -> int:
    value = getattr(config, name, 0)
    return int(value[0] if isinstance(value, list | tuple) else value or 0)


def _statistics(folder: Path) -> tuple[Three, Three]:
    for name in ("preprocessor_config.json", "video_preprocessor_config.json"):
        file = folder / name
        if file.is_file():
            said = json.loads(file.read_text(encoding="utf-8"))
            if said.get("image_mean") and said.get("image_std"):
                return _three(said["image_mean"]), _three(said["image_std"])
    raise ComponentUnavailable(
        f"{WHO}: {folder} has no preprocessor_config.json with image_mean and image_std; set "
        "model.mean and model.std"
    )


def _three(values: list[float]) -> Three:
    red, green, blue = values
    return (red, green, blue)


def _labels(config: Any) -> LabelSpace:
    """Return the classes of the checkpoint, known by an id where they are those of Kinetics-400."""
    names = tuple(str(config.id2label[number]) for number in sorted(config.id2label))
    known = kinetics400_names()
    if names == known:
        return LabelSpace("kinetics400", known)
    if all(name.startswith("LABEL_") for name in names):
        raise ComponentUnavailable(
            f"{WHO}: the checkpoint does not name its {len(names)} classes (id2label in its "
            "config.json)"
        )
    return LabelSpace("custom", names)
