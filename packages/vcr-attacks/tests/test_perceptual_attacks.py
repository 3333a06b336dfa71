"""What sets each perceptual attack apart, against closed forms."""

from __future__ import annotations

import logging
from importlib.util import find_spec
from itertools import pairwise

import pytest
import torch
from vcr_attacks.flickering import Flickering, thickness
from vcr_attacks.flickering import roughness as flicker_roughness
from vcr_attacks.framing import Framing, interior
from vcr_attacks.korhonen import Korhonen, activity_map, smooth_in_time
from vcr_attacks.params.perceptual import (
    FlickeringParams,
    FramingParams,
    KorhonenParams,
    PatchParams,
    StadvParams,
    ZhangDistsParams,
    ZhangLpipsParams,
    ZhangParams,
)
from vcr_attacks.patch import Patch, patch_side
from vcr_attacks.stadv import Stadv, roughness, unsteadiness, warp
from vcr_attacks.zhang import ZhangDists, ZhangLpips, ZhangSsim, differentiable_metric
from vcr_core.errors import (
    ComponentUnavailable,
    ContractViolation,
    IncompatibleComponents,
    VcrError,
)
from vcr_core.losses import flicker
from vcr_core.threat import Linf, Unbounded

FREE = Unbounded(quantize=False)


class MeanColour:
    """Sees the mean colour of the video only: class 1 if it is brighter than mid-grey."""

    def __init__(self, gain: float = 40.0) -> None:
        from vcr_core.protocols import ClipSpec, LabelSpace

        self.gain = gain
        self.labels = LabelSpace("tone", ("dark", "bright"))
        self.clip = ClipSpec(frames=4)

    def logits(self, clips: torch.Tensor) -> torch.Tensor:
        tone = self.gain * (clips.flatten(1).mean(1) - 0.5)
        return torch.stack([-tone, tone], dim=1).unsqueeze(1)


# -- stadv ---------------------------------------------------------------------------------------


def test_a_zero_flow_is_the_identity(videos):
    for shape in ((1, 2, 3, 33, 50), (1, 1, 3, 1, 5)):
        clean = videos(*shape)
        flow = torch.zeros(1, 1, 2, *shape[-2:])
        torch.testing.assert_close(warp(clean, flow), clean, rtol=0, atol=1e-5)


def test_whole_and_half_pixels(videos):
    clean = videos(1, 3, 3, 7, 9)
    flow = torch.zeros(1, 1, 2, 7, 9)
    flow[:, :, 1] = 1
    moved = warp(clean, flow)
    torch.testing.assert_close(moved[..., :-1], clean[..., 1:], rtol=0, atol=1e-5)
    torch.testing.assert_close(moved[..., -1], clean[..., -1], rtol=0, atol=1e-5)
    flow.zero_()[:, :, 0] = 0.5
    halves = warp(clean, flow)[..., :-1, :]
    means = (clean[..., :-1, :] + clean[..., 1:, :]) / 2
    torch.testing.assert_close(halves, means, rtol=0, atol=1e-5)


def test_a_flow_per_frame_moves_each_frame_alone(videos):
    clean = videos(2, 3, 3, 7, 9)
    flow = torch.randn(2, 3, 2, 7, 9, generator=torch.Generator().manual_seed(0))
    whole = warp(clean, flow)
    for t in range(3):
        alone = warp(clean[:, t : t + 1], flow[:, t : t + 1])
        torch.testing.assert_close(whole[:, t : t + 1], alone)


def test_a_ramp_grows_by_the_flow():
    ramp = torch.linspace(0, 1, 21).expand(1, 1, 3, 8, 21)
    flow = torch.zeros(1, 1, 2, 8, 21)
    flow[:, :, 1] = 1.7
    moved = warp(ramp, flow)
    torch.testing.assert_close(moved[..., :18], ramp[..., :18] + 1.7 / 20, rtol=0, atol=1e-5)


