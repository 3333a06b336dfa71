"""Learning a pattern, and adding it."""

from __future__ import annotations

import json

import pytest
import torch
from safetensors.torch import save_file
from vcr_core.errors import IncompatibleComponents, NotAvailable
from vcr_core.protocols import PrepareContext, VideoItem
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.testing.toys.linear import LinearClassifier
from vcr_core.threat import L2, Linf
from vcr_defenses.defense_patterns import DefensePatterns
from vcr_defenses.params.learned import DefensePatternsParams
from vcr_defenses.pattern_training import PATTERN_FILE, REPORT_FILE, STATE_FILE, read_pattern

SHAPE = (4, 3, 16, 16)
SHORT = DefensePatternsParams(epochs=4, batch=3, rate=0.2, attack_steps=2)


class Stopped(Exception):
    pass


def context(folder, *, threat=None, progress=None, sizes=((16, 16),)):
    generator = torch.Generator().manual_seed(1)
    items = []
    for i in range(8):
        height, width = sizes[i % len(sizes)]
        levels = torch.randint(0, 256, (4, height, width, 3), generator=generator)
        items.append(VideoItem(f"v{i}", i % 4, ArraySource(f"v{i}", levels.byte().numpy())))
    more = {"progress": progress} if progress else {}
    return PrepareContext(
        folder=folder, items=items, seed=5, model=LinearClassifier(size=16, gain=20),
        threat=threat or Linf(4 / 255), **more,
    )  # fmt: skip


def test_the_loss_falls_and_the_pattern_keeps_its_radius(tmp_path):
    made = context(tmp_path)
    DefensePatterns(SHORT).prepare(made)
    losses = json.loads((tmp_path / REPORT_FILE).read_text())["losses"]
    assert len(losses) == SHORT.epochs
    assert losses[-1] < losses[0]
    pattern = read_pattern(tmp_path)
    assert pattern.shape == SHAPE
    assert 0 < pattern.abs().max() <= SHORT.eps + 1e-7
    # A gradient for the clean videos, two for the attack, one for what it left.
    meters = made.meters[""]
    assert sum(m.backwards for m in meters) == SHORT.epochs * 8 * (SHORT.attack_steps + 2)
    assert not (tmp_path / STATE_FILE).exists()


def test_stopped_anywhere_it_goes_on_to_the_same_bits(tmp_path):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    DefensePatterns(SHORT).prepare(context(whole))
    done = []

    def stop_now_and_then(count, total):
        done.append(count)
        if len(done) in (2, 6, 9):
            raise Stopped

    for _ in range(4):
        try:
            DefensePatterns(SHORT).prepare(context(parts, progress=stop_now_and_then))
        except Stopped:
            continue
    assert (parts / PATTERN_FILE).read_bytes() == (whole / PATTERN_FILE).read_bytes()


def test_adds_what_was_learned(tmp_path, make_clips, make_random):
    save_file({"pattern": torch.full(SHAPE, 0.02)}, tmp_path / PATTERN_FILE)
    defense = DefensePatterns()
    defense.restore(tmp_path)
    clips = make_clips(2, 2, *SHAPE)
    assert torch.allclose(defense.apply(clips, make_random()), (clips + 0.02).clamp(max=1))
    zero = DefensePatterns()
    save_file({"pattern": torch.zeros(SHAPE)}, tmp_path / PATTERN_FILE)
    zero.restore(tmp_path)
    assert torch.equal(zero.apply(clips, make_random()), clips)


def test_another_shape_or_radius_is_refused(tmp_path, make_clips, make_random):
    save_file({"pattern": torch.full(SHAPE, 0.02)}, tmp_path / PATTERN_FILE)
    defense = DefensePatterns()
    with pytest.raises(NotAvailable, match="vcr prepare"):
        defense.apply(make_clips(2, 1, *SHAPE), make_random())
    defense.restore(tmp_path)
    with pytest.raises(IncompatibleComponents, match=r"\[4, 3, 16, 16\]"):
        defense.apply(make_clips(2, 1, 4, 3, 16, 18), make_random())
    with pytest.raises(IncompatibleComponents, match="eps"):
        DefensePatterns(DefensePatternsParams(eps=0.01)).restore(tmp_path)


def test_norms_and_mixed_sizes_that_cannot_be_learned_are_refused(tmp_path):
    with pytest.raises(IncompatibleComponents, match="linf"):
        DefensePatterns(SHORT).prepare(context(tmp_path, threat=L2(1.0)))
    with pytest.raises(IncompatibleComponents, match="one size"):
        DefensePatterns(SHORT).prepare(context(tmp_path, sizes=((16, 16), (16, 20))))
