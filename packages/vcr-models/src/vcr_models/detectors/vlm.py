"""``vlm-detector``: a video-language model that is asked whether a video was tampered with."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import torch
from vcr_core.protocols import BaseVideoClassifier, LabelSpace
from vcr_core.randomness import VideoRandom
from vcr_core.specs import ClipSpec

from vcr_models.detectors.names import ORIGINAL, SUITES
from vcr_models.detectors.vlm_chat import ChatModel, load_chat_model
from vcr_models.detectors.vlm_questions import (
    Question,
    parse_answer,
    tampered_question,
    type_question,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torch import Tensor
    from vcr_core.specs import WeightSpec

    from vcr_models.detectors.vlm_params import VlmDetectorParams

KEPT_TEXT: Final = 80
"""Characters of an answer that the record keeps."""

_LIFT: Final = 1e-3
"""How far the class that an answer names lies above the one whose letter is likelier."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """Both questions about one clip, answered."""

    tampered: str | None
    score: float
    type: str | None
    scores: dict[str, float]
    evidence: dict[str, Any]


class VlmDetector(BaseVideoClassifier):
    """A chat model behind two multiple-choice questions.

    The first one, with the options yes and no, gives ``tampered`` and ``score``: the logit of the
    letter of *yes* minus that of *no*, as the first word of the answer. The second one offers the
    original and every effect, and gives the class. Answers are generated greedily. An answer that
    names no option or several is unparsed: the detector abstains, which counts as wrong.

    The options come in an order that is drawn for every clip, seeded by its pixels: then neither
    the batch nor the order of videos matters. Rows are asked one by one.

    Args:
        params: the checkpoint, the effects, how to ask.
        weights: none; the checkpoint is a parameter.

    Raises:
        ComponentUnavailable: with what to do, if transformers or the checkpoint is missing.
    """

    def __init__(self, params: VlmDetectorParams, weights: WeightSpec | None = None) -> None:
        self._setup(params, load_chat_model(params))

    @classmethod
    def of(cls, params: VlmDetectorParams, chat: ChatModel) -> Self:
        """Return a detector around a chat model that is already there."""
        detector = cls.__new__(cls)
        detector._setup(params, chat)
        return detector

    def _setup(self, params: VlmDetectorParams, chat: ChatModel) -> None:
        self.params = params
        self.labels = _labels(params.effects)
        self.clip = ClipSpec(frames=params.frames, policy="segment_middle")
        self.chat = chat
        # Found by whoever freezes and guards a model's parameters.
        self.network = chat.network

    def logits(self, clips: Tensor) -> Tensor:
        """Return class scores ``[N, 1, K]`` of clips ``[N, T, 3, H, W]`` in [0, 1]; no gradient.

        They are the logits of the letters in the second question. Where the answer in words names
        another class than the likeliest letter, that class gets the highest score.
        """
        return self.examine(clips)[0]

    def examine(self, clips: Tensor) -> tuple[Tensor, Sequence[Mapping[str, Any]]]:
        """Return class scores and, for each clip, what the record keeps.

        Args:
            clips: ``[N, T, 3, H, W]`` float in [0, 1], any H and W.

        Returns:
            ``[N, 1, K]`` and dictionaries with ``score``, ``tampered`` (absent where the first
            answer is unparsed), ``abstained`` (where the second one is) and ``evidence``.

        Raises:
            ValueError: another number of dimensions, frames or channels.
        """
        if clips.ndim != 5 or clips.shape[1] != self.clip.frames or clips.shape[2] != 3:
            msg = f"expected clips [N, {self.clip.frames}, 3, H, W], got {tuple(clips.shape)}"
            raise ValueError(msg)
        asked = [self._ask(clip) for clip in clips.detach()]
        rows = [[row.scores[name] for name in self.labels.names] for row in asked]
        logits = torch.tensor(rows, dtype=torch.float32, device=clips.device)
        return logits.unsqueeze(1), [_facts(row) for row in asked]

    def to(self, device: torch.device | str) -> Self:
        """Move the network in place and return this detector."""
        self.chat.to(device)
        return self

    def _ask(self, clip: Tensor) -> _Asked:
        frames = (clip * 255).round().clamp(0, 255).to(torch.uint8).cpu()
        no_first, classes = self._order(frames)
        first = tampered_question(len(frames), no_first=no_first)
        second = type_question(len(frames), classes)
        said, named, letters = self._answer(frames, first)
        told, kind, scores = self._answer(frames, second)
        if kind is not None:
            best = max(scores.values())
            others = [score for name, score in scores.items() if name != kind]
            if others and scores[kind] <= max(others):
                scores[kind] = best + _LIFT
        evidence = {
            "answer": said[:KEPT_TEXT],
            "unparsed": named is None,
            "options": list(first.options),
            "type_answer": told[:KEPT_TEXT],
            "type_unparsed": kind is None,
            "type_options": list(second.options),
        }
        return _Asked(named, letters["yes"] - letters["no"], kind, scores, evidence)

    def _answer(
        self, frames: Tensor, question: Question
    ) -> tuple[str, str | None, dict[str, float]]:
        """Return the words, the option they name, and the logit of each option's letter."""
        answer = self.chat.ask(frames, question.text, question.letters)
        scores = dict(zip(question.options, answer.letters, strict=True))
        bad = [name for name, score in scores.items() if not math.isfinite(score)]
        if bad:
            msg = f"the chat model's logits are not finite for option {bad[0]!r}; set model.dtype"
            raise ValueError(msg)
        return answer.text, parse_answer(answer.text, question), scores

    def _order(self, frames: Tensor) -> tuple[bool, list[str]]:
        """Return whether *no* comes first, and the order of the classes."""
        classes = list(self.labels.names)
        if self.params.order == "fixed":
            return False, classes
        content = repr(tuple(frames.shape)).encode() + frames.contiguous().numpy().tobytes()
        digest = hashlib.blake2b(content, digest_size=8, person=b"vcr-vlm-order-v1").digest()
        random = VideoRandom([int.from_bytes(digest, "little") & (2**63 - 1)])
        no_first = bool(random.child("answer").integers(0, 2)[0])
        places = random.child("classes").permutation(len(classes))[0].tolist()
        return no_first, [classes[place] for place in places]


def _labels(effects: str | Sequence[str]) -> LabelSpace:
    """Return the classes, named like those of the dataset ``tamper`` with these effects."""
    names = SUITES[effects] if isinstance(effects, str) else tuple(effects)
    suite = effects if isinstance(effects, str) else "+".join(names)
    return LabelSpace(f"tamper-{suite}", (ORIGINAL, *names))


def _facts(row: _Asked) -> dict[str, Any]:
    facts: dict[str, Any] = {"score": row.score, "evidence": row.evidence}
    if row.tampered is not None:
        facts["tampered"] = row.tampered == "yes"
    if row.type is None:
        facts["abstained"] = True
    return facts