def test_warped_values_lie_between_those_of_the_frame(videos):
    clean = videos(1, 2, 3, 9, 8)
    flow = 4 * torch.randn(1, 2, 2, 9, 8, generator=torch.Generator().manual_seed(0))
    moved = warp(clean, flow)
    low, high = clean.amin((3, 4), keepdim=True), clean.amax((3, 4), keepdim=True)
    assert ((moved >= low - 1e-6) & (moved <= high + 1e-6)).all()


@pytest.mark.golden
def test_roughness_of_one_displaced_pixel_is_eight():
    flow = torch.zeros(1, 1, 2, 8, 9)
    assert float(roughness(flow, mean=False)) == pytest.approx(0, abs=0.05)  # the epsilon term
    flow[0, 0, 0, 4, 4] = 1
    assert float(roughness(flow, mean=False)) == pytest.approx(8, abs=0.05)
    assert float(roughness(flow, mean=True)) == pytest.approx(8 / (4 * 72), abs=2e-4)
    flow.zero_()[..., 5:] = 0.6  # both axes: a step along one column of 8 rows, ordered pairs
    assert float(roughness(flow, mean=False)) == pytest.approx(2 * 8 * 0.6 * 2**0.5, abs=0.05)
    flow.fill_(3.0)
    assert float(roughness(flow, mean=True)) == pytest.approx(1e-4, abs=2e-5)


def test_unsteadiness_is_the_mean_jump_between_frames():
    flow = torch.zeros(1, 3, 2, 4, 5)
    assert float(unsteadiness(flow[:, :1])) == 0
    flow[:, 2, 0] = 2
    assert float(unsteadiness(flow)) == pytest.approx(1, abs=1e-3)


def test_the_flow_keeps_its_bound_and_pace(contest, tiny, videos, labels_of):
    ramp = torch.linspace(0.2, 0.8, 16).expand(1, 3, 3, 16, 16).contiguous()
    labels = labels_of(tiny, ramp)
    for lr, bound, reach in ((0.1, 0.25, 0.25), (0.1, None, 0.63)):
        attack = Stadv(StadvParams(steps=6, lr=lr, max_flow=bound, tau=0.0))
        points = contest(attack, tiny, ramp, labels, threat=FREE).points
        moved = max(float((video - ramp).abs().max()) for _, video in points)
        assert 0 < moved <= reach * 0.6 / 15 + 1e-5


def test_a_flow_that_the_weight_pins_is_reported(contest, tiny, videos, labels_of, caplog):
    clean = videos(1, 3, 3, 16, 14)
    attack = Stadv(StadvParams(tau=1e4))
    with caplog.at_level(logging.WARNING):
        contest(attack, tiny, clean, labels_of(tiny, clean), threat=FREE)
    assert "tau" in caplog.text
    caplog.clear()
    contest(Stadv(), tiny, clean, labels_of(tiny, clean), threat=FREE)
    assert not caplog.records


# -- flickering ----------------------------------------------------------------------------------


@pytest.mark.golden
def test_thickness_and_roughness_of_simple_offsets():
    constant = torch.full((1, 6, 3), 0.3)
    alternating = 0.1 * torch.tensor([1.0, -1.0] * 3).view(1, 6, 1).expand(1, 6, 3)
    assert float(thickness(constant)) == pytest.approx(0.09)
    assert float(flicker_roughness(constant)) == pytest.approx(0, abs=1e-12)
    assert float(flicker_roughness(alternating)) == pytest.approx(4 * 0.01 + 16 * 0.01)
    drawn = torch.randn(2, 7, 3, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(flicker_roughness(drawn.roll(3, dims=1)), flicker_roughness(drawn))
    for frames in (1, 2):
        assert torch.isfinite(flicker_roughness(drawn[:, :frames])).all()


@pytest.mark.golden
def test_the_hinge_on_probabilities():
    # l = p_y - p_other + 0.05 of 0.01, 0.05, 0.1 and -0.05
    for hinge, value in ((0.01, 0.002), (0.05, 0.05), (0.1, 0.1), (-0.05, 0.0)):
        p = (1 + hinge - 0.05) / 2
        z = torch.tensor([[p, 1 - p]]).log()
        assert float(flicker(z, torch.tensor([0]), None)) == pytest.approx(value, abs=1e-6)


def test_a_frame_is_shifted_by_one_colour(contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 12, 10)
    attack = Flickering(FlickeringParams(steps=6))
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), threat=FREE)
    shift = outcome.result - clean
    assert float((shift - shift[..., :1, :1]).abs().max()) < 1e-6
    assert float(shift.abs().max()) > 0.005


