"""Rankings: systems that met the same attack on the same videos, and which can be told apart.

A ranking holds runs that differ in the model and its defenses and in nothing else: the same
videos (by fingerprint), evaluation version, attack with its parameters, threat and protocol, and
the same knowledge of the attacker. A system is the model with its defenses; where it was attacked
more than once in a ranking, its lowest accuracy counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from vcr_core.leaderboard.telling_apart import told_apart
from vcr_core.manifest import component_ref, defense_refs, is_adaptive, is_targeted, table
from vcr_core.reporters.rows import eps_of, threat_text
from vcr_core.transformation import is_transformation

if TYPE_CHECKING:
    from vcr_core.leaderboard.submissions import Submission

Knowledge: TypeAlias = Literal[
    "", "asks nothing", "sees the whole system", "sees the bare model", "sees another model"
]

_OF_THE_DEFENSE = frozenset({
    "attacker_knows_defense", "gradient", "eot", "confirm", "eval_repeats",
})  # fmt: skip
_OF_THE_CHOICE = frozenset({"limit", "rule", "subset"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A run within its ranking.

    Attributes:
        submission: the run.
        rank: position by value, 1 is best, ties share the better one; ``None`` if another run of
            the same system has a lower accuracy.
        best: best rank that the tests leave open.
        worst: worst one.
        superseded_by: the run of the same system that counts instead, ``""`` if this one does.
    """

    submission: Submission
    rank: int | None
    best: int | None
    worst: int | None
    superseded_by: str = ""

    @property
    def text(self) -> str:
        """Ranks that the tests leave open, ``2-4`` with a dash, or nothing."""
        if self.best is None:
            return ""
        return str(self.best) if self.best == self.worst else f"{self.best}\u2013{self.worst}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Runs that may be ranked together, best first.

    Attributes:
        id: short hash of what they share.
        shared: what they share, by dotted key.
        attack: reference of the attack, ``""`` for clean accuracy.
        threat: the constraint in words.
        access: what the attack asks of a model.
        targeted: whether it aims at a class.
        knowledge: what the attacker looks at.
        dataset: reference of the dataset.
        fingerprint: of its videos.
        videos: how many.
        evaluation_version: of everything that may alter a number.
        settings: what tells it from rankings that would read the same, ``steps = 20``.
        source: the model that the attack was computed on, ``""`` where it is the ranked one.
        places: the runs.
        pairs: pairs of systems that were compared.
        told_apart: of these, pairs that differ by more than chance explains.
    """

    id: str
    shared: Mapping[str, Any]
    attack: str
    threat: str
    access: str
    targeted: bool
    knowledge: Knowledge
    dataset: str
    fingerprint: str
    videos: int
    evaluation_version: Any
    places: tuple[Place, ...]
    pairs: int
    told_apart: int
    settings: str = ""
    source: str = ""

    @property
    def title(self) -> str:
        """Attack and threat, or that nothing was attacked."""
        if not self.attack:
            return "No attack"
        goal = " (targeted)" if self.targeted else ""
        on = f" on {self.source}" if self.source else ""
        return f"{self.attack}{on}{goal}, {self.threat}"

    @property
    def setting(self) -> str:
        """The videos and the version, in words: what a number cannot be compared across."""
        short = self.fingerprint[:8] or "unknown"
        return (
            f"{self.dataset}, {self.videos} videos ({short}), "
            f"evaluation version {self.evaluation_version}"
        )


def make_rankings(submissions: Sequence[Submission]) -> list[Ranking]:
    """Return the rankings of all runs, ordered by dataset, attack, threat and knowledge."""
    groups: dict[str, list[Submission]] = {}
    for one in submissions:
        key = json.dumps(shared_by(one.run.manifest), sort_keys=True, default=str)
        groups.setdefault(key, []).append(one)
    found = [_ranking(key, members) for key, members in groups.items()]
    return sorted(_told(found), key=_order)


def shared_by(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return what two runs must have in common to be ranked together, by dotted key."""
    attacked = bool(component_ref(manifest, "attack"))
    facts = manifest.get("dataset") or {}
    protocol = {k: v for k, v in table(manifest, "protocol").items() if k not in _OF_THE_DEFENSE}
    if protocol.get("stop") != "confidence":
        protocol.pop("confidence", None)
    threat = dict(table(manifest, "threat")) if attacked else {}
    if "eps" in threat:
        threat["eps"] = eps_of(threat)
    if not threat.get("targeted"):
        threat.pop("target", None)
    if not attacked:
        protocol = {k: v for k, v in protocol.items() if k not in ("stop", "confidence")}
    chosen = table(manifest, "dataset")
    return {
        "evaluation_version": manifest.get("evaluation_version"),
        "fingerprint": facts.get("fingerprint"),
        "label_space": facts.get("label_space"),
        **_flat("dataset", {k: v for k, v in chosen.items() if k not in _OF_THE_CHOICE}),
        **_flat("attack", table(manifest, "attack") if attacked else {}),
        **_flat("source", table(manifest, "source") if attacked else {}),
        **_flat("threat", threat),
        **_flat("protocol", protocol),
        "knowledge": knowledge_of(manifest),
    }


