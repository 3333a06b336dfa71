"""Denoisers whose answers are known, and folders that describe models without weights."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from vcr_defenses.diffusion.schedule import NoiseSchedule, add_noise, eps_of_x0


class Oracle:
    """A denoiser that knows the clean images, or predicts what it is told, and keeps count."""

    size, multiple = 32, 4

    def __init__(self, schedule: NoiseSchedule, predict: Callable[..., torch.Tensor]) -> None:
        self.schedule = schedule
        self.predict = predict
        self.steps: list[int] = []
        self.batches: list[int] = []

    def predict_eps(self, x_t: torch.Tensor, t: int) -> torch.Tensor:
        self.steps.append(t)
        self.batches.append(len(x_t))
        return self.predict(x_t, t)

    def to(self, device: object) -> Oracle:
        return self


@pytest.fixture
def described(tmp_path: Path) -> Callable[..., str]:
    """Return a maker of folders with configuration files only."""

    def make(
        *, name: str = "model", steps: int = 200, unet: dict | None = None, **scheduler
    ) -> str:
        folder = tmp_path / name
        for part in ("unet", "scheduler"):
            (folder / part).mkdir(parents=True)
        config = {
            "_class_name": "UNet2DModel",
            "in_channels": 3,
            "sample_size": 32,
            "block_out_channels": [8, 8, 8],
        } | (unet or {})
        (folder / "unet" / "config.json").write_text(json.dumps(config))
        about = {"num_train_timesteps": steps} | scheduler
        (folder / "scheduler" / "scheduler_config.json").write_text(json.dumps(about))
        return str(folder)

    return make


@pytest.fixture
def oracle() -> Callable[..., Oracle]:
    """Return a function that gives a component a denoiser: zero noise, a constant, or the truth."""

    def give(component, *, eps: float = 0.0, clean: torch.Tensor | None = None) -> Oracle:
        schedule = component.space.schedule

        def predict(x_t: torch.Tensor, t: int) -> torch.Tensor:
            if clean is None:
                return torch.full_like(x_t, eps)
            return eps_of_x0(x_t, (2 * clean - 1).expand_as(x_t), schedule.abar(t))

        made = Oracle(schedule, predict)
        component.space._model = made
        return made

    return give


@pytest.fixture
def noisy() -> Callable[..., torch.Tensor]:
    """Return a maker of noisy images at a level."""

    def make(x0: torch.Tensor, abar: float, seed: int = 0) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed)
        return add_noise(x0, torch.randn(x0.shape, generator=generator), abar)

    return make
