from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct


class Params(Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    pass


class IfgsmParams(Params):
    steps: Annotated[int, Meta(ge=1)] = 20
    step_size: Annotated[float, Meta(gt=0, le=1)] | Literal["auto"] = 1 / 255
    momentum: Annotated[float, Meta(ge=0)] = 0.0


class PgdParams(Params):
    steps: Annotated[int, Meta(ge=1, le=1000)] = 20
    restarts: Annotated[int, Meta(ge=1)] = 1
    loss: Literal["ce", "margin", "dlr"] = "ce"
    cap: Annotated[int, Meta(ge=1)] | None = 7


class BankParams(Params):
    bank: Annotated[str, Meta(extra={"path": True})]
    strength: float = 0.5


class BlurParams(Params):
    sigma: Annotated[float, Meta(gt=0)] = 1.0
    kernel: tuple[int, int] = (3, 3)

    def __post_init__(self) -> None:
        if any(side % 2 == 0 for side in self.kernel):
            raise ValueError("kernel: both sides must be odd")


class JpegParams(Params):
    quality: Annotated[int, Meta(ge=1, le=100)] = 75


class SsimParams(Params):
    window: Annotated[int, Meta(ge=3)] = 11


class FolderParams(Params):
    root: Annotated[str, Meta(extra={"path": True})] | None = None
    split: Literal["train", "val"] = "val"
