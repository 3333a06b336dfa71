"""From distributions or specs to a list of cases, and from cases to a pytest parametrisation."""

from __future__ import annotations

import unittest
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from vcr_core.errors import NotAvailable, UsageError
from vcr_core.refs import did_you_mean, normal_distribution
from vcr_core.specs import ComponentSpec
from vcr_core.testing.catalog import Check, checks_for, plugin_checks

if TYPE_CHECKING:
    from vcr_core.plugins import Entry

Params: TypeAlias = "Mapping[str, Any] | Callable[[], Mapping[str, Any]]"
What: TypeAlias = "str | ComponentSpec | Sequence[str | ComponentSpec]"

__all__ = ["Case", "Check", "PluginSubject", "Subject", "cases", "parametrize_contract"]


def require(condition: object, message: str) -> None:
    """Raise ``AssertionError`` with ``message`` unless ``condition`` holds, also under ``-O``."""
    if not condition:
        raise AssertionError(message)


@dataclass(frozen=True, slots=True)
class Subject:
    """A component under test.

    Attributes:
        spec: its spec.
        distribution: who provides it; ``""`` for a spec that was handed in.
        version: the provider's version.
        variant: variant of the weights, or ``""``.
        params: parameters other than the defaults, or a function that returns them.
    """

    spec: ComponentSpec
    distribution: str = ""
    version: str = ""
    variant: str = ""
    params: Params = field(default_factory=dict)

    @property
    def ref(self) -> str:
        """``name`` or ``name.variant``."""
        return f"{self.spec.name}.{self.variant}" if self.variant else self.spec.name

    def build(self) -> Any:
        """Return a new instance.

        Raises:
            unittest.SkipTest: naming the requirement, parameter or weights that are missing.
        """
        from vcr_core.availability import availability
        from vcr_core.components import build
        from vcr_core.config.experiment import Chosen

        if getattr(self.spec, "remote", False) and not self.params:
            key = f"{self.spec.kind}/{self.spec.name}"
            raise unittest.SkipTest(
                f"{key}: needs a cluster; where one is, hand in how to use it: "
                f"params={{{key!r}: {{...}}}}"
            )
        found = availability(self.spec)
        if not found.ok:
            raise unittest.SkipTest(f"{self.spec.kind}/{self.ref}: {found.text}")
        chosen = Chosen(
            spec=self.spec,
            distribution=self.distribution or "explicit",
            version=self.version or "0",
            variant=self.variant,
            params=self._parameters(),
        )
        try:
            return build(chosen)
        except NotAvailable as missing:
            raise unittest.SkipTest(f"{self.spec.kind}/{self.ref}: {missing}") from missing

    def given(self) -> dict[str, Any]:
        """Return the parameters that were handed in."""
        return dict(self.params() if callable(self.params) else self.params)

    def _parameters(self) -> dict[str, Any]:
        """Return what was handed in, if nothing that the component needs is missing."""
        from vcr_core.components import params_type

        given = self.given()
        struct = params_type(self.spec)
        if struct is None:
            return given
        from msgspec.structs import fields

        absent = [f.encode_name for f in fields(struct) if f.required]
        absent = [name for name in absent if name not in given]
        if absent:
            key = f"{self.spec.kind}/{self.spec.name}"
            raise unittest.SkipTest(
                f"{key}: needs parameters {', '.join(absent)}; hand them in: "
                f"params={{{key!r}: {{...}}}}"
            )
        return given


@dataclass(frozen=True, slots=True)
class PluginSubject:
    """A distribution under test, or a group of specs that were handed in.

    Attributes:
        distribution: its name; ``""`` for specs that were handed in.
        specs: what it registers; empty if it could not be loaded.
    """

    distribution: str
    specs: tuple[ComponentSpec, ...]

    @property
    def ref(self) -> str:
        """Name of the distribution."""
        return self.distribution or "explicit"


@dataclass(frozen=True, slots=True)
class Case:
    """One check of one subject; call it to run it."""

    check: Check
    subject: Subject | PluginSubject
    reason: str = ""

    @property
    def id(self) -> str:
        """``kind/check-name:component``, the key of ``expected_failures``."""
        return f"{self.check.id}:{self.subject.ref}"

    def __call__(self) -> None:
        """Run the check.

        Raises:
            AssertionError: where the component breaks the rule.
            unittest.SkipTest: where the component is not available here.
        """
        self.check.load()(self.subject)


