"""Train the bundled ``tamper-net``: ``python train_tamper_net.py --seed 0``.

Motion clips of the ``train`` stream are tampered with in all ways, in segments of several lengths
at random places; every video is used as it is, and half of them encoded with H.264 as well. What
the network looks at is worked out once, then it is trained on that.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from tamper_data import Sample, encoded, samples
from torch import Tensor
from torch.nn import functional
from vcr_models.detectors.fitting import as_clip
from vcr_models.detectors.names import LABELS
from vcr_models.detectors.network import CHANNELS, TamperNet, network_signals

HERE = Path(__file__).resolve().parent
SETTINGS: tuple[dict[str, Any], ...] = (
    {"frames": 32, "duration_s": 1.0, "location": "random"},
    {"frames": 32, "duration_s": 1.0, "location": "middle"},
    {"frames": 32, "duration_s": 0.5, "location": "random"},
    {"frames": 24, "duration_s": 0.6, "location": "random"},
    {"frames": 16, "duration_s": 1.0, "location": "random"},
)
"""Clips take turns; of a clip of 16 frames a third is tampered with, whatever is asked."""

LONGEST = 48
"""Frames of the longest result: 32 and 16 repeated ones."""

Rows = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def prepared(sources: int, rng: np.random.Generator) -> Rows:
    """Return signals ``[n, 28, 48]``, frames, labels, marks ``[n, 48]`` and numbers of clips."""
    rows: list[tuple[Any, ...]] = []
    for turn, setting in enumerate(SETTINGS):
        numbers = range(turn, sources, len(SETTINGS))
        for sample in samples(numbers, effects="all", seed=turn, **setting):
            rows.append(_row(sample, sample.frames))
            if sample.segment is None or rng.random() < 0.5:
                crf = int(rng.integers(18, 31))
                rows.append(_row(sample, encoded(sample.frames, sample.fps, crf)))
    return (
        torch.stack([row[0] for row in rows]),
        torch.tensor([row[1] for row in rows]),
        torch.tensor([row[2] for row in rows]),
        torch.stack([row[3] for row in rows]),
        torch.tensor([row[4] for row in rows]),
    )


def _row(sample: Sample, frames: np.ndarray[Any, np.dtype[np.uint8]]) -> tuple[Any, ...]:
    with torch.no_grad():
        signals = network_signals(as_clip(frames)[None])[0]
    padded = torch.zeros(CHANNELS, LONGEST)
    padded[:, : signals.shape[1]] = signals
    marks = torch.zeros(LONGEST)
    if sample.segment is not None:
        start, end = sample.segment
        marks[start : max(end, start + 1)] = 1
    number = int(sample.source.rpartition("-")[2])
    return padded, len(frames), LABELS.names.index(sample.label), marks, number


def loss_of(network: TamperNet, rows: Rows, smoothing: float = 0.02) -> Tensor:
    """Return the loss: of the class, originals counting three times, and of the marks."""
    signals, frames, labels, marks, _ = rows
    scores, found = network(signals, frames)
    weight = torch.ones(len(LABELS))
    weight[0] = 3.0
    named = functional.cross_entropy(scores, labels, weight=weight, label_smoothing=smoothing)
    there = torch.arange(LONGEST)[None] < frames[:, None]
    each = functional.binary_cross_entropy_with_logits(found, marks, reduction="none")
    return named + 0.5 * each[there].mean()


def accuracy(network: TamperNet, rows: Rows) -> float | None:
    """Return the mean over classes of the share that is named right; ``None`` without a video."""
    if not len(rows[0]):
        return None
    network.eval()
    with torch.no_grad():
        guessed = network(rows[0], rows[1])[0].argmax(dim=1)
    network.train()
    right = (guessed == rows[2]).double()
    shares = [right[rows[2] == c].mean() for c in sorted(set(rows[2].tolist()))]
    return round(float(torch.stack(shares).mean()), 4)


def main() -> None:
    """Train, store the weights and write a log."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sources", type=int, default=400, help="clips of the train stream")
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--cache", type=Path, help="file to keep the signals in")
    parser.add_argument("--weights", type=Path, default=HERE.parent / "src/vcr_models/weights")
    parser.add_argument("--logs", type=Path, default=HERE / "logs")
    given = parser.parse_args()
    torch.set_num_threads(1)
    began = time.process_time()
    if given.cache is not None and given.cache.exists():
        rows: Rows = torch.load(given.cache, weights_only=True)
    else:
        rows = prepared(given.sources, np.random.default_rng([given.seed, 1]))
        if given.cache is not None:
            torch.save(rows, given.cache)
    recipe = {k: v for k, v in vars(given).items() if k not in ("cache", "weights", "logs")}
    log: list[dict[str, Any]] = [
        {"event": "start", **recipe, "videos": len(rows[0]), "settings": SETTINGS,
         "torch": torch.__version__, "cpu_seconds": round(time.process_time() - began, 1)}
    ]  # fmt: skip
    order = torch.Generator().manual_seed(given.seed)
    torch.manual_seed(given.seed)
    network = TamperNet(len(LABELS))
    # A tenth of the clips tells how training goes; nothing is chosen by it.
    held = rows[4] // len(SETTINGS) % 10 == 9
    train: Rows = tuple(part[~held] for part in rows)  # type: ignore[assignment]
    check: Rows = tuple(part[held] for part in rows)  # type: ignore[assignment]
    optimizer = torch.optim.AdamW(network.parameters(), lr=given.lr, weight_decay=0.05)
    steps = given.epochs * (len(train[0]) // given.batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, given.lr, total_steps=steps)
    for epoch in range(given.epochs):
        total = 0.0
        shuffled = torch.randperm(len(train[0]), generator=order)
        batches = shuffled.split(given.batch)[: len(train[0]) // given.batch]
        for index in batches:
            batch: Rows = tuple(part[index] for part in train)  # type: ignore[assignment]
            loss = loss_of(network, batch)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            total += float(loss.detach())
        log.append({"event": "epoch", "epoch": epoch, "loss": round(total / len(batches), 4),
                    "held_out": accuracy(network, check),
                    "cpu_seconds": round(time.process_time() - began, 1)})  # fmt: skip
    content = save({k: v.contiguous() for k, v in network.eval().state_dict().items()})
    (given.weights / "tamper-net.safetensors").write_bytes(content)
    digest, size = hashlib.sha256(content).hexdigest(), len(content)
    parameters = sum(p.numel() for p in network.parameters())
    log.append({"event": "stored", "sha256": digest, "bytes": size, "parameters": parameters})
    given.logs.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(entry) + "\n" for entry in log)
    (given.logs / "tamper-net.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