def test_flicker_breaks_a_model_of_colour_with_a_predictable_offset(contest):
    clean = torch.full((1, 4, 3, 6, 6), 0.5 + 0.04)
    attack = Flickering(FlickeringParams(steps=60, lr=0.01))
    outcome = contest(attack, MeanColour(), clean, [1], threat=FREE, stop="first_success")
    assert outcome.victim.meters[0].achieved
    shift = outcome.result - clean
    # All frames and channels alike, just past the boundary.
    torch.testing.assert_close(shift, torch.full_like(shift, float(shift.mean())))
    assert -0.055 < float(shift.mean()) < -0.04


def test_offsets_keep_the_bound_or_the_radius_of_each_frame(contest):
    clean = torch.full((1, 4, 3, 6, 6), 0.7)
    attack = Flickering(FlickeringParams(steps=40, lr=0.01, bound=0.05, weight=0.0, loss="ce"))
    moved = contest(attack, MeanColour(), clean, [1], threat=FREE).result - clean
    assert float(moved.abs().max()) == pytest.approx(0.05, abs=1e-6)
    frames = Linf(0.1, per_frame_eps=(0.0, 0.01, 0.02, 0.1), quantize=False)
    moved = (contest(attack, MeanColour(), clean, [1], threat=frames).result - clean).abs()
    reached = moved.amax((0, 2, 3, 4)).tolist()
    assert reached == pytest.approx([0, 0.01, 0.02, 0.1], abs=1e-6)


# -- korhonen ------------------------------------------------------------------------------------


@pytest.mark.golden
def test_map_of_a_vertical_step():
    video = torch.zeros(1, 1, 3, 12, 14)
    video[..., 7:] = 1
    activity = activity_map(video)[0, 0, 0]
    expected = torch.zeros(12, 14)
    expected[:, 4:10] = 1
    torch.testing.assert_close(activity, expected, rtol=0, atol=1e-5)


def test_map_of_a_flat_frame_is_one_everywhere():
    for value in (0.0, 0.3, 173 / 255, 1.0):
        assert (activity_map(torch.full((1, 2, 3, 12, 14), value)) == 1).all()
    assert (activity_map(torch.rand(1, 1, 3, 2, 9)) == 1).all()


def test_map_range_and_invariance(videos):
    clean = videos(2, 3, 3, 20, 15)
    activity = activity_map(clean)
    assert activity.shape == (2, 3, 1, 20, 15)
    assert float(activity.min()) >= 0
    torch.testing.assert_close(activity.amax((2, 3, 4)), torch.ones(2, 3))
    torch.testing.assert_close(activity_map(clean * 0.6 + 0.1), activity, rtol=1e-3, atol=1e-5)


def test_smoothing_takes_the_largest_neighbour(videos):
    activity = activity_map(videos(1, 4, 3, 12, 10))
    smooth = smooth_in_time(activity)
    torch.testing.assert_close(smooth[:, 0], activity[:, :2].amax(1))
    torch.testing.assert_close(smooth[:, 2], activity[:, 1:4].amax(1))


def edge(videos):
    """Left half flat, right half textured."""
    clean = videos(1, 3, 3, 16, 24)
    clean[..., :12] = 0.5
    return clean


