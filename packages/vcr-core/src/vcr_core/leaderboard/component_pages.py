"""What the site knows about a model, an attack, a defense or a dataset, and who used it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from vcr_core.errors import VcrError
from vcr_core.file_names import file_name
from vcr_core.manifest import table
from vcr_core.plugins import registry

if TYPE_CHECKING:
    from vcr_core.specs import Kind

FOLDERS: Mapping[str, str] = {
    "model": "models", "attack": "attacks", "defense": "defenses", "dataset": "datasets",
}  # fmt: skip


@dataclass(slots=True, kw_only=True)
class ComponentPage:
    """A component that runs on the leaderboard used.

    Attributes:
        kind: ``model``, ``attack``, ``defense`` or ``dataset``.
        ref: reference as shown; with its distribution where two have the same name.
        page: address of its page, relative to the site.
        facts: what is known about it, by name.
        runs: ids of the runs that used it.
        versions: versions of its distribution in those runs.
    """

    kind: str
    ref: str
    page: str
    facts: list[tuple[str, str]] = field(default_factory=list)
    runs: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)

    @property
    def address(self) -> str:
        """The paper's or repository's address if that is one that can be followed."""
        return next((v for k, v in self.facts if k == "reference" and is_web_address(v)), "")


class Components:
    """Every component of the runs of a leaderboard, by kind and qualified reference."""

    def __init__(self, manifests: Mapping[str, Mapping[str, Any]]) -> None:
        """Take the manifests of all runs by run id."""
        used = {run: used_components(manifest) for run, manifest in manifests.items()}
        short: dict[tuple[str, str], set[str]] = {}
        for parts in used.values():
            for kind, ref, _ in parts:
                short.setdefault((kind, ref.rpartition("/")[2]), set()).add(ref)
        self._pages: dict[tuple[str, str], ComponentPage] = {}
        for run, parts in sorted(used.items()):
            for kind, ref, part in parts:
                name = ref.rpartition("/")[2]
                shown = name if len(short[(kind, name)]) == 1 else ref
                found = self._pages.get((kind, ref))
                if found is None:
                    found = ComponentPage(
                        kind=kind, ref=shown, page=f"{FOLDERS[kind]}/{file_name(shown)}.html",
                        facts=known_facts(kind, ref, part),
                    )  # fmt: skip
                    self._pages[(kind, ref)] = found
                found.runs.add(run)
                if part.get("version"):
                    found.versions.add(f"{part.get('distribution')} {part['version']}")

    def pages(self) -> list[ComponentPage]:
        """Return all pages, ordered by kind and reference."""
        order = list(FOLDERS)
        return sorted(self._pages.values(), key=lambda p: (order.index(p.kind), p.ref))

    def of(self, manifest: Mapping[str, Any], kind: str) -> list[ComponentPage]:
        """Return the pages of a run's components of a kind, in the order in which they apply."""
        return [self._pages[(k, ref)] for k, ref, _ in used_components(manifest) if k == kind]


def used_components(manifest: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return kind, reference and the manifest's description of a run's components.

    The identity as a defense is none.
    """
    described: dict[str, list[Mapping[str, Any]]] = {}
    for part in manifest.get("components") or ():
        if isinstance(part, Mapping):
            described.setdefault(str(part.get("role")), []).append(part)
    found: list[tuple[str, str, Mapping[str, Any]]] = []
    for kind in ("dataset", "model", "attack"):
        chosen = table(manifest, kind)
        if chosen.get("name"):
            found.append((kind, reference(chosen), next(iter(described.get(kind, [])), {})))
    chain = (manifest.get("experiment") or {}).get("defense") or []
    links = [chain] if isinstance(chain, Mapping) else chain
    for position, link in enumerate(links):
        if isinstance(link, Mapping) and link.get("name"):
            ref, parts = reference(link), described.get("defense", [])
            part = parts[position] if position < len(parts) else {}
            if ref.rpartition("/")[2] != "identity":
                found.append(("defense", ref, part))
    return found


def reference(chosen: Mapping[str, Any]) -> str:
    """Return the reference of a component's table, with distribution and variant."""
    name, variant = str(chosen.get("name")), str(chosen.get("variant") or "")
    return f"{name}.{variant}" if variant and not name.endswith(f".{variant}") else name


def known_facts(kind: str, ref: str, part: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what ``vcr info`` says about a component, or that it is not installed here."""
    from vcr_core.cli.info import component_facts

    try:
        entry, variant = registry().find(_kind(kind), ref)
    except VcrError:
        where = f"{part.get('distribution') or 'its distribution'} {part.get('version') or ''}"
        return [("installed", f"not where this site was made; {where.strip()} provides it")]
    return [(name, str(value)) for name, value in component_facts(entry, variant)]


def is_web_address(text: str) -> bool:
    """Return whether text is an address that a page may link to.

    Example:
        >>> is_web_address("https://arxiv.org/abs/1706.06083"), is_web_address("javascript:alert()")
        (True, False)
    """
    return text.startswith(("https://", "http://")) and not any(c.isspace() for c in text)


def _kind(kind: str) -> Kind:
    found: Sequence[Kind] = ("model", "attack", "defense", "dataset")
    return next(k for k in found if k == kind)
