"""Faults of published attack code, each with the test that would fail if ours had it.

``ITEMS`` names every fault and the tests that exclude it, here and elsewhere; a name that does not
exist fails. A test here says in its docstring which published behaviour it excludes.
"""

from __future__ import annotations

import ast
import weakref
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor
from vcr_attacks.amifgsm import Amifgsm
from vcr_attacks.apgd import Apgd
from vcr_attacks.backgrounds import fitted, mixture
from vcr_attacks.bmtc import Bmtc
from vcr_attacks.fgsm import Fgsm
from vcr_attacks.flickering import Flickering
from vcr_attacks.gradest import Gradest
from vcr_attacks.ifgsm import Ifgsm
from vcr_attacks.korhonen import Korhonen
from vcr_attacks.mifgsm import Mifgsm
from vcr_attacks.mixer import Mixer, features
from vcr_attacks.mixer_training import _Training
from vcr_attacks.nes import Nes
from vcr_attacks.params.gradient import (
    AmifgsmParams,
    ApgdParams,
    IfgsmParams,
    MifgsmParams,
    PgdParams,
)
from vcr_attacks.params.perceptual import (
    FlickeringParams,
    KorhonenParams,
    SsahParams,
    StadvParams,
    ZhangParams,
)
from vcr_attacks.params.prepared import BmtcParams
from vcr_attacks.params.query import GradestParams, NesParams, SquareParams
from vcr_attacks.pgd import Pgd
from vcr_attacks.plugin import vcr_register_attacks
from vcr_attacks.square import Square
from vcr_attacks.ssah import Ssah
from vcr_attacks.stadv import Stadv
from vcr_attacks.zhang import ZhangSsim
from vcr_core.accounts import Rules
from vcr_core.adaptive import View
from vcr_core.config.schema import ProtocolConfig
from vcr_core.goals import Goals
from vcr_core.protocols import AttackContext, LabelSpace, PrepareContext, VideoItem
from vcr_core.randomness import VideoRandom
from vcr_core.specs import ClipSpec
from vcr_core.testing.toys.arrays import ArraySource
from vcr_core.threat import Linf, Unbounded
from vcr_core.victim import Victim

ROOT = Path(__file__).parents[3]
HERE = "vcr-attacks/tests/test_published_faults.py"
CHECKS = "vcr-core/src/vcr_core/testing/checks/attack.py"  # run on every attack by test_contract.py