@pytest.mark.parametrize("map_on", ["update", "gradient", "eps"])
def test_pixels_without_activity_stay(map_on, contest, tiny, videos, labels_of):
    clean = edge(videos)
    threat = Linf("8/255", quantize=False) if map_on == "eps" else FREE
    attack = Korhonen(KorhonenParams(map_on=map_on))
    result = contest(attack, tiny, clean, labels_of(tiny, clean), threat=threat).result
    still = (activity_map(clean) == 0).expand_as(clean)
    assert bool(still.any())
    assert torch.equal(result[still], clean[still])
    assert not torch.equal(result, clean)
    if map_on == "eps":
        reach = 8 / 255 * activity_map(clean)
        assert ((result - clean).abs() <= reach + 1e-6).all()


def test_the_first_step_is_the_map(contest, tiny, videos, labels_of):
    clean = edge(videos)
    labels = labels_of(tiny, clean)
    attack = Korhonen(KorhonenParams(steps=1, lr=0.01, keep="last"))
    moved = (contest(attack, tiny, clean, labels, threat=FREE).result - clean).abs()
    expected = 0.01 * activity_map(clean).expand_as(moved)
    torch.testing.assert_close(moved, expected, rtol=0.03, atol=1e-6)
    # As published, Adam divides the map out again.
    attack = Korhonen(KorhonenParams(steps=1, lr=0.01, map_on="gradient", keep="last"))
    moved = (contest(attack, tiny, clean, labels, threat=FREE).result - clean).abs()
    some = (activity_map(clean) > 0.05).expand_as(moved)
    torch.testing.assert_close(moved[some], torch.full_like(moved[some], 0.01), rtol=0.05, atol=0)


def test_a_map_on_the_radius_needs_one(contest, tiny, videos):
    attack = Korhonen(KorhonenParams(map_on="eps"))
    with pytest.raises(IncompatibleComponents, match=r"threat\.norm"):
        contest(attack, tiny, videos(1, 3, 3, 12, 10), [0], threat=FREE)


# -- zhang ---------------------------------------------------------------------------------------


def trade(contest, tiny, clean, labels, weight, **params):
    attack = ZhangSsim(ZhangParams(weight=weight, keep="last", **params))
    outcome = contest(attack, tiny, clean, labels, threat=FREE)
    distance = attack.distance.distance(clean, outcome.result)
    loss = outcome.victim.goals.loss(outcome.predict(outcome.result))
    return float(distance), float(loss), outcome.result


def test_more_weight_means_less_distance_and_more_loss(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 20, 18)
    labels = labels_of(tiny, clean)
    found = [trade(contest, tiny, clean, labels, w)[:2] for w in (0.0, 0.1, 1.0, 10.0, 1e6)]
    assert found[0][0] > 3 * found[-1][0]
    for one, more in pairwise(found):
        assert more[0] <= one[0] + 1e-4
        assert more[1] >= one[1] - 5e-3


def test_bisection_finds_heavier_weights_for_easier_videos(contest, linear, videos):
    weights = torch.randn(1, 3, 3, 14, 13, generator=torch.Generator().manual_seed(3)) / 40
    clean = videos(1, 3, 3, 14, 13).repeat(2, 1, 1, 1, 1)
    clean[1] = (clean[0] + 0.02 * weights[0].sign()).clamp(0, 1)  # farther from the boundary
    model = linear(weights, [0.2 - float((clean[0] * weights[0]).sum())])
    single = ZhangSsim(ZhangParams())
    bisecting = ZhangSsim(ZhangParams(weight_search="bisect", rounds=6))
    fixed, searched = (contest(a, model, clean, [1, 1], threat=FREE) for a in (single, bisecting))
    distances = [single.distance.distance(clean, run.result) for run in (fixed, searched)]
    assert (fixed.predict(fixed.result).argmax(1) == 0).all()
    assert (searched.predict(searched.result).argmax(1) == 0).all()
    assert (distances[1] < 0.8 * distances[0]).all()
    assert searched.victim.meters[0].forwards == 6 * fixed.victim.meters[0].forwards
    with pytest.raises(IncompatibleComponents, match=r"protocol\.stop"):
        contest(bisecting, model, clean, [1, 1], threat=FREE, stop="first_success")


