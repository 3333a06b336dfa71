"""The record, schema 1: what each field of one line of ``records/*.jsonl`` means.

The engine works with plain dictionaries; these structs are their description. They produce the
JSON Schema of the documentation and check records in tests. Unknown fields are kept when records
are read, so the structs do not forbid them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, field

if TYPE_CHECKING:
    from collections.abc import Mapping

RECORD_SCHEMA = 1

Status = Literal["ok", "ineligible", "error", "skipped"]
STATUSES: tuple[Status, ...] = ("ok", "ineligible", "error", "skipped")

Probability = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]


class Corner(Struct, kw_only=True):
    """One prediction: of the model or the defended model, on the clean or the attacked video.

    Attributes:
        pred: predicted label, ties to the lower index; ``None`` if the defense abstained.
        p_label: aggregated probability of the true label.
        p_pred: aggregated probability of ``pred``; ``None`` if the defense abstained.
        top5: the five most probable labels, most probable first (fewer with fewer classes).
        margin: log-probability of the true label minus the largest other one; below 0 if wrong.
        votes: class to number of votes, where a defense votes.
        abstained: whether the defense refused to predict.
        score: a detector's score, higher = more likely attacked or tampered with.
        rejected: whether the score is above the detector's threshold.
        tampered: what a detector of tampering decides, by its own threshold.
        segment_s: begin and end of what such a detector takes for tampered, in seconds of the
            video that it saw; both the same for a cut, ``None`` if it names none.
        evidence: what its decision rests on, plain data of the detector's own.
    """

    pred: int | None
    p_label: Probability | None = None
    p_pred: Probability | None = None
    top5: list[int] | UnsetType = UNSET
    margin: float | None = None
    votes: dict[str, Count] | UnsetType = UNSET
    abstained: bool | UnsetType = UNSET
    score: float | UnsetType | None = UNSET
    rejected: bool | UnsetType = UNSET
    tampered: bool | UnsetType = UNSET
    segment_s: list[float] | UnsetType | None = UNSET
    evidence: dict[str, Any] | UnsetType = UNSET


class Certificate(Struct, kw_only=True):
    """What a defense guarantees about the clean video: the class within a radius around it.

    With probability ``1 - alpha`` over the draws, no perturbation of the video below ``radius``
    makes the defended model predict another class. It holds for every attack of that norm and says
    nothing about others.

    Attributes:
        class_: the certified label; ``None`` if no class can be certified.
        radius: in the norm's unit for pixels in [0, 1]; 0 without a class.
        p_lower: lower bound of the probability that the base classifier gives the class to a draw.
        count: how many of the ``n`` draws gave it.
        n0: draws that chose the class; none of them is among the ``n``.
        n: draws that bound its probability.
        alpha: probability that the bound does not hold.
        sigma: standard deviation of the noise, fraction of the pixel range.
        norm: norm of the radius.
        dims: numbers that the video consists of, T·C·H·W.
    """

    class_: Count | None = field(name="class")
    radius: Annotated[float, Meta(ge=0)]
    p_lower: Probability
    count: Count
    n0: Count
    n: Count
    alpha: Probability
    sigma: Annotated[float, Meta(ge=0)]
    norm: Literal["l2"]
    dims: Count


class Success(Struct, kw_only=True):
    """What the attack achieved on the attacker's view, judged on the video as stored.

    Attributes:
        changed: the label is no longer the true one (random views: in most draws).
        target: the label is the target (targeted runs).
        n: draws in which the goal was met.
        of: draws judged, ``R``.
        any_query: whether any query on the way met the goal.
    """

    changed: bool
    target: bool | UnsetType = UNSET
    n: Count = 0
    of: Count = 1
    any_query: bool | None = None


class SourceOutcome(Struct, kw_only=True):
    """What the attack achieved on the model that it was computed on, by that model's classes.

    Attributes:
        label: true label among the classes of the source.
        target: label that a targeted attack was after, likewise.
        clean: prediction of the source on the clean video.
        attacked: its prediction on the attacked one.
        success: what the attack achieved; absent where the source was wrong before.
    """

    label: Count
    target: Count | UnsetType = UNSET
    clean: Corner
    attacked: Corner | UnsetType = UNSET
    success: Success | UnsetType = UNSET


class Perturbation(Struct, kw_only=True):
    """Size of ``a - x``; fractions of the pixel range.

    Attributes:
        linf: largest absolute difference.
        l2: Euclidean norm over the whole video.
        l1: mean absolute difference.
        l0_fraction: fraction of pixel sites (t, h, w) that changed in any channel.
        frames_touched: number of frames with any change.
        l21: sum over frames of the Euclidean norm of a frame.
        violation: how far outside the threat model the attack's own answer was.
        projected: whether the engine had to project it.
        quantised: whether it was rounded to 8 bit.
        eps: the radius that the attack chose for this video, where it chose one.
    """

    linf: float
    l2: float
    l1: float
    l0_fraction: Probability
    frames_touched: Count
    l21: float | UnsetType = UNSET
    violation: float = 0.0
    projected: bool = False
    quantised: bool = True
    eps: float | UnsetType = UNSET


class MetricReading(Struct, kw_only=True):
    """A metric of the pair (clean, attacked).

    Attributes:
        value: ``None`` where it could not be computed.
        reason: why it is ``None``, as ``identical``.
        per_frame: one value a frame.
        by: library, version and weights that computed it.
    """

    value: float | None
    reason: str | UnsetType = UNSET
    per_frame: list[float | None] | UnsetType = UNSET
    by: str | UnsetType = UNSET


class Cost(Struct, kw_only=True):
    """What the video cost. One forward is one video, whatever its number of views.

    Attributes:
        forwards: queries of the attack to its victim.
        backwards: gradients of the attack from its victim.
        surrogate_forwards: queries to surrogate models.
        iterations: steps executed.
        budget_exhausted: whether the budget, not the attack, ended it.
        queries_to_first_success: forwards until a query first met the goal, if one did.
        t_decode_s: decoding.
        t_clean_s: clean predictions.
        t_certify_s: the certificate, where there is one.
        t_attack_s: the attack alone; 0 where that of another run was reused.
        t_eval_s: final predictions.
        t_metrics_s: metrics, also those that were measured while the model judged.
        mem_peak_bytes: peak device memory while attacked (CPU: resident set).
        chunk: clips that passed the model at once; 0 = all.
    """

    forwards: Count = 0
    backwards: Count = 0
    surrogate_forwards: Count = 0
    iterations: Count | None = None
    budget_exhausted: bool = False
    queries_to_first_success: Count | UnsetType | None = UNSET
    t_decode_s: Seconds | None = None
    t_clean_s: Seconds | None = None
    t_certify_s: Seconds | UnsetType = UNSET
    t_attack_s: Seconds | None = None
    t_eval_s: Seconds | None = None
    t_metrics_s: Seconds | None = None
    mem_peak_bytes: Count | UnsetType | None = UNSET
    chunk: int | None = None


class InputFacts(Struct, kw_only=True):
    """What was decoded.

    Attributes:
        sha256: hash of the content, if it could be read.
        decoder: name and version of the decoder.
        frames_header: frames that the container announces.
        frames_decoded: frames that came out; sampling uses this number.
        fps: frames per second as a number or a fraction such as ``30000/1001``.
        size: height and width of a frame in pixels.
        indices: distinct source frames, in presentation order.
        plan: the sampling plan.
        shown: how a model that did not see the attack samples from these frames; absent without a
            source.
    """

    sha256: str | None = None
    decoder: str | None = None
    frames_header: Count | None = None
    frames_decoded: Count | None = None
    fps: float | str | None = None
    size: list[int] | None = None
    indices: list[int] | None = None
    plan: Any = None
    shown: str | UnsetType = UNSET


class Failure(Struct, kw_only=True):
    """Why a video has no result.

    Attributes:
        stage: ``decode``, ``clean``, ``certify``, ``attack``, ``verify``, ``eval``, ``metrics`` or
            ``worker``.
        type: class of the exception.
        message: its text.
        traceback: shortened where the line would get too long.
        oom: whether memory ran out.
    """

    stage: str
    type: str
    message: str
    traceback: str = ""
    oom: bool = False


class Record(Struct, kw_only=True):
    """One video in one run. Fields that do not apply are absent; unknown values are ``null``.

    Attributes:
        schema: version of this description.
        run: run id.
        video: video id; the last ``attempt`` of a video counts.
        batch: number of the planned batch.
        shard: which share of the run wrote it.
        attempt: 1, then one more each time the video is evaluated again.
        status: ``ok``: evaluated (and attacked, if the run attacks); ``ineligible``: the
            attacker's view was wrong before the attack, so ``a := x``; ``error``; ``skipped``.
        label: true label.
        label_source: ``clean-prediction`` where the label is what the bare model predicts on the
            clean video; absent where it is the dataset's.
        target: label that a targeted attack is after.
        target_policy: how the target was chosen.
        clean: ``f(x)``.
        clean_defended: ``d∘f(x)``, one prediction or one a draw.
        certificate: what the defense guarantees about ``x``, where it was asked.
        attacked: ``f(a)``.
        attacked_defended: ``d∘f(a)``, one prediction a draw.
        success: what the attack achieved.
        source: where the attack was computed on another model: what it achieved there. ``ok`` and
            ``ineligible`` are then about that model, counts and budgets are its queries, and all
            other predictions are of the evaluated model on the same frames.
        perturbation: size of what it changed.
        metrics: readings by key.
        cost: counts, seconds, bytes.
        transform: under an attack that asks nothing: what was done to the video before it was
            sampled, what was sampled then, and ``sha256`` of what came out.
        trace: at most 64 sampled points of loss and label probability.
        flags: health flags.
        notes: reasons for nulls and other remarks, by the field they are about.
        artifact: hash of what the attack's offline step made, where it has one.
        defense_artifacts: hashes of what the defenses' offline steps made, in their order.
        seeds: seeds used, by role.
        sample: what the dataset knows of the video; ``source`` is the recording that it was made
            from, by which videos hang together.
        input: what was decoded.
        error: why there is no result.
        host: machine name.
        device: device name.
        t_end: end of the evaluation, UTC, ISO 8601.
    """

    schema: Literal[1]
    run: str
    video: str
    batch: Count
    shard: Count | str
    attempt: Annotated[int, Meta(ge=1)]
    status: Status
    label: Count | None
    label_source: Literal["clean-prediction"] | UnsetType = UNSET
    target: Count | UnsetType | None = UNSET
    target_policy: str | UnsetType | None = UNSET
    clean: Corner | UnsetType | None = UNSET
    clean_defended: Corner | list[Corner] | UnsetType | None = UNSET
    certificate: Certificate | UnsetType = UNSET
    attacked: Corner | UnsetType | None = UNSET
    attacked_defended: list[Corner] | UnsetType | None = UNSET
    success: Success | UnsetType | None = UNSET
    source: SourceOutcome | UnsetType = UNSET
    perturbation: Perturbation | UnsetType | None = UNSET
    metrics: dict[str, MetricReading] | UnsetType = UNSET
    cost: Cost | UnsetType = UNSET
    transform: dict[str, Any] | UnsetType = UNSET
    trace: dict[str, list[Any]] | list[Any] | UnsetType = UNSET
    flags: list[str] | UnsetType = UNSET
    notes: dict[str, str] | list[str] | UnsetType = UNSET
    artifact: str | UnsetType = UNSET
    defense_artifacts: list[str] | UnsetType = UNSET
    seeds: dict[str, Any] | UnsetType = UNSET
    sample: dict[str, Any] | UnsetType = UNSET
    input: InputFacts | UnsetType | None = UNSET
    error: Failure | UnsetType | None = UNSET
    host: str | UnsetType | None = UNSET
    device: str | UnsetType | None = UNSET
    t_end: str | UnsetType | None = UNSET


RECORD_FIELDS: tuple[str, ...] = Record.__struct_fields__
"""Every field in the order in which records are written."""

_WHERE_AND_WHEN = frozenset({"attempt", "device", "host", "shard", "t_end"})
_COST_OF_THE_DAY = ("t_", "mem_")


def validate_record(record: Mapping[str, Any]) -> Record:
    """Return ``record`` as a struct.

    Raises:
        msgspec.ValidationError: naming the field that is wrong.
    """
    return msgspec.convert(record, type=Record)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of a record."""
    return msgspec.json.schema(Record)


def stable_part(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what must be equal however often, where and in which order a video is evaluated.

    Leaves out attempt, shard, host, device name, times and memory.

    Example:
        >>> stable_part({"video": "a", "t_end": "…", "cost": {"forwards": 3, "t_attack_s": 0.1}})
        {'video': 'a', 'cost': {'forwards': 3}}
    """
    stable = {key: value for key, value in record.items() if key not in _WHERE_AND_WHEN}
    if isinstance(stable.get("cost"), dict):
        stable["cost"] = {
            key: value
            for key, value in stable["cost"].items()
            if not key.startswith(_COST_OF_THE_DAY)
        }
    return stable
