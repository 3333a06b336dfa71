"""The variants of the zoo and the specs that are made of them; imported on every command.

A table of ``variants.toml`` has these keys:

``component``, ``variant``  public name ``component.variant``; the first is the default
``library``                 who builds the network: a module of ``zoo/libraries``
``network``                 what the library knows it by: a builder, a configuration file, a class
``arguments``               what the builder is called with
``names``                   layout of the file's keys where it is not that of the network
``roots``                   keys of the checkpoint under which the weights lie
``url``, ``mirrors``        where the file is published
``filename``                name on disk where the address has no telling one
``sha256``                  its hash, or how that begins
``license``                 of the weights
``label_space``, ``classes``  classes of the head; Kinetics-400 where nothing is said
``frames``, ``stride``, ``clips``, ``policy``  what is sampled, see ``vcr_core.video.sampling``
``resize``, ``size``, ``crops``  short side (or height and width), side of the crop, number of crops
``mean``, ``std``           pixel statistics on the [0, 1] scale
``layout``                  order of axes that the network takes
``top1``, ``millions``, ``gflops``  as published: accuracy in %, parameters, multiply-adds of a view
``note``                    what else one should know
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final

from vcr_core.specs import ClipSpec, ModelSpec, SamplingPolicy, WeightSpec

from vcr_models.zoo.families import FAMILIES

REQUIRES: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "mmaction2": (
        (
            "mmaction2==1.2.0",
            "mmcv-lite>=2.1.0,<2.2.0",
            "mmengine>=0.10.7,<1",
            "importlib-metadata",
        ),
        "vcr-models[mmaction2]",
    ),
    "pytorchvideo": (("pytorchvideo==0.1.5",), "vcr-models[pytorchvideo]"),
    "torchvision": (("torchvision>=0.17",), "vcr-models[torchvision]"),
    "transformers": (("transformers>=4.57",), "vcr-models[transformers]"),
    "own": ((), ""),
    "text": (("open-clip-torch>=3.3",), "vcr-models[clip]"),
}
"""Requirements by library, and the extra that brings them."""

READS_TEXT: Final = frozenset({"actionclip", "ila", "clip-zeroshot"})
"""Networks whose classes are texts, so that they need a tokenizer."""

UNVERIFIED: Final = "no published file was at hand: keys and shapes are those of the official class"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One set of weights; see the top of this module for the fields."""

    component: str
    variant: str
    library: str
    network: str
    arguments: dict[str, Any] = field(default_factory=dict)
    names: str = ""
    roots: tuple[str, ...] = ()
    url: str
    mirrors: tuple[str, ...] = ()
    filename: str = ""
    sha256: str = ""
    megabytes: float = 0.0
    license: str = ""
    label_space: str = "kinetics400"
    classes: int = 400
    frames: int
    stride: int
    clips: int
    crops: int
    policy: SamplingPolicy
    resize: int | tuple[int, int]
    size: int
    mean: tuple[float, float, float]
    std: tuple[float, float, float]
    layout: str
    top1: float | None = None
    millions: float | None = None
    gflops: float | None = None
    note: str = ""

    @property
    def ref(self) -> str:
        """``component.variant``."""
        return f"{self.component}.{self.variant}"

    @property
    def clip(self) -> ClipSpec:
        """What is sampled from a video."""
        return ClipSpec(
            frames=self.frames,
            stride=self.stride,
            clips=self.clips,
            crops=self.crops,
            policy=self.policy,
            end="clamp" if self.policy == "every_stride" else "loop",
            size=self.size,
        )

    @property
    def needs(self) -> tuple[tuple[str, ...], str]:
        """Requirements and the extra that brings them."""
        return REQUIRES["text" if self.network in READS_TEXT else self.library]


@cache
def catalog() -> dict[str, Variant]:
    """Return every variant by its public name."""
    text = files("vcr_models").joinpath("zoo", "variants.toml").read_text(encoding="utf-8")
    made = [Variant(**_frozen(table)) for table in tomllib.loads(text)["variant"]]
    return {variant.ref: variant for variant in made}


def _frozen(table: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in table.items()}


def specs() -> list[ModelSpec]:
    """Return one spec a component, its variants as sets of weights."""
    members: dict[str, list[Variant]] = {}
    for variant in catalog().values():
        members.setdefault(variant.component, []).append(variant)
    return [_spec(name, variants) for name, variants in members.items()]


def _spec(name: str, variants: list[Variant]) -> ModelSpec:
    first, about = variants[0], FAMILIES[name]
    return ModelSpec(
        name=name,
        summary=about.summary,
        target="vcr_models.zoo.build:build",
        unfilled="vcr_models.zoo.build:unfilled",
        params="vcr_models.zoo.params:ZooParams",
        reference=about.paper,
        tags=frozenset({"zoo", *about.tags}),
        example=f"vcr weights fetch {name}",
        label_space=first.label_space,
        num_classes=first.classes,
        clip=first.clip,
        weights=tuple(_weights(variant) for variant in variants),
    )


def _weights(variant: Variant) -> WeightSpec:
    requires, extra = variant.needs
    return WeightSpec(
        variant=variant.variant,
        url=variant.url,
        mirrors=variant.mirrors,
        filename=variant.filename,
        sha256=variant.sha256,
        bytes=int(variant.megabytes * 1e6) or int((variant.millions or 0) * 4e6),
        license=variant.license,
        label_space=variant.label_space,
        clean_accuracy=None if variant.top1 is None else variant.top1 / 100,
        clip=variant.clip,
        requires=requires,
        extra=extra or None,
        recipe=variant.ref,
        facts=tuple(_facts(variant)),
    )


def _facts(variant: Variant) -> list[tuple[str, str]]:
    side = variant.resize
    sized = f"short side {side} px" if isinstance(side, int) else f"{side[0]}x{side[1]} px"
    facts = [
        ("built by", variant.library),
        ("frames at", f"{sized}, crop {variant.size} px"),
        ("parameters", f"{variant.millions:g} M" if variant.millions else ""),
        ("multiply-adds of a view", f"{variant.gflops:g} G" if variant.gflops else ""),
        ("published with", f"{variant.clips} clips x {variant.crops} crops"),
        ("checked against", UNVERIFIED if variant.library == "own" else ""),
        ("note", variant.note),
    ]
    return [(name, text) for name, text in facts if text]
