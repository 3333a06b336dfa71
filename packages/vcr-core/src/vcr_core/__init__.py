"""Robustness of video classifiers: plugins, one evaluation loop, reports.

Names are imported on first use, so ``import vcr_core`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from vcr_core.__about__ import __version__

PLUGIN_API = 1
EVALUATION_VERSION = 1

if TYPE_CHECKING:
    from vcr_core.api import as_classifier, evaluate, load, perturb, prepare
    from vcr_core.errors import (
        BudgetExhausted,
        ComponentUnavailable,
        ConfigError,
        ContractViolation,
        NotDifferentiable,
        VcrError,
    )
    from vcr_core.hookspecs import hookimpl
    from vcr_core.protocols import (
        Attack,
        AttackContext,
        BaseDefense,
        BaseVideoAttack,
        BaseVideoClassifier,
        ClipInfo,
        Defense,
        InputDefense,
        LabelSpace,
        Metric,
        Preparable,
        PrepareContext,
        Reading,
        VideoClassifier,
        VideoDataset,
        VideoItem,
    )
    from vcr_core.specs import (
        AttackSpec,
        ClipSpec,
        DatasetSpec,
        DefenseSpec,
        ExecutorSpec,
        MetricSpec,
        ModelSpec,
        PresetSource,
        ReporterSpec,
        WeightSpec,
    )
    from vcr_core.threat import L0, L1, L2, Linf, ThreatModel, Unbounded

_HOMES = {
    "api": ("as_classifier", "evaluate", "load", "perturb", "prepare"),
    "errors": (
        "BudgetExhausted", "ComponentUnavailable", "ConfigError", "ContractViolation",
        "NotDifferentiable", "VcrError",
    ),
    "hookspecs": ("hookimpl",),
    "protocols": (
        "Attack", "AttackContext", "BaseDefense", "BaseVideoAttack", "BaseVideoClassifier",
        "ClipInfo", "Defense", "InputDefense", "LabelSpace", "Metric",
        "Preparable", "PrepareContext", "Reading", "VideoClassifier", "VideoDataset", "VideoItem",
    ),
    "specs": (
        "AttackSpec", "ClipSpec", "DatasetSpec", "DefenseSpec", "ExecutorSpec", "MetricSpec",
        "ModelSpec", "PresetSource", "ReporterSpec", "WeightSpec",
    ),
    "threat": ("L0", "L1", "L2", "Linf", "ThreatModel", "Unbounded"),
}  # fmt: skip
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "EVALUATION_VERSION", "L0", "L1", "L2", "PLUGIN_API", "Attack", "AttackContext", "AttackSpec",
    "BaseDefense", "BaseVideoAttack", "BaseVideoClassifier", "BudgetExhausted", "ClipInfo",
    "ClipSpec", "ComponentUnavailable", "ConfigError", "ContractViolation", "DatasetSpec",
    "Defense", "DefenseSpec", "ExecutorSpec", "InputDefense", "LabelSpace", "Linf", "Metric",
    "MetricSpec", "ModelSpec", "NotDifferentiable", "Preparable", "PrepareContext",
    "PresetSource", "Reading", "ReporterSpec",
    "ThreatModel", "Unbounded", "VcrError", "VideoClassifier", "VideoDataset", "VideoItem",
    "WeightSpec", "__version__", "as_classifier", "evaluate", "hookimpl", "load", "perturb",
    "prepare",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a public name from its home module on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
