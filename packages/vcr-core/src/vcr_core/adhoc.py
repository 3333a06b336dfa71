"""Specs for objects that come from Python instead of a plugin."""

from __future__ import annotations

from typing import Any, cast

from vcr_core.config.experiment import Chosen
from vcr_core.specs import (
    AttackSpec,
    ClipSpec,
    ComponentSpec,
    DatasetSpec,
    DefenseSpec,
    Kind,
    MetricSpec,
    ModelSpec,
)

_ATTRIBUTE = "vcr_chosen"


def remember(component: Any, chosen: Chosen) -> Any:
    """Keep on a component what it was made from; a component without attributes is left alone."""
    if hasattr(component, "__dict__"):
        setattr(component, _ATTRIBUTE, chosen)
    return component


def chosen_for(kind: Kind, component: Any) -> Chosen:
    """Return what a component was made from, or a description of an object of the user's own.

    Attributes with the names of spec fields (``access``, ``norms``, ``targeted``, ``gradient``,
    ``stochastic``, ``higher_is_better``…) are believed; without them an attack is white-box for
    every norm, with an offline step if it has a method ``prepare``, and a defense is exact and
    deterministic.
    """
    known = getattr(component, _ATTRIBUTE, None)
    if isinstance(known, Chosen):
        return known
    return Chosen(spec=_spec(kind, component), distribution="local", version="0")


def _spec(kind: Kind, component: Any) -> ComponentSpec:
    own = type(component)
    name = _component_name(getattr(component, "name", None) or own.__name__)
    base: dict[str, Any] = {
        "name": name,
        "summary": f"{own.__module__}.{own.__qualname__}, given from Python",
        "target": f"{own.__module__}:{own.__qualname__}",
    }

    def told(field: str, default: Any) -> Any:
        return getattr(component, field, default)

    if kind == "attack":
        return AttackSpec(
            **base,
            access=told("access", "white-box"),
            norms=frozenset(told("norms", {"linf", "l2", "l1", "l0", "none"})),
            targeted=told("targeted", True),
            stochastic=told("stochastic", False),
            stage=told("stage", "frames"),
            prepares=told("prepares", callable(getattr(component, "prepare", None))),
        )
    if kind == "defense":
        return DefenseSpec(
            **base,
            gradient=told("gradient", "exact"),
            stochastic=told("stochastic", False),
            prepares=told("prepares", callable(getattr(component, "prepare", None))),
        )
    if kind == "metric":
        return MetricSpec(
            **base,
            higher_is_better=told("higher_is_better", False),
            keys=tuple(told("keys", (name,))),
            concurrent=told("concurrent", False),
        )
    if kind == "dataset":
        # Without an id: objects meet by the names of their classes.
        return DatasetSpec(**base, label_space="")
    if kind == "model":
        return ModelSpec(
            **base,
            label_space=component.labels.id,
            num_classes=len(component.labels),
            clip=cast("ClipSpec", component.clip),
            differentiable=told("differentiable", True),
        )
    raise ValueError(f"no description for kind {kind!r}")


def _component_name(text: str) -> str:
    words = "".join(c if c.isalnum() else "-" for c in text).strip("-").lower()
    return "-".join(part for part in words.split("-") if part)[:40] or "unnamed"
