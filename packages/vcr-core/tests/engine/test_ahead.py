"""Decoding ahead: one thread, the planned order, and callers that are interrupted."""

from __future__ import annotations

import gc
import signal
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import vcr_core as vcr
from vcr_core.engine.ahead import DecodeAhead, batches_ahead, pinned, stacked
from vcr_core.engine.batch import VideoTimeLimit, time_limit
from vcr_core.engine.decode import Decoded
from vcr_core.record_schema import stable_part
from vcr_core.testing.toys.attacks import SignDescent
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.shapes import ShapesDataset


class Decoder:
    """Notes what it is asked for; ``hang`` waits until the test is over."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.threads: set[int] = set()
        self.over = threading.Event()

    def __call__(self, video: str) -> Any:
        self.seen.append(video)
        self.threads.add(threading.get_ident())
        if video.startswith("hang"):
            self.over.wait(60)
        if video.startswith("raise"):
            raise OSError(video)
        if video.startswith("exit"):
            raise SystemExit(video)
        return video.upper()


@pytest.fixture
def decoder() -> Iterator[Decoder]:
    decoder = Decoder()
    yield decoder
    decoder.over.set()


@pytest.fixture
def ahead(decoder: Decoder) -> Iterator[DecodeAhead]:
    ahead = DecodeAhead(decoder)
    yield ahead
    decoder.over.set()
    ahead.close()


class TestDecodeAhead:
    def test_everything_is_decoded_once_in_order_in_one_other_thread(self, ahead, decoder):
        ahead.expect(["a", "b"])
        ahead.expect(["b", "c"])
        assert [ahead.take(v) for v in "abcd"] == list("ABCD")
        assert decoder.seen == list("abcd")
        assert len(decoder.threads) == 1
        assert threading.get_ident() not in decoder.threads

    def test_videos_that_are_left_out_are_no_obstacle(self, ahead):
        ahead.expect(["a", "b", "c"])
        assert ahead.take("c") == "C"

    @pytest.mark.parametrize(("video", "kind"), [("raise", OSError), ("exit", SystemExit)])
    def test_what_a_decoder_raises_reaches_whoever_takes_the_video(self, ahead, video, kind):
        ahead.expect(["a", video, "b"])
        assert ahead.take("a") == "A"
        with pytest.raises(kind, match=video):
            ahead.take(video)
        assert ahead.take("b") == "B"

    def test_one_that_hangs_is_given_up_and_the_others_are_not(self, ahead, decoder):
        ahead.expect(["hang-1", "a", "hang-2", "b"])
        for video in ("hang-1", "hang-2"):
            with pytest.raises(VideoTimeLimit), time_limit(0.2):
                ahead.take(video)
            other = "a" if video == "hang-1" else "b"
            assert ahead.take(other) == other.upper()
        assert len(decoder.threads) == 3

    def test_a_failure_is_not_kept(self, ahead):
        class Heavy:
            pass

        def decode(video: str) -> Any:
            heavy = Heavy()
            kept.append(weakref.ref(heavy))
            raise OSError(video)

        kept: list[Any] = []
        other = DecodeAhead(decode)
        gc.disable()
        try:
            with suppress(OSError):
                other.take("a")
            assert kept[0]() is None
        finally:
            gc.enable()
            other.close()

    def test_its_thread_ends_with_it(self, decoder):
        before = threading.active_count()
        ahead = DecodeAhead(decoder)
        ahead.expect(["a", "b", "c"])
        ahead.take("a")
        ahead.close()
        assert threading.active_count() == before

    def test_nothing_starts_before_somebody_asks(self, decoder):
        before = threading.active_count()
        DecodeAhead(decoder)
        assert threading.active_count() == before


def setup(**changed: Any) -> Any:
    facts = {"prefetch": "auto", "stage": "frames", "space": "source", "device": "cuda",
             "distribution": "vcr-core", **changed}  # fmt: skip
    experiment = SimpleNamespace(
        runtime=SimpleNamespace(prefetch=facts["prefetch"]),
        protocol=SimpleNamespace(space=facts["space"]),
        dataset=SimpleNamespace(distribution=facts["distribution"]),
    )
    device = torch.device(facts["device"])
    return SimpleNamespace(experiment=experiment, stage=facts["stage"], device=device)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, 1),
        ({"device": "cpu"}, 0),
        ({"distribution": "local"}, 0),
        ({"prefetch": 0}, 0),
        ({"prefetch": 3, "device": "cpu"}, 3),
        ({"prefetch": 3, "distribution": "local"}, 3),
        ({"prefetch": 3, "stage": "source"}, 0),
        ({"prefetch": 3, "stage": "plan"}, 0),
        ({"prefetch": 3, "space": "input"}, 0),
    ],
)
def test_how_many_batches(changed: dict[str, Any], expected: int) -> None:
    assert batches_ahead(setup(**changed)) == expected


class Watched(ShapesDataset):
    """Notes which thread reads what, and how many decoded batches there are at each attack."""

    def __init__(self) -> None:
        self.read: list[tuple[str, bool]] = []

    def item(self, video_id: str) -> Any:
        item, seen = super().item(video_id), self.read

        class Source:
            name = video_id

            def read(self, sampler: Any) -> Any:
                is_main = threading.current_thread() is threading.main_thread()
                seen.append((video_id, is_main))
                return item.source.read(sampler)

            def sha256(self) -> str:
                return str(item.source.sha256())

        return vcr.protocols.VideoItem(video_id, item.label, Source())


def evaluated(prefetch: Any, dataset: Any, device: str = "cpu") -> list[dict[str, Any]]:
    result = vcr.evaluate(
        model=ToyCnn(), dataset=dataset, attack=SignDescent(), metrics=[], limit=9,
        runtime={"prefetch": prefetch, "batch_videos": 2, "device": device},
    )  # fmt: skip
    return [stable_part(record) for record in result.records]


def test_records_are_equal_and_all_decoding_is_in_the_other_thread() -> None:
    here, ahead = Watched(), Watched()
    assert evaluated(0, here) == evaluated(2, ahead)
    assert {is_main for _, is_main in here.read} == {True}
    assert {is_main for _, is_main in ahead.read} == {False}
    assert [video for video, _ in here.read] == [video for video, _ in ahead.read]


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_records_of_a_gpu_are_equal() -> None:
    assert evaluated(0, Watched(), "cuda:0") == evaluated(2, Watched(), "cuda:0")


def test_at_most_that_many_batches_are_held() -> None:
    dataset, most = Watched(), []

    class Counting(SignDescent):
        def attack(self, victim: Any, video: Any, goals: Any, ctx: Any) -> Any:
            most.append((ctx.ids[0], len(dataset.read)))
            return super().attack(victim, video, goals, ctx)

    vcr.evaluate(
        model=ToyCnn(), dataset=dataset, attack=Counting(), metrics=[], limit=12,
        runtime={"prefetch": 1, "batch_videos": 2, "device": "cpu"},
    )  # fmt: skip
    order = [video for video, _ in dataset.read]
    for first, read in most:
        assert read <= order.index(first) + 2 + 2


def test_pinning_is_for_gpus_only() -> None:
    decoded: Any = SimpleNamespace(frames=torch.zeros(2, 3, 4, 4))
    assert pinned(decoded, torch.device("cpu")) is decoded
    assert not decoded.frames.is_pinned()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_pinned_frames_are_the_same() -> None:
    frames = torch.rand(2, 3, 4, 4)
    decoded = Decoded("a", 0, frames, torch.zeros(1, 2, dtype=torch.int64), {}, 0.0)
    pinned(decoded, torch.device("cuda"))
    assert decoded.frames.is_pinned()
    assert torch.equal(decoded.frames, frames)


def test_stacking() -> None:
    frames = [torch.rand(2, 3, 4, 4) for _ in range(3)]
    assert torch.equal(stacked(frames, torch.device("cpu")), torch.stack(frames))


def test_a_gpu_gets_videos_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of a GPU, with the memory of the CPU."""
    frames = [torch.rand(2, 3, 4, 4) for _ in range(3)]
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *a, device, **k: empty(*a, **k))
    assert torch.equal(stacked(frames, torch.device("cuda")), torch.stack(frames))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("is_pinned", [False, True])
def test_stacking_on_a_gpu(is_pinned: bool) -> None:
    frames = [torch.rand(2, 3, 4, 4) for _ in range(3)]
    given = [f.pin_memory() for f in frames] if is_pinned else frames
    found = stacked(given, torch.device("cuda"))
    assert found.device.type == "cuda"
    assert torch.equal(found.cpu(), torch.stack(frames))


def test_the_alarm_is_as_before() -> None:
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(5):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