ITEMS: dict[str, tuple[str, ...]] = {
    # Gradients and losses
    "clamped log-probability": (
        f"{HERE}::test_a_target_without_any_probability_is_approached",
        "vcr-core/tests/contest/test_losses_and_goals.py"
        "::test_a_target_probability_of_1e_minus_20_has_a_gradient",
    ),
    "softmax of probabilities as loss": (
        f"{HERE}::test_signs_are_those_of_logits_and_not_of_probabilities",
        "vcr-attacks/tests/test_attack_oracles.py::test_ifgsm_equals_torchattacks",
    ),
    "loss of chunks in place of the joint loss": (
        f"{HERE}::test_attacks_do_not_depend_on_the_chunk",
        "vcr-core/tests/contest/test_exact_gradients.py::test_any_chunk_gives_the_joint_gradient",
    ),
    "chunks that save no memory": (f"{HERE}::test_chunks_keep_one_graph_at_a_time",),
    "a perceptual term that rewards distortion": (
        "vcr-attacks/tests/test_perceptual_attacks.py"
        "::test_more_weight_means_less_distance_and_more_loss",
        "vcr-attacks/tests/test_perceptual_attacks.py"
        "::test_networks_are_minimised_through_the_metric",
        "vcr-attacks/tests/test_perceptual_ssah.py::test_more_weight_leaves_less_in_low_frequencies",
    ),
    "ingredients that a sign makes void": (
        f"{HERE}::test_every_ingredient_changes_the_result",
        "vcr-attacks/tests/test_perceptual_attacks.py::test_the_first_step_is_the_map",
    ),
    "a fallback behind a bare except": (
        "vcr-attacks/tests/test_gradient_amifgsm.py::test_failures_of_the_quality_are_errors",
        "vcr-attacks/tests/test_gradient_amifgsm.py"
        "::test_a_missing_quality_is_an_error_before_the_run",
    ),
    "a radius that is ignored": (
        f"{CHECKS}::within_ball",
        "vcr-attacks/tests/test_perceptual_loop.py::test_a_cap_is_kept_and_reached_for",
    ),
    "a radius around another centre": (
        "vcr-attacks/tests/test_prepared_bmtc.py"
        "::test_ball_is_around_the_clean_video_and_the_victim_is_never_asked",
        "vcr-attacks/tests/test_prepared_stylefool.py"
        "::test_with_a_norm_the_ball_is_around_the_original",
    ),
    "no clamp to the pixel range": (
        f"{CHECKS}::within_range",
        "vcr-attacks/tests/test_gradient_attacks.py::test_clamps_to_the_pixel_range",
    ),
    "success tested on a stale clip": (f"{HERE}::test_what_is_returned_is_what_was_tested",),
    "the last update is never tested": (f"{HERE}::test_the_last_update_is_looked_at",),
    "4-D clips at a 5-D interface in targeted mode": (
        f"{HERE}::test_targeted_runs_of_any_shape",
        f"{CHECKS}::targeted_moves_target",
    ),
    "a layout or a range guessed from sizes": (
        f"{HERE}::test_three_frames_of_three_rows_are_no_other_layout",
        f"{HERE}::test_dark_videos_and_normalised_rows_are_taken_as_they_are",
    ),
    "crops mixed with time": (
        f"{HERE}::test_each_view_is_a_clip_of_its_own",
        "vcr-models/tests/test_tiny_models.py::test_temporal_evidence_is_necessary",
    ),
    "the loss of view 0 in place of the aggregate": (
        f"{HERE}::test_scores_of_all_views_decide",
        "vcr-core/tests/contest/test_losses_and_goals.py"
        "::test_the_aggregate_is_the_log_of_the_mean_probability",
    ),
    # Transfer and preparation
    "bmtc: a choice that is sampled and not used": (
        f"{HERE}::test_the_mixers_choice_is_what_is_mixed_in",
        "vcr-attacks/tests/test_prepared_bmtc.py::test_the_learned_choice_beats_a_random_one",
    ),
    "bmtc: a reward for raising the true class": (
        f"{HERE}::test_the_mixer_is_rewarded_for_lowering_the_label",
    ),
    "bmtc: a consistency term without a gradient": (
        "vcr-attacks/tests/test_prepared_bmtc.py"
        "::test_consistency_raises_the_agreement_of_the_surrogates_gradients",
    ),
    "stylefool: prepared frames pasted onto other moments": (
        "vcr-attacks/tests/test_prepared_stylefool.py::test_answers_stay_near_the_stylised_video",
    ),
    "targeted runs of attacks that have no targeted mode": (
        f"{HERE}::test_untargeted_methods_say_so",
        f"{CHECKS}::targeted_moves_target",
    ),
    "perturbations trained on the evaluated videos": (
        "vcr-core/tests/engine/test_prepare.py"
        "::test_training_videos_are_the_next_ones_and_never_the_evaluated",
        "vcr-core/tests/engine/test_prepare.py"
        "::test_overlap_is_refused_unless_allowed_and_then_flagged",
    ),
    "uap: an optimiser that forgets with every video": (
        "vcr-attacks/tests/test_prepared_uap.py::test_delta_of_a_linear_model_is_the_corner",
        "vcr-attacks/tests/test_prepared_uap.py::test_training_fools_videos_that_it_has_not_seen",
    ),
    # Settings that published numbers rest on
    "least-likely targets, success by any change": (
        "vcr-core/tests/store/test_definitions.py::test_targeted_counts_eligible_videos_only",
    ),
    "mifgsm: gradients that are not normalised": (
        "vcr-attacks/tests/test_gradient_sign.py::test_pinned_momentum",
    ),
    "stadv: a flow of at most a quarter pixel": (
        f"{HERE}::test_flows_go_further_than_a_quarter_pixel",
    ),
    "zhang and ssah: sign steps that drown the metric": (
        f"{HERE}::test_the_metrics_weight_acts_gradually",
        "vcr-attacks/tests/test_perceptual_ssah.py::test_the_loss_at_the_start_and_its_ends",
    ),
    "korhonen: a signed map and at most two levels": (
        f"{HERE}::test_korhonen_goes_further_than_two_levels",
        "vcr-attacks/tests/test_perceptual_attacks.py::test_map_range_and_invariance",
    ),
    "a radius of its own in an attack's parameters": (
        f"{HERE}::test_the_radius_is_the_runs_and_no_attacks",
    ),
    "stopping at a target probability of one half": (
        f"{HERE}::test_stops_at_the_first_success_unless_told_otherwise",
    ),
}


