"""Loading one entry point: a transaction that takes all of a plugin's specs or none."""

from __future__ import annotations

import contextlib
import inspect
import sys
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from vcr_core import PLUGIN_API, hookspecs
from vcr_core.failures import PluginError, PluginFailure
from vcr_core.refs import did_you_mean
from vcr_core.spec_rules import SPEC_TYPES, spec_problems
from vcr_core.specs import KINDS, ComponentSpec, Kind, PresetSource

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pluggy

    from vcr_core.discovery import Found

KIND_HOOKS: dict[Kind, str] = {kind: f"vcr_register_{kind}s" for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Entry:
    """A component and who provides it.

    Attributes:
        spec: its spec.
        distribution: normalised name of the distribution.
        version: the distribution's version.
        location: the folder on the import path that holds the distribution's metadata.
    """

    spec: ComponentSpec
    distribution: str
    version: str
    location: str = ""

    @property
    def kind(self) -> Kind:
        """The component's kind."""
        return self.spec.kind

    @property
    def name(self) -> str:
        """The component's canonical name."""
        return self.spec.name

    @property
    def qualified(self) -> str:
        """``dist/name``, which is never ambiguous within a kind."""
        return f"{self.distribution}/{self.spec.name}"

    def __str__(self) -> str:
        """Return a phrase for messages."""
        return f"{self.kind} {self.name!r} of {self.distribution} {self.version}"


@contextlib.contextmanager
def quiet_stdout() -> Iterator[None]:
    """Send what is printed inside to stderr: data of ``--json`` must not be mixed with it."""
    with contextlib.redirect_stdout(sys.stderr):
        yield


class Loader:
    """Loads entry points one at a time; a failure leaves nothing behind."""

    def __init__(self, manager: pluggy.PluginManager) -> None:
        self.manager = manager
        self.entries: list[Entry] = []
        self.presets: list[tuple[str, PresetSource]] = []
        self.plugins: list[Found] = []
        self.failures: list[PluginFailure] = []

    def load(self, point: Found) -> None:
        """Load one entry point, or keep why it failed."""
        stage, plugin, specs = "metadata", None, []
        try:
            if point.point is None:
                raise PluginError(f"the metadata cannot be read: {point.error}") from point.error
            with quiet_stdout():
                stage = "import"
                plugin = point.point.load()
                stage = "hooks"
                if self._is_known(plugin, point):
                    return
                _check_api(plugin)
                self.manager.register(plugin, name=f"{point.distribution}:{point.name}")
                _check_hooks(self.manager, plugin)
                stage = "specs"
                # Collected into a list that outlives a failure: the names show what is missing.
                for spec in _collect(self.manager, plugin):
                    specs.append(spec)
                self._check_names(specs, point)
                presets = list(_collect_presets(self.manager, plugin))
        except (Exception, SystemExit) as error:  # plugin loader  # noqa: BLE001
            if plugin is not None and self.manager.is_registered(plugin):
                owner = self.manager.get_name(plugin)
                if owner == f"{point.distribution}:{point.name}":
                    self.manager.unregister(plugin)
            self.failures.append(
                PluginFailure(
                    distribution=point.distribution,
                    version=point.version,
                    value=point.value,
                    stage=stage,
                    error=error,
                    location=point.location,
                    names=frozenset(spec.name for spec in specs),
                )
            )
        else:
            self.plugins.append(point)
            self.presets.extend((point.distribution, source) for source in presets)
            self.entries.extend(
                Entry(spec, point.distribution, point.version, point.location) for spec in specs
            )

    def _is_known(self, plugin: object, point: Found) -> bool:
        """Return whether the same distribution has registered this object under another name."""
        if not self.manager.is_registered(plugin):
            return False
        owner = (self.manager.get_name(plugin) or "").partition(":")[0]
        if owner != point.distribution:
            raise PluginError(
                f"{point.value} is already provided by {owner}; one of the two distributions is "
                "probably a left-over: uninstall it"
            )
        return True

    def _check_names(self, specs: list[ComponentSpec], point: Found) -> None:
        taken = {(e.kind, e.name) for e in self.entries if e.distribution == point.distribution}
        for spec in specs:
            if (spec.kind, spec.name) in taken:
                raise PluginError(f"{spec.kind} {spec.name!r} is registered twice")
            taken.add((spec.kind, spec.name))


def _check_api(plugin: object) -> None:
    version = getattr(plugin, "vcr_plugin_api", PLUGIN_API)
    if str(version).partition(".")[0] != str(PLUGIN_API):
        raise PluginError(
            f"it is written for plugin API {version}, and this vcr-core has {PLUGIN_API}; "
            "install versions that fit each other"
        )


def _check_hooks(manager: pluggy.PluginManager, plugin: object) -> None:
    known = {name for name in vars(hookspecs) if name.startswith("vcr_")}
    implemented = set()
    for caller in manager.get_hookcallers(plugin) or []:
        if not caller.has_spec():
            raise PluginError(f"there is no hook {caller.name!r}{did_you_mean(caller.name, known)}")
        implemented.add(caller.name)
    if isinstance(plugin, ModuleType):
        for name, value in vars(plugin).items():
            if (
                name.startswith("vcr_")
                and inspect.isfunction(value)
                and value.__module__ == plugin.__name__
                and name not in implemented
            ):
                raise PluginError(f"{name} is not marked with @hookimpl, so it would be ignored")


def caller_of(manager: pluggy.PluginManager, hook: str, plugin: object) -> Any:
    """Return a caller of one plugin's implementations of a hook."""
    others = [other for other in manager.get_plugins() if other is not plugin]
    return manager.subset_hook_caller(hook, remove_plugins=others)


def _collect(manager: pluggy.PluginManager, plugin: object) -> Iterator[ComponentSpec]:
    for kind, hook in KIND_HOOKS.items():
        for spec in _returned(manager, hook, plugin):
            if not isinstance(spec, SPEC_TYPES[kind]):
                raise PluginError(
                    f"{hook} returned {type(spec).__name__}; it must return an iterable of "
                    f"{SPEC_TYPES[kind].__name__}"
                )
            problems = spec_problems(spec)
            if problems:
                raise PluginError("; ".join(problems))
            yield spec


def _collect_presets(manager: pluggy.PluginManager, plugin: object) -> Iterator[PresetSource]:
    for source in _returned(manager, "vcr_register_presets", plugin):
        if not isinstance(source, PresetSource):
            raise PluginError(
                f"vcr_register_presets returned {type(source).__name__}; it must return an "
                "iterable of PresetSource"
            )
        yield source


def _returned(manager: pluggy.PluginManager, hook: str, plugin: object) -> Iterator[Any]:
    for result in caller_of(manager, hook, plugin)():
        if isinstance(result, str | bytes | ComponentSpec | PresetSource) or not hasattr(
            result, "__iter__"
        ):
            raise PluginError(
                f"{hook} returned {type(result).__name__}; it must return an iterable of specs"
            )
        yield from result
