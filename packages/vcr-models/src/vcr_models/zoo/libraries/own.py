"""Networks of ``vcr_models.nets``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from vcr_models.nets.actionclip import TEMPLATES, ActionClip
from vcr_models.nets.clip_blocks import ImageShape, TextShape
from vcr_models.nets.clip_zeroshot import ZeroShotClip
from vcr_models.nets.ila import Ila
from vcr_models.nets.internvideo2 import InternVideo2, InternVideo2Shape, resized_positions
from vcr_models.nets.onepeace import OnePeace, OnePeaceShape
from vcr_models.nets.tadaformer import TAdaFormer, TAdaFormerShape
from vcr_models.nets.trn import Trn, TrnShape
from vcr_models.nets.uniformerv2 import UniFormerV2, UniFormerV2Shape
from vcr_models.nets.video_vit import VideoViT, VideoViTShape, resized_table, sine_table
from vcr_models.zoo.labels import label_space, videomaev2_rows
from vcr_models.zoo.state import load_strictly, read_state, renamed_from_mmaction
from vcr_models.zoo.text_cache import known_texts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from torch import Tensor, nn

    from vcr_models.zoo.catalog import Variant
    from vcr_models.zoo.params import ZooParams

ZEROSHOT = "a video of a person {}"


def network(variant: Variant, size: int | None = None) -> nn.Module:
    """Return the network on the meta device; :func:`load` gives it memory and weights."""
    with torch.device("meta"):
        return _NETWORKS[variant.network](variant, dict(variant.arguments), size or variant.size)


def load(network: nn.Module, variant: Variant, file: Path, params: ZooParams) -> None:
    """Fill a network from a file of the official layout, or of mmaction2's where that is named."""
    roots = variant.roots
    if isinstance(network, VideoViT):
        # The same network is published under several roofs; a file of any of them fits.
        roots = tuple(dict.fromkeys((*roots, "state_dict", "module", "model")))
    state = read_state(file, roots, trust_pickle=params.trust_pickle)
    rename: Callable[[str], str] | None = None
    spare: frozenset[str] = frozenset()
    if variant.names == "mmaction2":
        rename = renamed_from_mmaction
    if isinstance(network, VideoViT):
        spare = frozenset({"pos_embed"})
        state = _kinetics_rows(state, network)
    elif isinstance(network, InternVideo2):
        _other_frames(state, "pos_embed", network)
    elif isinstance(network, OnePeace):
        state = _onepeace(state, network)
    elif isinstance(network, ZeroShotClip):
        spare = frozenset({"input_resolution", "context_length", "vocab_size"})
        state = {key: value for key, value in state.items() if key not in spare}
    load_strictly(network, state, file, rename=rename, spare=spare, precision=params.precision)
    if isinstance(network, ActionClip):
        known_texts(network.texts, network.tower, file)
    elif isinstance(network, Ila | ZeroShotClip):
        known_texts(network.texts, network, file)


def _video_vit(variant: Variant, arguments: dict[str, Any], size: int) -> VideoViT:
    arguments.setdefault("frames", variant.frames)
    shape = VideoViTShape(classes=variant.classes, **{**arguments, "size": size})
    made = VideoViT(shape)
    if variant.component == "internvideo" and (size, shape.frames) != (224, 16):
        # Its official class makes the table for 224 pixels and 16 frames and resamples it.
        side = 224 // shape.patch
        plain = sine_table(8 * side * side, shape.width)
        made.pos_embed = resized_table(plain, (8, side, side), shape.grid)
    elif variant.component == "umt" and shape.table == "fixed" and size != 224:
        side = 224 // shape.patch
        plain = sine_table(8 * side * side, shape.width)
        made.pos_embed = resized_table(plain, (8, side, side), shape.grid)
    return made


def _internvideo2(variant: Variant, arguments: dict[str, Any], size: int) -> InternVideo2:
    return InternVideo2(InternVideo2Shape(classes=variant.classes, size=size, **arguments))


def _trn(variant: Variant, arguments: dict[str, Any], size: int) -> Trn:
    del size
    return Trn(TrnShape(classes=variant.classes, **arguments))