@cache
def functions_of(path: str) -> frozenset[str]:
    """Return names of the functions of a file, ``Class::name`` for methods."""
    found: set[str] = set()
    for node in ast.parse((ROOT / "packages" / path).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{n.name}" for n in node.body if isinstance(n, ast.FunctionDef)}
    return frozenset(found)


@pytest.mark.parametrize("item", ITEMS)
def test_every_fault_has_a_test(item):
    for name in ITEMS[item]:
        path, _, test = name.partition("::")
        assert test in functions_of(path), name


def test_every_test_here_excludes_a_fault():
    named = {n.partition("::")[2] for names in ITEMS.values() for n in names if HERE in n}
    own = {name for name in functions_of(HERE) if name.startswith("test_")}
    assert own - named == {"test_every_fault_has_a_test", "test_every_test_here_excludes_a_fault"}


FREE = Unbounded(quantize=False)
EXACT = Linf("8/255", quantize=False)


def quality(_video: Tensor) -> float:
    return 4.0


AMI = Amifgsm(AmifgsmParams(quality=f"{__name__}:quality"))
SIGN = {
    "fgsm": Fgsm(),
    "ifgsm": Ifgsm(),
    "mifgsm": Mifgsm(),
    "amifgsm": AMI,
    "pgd": Pgd(),
    "apgd": Apgd(),
}
OPTIMISED = {
    "stadv": Stadv(),
    "flickering": Flickering(FlickeringParams(steps=20)),
    "korhonen": Korhonen(),
    "zhang-ssim": ZhangSsim(),
}
GRADIENT = {**SIGN, **OPTIMISED}


def threat_of(name: str) -> object:
    return EXACT if name in SIGN else FREE


def named(attacks: dict[str, object]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("name", "attack"), [pytest.param(n, a, id=n) for n, a in attacks.items()]
    )


def weights(*shape: int, seed: int = 3) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# -- gradients and losses --------------------------------------------------------------------------


@named(GRADIENT)
def test_a_target_without_any_probability_is_approached(name, attack, contest, linear, videos):
    """Excludes ``log(max(p, 1e-12))``: no gradient, so the clean clip came back."""
    model = linear(weights(2, 2, 3, 12, 12) / 20, [0.0, -60.0])
    clean = videos(2, 2, 3, 12, 12)
    labels = model.logits(clean)[:, 0].argmax(1).tolist()
    outcome = contest(attack, model, clean, labels, targets=[2, 2], threat=threat_of(name))
    before, after = (outcome.predict(v)[:, 2] for v in (clean, outcome.result))
    assert before.exp().max() < 1e-20
    assert (after > before + 0.01).all()


@named(SIGN)
def test_signs_are_those_of_logits_and_not_of_probabilities(name, attack, contest, linear, videos):
    """Excludes a cross-entropy of probabilities, in which only the label's own pull is left."""
    # Every pixel raises label and target alike: with logits the target's need wins, with a second
    # softmax its slope of p_t = 1e-9 is lost against the label's.
    model = linear(torch.ones(2, 2, 3, 4, 4) * 0.01, [2.0, -20.0])
    clean = videos(1, 2, 3, 4, 4)
    leaf = clean.clone().requires_grad_()
    p = model.logits(leaf)[:, 0].softmax(1)
    (published,) = torch.autograd.grad(p.softmax(1)[:, 2].log().sum(), leaf)
    assert (published < 0).all()
    outcome = contest(attack, model, clean, [1], targets=[2], threat=EXACT)
    assert (outcome.result > clean).all()


class Bent:
    """Logits that differ by view and are nowhere linear."""

    labels = LabelSpace("bent", tuple("abcd"))
    clip = ClipSpec(frames=3)

    def __init__(self) -> None:
        self.weights = weights(3 * 3 * 12 * 12, 4, seed=5) / 6

    def logits(self, clips: Tensor) -> Tensor:
        return 3 * torch.tanh(clips.flatten(1) @ self.weights - 0.2).unsqueeze(1)


def fight(attack: object, clean: Tensor, chunk: int | None, threat: object) -> Tensor:
    """Return the attack's answer on :class:`Bent` with three overlapping views of five frames."""
    gather = torch.tensor([[0, 1, 2], [1, 2, 3], [2, 3, 4]])
    view = View(Bent(), gather, chunk=chunk)
    with torch.no_grad():
        labels = view(clean, VideoRandom([0] * len(clean))).argmax(1)
    ids = [str(i) for i in range(len(clean))]
    victim = Victim(view, clean, Goals(labels), threat, ids=ids, seed=0,
                    rules=Rules(stop="budget"))  # fmt: skip
    context = AttackContext(threat, VideoRandom(range(len(clean))), ids)
    return attack.attack(victim, clean, victim.goals, context)


@named(GRADIENT)
def test_attacks_do_not_depend_on_the_chunk(name, attack, videos):
    """Excludes a mean of chunk losses, and chunks that are sampled a second time."""
    clean, threat = videos(2, 5, 3, 12, 12), threat_of(name)
    whole = fight(attack, clean, None, threat)
    assert not torch.equal(whole, clean)
    torch.testing.assert_close(fight(attack, clean, 1, threat), whole, rtol=0, atol=1e-5)


def test_chunks_keep_one_graph_at_a_time(tiny, videos):
    """Excludes chunks whose graphs all live until one backward: nothing would be saved."""

    def peak(chunk: int | None) -> int:
        live = most = 0

        class Held:
            def __init__(self, tensor: Tensor) -> None:
                self.tensor = tensor
                self.bytes = tensor.numel() * tensor.element_size()

        def let_go(count: int) -> None:
            nonlocal live
            live -= count

        def pack(tensor: Tensor) -> Held:
            nonlocal live, most
            held = Held(tensor)
            weakref.finalize(held, let_go, held.bytes)
            live += held.bytes
            most = max(most, live)
            return held

        leaf = videos(1, 3, 3, 16, 16).requires_grad_()
        view = View(tiny, torch.arange(3).repeat(8, 1), chunk=chunk)
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda held: held.tensor):
            view(leaf, VideoRandom([0]))[:, 0].sum().backward()
        return most

    assert peak(1) < peak(None) / 3


