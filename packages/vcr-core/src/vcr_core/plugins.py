"""The plugin loader and the registry: what is installed, and what could not be loaded.

Every plugin is a transaction: all of its specs are taken, or none and the reason is kept.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pluggy

from vcr_core import hookspecs
from vcr_core.discovery import Copy, Found, discover
from vcr_core.errors import AmbiguousComponent, ComponentUnavailable, UnknownComponent
from vcr_core.failures import PluginFailure, format_failure, mentions
from vcr_core.loading import Entry, Loader, caller_of, quiet_stdout
from vcr_core.refs import Reference, did_you_mean, near, normal_distribution, parse
from vcr_core.specs import KINDS, Kind, PresetSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import click

__all__ = [
    "Entry",
    "PluginFailure",
    "Registry",
    "load_registry",
    "registry",
    "reset_registry",
]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Registry:
    """What the installed plugins provide. Built by :func:`load_registry`, then read only.

    Attributes:
        failures: plugins that could not be loaded, and why.
        preset_sources: ``(distribution, source)`` for every folder of presets.
        plugins: every entry point that was loaded.
        disabled: distributions that ``VCR_DISABLE_PLUGINS`` left out.
        copies: metadata of plugins that another copy of the same distribution hides.
    """

    _entries: tuple[Entry, ...]
    failures: tuple[PluginFailure, ...]
    preset_sources: tuple[tuple[str, PresetSource], ...]
    plugins: tuple[Found, ...]
    disabled: tuple[str, ...]
    copies: tuple[Copy, ...]
    _manager: pluggy.PluginManager
    _names: dict[tuple[Kind, str], tuple[Entry, ...]] = field(init=False)

    def __post_init__(self) -> None:
        names: dict[tuple[Kind, str], tuple[Entry, ...]] = {}
        for entry in self._entries:
            key = (entry.kind, entry.name)
            names[key] = (*names.get(key, ()), entry)
        object.__setattr__(self, "_names", names)

    def entries(self, kind: Kind | None = None) -> list[Entry]:
        """Return the components of a kind, or all, sorted by kind, name and distribution."""
        return [entry for entry in self._entries if kind is None or entry.kind == kind]

    def ambiguous(self, kind: Kind, name: str) -> bool:
        """Return whether several distributions provide this name."""
        return len(self._names.get((kind, name), ())) > 1

    def find(self, kind: Kind, ref: str) -> tuple[Entry, str]:
        """Return the component that a reference names, and the variant or ``""``.

        The variant is not looked up: a preset may provide it, or a set of weights.

        Args:
            kind: the kind that is wanted.
            ref: ``name``, ``name.variant``, with ``dist/``, ``kind/`` or both in front; case
                does not matter and ``_`` is ``-``.

        Raises:
            UnknownComponent: if nothing has that name; the message names near ones.
            AmbiguousComponent: if several distributions have it and none is named.
            ComponentUnavailable: if it belongs to a plugin that could not be loaded.
        """
        wanted = parse(ref)
        if wanted.kind is not None and wanted.kind != kind:
            raise UnknownComponent(f"{ref!r} names a component of kind {wanted.kind}, not {kind}")
        matches = self._matches((kind,), wanted)
        if not matches:
            raise self._missing((kind,), wanted)
        return _only(matches, wanted), wanted.variant

    def find_any(self, ref: str) -> tuple[Entry, str]:
        """Return the component of any kind that a reference names, and the variant or ``""``.

        Raises:
            UnknownComponent: see :meth:`find`.
            AmbiguousComponent: also if components of several kinds have the name.
            ComponentUnavailable: see :meth:`find`.
        """
        wanted = parse(ref)
        kinds = KINDS if wanted.kind is None else (wanted.kind,)
        matches = self._matches(kinds, wanted)
        if not matches:
            raise self._missing(kinds, wanted)
        return _only(matches, wanted), wanted.variant

    def observers(self, hook_name: str) -> list[Callable[..., None]]:
        """Return one callable per plugin that observes ``hook_name``, in a stable order.

        The callables take the hook's arguments by keyword. What a plugin raises is logged with its
        distribution and goes no further: an observer cannot change a run.
        """
        implementations = getattr(self._manager.hook, hook_name).get_hookimpls()
        return [
            _observer(hook_name, name, caller_of(self._manager, hook_name, plugin))
            for name, plugin in sorted((impl.plugin_name, impl.plugin) for impl in implementations)
        ]

    def commands(self, taken: Iterable[str] = ()) -> dict[str, click.Command]:
        """Return the commands that plugins add, each plugin's or none of them.

        A name in ``taken`` or one that two plugins use is left out with a warning.
        """
        import click

        found: dict[str, list[tuple[str, click.Command]]] = {}
        for impl in self._manager.hook.vcr_register_commands.get_hookimpls():
            group = click.Group("vcr")
            try:
                with quiet_stdout():
                    caller_of(self._manager, "vcr_register_commands", impl.plugin)(cli=group)
            except (Exception, SystemExit):  # plugin loader  # noqa: BLE001
                _log.warning("the commands of plugin %s could not be added", impl.plugin_name,
                             exc_info=_log.isEnabledFor(logging.DEBUG))  # fmt: skip
                continue
            for name, command in group.commands.items():
                found.setdefault(name, []).append((impl.plugin_name, command))
        commands: dict[str, click.Command] = {}
        for name, offers in sorted(found.items()):
            owners = ", ".join(sorted(owner for owner, _ in offers))
            if name in set(taken):
                _log.warning("command %r of %s is left out: vcr has one", name, owners)
            elif len(offers) > 1:
                _log.warning("command %r is left out: several plugins add it (%s)", name, owners)
            else:
                commands[name] = offers[0][1]
        return commands

    def _matches(self, kinds: Iterable[Kind], wanted: Reference) -> list[Entry]:
        return [
            entry
            for kind in kinds
            for entry in self._names.get((kind, wanted.name), ())
            if wanted.distribution in ("", entry.distribution)
        ]

    def _missing(
        self, kinds: tuple[Kind, ...], wanted: Reference
    ) -> UnknownComponent | ComponentUnavailable:
        noun = kinds[0] if len(kinds) == 1 else "component"
        broken = [
            failure
            for failure in self.failures
            if wanted.distribution == failure.distribution
            or (not wanted.distribution and mentions(failure, wanted.name))
        ]
        if broken:
            error = ComponentUnavailable(
                f"{noun} {str(wanted)!r} is not available:\n"
                + "\n".join(format_failure(failure) for failure in broken)
            )
            error.__cause__ = broken[0].error
            return error
        if wanted.distribution in self.disabled:
            return UnknownComponent(
                f"{noun} {str(wanted)!r}: {wanted.distribution} is disabled by VCR_DISABLE_PLUGINS"
            )
        lines = [self._unknown(kinds, wanted, noun)]
        lines += [
            f"plugin {failure.distribution} {failure.version} could not be loaded and may provide "
            "it; see 'vcr doctor'"
            for failure in self.failures
        ]
        return UnknownComponent("\n".join(lines))

    def _unknown(self, kinds: tuple[Kind, ...], wanted: Reference, noun: str) -> str:
        pool = [entry for entry in self._entries if entry.kind in kinds]
        if wanted.distribution:
            pool = [entry for entry in pool if entry.distribution == wanted.distribution]
            if not any(found.distribution == wanted.distribution for found in self.plugins):
                known = {found.distribution for found in self.plugins}
                return (
                    f"no plugin is called {wanted.distribution!r}"
                    f"{did_you_mean(wanted.distribution, known)} (installed: "
                    f"{', '.join(sorted(known)) or 'none'})"
                )
        provider = f" in {wanted.distribution}" if wanted.distribution else ""
        text = f"no {noun} is called {wanted.name!r}{provider}"
        others = sorted({e.kind for e in self._entries if e.name == wanted.name} - set(kinds))
        if others:
            text += f" ({wanted.name!r} is a {' and a '.join(others)})"
        names = {entry.name for entry in pool}
        text += did_you_mean(wanted.name, names)
        if not near(wanted.name, names):
            command = f"vcr list {noun}" if len(kinds) == 1 else "vcr list"
            text += f"; '{command}' shows what is installed"
        return text


def _only(matches: list[Entry], wanted: Reference) -> Entry:
    if len(matches) == 1:
        return matches[0]
    several_kinds = len({entry.kind for entry in matches}) > 1
    variant = f".{wanted.variant}" if wanted.variant else ""
    choices = [
        (f"{entry.kind}/" if several_kinds else "") + entry.qualified + variant for entry in matches
    ]
    raise AmbiguousComponent(f"{str(wanted)!r} is ambiguous; write one of: {', '.join(choices)}")


_lock = threading.RLock()
_registry: Registry | None = None


def registry() -> Registry:
    """Return the process-wide registry, built at the first call.

    Failures are logged as warnings, once.

    Raises:
        ComponentUnavailable: if ``VCR_STRICT_PLUGINS`` is set and a plugin could not be loaded.
    """
    global _registry
    with _lock:
        if _registry is None:
            loaded = load_registry()
            if loaded.failures and os.environ.get("VCR_STRICT_PLUGINS", "") not in ("", "0"):
                raise ComponentUnavailable(
                    "VCR_STRICT_PLUGINS is set and not every plugin could be loaded:\n"
                    + "\n".join(format_failure(failure) for failure in loaded.failures)
                ) from loaded.failures[0].error
            for failure in loaded.failures:
                _log.warning("%s", format_failure(failure, silence=True))
            _registry = loaded
        return _registry


def reset_registry() -> None:
    """Forget the process-wide registry, so that the next call of :func:`registry` builds it."""
    global _registry
    with _lock:
        _registry = None


@contextlib.contextmanager
def with_entries(entries: Iterable[Entry]) -> Iterator[Registry]:
    """Add components to the process-wide registry inside the block (objects given from Python)."""
    global _registry
    before = registry()
    extra = replace(before, _entries=(*before._entries, *entries))
    with _lock:
        _registry = extra
    try:
        yield extra
    finally:
        with _lock:
            _registry = before


def load_registry() -> Registry:
    """Load every plugin and return what they provide; never fails because of a plugin."""
    manager = pluggy.PluginManager("vcr")
    manager.add_hookspecs(hookspecs)
    points, copies = discover()
    wanted_out = {
        normal_distribution(name)
        for name in os.environ.get("VCR_DISABLE_PLUGINS", "").split(",")
        if name.strip()
    }
    loader = Loader(manager)
    disabled: set[str] = set()
    for point in points:
        if point.distribution in wanted_out:
            disabled.add(point.distribution)
        else:
            loader.load(point)
    entries = sorted(loader.entries, key=lambda e: (KINDS.index(e.kind), e.name, e.distribution))
    return Registry(
        _entries=tuple(entries),
        failures=tuple(loader.failures),
        preset_sources=tuple(loader.presets),
        plugins=tuple(loader.plugins),
        disabled=tuple(sorted(disabled)),
        copies=tuple(copies),
        _manager=manager,
    )


def _observer(hook: str, name: str, call: Any) -> Callable[..., None]:
    def observe(**arguments: Any) -> None:
        try:
            call(**arguments)
        except (Exception, SystemExit):  # observer hook  # noqa: BLE001
            _log.warning("observer %s of plugin %s failed", hook, name, exc_info=True)

    return observe
