from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy
import pytest
from vcr_core import plugins
from vcr_core.plugins import Entry, Registry
from vcr_core.specs import (
    AttackSpec,
    ClipSpec,
    DatasetSpec,
    DefenseSpec,
    ExecutorSpec,
    MetricSpec,
    ModelSpec,
    PresetSource,
    WeightSpec,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from vcr_core.specs import ComponentSpec

CLIP = ClipSpec(frames=8)
SHA = "ab" * 32


def _spec(kind: type, name: str, params: str | None = None, **more: Any) -> ComponentSpec:
    struct = f"vcr_fake.params:{params}" if params else None
    return kind(name=name, summary="fake", target="vcr_fake.code:Fake", params=struct, **more)


def _model(name: str, space: str = "motion8", classes: int = 8, **more: Any) -> ComponentSpec:
    more.setdefault("weights", (WeightSpec(variant="small", sha256=SHA),))
    return _spec(ModelSpec, name, label_space=space, num_classes=classes, clip=CLIP, **more)


def _attack(
    name: str, params: str | None = None, norms: tuple[str, ...] = ("linf",), **more: Any
) -> ComponentSpec:
    more.setdefault("access", "white-box")
    return _spec(AttackSpec, name, params, norms=frozenset(norms), **more)


def fake_specs() -> list[ComponentSpec]:
    return [
        _model(
            "net",
            weights=(
                WeightSpec(variant="small", sha256=SHA),
                WeightSpec(variant="large", sha256="cd" * 32),
            ),
        ),
        _model("opaque", differentiable=False),
        _model("kinetics-net", space="kinetics400", classes=400),
        _model("heavy", requires=("no-such-distribution>=1",), extra="vcr-fake[heavy]"),
        _attack("ifgsm", "IfgsmParams", targeted=True),
        _attack("pgd", "PgdParams", norms=("linf", "l2"), targeted=True, stochastic=True),
        _attack("square", access="score"),
        _attack("stadv", norms=("none",)),
        _attack("cw", norms=("l2",)),
        _attack("hit", norms=("linf",), targeted=True, untargeted=False),
        _attack("bank", "BankParams", prepares=True),
        _attack("codec", access="none", norms=("none",), stage="source"),
        _spec(DefenseSpec, "gaussian-blur", "BlurParams"),
        _spec(DefenseSpec, "jpeg", "JpegParams", gradient="surrogate"),
        _spec(DefenseSpec, "purifier", gradient="none", defense_kind="purify"),
        _spec(DefenseSpec, "rotate", stochastic=True),
        _spec(MetricSpec, "mse", higher_is_better=False),
        _spec(MetricSpec, "psnr", higher_is_better=True),
        _spec(MetricSpec, "ssim", "SsimParams", higher_is_better=True),
        _spec(DatasetSpec, "motion", label_space="motion8", generated=True),
        _spec(DatasetSpec, "folder", "FolderParams"),
        _spec(ExecutorSpec, "inline"),
        _spec(ExecutorSpec, "process"),
    ]


def registry_of(
    specs: list[ComponentSpec],
    others: tuple[tuple[str, ComponentSpec], ...] = (),
    presets: tuple[tuple[str, PresetSource], ...] = (),
) -> Registry:
    entries = [Entry(spec, "vcr-fake", "1.2.3") for spec in specs]
    entries += [Entry(spec, distribution, "9.9") for distribution, spec in others]
    return Registry(
        _entries=tuple(sorted(entries, key=lambda e: (e.kind, e.name, e.distribution))),
        failures=(),
        preset_sources=presets,
        plugins=(),
        disabled=(),
        copies=(),
        _manager=pluggy.PluginManager("vcr"),
    )


@pytest.fixture(autouse=True)
def use_registry(monkeypatch: pytest.MonkeyPatch) -> Callable[[Registry], None]:
    """Put fake components in place of the installed ones."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "fakes")
    current = [registry_of(fake_specs(), presets=(("vcr-fake", PresetSource(package="vcr_fake")),))]
    monkeypatch.setattr(plugins, "registry", lambda: current[0])
    monkeypatch.setattr("vcr_core.components.registry", lambda: current[0])

    def replace(other: Registry) -> None:
        current[0] = other

    return replace


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder and an empty user configuration."""
    monkeypatch.setenv("VCR_CONFIG_DIR", str(tmp_path / "user"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work