def test_bisection_of_a_video_that_does_not_fall_returns_its_best(contest, linear, videos):
    weights = torch.randn(1, 3, 3, 14, 13, generator=torch.Generator().manual_seed(3)) / 40
    clean = videos(1, 3, 3, 14, 13)
    model = linear(weights, [1000.0])
    attack = ZhangSsim(ZhangParams(weight_search="bisect", rounds=2, steps=3))
    outcome = contest(attack, model, clean, [1], threat=FREE)
    assert torch.equal(outcome.result, outcome.victim.best())


def test_chunks_of_frames_change_nothing(contest, tiny, videos, labels_of):
    clean = videos(1, 5, 3, 14, 13)
    labels = labels_of(tiny, clean)
    whole = trade(contest, tiny, clean, labels, 1.0, steps=3)[2]
    parts = trade(contest, tiny, clean, labels, 1.0, steps=3, chunk_frames=2)[2]
    torch.testing.assert_close(parts, whole, rtol=0, atol=1e-4)


def test_it_starts_at_a_level_of_noise_and_leaves_the_border(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 16, 15)
    attack = ZhangSsim(ZhangParams(border=2))
    outcome = contest(attack, tiny, clean, labels_of(tiny, clean), threat=FREE)
    first = (outcome.points[0][1] - clean) * 255
    inner = first[..., 2:-2, 2:-2].round()
    assert set(inner.unique().tolist()) == {-1, 0}
    assert 0.4 < float((inner == 0).float().mean()) < 0.6
    outside = torch.ones(16, 15, dtype=torch.bool)
    outside[2:-2, 2:-2] = False
    assert torch.equal(outcome.result[..., outside], clean[..., outside])


def test_frames_below_the_window_are_refused(contest, tiny, videos):
    with pytest.raises(IncompatibleComponents, match="11x11"):
        contest(ZhangSsim(), tiny, videos(1, 3, 3, 10, 30), [0], threat=FREE)


def test_metrics_that_are_no_distance_are_refused(monkeypatch):
    with pytest.raises(ComponentUnavailable, match="'psnr' offers no"):
        differentiable_metric("psnr")
    with pytest.raises(VcrError, match="no-such-metric"):
        differentiable_metric("no-such-metric")
    from vcr_metrics.ssim import Ssim

    similarity = Ssim.distance
    monkeypatch.setattr(Ssim, "distance", lambda *videos: 1 - similarity(*videos))
    with pytest.raises(ContractViolation, match="'ssim'"):
        ZhangSsim()


class StandIn(torch.nn.Module):
    """In place of LPIPS: squared differences of blurred pictures."""

    def forward(self, one, other, normalize):
        assert normalize
        blurred = torch.nn.functional.avg_pool2d(one - other, 3, stride=1)
        return blurred.square().mean((1, 2, 3), keepdim=True)


NETWORKS = [
    pytest.param(ZhangLpips, ZhangLpipsParams, "lpips", id="lpips"),
    pytest.param(ZhangDists, ZhangDistsParams, "DISTS_pytorch", id="dists"),
]


def stand_ins(monkeypatch, package):
    if find_spec(package) is None:  # found, not imported: that takes seconds
        pytest.skip(f"needs {package}")
    monkeypatch.setattr("vcr_metrics.lpips.load_network", lambda *_: StandIn())
    monkeypatch.setattr(
        "vcr_metrics.dists.Dists.frames",
        lambda _self, one, other: StandIn()(one, other, normalize=True).flatten(),
    )


@pytest.mark.parametrize(("kind", "params", "package"), NETWORKS)
def test_networks_are_minimised_through_the_metric(
    kind, params, package, contest, tiny, videos, labels_of, monkeypatch, tmp_path
):
    stand_ins(monkeypatch, package)
    file = tmp_path / "vgg.pth"
    file.touch()
    clean = videos(1, 5, 3, 33, 34)
    labels = labels_of(tiny, clean)
    found = []
    for weight in (0.0, 1e4):
        attack = kind(params(weight=weight, steps=5, backbone=str(file), keep="last"))
        assert attack.distance.file == file
        result = contest(attack, tiny, clean, labels, threat=FREE).result
        found.append(float(attack.distance.distance(clean, result)))
    assert found[0] > 2 * found[1]


