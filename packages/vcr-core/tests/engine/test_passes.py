"""How a run's passes are computed: precision, compilation, order of the channels."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Any

import pytest
import torch
import vcr_core as vcr
from torch import Tensor, nn
from vcr_core.config.resolve import resolve_run
from vcr_core.engine import models
from vcr_core.engine.execution import execute
from vcr_core.engine.models import guarded_model, lay_channels_last
from vcr_core.engine.run import open_run, reopen
from vcr_core.errors import NotAvailable, UsageError
from vcr_core.manifest import read_manifest
from vcr_core.records import read_records
from vcr_core.testing.toys.attacks import SignDescent
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.shapes import ShapesDataset

CPU = torch.device("cpu")


class Net(nn.Module):
    """``toy-cnn`` behind a convolution that changes nothing, as a module of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.same = nn.Conv3d(3, 3, 1, bias=False)
        self.flat = nn.Conv2d(3, 4, 3)
        self.same.weight.data = torch.eye(3).view(3, 3, 1, 1, 1)
        self.inner = ToyCnn()

    def forward(self, clips: Tensor) -> Tensor:
        planes = self.same(clips.transpose(1, 2)).transpose(1, 2)
        return self.inner.logits(planes).squeeze(1)


def network() -> Any:
    return vcr.as_classifier(
        Net(), labels=ShapesDataset.labels, clip=ToyCnn().clip, layout="TCHW", resize=False
    )


def evaluate(**options: Any) -> list[dict[str, Any]]:
    chosen = {"model": network(), "dataset": ShapesDataset(), "attack": SignDescent(),
              "metrics": [], "limit": 4, **options}  # fmt: skip
    return list(vcr.evaluate(**chosen).records)


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """``torch.compile`` without its code generator, which takes its time."""
    seen: list[Any] = []

    def compiled(forward: Any) -> Any:
        seen.append(forward)
        return functools.partial(forward)

    monkeypatch.setattr(torch, "compile", compiled)
    return seen


class TestAutocast:
    @pytest.mark.parametrize("kind", ["bfloat16", "float16"])
    def test_changes_numbers_and_little_else(self, kind: str) -> None:
        plain, half = evaluate(), evaluate(protocol={"autocast": kind})
        for a, b in zip(plain, half, strict=True):
            assert b["status"] == "ok"
            assert a["clean"]["p_label"] != b["clean"]["p_label"]
            assert a["clean"]["p_label"] == pytest.approx(b["clean"]["p_label"], abs=0.02)
            assert b["cost"]["backwards"] > 0
            assert "zero-gradient" not in b["flags"]

    def test_stands_in_the_manifest(self, tmp_path: Path) -> None:
        evaluate(protocol={"autocast": "bfloat16"}, results=tmp_path)
        (folder,) = tmp_path.iterdir()
        assert read_manifest(folder)["experiment"]["protocol"]["autocast"] == "bfloat16"

    def test_predictions_of_another_precision_are_not_taken_over(self, tmp_path: Path) -> None:
        """The bare model's clean predictions are kept without the protocol."""
        with installed():
            found = [
                read_records(finished(tmp_path, f"protocol.autocast={kind}", "runtime.reuse=true"))
                for kind in ("off", "bfloat16")
            ]
        assert found[0][0]["clean"]["p_label"] != found[1][0]["clean"]["p_label"]


def resolved(tmp_path: Path, *more: str) -> Any:
    document = {
        "schema": 1,
        "dataset": {"name": "toy-shapes", "limit": 4},
        "model": {"name": "toy-cnn"},
        "paths": {"cache": str(tmp_path / "cache")},
        "metrics": {"names": []},
        "runtime": {"device": "cpu", "threads": 1},
    }
    return resolve_run(document, overrides=list(more))


def finished(tmp_path: Path, *more: str) -> Path:
    run = open_run(resolved(tmp_path, *more), results=tmp_path / "results")
    assert execute(run).exit_code == 0
    return run.folder