def knowledge_of(manifest: Mapping[str, Any]) -> Knowledge:
    """Return what the attacker looks at; without a defense the model is the whole system."""
    if not component_ref(manifest, "attack"):
        return ""
    if is_transformation(manifest):
        return "asks nothing"
    if component_ref(manifest, "source"):
        return "sees another model"
    if not defense_refs(manifest) or is_adaptive(manifest):
        return "sees the whole system"
    return "sees the bare model"


def system_of(manifest: Mapping[str, Any]) -> str:
    """Return model and defenses with their parameters, as text to compare."""
    chain = (manifest.get("experiment") or {}).get("defense") or []
    links = [chain] if isinstance(chain, Mapping) else chain
    plain = [
        {k: v for k, v in link.items() if k != "attack_params"}
        for link in links
        if isinstance(link, Mapping)
    ]
    model = table(manifest, "model")
    return json.dumps({"model": model, "defense": plain}, sort_keys=True, default=str)


def _ranking(key: str, members: Sequence[Submission]) -> Ranking:
    shared: dict[str, Any] = json.loads(key)
    manifest = members[0].run.manifest
    threat = table(manifest, "threat")
    norm = str(threat.get("norm", "linf"))
    attacked = bool(component_ref(manifest, "attack"))
    places, pairs, told = _places(members)
    return Ranking(
        id=hashlib.blake2b(key.encode(), digest_size=5, person=b"vcr-ranking").hexdigest(),
        shared=shared,
        attack=component_ref(manifest, "attack"),
        threat=threat_text(norm, eps_of(threat)) if attacked else "",
        access=_access(manifest),
        targeted=is_targeted(manifest),
        knowledge=knowledge_of(manifest),
        dataset=component_ref(manifest, "dataset"),
        fingerprint=str(shared.get("fingerprint") or ""),
        videos=len({video for batch in manifest.get("batches") or () for video in batch}),
        evaluation_version=shared.get("evaluation_version"),
        source=component_ref(manifest, "source") if attacked else "",
        places=places,
        pairs=pairs,
        told_apart=told,
    )


def _places(members: Sequence[Submission]) -> tuple[tuple[Place, ...], int, int]:
    """Return the runs by value, the number of pairs of systems, and of those told apart."""
    ordered = sorted(members, key=lambda s: (-(s.value or 0.0), s.run.name))
    systems: dict[str, Submission] = {}
    for one in ordered:
        # The last one of a system has its lowest accuracy.
        systems[system_of(one.run.manifest)] = one
    counted = [one for one in ordered if systems[system_of(one.run.manifest)] is one]
    better, worse = told_apart({one.run.name: one.holds for one in counted})
    places = []
    for one in ordered:
        winner = systems[system_of(one.run.manifest)]
        if winner is not one:
            places.append(
                Place(
                    submission=one, rank=None, best=None, worst=None,
                    superseded_by=winner.run.name,
                )
            )  # fmt: skip
            continue
        name = one.run.name
        rank = 1 + sum((other.value or 0.0) > (one.value or 0.0) for other in counted)
        places.append(
            Place(
                submission=one,
                rank=rank,
                best=1 + better[name],
                worst=len(counted) - worse[name],
            )
        )
    return tuple(places), len(counted) * (len(counted) - 1) // 2, sum(better.values())


def _told(rankings: Sequence[Ranking]) -> list[Ranking]:
    """Return rankings with ``settings`` where two would read the same."""
    from dataclasses import replace

    alike: dict[tuple[str, ...], list[Ranking]] = {}
    for one in rankings:
        alike.setdefault((one.title, one.knowledge, one.setting), []).append(one)
    found = []
    for group in alike.values():
        names = sorted({name for one in group for name in one.shared})
        differing = [n for n in names if len({repr(one.shared.get(n)) for one in group}) > 1]
        for one in group:
            told = (f"{_last(n)} = {_word(one.shared[n])}" for n in differing if n in one.shared)
            found.append(replace(one, settings=", ".join(told)))
    return found


def _order(one: Ranking) -> tuple[Any, ...]:
    norm, eps = str(one.shared.get("threat.norm", "")), one.shared.get("threat.eps")
    return (
        one.dataset, str(one.evaluation_version), -one.videos, one.fingerprint,
        bool(one.attack), one.attack, one.targeted, norm, eps or 0.0,
        get_args(Knowledge).index(one.knowledge), one.source, one.settings, one.id,
    )  # fmt: skip


def _access(manifest: Mapping[str, Any]) -> str:
    for part in manifest.get("components") or ():
        if part.get("role") == "attack":
            return str(part.get("access") or "")
    return ""


def _flat(prefix: str, values: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat |= _flat(f"{prefix}.{key}", value)
        elif value is not None:
            flat[f"{prefix}.{key}"] = value
    return flat


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
