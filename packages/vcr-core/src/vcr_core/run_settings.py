"""A run's settings as flat text, to say in what two runs differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from vcr_core.manifest import (
    component_ref,
    defense_refs,
    is_adaptive,
    is_targeted,
    table,
)

if TYPE_CHECKING:
    from vcr_core.summary import RunView

TABLES = ("dataset", "model", "source", "attack", "threat", "protocol")
ATTACK_KEYS = frozenset({"stop", "confirm", "confidence", "tie_frames"})
"""Keys of ``[protocol]`` that matter with an attack only."""
DEFENSE_KEYS = frozenset({"eval_repeats", "attacker_knows_defense", "gradient", "eot"})
"""Keys that matter with a defense only."""
_ADAPTIVE_KEYS = frozenset({"gradient", "eot"})


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting in which two runs differ; ``""`` where one does not have it."""

    name: str
    a: str
    b: str

    @property
    def text(self) -> str:
        """The difference on one line."""
        return f"{self.name}: {self.a or 'none'} → {self.b or 'none'}"


def run_settings(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return the experiment's settings by key path, as ``{"attack.steps": "10"}``.

    Defenses are numbered in the order in which they apply: ``defense.0.sigma``.
    """
    experiment = manifest.get("experiment") or {}
    found = {"seed": str(experiment.get("seed"))} if "seed" in experiment else {}
    for name in TABLES:
        found |= flatten(table(manifest, name), name)
    for position, link in enumerate(defense_tables(manifest)):
        found |= flatten(link, f"defense.{position}")
    return found


def defense_tables(manifest: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tables of a run's defenses in the order in which they apply."""
    chain = (manifest.get("experiment") or {}).get("defense") or []
    links = [chain] if isinstance(chain, Mapping) else chain
    return [link for link in links if isinstance(link, Mapping)]


def flatten(values: Mapping[str, Any], prefix: str) -> dict[str, str]:
    """Return a table's values as text by key path; what is ``None`` is left out.

    Example:
        >>> flatten({"eps": 0.5, "region": {"top": 0}, "quantize": True}, "threat")
        {'threat.eps': '0.5', 'threat.region.top': '0', 'threat.quantize': 'yes'}
    """
    flat: dict[str, str] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{prefix}.{key}")
        elif isinstance(value, bool):
            flat[f"{prefix}.{key}"] = "yes" if value else "no"
        elif value is not None:
            flat[f"{prefix}.{key}"] = f"{value:.6g}" if isinstance(value, float) else str(value)
    return flat


def protocol_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of ``[protocol]`` that can matter to a run, as its identity has them."""
    unused: set[str] = set()
    if not component_ref(manifest, "attack"):
        unused |= ATTACK_KEYS | _ADAPTIVE_KEYS | {"attacker_knows_defense"}
    if not defense_refs(manifest):
        unused |= DEFENSE_KEYS
    elif not is_adaptive(manifest):
        unused |= _ADAPTIVE_KEYS
    protocol = table(manifest, "protocol")
    if protocol.get("labels") == "dataset":
        unused.add("labels")  # older manifests do not have the key
    if protocol.get("autocast") == "off":
        unused.add("autocast")  # likewise
    return {k: v for k, v in protocol.items() if k not in unused}


def threat_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of ``[threat]`` that can matter to a run."""
    if not component_ref(manifest, "attack"):
        return {}
    threat = dict(table(manifest, "threat"))
    if not is_targeted(manifest):
        threat.pop("target", None)
    return threat


def differences(a: RunView, b: RunView) -> list[Difference]:
    """Return the settings, components and versions in which two runs differ."""
    first, second = _relevant(a), _relevant(b)
    names = [*first, *(name for name in second if name not in first)]
    return [
        Difference(name, first.get(name, ""), second.get(name, ""))
        for name in names
        if first.get(name) != second.get(name)
    ]


def _relevant(run: RunView) -> dict[str, str]:
    """Return settings that can matter, then versions and weights of components."""
    manifest = run.manifest
    kept = {"protocol": protocol_of(manifest), "threat": threat_of(manifest)}
    found = {
        name: value
        for name, value in run_settings(manifest).items()
        if name.partition(".")[0] not in kept
        or name.partition(".")[2].partition(".")[0] in kept[name.partition(".")[0]]
    }
    for component in manifest.get("components") or ():
        if component.get("weights"):
            found[f"{component['role']} weights"] = str(component["weights"])[:12]
        found[str(component.get("distribution"))] = str(component.get("version"))
    environment = manifest.get("environment") or {}
    torch = environment.get("torch") or {}
    if torch.get("version"):
        found["torch"] = str(torch["version"])
    devices = sorted({str(r["device"]) for r in run.records if r.get("device")})
    if devices:
        found["device"] = ", ".join(devices)
    return found
