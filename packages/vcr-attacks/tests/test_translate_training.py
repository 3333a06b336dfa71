"""End to end: a model that was trained on shifted videos keeps more under ``translate``."""

from __future__ import annotations

import torch
import vcr_core
from torch import nn
from torch.nn import functional
from vcr_core.protocols import LabelSpace, VideoItem
from vcr_core.robustness.collect import collect
from vcr_core.specs import ClipSpec
from vcr_core.testing.toys.arrays import ArraySource

SIDE, FRAMES = 32, 4
NAMES = ("plus", "cross", "square", "diamond")


def shape(name: str) -> torch.Tensor:
    """A line drawing of 9 x 9 pixels."""
    y, x = torch.meshgrid(torch.arange(-4, 5), torch.arange(-4, 5), indexing="ij")
    lines = {
        "plus": (x == 0) | (y == 0),
        "cross": (x == y) | (x == -y),
        "square": torch.maximum(x.abs(), y.abs()) == 4,
        "diamond": x.abs() + y.abs() == 4,
    }
    return lines[name].float()


def draw(labels: list[int], seed: int) -> torch.Tensor:
    """Videos ``[N, T, 3, H, W]`` of noisy shapes in the middle that go one pixel to the right."""
    random = torch.Generator().manual_seed(seed)
    videos = 0.4 + 0.1 * torch.rand(len(labels), FRAMES, 3, SIDE, SIDE, generator=random)
    for video, label in zip(videos, labels, strict=True):
        for step, frame in enumerate(video):
            left = 11 + step // 2
            frame[:, 11:20, left : left + 9] += 0.3 * shape(NAMES[label])
    return videos


class Picture(nn.Module):
    """The mean over time and colour, around 0, as one row of pixels."""

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return 4 * (clips.mean(dim=(1, 2)).flatten(1) - 0.45)


def trained(reach: int) -> nn.Module:
    """A small perceptron, trained on shapes that are shifted by up to ``reach`` pixels."""
    labels = torch.arange(128) % 4
    pictures = draw(labels.tolist(), 1).mean(dim=(1, 2), keepdim=True)
    random = torch.Generator().manual_seed(3)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        net = nn.Sequential(Picture(), nn.Linear(SIDE**2, 64), nn.ReLU(), nn.Linear(64, 4))
    optimiser = torch.optim.Adam(net.parameters(), lr=3e-3)
    for _ in range(300):
        shifts = torch.randint(-reach, reach + 1, (8, 2), generator=random).tolist()
        moved = [
            part.roll(shift, dims=(3, 4))
            for part, shift in zip(pictures.chunk(8), shifts, strict=True)
        ]
        optimiser.zero_grad()
        functional.cross_entropy(net(torch.cat(moved)), labels).backward()
        optimiser.step()
    return net


class Shapes:
    """Forty shapes in the middle, which no model was trained on."""

    def __init__(self) -> None:
        self.labels = LabelSpace("shapes", NAMES)
        self._labels = [index % 4 for index in range(40)]
        videos = draw(self._labels, 2).permute(0, 1, 3, 4, 2)
        self._frames = (videos * 255).round().byte().numpy()

    def ids(self) -> list[str]:
        return [f"shape-{index:02d}" for index in range(40)]

    def item(self, video_id: str) -> VideoItem:
        index = int(video_id.rpartition("-")[2])
        source = ArraySource(video_id, self._frames[index])
        return VideoItem(id=video_id, label=self._labels[index], source=source)


def test_jitter_in_training_shows_in_retention_and_mpc():
    runs = []
    for name, reach in (("plain", 0), ("jittered", 3)):
        model = vcr_core.as_classifier(
            trained(reach), labels=NAMES, clip=ClipSpec(frames=FRAMES, size=SIDE), name=name
        )
        for severity in (2, 3):  # as many pixels
            attack = vcr_core.load("attack", "translate", severity=severity)
            result = vcr_core.evaluate(
                model=model,
                attack=attack,
                dataset=Shapes(),
                metrics=[],
                threat=vcr_core.Unbounded(),
                runtime={"threads": 1},
            )
            runs.append(result.view)
    (section,) = collect(runs).sections
    numbers = {name: found["overall"] for name, found in section.systems.items()}
    assert numbers["plain"]["clean"]["value"] > 0.9
    assert numbers["jittered"]["clean"]["value"] > 0.9
    assert numbers["jittered"]["mr"]["value"] > numbers["plain"]["mr"]["value"] + 0.2
    assert numbers["jittered"]["mr"]["ci95"][0] > numbers["plain"]["mr"]["ci95"][1]