def test_without_weight_every_metric_gives_the_same(
    contest, tiny, videos, labels_of, monkeypatch, tmp_path
):
    file = tmp_path / "vgg.pth"
    file.touch()
    clean = videos(1, 3, 3, 33, 34)
    labels = labels_of(tiny, clean)
    results = []
    for kind, params, package in [p.values for p in NETWORKS]:
        stand_ins(monkeypatch, package)
        attack = kind(params(weight=0.0, steps=3, backbone=str(file)))
        results.append(contest(attack, tiny, clean, labels, threat=FREE).result)
    attack = ZhangSsim(ZhangParams(weight=0.0, steps=3))
    results.append(contest(attack, tiny, clean, labels, threat=FREE).result)
    assert torch.equal(results[0], results[2])
    assert torch.equal(results[1], results[2])


@pytest.mark.parametrize(("kind", "params", "package"), NETWORKS)
def test_an_absent_backbone_stops_before_the_run(kind, params, package, tmp_path):
    if find_spec(package) is None:
        pytest.skip(f"needs {package}")
    with pytest.raises(ComponentUnavailable, match="needs backbone weights"):
        kind(params(backbone=str(tmp_path / "absent.pth")))


# -- framing and patch ---------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["clip", "frame"])
def test_a_frame_leaves_the_inside(scope, contest, tiny, videos, labels_of):
    clean = videos(2, 3, 3, 14, 17)
    attack = Framing(FramingParams(steps=4, width=2, scope=scope))
    result = contest(attack, tiny, clean, labels_of(tiny, clean), threat=FREE).result
    inside = interior(clean, 2)
    assert int(inside.sum()) == 10 * 13
    assert torch.equal(result[..., inside], clean[..., inside])
    border = result[..., ~inside]
    assert torch.equal(border[:, :1].expand_as(border), border) is (scope == "clip")
    assert float((border - 0.5).abs().max()) > 0.05


def test_a_border_wider_than_the_frame_covers_it(videos):
    assert not interior(videos(1, 1, 3, 7, 30), 4).any()
    assert int(interior(videos(1, 1, 3, 9, 9), 4).sum()) == 1


@pytest.mark.parametrize("scope", ["clip", "frame"])
def test_a_patch_is_one_square_that_stays(scope, contest, tiny, videos, labels_of):
    clean = videos(3, 3, 3, 20, 25)
    attack = Patch(PatchParams(steps=6, area=0.05, scope=scope))
    result = contest(attack, tiny, clean, labels_of(tiny, clean), threat=FREE).result
    side = patch_side(0.05, 20, 25)
    assert side == 5
    places = set()
    for video, still in zip(result, clean, strict=True):
        rows, columns = (video != still).any(0).any(0).nonzero(as_tuple=True)
        box = [int(v) for v in (rows.min(), rows.max(), columns.min(), columns.max())]
        assert box[1] - box[0] == box[3] - box[2] == side - 1
        places.add(tuple(box))
        square = video[:, :, box[0] : box[1] + 1, box[2] : box[3] + 1]
        assert torch.equal(square[:1].expand_as(square), square) is (scope == "clip")
    assert len(places) == 3


def test_a_patch_in_the_middle(contest, tiny, videos, labels_of):
    clean = videos(1, 3, 3, 20, 25)
    attack = Patch(PatchParams(steps=4, area=0.08, place="center"))
    result = contest(attack, tiny, clean, labels_of(tiny, clean), threat=FREE).result
    rows, columns = (result != clean).any(2).any(1)[0].nonzero(as_tuple=True)
    assert (int(rows.min()), int(rows.max())) == (7, 12)
    assert (int(columns.min()), int(columns.max())) == (9, 14)


def test_sides_of_patches():
    assert patch_side(0.9, 10, 40) == 10
    assert patch_side(1e-6, 10, 40) == 1
