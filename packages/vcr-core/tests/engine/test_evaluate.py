"""The contest end to end in this process, on toys whose right answers are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import vcr_core as vcr
from torch import Tensor
from vcr_core import means
from vcr_core.protocols import InputDefense, LabelSpace, Reading, VideoItem
from vcr_core.record_schema import stable_part, validate_record
from vcr_core.testing.toys.broken import attacks as broken
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.shapes import ShapesDataset

QUIET: dict[str, Any] = {"metrics": [], "limit": 6}


class Descend:
    """Sign descent with a fixed number of steps; white-box."""

    def __init__(self, steps: int = 4) -> None:
        self.steps = steps

    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        adv = video.clone()
        for _ in range(self.steps):
            rows = victim.active()
            if not len(rows):
                break
            grad = victim.loss_and_grad(adv[rows], rows).grad
            moved = adv[rows] - ctx.threat.eps / 2 * grad.sign()
            adv[rows] = ctx.threat.select(rows).project(moved, video[rows])
        return adv


class Noise(InputDefense):
    gradient, stochastic = "exact", True

    def apply(self, clips: Tensor, random: Any) -> Tensor:
        return (clips + random.normal(*clips.shape[1:], std=0.02)).clamp(0, 1)


class Round(InputDefense):
    gradient = "surrogate"

    def apply(self, clips: Tensor, random: Any) -> Tensor:
        return (clips * 7).round() / 7


class Sealed(Round):
    gradient = "none"


def scaled() -> Any:
    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(8))
            self.inner = ToyCnn()

        def forward(self, clips: Tensor) -> Tensor:
            return self.inner.logits(clips).squeeze(1) * self.scale

    return vcr.as_classifier(
        Net(), labels=ShapesDataset.labels, clip=ToyCnn().clip, layout="TCHW", resize=False
    )


class Retunes:
    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        victim._view.model.model.module.scale.data.add_(1)
        victim._view.model.model.module.scale.add_(1)
        return video.clone()


class Unfreezes:
    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        victim._view.model.model.module.train()
        return video.clone()


class AroundTheVictim:
    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
        victim._view.model.model.module(victim._view.clips(video).flatten(0, 1))
        return video.clone()


class Pair:
    def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Any:
        return video.clone(), True


def evaluate(**options: Any) -> Any:
    chosen = {"model": ToyCnn(), "dataset": ShapesDataset(), **QUIET, **options}
    return vcr.evaluate(**chosen)


def stable(result: Any) -> list[dict[str, Any]]:
    return [stable_part(record) for record in result.records]


class TestRecords:
    def test_are_valid_and_hold_the_four_corners(self) -> None:
        result = evaluate(attack=Descend(), defense=Round(), threat=vcr.Linf("4/255"))
        assert len(result.records) == 6
        for record in result.records:
            validate_record(record)
            assert record["status"] == "ok"
            for name in ("clean", "clean_defended", "attacked"):
                assert 0 <= record[name]["p_label"] <= 1
            assert len(record["attacked_defended"]) == 1
            assert record["perturbation"]["linf"] <= 4 / 255 + 1e-6

    def test_a_clean_run_has_one_corner_and_no_attack_fields(self) -> None:
        record = evaluate().records[0]
        assert "clean" in record
        assert not {"attacked", "success", "perturbation", "metrics"} & set(record)
        assert record["status"] == "ok"

    def test_a_random_defense_is_judged_r_times_with_other_draws_than_the_attackers(self) -> None:
        result = evaluate(attack=Descend(1), defense=Noise(), protocol={"eval_repeats": 4})
        for record in result.records:
            assert len(record["attacked_defended"]) == 4
            assert len(record["clean_defended"]) == 4
            p = {corner["p_label"] for corner in record["attacked_defended"]}
            assert len(p) == 4

    def test_python_rows(self) -> None:
        rows = evaluate(attack=Descend()).rows()
        assert len(rows) == 6
        assert rows[0]["status"] == "ok"


class TestEligibility:
    def test_a_wrong_view_is_not_attacked_and_keeps_all_corners(self) -> None:
        class Permuted(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                return super().logits(clips).roll(1, dims=-1)

        result = evaluate(model=Permuted(), attack=Descend())
        for record in result.records:
            assert record["status"] == "ineligible"
            assert record["attacked"] == record["clean"]
            assert record["cost"]["forwards"] == 0
            assert not {"metrics", "perturbation"} & set(record)
        summary = result.summary()
        assert summary["asr_untargeted"]["value"] is None
        assert summary["robust_accuracy"]["value"] == 0

    def test_non_adaptive_attacks_do_not_depend_on_the_defense(self) -> None:
        options: dict[str, Any] = {"attack": Descend(), "threat": vcr.Linf("3/255")}
        plain = evaluate(**options)
        defended = evaluate(**options, defense=Round(), protocol={"attacker_knows_defense": False})
        for a, b in zip(plain.records, defended.records, strict=True):
            assert a["attacked"] == b["attacked"]
            assert a["perturbation"] == b["perturbation"]


class TestAdaptive:
    def test_the_attacker_sees_the_defense(self) -> None:
        adaptive = evaluate(attack=Descend(), defense=Round(), threat=vcr.Linf("4/255"))
        blind = evaluate(
            attack=Descend(), defense=Round(), threat=vcr.Linf("4/255"),
            protocol={"attacker_knows_defense": False},
        )  # fmt: skip
        assert [r["trace"] for r in adaptive.records] != [r["trace"] for r in blind.records]

    def test_no_gradient_is_refused_before_anything_runs(self) -> None:
        with pytest.raises(vcr.VcrError, match="attacker_knows_defense"):
            evaluate(attack=Descend(), defense=Sealed())

    def test_eot_costs_k_gradients(self) -> None:
        result = evaluate(attack=Descend(3), defense=Noise(), protocol={"eot": 2, "stop": "budget"})
        assert {r["cost"]["backwards"] for r in result.records} == {6}

    def test_eot_costs_nothing_where_the_attack_knows_no_defense(self) -> None:
        """Such runs have one identity, whatever ``eot`` is."""
        protocol = {"eot": 2, "stop": "budget", "attacker_knows_defense": False}
        for defense in (Noise(), None):
            result = evaluate(attack=Descend(3), defense=defense, protocol=protocol)
            assert {r["cost"]["backwards"] for r in result.records} == {3}


class TestTargets:
    def test_policy_and_target_are_recorded_and_never_the_label(self) -> None:
        for policy in ("least-likely", "random", "next", "second"):
            result = evaluate(attack=Descend(1), targeted=True, target=policy)
            for record in result.records:
                assert record["target"] != record["label"]
                assert record["target_policy"] == policy

    def test_a_confident_model_still_moves(self) -> None:
        class Sure(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                return super().logits(clips) * 30

        result = evaluate(model=Sure(), attack=Descend(3), targeted=True)
        for record in result.records:
            losses = [point[1] for point in record["trace"]]
            assert losses[0] > 46  # a target probability below 1e-20
            assert losses[-1] < losses[0]
            assert "zero-gradient" not in record["flags"]


class TestBudgets:
    def test_are_kept_and_said(self) -> None:
        result = evaluate(
            attack=Descend(50), max_forwards=5, threat=vcr.Linf("1/255"),
            protocol={"stop": "budget"},
        )  # fmt: skip
        for record in result.records:
            assert record["cost"]["forwards"] == 5
            assert record["cost"]["budget_exhausted"] is True
            assert record["status"] == "ok"


class TestHealth:
    def flags(self, **options: Any) -> set[str]:
        result = evaluate(**options)
        return {flag for record in result.records for flag in record["flags"]}

    def test_no_effect(self) -> None:
        class Idle:
            def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
                return video.clone()

        assert self.flags(attack=Idle()) == {"attack-no-effect"}

    def test_zero_gradient(self) -> None:
        class Flat(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                return super().logits(clips).detach() + clips.sum() * 0

        assert "zero-gradient" in self.flags(model=Flat(), attack=Descend())

    def test_probabilities(self) -> None:
        class Soft(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                return super().logits(clips).softmax(-1)

        assert "probabilities-not-logits" in self.flags(model=Soft(), attack=Descend())

    def test_undeclared_randomness(self) -> None:
        class Moody(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                return super().logits(clips) + torch.randn(len(clips), 1, 8)

        assert "undeclared-randomness" in self.flags(model=Moody(), attack=Descend())

    def test_constraint_violated(self) -> None:
        result = evaluate(attack=broken.OutOfBall(), threat=vcr.Linf("2/255"))
        for record in result.records:
            assert "constraint-violated" in record["flags"]
            assert record["perturbation"]["linf"] <= 2 / 255 + 1e-6
            assert record["perturbation"]["violation"] > 0.001
            assert "projected back" in record["notes"][0]


class TestBrokenAttacks:
    @pytest.mark.parametrize(
        ("attack", "words"),
        [
            (broken.HiddenQuery, "outside of the victim"),
            (broken.InPlace, "in place"),
            (broken.NotANumber, "not finite"),
            (broken.WrongShape, "returned shape"),
            (broken.WrongDtype, "float64"),
            (Unfreezes, "changed the model"),
            (AroundTheVictim, "outside of the victim"),
            (Pair, "returned tuple"),
        ],
    )
    def test_each_is_caught_and_named(self, attack: Any, words: str) -> None:
        result = evaluate(model=scaled(), attack=attack())
        for record in result.records:
            assert record["status"] == "error"
            assert record["error"]["type"] == "ContractViolation"
            assert words in record["error"]["message"]
            assert repr(attack.__name__.lower()) in record["error"]["message"]

    def test_an_edited_model_from_python_ends_the_run(self) -> None:
        with pytest.raises(vcr.VcrError, match="changed by a component"):
            evaluate(model=scaled(), attack=Retunes())

    def test_a_radius_of_its_own_is_recorded(self) -> None:
        class Choosy:
            def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
                ctx.log(range(len(video)), eps=[0.01 * (i + 1) for i in range(len(video))])
                return video.clone()

        records = evaluate(attack=Choosy()).records
        sizes = [r["perturbation"]["eps"] for r in records if r["status"] == "ok"]
        assert set(sizes) <= {0.01 * (i + 1) for i in range(len(records))}
        assert sizes
        assert "eps" not in evaluate(attack=Descend()).records[0]["perturbation"]

    def test_a_claim_of_success_is_not_believed(self) -> None:
        class Liar:
            def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
                ctx.log(range(len(video)), achieved=True)
                return video.clone()

        for record in evaluate(attack=Liar()).records:
            assert record["success"]["changed"] is False
            assert "reported success" in record["notes"][0]

    def test_an_exception_is_one_videos_error(self) -> None:
        class Picky:
            def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
                if any(i.startswith("north/") for i in ctx.ids):
                    raise RuntimeError("not this one")
                return video.clone()

        result = evaluate(attack=Picky(), limit=24)
        status = {r["video"]: r["status"] for r in result.records}
        assert {v for v, s in status.items() if s == "error"} == {
            v for v in status if v.startswith("north/")
        }
        errors = [r for r in result.records if r["status"] == "error"]
        assert all(r["error"]["stage"] == "attack" for r in errors)
        assert all("not this one" in r["error"]["traceback"] for r in errors)


class TestMetrics:
    def test_a_metric_that_fails_is_null_with_a_reason(self) -> None:
        class Bad:
            keys = ("bad",)

            def measure(self, reference: Tensor, test: Tensor, info: Any) -> dict[str, Any]:
                raise OSError("no weights here")

        class Odd:
            keys = ("odd", "gone")

            def measure(self, reference: Tensor, test: Tensor, info: Any) -> dict[str, Any]:
                return {"odd": math.inf, "gone": Reading(None, "too small")}

        result = evaluate(attack=Descend(), metrics=[Bad(), Odd()])
        metrics = result.records[0]["metrics"]
        assert metrics["bad"] == {"value": None, "reason": "OSError: no weights here"}
        assert metrics["odd"]["value"] is None
        assert metrics["gone"]["reason"] == "too small"

    def test_what_computed_a_value_stands_beside_it_and_in_the_summary(self) -> None:
        class Made:
            keys = ("made",)

            def measure(self, reference: Tensor, test: Tensor, info: Any) -> dict[str, Any]:
                return {"made": Reading(float(info.clips), by="libmade 1.2")}

        result = evaluate(attack=Descend(), metrics=[Made()])
        attacked = [r for r in result.records if r["status"] == "ok"]
        assert {r["metrics"]["made"]["by"] for r in attacked} == {"libmade 1.2"}
        entry = means.metrics(attacked, seed=0)["made"]
        assert (entry["value"], entry["by"]) == (1, {"libmade 1.2": len(attacked)})

    def test_the_sizes_of_a_perturbation_agree_with_each_other(self) -> None:
        sizes = evaluate(attack=Descend(), metrics=[]).records[0]["perturbation"]
        # The sum of the frames' norms lies between the whole norm and its value for equal frames.
        assert sizes["l2"] <= sizes["l21"] <= sizes["l2"] * sizes["frames_touched"] ** 0.5 + 1e-9


class TestLabels:
    def test_a_permuted_label_list_gives_the_same_accuracy(self) -> None:
        names = ShapesDataset.labels.names

        class Reversed(ToyCnn):
            labels = LabelSpace("reversed", tuple(n.upper() for n in reversed(names)))

            def logits(self, clips: Tensor) -> Tensor:
                return super().logits(clips).flip(-1)

        one = evaluate().summary()["clean_accuracy"]
        other = evaluate(model=Reversed()).summary()["clean_accuracy"]
        assert (one["value"], one["n"]) == (other["value"], other["n"])

    def test_unknown_classes_are_listed(self) -> None:
        class Other(ToyCnn):
            labels = LabelSpace("other", tuple(f"c{i}" for i in range(8)))

        with pytest.raises(vcr.ConfigError, match="'east'") as caught:
            evaluate(model=Other())
        assert "c0, c1" in str(caught.value)


class TestBadVideos:
    def test_good_rows_are_as_without_the_bad_ones(self) -> None:
        good = evaluate(attack=Descend(), limit=24)
        result = evaluate(attack=Descend(), dataset=_WithBadOnes(), limit=30)
        rows = {r["video"]: r for r in result.records}
        assert sum(r["status"] == "error" for r in rows.values()) == 6
        for record in good.records:
            other = rows[record["video"]]
            assert record["attacked"]["pred"] == other["attacked"]["pred"]
            assert record["attacked"]["p_label"] == pytest.approx(
                other["attacked"]["p_label"], abs=1e-5
            )
        bad = rows["bad/0"]
        assert bad["error"]["stage"] == "decode"
        assert "bad/0" in bad["error"]["message"]


class _WithBadOnes(ShapesDataset):
    def ids(self) -> Sequence[str]:
        return [*super().ids(), *(f"bad/{i}" for i in range(6))]

    def item(self, video_id: str) -> VideoItem:
        if video_id.startswith("bad/"):
            return VideoItem(video_id, 0, _Gone(video_id))
        return super().item(video_id)


class _Gone:
    def __init__(self, name: str) -> None:
        self.name = name

    def read(self, sampler: Any) -> Any:
        raise FileNotFoundError(f"{self.name}: no such file")

    def sha256(self) -> None:
        return None


class TestMemory:
    @pytest.mark.parametrize("chunk", [None, 6, 100])
    def test_out_of_memory_halves_the_chunk_once(self, chunk: int | None) -> None:
        class Greedy(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                if len(clips) > 3:
                    raise torch.cuda.OutOfMemoryError("pretended")
                return super().logits(clips)

        runtime = {"chunk_clips": chunk} if chunk else {}
        result = evaluate(model=Greedy(), attack=Descend(), limit=6, runtime=runtime)
        for record in result.records:
            assert record["status"] == "ok"
            assert "smaller-chunk" in record["flags"]
            assert record["cost"]["chunk"] == 3

    def test_without_end_it_is_an_error_that_says_so(self) -> None:
        class Endless(ToyCnn):
            def logits(self, clips: Tensor) -> Tensor:
                raise torch.cuda.OutOfMemoryError("pretended")

        result = evaluate(model=Endless(), limit=2)
        assert all(r["error"]["oom"] for r in result.records)


class TestChunks:
    def test_a_chunk_size_changes_no_number_beyond_rounding(self) -> None:
        whole = evaluate(attack=Descend(), threat=vcr.Linf("3/255"))
        parts = evaluate(attack=Descend(), threat=vcr.Linf("3/255"), runtime={"chunk_clips": 2})
        for a, b in zip(whole.records, parts.records, strict=True):
            assert a["attacked"]["p_label"] == pytest.approx(b["attacked"]["p_label"], abs=1e-4)


class TestTransfer:
    class Borrowed:
        access = "transfer"

        def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
            other = ctx.surrogate("toy-cnn")
            adv = video.clone()
            for _ in range(3):
                adv = ctx.threat.project(
                    adv - ctx.threat.eps / 2 * other.loss_and_grad(adv).grad.sign(), video
                )
            return adv

    def test_surrogates_are_metered_apart(self) -> None:
        with installed():
            result = evaluate(attack=self.Borrowed(), threat=vcr.Linf("6/255"))
        for record in result.records:
            assert record["status"] == "ok"
            assert record["cost"]["forwards"] == 0
            assert record["cost"]["surrogate_forwards"] == 3
            assert record["cost"]["surrogate_backwards"] == 3
            assert record["perturbation"]["linf"] > 0

    def test_surrogates_answer_on_the_very_videos_they_are_asked_about(self) -> None:
        # Not on a video moved back into the ball around the clean one, or rounded.
        seen: list[Tensor] = []

        class Inverted(self.Borrowed):  # type: ignore[name-defined,misc]
            def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
                other, turned = ctx.surrogate("toy-cnn"), 0.7 - 0.4 * video
                seen.extend([other.scores(turned).softmax(1), turned])
                return video.clone()

        with installed():
            evaluate(attack=Inverted(), threat=vcr.Linf("1/255"))
        model = ToyCnn()
        with torch.no_grad():
            expected = model.logits(seen[1]).softmax(-1)[:, 0]
        torch.testing.assert_close(seen[0], expected, rtol=0, atol=1e-6)

    def test_only_with_access_transfer(self) -> None:
        class Sneaky(self.Borrowed):  # type: ignore[name-defined,misc]
            access = "score"

        with installed():
            result = evaluate(attack=Sneaky())
        assert "access is not 'transfer'" in result.records[0]["error"]["message"]


class TestPerturb:
    def test_gives_videos_inside_the_threat(self) -> None:
        videos = torch.randint(0, 256, (2, 4, 3, 32, 32)) / 255
        before = videos.clone()
        adv = vcr.perturb(ToyCnn(), Descend(), videos, [0, 1], threat=vcr.Linf("2/255"))
        assert adv.shape == videos.shape
        assert float((adv - videos).abs().max()) <= 2 / 255 + 1e-6
        assert torch.equal(videos, before)
        assert not torch.equal(adv, videos)

    def test_the_model_is_judged_in_evaluation_mode(self) -> None:
        model = scaled()
        model.module.train().requires_grad_(True)
        videos = torch.randint(0, 256, (1, 4, 3, 32, 32)) / 255
        vcr.perturb(model, Descend(1), videos, [0])
        assert not model.module.training
        assert not any(p.requires_grad for p in model.module.parameters())

    def test_refuses_other_shapes(self) -> None:
        with pytest.raises(vcr.VcrError, match=r"\[B, T, C, H, W\]"):
            vcr.perturb(ToyCnn(), Descend(), torch.rand(4, 3, 8, 8), [0])


class TestSameRecords:
    def test_twice_and_with_another_ambient_state(self) -> None:
        options: dict[str, Any] = {"attack": Descend(), "defense": Noise()}
        first = evaluate(**options)
        torch.rand(100)
        assert stable(first) == stable(evaluate(**options))

    def test_a_run_with_results_is_resumed_and_another_eps_is_another_run(
        self, tmp_path: Path
    ) -> None:
        calls: list[int] = []

        class Counting(Descend):
            def attack(self, victim: Any, video: Tensor, goals: Any, ctx: Any) -> Tensor:
                calls.append(len(video))
                return super().attack(victim, video, goals, ctx)

        options: dict[str, Any] = {"attack": Counting(), "results": tmp_path}
        first = evaluate(**options, threat=vcr.Linf("2/255"))
        done = sum(calls)
        again = evaluate(**options, threat=vcr.Linf("2/255"))
        assert sum(calls) == done
        assert first.records == again.records
        other = evaluate(**options, threat=vcr.Linf("3/255"))
        assert sum(calls) == 2 * done
        assert other.folder != first.folder
