from __future__ import annotations

import pytest
import torch
from vcr_core.testing.checks.contest import Contest
from vcr_core.testing.toys.attacks import Grain, SignDescent
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.labels import DIRECTIONS
from vcr_core.testing.toys.linear import LinearClassifier
from vcr_core.testing.toys.shapes import ShapesDataset, draw
from vcr_core.testing.toys.specs import TOY_DESCENT, TOY_GRAIN
from vcr_core.threat import ThreatModel
from vcr_core.video.sampling import make_plan

torch.set_num_threads(1)


def _clips(label: int, shape: int) -> torch.Tensor:
    frames = torch.from_numpy(draw(label, shape)[2:10:2].copy())
    return frames.permute(0, 3, 1, 2)[None].to(torch.float32) / 255


def test_linear_margin_is_gain_times_contrast():
    model = LinearClassifier(gain=100.0)
    z = model.logits(model.video(1, levels=2)[None])[0, 0]
    assert z[1] - z[0] == pytest.approx(100 * 2 / 255, rel=1e-5)


@pytest.mark.parametrize("norm", ["linf", "l2", "l1"])
def test_linear_least_radius_is_the_closed_form_optimum(norm):
    model = LinearClassifier()
    clean = model.video(0)
    direction = (model.patterns[2] - model.patterns[0]).expand_as(clean)
    radius = model.least_radius(norm)
    # The best point of the ball: everything that helps, in the proportion that the norm allows.
    unit = {
        "linf": direction.sign(),
        "l2": direction / direction.norm(),
        "l1": direction.abs() / direction.abs().sum() * direction.sign(),
    }[norm]
    for times, falls in ((0.99, False), (1.01, True)):
        z = model.logits((clean + times * radius * unit)[None])[0, 0]
        assert (int(z.argmax()) != 0) is falls


def test_linear_l0_radius_needs_about_that_many_pixels():
    model = LinearClassifier()
    clean = model.video(0)
    helps = (model.patterns[2] - model.patterns[0]) < 0
    count = round(1.1 * model.least_radius("l0") * clean.numel() / 3)
    places = helps.nonzero()[:count]
    adversarial = clean.clone()
    adversarial[0, :, places[:, 0], places[:, 1]] = 0.0
    assert int(model.logits(adversarial[None])[0, 0].argmax()) != 0


def test_linear_rows_do_not_depend_on_their_place():
    model = LinearClassifier()
    clips = torch.rand(5, 4, 3, 32, 32, generator=torch.Generator().manual_seed(1))
    together = model.logits(clips)
    assert torch.equal(together.flip(0), model.logits(clips.flip(0)))


@pytest.mark.parametrize("shape", [0, 1, 2])
def test_cnn_classifies_every_video_of_shapes(shape):
    model = ToyCnn()
    for label in range(len(DIRECTIONS)):
        p = model.logits(_clips(label, shape))[0, 0].softmax(dim=0)
        assert int(p.argmax()) == label
        assert p[label] > 0.99


def test_cnn_is_small_and_falls_to_an_attack_but_not_to_noise():
    model = ToyCnn()
    assert sum(p.numel() * 4 for p in model.network.parameters()) < 200_000
    clean = torch.cat([_clips(0, 0), _clips(3, 1)])
    contest = Contest(clean, (0, 3), ThreatModel(eps=8 / 255), model=model)
    attacked = contest.run(SignDescent(), TOY_DESCENT).result
    assert contest.predict(attacked).argmax(dim=1).tolist() != [0, 3]
    noisy = contest.run(Grain(), TOY_GRAIN).result
    assert contest.predict(noisy).argmax(dim=1).tolist() == [0, 3]


def test_shapes_are_24_videos_of_8_classes_without_files():
    dataset = ShapesDataset()
    ids = list(dataset.ids())
    labels = [dataset.item(i).label for i in ids]
    assert len(ids) == 24
    assert sorted(set(labels)) == list(range(8))
    clip = dataset.item("east/disc").source.read(lambda n: make_plan(n, frames=4, stride=2))
    assert clip.frames.shape == (4, 32, 32, 3)
    assert clip.plan.n_frames == 12


def test_shapes_refuse_an_unknown_id():
    with pytest.raises(KeyError):
        ShapesDataset().item("up/disc")
