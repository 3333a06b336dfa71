"""Class names: the form in which datasets and models meet, and errors that list the misses."""

from __future__ import annotations

import difflib
import hashlib
import re
from importlib import resources
from typing import TYPE_CHECKING, Final

from vcr_core.errors import ConfigError
from vcr_core.protocols import LabelSpace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

_DROPPED: Final = re.compile("[\"'`\u2018\u2019\u201c\u201d()\\[\\]{}]")
_GAPS: Final = re.compile(r"[\s_]+")
_SHOWN: Final = 8

UNLABELLED: Final = LabelSpace("unlabelled", ("unlabelled",))
"""The one class of videos that nobody has labelled."""

UNKNOWN: Final = -1
"""Stands for a class index that is not known yet."""


def normalise_label(name: str) -> str:
    """Return the form in which class names are compared.

    Case, quotes and brackets are dropped; underscores and any run of white space become one blank.

    Example:
        >>> normalise_label("Massaging_person's  head")
        'massaging persons head'
        >>> normalise_label("hurling (sport)") == normalise_label('"Hurling sport"')
        True
    """
    return _GAPS.sub(" ", _DROPPED.sub("", name)).strip().casefold()


def label_index(names: Sequence[str], where: str) -> dict[str, int]:
    """Return the position of every normalised name.

    Args:
        names: class names in order.
        where: what messages call the list.

    Raises:
        ConfigError: if two names are the same after normalisation, or one is empty.
    """
    index: dict[str, int] = {}
    for position, name in enumerate(names):
        key = normalise_label(name)
        if not key:
            raise ConfigError(f"{where}: class {position} has no name ({name!r})")
        if key in index:
            other = names[index[key]]
            raise ConfigError(f"{where}: {other!r} and {name!r} are the same class name")
        index[key] = position
    return index


def match_labels(found: Iterable[str], names: Sequence[str], where: str) -> dict[str, int]:
    """Return the position in ``names`` of every name in ``found``.

    Args:
        found: class names as some file spells them.
        names: the label space.
        where: what messages call the place of ``found``.

    Raises:
        ConfigError: listing the names without a counterpart, with near matches.
    """
    index = label_index(names, "label space")
    matched: dict[str, int] = {}
    missing: list[str] = []
    for name in dict.fromkeys(found):
        position = index.get(normalise_label(name))
        if position is None:
            missing.append(name)
        else:
            matched[name] = position
    if missing:
        shown = ", ".join(_with_hint(name, index, names) for name in missing[:_SHOWN])
        more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
        raise ConfigError(
            f"{where}: {len(missing)} class names are not among the {len(names)} of the label "
            f"space: {shown}{more}"
        )
    return matched


def read_names(path: Path) -> tuple[str, ...]:
    """Return class names from a file with one a line; blank lines are ignored.

    Raises:
        ConfigError: if the file cannot be read, is empty, or holds a name twice.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path.absolute()}: {error}") from error
    names = tuple(line.strip() for line in text.splitlines() if line.strip())
    if not names:
        raise ConfigError(f"{path.absolute()}: holds no class name")
    label_index(names, str(path.absolute()))
    return names


def kinetics400_names() -> tuple[str, ...]:
    """Return the 400 class names of Kinetics-400 in the order of published classifier heads."""
    data = resources.files("vcr_core") / "data" / "kinetics400_labels.txt"
    return tuple(data.read_text(encoding="utf-8").splitlines())


def space_id(kind: str, names: Sequence[str]) -> str:
    """Return an id that differs for different lists, e.g. ``folder-3-1f0c…``."""
    digest = hashlib.blake2b("\n".join(names).encode(), digest_size=4).hexdigest()
    return f"{kind}-{len(names)}-{digest}"


def _with_hint(name: str, index: dict[str, int], names: Sequence[str]) -> str:
    close = difflib.get_close_matches(normalise_label(name), index, n=1)
    return f"{name!r} (near: {names[index[close[0]]]!r})" if close else repr(name)
