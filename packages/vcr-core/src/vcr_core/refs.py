"""References to components: parsing, normal forms, near matches."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from vcr_core.errors import UsageError
from vcr_core.specs import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

NAME_PATTERN = r"[a-z0-9]+(-[a-z0-9]+)*"
NAME_LENGTH = 40

_NAME = re.compile(NAME_PATTERN)
_PLURALS: dict[str, Kind] = {f"{kind}s": kind for kind in KINDS}
_KIND_WORDS: dict[str, Kind] = {kind: kind for kind in KINDS} | _PLURALS


@dataclass(frozen=True, slots=True)
class Reference:
    """A parsed reference; every part is in normal form.

    Attributes:
        name: component name.
        variant: what follows the first dot, or ``""``.
        distribution: the distribution named in front, or ``""``.
        kind: the kind named in front, or ``None``.
    """

    name: str
    variant: str = ""
    distribution: str = ""
    kind: Kind | None = None

    def __str__(self) -> str:
        """Return the canonical form, ``kind/dist/name.variant`` without what is missing."""
        last = f"{self.name}.{self.variant}" if self.variant else self.name
        return "/".join(part for part in (self.kind, self.distribution, last) if part)


def is_canonical(name: str) -> bool:
    """Return whether ``name`` may be a component's name.

    Example:
        >>> is_canonical("temporal-median"), is_canonical("Temporal_Median")
        (True, False)
    """
    return len(name) <= NAME_LENGTH and _NAME.fullmatch(name) is not None


def normal_name(text: str) -> str:
    """Return a component name or variant in normal form: lower case, ``_`` and blanks as ``-``.

    Example:
        >>> normal_name(" Temporal_Median")
        'temporal-median'
    """
    return re.sub(r"[_\s]", "-", text.strip().lower())


def normal_distribution(text: str) -> str:
    """Return a distribution name as package indexes compare it.

    Example:
        >>> normal_distribution("Vcr_Acme.Models")
        'vcr-acme-models'
    """
    return re.sub(r"[-_.]+", "-", text.strip()).lower()


def parse_kind(text: str) -> Kind:
    """Return the kind that a word names, singular or plural.

    Raises:
        UsageError: for any other word.

    Example:
        >>> parse_kind("Attacks")
        'attack'
    """
    kind = _KIND_WORDS.get(normal_name(text))
    if kind is None:
        raise UsageError(
            f"unknown kind {text!r}{did_you_mean(normal_name(text).rstrip('s'), KINDS)} "
            f"(kinds: {', '.join(KINDS)})"
        )
    return kind


def parse(text: str) -> Reference:
    """Parse ``name``, ``name.variant``, with ``kind/``, ``dist/`` or ``kind/dist/`` in front.

    A first part that is the name of a kind is a kind, never a distribution.

    Raises:
        UsageError: if the text cannot be a reference.

    Example:
        >>> parse("attack/Vcr_Attacks/IFGSM.strong")
        Reference(name='ifgsm', variant='strong', distribution='vcr-attacks', kind='attack')
    """
    parts = [part.strip() for part in text.split("/")]
    if not all(parts) or len(parts) > 3:
        raise UsageError(
            f"{text!r} is not a reference to a component; write name, name.variant, "
            "dist/name or kind/name"
        )
    kind: Kind | None = None
    if len(parts) > 1 and normal_name(parts[0]) in _KIND_WORDS:
        kind = _KIND_WORDS[normal_name(parts.pop(0))]
    if len(parts) > 2:
        raise UsageError(
            f"{text!r} is not a reference to a component: {parts[0]!r} is no kind "
            f"(kinds: {', '.join(KINDS)})"
        )
    distribution = normal_distribution(parts[0]) if len(parts) == 2 else ""
    name, dot, variant = parts[-1].partition(".")
    if not name or (dot and not variant):
        raise UsageError(f"{text!r} is not a reference to a component: a part is empty")
    return Reference(
        name=normal_name(name),
        variant=normal_name(variant),
        distribution=distribution,
        kind=kind,
    )


def near(word: str, choices: Iterable[str], count: int = 3) -> list[str]:
    """Return the choices that look like ``word``, best first."""
    from difflib import get_close_matches  # not needed unless something is wrong

    return get_close_matches(word, sorted(set(choices)), n=count, cutoff=0.6)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ``"; did you mean 'x' or 'y'?"``, or ``""`` if nothing is near.

    Example:
        >>> did_you_mean("ifgms", ["ifgsm", "deepfool"])
        "; did you mean 'ifgsm'?"
    """
    found = near(word, choices)
    return f"; did you mean {' or '.join(repr(f) for f in found)}?" if found else ""


def literal_values(alias: Any) -> tuple[str, ...]:
    """Return the words of a ``Literal`` type."""
    return cast("tuple[str, ...]", alias.__args__)
