"""StyleFool: its bank of styles, what it stylises, where it searches."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch
from safetensors.torch import load
from vcr_attacks.params.prepared import StylefoolParams
from vcr_attacks.stylefool import Stylefool
from vcr_attacks.stylefool_bank import StyleBank, read_bank, style_pictures
from vcr_attacks.stylefool_colours import is_dull, theme
from vcr_core.errors import ComponentUnavailable, IncompatibleComponents, NotAvailable
from vcr_core.protocols import AttackContext, PrepareContext, VideoItem
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.threat import Linf, Unbounded
from vcr_core.video.info import VideoReadError

EXACT = Unbounded(quantize=False)


def statistics(**more):
    more.setdefault("samples", 4)
    more.setdefault("iterations", 3)
    return StylefoolParams(styliser="statistics", **more)


def context(folder, model, clean, labels, **more):
    folder.mkdir(exist_ok=True)
    pixels = (clean * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
    items = [
        VideoItem(f"t/{i}", label, ArraySource(f"t/{i}", clip))
        for i, (label, clip) in enumerate(zip(labels, pixels, strict=True))
    ]
    more.setdefault("threat", Unbounded())
    return PrepareContext(folder, items, 3, model, **more)


@pytest.fixture
def prepared(tmp_path, tiny, videos, labels_of):
    """Return a folder with styles and starts of every class that the tiny model names."""
    clean = videos(6, 3, 3, 10, 12, seed=2)
    labels = labels_of(tiny, clean)
    ctx = context(tmp_path, tiny, clean, labels, targets=(0, 1, 2, 3, 4))
    Stylefool(statistics()).prepare(ctx)
    return tmp_path


def test_the_bank_holds_frames_classes_and_chances(tmp_path, tiny, videos):
    clean = videos(3, 3, 3, 10, 12, seed=2)
    ctx = context(tmp_path, tiny, clean, [2, 0, 1])
    Stylefool(statistics()).prepare(ctx)
    bank = read_bank(tmp_path)
    assert bank.labels.tolist() == [2, 2, 2, 0, 0, 0, 1, 1, 1]
    for number, picture in enumerate(bank.pictures):
        assert torch.equal(picture / 255, clean[number // 3, number % 3])
        torch.testing.assert_close(bank.themes[number], theme(clean[number // 3, number % 3][None]))
    with torch.no_grad():
        chances = tiny.logits(clean)[:, 0].softmax(1)
    torch.testing.assert_close(bank.chances, chances.repeat_interleave(3, 0))
    assert bank.starts == {}
    assert sum(m.forwards for m in ctx.meters[""]) == 3
    assert not any(m.backwards for m in ctx.meters[""])
    assert ctx.facts["pictures"] == 9
    assert not [p for p in tmp_path.iterdir() if p.is_dir()]


def test_dark_and_framed_pictures_are_left_out(tmp_path, tiny, videos):
    clean = videos(3, 3, 3, 10, 12, seed=2)
    clean[0] = 0.1
    clean[1, :, :, 0] = 0
    assert is_dull(clean[0, 0])
    assert is_dull(clean[1, 0])
    assert not is_dull(clean[2, 0])
    ctx = context(tmp_path, tiny, clean, [0, 1, 2])
    Stylefool(statistics()).prepare(ctx)
    assert read_bank(tmp_path).labels.tolist() == [2, 2, 2]
    assert ctx.facts["left_out"] == 6
    # A dull bank is better than none.
    only = context(tmp_path / "dull", tiny, clean[:1], [0])
    Stylefool(statistics()).prepare(only)
    assert len(read_bank(tmp_path / "dull").pictures) == 3


def test_starts_are_the_surest_videos_of_target_classes(tmp_path, tiny, videos, labels_of):
    clean = videos(8, 3, 3, 10, 12, seed=2)
    labels = labels_of(tiny, clean)
    labels[0] = (labels[0] + 1) % 5  # the model is wrong about this one
    wanted = sorted({*labels[1:]})[:2]
    ctx = context(tmp_path, tiny, clean, labels, targets=tuple(wanted))
    Stylefool(statistics()).prepare(ctx)
    starts = read_bank(tmp_path).starts
    assert sorted(starts) == wanted
    with torch.no_grad():
        chances = tiny.logits(clean)[:, 0].softmax(1)
    for label, clip in starts.items():
        rows = [i for i in range(1, 8) if labels[i] == label]
        best = max(rows, key=lambda i: float(chances[i, label]))
        assert torch.equal(clip / 255, clean[best])
    within = context(tmp_path / "linf", tiny, clean, labels, targets=(0,), threat=Linf("8/255"))
    Stylefool(statistics()).prepare(within)
    assert read_bank(tmp_path / "linf").starts == {}


@pytest.mark.parametrize("styles", ["videos", "bundled"])
def test_preparing_goes_on_where_it_was_stopped(styles, tmp_path, tiny, videos):
    clean, labels = videos(4, 3, 3, 10, 12, seed=2), [0, 1, 2, 3]
    attack = Stylefool(statistics(styles=styles))

    class Cut(Exception):
        pass

    def cut(done, total):
        if done == total // 2:
            raise Cut

    more = {"targets": (0, 1, 2, 3, 4)}
    whole = context(tmp_path / "one", tiny, clean, labels, **more)
    attack.prepare(whole)
    with pytest.raises(Cut):
        attack.prepare(context(tmp_path / "cut", tiny, clean, labels, progress=cut, **more))
    again = context(tmp_path / "cut", tiny, clean, labels, **more)
    attack.prepare(again)
    files = sorted(p.name for p in (tmp_path / "one").iterdir())
    assert files == sorted(p.name for p in (tmp_path / "cut").iterdir())
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "cut" / name).read_bytes()
    asked = [sum(m.forwards for m in ctx.meters[""]) for ctx in (whole, again)]
    assert asked[0] == (4 if styles == "videos" else 4 + 16)
    assert asked[1] == asked[0] - asked[0] // 2


def test_pictures_of_a_folder_take_the_class_that_the_model_sees(tmp_path, tiny, videos):
    pictures = style_pictures("bundled")
    assert len(pictures) == 16
    assert all(p.shape == (3, 96, 96) and p.dtype == torch.uint8 for p in pictures)
    ctx = context(tmp_path, tiny, videos(2, 3, 3, 10, 12), [0, 1])
    Stylefool(statistics(styles="bundled", style_side=24)).prepare(ctx)
    bank = read_bank(tmp_path)
    assert bank.labels.tolist() == [-1] * 16
    assert bank.pictures[0].shape == (3, 24, 24)
    torch.testing.assert_close(bank.chances.sum(1), torch.ones(16))
    with pytest.raises(VideoReadError, match="no image"):
        Stylefool(statistics(styles=str(tmp_path))).prepare(
            context(tmp_path / "other", tiny, videos(1, 3, 3, 10, 12), [0])
        )


@pytest.mark.golden
def test_which_style_is_chosen():
    red, near_red, blue = torch.tensor([[0.9, 0, 0], [0.8, 0.1, 0], [0, 0, 0.9]])
    themes = torch.stack([c.expand(3, 3) for c in (red, near_red, blue, blue)])
    bank = StyleBank(
        [], torch.tensor([0, 1, 2, 2]),
        torch.tensor([[1.0, 0, 0], [0, 0.9, 0.1], [0, 0.3, 0.7], [0, 0, 0.8]]), themes,
    )  # fmt: skip
    video = red.view(1, 3, 1, 1).expand(2, 3, 6, 6)
    assert bank.choice(video, 0, None, 1e5) == 1
    assert bank.choice(video, 1, None, 1e5) == 0
    assert bank.choice(video, 0, 2, 1e5) == 3
    assert bank.choice(video, 0, 2, 0.0) == 2
    # No picture of class 1 with a label: the one in which the model sees it.
    unlabelled = StyleBank([], torch.full((4,), -1), bank.chances, themes)
    assert unlabelled.choice(video, 0, None, 1e5) == 1
    assert unlabelled.choice(video, 0, 1, 1e5) == 1


def test_answers_stay_near_the_stylised_video(prepared, tiny, contest, videos, labels_of):
    clean = videos(3, 3, 3, 10, 12, seed=8)
    labels = labels_of(tiny, clean)
    attack = Stylefool(statistics(radius=0.05))
    outcome = contest(attack, tiny, clean, labels, access="score", threat=EXACT, folder=prepared)
    styled = outcome.points[0][1]
    for rows, points in outcome.points:
        assert ((points - styled[rows]).abs() <= 0.05 + 1e-6).all()
    assert {m.forwards for m in outcome.victim.meters} == {1 + 3 * (4 + 1)}
    assert not torch.equal(styled, clean)


@pytest.mark.parametrize("targets", [None, (1, 2, 3)])
def test_kept_with_8_bits_answers_stay_near_the_stylised_video(
    targets, prepared, tiny, contest, videos, labels_of
):
    clean = videos(3, 3, 3, 10, 12, seed=8)
    labels = labels_of(tiny, clean)
    attack = Stylefool(statistics(radius=0.05, start="styled"))
    outcome = contest(
        attack, tiny, clean, labels, access="score", threat=Unbounded(), folder=prepared,
        targets=targets,
    )  # fmt: skip
    styled = outcome.points[0][1]
    torch.testing.assert_close((styled * 255).round(), styled * 255, rtol=0, atol=1e-3)
    far = ((outcome.result - styled) * 255).abs().max()
    assert 0 < far <= 12 + 1e-3


def test_with_a_norm_the_ball_is_around_the_original(prepared, tiny, contest, videos, labels_of):
    clean = videos(3, 3, 3, 10, 12, seed=8)
    labels = labels_of(tiny, clean)
    for threat in (Linf("8/255"), Linf("8/255", frames=(0, 2), region=(0.0, 0.0, 0.5, 1.0))):
        outcome = contest(
            Stylefool(statistics()), tiny, clean, labels, access="score", threat=threat,
            folder=prepared,
        )  # fmt: skip
        assert bool(threat.within(outcome.result, clean).all())
        # Most of a stylised video is outside of the ball, so it begins at the border.
        first = outcome.points[0][1]
        assert bool(threat.within(first, clean).all())
        assert float((first - clean).abs().max()) == pytest.approx(8 / 255, abs=1e-6)


def test_the_distance_to_the_stylised_video_is_told(
    prepared, tiny, contest, videos, labels_of, monkeypatch
):
    told = []
    with_log = partial(AttackContext, log=lambda rows, **values: told.append((list(rows), values)))
    monkeypatch.setitem(contest.__globals__, "AttackContext", with_log)
    clean = videos(2, 3, 3, 10, 12, seed=8)
    options = {"access": "score", "folder": prepared}
    labels = labels_of(tiny, clean)
    outcome = contest(Stylefool(statistics()), tiny, clean, labels, threat=EXACT, **options)
    apart = (outcome.result - outcome.points[0][1]).abs().flatten(1).amax(1)
    assert told == [([0, 1], {"eps": apart.tolist()})]
    contest(Stylefool(statistics()), tiny, clean, labels, threat=Linf("8/255"), **options)
    assert len(told) == 1


def test_masks_hold_without_a_norm(prepared, tiny, contest, videos):
    clean = videos(2, 3, 3, 10, 12, seed=8)
    threat = Unbounded(frames=(1,), region=(0.0, 0.0, 0.5, 1.0))
    for start in ("class", "styled"):
        outcome = contest(
            Stylefool(statistics(start=start)), tiny, clean, [0, 0], targets=[1, 2],
            access="score", threat=threat, folder=prepared,
        )  # fmt: skip
        changed = (outcome.result != clean).any(2)
        assert changed[:, 1, :5].any()
        assert not changed[:, [0, 2]].any()
        assert not changed[:, 1, 5:].any()


@pytest.fixture
def two_colours(linear):
    """A model that knows brightness from three channels: red, green and blue videos."""
    weights = torch.zeros(2, 2, 3, 8, 8)
    weights[0, :, 0], weights[0, :, 1] = -0.05, 0.05
    weights[1, :, 0], weights[1, :, 2] = -0.05, 0.05
    return linear(weights)


def coloured(channel, shade=0.7):
    video = torch.full((2, 3, 8, 8), 77 / 255)
    video[:, channel] = round(shade * 255) / 255
    return video


def test_a_walk_begins_at_the_target_class_and_arrives_near_the_stylised_video(
    tmp_path, two_colours, contest
):
    training = torch.stack([coloured(0), coloured(1), coloured(2)])
    # The pictures' own colours would do: a start has to be walked from, so they are kept out.
    attack = Stylefool(statistics(styles="bundled", strength=0.1, radius=0.2, iterations=60))
    attack.prepare(context(tmp_path, two_colours, training, [0, 1, 2], targets=(0, 1, 2)))
    assert sorted(read_bank(tmp_path).starts) == [0, 1, 2]
    clean = torch.stack([coloured(0, 0.35), coloured(0, 0.36)])
    outcome = contest(
        attack, two_colours, clean, [0, 0], targets=[1, 2], access="score", threat=EXACT,
        folder=tmp_path, stop="first_success",
    )  # fmt: skip
    styled = outcome.points[0][1]
    starts = outcome.points[1][1]
    torch.testing.assert_close(starts, training[1:])
    assert outcome.predict(starts).argmax(1).tolist() == [1, 2]
    assert outcome.predict(outcome.result).argmax(1).tolist() == [1, 2]
    assert ((outcome.result - styled).abs() <= 0.2 + 1e-6).all()
    for meter in outcome.victim.meters:
        # The start is of the target class, and is no success.
        assert meter.queries_to_first_success > 2


def test_what_is_far_from_the_stylised_video_is_no_answer(tmp_path, two_colours, contest):
    training = torch.stack([coloured(0), coloured(1), coloured(2)])
    params = {"styles": "bundled", "strength": 0.1, "radius": 0.0, "iterations": 4}
    attack = Stylefool(statistics(**params))
    attack.prepare(context(tmp_path, two_colours, training, [0, 1, 2], targets=(0, 1, 2)))
    clean = torch.stack([coloured(0)])
    outcome = contest(
        attack, two_colours, clean, [0], targets=[1], access="score", threat=EXACT,
        folder=tmp_path, stop="first_success",
    )  # fmt: skip
    (meter,) = outcome.victim.meters
    assert not meter.achieved
    assert len(meter.trace) < meter.forwards
    torch.testing.assert_close(outcome.result, outcome.points[0][1])
    # Where no video of the class was there to begin at, it searches near the stylised one.
    (tmp_path / "starts.safetensors").unlink()
    near = contest(
        Stylefool(statistics(**params | {"radius": 0.05})), two_colours, clean, [0], targets=[1],
        access="score", threat=EXACT, folder=tmp_path,
    )  # fmt: skip
    assert near.victim.meters[0].forwards == 1 + 4 * 5
    assert len(near.victim.meters[0].trace) == 1 + 4 * 5


@pytest.mark.parametrize("budget", [1, 2, 3, 7, 20])
def test_budgets_are_kept_on_a_walk(budget, prepared, tiny, contest, videos):
    clean = videos(3, 3, 3, 10, 12, seed=8)
    outcome = contest(
        Stylefool(statistics(iterations=9)), tiny, clean, [0, 1, 2], targets=[1, 2, 3],
        access="score", threat=EXACT, folder=prepared, max_forwards=budget,
    )  # fmt: skip
    assert all(m.forwards <= budget for m in outcome.victim.meters)


def test_a_video_does_not_depend_on_its_batch(prepared, tiny, contest, videos, labels_of):
    clean = videos(3, 3, 3, 10, 12, seed=8)
    labels = labels_of(tiny, clean)
    ids, targets = ["a", "b", "c"], [(y + 1) % 5 for y in labels]
    for more in ({}, {"targets": targets}):
        attack = Stylefool(statistics(iterations=6))
        options = {"access": "score", "threat": EXACT, "folder": prepared}
        whole = contest(attack, tiny, clean, labels, ids=ids, **options, **more).result
        for row in range(3):
            one = {k: v[row : row + 1] for k, v in more.items()}
            alone = contest(
                attack, tiny, clean[row : row + 1], labels[row : row + 1], ids=ids[row : row + 1],
                **options, **one,
            ).result  # fmt: skip
            torch.testing.assert_close(alone, whole[row : row + 1], rtol=0, atol=1e-5)


def test_strength_mixes_with_the_original(prepared, tiny, videos, labels_of):
    from vcr_core.goals import Goals

    clean = videos(2, 3, 3, 10, 12, seed=8)
    goals, bank = Goals(torch.tensor(labels_of(tiny, clean))), read_bank(prepared)
    full, third = (
        Stylefool(statistics(strength=s)).stylised(clean, goals, bank) for s in (1.0, 1 / 3)
    )
    torch.testing.assert_close(third - clean, (full - clean) / 3)


def test_it_refuses_without_an_artifact_or_weights(tmp_path, tiny, contest, videos):
    with pytest.raises(NotAvailable, match="vcr prepare stylefool"):
        contest(
            Stylefool(statistics()), tiny, videos(1, 3, 3, 8, 8), [0], access="score",
            threat=EXACT, folder=tmp_path,
        )  # fmt: skip
    with pytest.raises(ComponentUnavailable, match=r"VGG19_Weights.*attack.features = 'filters'"):
        Stylefool(StylefoolParams(weights=str(tmp_path / "vgg19.pth")))


def test_frames_too_small_for_the_features_are_named(prepared, tiny, contest, videos):
    attack = Stylefool(StylefoolParams(features="filters", first_steps=1, next_steps=1))
    with pytest.raises(IncompatibleComponents, match="at least 8 pixels"):
        contest(
            attack, tiny, videos(1, 3, 3, 6, 9), [0], access="score", threat=EXACT,
            folder=prepared,
        )  # fmt: skip


def test_what_is_written_is_plain(prepared):
    report = json.loads((prepared / "bank.json").read_text())
    assert report["styles"] == "videos"
    kept = load((prepared / "pictures.safetensors").read_bytes())
    assert len([name for name in kept if name.startswith("picture-")]) == report["pictures"]
