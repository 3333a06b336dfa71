"""PGD breaks what I-FGSM breaks, on videos of the bundled models near their boundary."""

from __future__ import annotations

import pytest
import torch
from vcr_attacks.fgsm import Fgsm
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.params.gradient import IfgsmParams, PgdParams
from vcr_attacks.pgd import Pgd
from vcr_core.preparing import load_items
from vcr_core.threat import Linf

THREAT = Linf("2/255", quantize=False)


@pytest.mark.parametrize(
    ("steps", "share"), [(5, 0.5), (10, 0.25), (20, 0.25), (50, 0.25), (100, 0.25)]
)
def test_steps_do_not_shrink_below_a_quarter_of_the_radius(steps, share, contest, linear, videos):
    w = torch.ones(1, 1, 3, 4, 4)
    clean = videos(1, 1, 3, 4, 4)
    attack = Pgd(PgdParams(steps=steps, random_start=False))
    outcome = contest(attack, linear(w), clean, [1], threat=Linf("8/255", quantize=False))
    second = outcome.points[1][1]
    assert float((clean - second).max()) == pytest.approx(share * 8 / 255, rel=1e-3)


def test_pgd_beats_ifgsm_beats_fgsm_near_the_boundary(contest):
    """Videos that 50 steps of a twentieth of the radius did not break, with two restarts."""
    vcr = pytest.importorskip("vcr_core")
    pytest.importorskip("vcr_models")
    model = vcr.load("model", "tiny-tsm")
    dataset = vcr.load("dataset", "motion", split="test")
    ids = [f"motion-v1-test-{n:06d}" for n in (72, 89, 0, 1)]
    (batch,) = load_items(model.clip, "cpu")([dataset.item(video) for video in ids])

    def broken(attack):
        outcome = contest(
            attack, model, batch.videos, batch.labels.tolist(), threat=THREAT, ids=ids,
            stop="first_success",
        )  # fmt: skip
        return [meter.achieved for meter in outcome.victim.meters]

    pgd = broken(Pgd(PgdParams(steps=50, restarts=2)))
    ifgsm, fgsm = broken(Ifgsm(IfgsmParams(step="auto"))), broken(Fgsm())
    assert all(pgd)
    assert sum(pgd) > sum(ifgsm) >= sum(fgsm)
    fine = broken(Pgd(PgdParams(steps=50, restarts=2, step=2.5 * 2 / 255 / 50)))
    assert sum(fine) < sum(pgd)