def _uniformerv2(variant: Variant, arguments: dict[str, Any], size: int) -> UniFormerV2:
    return UniFormerV2(UniFormerV2Shape(classes=variant.classes, size=size, **arguments))


def _tadaformer(variant: Variant, arguments: dict[str, Any], size: int) -> TAdaFormer:
    return TAdaFormer(TAdaFormerShape(classes=variant.classes, size=size, **arguments))


def _onepeace_network(variant: Variant, arguments: dict[str, Any], size: int) -> OnePeace:
    return OnePeace(OnePeaceShape(classes=variant.classes, grid=size // 16, **arguments))


def _actionclip(variant: Variant, arguments: dict[str, Any], size: int) -> ActionClip:
    names = label_space(variant.label_space).names
    with torch.device("cpu"):
        texts = torch.stack([_tokens([t.format(n) for n in names]) for t in TEMPLATES])
    image = ImageShape(patch=arguments["patch"], size=size)
    return ActionClip(image, TextShape(), frames=arguments["frames"], texts=texts)


def _ila(variant: Variant, arguments: dict[str, Any], size: int) -> Ila:
    with torch.device("cpu"):
        texts = _tokens(list(label_space(variant.label_space).names))
    image = ImageShape(patch=arguments["patch"], size=size)
    return Ila(image, TextShape(), frames=arguments["frames"], texts=texts)


def _zeroshot(variant: Variant, arguments: dict[str, Any], size: int) -> ZeroShotClip:
    names = label_space(variant.label_space).names
    with torch.device("cpu"):
        texts = _tokens([ZEROSHOT.format(name) for name in names])
    image = ImageShape(patch=arguments["patch"], size=size)
    return ZeroShotClip(image, TextShape(), texts)


def _tokens(texts: list[str]) -> Tensor:
    """Return token rows ``[len(texts), 77]`` of CLIP's vocabulary, which open_clip ships."""
    import open_clip

    rows: Tensor = open_clip.get_tokenizer("ViT-B-16-quickgelu")(texts)
    return rows


_NETWORKS: dict[str, Callable[[Variant, dict[str, Any], int], nn.Module]] = {
    "video-vit": _video_vit,
    "internvideo2": _internvideo2,
    "tadaformer": _tadaformer,
    "trn": _trn,
    "uniformerv2": _uniformerv2,
    "onepeace": _onepeace_network,
    "actionclip": _actionclip,
    "ila": _ila,
    "clip-zeroshot": _zeroshot,
}


def _kinetics_rows(state: dict[str, Tensor], network: VideoViT) -> dict[str, Tensor]:
    """Take the Kinetics-400 rows of a head that VideoMAE V2 published for 710 classes."""
    heads = [key for key in state if key.rsplit("head.", 1)[-1] in ("weight", "bias")]
    for key in heads:
        if "head" in key and state[key].shape[0] == 710 and network.shape.classes == 400:
            state[key] = state[key][videomaev2_rows()]
    return state


def _other_frames(state: dict[str, Tensor], key: str, network: InternVideo2) -> None:
    """Resample positions of a file that was made for another number of frames."""
    shape = network.shape
    places = (shape.size // shape.patch) ** 2
    for name in [k for k in state if k.removeprefix("module.") == key]:
        if state[name].shape[1] not in (1 + shape.frames * places,):
            state[name] = resized_positions(state[name], shape.frames, places)


def _onepeace(state: dict[str, Tensor], network: OnePeace) -> dict[str, Tensor]:
    """Accept other names of the adapters and a table for another number of frames."""
    renamed: dict[str, Tensor] = {}
    for key, value in state.items():
        for part in ("S_Adapter", "T_Adapter", "MLP_Adapter"):
            for layer in ("fc1", "fc2"):
                key = key.replace(f"{part.lower()}.{layer}", f"{part}.D_{layer}")
        renamed[key] = value
    name = "backbone.image_adapter.temporal_embedding"
    table = renamed.get(name)
    if table is not None and table.shape[1] != network.shape.frames:
        line = torch.nn.functional.interpolate(
            table.transpose(1, 2), network.shape.frames, mode="linear", align_corners=False
        )
        renamed[name] = line.transpose(1, 2)
    return renamed