INGREDIENTS = [
    ("mifgsm", Mifgsm, MifgsmParams(), {"decay": 0.0}),
    ("mifgsm", Mifgsm, MifgsmParams(), {"normalize": "none"}),
    ("mifgsm", Mifgsm, MifgsmParams(), {"norm_scope": "frame"}),
    ("apgd", Apgd, ApgdParams(), {"rho": 0.0}),
    ("apgd", Apgd, ApgdParams(), {"loss": "dlr"}),
    ("pgd", Pgd, PgdParams(), {"random_start": False}),
    ("korhonen", Korhonen, KorhonenParams(), {"map_on": "gradient"}),
    ("korhonen", Korhonen, KorhonenParams(), {"map_smooth_t": True}),
    ("zhang", ZhangSsim, ZhangParams(weight=0.0), {"weight": 1.0}),
    ("zhang", ZhangSsim, ZhangParams(), {"border": 2}),
    ("stadv", Stadv, StadvParams(), {"tau": 0.0}),
    ("stadv", Stadv, StadvParams(), {"scope": "frame"}),
    ("stadv", Stadv, StadvParams(), {"max_flow": 0.05}),
    ("flickering", Flickering, FlickeringParams(steps=20), {"thickness": 5.0}),
    ("flickering", Flickering, FlickeringParams(steps=20), {"roughness": 5.0}),
    ("ssah", Ssah, SsahParams(features="logits", negatives="own"), {"weight": 10.0}),
    ("ssah", Ssah, SsahParams(features="logits", negatives="own"), {"temporal": True}),
    ("ssah", Ssah, SsahParams(features="logits", negatives="own"), {"margin": 1.0}),
    ("square", Square, SquareParams(iterations=20), {"temporal": "fold"}),
    ("square", Square, SquareParams(iterations=20), {"p_init": 0.1}),
    ("gradest", Gradest, GradestParams(iterations=8), {"motion": "affine"}),
    ("gradest", Gradest, GradestParams(iterations=8), {"rate": 0.7}),
    ("gradest", Gradest, GradestParams(iterations=8), {"probe": 4 / 255}),
]


