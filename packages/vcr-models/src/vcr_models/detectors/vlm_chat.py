"""A video-language chat model of transformers: frames and a question in, an answer out."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from vcr_core.errors import ComponentUnavailable

from vcr_models.files.checkpoint_folder import checkpoint_folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torch import Tensor

    from vcr_models.detectors.vlm_params import VlmDetectorParams

WHO: Final = "model 'vlm-detector'"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a chat model says.

    Attributes:
        text: the generated words.
        letters: the logit of each asked letter as the first word of the answer.
    """

    text: str
    letters: tuple[float, ...]


class ChatModel:
    """A chat model that looks at frames.

    Args:
        processor: makes tensors of text and frames.
        network: generates; it is frozen here.
        show: ``video``: the frames as one video; ``images``: one by one.
        max_new_tokens: length of an answer.
    """

    def __init__(
        self,
        processor: Any,
        network: Any,
        *,
        show: Literal["video", "images"],
        max_new_tokens: int,
    ) -> None:
        self._processor = processor
        self.network = network.eval().requires_grad_(False)
        self._show = show
        # In its place: what settings leave open is otherwise taken from the checkpoint's.
        network.generation_config = _greedy(network, max_new_tokens)
        self._tokens: dict[str, list[int]] = {}

    def ask(self, frames: Tensor, question: str, letters: Sequence[str]) -> Answer:
        """Return the answer to a question about a video.

        Args:
            frames: ``[T, 3, H, W]`` uint8.
            question: what is asked, options included.
            letters: the letters of its options.

        Raises:
            ComponentUnavailable: if the model's words have no single one for a letter.
        """
        inputs = self._inputs(frames, question)
        with torch.no_grad():
            made = self.network.generate(
                **inputs,
                return_dict_in_generate=True,
                output_logits=True,
            )
        first: Tensor = made.logits[0][0].float()
        new = made.sequences[0, -len(made.logits) :]
        text: str = self._processor.tokenizer.decode(new, skip_special_tokens=True)
        scores = [float(first[self._words(letter)].logsumexp(0)) for letter in letters]
        return Answer(text.strip(), tuple(scores))

    def to(self, device: torch.device | str) -> None:
        """Move the network to ``device``."""
        self.network.to(device)

    def _inputs(self, frames: Tensor, question: str) -> Any:
        pictures = (
            [{"type": "video"}] if self._show == "video" else [{"type": "image"}] * len(frames)
        )
        message = {"role": "user", "content": [*pictures, {"type": "text", "text": question}]}
        text = self._processor.apply_chat_template(
            [message], add_generation_prompt=True, tokenize=False
        )
        shown: dict[str, Any]
        if self._show == "video":
            # The frames have been sampled; models that read times are told of one a second.
            metadata = {
                "total_num_frames": len(frames),
                "fps": 1.0,
                "frames_indices": list(range(len(frames))),
            }
            shown = {
                "videos": [frames],
                "do_sample_frames": False,
                "video_metadata": [metadata],
            }
        else:
            shown = {"images": list(frames)}
        inputs = self._processor(text=[text], return_tensors="pt", **shown)
        inputs = inputs.to(self.network.device)
        for name, value in inputs.items():
            if torch.is_tensor(value) and value.is_floating_point():
                inputs[name] = value.to(self.network.dtype)
        return inputs

    def _words(self, letter: str) -> list[int]:
        """Return the tokens that are a letter, with and without a space before it."""
        if letter not in self._tokens:
            encode = self._processor.tokenizer.encode
            spelled = [encode(text, add_special_tokens=False) for text in (letter, f" {letter}")]
            self._tokens[letter] = sorted({ids[0] for ids in spelled if len(ids) == 1})
        if not self._tokens[letter]:
            raise ComponentUnavailable(
                f"{WHO}: the tokenizer of the checkpoint has no single token for the letter "
                f"{letter!r}, so options cannot be scored; use another checkpoint"
            )
        return self._tokens[letter]


def load_chat_model(params: VlmDetectorParams) -> ChatModel:
    """Return the chat model that parameters name, on the CPU; nothing is downloaded.

    Raises:
        ComponentUnavailable: with what to do, if transformers or the checkpoint is not here, or if
            the checkpoint is no chat model that looks at pictures.
    """
    try:
        transformers: Any = import_module("transformers")
        processors, models = transformers.AutoProcessor, transformers.AutoModelForImageTextToText
    except (ImportError, AttributeError) as error:
        raise ComponentUnavailable(
            f"{WHO} needs transformers with AutoModelForImageTextToText ({error}): "
            "pip install 'vcr-models[transformers]'"
        ) from error
    folder = checkpoint_folder(params.checkpoint, params.revision, WHO)
    # Code that comes with a checkpoint is not run, and weights are tensors only.
    safe = {"local_files_only": True, "trust_remote_code": False}
    try:
        processor = processors.from_pretrained(str(folder), **safe)
        network = models.from_pretrained(
            str(folder), **safe, dtype=params.dtype, use_safetensors=True
        )
    except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
        raise ComponentUnavailable(
            f"{WHO}: {folder} cannot be loaded as a chat model (AutoProcessor and "
            f"AutoModelForImageTextToText, safetensors): {error}"
        ) from error
    return ChatModel(
        processor,
        network,
        show=_way_to_show(processor, params, folder),
        max_new_tokens=params.max_new_tokens,
    )


def _way_to_show(
    processor: Any, params: VlmDetectorParams, folder: Path
) -> Literal["video", "images"]:
    takes = {
        "video": getattr(processor, "video_processor", None) is not None,
        "images": getattr(processor, "image_processor", None) is not None,
    }
    if not getattr(processor, "chat_template", None):
        raise ComponentUnavailable(
            f"{WHO}: {folder} has no chat template; use a checkpoint that was tuned for chats"
        )
    if params.show != "auto":
        if not takes[params.show]:
            raise ComponentUnavailable(
                f"{WHO}: model.show is {params.show!r}, and the processor of {folder} takes none; "
                "set model.show = 'auto'"
            )
        return params.show
    if takes["video"]:
        return "video"
    if takes["images"]:
        return "images"
    raise ComponentUnavailable(f"{WHO}: the processor of {folder} takes neither videos nor images")


def _greedy(network: Any, max_new_tokens: int) -> Any:
    """Return settings that take the likeliest word each time, with the checkpoint's end marks.

    Its other settings are not taken over: some sample, and some bend the logits.
    """
    own = network.generation_config
    marks = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
    return type(own)(
        do_sample=False,
        max_new_tokens=max_new_tokens,
        **{name: getattr(own, name, None) for name in marks},
    )
