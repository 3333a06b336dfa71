from __future__ import annotations

import pytest
import torch
from vcr_core.errors import ComponentUnavailable
from vcr_defenses.diffusion.flow import estimate_flow, to_grid, warp, warp_error


def shifted_pattern(height: int, width: int, dx: int, dy: int) -> torch.Tensor:
    """Return ``[1, 2, 3, H, W]``: a smooth pattern, and the same moved by (dx, dy) pixels."""
    y, x = torch.meshgrid(torch.arange(height), torch.arange(width), indexing="ij")

    def picture(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return 0.5 + 0.2 * torch.sin(x / 5 + y / 9) + 0.2 * torch.cos(y / 4 - x / 11)

    frames = torch.stack([picture(x, y), picture(x - dx, y - dy)])
    return frames.view(1, 2, 1, height, width).expand(1, 2, 3, height, width).contiguous()


def test_warping_the_second_frame_along_the_flow_gives_the_first():
    frames = shifted_pattern(24, 36, 3, -2)
    flow = torch.tensor([3.0, -2.0]).view(1, 1, 2, 1, 1).expand(1, 1, 2, 24, 36)
    warped = warp(frames[:, 1], flow[:, 0])
    torch.testing.assert_close(warped[..., 2:, :33], frames[:, 0, :, 2:, :33])
    # Beyond the frame there is nothing.
    assert (warped[..., 34:] == 0).all()
    still = torch.zeros_like(flow)
    video = frames.transpose(1, 2)
    assert float(warp_error(video, flow)) < float(warp_error(video, still))
    torch.testing.assert_close(warp(frames[:, 1], still[:, 0]), frames[:, 1])


def test_warping_one_row_or_one_column():
    for size in ((1, 7), (7, 1), (1, 1)):
        frames = torch.rand(2, 3, *size)
        torch.testing.assert_close(warp(frames, torch.zeros(2, 2, *size)), frames)


def test_flow_on_another_grid_is_in_pixels_of_that_grid():
    flow = torch.stack([torch.full((16, 24), 8.0), torch.full((16, 24), -4.0)]).view(
        1, 1, 2, 16, 24
    )
    small = to_grid(flow, (2, 6))
    assert small.shape == (1, 1, 2, 2, 6)
    torch.testing.assert_close(small[0, 0, 0], torch.full((2, 6), 2.0))
    torch.testing.assert_close(small[0, 0, 1], torch.full((2, 6), -0.5))
    assert to_grid(flow, (16, 24)) is flow


@pytest.mark.parametrize(
    ("method", "library"), [("ilk", "skimage"), ("dis", "cv2"), ("farneback", "cv2")]
)
def test_estimators_find_a_shift(method, library):
    pytest.importorskip(library, reason="an optional estimator")
    frames = shifted_pattern(48, 64, 2, 1)
    flow = estimate_flow(frames, method)
    assert flow.shape == (1, 1, 2, 48, 64)
    inside = flow[0, 0, :, 12:-12, 12:-12].mean(dim=(1, 2))
    torch.testing.assert_close(inside, torch.tensor([2.0, 1.0]), rtol=0, atol=0.4)


def test_large_frames_are_estimated_smaller_and_small_ones_larger():
    pytest.importorskip("skimage", reason="an optional estimator")
    frames = shifted_pattern(60, 80, 4, 2)
    flow = estimate_flow(frames, "ilk", longest=40)
    assert flow.shape == (1, 1, 2, 60, 80)
    inside = flow[0, 0, :, 20:-20, 20:-20].mean(dim=(1, 2))
    torch.testing.assert_close(inside, torch.tensor([4.0, 2.0]), rtol=0, atol=0.8)
    assert estimate_flow(torch.rand(1, 2, 3, 5, 9), "ilk").shape == (1, 1, 2, 5, 9)


def test_zero_flow_and_single_frames_need_nothing():
    assert not estimate_flow(torch.rand(2, 3, 3, 8, 8), "zero").any()
    assert estimate_flow(torch.rand(2, 1, 3, 8, 8), "raft-large").shape == (2, 0, 2, 8, 8)


def test_a_missing_library_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ComponentUnavailable, match="opencv-python-headless"):
        estimate_flow(torch.rand(1, 2, 3, 16, 16), "dis")


@pytest.mark.parametrize("method", ["raft-small", "raft-large"])
def test_raft_from_a_file_of_weights(method, tmp_path, monkeypatch):
    models = pytest.importorskip("torchvision.models.optical_flow", reason="has RAFT")
    monkeypatch.setenv("TORCH_HOME", str(tmp_path))
    frames = shifted_pattern(33, 50, 1, 0)
    with pytest.raises(ComponentUnavailable, match=r"defense\.flow_weights"):
        estimate_flow(frames, method)
    if method == "raft-large":
        return
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = models.raft_small(weights=None)
    file = tmp_path / "raft.pth"
    torch.save(network.state_dict(), file)
    flow = estimate_flow(frames, method, weights=str(file))
    assert flow.shape == (1, 1, 2, 33, 50)
    assert torch.isfinite(flow).all()
    # The default place: torchvision's own name in torch's cache.
    name = models.Raft_Small_Weights.C_T_V2.url.rsplit("/", 1)[-1]
    cached = tmp_path / "hub" / "checkpoints" / name
    cached.parent.mkdir(parents=True)
    file.rename(cached)
    assert torch.equal(estimate_flow(frames, method), flow)
    torch.save({"weight": torch.zeros(1)}, cached)
    with pytest.raises(ComponentUnavailable, match="does not hold"):
        estimate_flow(frames, method)


def test_raft_sees_frames_in_its_own_range():
    """The VideoPure code feeds [0, 1]; the network was trained on [-1, 1]."""
    from vcr_defenses.diffusion.raft import estimator

    seen = []

    def network(first, second, num_flow_updates):
        seen.append((first, second, num_flow_updates))
        return [torch.zeros(1, 2, *first.shape[-2:])]

    flow = estimator(network)(torch.zeros(3, 130, 129), torch.ones(3, 130, 129))
    first, second, updates = seen[0]
    assert flow.shape == (2, 130, 129)
    assert first.shape == (1, 3, 136, 136)
    assert (first == -1).all()
    assert (second == 1).all()
    assert updates == 10
