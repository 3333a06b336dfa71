"""What a sweep asks of the machine, counted from its plan alone; no torch.

A :class:`Step` is one thing that is done to one video and that has a price of its own; a sweep is
a :class:`~collections.Counter` of steps. Multiply by measured prices to get seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


class Step(NamedTuple):
    """``kind`` is ``forward``, ``gradient``, ``decode``, ``metrics``, ``network`` or ``run``.

    A forward pass and a gradient (one forward and one backward pass) are those of one video with
    all its views, behind ``defense`` or behind none (``""``).
    """

    kind: str
    model: str = ""
    defense: str = ""


Cost: TypeAlias = "Counter[Step]"


@dataclass(frozen=True)
class Attack:
    """What an attack asks per attacked video when it is never stopped early.

    Attributes:
        name: of the component.
        gradients: forward and backward passes.
        queries: forward passes without a gradient, the closing one included.
    """

    name: str
    gradients: int
    queries: int


@dataclass(frozen=True)
class Defense:
    """What one prediction behind a defense asks.

    Attributes:
        name: of the component.
        draws: predictions with which it is judged: ``protocol.eval_repeats`` if random, else 1.
        votes: passes of the classifier for one prediction.
        gradient_votes: the same for one gradient.
        network: passes of the purifier's own network for one prediction, over the whole clip.
    """

    name: str
    draws: int = 1
    votes: int = 1
    gradient_votes: int = 1
    network: int = 0


NONE = Defense("")


@dataclass(frozen=True)
class Plan:
    """One model under every attack, bare and behind every defense.

    Attributes:
        model: its name.
        videos: N, all that are shown.
        eligible: E by defense (``""``: the bare model), those that are right and so attacked.
        attacks: A of them.
        defenses: D of them, besides the bare model.
        unaware: whether attacks that do not know the defense are judged behind it.
        aware: whether attacks that know it are.
        eot: k, draws behind a gradient of an attack that knows the defense.
        reuse: whether an unaware attack is computed once and taken over.
    """

    model: str
    videos: int
    eligible: Mapping[str, int]
    attacks: tuple[Attack, ...]
    defenses: tuple[Defense, ...]
    unaware: bool = True
    aware: bool = True
    eot: int = 1
    reuse: bool = True

    def attacked(self, attack: Attack, defense: Defense) -> Cost:
        """Return the attack itself on all eligible videos."""
        videos, draws = self.eligible[defense.name], self.eot if defense.name else 1
        gradients = videos * attack.gradients * draws
        queries = videos * attack.queries
        return Counter({
            Step("gradient", self.model, defense.name): gradients * defense.gradient_votes,
            Step("forward", self.model, defense.name): queries * defense.votes,
            # A gradient passes the purifier forwards only: its stand-in is the identity.
            Step("network", "", defense.name): (gradients + queries) * defense.network,
        })  # fmt: skip

    def judged(self, defense: Defense) -> Cost:
        """Return what one look at all videos costs."""
        looks = self.videos * defense.draws
        return Counter({
            Step("forward", self.model, defense.name): looks * defense.votes,
            Step("network", "", defense.name): looks * defense.network,
        })  # fmt: skip

    def run(self, defense: Defense = NONE) -> Cost:
        """Return what every run has: decoding, and one clip that shows whether it gives logits."""
        probe = Counter({Step("forward", self.model): 1})
        return Counter({Step("run"): 1, Step("decode"): self.videos}) + probe

    def bare(self, attack: Attack) -> Cost:
        """Return an attack on the bare model, without its clean predictions."""
        measured = Counter({Step("metrics"): self.eligible[""]})
        return self.run() + self.attacked(attack, NONE) + self.judged(NONE) + measured

    def unaware_run(self, attack: Attack, defense: Defense) -> Cost:
        """Return the same attack judged behind a defense: clean and attacked videos pass it."""
        cost = self.run() + self.judged(defense) + self.judged(defense)
        if not self.reuse:
            cost += self.bare(attack) - self.run() + self.judged(NONE)
        return cost

    def aware_run(self, attack: Attack, defense: Defense) -> Cost:
        """Return an attack through a defense; its videos are shown to the bare model as well."""
        looks = self.judged(defense) + self.judged(defense) + self.judged(NONE)
        measured = Counter({Step("metrics"): self.eligible[defense.name]})
        cost = self.run() + self.attacked(attack, defense) + looks + measured
        return cost if self.reuse else cost + self.judged(NONE)

    def total(self) -> Cost:
        """Return the whole sweep of this model."""
        cost: Cost = self.judged(NONE) if self.reuse else Counter()  # clean, kept from then on
        for attack in self.attacks:
            cost += self.bare(attack)
            if not self.reuse:
                cost += self.judged(NONE)
            for defense in self.defenses:
                cost += self.unaware_run(attack, defense) if self.unaware else Counter()
                cost += self.aware_run(attack, defense) if self.aware else Counter()
        return cost


def of_kind(cost: Cost, *kinds: str) -> int:
    """Return how many steps of these kinds there are."""
    return sum(count for step, count in cost.items() if step.kind in kinds)


def seconds(cost: Cost, prices: Mapping[Step, float]) -> float:
    """Return the sum of all steps times their prices.

    Raises:
        KeyError: if one has no price.
    """
    return sum(count * prices[step] for step, count in cost.items())


def clip_bytes(frames: int, height: int, width: int) -> int:
    """Return the bytes of one kept video: its distinct frames as 8-bit RGB."""
    return frames * height * width * 3


def together(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs."""
    total: Cost = Counter()
    for cost in costs:
        total += cost
    return total
