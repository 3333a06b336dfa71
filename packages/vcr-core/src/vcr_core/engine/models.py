"""Models as a run uses them: built, frozen, and making the crops that the protocol asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vcr_core.components import build
from vcr_core.metering import frozen
from vcr_core.protocols import ViewedClassifier

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from vcr_core.config.experiment import Chosen
    from vcr_core.config.schema import ProtocolConfig
    from vcr_core.protocols import VideoClassifier


def built_model(
    chosen: Chosen, protocol: ProtocolConfig, folders: Sequence[Path] = ()
) -> VideoClassifier:
    """Build a model by reference; see :func:`ready_model`."""
    return ready_model(build(chosen, folders), protocol)


def ready_model(model: VideoClassifier, protocol: ProtocolConfig) -> VideoClassifier:
    """Return a model with frozen parameters and the crops of ``protocol.views``."""
    if isinstance(model, ViewedClassifier):
        model = model.for_views(protocol.views)
    return frozen(model)