def cases(
    what: What,
    *,
    expected_failures: Mapping[str, str] | None = None,
    params: Mapping[str, Params] | None = None,
) -> list[Case]:
    """Return every case of these distributions or specs.

    Args:
        what: names of distributions, specs, or a list of either.
        expected_failures: reason by case id, as in :func:`parametrize_contract`.
        params: parameters by ``kind/name``, as in :func:`parametrize_contract`.

    Raises:
        UsageError: for a distribution without plugin, an unknown key, or a reason that is empty.
    """
    subjects = list(_subjects(what, dict(params or {})))
    expected = dict(expected_failures or {})
    found = [
        Case(check, subject)
        for subject in subjects
        for check in (
            plugin_checks() if isinstance(subject, PluginSubject) else checks_for(subject.spec)
        )
        if not (isinstance(subject, PluginSubject) and _needs_distribution(check, subject))
    ]
    _refuse_unknown(expected, found)
    return [Case(c.check, c.subject, _reason(c, expected)) for c in found]


def parametrize_contract(
    what: What,
    *,
    expected_failures: Mapping[str, str] | None = None,
    params: Mapping[str, Params] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that runs a test once per case, as its argument ``check``.

    Args:
        what: names of distributions, specs, or a list of either.
        expected_failures: reason by case id, such as
            ``{"model/gradient-finite:acme-quantized": "no gradient by design"}``. The case fails
            when it unexpectedly passes.
        params: parameters other than the defaults by ``kind/name``, such as
            ``{"dataset/acme": {"root": "videos"}}``; a function is called when the case runs.

    Raises:
        UsageError: for a distribution without plugin, an unknown key, or a reason that is empty.
    """
    import pytest

    found = cases(what, expected_failures=expected_failures, params=params)
    return pytest.mark.parametrize("check", [as_param(case) for case in found])


def as_param(case: Case) -> Any:
    """Return ``pytest.param`` of a case: its id, and a strict ``xfail`` if it is expected."""
    import pytest

    marks = [pytest.mark.xfail(reason=case.reason, strict=True)] if case.reason else []
    return pytest.param(case, id=case.id, marks=marks)


def _subjects(what: What, params: dict[str, Params]) -> Iterator[Subject | PluginSubject]:
    items = [what] if isinstance(what, str | ComponentSpec) else list(what)
    names = [i for i in items if isinstance(i, str)]
    specs = tuple(i for i in items if isinstance(i, ComponentSpec))
    groups: list[tuple[str, list[Entry] | tuple[ComponentSpec, ...]]] = []
    for name in names:
        groups.append((name, _entries(name)))
    if specs:
        groups.append(("", specs))
    known = set()
    for name, group in groups:
        members = [(e, "", "") if isinstance(e, ComponentSpec) else _parts(e) for e in group]
        yield PluginSubject(name, tuple(spec for spec, _, _ in members))
        for spec, distribution, version in members:
            key = f"{spec.kind}/{spec.name}"
            known.add(key)
            for variant in _variants(spec):
                yield Subject(spec, distribution, version, variant, params.get(key, {}))
    _refuse_keys("params", params, known)


def _parts(entry: Entry) -> tuple[ComponentSpec, str, str]:
    return entry.spec, entry.distribution, entry.version


def _entries(distribution: str) -> list[Entry]:
    from vcr_core.plugins import registry

    found = registry()
    wanted = normal_distribution(distribution)
    entries = [e for e in found.entries() if e.distribution == wanted]
    known = {p.distribution for p in found.plugins} | {f.distribution for f in found.failures}
    if wanted not in known:
        raise UsageError(
            f"no plugin of a distribution {distribution!r} is installed"
            f"{did_you_mean(wanted, known)} (installed: {', '.join(sorted(known)) or 'none'})"
        )
    return entries


def _variants(spec: ComponentSpec) -> list[str]:
    """The default, and every set of weights that comes inside a package."""
    from vcr_core.specs import ModelSpec

    if not isinstance(spec, ModelSpec) or not spec.weights:
        return [""]
    first, *others = spec.weights
    return [first.variant, *(w.variant for w in others if w.url.startswith("package:"))]


def _needs_distribution(check: Check, subject: PluginSubject) -> bool:
    return not subject.distribution and check.id in (
        "plugin/imports-light",
        "plugin/hooks-known",
        "plugin/isolated",
    )


def _reason(case: Case, expected: dict[str, str]) -> str:
    for key in (case.id, f"{case.check.id}:{_base(case)}"):
        if key in expected:
            return expected[key]
    return ""


def _base(case: Case) -> str:
    subject = case.subject
    return subject.ref if isinstance(subject, PluginSubject) else subject.spec.name


def _refuse_unknown(expected: dict[str, str], found: list[Case]) -> None:
    ids = {c.id for c in found} | {f"{c.check.id}:{_base(c)}" for c in found}
    _refuse_keys("expected_failures", expected, ids)
    for key, reason in expected.items():
        if not reason.strip():
            raise UsageError(f"expected_failures[{key!r}]: an expected failure needs a reason")


def _refuse_keys(argument: str, given: Iterable[str], known: set[str]) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{argument}[{key!r}]: nothing has this id{did_you_mean(key, known)}")
