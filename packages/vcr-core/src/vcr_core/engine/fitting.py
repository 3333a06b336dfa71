"""``chunk_clips = "auto"`` and ``batch_videos = "auto"``: sizes that fit into memory.

The memory of a forward and a backward pass is measured for growing numbers of clips and taken for
a line. Half of the memory that is free pays for what that line says; defenses, surrogates and what
an attack keeps of a video share the rest. Sizes are powers of two, so that a little noise seldom
changes them, and the first measurement is kept in the cache: a size can change the last bits, and
runs that could share an attack must cut their videos in the same way.
"""

from __future__ import annotations

import hashlib
import json
import logging
import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from vcr_core.atomic import to_json, write_json
from vcr_core.config.command_text import LOCAL
from vcr_core.config.identity import identity_of
from vcr_core.engine.decode import plan_for, reduced
from vcr_core.engine.memory import is_out_of_memory
from vcr_core.engine.memory_meter import meter_of
from vcr_core.engine.models import passes_of
from vcr_core.errors import UsageError
from vcr_core.folders import cache_folder
from vcr_core.metering import GuardedModel
from vcr_core.seeding import isolated_random_state
from vcr_core.video.info import VideoReadError

if TYPE_CHECKING:
    from vcr_core.config.experiment import Experiment
    from vcr_core.engine.memory_meter import MemoryMeter
    from vcr_core.protocols import VideoDataset
    from vcr_core.video.info import Clip

logger = logging.getLogger(__name__)

FOLDER = "fitting"
FRACTION = 0.5
"""Share of the free memory that the model's passes may take."""
PROBED = 4
"""Clips of the largest pass that is measured."""
MOST_CLIPS = 256
MOST_VIDEOS = 32
"""More would gain little, and a batch is what an interruption loses."""
COPIES = 8
"""Tensors of a video's size that an attack holds besides the model's: clean, adversarial, gradient,
momentum, best, stored and their temporaries."""
TRIED_VIDEOS = 3
_FLOAT = 4