@pytest.mark.parametrize(
    ("name", "kind", "base", "change"),
    [pytest.param(*row, id=f"{row[0]}-{next(iter(row[3]))}") for row in INGREDIENTS],
)
def test_every_ingredient_changes_the_result(name, kind, base, change, contest, tiny, videos,
                                             labels_of):  # fmt: skip
    """Excludes ingredients that are declared, recorded and without any effect."""
    clean = videos(2, 3, 3, 17, 14)
    labels = labels_of(tiny, clean)
    sign = name in ("mifgsm", "apgd", "pgd", "square", "gradest")
    options = {"threat": EXACT if sign else FREE,
               "access": "score" if name in ("square", "gradest") else "white-box"}  # fmt: skip
    one, other = (
        contest(kind(params), tiny, clean, labels, **options).result
        for params in (base, msgspec.structs.replace(base, **change))
    )
    assert float((one - other).abs().max()) > 1e-5


@named(GRADIENT)
@pytest.mark.parametrize("quantize", [False, True])
def test_what_is_returned_is_what_was_tested(name, attack, quantize, contest, linear, videos):
    """Excludes a success that is seen before an update and a clip that is returned after it."""
    clean = videos(4, 2, 3, 12, 13)
    model = linear(weights(4, 2, 3, 12, 13) / 28, [0.4, 0.1, -0.3, 0.2])
    labels = model.logits(clean)[:, 0].argmax(1)
    threat = Linf(8 / 255, quantize=quantize) if name in SIGN else Unbounded(quantize=quantize)
    outcome = contest(attack, model, clean, labels.tolist(), stop="first_success", threat=threat)
    fooled = outcome.predict(outcome.result).argmax(1) != labels
    assert fooled.any()
    assert fooled.tolist() == [meter.achieved for meter in outcome.victim.meters]


