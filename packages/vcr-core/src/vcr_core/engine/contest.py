"""One group of stacked videos through the contest: corners, attack, verification, metrics."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from vcr_core.adaptive import View
from vcr_core.corruption import content_sha256
from vcr_core.engine.ahead import stacked
from vcr_core.engine.attack_log import AttackLog
from vcr_core.engine.beside import Beside, Pair
from vcr_core.engine.clock import Clock
from vcr_core.engine.draw import ABSTAINED, Draw
from vcr_core.engine.measure import distances, readings
from vcr_core.engine.reuse import GroupReuse
from vcr_core.engine.surrogates import Surrogates
from vcr_core.engine.verify import check_answer, fit, untouched
from vcr_core.errors import BudgetExhausted, VideoSkipped
from vcr_core.goals import Goals, choose_targets
from vcr_core.image_models import ImageModels
from vcr_core.outcomes import OWN_LABEL
from vcr_core.protocols import AttackContext, ClipInfo
from vcr_core.randomness import VideoRandom
from vcr_core.seeding import derive_seed, isolated_random_state
from vcr_core.threat import Storage
from vcr_core.victim import Victim

if TYPE_CHECKING:
    from torch import Tensor

    from vcr_core.engine.decode import Decoded
    from vcr_core.engine.setup import Setup

StageFn = Callable[[str], None]
ScoresFn: TypeAlias = "Callable[[], Tensor]"


@dataclass(slots=True)
class Result:
    """What one video's contest gave; becomes a record."""

    fields: dict[str, Any]
    clean_frames: Tensor
    adversarial_frames: Tensor | None = None
    defended_frames: Tensor | None = None


