"""mmaction2's recognisers, through one import adapter; nothing installed is changed.

The published wheel lacks a package that its models import, refuses newer companions, and imports
models for an older transformers; see :func:`registry_of_models`.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import sys
import threading
import types
import warnings
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from torch import nn
from vcr_core.errors import ComponentUnavailable

from vcr_models.nets.tin import Interlace
from vcr_models.zoo.state import load_strictly, read_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torch import Tensor

    from vcr_models.zoo.catalog import Variant
    from vcr_models.zoo.params import ZooParams

ABSENT: Final = "mmaction.models.localizers.drn"
_lock = threading.Lock()


class AbsentPackage(MetaPathFinder, Loader):
    """Answers for the package that the wheel lacks; a complete installation is found before."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: Any = None
    ) -> ModuleSpec | None:
        """Return a spec for the absent package and its module only."""
        del path, target
        if fullname not in (ABSENT, f"{ABSENT}.drn"):
            return None
        return ModuleSpec(fullname, self, is_package=fullname == ABSENT)

    def exec_module(self, module: types.ModuleType) -> None:
        """Put a class there that cannot be made."""

        class DRN:
            def __init__(self, *_: object, **__: object) -> None:
                raise ComponentUnavailable("the published mmaction2 lacks its localizer DRN")

        module.DRN = DRN  # type: ignore[attr-defined]


def registry_of_models() -> Any:
    """Import mmaction2's models and return its registry.

    Raises:
        ComponentUnavailable: if that fails; the message says what is missing.
    """
    with _lock:
        if not any(isinstance(finder, AbsentPackage) for finder in sys.meta_path):
            sys.meta_path.append(AbsentPackage())
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", message=".*MultiScaleDeformableAttention.*")
                warnings.filterwarnings("ignore", category=DeprecationWarning)
                warnings.filterwarnings("ignore", category=FutureWarning)
                import mmaction.utils.dependency as dependency

                # Its multimodal models are written for an older transformers.
                dependency.WITH_MULTIMODAL = False
                importlib.import_module("mmaction.models")
                from mmaction.registry import MODELS
        except (ImportError, AssertionError) as error:
            text = str(error)
            hint = ""
            if "libGL" in text:
                hint = "; OpenCV needs system libraries (Debian: libgl1 and libglib2.0-0)"
            raise ComponentUnavailable(f"mmaction2 cannot be imported: {text}{hint}") from error
    return MODELS


def configuration(variant: Variant) -> Any:
    """Return the model part of a configuration that the wheel ships, without addresses."""
    import mmaction
    from mmengine.config import Config

    path = Path(mmaction.__file__).parent / ".mim" / "configs" / variant.network
    if not path.is_file():
        doubled = path.with_name(path.name + ".py")
        if not doubled.is_file():
            raise ComponentUnavailable(f"mmaction2 has no configuration {variant.network}")
        path = doubled
    model = Config.fromfile(path).model
    _quiet(model)
    return model


def _quiet(node: Any) -> None:
    """Take out everything that fetches weights, and norms that need several processes."""
    if isinstance(node, dict):
        for key in ("pretrained", "init_cfg"):
            if node.get(key) is not None:
                node[key] = None
        if "clip_pretrained" in node:
            node["clip_pretrained"] = False
        if node.get("type") == "SyncBN":
            node["type"] = "BN3d"
        for value in node.values():
            _quiet(value)
    elif isinstance(node, list | tuple):
        for value in node:
            _quiet(value)


class Recognizer(nn.Module):
    """A recogniser that returns logits of one view."""

    model: Any

    def __init__(self, model: nn.Module, *, flat: bool) -> None:
        super().__init__()
        self.model, self.flat = model, flat

    def forward(self, clips: Tensor) -> Tensor:
        """Return logits of ``[N, T, 3, H, W]`` (2D) or ``[N, 3, T, H, W]`` (3D)."""
        given = clips if self.flat else clips[:, None]
        features, extra = self.model.extract_feat(given.contiguous(), test_mode=True)
        found: Tensor = self.model.cls_head(features, **extra)
        return found


def network(variant: Variant, size: int | None = None) -> nn.Module:
    """Return the network with random weights.

    ``size`` reaches networks whose tables of positions depend on it.
    """
    models = registry_of_models()
    from mmengine.registry import DefaultScope

    model = configuration(variant)
    # Its test-time options make hidden copies of heads, or assert batches of one.
    model.test_cfg = None
    if model.cls_head.get("num_classes") not in (None, variant.classes):
        model.cls_head.num_classes = variant.classes
    if size is not None:
        _resize(model.backbone, size)
    with DefaultScope.overwrite_default_scope("mmaction"), _silent():
        made: nn.Module = models.build(model)
    _own_interlacing(made, variant.frames)
    return Recognizer(made, flat=model.type == "Recognizer2D")


@contextlib.contextmanager
def _silent() -> Iterator[None]:
    """Keep a constructor that draws weights from telling of every one of them."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


def _resize(backbone: Any, size: int) -> None:
    for key in ("img_size", "input_resolution", "spatial_size"):
        if key in backbone:
            backbone[key] = size
    if backbone.type == "MViT":
        backbone["spatial_size"] = size


def _own_interlacing(model: nn.Module, frames: int) -> None:
    """Put a module that runs on every device, with the right gradient, in the place of TIN's."""
    for module in list(model.modules()):
        inner = getattr(module, "net1", None)
        if isinstance(inner, nn.Module) and hasattr(inner, "offset_net"):
            module.net1 = Interlace(
                inner.get_submodule("offset_net"), inner.get_submodule("weight_net"), frames
            )


def load(network: nn.Module, variant: Variant, file: Path, params: ZooParams) -> None:
    """Fill a network from the official file."""
    model = network.get_submodule("model")
    state = read_state(file, variant.roots, trust_pickle=params.trust_pickle)
    # A table of positions that the network computes is in some files and not in others.
    spare = frozenset({"backbone.pos_embed"}) - set(model.state_dict())
    load_strictly(model, state, file, spare=spare, precision=params.precision)
