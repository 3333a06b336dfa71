"""VMAF of raw frames by FFmpeg's libvmaf, in a process of its own."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vcr_core.errors import ComponentUnavailable

from vcr_metrics.levels import to_levels

if TYPE_CHECKING:
    from fractions import Fraction

    from torch import Tensor

_PROBE_TIMEOUT_S = 60
_QUIET = ("-hide_banner", "-nostdin", "-v", "error")


class VmafFailed(Exception):
    """FFmpeg gave no score; the message says why."""


class Ffmpeg:
    """An FFmpeg that has libvmaf.

    Args:
        path: the program; ``""`` for that of imageio-ffmpeg, never one that happens to be on PATH:
            those of distributions mostly lack libvmaf.

    Attributes:
        version: what it calls itself.

    Raises:
        ComponentUnavailable: if there is no such program, or it has no libvmaf.
    """

    def __init__(self, path: str = "") -> None:
        self.path = path or _packaged()
        if " libvmaf " not in self._ask("-filters"):
            raise ComponentUnavailable(
                f"metric 'vmaf': {self.path} has no filter libvmaf; leave the parameter ffmpeg out "
                "to use the program of imageio-ffmpeg"
            )
        words = self._ask("-version").split()
        self.version = words[2] if words[:2] == ["ffmpeg", "version"] else "of unknown version"

    def scores(
        self, reference: Tensor, test: Tensor, *, model: str, fps: Fraction | None, timeout_s: float
    ) -> list[float]:
        """Return the VMAF of each frame of one clip, in order.

        Both are handed over as raw 8-bit RGB, which FFmpeg converts to YUV 4:2:0; there is no lossy
        file between, and the clip is scored as one sequence.

        Args:
            reference: ``[T, 3, H, W]``, float in [0, 1] or uint8.
            test: the same shape.
            model: version that libvmaf knows, as ``vmaf_v0.6.1``.
            fps: frames per second; 25 where not known.
            timeout_s: seconds until it is stopped.

        Raises:
            VmafFailed: if the program fails, crashes, takes too long or leaves a frame out.
        """
        height, width = reference.shape[-2:]
        raw = ("-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}")
        rate = ("-r", str(fps or 25))
        graph = (
            "[0:v]format=yuv420p[d];[1:v]format=yuv420p[r];[d][r]"
            f"libvmaf=model=version={model}:log_fmt=json:log_path=scores.json:n_threads=1"
        )
        with tempfile.TemporaryDirectory(prefix="vcr-vmaf-") as folder:
            # Plain names in the working folder: a path would have to be escaped for the filter.
            for name, video in (("test.rgb", test), ("reference.rgb", reference)):
                _write_raw(Path(folder) / name, video)
            command = [
                self.path, *_QUIET, *raw, *rate, "-i", "test.rgb", *raw, *rate,
                "-i", "reference.rgb", "-lavfi", graph, "-f", "null", "-",
            ]  # fmt: skip
            _finish(command, folder, timeout_s)
            return _read_scores(Path(folder) / "scores.json", len(reference))

    def _ask(self, option: str) -> str:
        try:
            done = subprocess.run(
                [self.path, "-hide_banner", option],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_PROBE_TIMEOUT_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ComponentUnavailable(
                f"metric 'vmaf': {self.path} cannot be run: {error}"
            ) from error
        return done.stdout


def _packaged() -> str:
    import imageio_ffmpeg

    try:
        return str(imageio_ffmpeg.get_ffmpeg_exe())
    except RuntimeError as error:
        raise ComponentUnavailable(
            f"metric 'vmaf': imageio-ffmpeg brings no program for this machine ({error}); name an "
            "ffmpeg that has libvmaf with the parameter ffmpeg"
        ) from error


def _write_raw(file: Path, video: Tensor) -> None:
    with file.open("wb") as out:
        for frame in video:
            levels = to_levels(frame).byte().permute(1, 2, 0).contiguous()
            out.write(levels.cpu().numpy().tobytes())


def _finish(command: list[str], folder: str, timeout_s: float) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
            # A terminal sends Ctrl-C to its whole group; the first one lets the batch be finished.
            start_new_session=True,
        )
    except subprocess.TimeoutExpired as error:
        raise VmafFailed(f"ffmpeg had not finished after {timeout_s:g} s") from error
    except OSError as error:
        raise VmafFailed(f"ffmpeg cannot be run: {error}") from error
    if done.returncode < 0:
        number = -done.returncode
        known = {int(known): known.name for known in signal.Signals}
        raise VmafFailed(f"ffmpeg was ended by {known.get(number, f'signal {number}')}")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise VmafFailed(f"ffmpeg ended with code {done.returncode}: {last}")


def _read_scores(file: Path, frames: int) -> list[float]:
    try:
        log: Any = json.loads(file.read_text(encoding="utf-8"))
        found = [float(frame["metrics"]["vmaf"]) for frame in log["frames"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VmafFailed(f"ffmpeg left no scores ({type(error).__name__}: {error})") from error
    if len(found) != frames:
        raise VmafFailed(f"ffmpeg scored {len(found)} of {frames} frames")
    return found