class Contest:
    """The contest of one group of videos of equal shape and plan.

    Args:
        setup: built components.
        videos: the group.
        chunk: clips that pass the model at once.
        stage: told which stage begins, so that a failure can name it.
    """

    def __init__(
        self, setup: Setup, videos: Sequence[Decoded], chunk: int | None, stage: StageFn
    ) -> None:
        self.setup = setup
        self.videos = videos
        self.chunk = chunk
        self.stage = stage
        self.experiment = setup.experiment
        self.attack_name = setup.experiment.attack.ref if setup.experiment.attack else ""
        self.device = setup.device
        self.ids = [v.id for v in videos]
        self.clean = stacked([v.frames for v in videos], self.device)
        self.labels = torch.tensor([v.label for v in videos], device=self.device)
        gather = videos[0].gather.to(self.device)
        model = setup.model.at_rate(videos[0].rate)
        defended = setup.defended.at_rate(videos[0].rate)
        self.plain = View(model, gather, chunk=chunk)
        self.defended = View(defended, gather, setup.links, chunk=chunk) if setup.links else None
        self.attacked_view = (
            View(
                defended,
                gather,
                setup.attack_links,
                chunk=chunk,
                gradient=self.experiment.protocol.gradient,
            )
            if setup.links and self.experiment.adaptive
            else self.plain
        )
        self.threat = setup.threat(self.clean.shape[1])
        self.reuse = GroupReuse(setup.reuse, videos, chunk, self.device)
        self.beside = Beside(setup)
        self.clock = Clock(self.device)
        self.flags: list[set[str]] = [set() for _ in videos]
        self.notes: list[list[str]] = [[] for _ in videos]

    def run(self) -> list[Result]:
        """Return one result a video, in order."""
        self.stage("clean")
        self.clock.start()
        clean = self._plain_draw(self.clean, self.reuse.clean)
        if self.experiment.own_labels:
            self._take_labels(clean)
        self._look_for_probabilities()
        clean_defended = self._defended_draws(self.clean)
        self.clock.stop("clean")
        results = [
            {
                "status": "ok",
                "label": v.label,
                "clean": clean.corner(i, v.label),
            }
            for i, v in enumerate(self.videos)
        ]
        for i, fields in enumerate(results):
            if self.experiment.own_labels:
                fields["label_source"] = OWN_LABEL
            if clean_defended:
                fields["clean_defended"] = self._corners(clean_defended, i)
        self._certify(results)
        attacked_video = None
        if self.setup.attack is not None:
            with self.beside:
                attacked_video = self._attack(results, clean, clean_defended)
        return [self._result(i, fields, attacked_video) for i, fields in enumerate(results)]

    # -- stages --------------------------------------------------------------------------------

    def _take_labels(self, clean: Draw) -> None:
        """Let the bare model's clean predictions be the labels.

        Raises:
            VideoSkipped: if the model makes none.
        """
        predicted = clean.predicted()
        if ABSTAINED in predicted:
            raise VideoSkipped(
                "the model makes no prediction on the clean video, which was to be the label"
            )
        self.videos = [
            replace(video, label=guess) for video, guess in zip(self.videos, predicted, strict=True)
        ]
        self.labels = torch.tensor(predicted, device=self.device)

    def _certify(self, results: list[dict[str, Any]]) -> None:
        """Add a certificate to each video where the defense is asked for it: once, when clean."""
        if self.defended is None or not self.defended.certifies:
            return
        self.stage("certify")
        self.clock.start()
        ambient = derive_seed(self.experiment.seed, "\n".join(self.ids), "certify")
        seeds = [derive_seed(self.experiment.seed, i, "certify") for i in self.ids]
        with torch.no_grad(), isolated_random_state(ambient):
            given = self.defended.certificates(self.clean, VideoRandom(seeds, self.device))
        self.clock.stop("certify")
        for fields, certificate in zip(results, given, strict=True):
            fields["certificate"] = certificate

    def _attack(
        self, results: list[dict[str, Any]], clean: Draw, clean_defended: list[Draw]
    ) -> Tensor:
        experiment = self.experiment
        guessed = torch.tensor(clean.predicted(), device=self.device)
        view_logits, right = clean.scores, guessed == self.labels
        if experiment.adaptive and self.defended is not None:
            guesses = torch.tensor([draw.predicted() for draw in clean_defended])
            right = (guesses.to(self.device) == self.labels).double().mean(dim=0) > 0.5
            view_logits = torch.stack([draw.scores for draw in clean_defended]).logsumexp(dim=0)
        if self.setup.rules.access == "none":
            # What nobody optimised is done to every video, also to those that are wrong anyway.
            right = torch.ones_like(right)
        rows = right.nonzero().squeeze(1)
        targets = None
        if experiment.threat.targeted:
            targets = choose_targets(
                experiment.threat.target,
                view_logits,
                self.labels,
                seed=experiment.seed,
                ids=self.ids,
            )
        final = self.clean.clone()
        if rows.numel():
            told = (rows.tolist(), results, self.flags, self.notes)
            found = self.reuse.recall(*told)
            if found is not None:
                final[rows], self.clock.seconds["attack"] = found
            else:
                self._perturb(results, final, rows, targets, view_logits)
                self.reuse.keep(*told, final[rows], self.clock.seconds["attack"])
        self._begin_metrics(final, rows.tolist())
        self.stage("eval")
        self.clock.start()
        attacked = self._plain_draw(final, self.reuse.attacked)
        attacked_defended = self._defended_draws(final)
        self.clock.stop("eval")
        eligible = set(rows.tolist())
        for i, fields in enumerate(results):
            label = self.videos[i].label
            if i not in eligible:
                fields["status"] = "ineligible"
            if targets is not None:
                fields["target"] = int(targets[i])
                fields["target_policy"] = str(experiment.threat.target)
            fields["attacked"] = attacked.corner(i, label)
            if self.setup.rules.access == "none":
                levels = (final[i] * 255).round().byte().permute(0, 2, 3, 1)
                fields["transform"] = {"sha256": content_sha256(levels.cpu().numpy())}
            if attacked_defended:
                fields["attacked_defended"] = self._corners(attacked_defended, i, listed=True)
            if i in eligible:
                judged = (
                    attacked_defended if experiment.adaptive and attacked_defended else [attacked]
                )
                self._judge(i, fields, [draw.predicted()[i] for draw in judged])
        self._measure(results, final, sorted(eligible))
        return final

    def _perturb(
        self,
        results: list[dict[str, Any]],
        final: Tensor,
        rows: Tensor,
        targets: Tensor | None,
        view_logits: Tensor,
    ) -> None:
        """Run the attack on the eligible videos and put its verified answers into ``final``."""
        experiment, attack = self.experiment, self.setup.attack
        if attack is None:  # pragma: no cover - the caller has checked
            return
        name = self.attack_name
        ids = [self.ids[r] for r in rows.tolist()]
        given = self.clean[rows]
        goals = Goals(self.labels[rows], None if targets is None else targets[rows])
        threat = self.threat
        storage = Storage(threat, given)
        victim = Victim(
            self.attacked_view,
            given,
            goals,
            threat,
            storage=storage,
            ids=ids,
            seed=experiment.seed,
            rules=self.setup.rules,
            # With parameters of its own the attacker's view answers otherwise on the clean video.
            clean_logits=view_logits[rows] if self.setup.attack_links == self.setup.links else None,
        )
        seeds = [derive_seed(experiment.seed, i, "attack") for i in ids]
        told = AttackLog()
        surrogates = self._surrogates(given, goals, ids)
        images = ImageModels(self.setup.images, len(ids))
        context = AttackContext(
            threat=threat,
            random=VideoRandom(seeds, self.device),
            ids=ids,
            log=told,
            surrogates=surrogates,
            image_models=images,
            folder=self.setup.artifact.folder if self.setup.artifact else None,
        )
        self.stage("attack")
        if self.device.type == "cuda":
            torch.cuda.reset_peak_memory_stats(self.device)
        ambient = derive_seed(experiment.seed, "\n".join(ids), "attack")
        with (
            untouched(name, self.setup.models, given) as handed,
            isolated_random_state(ambient),
        ):
            self.clock.start()
            try:
                answer = (
                    handed.clone()
                    if threat.is_zero
                    else attack.attack(victim, handed, goals, context)
                )
            except BudgetExhausted:
                answer = victim.best()
            self.clock.stop("attack")
        self.stage("verify")
        answer = check_answer(name, answer, given)
        exhausted = [i for i, m in enumerate(victim.meters) if m.exhausted]
        if exhausted:
            answer = answer.clone()
            answer[exhausted] = victim.best()[exhausted]
        verified = fit(answer, given, threat, storage)
        final[rows] = verified.video
        memory = self._peak_memory()
        for j, row in enumerate(rows.tolist()):
            meter, fields, flags = victim.meters[j], results[row], self.flags[row]
            fields["cost"] = {
                "forwards": meter.forwards,
                "backwards": meter.backwards,
                "iterations": meter.iterations,
                "budget_exhausted": meter.exhausted,
                "queries_to_first_success": meter.queries_to_first_success,
                "mem_peak_bytes": memory,
            }
            asked = images.meters[j]
            if surrogates is not None or asked.forwards:
                more = (surrogates.forwards(j), surrogates.backwards(j)) if surrogates else (0, 0)
                fields["cost"]["surrogate_forwards"] = asked.forwards + more[0]
                fields["cost"]["surrogate_backwards"] = asked.backwards + more[1]
            fields["success"] = {"any_query": meter.queries_to_first_success is not None}
            if meter.trace:
                fields["trace"] = meter.sampled_trace()
            fields["perturbation"] = distances(
                verified.video[j], given[j], float(verified.violation[j]), threat.quantize,
                projected=bool(verified.outside[j]),
            )  # fmt: skip
            if verified.outside[j]:
                flags.add("constraint-violated")
                self.notes[row].append(
                    f"attack {name!r} left its threat model by "
                    f"{float(verified.violation[j]):.3g}; the answer was projected back"
                )
            if fields["perturbation"]["linf"] == 0 and not threat.is_zero:
                flags.add("attack-no-effect")
            if meter.backwards and meter.zero_gradients >= meter.iterations > 0:
                flags.add("zero-gradient")
            if victim.undeclared_randomness:
                flags.add("undeclared-randomness")
            if j in told.eps:
                fields["perturbation"]["eps"] = told.eps[j]
            if told.claims.get(j) or meter.done:
                fields["success"]["_seen"] = "claimed" if told.claims.get(j) else "seen"

    def _surrogates(self, given: Tensor, goals: Goals, ids: Sequence[str]) -> Surrogates | None:
        """Return what ``ctx.surrogate`` asks, for attacks that declared access ``transfer``."""
        pool = self.setup.surrogates
        if pool is None or self.setup.rules.access != "transfer":
            return None
        return Surrogates(
            pool,
            given,
            self.plain.gather,
            goals,
            ids=ids,
            seed=self.experiment.seed,
            chunk=self.chunk,
        )

    def _judge(self, i: int, fields: dict[str, Any], predicted: Sequence[int]) -> None:
        """Decide success on the attacker's view, on the video as it is stored.

        A prediction that the defense refused to make is no success.
        """
        label, target = self.videos[i].label, fields.get("target")
        changed = [p not in (label, ABSTAINED) for p in predicted]
        reached = [p == target for p in predicted]
        met = reached if target is not None else changed
        success = fields.setdefault("success", {})
        seen = success.pop("_seen", None)
        success["changed"] = 2 * sum(changed) > len(changed)
        if target is not None:
            success["target"] = 2 * sum(reached) > len(reached)
        success["n"], success["of"] = sum(met), len(met)
        if seen and not any(met):
            if seen == "claimed":
                self.notes[i].append(
                    f"attack {self.attack_name!r} reported success; "
                    "the video as stored is not a success"
                )
            if len(met) == 1:
                self.flags[i].add("lost-by-rounding")

    def _begin_metrics(self, final: Tensor, rows: Sequence[int]) -> None:
        """Let metrics that need no device begin before the model judges, if there is something."""
        if not self.beside.is_of_use or self.reuse.known_readings(rows) is not None:
            return
        self.stage("metrics")
        self.clock.start()
        self.beside.begin({i: Pair(self.clean[i], final[i], self._info(i)) for i in rows})
        self.clock.stop("metrics")

    def _measure(self, results: list[dict[str, Any]], final: Tensor, rows: Sequence[int]) -> None:
        self.stage("metrics")
        self.clock.start()
        for i, found in zip(
            rows, self.reuse.readings(rows, lambda: self._readings(final, rows)), strict=True
        ):
            results[i]["metrics"] = found
        self._stop_metrics()

    def _stop_metrics(self) -> None:
        """Add the time of the metrics, also that for which nobody waited."""
        self.clock.stop("metrics")
        self.clock.seconds["metrics"] += self.beside.unseen_s

    def _readings(self, final: Tensor, rows: Sequence[int]) -> list[dict[str, Any]]:
        return [
            readings(self.beside.metrics(i), self.clean[i], final[i], self._info(i)) for i in rows
        ]

    def _info(self, i: int) -> ClipInfo:
        return ClipInfo(
            video=self.ids[i],
            fps=self.videos[i].fps,
            seed=derive_seed(self.experiment.seed, self.ids[i], "metric"),
            clips=1 if self.experiment.protocol.tie_frames else len(self.videos[i].gather),
        )

    # -- pieces --------------------------------------------------------------------------------

    def _predict(self, view: View, video: Tensor, role: str, draws: int) -> list[Draw]:
        ambient = derive_seed(self.experiment.seed, "\n".join(self.ids), role)
        out = []
        with torch.no_grad(), isolated_random_state(ambient):
            for repeat in range(draws):
                seeds = [derive_seed(self.experiment.seed, i, role, repeat) for i in self.ids]
                out.append(Draw(*view.detailed(video, VideoRandom(seeds, self.device))))
        return out

    def _plain_draw(self, video: Tensor, reused: Callable[[ScoresFn], Tensor]) -> Draw:
        """Return the bare model's prediction; what it tells besides is not kept for other runs."""

        def computed() -> Draw:
            return self._predict(self.plain, video, "clean", 1)[0]

        if self.setup.model.is_detailed:
            return computed()
        return Draw(reused(lambda: computed().scores), [{} for _ in self.videos])

    def _defended_draws(self, video: Tensor) -> list[Draw]:
        return self._draws(self.defended, video)

    def _draws(self, view: View | None, video: Tensor) -> list[Draw]:
        """Return the draws by which a defended view is judged; none without a defense."""
        if view is None:
            return []
        draws = self.experiment.protocol.eval_repeats if view.stochastic else 1
        return self._predict(view, video, "eval", draws)

    def _corners(self, draws: Sequence[Draw], i: int, *, listed: bool = False) -> Any:
        corners = [draw.corner(i, self.videos[i].label) for draw in draws]
        return corners if listed or len(corners) > 1 else corners[0]

    def _look_for_probabilities(self) -> None:
        if self.setup.probabilities is None:
            with torch.no_grad():
                clips = self.plain.clips(self.clean[:1]).flatten(0, 1)[:1]
                logits = self.setup.model.logits(clips)
            inside = bool((logits >= 0).all()) and bool((logits <= 1).all())
            sums_to_1 = bool(((logits.sum(dim=-1) - 1).abs() < 1e-4).all())
            self.setup.probabilities = inside and sums_to_1
        if self.setup.probabilities:
            for flags in self.flags:
                flags.add("probabilities-not-logits")

    def _peak_memory(self) -> int | None:
        if self.device.type == "cuda":
            return torch.cuda.max_memory_allocated(self.device)
        if sys.platform == "win32":
            return None
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024

    def _result(self, i: int, fields: dict[str, Any], final: Tensor | None) -> Result:
        count, video = len(self.videos), self.ids[i]
        cost = fields.setdefault("cost", {"forwards": 0, "backwards": 0})
        cost["t_decode_s"] = self.videos[i].seconds
        for stage in ("clean", "certify", "attack", "eval", "metrics"):
            if stage in self.clock.seconds:
                cost[f"t_{stage}_s"] = self.clock.seconds[stage] / count
        cost["chunk"] = self.chunk or 0
        if fields["status"] == "ineligible":
            cost.pop("t_attack_s", None)
        artifact = self.setup.artifact
        if artifact is not None:
            fields["artifact"] = artifact.sha256
            if video in artifact.overlap:
                self.flags[i].add("leak")
        if self.setup.defense_artifacts:
            fields["defense_artifacts"] = [a.sha256 for a in self.setup.defense_artifacts]
            if any(video in a.overlap for a in self.setup.defense_artifacts):
                self.flags[i].add("leak")
        fields["flags"] = sorted(self.flags[i])
        if self.notes[i]:
            fields["notes"] = self.notes[i]
        seed = self.experiment.seed
        fields["seeds"] = {
            "attack": derive_seed(seed, video, "attack"),
            "eval": derive_seed(seed, video, "eval"),
        }
        if self.videos[i].sample:
            fields["sample"] = self.videos[i].sample
        fields["input"] = self.videos[i].facts
        return Result(
            fields=fields,
            clean_frames=self.clean[i],
            adversarial_frames=None if final is None else final[i],
        )