class TestCompile:
    def test_every_pass_goes_through_the_compiled_forward(self, traced: list[Any]) -> None:
        plain = evaluate()
        assert not traced
        compiled = evaluate(runtime={"compile": True})
        assert len(traced) == 1
        assert [r["attacked"] for r in compiled] == [r["attacked"] for r in plain]

    def test_hidden_queries_are_still_seen(self, traced: list[Any]) -> None:
        class AroundTheVictim:
            def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
                victim._view.model.model.module(victim._view.clips(video).flatten(0, 1))
                return video.clone()

        for record in evaluate(attack=AroundTheVictim(), runtime={"compile": True}):
            assert "outside of the victim" in record["error"]["message"]

    def test_what_fails_ends_the_run_with_the_key(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(_forward: Any) -> Any:
            def forward(*_args: Any) -> Any:
                raise RuntimeError("no compiler is installed\nand more")

            return forward

        monkeypatch.setattr(torch, "compile", broken)
        with pytest.raises(UsageError, match=r"compile = true.*no compiler.*compile = false"):
            evaluate(runtime={"compile": True})

    def test_there_must_be_a_module(self) -> None:
        class Bare:
            labels, clip = ShapesDataset.labels, ToyCnn().clip

            def logits(self, clips: Tensor) -> Tensor:
                return clips.flatten(1)[:, None, :8]

            def to(self, _device: Any) -> Any:
                return self

        with pytest.raises(UsageError, match="no torch module to compile"):
            evaluate(model=Bare(), runtime={"compile": True})

    def test_inner_layers_are_refused_by_name(self, traced: list[Any], tmp_path: Path) -> None:
        with installed():
            experiment = resolved(tmp_path, "runtime.compile=true").experiment
        model = guarded_model(network(), experiment, CPU)
        with pytest.raises(NotAvailable, match=r"'inner'.*runtime\.compile = false"):
            model.features(torch.zeros(1, 8, 3, 32, 32), "inner")

    @pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
    def test_a_graph_that_torch_really_makes(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compiled = functools.partial(torch.compile, backend="aot_eager")
        monkeypatch.setattr(torch, "compile", compiled)
        plain, traced = evaluate(limit=2), evaluate(limit=2, runtime={"compile": True})
        for a, b in zip(plain, traced, strict=True):
            assert b["attacked"]["p_label"] == pytest.approx(a["attacked"]["p_label"], abs=1e-4)


class TestChannelsLast:
    def test_convolutions_are_laid_out_and_say_the_same(self) -> None:
        model, clips = network(), torch.rand(2, 8, 3, 32, 32)
        before = model.logits(clips)
        lay_channels_last(model)
        net: Any = model.module
        assert net.same.weight.is_contiguous(memory_format=torch.channels_last_3d)
        assert net.flat.weight.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(model.logits(clips), before)

    def test_a_run_does_it(self, monkeypatch: pytest.MonkeyPatch) -> None:
        seen: list[Any] = []
        monkeypatch.setattr(models, "lay_channels_last", seen.append)
        evaluate()
        assert not seen
        evaluate(runtime={"channels_last": True})
        assert len(seen) == 1


class TestObjects:
    """A model from Python is the user's: the next run finds it as it was."""

    def test_are_neither_compiled_nor_laid_out_for_good(self, traced: list[Any]) -> None:
        model: Any = network()
        net, own = model.module, model.module.same.weight
        evaluate(model=model, runtime={"compile": True, "channels_last": True}, limit=1)
        evaluate(model=model, runtime={"compile": True}, limit=1)
        assert len(traced) == 2
        assert all(not isinstance(forward, models._Compiled) for forward in traced)
        evaluate(model=model, limit=1)
        assert "forward" not in vars(net)
        assert net.same.weight is own
        assert net.same.weight.is_contiguous()
        assert net.flat.weight.is_contiguous()

    def test_keep_an_order_and_a_forward_of_their_own(self, traced: list[Any]) -> None:
        model: Any = network()
        net = model.module
        net.flat.weight.data = net.flat.weight.data.contiguous(memory_format=torch.channels_last)
        net.forward = functools.partial(Net.forward, net)
        mine = net.forward
        evaluate(model=model, runtime={"compile": True, "channels_last": True}, limit=1)
        evaluate(model=model, limit=1)
        assert net.forward is mine
        assert net.flat.weight.is_contiguous(memory_format=torch.channels_last)


class TestOptionsOfARun:
    def test_are_recorded_and_kept(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        with installed():
            run = open_run(resolved(tmp_path, "runtime.channels_last=true"), results=tmp_path)
            options = {"compile": False, "channels_last": True}
            assert run.manifest["runtime_options"] == options
            again = reopen(run.folder, overrides=["runtime.channels_last=false"])
            assert again.experiment.runtime.channels_last is True
            with caplog.at_level(logging.WARNING):
                other = open_run(resolved(tmp_path, "runtime.compile=true"), results=tmp_path)
        assert other.folder == run.folder
        assert other.experiment.runtime.compile is False
        assert "runtime.compile is false for this run, as when it began" in caplog.text

    def test_are_off_in_runs_of_old(self, tmp_path: Path) -> None:
        from vcr_core.manifest import write_manifest

        with installed():
            run = open_run(resolved(tmp_path), results=tmp_path)
            manifest = read_manifest(run.folder)
            del manifest["runtime_options"]
            write_manifest(run.folder, manifest)
            again = reopen(run.folder, overrides=["runtime.channels_last=true"])
        assert again.experiment.runtime.channels_last is False
