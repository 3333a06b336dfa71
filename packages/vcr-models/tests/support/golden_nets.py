"""The networks of the golden fixtures, built from the keyword arguments that the fixtures state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from vcr_models.nets.actionclip import ActionClip
from vcr_models.nets.clip_blocks import ImageShape, TextShape
from vcr_models.nets.ila import Ila
from vcr_models.nets.internvideo2 import InternVideo2, InternVideo2Shape
from vcr_models.nets.onepeace import OnePeace, OnePeaceShape
from vcr_models.nets.tadaformer import TAdaFormer, TAdaFormerShape
from vcr_models.nets.trn import Trn, TrnShape
from vcr_models.nets.uniformerv2 import UniFormerV2, UniFormerV2Shape
from vcr_models.nets.video_vit import VideoViT, VideoViTShape

Facts = dict[str, Any]

SIZES = {
    "s": {"width": 384, "depth": 12, "heads": 6, "mlp": 1536},
    "b": {"width": 768, "depth": 12, "heads": 12, "mlp": 3072},
    "l": {"width": 1024, "depth": 24, "heads": 16, "mlp": 4096},
    "h": {"width": 1280, "depth": 32, "heads": 16, "mlp": 5120},
    "g": {"width": 1408, "depth": 40, "heads": 16, "mlp": 6144, "patch": 14},
}


def video_vit(facts: Facts) -> nn.Module:
    k = facts["kwargs"]
    if isinstance(k, str):
        return VideoViT(VideoViTShape(**WORDS[facts["id"]]))
    if "embed_dim" not in k:
        size = next(size for size in SIZES if f"_vit_{size}1" in facts["id"])
        frames, tubelet = k["all_frames"], k["tubelet_size"]
        table = "learned" if "pos_embed" in facts["state_dict"] else "fixed"
        sizes = SIZES[size] | {"frames": frames, "tubelet": tubelet, "table": table}
        return VideoViT(VideoViTShape(classes=k["num_classes"], **sizes))
    return VideoViT(
        VideoViTShape(
            width=k["embed_dim"],
            depth=k["depth"],
            heads=k["num_heads"],
            patch=k["patch_size"],
            mlp=int(k["embed_dim"] * k["mlp_ratio"]),
            frames=k["all_frames"],
            tubelet=k["tubelet_size"],
            size=k["img_size"],
            classes=k["num_classes"],
            table="learned" if "pos_embed" in facts["state_dict"] else "fixed",
            pooled=k["use_mean_pooling"],
            layer_scale="init_values" in k,
            cosine=k.get("cos_attn", False),
        )
    )


def internvideo2(facts: Facts) -> nn.Module:
    k = facts["kwargs"]
    if isinstance(k, str):
        return InternVideo2(InternVideo2Shape(gelu="none", **WORDS[facts["id"]]))
    if "embed_dim" not in k:
        size = {"1": "g", "s": "s", "b": "b", "l": "l"}[facts["id"].split("_")[1][0]]
        sizes = {key: value for key, value in SIZES[size].items() if key != "patch"}
        shape = InternVideo2Shape(frames=k["num_frames"], classes=k["num_classes"], **sizes)
        return InternVideo2(shape)
    return InternVideo2(
        InternVideo2Shape(
            width=k["embed_dim"],
            depth=k["depth"],
            heads=k["num_heads"],
            patch=k["patch_size"],
            mlp=int(k["embed_dim"] * k["mlp_ratio"]),
            frames=k["num_frames"],
            size=k["img_size"],
            classes=k["num_classes"],
            pool_heads=k["attn_pool_num_heads"],
            pooled=k["clip_embed_dim"],
            separate_positions=k.get("sep_pos_embed", False),
            gelu="none",
        )
    )


def towers(k: Facts) -> tuple[ImageShape, TextShape]:
    image = ImageShape(
        width=k["vision_width"],
        depth=k["vision_layers"],
        patch=k["vision_patch_size"],
        size=k["image_resolution"],
        output=k["embed_dim"],
    )
    text = TextShape(
        width=k["transformer_width"],
        depth=k["transformer_layers"],
        heads=k["transformer_heads"],
        context=k["context_length"],
        vocabulary=k["vocab_size"],
        output=k["embed_dim"],
    )
    return image, text


def texts(facts: Facts, context: int) -> torch.Tensor:
    rows = facts.get("text_tokens")
    return torch.tensor(rows, device="cpu") if rows else torch.zeros((1, context), dtype=torch.long)


def actionclip(facts: Facts) -> nn.Module:
    k = facts["kwargs"]
    rows = texts(facts, k["clip"]["context_length"])
    official = "num_adapter_segs" not in k
    return ActionClip(
        *towers(k["clip"]),
        frames=8 if official else k["num_adapter_segs"],
        positions=k["clip"]["context_length"] if official else 0,
        texts=rows.unflatten(0, (-1, 17)) if len(rows) > 1 else rows[None],
        adapter_depth=k.get("num_adapter_layers", 6),
        layout="official" if official else "mmaction2",
    )


def ila(facts: Facts) -> nn.Module:
    k = facts["kwargs"]
    return Ila(
        *towers(k),
        frames=k["T"],
        texts=texts(facts, k["context_length"]),
        prompt_layers=k["prompts_layers"],
        mixing_layers=k["mit_layers"],
        disturbed=facts["id"] == "ila_train_offsets",
    )


def tadaformer(facts: Facts) -> nn.Module:
    k, head = facts["kwargs"]["BACKBONE"], facts["kwargs"]["HEAD"]
    return TAdaFormer(
        TAdaFormerShape(
            width=k["NUM_FEATURES"],
            depth=k["DEPTH"],
            heads=k["NUM_HEADS"],
            patch=k["PATCH_SIZE"],
            size=k["INPUT_RES"],
            frames=facts["kwargs"]["DATA"]["NUM_INPUT_FRAMES"],
            classes=head["NUM_CLASSES"],
            double=k["DOUBLE_TADA"],
        )
    )


def uniformerv2(facts: Facts) -> nn.Module:
    k = facts["kwargs"]
    layout = "official" if "official" in facts["id"] else "mmaction2"
    if "width" not in k:
        large = {"width": 1024, "depth": 24, "heads": 16, "patch": 14}
        sizes: Facts = large | {"gathered": (20, 21, 22, 23)} if "l14" in facts["id"] else {}
        return UniFormerV2(UniFormerV2Shape(layout=layout, **sizes))
    return UniFormerV2(
        UniFormerV2Shape(
            width=k["width"],
            depth=k["layers"],
            heads=k["heads"],
            patch=k["patch_size"],
            frames=k["t_size"],
            size=k["input_resolution"],
            classes=k["num_classes"],
            gathered=tuple(k["return_list"]),
            local=not k["no_lmhra"],
            halve=k["temporal_downsample"],
            layout=layout,
        )
    )


def onepeace(facts: Facts) -> nn.Module:
    k = facts["kwargs"]
    return OnePeace(
        OnePeaceShape(
            width=k["embed_dim"],
            depth=k["layers"],
            heads=k["attention_heads"],
            inner=k["ffn_embed_dim"],
            frames=k["num_frames"],
            grid=k["bucket_size"],
            classes=k["num_classes"],
            bias_per_layer=k["rp_bias"],
            adapters=k.get("num_tadapter", 1),
        )
    )


def trn(facts: Facts) -> nn.Module:
    k = facts["kwargs"]
    single = k["relation_type"] == "TRN"
    shape = TrnShape(
        depth=k["depth"],
        classes=k["num_classes"],
        frames=k["num_segments"],
        hidden=k["hidden_dim"],
        scales="single" if single else "multi",
        chosen="first",
    )
    return Trn(shape)


WORDS: dict[str, Facts] = {
    "umt_vit_l16": SIZES["l"]
    | {"size": 64, "depth": 2, "frames": 8, "tubelet": 1, "classes": 17, "table": "learned"},
    "videomaev2_vit_g14": SIZES["g"]
    | {"size": 56, "depth": 2, "frames": 4, "tubelet": 2, "classes": 17},
    "internvideo2_1b_p14": SIZES["g"] | {"size": 56, "depth": 2, "frames": 4, "classes": 17},
    "internvideo2_s14_k400_f8": SIZES["s"] | {"frames": 8},
    "internvideo_vit_b16_k400": SIZES["b"] | {},
    "umt_vit_b16_k400_f8": SIZES["b"] | {"frames": 8, "tubelet": 1},
}
"""Networks that a fixture describes in words."""

BUILDERS: dict[str, Callable[[Facts], nn.Module]] = {
    "actionclip": actionclip,
    "amd": video_vit,
    "ila": ila,
    "internvideo": video_vit,
    "internvideo2": internvideo2,
    "onepeace": onepeace,
    "tadaformer": tadaformer,
    "trn": trn,
    "umt": video_vit,
    "uniformerv2": uniformerv2,
    "videomae": video_vit,
    "videomaev2": video_vit,
}
"""Builders by the first part of a fixture's id."""


def build(facts: Facts) -> nn.Module:
    return BUILDERS[facts["id"].partition("_")[0]](facts)