ONE_STEP = {
    "ifgsm": Ifgsm(IfgsmParams(steps=1, step=8 / 255)),
    "pgd": Pgd(PgdParams(steps=1, step=16 / 255)),
    "mifgsm": Mifgsm(MifgsmParams(steps=1, step=8 / 255)),
    "apgd": Apgd(ApgdParams(steps=1)),
    "korhonen": Korhonen(KorhonenParams(steps=1, lr=0.5)),
    "zhang-ssim": ZhangSsim(ZhangParams(steps=1, lr=0.5, weight=0.0)),
    "ssah": Ssah(SsahParams(steps=1, lr=3.0, features="logits", weight=0.0, negatives="own")),
    "flickering": Flickering(FlickeringParams(steps=1, lr=0.5, bound=0.5, weight=0.0)),
}


@named(ONE_STEP)
def test_the_last_update_is_looked_at(name, attack, contest, linear, videos):
    """Excludes a test at the top of the loop, which never sees where the last update led."""
    w = weights(1, 2, 3, 12, 12).abs() / 4
    clean = videos(1, 2, 3, 12, 12)
    model = linear(w, [float(0.05 - (w * clean).sum())])
    threat = EXACT if name in ("ifgsm", "pgd", "mifgsm", "apgd") else FREE
    outcome = contest(attack, model, clean, [1], stop="first_success", threat=threat)
    assert outcome.victim.meters[0].achieved
    assert outcome.predict(outcome.result).argmax(1).tolist() == [0]


# -- shapes ----------------------------------------------------------------------------------------


@named(GRADIENT)
@pytest.mark.parametrize(("frames", "views"), [(1, 1), (3, 3)])
def test_targeted_runs_of_any_shape(name, attack, frames, views, contest, tiny, videos, labels_of):
    """Excludes a targeted mode that raises on every video because an axis is missing."""
    clean = videos(1, frames, 3, 13, 18)
    labels = labels_of(tiny, clean)
    outcome = contest(
        attack, tiny, clean, labels, targets=[(labels[0] + 1) % 5], views=views,
        threat=threat_of(name),
    )  # fmt: skip
    assert outcome.result.shape == clean.shape
    assert not torch.equal(outcome.result, clean)


@pytest.mark.parametrize("size", [(3, 3), (3, 5), (1, 1)])
def test_three_frames_of_three_rows_are_no_other_layout(size, contest, linear, videos):
    """Excludes a layout that is guessed from an axis of length 3."""
    w, clean = weights(1, 3, 3, *size), videos(2, 3, 3, *size)
    outcome = contest(Ifgsm(), linear(w), clean, [1, 1], threat=EXACT)
    torch.testing.assert_close(outcome.result, clean - 8 / 255 * w.sign(), rtol=0, atol=1e-6)


def test_dark_videos_and_normalised_rows_are_taken_as_they_are():
    """Excludes a range guessed from the maximum, and logits taken for probabilities."""
    seen = []

    class Watched(Bent):
        def logits(self, clips: Tensor) -> Tensor:
            seen.append(clips.clone())
            return torch.tensor([0.1, 0.2, 0.3, 0.4]).expand(len(clips), 1, 4)

    dark = torch.full((1, 3, 3, 12, 12), 1 / 255)
    scores = View(Watched(), torch.arange(3)[None])(dark, VideoRandom([0]))
    assert torch.equal(seen[0], dark)
    expected = torch.tensor([[0.1, 0.2, 0.3, 0.4]]).log_softmax(1)
    torch.testing.assert_close(scores, expected)


