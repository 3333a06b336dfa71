"""Metrics beside the judging: what is begun, what is waited for, and records that do not change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import vcr_core as vcr
from torch import Tensor
from vcr_core.engine import beside as beside_module
from vcr_core.engine.batch import VideoTimeLimit, time_limit
from vcr_core.engine.beside import AT_ONCE, Beside, Pair, concurrent_metrics
from vcr_core.protocols import ClipInfo, Reading, Transformed
from vcr_core.record_schema import stable_part
from vcr_core.specs import ClipSpec
from vcr_core.testing.toys.attacks import SignDescent
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.defenses import Grain
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.metrics import MeanDifference
from vcr_core.testing.toys.shapes import ShapesDataset

LONG_S = 60


class Probe:
    """Measures the difference on the CPU, and notes where; ``before`` may wait or raise."""

    keys = ("probe", "probe_max")
    concurrent = True

    def __init__(self, before: Callable[[ClipInfo], object] = lambda _info: None) -> None:
        self.before = before
        self.seen: list[str] = []
        self.threads: set[threading.Thread] = set()

    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, Reading]:
        assert not torch.is_grad_enabled()
        self.seen.append(info.video)
        self.threads.add(threading.current_thread())
        self.before(info)
        gap = (reference.cpu() - test.cpu()).abs()
        return {
            "probe": Reading(float(gap.mean()), per_frame=gap.flatten(1).amax(1).tolist()),
            "probe_max": Reading(float(gap.max())),
        }


class Draws:
    """Draws from a global generator, which its seed must have reached."""

    keys = ("draws",)

    def measure(self, reference: Tensor, test: Tensor, info: ClipInfo) -> Mapping[str, float]:
        assert threading.current_thread() is threading.main_thread()
        return {"draws": float(torch.rand(()))}


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """What hangs waits for this, so that nothing outlives its test."""
    event = threading.Event()
    before = set(threading.enumerate())
    yield event
    event.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(LONG_S)


def evaluate(overlap: bool | str, metrics: list[Any], **options: Any) -> list[dict[str, Any]]:
    runtime = {"device": "cpu", "threads": 1, "batch_videos": 2, **options.pop("runtime", {})}
    chosen: dict[str, Any] = {
        "model": ToyCnn(), "dataset": ShapesDataset(), "attack": SignDescent(), "limit": 4,
        "metrics": metrics, "threat": vcr.Linf("4/255"), **options,
    }  # fmt: skip
    result = vcr.evaluate(**chosen, runtime={**runtime, "overlap_metrics": overlap})
    return result.records


def stable(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what must be equal; a traceback names the thread that it is of."""
    found = [stable_part(record) for record in records]
    for record in found:
        if "error" in record:
            record["error"] = {**record["error"], "traceback": ""}
    return found


