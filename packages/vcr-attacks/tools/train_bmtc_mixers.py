"""Train the mixers that ``tests/test_prepared_bmtc.py`` judges on videos that they have not seen.

Trained on the first 96 test videos of ``motion``, 60 epochs each, without the reward for aligned
gradients. Run: ``python packages/vcr-attacks/tools/train_bmtc_mixers.py``. About 40 CPU seconds.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import torch
import vcr_core as vcr
from safetensors.torch import load, save_file
from vcr_attacks.bmtc import Bmtc
from vcr_attacks.params.prepared import BmtcParams
from vcr_core.metering import frozen
from vcr_core.preparing import load_items
from vcr_core.protocols import PrepareContext
from vcr_core.threat import Linf

MODELS = ("tiny-r3d", "tiny-tsm", "tiny-vit")
VIDEOS, EPOCHS = 96, 60
TARGET = Path(__file__).parents[1] / "tests" / "data" / "bmtc_mixers.safetensors"


def main() -> None:
    """Train, and write all policies and the backgrounds into one file."""
    torch.set_num_threads(1)
    tensors: dict[str, torch.Tensor] = {}
    for name in MODELS:
        model = frozen(vcr.load("model", name))
        dataset = vcr.load("dataset", "motion", split="test")
        items = [dataset.item(video) for video in list(dataset.ids())[:VIDEOS]]
        (everything,) = load_items(model.clip, "cpu")(items)
        place = {video: i for i, video in enumerate(everything.ids)}

        def kept(chosen: list, everything=everything, place=place) -> list:
            rows = [place[item.id] for item in chosen]
            ids = tuple(item.id for item in chosen)
            videos, labels = everything.videos[rows], everything.labels[rows]
            return [replace(everything, ids=ids, videos=videos, labels=labels)]

        with tempfile.TemporaryDirectory() as folder:
            context = PrepareContext(Path(folder), items, 3, model, Linf("8/255"),
                                     surrogates=lambda _name, m=model: m)  # fmt: skip
            context.loader = kept
            Bmtc(BmtcParams(mixer_epochs=EPOCHS, surrogate=name, reward_consistency=0)).prepare(
                context
            )
            policy = load((Path(folder) / "mixer.safetensors").read_bytes())
            backgrounds = load((Path(folder) / "backgrounds.safetensors").read_bytes())
        tensors |= {f"{name}.{key}": value for key, value in policy.items()}
        tensors["backgrounds"] = backgrounds["backgrounds"]
    save_file(tensors, TARGET)


if __name__ == "__main__":
    main()
