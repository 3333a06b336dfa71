"""``vlm-detector``: a scripted chat model for the rules, a tiny random checkpoint for the path."""

from __future__ import annotations

import atexit
import json
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from vcr_core import evaluate
from vcr_core.errors import ComponentUnavailable
from vcr_core.protocols import LabelSpace
from vcr_core.testing import parametrize_contract
from vcr_models.detectors.vlm import KEPT_TEXT, VlmDetector
from vcr_models.detectors.vlm_chat import Answer, load_chat_model
from vcr_models.detectors.vlm_params import VlmDetectorParams
from vcr_models.specs.vlm import SPECS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from torch import Tensor

SPECIAL = [
    "<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|vision_end|>",
    "<|image_pad|>", "<|video_pad|>",
]  # fmt: skip
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<|vision_start|><|image_pad|><|vision_end|>"
    "{% elif part['type'] == 'video' %}<|vision_start|><|video_pad|><|vision_end|>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@cache
def checkpoint() -> Path:
    """Make a Qwen2-VL of 30 thousand random weights whose words are single bytes."""
    transformers = pytest.importorskip("transformers", reason="vcr-models[transformers]")
    tokenizers = pytest.importorskip("tokenizers", reason="vcr-models[transformers]")
    bytes_only = tokenizers.pre_tokenizers.ByteLevel
    words = {word: number for number, word in enumerate(sorted(bytes_only.alphabet()))}
    base = tokenizers.Tokenizer(tokenizers.models.BPE(vocab=words, merges=[]))
    base.pre_tokenizer = bytes_only(add_prefix_space=False)
    base.decoder = tokenizers.decoders.ByteLevel()
    base.add_special_tokens(SPECIAL)
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=base, eos_token="<|im_end|>", pad_token="<|endoftext|>"
    )
    number = {word: tokenizer.convert_tokens_to_ids(word) for word in SPECIAL}
    config = transformers.Qwen2VLConfig(
        text_config={
            "vocab_size": len(tokenizer),
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 4096,
            "rope_parameters": {
                "rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0,
            },
            "eos_token_id": number["<|im_end|>"],
            "pad_token_id": number["<|endoftext|>"],
        },
        vision_config={
            "depth": 1, "embed_dim": 32, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2,
            "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
        },
        image_token_id=number["<|image_pad|>"],
        video_token_id=number["<|video_pad|>"],
        vision_start_token_id=number["<|vision_start|>"],
        vision_end_token_id=number["<|vision_end|>"],
    )  # fmt: skip
    size = {"shortest_edge": 56 * 56, "longest_edge": 4 * 56 * 56}
    processor = transformers.Qwen2VLProcessor(
        image_processor=transformers.Qwen2VLImageProcessor(size=size),
        tokenizer=tokenizer,
        video_processor=transformers.Qwen2VLVideoProcessor(size=size),
        chat_template=TEMPLATE,
    )
    folder = Path(tempfile.mkdtemp(prefix="vcr-tiny-chat-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(0)
        network = transformers.Qwen2VLForConditionalGeneration(config)
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


class Scripted:
    """A chat model that answers from a list and keeps what it was asked."""

    def __init__(self, answer: Callable[[str, Sequence[str]], Answer]) -> None:
        self.network = torch.nn.Linear(1, 1)
        self.asked: list[str] = []
        self._answer = answer

    def ask(self, frames: Tensor, question: str, letters: Sequence[str]) -> Answer:
        assert frames.dtype == torch.uint8
        self.asked.append(question)
        return self._answer(question, letters)

    def to(self, device: Any) -> None:
        """There is nothing to move."""


def saying(first: str, second: str, bonus: dict[str, float] | None = None) -> Scripted:
    """Return a model with one text for either question and logits 0, -1, -2… for the letters."""

    def answer(question: str, letters: Sequence[str]) -> Answer:
        is_first = "(A) Yes" in question or "(A) No" in question
        scores = [-float(place) for place, _ in enumerate(letters)]
        for letter, more in (bonus or {}).items():
            if not is_first and letter in letters:
                scores[list(letters).index(letter)] += more
        return Answer(first if is_first else second, tuple(scores))

    return Scripted(answer)


def detector(chat: Any, **params: Any) -> VlmDetector:
    given = {"checkpoint": "scripted", "order": "fixed", **params}
    return VlmDetector.of(VlmDetectorParams(**given), chat)


def clips(count: int = 1, seed: int = 0, frames: int = 8) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand((count, frames, 3, 20, 30), generator=generator)


def test_classes_are_the_original_and_the_effects() -> None:
    model = detector(saying("A", "A"), effects=["mask", "freeze"])
    assert model.labels == LabelSpace("tamper-mask+freeze", ("original", "mask", "freeze"))
    assert len(detector(saying("A", "A"), effects="all").labels) == 14
    assert model.logits(clips(2)).shape == (2, 1, 3)


def test_both_answers_are_kept() -> None:
    model = detector(saying("Yes", "(C)"))
    scores, [facts] = model.examine(clips())
    assert facts["tampered"] is True
    assert facts["score"] == 1.0  # logit 0 of the letter of yes minus -1 of that of no
    assert "abstained" not in facts
    assert model.labels.names[int(scores[0, 0].argmax())] == "mask"
    assert facts["evidence"] == {
        "answer": "Yes",
        "unparsed": False,
        "options": ["yes", "no"],
        "type_answer": "(C)",
        "type_unparsed": False,
        "type_options": list(model.labels.names),
    }


def test_the_answer_in_words_outranks_a_likelier_letter() -> None:
    likelier = detector(saying("No", "The answer is B", {"E": 9.0}))
    scores, [facts] = likelier.examine(clips())
    assert facts["tampered"] is False
    assert likelier.labels.names[int(scores[0, 0].argmax())] == "drop"
    assert scores[0, 0, 1] > scores[0, 0, 4] > scores[0, 0, 0]


def test_an_unparsed_type_is_an_abstention() -> None:
    _, [facts] = detector(saying("No", "I cannot say")).examine(clips())
    assert facts["abstained"] is True
    assert facts["tampered"] is False
    assert facts["evidence"]["type_unparsed"] is True


def test_an_unparsed_decision_is_none_and_keeps_its_score() -> None:
    _, [facts] = detector(saying("Perhaps", "B")).examine(clips())
    assert "tampered" not in facts
    assert facts["evidence"]["unparsed"] is True
    assert facts["score"] == 1.0


def test_long_answers_are_cut() -> None:
    _, [facts] = detector(saying("x" * 500, "y" * 500)).examine(clips())
    assert len(facts["evidence"]["answer"]) == KEPT_TEXT
    assert len(facts["evidence"]["type_answer"]) == KEPT_TEXT


def test_swapped_options_do_not_change_what_an_answer_means() -> None:
    def honest(question: str, letters: Sequence[str]) -> Answer:
        lines = dict(line[1:].split(") ", 1) for line in question.split("\n") if line[:1] == "(")
        wanted = "Yes" if "Yes" in lines.values() else "A stretch of frames is blacked out"
        letter = next(key for key, text in lines.items() if text == wanted)
        return Answer(letter, tuple(float(other == letter) for other in letters))

    model = detector(Scripted(honest), order="seeded")
    scores, facts = model.examine(clips(40))
    assert {tuple(row["evidence"]["options"]) for row in facts} == {("yes", "no"), ("no", "yes")}
    assert len({tuple(row["evidence"]["type_options"]) for row in facts}) > 30
    assert all(row["tampered"] and row["score"] == 1.0 for row in facts)
    assert set(scores[:, 0].argmax(dim=1).tolist()) == {2}


def test_about_half_of_the_clips_have_no_first() -> None:
    _, facts = detector(saying("A", "A"), order="seeded").examine(clips(200))
    swapped = sum(row["evidence"]["options"][0] == "no" for row in facts)
    assert 75 <= swapped <= 125  # 200 fair coins: 3.5 standard deviations


def test_the_order_depends_on_the_clip_alone() -> None:
    model, shown = detector(saying("A", "A"), order="seeded"), clips(6)
    _, together = model.examine(shown)
    alone = [model.examine(clip[None])[1][0] for clip in shown.flip(0)]
    assert list(together) == alone[::-1]


@pytest.mark.parametrize("shape", [(1, 8, 3, 20), (1, 7, 3, 20, 30), (1, 8, 1, 20, 30)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="expected clips"):
        detector(saying("A", "A")).logits(torch.zeros(shape))


def test_logits_that_are_not_finite_are_an_error() -> None:
    chat = Scripted(lambda _question, letters: Answer("A", (float("nan"),) * len(letters)))
    with pytest.raises(ValueError, match=r"not finite.*model\.dtype"):
        detector(chat).logits(clips())


@pytest.mark.parametrize("show", ["video", "images"])
def test_a_real_checkpoint_answers_the_same_every_time(show: Any) -> None:
    params = VlmDetectorParams(checkpoint=str(checkpoint()), show=show)
    model, shown = VlmDetector(params), clips(2)
    first, facts = model.examine(shown)
    again, more = model.examine(shown)
    assert torch.equal(first, again)
    assert list(facts) == list(more)
    assert first.shape == (2, 1, 6)
    assert torch.isfinite(first).all()
    assert not any(p.requires_grad for p in model.network.parameters())


def test_the_score_is_the_difference_of_the_letters_logits() -> None:
    chat = load_chat_model(VlmDetectorParams(checkpoint=str(checkpoint())))
    frames = (clips()[0] * 255).round().to(torch.uint8)
    question = "Is it?\n(A) Yes\n(B) No"
    answer = chat.ask(frames, question, "AB")
    inputs = chat._inputs(frames, question)
    with torch.no_grad():
        last = chat.network(**inputs).logits[0, -1]
    # A byte is a word here, so a letter is one token and the same letter after a space is two.
    expected = [float(last[ord(letter) - 33]) for letter in "AB"]
    assert answer.letters == pytest.approx(expected, abs=1e-5)
    assert len(answer.text) <= 8


def test_settings_of_a_checkpoint_that_sample_are_put_aside(tmp_path: Path) -> None:
    folder = tmp_path / "warm"
    shutil.copytree(checkpoint(), folder)
    settings = json.loads((folder / "generation_config.json").read_text())
    settings |= {"do_sample": True, "temperature": 5.0, "top_k": 3, "repetition_penalty": 9.0}
    (folder / "generation_config.json").write_text(json.dumps(settings))
    warm = VlmDetector(VlmDetectorParams(checkpoint=str(folder))).examine(clips())
    cold = VlmDetector(VlmDetectorParams(checkpoint=str(checkpoint()))).examine(clips())
    assert torch.equal(warm[0], cold[0])
    assert list(warm[1]) == list(cold[1])


def test_a_missing_folder_says_what_to_set(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="vcr-models[transformers]")
    with pytest.raises(ComponentUnavailable, match=r"there is no folder .*model\.checkpoint"):
        VlmDetector(VlmDetectorParams(checkpoint=str(tmp_path / "absent")))


def test_a_name_that_is_not_in_the_cache_says_how_to_fetch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = pytest.importorskip("huggingface_hub", reason="vcr-models[transformers]")
    pytest.importorskip("transformers", reason="vcr-models[transformers]")
    monkeypatch.setattr(hub.constants, "HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(ComponentUnavailable, match="hf download nobody/nothing --revision v1"):
        VlmDetector(VlmDetectorParams(checkpoint="nobody/nothing", revision="v1"))


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="vcr-models[transformers]")
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(ComponentUnavailable, match="cannot be loaded as a chat model"):
        VlmDetector(VlmDetectorParams(checkpoint=str(tmp_path)))


def test_a_checkpoint_without_chat_template_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "mute"
    shutil.copytree(checkpoint(), folder)
    (folder / "chat_template.jinja").unlink()
    with pytest.raises(ComponentUnavailable, match="no chat template"):
        VlmDetector(VlmDetectorParams(checkpoint=str(folder)))


def test_without_transformers_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ComponentUnavailable, match=r"pip install 'vcr-models\[transformers\]'"):
        VlmDetector(VlmDetectorParams(checkpoint="anything"))


class BlackFinder:
    """A chat model that finds black frames, and has no word for anything else."""

    def __init__(self) -> None:
        self.network = torch.nn.Linear(1, 1)

    def ask(self, frames: Tensor, question: str, letters: Sequence[str]) -> Answer:
        black = bool((frames.flatten(1) == 0).all(dim=1).any())
        lines = dict(line[1:].split(") ", 1) for line in question.split("\n") if line[:1] == "(")
        if "Yes" in lines.values():
            wanted = "Yes" if black else "No"
        elif black:
            wanted = "A stretch of frames is blacked out"
        else:
            return Answer("I cannot tell", (0.0,) * len(letters))
        letter = next(key for key, text in lines.items() if text == wanted)
        return Answer(f"({letter})", tuple(float(other == letter) for other in letters))

    def to(self, device: Any) -> None:
        """There is nothing to move."""


def test_a_run_has_its_answers_in_the_records_and_its_numbers_in_the_summary() -> None:
    pytest.importorskip("vcr_attacks", reason="the dataset 'tamper' comes with vcr-attacks")
    model = VlmDetector.of(VlmDetectorParams(checkpoint="scripted"), BlackFinder())
    result = evaluate(model=model, dataset="tamper", limit=24)
    assert [record["status"] for record in result.records] == ["ok"] * 24
    for record in result.records:
        corner = record["clean"]
        masked = record["sample"]["tamper"]["type"] == "mask"
        assert corner["tampered"] == masked
        # The first question has an answer; the second one only where there is black.
        assert (corner["pred"] is None) == (not masked)
        assert corner["evidence"]["type_unparsed"] == (not masked)
    numbers = result.view.summary["tamper_detection"]["clean"]
    assert numbers["binary"]["mask"]["balanced_accuracy"]["value"] == 1.0
    assert numbers["binary"]["drop"]["balanced_accuracy"]["value"] == 0.5
    assert numbers["answers"]["unnamed_rate"]["value"] == 20 / 24
    assert numbers["classes"]["recall"]["mask"]["value"] == 1.0


@pytest.mark.contract
@parametrize_contract(
    list(SPECS), params={"model/vlm-detector": lambda: {"checkpoint": str(checkpoint())}}
)
def test_contract(check: Callable[[], None]) -> None:
    check()
