"""From specs to objects: the only place where a component's code is imported."""

from __future__ import annotations

import importlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from vcr_core.availability import availability, without_file
from vcr_core.config.experiment import Chosen
from vcr_core.errors import ComponentUnavailable, ConfigError, VcrError
from vcr_core.loading import quiet_stdout
from vcr_core.plugins import Entry, registry
from vcr_core.specs import ClipSpec, ComponentSpec, MetricSpec, ModelSpec, WeightSpec
from vcr_core.weights.places import digest, is_bundled, located

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def build(chosen: Chosen, folders: Sequence[Path] = ()) -> Any:
    """Import a component and return an instance.

    Models are called as ``Target(params, weights)``, where ``weights`` is the chosen
    :class:`WeightSpec`, with ``file`` set, or ``None``; metrics that have weights as
    ``Target(params, folders)``; everything else as ``Target(params)``.
    ``params`` is left out where the spec has none.

    Args:
        chosen: what to build.
        folders: where weight files are looked for before the usual places.

    Raises:
        ComponentUnavailable: if a requirement or a weight file is missing or the import fails.
        ConfigError: if the parameters do not fit.
    """
    spec = chosen.spec
    weights = weights_of(chosen, folders)
    state = availability(spec, weights)
    if not state.ok:
        raise ComponentUnavailable(f"{_describe(chosen)} is not available: it {state.text}")
    if weights is not None and without_file(weights):
        raise ComponentUnavailable(_no_file(chosen, weights, folders))
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
        arguments.append(weights)
    elif isinstance(spec, MetricSpec) and spec.weights:
        arguments.append(tuple(folders))
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


def weights_of(chosen: Chosen, folders: Sequence[Path] = ()) -> WeightSpec | None:
    """Return the weights that a model will have: with their file, and its hash, if it is here.

    A model whose parameters have a path ``file`` takes that instead of the published one; its
    content then tells runs apart, wherever it lies.

    Raises:
        ComponentUnavailable: if the file that is there is not the published one.
        ConfigError: if ``file`` names none.
    """
    if not isinstance(chosen.spec, ModelSpec):
        return None
    weights = chosen_weights(chosen.spec, chosen.variant)
    own = chosen.params.get("file")
    if own:
        path = Path(own).expanduser()
        if not path.is_file():
            raise ConfigError(f"model {chosen.ref}: there is no file {path}; see its key file")
        return replace(weights or WeightSpec(), file=str(path), sha256=digest(path))
    if weights is None or is_bundled(weights):
        return weights
    found = located(weights, folders)
    return replace(found, sha256=digest(Path(found.file))) if found.file else found


def clip_of(chosen: Chosen) -> ClipSpec:
    """Return what a model samples from a video: what its weights say, else what its spec says."""
    spec = cast("ModelSpec", chosen.spec)
    weights = chosen_weights(spec, chosen.variant)
    return (weights.clip if weights else None) or spec.clip


def _no_file(chosen: Chosen, weights: WeightSpec, folders: Sequence[Path]) -> str:
    from vcr_core.weights.places import file_name, places

    size = f", {weights.bytes / 1e6:,.0f} MB" if weights.bytes else ""
    return (
        f"{_describe(chosen)} needs its weights, and {file_name(weights)} is not on this machine\n"
        f"  vcr weights fetch {chosen.ref}    gets it{size}, "
        f"licence: {weights.license or 'none named'}\n"
        f"  or put it into {places(weights, folders)[0].parent}, or name your copy: "
        "--set model.file=PATH"
    )


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
