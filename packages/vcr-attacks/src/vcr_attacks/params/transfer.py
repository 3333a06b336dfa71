"""Parameters of the attacks that look through image networks."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, field

from vcr_attacks.params.common import Steps


class I2vParams(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``i2v``. The radius is the threat's."""

    networks: Annotated[
        list[str],
        Meta(
            min_length=1,
            description="image networks: resnet101, vgg16, alexnet, squeezenet1_1, "
            "efficientnet-lite0 or package.module:function",
        ),
    ] = field(default_factory=lambda: ["resnet101"])
    depths: Annotated[
        list[Annotated[int, Meta(ge=1)]],
        Meta(description="layer of each network, from 1 at the pixels to 4"),
    ] = field(default_factory=lambda: [2])
    steps: Steps = 60
    lr: Annotated[float, Meta(gt=0, le=1, description="Adam's step in the pixel range")] = 0.005
    size: Annotated[
        int,
        Meta(ge=1, description="short side that larger frames are resized to for the networks"),
    ] = 224

    def __post_init__(self) -> None:
        """Refuse networks without a depth."""
        if len(self.networks) != len(self.depths):
            raise ValueError(
                f"depths has {len(self.depths)} values for {len(self.networks)} networks; "
                "give one to each"
            )


class EnsI2vParams(I2vParams, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Parameters of ``ens-i2v``: those of ``i2v`` with the paper's four networks."""

    networks: Annotated[list[str], Meta(min_length=1, description="image networks, as in i2v")] = (
        field(default_factory=lambda: ["resnet101", "vgg16", "squeezenet1_1", "alexnet"])
    )
    depths: Annotated[
        list[Annotated[int, Meta(ge=1)]], Meta(description="layer of each network")
    ] = field(default_factory=lambda: [2, 3, 2, 3])
    lr: Annotated[float, Meta(gt=0, le=1, description="Adam's step in the pixel range")] = 0.004