def test_each_view_is_a_clip_of_its_own():
    """Excludes views in one flat list that a 2-D network cuts into groups of frames."""
    vcr = pytest.importorskip("vcr_core")
    pytest.importorskip("vcr_models")
    model = vcr.load("model", "tiny-tsm")
    clips = torch.rand(4, 16, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    order = [2, 0, 3, 1]
    with torch.no_grad():
        straight, turned, alone = (model.logits(c) for c in (clips, clips[order], clips[:1]))
    torch.testing.assert_close(turned, straight[order])
    torch.testing.assert_close(alone, straight[:1])


class OneBlindView(Bent):
    """Three crops, the first of which sees nothing."""

    def logits(self, clips: Tensor) -> Tensor:
        seeing = super().logits(clips)[:, 0]
        return torch.stack([torch.zeros_like(seeing), seeing, seeing], dim=1)


@pytest.mark.parametrize(
    "attack",
    [
        Gradest(GradestParams(iterations=40)),
        Nes(NesParams(iterations=10, samples=10)),
        Square(SquareParams(iterations=40)),
    ],
    ids=["gradest", "nes", "square"],
)
def test_scores_of_all_views_decide(attack, contest, videos):
    """Excludes logits ``[V, K]`` flattened to ``[1, V K]``, of which the label picks view 0."""
    clean = videos(2, 3, 3, 12, 12)
    model = OneBlindView()
    labels = model.logits(clean).softmax(2).mean(1).argmax(1).tolist()
    outcome = contest(attack, model, clean, labels, access="score", threat=EXACT)
    losses = [outcome.victim.goals.loss(outcome.predict(v)) for v in (clean, outcome.result)]
    assert (losses[1] < losses[0] - 1e-3).all()


# -- transfer and preparation ----------------------------------------------------------------------


def artifact(folder: Path, bias: list[float]) -> tuple[Tensor, Mixer]:
    """Write backgrounds of one grey each, and a mixer that prefers by ``bias`` alone."""
    greys = torch.tensor([0, 128, 255], dtype=torch.uint8)
    backgrounds = greys.view(3, 1, 1, 1).expand(3, 3, 8, 8).contiguous()
    mixer = Mixer.uniform(3, features(torch.rand(1, 3, 3, 8, 8)).shape[-1])
    mixer.bias = torch.tensor(bias)
    save_file({"backgrounds": backgrounds}, folder / "backgrounds.safetensors")
    save_file({"weight": mixer.weight, "bias": mixer.bias}, folder / "mixer.safetensors")
    (folder / "training.json").write_text('{"classes": [0, 1, 2], "rewards": []}')
    return backgrounds, mixer


@pytest.mark.parametrize("best", [0, 1, 2])
def test_the_mixers_choice_is_what_is_mixed_in(best, tmp_path, contest, tiny, videos, labels_of):
    """Excludes background 0 for every frame, whatever was sampled."""
    clean = videos(2, 3, 3, 8, 8)
    backgrounds, _ = artifact(tmp_path, [1.0 if i == best else 0.0 for i in range(3)])
    outcome = contest(
        Bmtc(BmtcParams(surrogate="self")), tiny, clean, labels_of(tiny, clean), access="transfer",
        folder=tmp_path, surrogates={"self": tiny}, threat=EXACT,
    )  # fmt: skip
    mixed = [
        EXACT.project(mixture(clean, fitted(backgrounds, clean), torch.full((2, 3), b), 0.8), clean)
        for b in range(3)
    ]
    losses = [outcome.victim.goals.loss(outcome.predict(v))[0] for v in mixed]
    assert outcome.surrogates["self"].meters[0].trace[0][1] == pytest.approx(float(losses[best]))
    assert len({round(float(loss), 6) for loss in losses}) == 3


def test_the_mixer_is_rewarded_for_lowering_the_label(tmp_path, tiny, videos):
    """Excludes a reward that grows with the probability of the true class."""
    clean = videos(2, 3, 3, 10, 12)
    pixels = (clean * 255).round().to(torch.uint8).permute(0, 1, 3, 4, 2).numpy()
    items = [VideoItem(str(i), i, ArraySource(str(i), clip)) for i, clip in enumerate(pixels)]
    ctx = PrepareContext(tmp_path, items, 3, tiny, EXACT, surrogates=lambda _name: tiny)
    training = _Training(BmtcParams(reward_consistency=0), ctx, torch.zeros(1, 3, 8, 8))
    (batch,) = ctx.load(items)
    leaf = batch.videos.clone().requires_grad_()
    scores = tiny.logits(leaf)[:, 0].log_softmax(1).gather(1, batch.labels[:, None])
    (up,) = torch.autograd.grad(scores.sum(), leaf)
    rewards = [training._reward(batch, batch.videos + s * up.sign() / 255, 0) for s in (1, -1)]
    assert (rewards[0] < 0).all()
    assert (rewards[1] > 0).all()


def test_untargeted_methods_say_so():
    """Excludes methods that silently run untargeted in a targeted contest."""
    targeted = {spec.name: spec.targeted for spec in vcr_register_attacks()}
    assert not any(targeted[name] for name in ("bmtc", "tenad", "deepfool"))
    assert all(targeted[name] for name in ("ifgsm", "flickering", "uap", "square", "gradest"))


# -- settings that published numbers rest on -------------------------------------------------------


def test_flows_go_further_than_a_quarter_pixel(contest, tiny, videos, labels_of):
    """Excludes 20 steps of a hundredth pixel, whose success rate says nothing of the method."""
    clean = videos(2, 3, 3, 17, 14)
    still = contest(Stadv(StadvParams(max_flow=0.25)), tiny, clean, labels_of(tiny, clean),
                    threat=FREE)  # fmt: skip
    free = contest(Stadv(), tiny, clean, labels_of(tiny, clean), threat=FREE)
    losses = [o.victim.goals.loss(o.predict(o.result), kind="margin") for o in (still, free)]
    assert (losses[1] < losses[0]).all()


def test_the_metrics_weight_acts_gradually(contest, tiny, videos, labels_of):
    """Excludes a sum of raw gradients under one sign, where the larger term is the only one."""
    clean = videos(2, 3, 3, 17, 14)
    labels = labels_of(tiny, clean)
    sizes = [
        contest(ZhangSsim(ZhangParams(weight=w, keep="last")), tiny, clean, labels, threat=FREE)
        for w in (0.0, 1.0, 10.0, 100.0)
    ]
    moved = [float((o.result - clean).square().mean()) for o in sizes]
    assert all(lighter > heavier > 0 for lighter, heavier in pairwise(moved))


def test_korhonen_goes_further_than_two_levels(contest, tiny, videos, labels_of):
    """Excludes steps of a tenth level, which bound the whole change by 2/255."""
    clean = videos(1, 3, 3, 17, 14)
    outcome = contest(Korhonen(), tiny, clean, labels_of(tiny, clean), threat=FREE)
    assert float((outcome.result - clean).abs().max()) > 4 / 255


def test_the_radius_is_the_runs_and_no_attacks():
    """Excludes radii of 8, 16, 32 and 64 levels side by side in one table of results."""
    from importlib import import_module

    own = {"amifgsm": {"eps_min", "eps_max"}}  # within the run's radius
    for spec in vcr_register_attacks():
        module, _, name = spec.params.partition(":")
        fields = {f.name for f in msgspec.structs.fields(getattr(import_module(module), name))}
        radii = {f for f in fields if f.split("_")[0] in ("eps", "epsilon")}
        assert radii == own.get(spec.name, set()), spec.name


def test_stops_at_the_first_success_unless_told_otherwise(contest, linear, videos):
    """Excludes a model that never reaches one half, and so always costs the whole budget."""
    assert ProtocolConfig().stop == "first_success"
    # Four classes of equal weight around the target: its probability stays below one half.
    w = weights(1, 2, 3, 6, 5).expand(3, -1, -1, -1, -1)
    clean = videos(1, 2, 3, 6, 5)
    model = linear(w.clone(), [float(-(w[0] * clean).sum()) + b for b in (-0.1, -0.11, -0.12)])
    costs = {
        stop: contest(Ifgsm(), model, clean, [0], targets=[1], stop=stop).victim.meters[0].backwards
        for stop in ("first_success", "confidence")
    }
    assert costs["confidence"] == 20 > costs["first_success"]
