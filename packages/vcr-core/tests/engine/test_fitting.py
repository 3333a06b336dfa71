"""Sizes that fit into memory, with a meter that knows the answer and once with the real one."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import vcr_core as vcr
from torch import Tensor
from vcr_core.config.resolve import resolve_run
from vcr_core.engine import fitting, memory_meter
from vcr_core.engine.fitting import Fit, fit_of, fitted_batch, fitted_chunk, line
from vcr_core.engine.memory_meter import CudaMeter, ProcessMeter
from vcr_core.engine.run import open_run
from vcr_core.errors import ComponentUnavailable, UsageError
from vcr_core.metering import GuardedModel
from vcr_core.sweep_order import sweep_steps
from vcr_core.testing.toys.attacks import SignDescent
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.shapes import ShapesDataset

MB = 1_000_000
CPU = torch.device("cpu")


class FakeMeter:
    """Says ``base + per_clip * clips``, with noise, and runs out of memory above ``room``."""

    name = "fake"

    def __init__(
        self, per_clip: float = 100 * MB, base: float = 50 * MB, *, room: float = 1e12,
        free: float = 16_000 * MB, noise: float = 0.0,
    ) -> None:  # fmt: skip
        self.per_clip, self.base, self.room, self.noise = per_clip, base, room, noise
        self.now, self.at_once, self.passes = free, 0, 0

    def total(self) -> int:
        return 32_000 * MB

    def free(self) -> int:
        return int(self.now)

    def run(self, count: int) -> None:
        if self.base + count * self.per_clip > self.room:
            raise torch.cuda.OutOfMemoryError("CUDA out of memory")

    def peak(self, run: Any) -> int:
        (self.at_once,), self.passes = run.args, self.passes + 1
        run()
        wave = 1 + self.noise * (-1) ** self.passes
        return int((self.base + self.at_once * self.per_clip) * wave)


class TestLine:
    def fit(self, meter: FakeMeter, budget: float = 8_000 * MB) -> Fit:
        return line(meter.run, meter, budget, MB)

    def test_finds_the_cost_of_a_clip(self) -> None:
        fit = self.fit(FakeMeter())
        assert (fit.base, fit.per_clip, fit.most) == (50 * MB, 100 * MB, fitting.MOST_CLIPS)
        assert fit.clips() == 64

    @pytest.mark.parametrize("noise", [-0.1, -0.05, 0.05, 0.1])
    def test_noise_does_not_change_the_size(self, noise: float) -> None:
        assert self.fit(FakeMeter(noise=noise)).clips() == 64

    def test_passes_stop_before_they_take_the_budget(self) -> None:
        meter = FakeMeter(per_clip=3_000 * MB)
        assert self.fit(meter).clips() == 2
        assert meter.at_once == 2

    def test_one_clip_that_is_too_large_is_one_clip(self) -> None:
        assert self.fit(FakeMeter(per_clip=9_000 * MB)).clips() == 1

    @pytest.mark.parametrize(("room", "expected"), [(60 * MB, 1), (160 * MB, 1), (300 * MB, 2)])
    def test_no_memory_is_a_result(self, room: float, expected: int) -> None:
        assert self.fit(FakeMeter(room=room)).clips() == expected

    def test_other_faults_are_none(self) -> None:
        def broken(_count: int) -> None:
            raise RuntimeError("shapes do not match")

        with pytest.raises(RuntimeError, match="shapes"):
            line(broken, FakeMeter(), 1e9, MB)

    def test_a_model_of_no_size_does_not_promise_passes_without_end(self) -> None:
        assert self.fit(FakeMeter(per_clip=0, base=0), 64 * MB).clips() == 32


class TestVideos:
    def test_every_view_and_the_copies_of_the_frames_count(self) -> None:
        fit = Fit(base=0, per_clip=100 * MB, budget=4_000 * MB)
        assert fit.videos(clips=1, frame_bytes=0) == 32
        assert fit.videos(clips=4, frame_bytes=0) == 8
        assert fit.videos(clips=4, frame_bytes=100 * MB) == 2
        assert fit.videos(clips=400, frame_bytes=0) == 1


@pytest.fixture
def toys() -> Any:
    with installed():
        yield


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def resolved(cache: Path, *more: str) -> Any:
    document = {
        "schema": 1,
        "dataset": {"name": "toy-shapes"},
        "model": {"name": "toy-cnn"},
        "paths": {"cache": str(cache)},
        "metrics": {"names": []},
        "runtime": {"device": "cpu", "threads": 1, "chunk_clips": "auto", "batch_videos": "auto"},
    }
    return resolve_run(document, overrides=list(more))


def guarded(model: Any = None) -> GuardedModel:
    return GuardedModel(model or ToyCnn())


class TestMemory:
    """What was measured once is taken from then on, whatever memory is free."""

    def test_is_measured_once(self, toys: None, cache: Path) -> None:
        experiment = resolved(cache).experiment
        first = FakeMeter()
        fit = fit_of(experiment, guarded(), first, CPU)
        later = FakeMeter(free=100 * MB)
        later.peak = None  # type: ignore[assignment, method-assign]
        assert fit_of(experiment, guarded(), later, CPU) == fit

    @pytest.mark.parametrize(
        "change", ["model.name=toy-batch-norm", "protocol.views=full", "executor.name=process"]
    )
    def test_is_for_this_model_and_way_only(self, toys: None, cache: Path, change: str) -> None:
        fit_of(resolved(cache).experiment, guarded(), FakeMeter(), CPU)
        other = resolved(cache, change, "executor.workers=2").experiment
        fit_of(other, guarded(), FakeMeter(), CPU)
        assert len(list((cache / fitting.FOLDER).iterdir())) == 2

    def test_workers_share_a_cpus_memory(self, toys: None, cache: Path) -> None:
        more = ("executor.name=process", "executor.workers=4")
        alone = fit_of(resolved(cache).experiment, guarded(), FakeMeter(), CPU)
        shared = fit_of(resolved(cache, *more).experiment, guarded(), FakeMeter(), CPU)
        assert shared.budget == alone.budget / 4

    def test_damage_is_measured_again(self, toys: None, cache: Path) -> None:
        experiment = resolved(cache).experiment
        fit = fit_of(experiment, guarded(), FakeMeter(), CPU)
        (path,) = (cache / fitting.FOLDER).iterdir()
        for text in ("", "[]", '{"key": {}}', json.dumps({"fit": {}, "key": {}})):
            path.write_text(text)
            assert fit_of(experiment, guarded(), FakeMeter(), CPU) == fit
        assert json.loads(path.read_text())["fit"]["per_clip"] == fit.per_clip

    def test_the_first_of_two_that_measure_at_once_wins(
        self, toys: None, cache: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        experiment = resolved(cache).experiment
        ours = FakeMeter(per_clip=700 * MB)

        def peak(run: Any) -> int:
            fit_of(experiment, guarded(), FakeMeter(), CPU)
            return FakeMeter.peak(ours, run)

        monkeypatch.setattr(ours, "peak", peak)
        assert fit_of(experiment, guarded(), ours, CPU).per_clip == 100 * MB

    def test_a_cache_that_cannot_be_written_is_no_obstacle(self, toys: None, cache: Path) -> None:
        cache.write_text("a file")
        assert fit_of(resolved(cache).experiment, guarded(), FakeMeter(), CPU).clips() == 64

    def test_a_model_that_fails_is_named_with_the_keys(self, toys: None, cache: Path) -> None:
        class Fails(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                raise RuntimeError("no kernel")

        with pytest.raises(UsageError, match=r"'toy-cnn' failed.*no kernel.*chunk_clips"):
            fit_of(resolved(cache).experiment, guarded(Fails()), FakeMeter(), CPU)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeMeter:
    meter = FakeMeter(per_clip=1_000 * MB, base=0)
    monkeypatch.setattr(fitting, "meter_of", lambda _device: meter)
    return meter


class TestSizes:
    def test_numbers_are_left_alone(self, toys: None, cache: Path) -> None:
        for chunk, expected in (("3", 3), ("none", None)):
            experiment = resolved(cache, f"runtime.chunk_clips={chunk}").experiment
            assert fitted_chunk(experiment, guarded(), CPU) == expected

    def test_of_chunks(self, toys: None, cache: Path, fake: FakeMeter) -> None:
        assert fitted_chunk(resolved(cache).experiment, guarded(), CPU) == 8

    def test_of_batches(self, toys: None, cache: Path, fake: FakeMeter) -> None:
        dataset = ShapesDataset()
        ids, experiment = dataset.ids(), resolved(cache).experiment
        assert fitted_batch(experiment, guarded(), dataset, ids, CPU) == 4
        many = ("executor.name=process", "executor.workers=12")
        crowd = resolved(cache, *many).experiment
        assert fitted_batch(crowd, guarded(), dataset, ids, CPU) == 1

    def test_a_run_keeps_its_cut_and_records_its_chunk(
        self, toys: None, cache: Path, tmp_path: Path, fake: FakeMeter
    ) -> None:
        from vcr_core.engine.execution import execute
        from vcr_core.engine.run import reopen

        run = open_run(resolved(cache, "dataset.limit=6"), results=tmp_path)
        assert [len(batch) for batch in run.manifest["batches"]] == [4, 2]
        assert run.manifest["batch_videos"] == 4
        fake.now = 100
        for path in (cache / fitting.FOLDER).iterdir():
            path.unlink()
        again = reopen(run.folder)
        assert again.manifest["batches"] == run.manifest["batches"]
        assert again.experiment.runtime.chunk_clips == "auto"
        assert again.experiment.runtime.batch_videos == "auto"
        assert execute(again).exit_code == 0
        from vcr_core.records import read_records

        assert {r["cost"]["chunk"] for r in read_records(run.folder)} == {1}

    def test_the_size_of_a_run_from_python(self, fake: FakeMeter) -> None:
        result = vcr.evaluate(
            model=ToyCnn(), dataset=ShapesDataset(), attack=SignDescent(), metrics=[], limit=6,
            runtime={"batch_videos": "auto", "chunk_clips": "auto", "device": "cpu"},
        )  # fmt: skip
        assert [r["batch"] for r in result.records] == [0, 0, 0, 0, 1, 1]
        assert {r["cost"]["chunk"] for r in result.records} == {8}

    def test_runs_of_a_sweep_share_an_attack(self, toys: None, cache: Path) -> None:
        more = ("attack.name=toy-descent", "protocol.attacker_knows_defense=false")
        runs = [resolved(cache, *more), resolved(cache, *more, "defense.name=toy-noise")]
        combinations: Any = [SimpleNamespace(resolved=run) for run in runs]
        assert [step.attack_of for step in sweep_steps(combinations)] == [None, 0]


class TestProcessMeter:
    def test_sees_what_is_allocated_and_freed_again(self) -> None:
        meter = ProcessMeter()
        size = 64 << 20

        def run() -> None:
            torch.ones(size // 4).sum()

        for _ in range(2):  # the second time the block could lie in the heap
            assert size * 0.9 < meter.peak(run) < size * 1.5
        assert meter.peak(lambda: None) < size / 8
        assert 0 < meter.free() <= meter.total()

    def test_the_limits_of_control_groups_count(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        proc, groups = tmp_path / "proc", tmp_path / "cgroup"
        (proc / "self").mkdir(parents=True)
        (proc / "meminfo").write_text("MemTotal: 8000 kB\nMemAvailable: 6000 kB\n")
        (proc / "self" / "cgroup").write_text("4:memory:/job\n0::/jobs/mine\n")
        for folder, top, used in (("jobs", "3000000", "500000"), ("jobs/mine", "max", "0")):
            (groups / folder).mkdir(parents=True)
            (groups / folder / "memory.max").write_text(top)
            (groups / folder / "memory.current").write_text(used)
        meter = ProcessMeter()
        monkeypatch.setattr(memory_meter, "_PROC", proc)
        monkeypatch.setattr(memory_meter, "_CGROUPS", groups)
        assert (meter.total(), meter.free()) == (3_000_000, 2_500_000)
        old = groups / "memory" / "job"
        old.mkdir(parents=True)
        (old / "memory.limit_in_bytes").write_text("2000000\n")
        (old / "memory.usage_in_bytes").write_text("1900000\n")
        assert (meter.total(), meter.free()) == (2_000_000, 100_000)

    def test_elsewhere_it_says_what_to_do(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("platform.libc_ver", lambda: ("", ""))
        with pytest.raises(ComponentUnavailable, match=r"give numbers for runtime\.chunk_clips"):
            ProcessMeter()

    def test_a_real_model_is_a_line(self, toys: None, cache: Path) -> None:
        """Of the toy a clip of 8 x 3 x 32 x 32 floats, widened to 256 MB by repetition."""

        class Wide(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                wide = (clips[:, :1, :1, :1, :1] + torch.zeros(len(clips), 4, 4, 256, 1024)).sin()
                return super().logits(clips) + wide.flatten(1).mean(1)[:, None, None]

        fit = fit_of(resolved(cache).experiment, guarded(Wide()), ProcessMeter(), CPU)
        size = 4 * 4 * 4 * 256 * 1024  # bytes of ``wide``; sin keeps its argument
        assert 1.5 * size < fit.per_clip < 6 * size


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_a_gpu_counts_what_is_allocated() -> None:
    device = torch.device("cuda:0")
    meter = CudaMeter(device)
    size = 64 << 20
    assert meter.peak(lambda: torch.ones(size // 4, device=device).sum()) >= size
    assert 0 < meter.free() <= meter.total()
