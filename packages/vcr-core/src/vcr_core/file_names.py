"""File names for anything: references, run ids and whatever a hostile folder calls itself."""

from __future__ import annotations

import hashlib
import re

_PLAIN = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
_HASHED = re.compile(r"-[0-9a-f]{8}\Z")
_RESERVED = frozenset({
    "con", "prn", "aux", "nul", "index",
    *(f"{port}{n}" for port in ("com", "lpt") for n in range(10)),
})  # fmt: skip
"""Names that Windows keeps for itself, and the one that a web server shows for a folder."""


def file_name(text: str) -> str:
    """Return a name for ``text`` that is safe on every file system and in every address.

    A name that is safe already stays as it is; every other one gets a hash of the whole text, so
    that two texts never share a name, whatever the case rules of the file system.

    Example:
        >>> file_name("x3d.m-k400")
        'x3d.m-k400'
        >>> file_name("../Etc/passwd")
        'etc-passwd-870be831'
    """
    words = re.sub(r"-*\.{2,}-*|-{2,}", "-", re.sub(r"[^a-z0-9._-]+", "-", text.lower()))
    words = words[:60].strip("-._")
    reserved = words.partition(".")[0] in _RESERVED
    if text == words and _PLAIN.fullmatch(words) and not (reserved or _HASHED.search(words)):
        return words
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    # Windows looks at what stands before the first dot.
    return f"{'x-' if reserved or not words else ''}{words}{'-' if words else ''}{digest}"