class TestOverlap:
    def test_a_metric_and_the_judging_are_at_work_at_the_same_time(self) -> None:
        """Each waits for the other, which never comes if they take turns."""
        attacked, measuring, judging = (threading.Event() for _ in range(3))

        class Attack(SignDescent):
            def attack(self, victim: Any, video: Any, goals: Any, ctx: Any) -> Any:
                answer = super().attack(victim, video, goals, ctx)
                attacked.set()
                return answer

        class Model(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                if attacked.is_set():
                    judging.set()
                    assert measuring.wait(LONG_S)
                return super().logits(clips)

        def meet(_info: ClipInfo) -> None:
            measuring.set()
            assert judging.wait(LONG_S)

        metric = Probe(meet)
        before = threading.active_count()
        records = evaluate(True, [metric], model=Model(), attack=Attack(), limit=1)
        assert [r["metrics"]["probe"]["value"] is not None for r in records] == [True]
        assert all(thread is not threading.main_thread() for thread in metric.threads)
        assert threading.active_count() == before

    @pytest.mark.parametrize("threads", [1, 2])
    def test_records_and_the_order_of_keys_are_the_same(self, threads: int) -> None:
        found = []
        for overlap in (False, True):
            metric = Probe()
            given = [Draws(), metric, MeanDifference()]
            given[2].keys = ("toy-difference",)  # type: ignore[attr-defined]
            found.append(
                evaluate(
                    overlap, given, defense=Grain(), runtime={"threads": threads},
                    protocol={"eval_repeats": 3, "attacker_knows_defense": False},
                )
            )  # fmt: skip
            here = {thread is threading.main_thread() for thread in metric.threads}
            assert here == {not overlap}
        assert stable(found[0]) == stable(found[1])
        for record in found[1]:
            assert list(record["metrics"]) == ["draws", "probe", "probe_max", "toy-difference"]
            assert record["cost"]["t_metrics_s"] > 0

    @pytest.mark.parametrize("kind", [ValueError, SystemExit])
    def test_one_that_fails_costs_what_it_does_in_turn(self, kind: type[BaseException]) -> None:
        def fail(info: ClipInfo) -> None:
            if info.video == videos[1]:
                raise kind("no luck")

        videos = [record["video"] for record in evaluate(False, [])]
        apart, beside = (
            evaluate(overlap, [Draws(), Probe(fail)], runtime={"max_errors": 1})
            for overlap in (False, True)
        )
        assert stable(apart) == stable(beside)
        failed = next(record for record in beside if record["video"] == videos[1])
        if kind is SystemExit:
            assert (failed["status"], failed["error"]["stage"]) == ("error", "metrics")
        else:
            assert failed["metrics"]["probe"] == {"value": None, "reason": "ValueError: no luck"}
            assert failed["metrics"]["draws"]["value"] is not None

    def test_one_that_hangs_is_given_up_and_the_next_video_is_measured(
        self, over: threading.Event
    ) -> None:
        def hang(info: ClipInfo) -> None:
            if info.video == videos[0]:
                over.wait(LONG_S)

        videos = [record["video"] for record in evaluate(False, [], limit=2)]
        metric = Probe(hang)
        records = evaluate(True, [metric, Draws()], limit=2, runtime={"video_time_limit_s": 1})
        assert [record["status"] for record in records] == ["ok", "ok"]
        hung, other = (record["metrics"] for record in records)
        assert hung["probe"]["reason"].startswith("VideoTimeLimit: took longer than")
        assert hung["draws"]["value"] is not None
        assert other["probe"]["value"] is not None
        assert len(metric.threads) == 2

    def test_a_failure_of_the_judging_is_recorded_as_its_own(self) -> None:
        class Attack(SignDescent):
            def attack(self, victim: Any, video: Any, goals: Any, ctx: Any) -> Any:
                answer = super().attack(victim, video, goals, ctx)
                attacked.set()
                return answer

        class Model(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                if attacked.is_set():
                    attacked.clear()
                    raise RuntimeError("judging failed")
                return super().logits(clips)

        attacked = threading.Event()
        before = threading.active_count()
        records = evaluate(
            True, [Probe()], model=Model(), attack=Attack(), runtime={"max_errors": 4}
        )
        assert {(r["error"]["stage"], r["error"]["message"]) for r in records} == {
            ("eval", "judging failed")
        }
        assert threading.active_count() == before

    def test_attacks_on_another_model_and_transforms_have_the_same_records(self) -> None:
        class Slow(ToyCnn):
            clip = ClipSpec(frames=3, stride=1, size=32)

        class Darken:
            access, stage, norms, targeted = "none", "source", frozenset({"none"}), False

            def transform(self, video: Any, ctx: Any) -> Transformed:
                count = len(video.frames)
                return Transformed(video.frames // 2, tuple(range(count)), {"type": "darken"})

        ways: list[dict[str, Any]] = [
            {"source": Slow(), "protocol": {"attacker_knows_defense": False}},
            {"attack": Darken(), "threat": vcr.Unbounded()},
        ]
        for way in ways:
            metric = Probe()
            apart = evaluate(False, [Draws(), Probe()], **way)
            beside = evaluate(True, [Draws(), metric], **way)
            assert stable(apart) == stable(beside)
            assert metric.threads
            assert threading.main_thread() not in metric.threads

    def test_nothing_begins_when_readings_are_taken_over(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("VCR_CACHE_DIR", str(tmp_path / "cache"))
        begun: list[int] = []
        whole = Beside.begin

        def counted(self: Beside, pairs: Mapping[int, Pair]) -> None:
            begun.append(len(pairs))
            whole(self, pairs)

        monkeypatch.setattr(Beside, "begin", counted)
        monkeypatch.setattr(beside_module, "concurrent_metrics", lambda _setup: [0])
        found = []
        with installed():
            for name in ("first", "second"):
                found.append(
                    evaluate(
                        True, ["toy-difference"], model="toy-cnn", dataset="toy-shapes",
                        attack="toy-descent", results=tmp_path / name, runtime={"reuse": True},
                    )
                )  # fmt: skip
                assert begun == [2, 2]
        metrics = [[record["metrics"] for record in records] for records in found]
        assert metrics[0] == metrics[1]


def setup(metric: Any, **changed: Any) -> Any:
    """Return what :class:`Beside` asks of a set-up."""
    facts = {"asked": True, "device": "cpu", "concurrent": True, **changed}
    spec = SimpleNamespace(concurrent=facts["concurrent"])
    return SimpleNamespace(
        metrics=(("local/probe", ("probe",), metric),),
        device=torch.device(facts["device"]),
        experiment=SimpleNamespace(
            runtime=SimpleNamespace(overlap_metrics=facts["asked"]),
            metrics=(SimpleNamespace(spec=spec),),
        ),
    )


def pairs(*videos: str) -> dict[int, Pair]:
    frames = torch.zeros(2, 3, 4, 4)
    return {i: Pair(frames, frames + 1, ClipInfo(video=v)) for i, v in enumerate(videos)}


def measured(beside: Beside, row: int) -> Mapping[str, Any]:
    [(_, _, metric)] = beside.metrics(row)
    return metric.measure(*(torch.empty(0), torch.empty(0)), ClipInfo())


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, [0]),
        ({"asked": "auto"}, []),
        ({"asked": "auto", "device": "cuda"}, [0]),
        ({"asked": False, "device": "cuda"}, []),
        ({"concurrent": False}, []),
    ],
)
def test_which_metrics(changed: dict[str, Any], expected: list[int]) -> None:
    assert concurrent_metrics(setup(Probe(), **changed)) == expected


class TestBeside:
    def test_metrics_that_were_not_begun_are_themselves(self) -> None:
        metric = Probe()
        with Beside(setup(metric, asked=False)) as beside:
            assert not beside.is_of_use
            assert [m for _, _, m in beside.metrics(0)] == [metric]

    def test_no_more_threads_than_the_run_has(
        self, monkeypatch: pytest.MonkeyPatch, over: threading.Event
    ) -> None:
        for allowed, expected in ((1, 1), (3, 3), (64, AT_ONCE)):
            monkeypatch.setattr(torch, "get_num_threads", lambda allowed=allowed: allowed)
            metric, before = Probe(lambda _info: over.wait(LONG_S)), threading.active_count()
            over.clear()
            with Beside(setup(metric)) as beside:
                beside.begin(pairs(*"abcdef"))
                assert threading.active_count() == before + expected
                over.set()
                for row in range(6):
                    assert measured(beside, row)["probe"].value == 1
            assert threading.active_count() == before

    def test_an_alarm_interrupts_the_waiting_and_others_are_measured(
        self, monkeypatch: pytest.MonkeyPatch, over: threading.Event
    ) -> None:
        monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
        metric = Probe(lambda info: info.video == "hang" and over.wait(LONG_S))
        with Beside(setup(metric)) as beside:
            beside.begin(pairs("a", "hang", "b"))
            assert measured(beside, 0)["probe"].value == 1
            with pytest.raises(VideoTimeLimit), time_limit(0.2):
                measured(beside, 1)
            assert measured(beside, 2)["probe"].value == 1
        assert not over.is_set()  # the end of the block did not wait for it

    def test_after_a_failure_nothing_more_begins(
        self, monkeypatch: pytest.MonkeyPatch, over: threading.Event
    ) -> None:
        monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
        monkeypatch.setattr(beside_module, "PATIENCE_S", 0.0)
        entered = threading.Event()
        metric = Probe(lambda _info: (entered.set(), over.wait(LONG_S)))

        def fail() -> None:
            with Beside(setup(metric)) as beside:
                beside.begin(pairs("a", "b", "c"))
                assert entered.wait(LONG_S)
                raise OSError("no device")

        with pytest.raises(OSError, match="no device"):
            fail()
        over.set()
        for thread in metric.threads:
            thread.join(LONG_S)
        assert metric.seen == ["a"]

    def test_the_end_waits_for_what_is_measured(self, over: threading.Event) -> None:
        done: list[str] = []
        entered = threading.Event()
        metric = Probe(lambda info: (entered.set(), over.wait(LONG_S), done.append(info.video)))
        with Beside(setup(metric)) as beside:
            beside.begin(pairs("a"))
            assert entered.wait(LONG_S)
            over.set()
        assert done == ["a"]

    def test_time_for_which_nobody_waited(
        self, monkeypatch: pytest.MonkeyPatch, over: threading.Event
    ) -> None:
        now = [100.0]
        clock = SimpleNamespace(perf_counter=lambda: now[0])
        monkeypatch.setattr(beside_module, "time", clock)
        entered = threading.Event()
        metric = Probe(lambda _info: (entered.set(), over.wait(LONG_S)))
        with Beside(setup(metric)) as beside:
            beside.begin(pairs("a"))
            assert entered.wait(LONG_S)
            now[0] += 5
            over.set()
            measured(beside, 0)
            assert beside.unseen_s == 5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
def test_records_of_a_gpu_are_equal() -> None:
    given: dict[str, Any] = {"runtime": {"device": "cuda:0"}, "defense": Grain()}
    metric = Probe()
    apart = evaluate(False, [Draws(), Probe()], **given)
    assert stable(apart) == stable(evaluate("auto", [Draws(), metric], **given))
    assert threading.main_thread() not in metric.threads
