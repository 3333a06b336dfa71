"""From specs to objects: the only place where a component's code is imported."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, TypeAlias

from vcr_core.availability import availability
from vcr_core.config.experiment import Chosen
from vcr_core.errors import ComponentUnavailable, ConfigError, VcrError
from vcr_core.loading import quiet_stdout
from vcr_core.plugins import Entry, registry
from vcr_core.specs import ComponentSpec, ModelSpec, WeightSpec

if TYPE_CHECKING:
    import msgspec

Owner: TypeAlias = Entry | Chosen | ComponentSpec


def load_attr(target: str, owner: Owner) -> Any:
    """Import ``"package.module:Attr"`` and return the attribute.

    Args:
        target: what to import.
        owner: the component it belongs to, for the message.

    Raises:
        ComponentUnavailable: if that fails in any way; the original error is the cause.
    """
    module, _, attribute = target.partition(":")
    try:
        with quiet_stdout():
            value: Any = importlib.import_module(module)
            for part in attribute.split("."):
                value = getattr(value, part)
    except VcrError:
        raise
    # Plugin loader: some libraries assert their versions or exit when they are imported.
    except (Exception, SystemExit) as error:
        raise ComponentUnavailable(_explain(target, owner, error)) from error
    return value


def params_type(spec: ComponentSpec) -> type[msgspec.Struct] | None:
    """Return the struct of a component's parameters, or ``None`` if it has none.

    Raises:
        ComponentUnavailable: if it cannot be imported or is no msgspec struct.
    """
    if spec.params is None:
        return None
    import msgspec

    found = load_attr(spec.params, spec)
    if not (isinstance(found, type) and issubclass(found, msgspec.Struct)):
        raise ComponentUnavailable(
            f"{_describe(spec)}: its parameters {spec.params} are no msgspec.Struct"
        )
    return found


def build(chosen: Chosen) -> Any:
    """Import a component and return an instance.

    Models are called as ``Target(params, weights)``, where ``weights`` is the chosen
    :class:`WeightSpec` or ``None``; everything else as ``Target(params)``. ``params`` is left out
    where the spec has none.

    Raises:
        ComponentUnavailable: if a requirement is missing or the import fails.
        ConfigError: if the parameters do not fit.
    """
    spec = chosen.spec
    state = availability(spec)
    if not state.ok:
        raise ComponentUnavailable(f"{_describe(chosen)} is not available: it {state.text}")
    arguments: list[object] = []
    struct = params_type(spec)
    if struct is not None:
        import msgspec

        try:
            arguments.append(msgspec.convert(chosen.params, struct))
        except msgspec.ValidationError as error:
            raise ConfigError(f"{spec.kind} {chosen.ref}: {error}") from error
    elif chosen.params:
        raise ConfigError(
            f"{spec.kind} {chosen.ref} takes no parameters; found: {', '.join(chosen.params)}"
        )
    if isinstance(spec, ModelSpec):
        arguments.append(chosen_weights(spec, chosen.variant))
    target = load_attr(spec.target, chosen)
    return target(*arguments)


def chosen_weights(spec: ModelSpec, variant: str) -> WeightSpec | None:
    """Return the weights that a variant names; the first ones where it names none.

    A variant that is a preset and no set of weights leaves the default weights in place.
    """
    for weights in spec.weights:
        if weights.variant == variant:
            return weights
    return spec.weights[0] if spec.weights else None


def _origin(owner: Owner) -> tuple[ComponentSpec, str, str]:
    if isinstance(owner, Entry | Chosen):
        return owner.spec, owner.distribution, owner.version
    for entry in registry().entries(owner.kind):
        if entry.spec == owner:
            return owner, entry.distribution, entry.version
    return owner, "", ""


def _describe(owner: Owner) -> str:
    spec, distribution, version = _origin(owner)
    provider = f" of {distribution} {version}" if distribution else ""
    return f"{spec.kind} {spec.name!r}{provider}"


def _explain(target: str, owner: Owner, error: BaseException) -> str:
    spec, distribution, _ = _origin(owner)
    reason = (
        f"it called sys.exit({error.code!r})"
        if isinstance(error, SystemExit)
        else f"{type(error).__name__}: {error}".rstrip(": ")
    )
    state = availability(spec)
    install = spec.extra or (distribution if state.ok else ", ".join(spec.requires))
    text = f"{_describe(owner)} is not available: import of {target} failed\n  {reason}"
    if not state.ok:
        text += f"\n  It {state.text}."
    if install:
        text += f"\n  pip install '{install}' brings what it needs."
    return text
