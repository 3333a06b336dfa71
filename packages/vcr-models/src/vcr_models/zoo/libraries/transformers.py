"""transformers' video classifiers: they take ``[N, T, 3, H, W]`` and name their logits."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch import nn
from vcr_core.errors import ComponentUnavailable

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_models.zoo.catalog import Variant
    from vcr_models.zoo.params import ZooParams

CONFIGS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "VivitForVideoClassification": (
        "VivitConfig",
        {"image_size": 224, "num_frames": 32, "tubelet_size": [2, 16, 16]},
    ),
    "TimesformerForVideoClassification": (
        "TimesformerConfig",
        {"image_size": 224, "num_frames": 8, "attention_type": "divided_space_time"},
    ),
    # The library's norms have 1e-12 by default; those of the original have 1e-6.
    "VideoMAEForVideoClassification": (
        "VideoMAEConfig",
        {"image_size": 224, "num_frames": 16, "use_mean_pooling": True, "layer_norm_eps": 1e-6},
    ),
}


class Logits(nn.Module):
    """A transformers model that returns its logits."""

    model: Any

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits of ``[N, T, 3, H, W]``."""
        found: Tensor = self.model(pixel_values=clips).logits
        return found


def network(variant: Variant, size: int | None = None) -> nn.Module:
    """Return the network with random weights."""
    import transformers

    config_name, arguments = CONFIGS[variant.network]
    if size is not None:
        arguments = {**arguments, "image_size": size}
    config = getattr(transformers, config_name)(num_labels=variant.classes, **arguments)
    return Logits(getattr(transformers, variant.network)(config))


def load(network: nn.Module, variant: Variant, file: Path, params: ZooParams) -> None:
    """Fill a network from the file of the hub, in its old or its new names.

    The library renames old keys only where it reads a folder, so one is made around the file. A
    ``config.json`` beside the file counts.

    Raises:
        ComponentUnavailable: if a key is missing, unknown or of another shape.
    """
    del params
    model: Any = network.get_submodule("model")
    kind = type(model)
    suffix = "model.safetensors" if file.suffix == ".safetensors" else "pytorch_model.bin"
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / suffix).symlink_to(file.absolute())
        config = model.config
        beside = file.with_name("config.json")
        if beside.is_file():
            config = type(config).from_json_file(beside)
        config.save_pretrained(folder)
        filled, report = kind.from_pretrained(
            folder, local_files_only=True, output_loading_info=True
        )
    wrong = {what: keys for what, keys in report.items() if keys}
    if wrong:
        text = "; ".join(f"{what}: {sorted(map(str, keys))[:4]}" for what, keys in wrong.items())
        raise ComponentUnavailable(f"{file} does not fit {variant.network}: {text}")
    network.add_module("model", filled)
