"""A resolved experiment: every default made explicit, every reference canonical."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from vcr_core.config.schema import (
    DatasetKeys,
    OutputConfig,
    PathsConfig,
    PrepareConfig,
    ProtocolConfig,
    RuntimeConfig,
    ThreatConfig,
)
from vcr_core.specs import ComponentSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """A component that a run uses.

    Attributes:
        spec: its spec.
        distribution: who provides it.
        version: the provider's version.
        variant: what follows the dot in the reference, or ``""``.
        params: validated parameters with all defaults, as plain data.
        attack_params: those of a defense while an adaptive attack looks at it, all of them; empty
            where they are the same.
    """

    spec: ComponentSpec
    distribution: str
    version: str
    variant: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    attack_params: dict[str, Any] = field(default_factory=dict)

    @property
    def ref(self) -> str:
        """Canonical short reference, ``name`` or ``name.variant``."""
        return f"{self.spec.name}.{self.variant}" if self.variant else self.spec.name

    @property
    def qualified(self) -> str:
        """Reference with the distribution in front."""
        return f"{self.distribution}/{self.ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorChoice:
    """Who runs the shards.

    Attributes:
        name: reference of the executor.
        workers: how many at once; 0 for as many as there is room for.
        params: its validated parameters with all defaults, as plain data.
    """

    name: str = "inline"
    workers: int = 0
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def table(self) -> dict[str, Any]:
        """The choice as the table ``[executor]`` says it."""
        return {"name": self.name, "workers": self.workers, **self.params}


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One run, fully decided. See ``identity`` for what its hash covers.

    ``source`` is the model that the attack is computed on where that is not the evaluated one.
    """

    seed: int
    dataset_keys: DatasetKeys
    dataset: Chosen
    model: Chosen
    attack: Chosen | None
    defenses: tuple[Chosen, ...]
    metrics: tuple[Chosen, ...]
    threat: ThreatConfig
    protocol: ProtocolConfig
    paths: PathsConfig
    runtime: RuntimeConfig
    executor: ExecutorChoice
    output: OutputConfig
    prepare: PrepareConfig = field(default_factory=PrepareConfig)
    source: Chosen | None = None

    @property
    def attack_run(self) -> Experiment:
        """The experiment whose attack this one judges: itself, or that of the bare source."""
        if self.source is None:
            return self
        return replace(self, model=self.source, source=None, defenses=())

    @property
    def prepares(self) -> bool:
        """Whether the attack, with these parameters, has an offline step."""
        if self.attack is None or not getattr(self.attack.spec, "prepares", False):
            return False
        when: tuple[str, str] | None = getattr(self.attack.spec, "prepares_when", None)
        return when is None or self.attack.params.get(when[0]) == when[1]

    @property
    def prepared_defenses(self) -> tuple[int, ...]:
        """Positions of the defenses that have an offline step."""
        return tuple(
            position
            for position, chosen in enumerate(self.defenses)
            if getattr(chosen.spec, "prepares", False)
        )

    @property
    def own_labels(self) -> bool:
        """Whether the bare model's clean predictions take the place of the dataset's labels."""
        return self.protocol.labels == "clean-prediction"

    @property
    def adaptive(self) -> bool:
        """Whether the attack sees the defense."""
        return bool(self.defenses) and self.protocol.attacker_knows_defense
