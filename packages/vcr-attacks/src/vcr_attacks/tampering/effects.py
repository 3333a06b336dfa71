"""Suites of tampering effects, and the operators behind their names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from vcr_core.components import build, params_type
from vcr_core.config.objects import choose_component
from vcr_core.errors import ConfigError
from vcr_core.protocols import SourceTransform

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from vcr_core.config.experiment import Chosen
    from vcr_core.specs import AttackSpec

ORIGINAL: Final = "original"
"""The class of videos that nobody tampered with."""

MVT5: Final = ("drop", "mask", "rotate", "substitute", "repeat")
MVT8: Final = (*MVT5, "noise", "local-mask", "shuffle")
EVERY: Final = (*MVT8, "freeze", "reverse", "speed", "blur", "jpeg")
SUITES: Final[dict[str, tuple[str, ...]]] = {"mvt5": MVT5, "mvt8": MVT8, "all": EVERY}
"""The effects of MVTamperBench in its order, with those that it announces, and all of ours."""

_SEGMENT: Final = ("location", "duration_s", "duration_frames")


class Effect:
    """One operator with its parameters.

    Attributes:
        name: the component's name, and the class of what it makes.
        operator: changes a whole video.
        params: every parameter, as plain data.
    """

    def __init__(self, name: str, segment: Mapping[str, Any], own: Mapping[str, Any]) -> None:
        chosen = _chosen(name, {})
        spec = cast("AttackSpec", chosen.spec)
        if spec.access != "none" or spec.stage != "source":
            raise ConfigError(
                f"dataset.effects: {name} is no effect on a whole video (its access is "
                f"{spec.access!r}, its stage {spec.stage!r}); allowed: "
                f"{', '.join(EVERY)}, or another attack with access 'none' and stage 'source'"
            )
        struct = params_type(spec)
        takes = struct.__struct_fields__ if struct is not None else ()
        shared = {key: value for key, value in segment.items() if key in takes}
        chosen = _chosen(name, {**shared, **own})
        self.name = spec.name
        self.params = chosen.params
        self.operator: SourceTransform = build(chosen)


def effects_of(
    names: str | Sequence[str], segment: Mapping[str, Any], own: Mapping[str, Mapping[str, Any]]
) -> tuple[Effect, ...]:
    """Return the operators of a suite or of a list of names.

    Args:
        names: ``mvt5``, ``mvt8``, ``all``, or names.
        segment: location and duration, for operators that take them.
        own: further parameters by name.

    Raises:
        ConfigError: for a name that is no effect, one that is listed twice, none at all, or
            parameters of an effect that is not listed.
        UnknownComponent: for a name that nobody provides.
    """
    listed = SUITES[names] if isinstance(names, str) else tuple(names)
    if not listed:
        raise ConfigError("dataset.effects: found an empty list; allowed: at least one effect")
    found = tuple(Effect(name, segment, own.get(name, {})) for name in listed)
    known = [effect.name for effect in found]
    twice = sorted({name for name in known if known.count(name) > 1})
    if twice:
        raise ConfigError(f"dataset.effects: {', '.join(twice)} is listed twice")
    unused = sorted(set(own) - set(listed))
    if unused:
        raise ConfigError(
            f"dataset.operators: {', '.join(unused)} is not among the effects ({', '.join(listed)})"
        )
    return found


def _chosen(name: str, params: Mapping[str, Any]) -> Chosen:
    try:
        return choose_component("attack", name, params)
    except ConfigError as error:
        raise ConfigError([f"dataset.effects: {problem}" for problem in error.problems]) from error


def segment_params(params: Any) -> dict[str, Any]:
    """Return what a dataset's parameters say about the segment."""
    return {key: getattr(params, key) for key in _SEGMENT}