@dataclass(frozen=True, slots=True)
class Fit:
    """Memory of a pass as a line over its clips, in bytes.

    Attributes:
        base: what a pass takes besides.
        per_clip: what every clip adds.
        budget: what passes may take.
        most: clips of the largest pass that is allowed, whatever the line says.
    """

    base: float
    per_clip: float
    budget: float
    most: int = MOST_CLIPS

    def clips(self) -> int:
        """Return the largest power of two of clips that fits, at least 1."""
        return min(self.most, _power_of_two((self.budget - self.base) / self.per_clip))

    def videos(self, clips: int, frame_bytes: int) -> int:
        """Return the largest power of two of videos that fits, at least 1.

        Args:
            clips: clips of a video.
            frame_bytes: bytes of a video's distinct frames as float32.
        """
        each = clips * self.per_clip + COPIES * frame_bytes
        fits = _power_of_two((self.budget - self.base) / each)
        return max(1, min(fits, MOST_VIDEOS, self.most // clips))


def fitted_chunk(experiment: Experiment, model: GuardedModel, device: torch.device) -> int | None:
    """Return ``runtime.chunk_clips`` as a number of clips, ``None`` for all at once.

    Args:
        experiment: what asks for it.
        model: its model, on the device.
        device: where the model is.

    Raises:
        ComponentUnavailable: if it is ``auto`` and memory cannot be measured here.
        UsageError: if it is ``auto`` and the model cannot take its own clips.
    """
    asked = experiment.runtime.chunk_clips
    if asked != "auto":
        return asked
    chunk = fit_of(experiment, model, meter_of(device), device).clips()
    logger.info("runtime.chunk_clips = 'auto' is %d", chunk)
    return chunk


def fitted_batch(
    experiment: Experiment,
    model: GuardedModel,
    dataset: VideoDataset,
    videos: Sequence[str],
    device: torch.device,
) -> int:
    """Return a number of videos for ``runtime.batch_videos = "auto"``.

    It is such that every worker gets a batch, if there are videos enough.

    Args:
        experiment: what is planned.
        model: its model, on the device.
        dataset: its videos.
        videos: those that were selected, in their order.
        device: where the model is.

    Raises:
        ComponentUnavailable: if memory cannot be measured here.
        UsageError: if the model cannot take its own clips.
    """
    fit = fit_of(experiment, model, meter_of(device), device)
    clips, frame_bytes = _size(experiment, model, dataset, videos)
    gpus = torch.cuda.device_count() if device.type == "cuda" else 0
    share = _power_of_two(math.ceil(len(videos) / _workers(experiment, gpus)))
    found = min(fit.videos(clips, frame_bytes), share)
    logger.info("runtime.batch_videos = 'auto' is %d", found)
    return found


def fit_of(
    experiment: Experiment, model: GuardedModel, meter: MemoryMeter, device: torch.device
) -> Fit:
    """Return what was measured for a model on such a device, measuring it the first time.

    Models from Python are measured every time: their class does not say what they are.
    """
    clip = (model.clip.frames, 3, model.clip.size, model.clip.size)
    measured = partial(_measured, experiment, model, meter, device, clip)
    if experiment.model.distribution == LOCAL:
        return measured()
    key = {
        "schema": 1,
        "model": identity_of(experiment)["model"],
        "views": experiment.protocol.views,
        "passes": passes_of(experiment),
        "clip": list(clip),
        "device": meter.name,
        "total": meter.total(),
        # Workers on CPUs share one memory; there is one of them on a GPU.
        "workers": 1 if device.type == "cuda" else _workers(experiment),
        "torch": torch.__version__,
    }
    return _remembered(experiment, key, measured)


def line(run: Callable[[int], None], meter: MemoryMeter, budget: float, clip_bytes: int) -> Fit:
    """Return the memory of a pass as a line.

    Passes are doubled until they take half of the budget. One that runs out of memory is a result,
    too: none as large is allowed.

    Args:
        run: does a pass with so many clips.
        meter: measures it.
        budget: bytes that passes may take.
        clip_bytes: bytes of a clip; each costs more than twice that, as it has a gradient.
    """
    peaks: dict[int, int] = {}
    most, count = MOST_CLIPS, 1
    try:
        run(1)  # the first pass of all also fills caches that stay
        while count <= PROBED:
            peaks[count] = meter.peak(partial(run, count))
            if 2 * peaks[count] > budget:
                break
            count *= 2
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        most = max(1, count // 2)
    first, largest = peaks.get(1, budget), max(peaks, default=1)
    # Rounding and noise of small models must not promise passes without end.
    floor = 2.0 * clip_bytes
    slope = (peaks[largest] - first) / (largest - 1) if largest > 1 else first
    per_clip = max(slope, floor)
    return Fit(base=max(0.0, first - per_clip), per_clip=per_clip, budget=budget, most=most)


def _measured(
    experiment: Experiment,
    model: GuardedModel,
    meter: MemoryMeter,
    device: torch.device,
    clip: tuple[int, ...],
) -> Fit:
    backward = bool(getattr(experiment.model.spec, "differentiable", True))
    timed = model.at_rate(None)

    def run(count: int) -> None:
        clips = torch.full((count, *clip), 0.5, device=device, requires_grad=backward)
        with torch.set_grad_enabled(backward):
            out = timed.logits(clips)
        if backward:
            out.sum().backward()  # type: ignore[no-untyped-call]

    shared = 1 if device.type == "cuda" else _workers(experiment)
    budget = FRACTION * meter.free() / shared
    size = _FLOAT * torch.Size(clip).numel()
    try:
        with isolated_random_state(0):
            fit = line(run, meter, budget, size)
    except RuntimeError as error:
        raise UsageError(
            f"model {experiment.model.ref!r} failed while its memory was measured ({error}); give "
            "numbers for runtime.chunk_clips and runtime.batch_videos instead of 'auto'"
        ) from error
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return fit


def _size(
    experiment: Experiment, model: GuardedModel, dataset: VideoDataset, videos: Sequence[str]
) -> tuple[int, int]:
    """Return clips and bytes of the first planned video that can be read, else the model's own."""
    spec, protocol = model.clip, experiment.protocol
    for video in videos[:TRIED_VIDEOS]:
        with suppress(VideoReadError):
            clip: Clip = dataset.item(video).source.read(
                lambda count: plan_for(spec, protocol, count)
            )
            values = reduced(clip.frames, spec.reduce_to).size
            return len(clip.plan.table), _FLOAT * values
    clips = spec.clips if protocol.views == "full" else spec.light_clips
    return clips, _FLOAT * clips * spec.frames * 3 * spec.size**2


def _workers(experiment: Experiment, gpus: int = 0) -> int:
    """Return how many workers share this machine, as far as the run says."""
    if experiment.executor.name == "inline":
        return 1
    return experiment.executor.workers or gpus or os.cpu_count() or 1


def _power_of_two(number: float) -> int:
    return 1 << max(0, int(number).bit_length() - 1) if number >= 1 else 1


def _remembered(experiment: Experiment, key: dict[str, Any], measured: Callable[[], Fit]) -> Fit:
    cache = experiment.paths.cache
    name = hashlib.blake2b(to_json(key).encode(), digest_size=16).hexdigest()
    path = (Path(cache) if cache else cache_folder()) / FOLDER / f"{name}.json"
    found = _read(path, key)
    if found is not None:
        return found
    fit = measured()
    try:
        _keep(path, {"key": key, "fit": asdict(fit)})
    except OSError as error:
        logger.warning("%s cannot be written (%s); memory is measured again next time", path, error)
        return fit
    # Where workers measured at the same time, all of them take what the first one wrote.
    return _read(path, key) or fit


def _read(path: Path, key: dict[str, Any]) -> Fit | None:
    """Return what is kept under a key; a damaged entry is none, and makes room."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return None
    with suppress(ValueError, KeyError, TypeError):
        entry = json.loads(text)
        if entry["key"] == key:
            return Fit(**entry["fit"])
    path.unlink(missing_ok=True)
    return None


def _keep(path: Path, entry: dict[str, Any]) -> None:
    """Write an entry whole, unless there is one by now."""
    fresh = path.with_name(f"{path.stem}.{os.getpid()}.json")
    write_json(fresh, entry)
    try:
        os.link(fresh, path)
    except FileExistsError:
        pass
    except OSError:  # a file system without links: the last one wins
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
