"""Each fault of a machine, and what it costs: at most the batch in flight."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from vcr_core.manifest import read_manifest
from vcr_core.records import raw_records, read_records
from vcr_e2e.harness import assert_complete, essence, only_run

RUN = ("run", "experiment.toml", "--results", "results")
IN_PROCESS, BY_WORKERS = (), ("--workers", "2")
WAYS = pytest.mark.parametrize("way", [IN_PROCESS, BY_WORKERS], ids=["inline", "process"])


@pytest.fixture
def small_disk():
    """A file system of its own at ``results``, whose size can be changed."""
    Path("results").mkdir()
    options = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", "results"]
    if subprocess.run(options, capture_output=True, check=False).returncode:
        pytest.skip("needs to mount a file system, which this user may not")
    yield lambda how: subprocess.run(["mount", "-o", f"remount,{how}", "results"], check=True)
    subprocess.run(["umount", "results"], check=True)


def fill(folder: Path, leave: int) -> Path:
    """Leave so many bytes free."""
    ballast = folder / "ballast"
    room = os.statvfs(folder)
    ballast.write_bytes(bytes(max(room.f_bavail * room.f_frsize - leave, 0)))
    return ballast


class TestDiskFull:
    @WAYS
    def test_at_any_moment(self, vcr, start, reference, small_disk, way):
        """What was recorded stays, the message says what to do, and the same command goes on."""
        folder = Path(vcr(*RUN, "--plan").out.strip())
        for leave in (4096, 12_288, 24_576, 40_960):
            ballast = fill(Path("results"), leave)
            before = essence(folder)
            done = start(*RUN, *way).end()
            after = essence(folder)
            assert set(before) <= set(after) <= set(reference.records)
            if done.code:
                assert done.code == 1
                assert "cannot be written: No space left on device; make room" in done.err
                assert "Traceback" not in done.err
            assert not any(r["status"] == "error" for r in read_records(folder))
            ballast.unlink()
        done = start(*RUN, *way).end()
        assert done.code == 0, done.err
        assert_complete(folder)
        assert essence(folder) == reference.records

    def test_a_torn_record_is_not_read_and_not_lost(self, start, reference):
        """A limit on the size of files cuts a batch in two, wherever this may run."""
        limit = 30_000
        done = subprocess.run(
            [sys.executable, "-m", "vcr_core", *RUN, "--set", "output.keep_clips=0"],
            capture_output=True, text=True, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert "bytes fitted on the disk" in done.stderr or "File too large" in done.stderr
        folder = only_run(Path("results"))
        assert max(p.stat().st_size for p in folder.glob("records/*")) == limit
        assert 0 < len(read_records(folder)) < 24
        assert start(*RUN, "--set", "output.keep_clips=0").end().code == 0
        assert_complete(folder)
        assert essence(folder) == reference.records


class TestReadOnly:
    def test_from_the_start(self, start, small_disk):
        small_disk("ro")
        done = start(*RUN).end()
        assert done.code == 1
        assert "Read-only file system; use a folder that you may write to" in done.err
        assert "Traceback" not in done.err

    @WAYS
    def test_when_a_run_is_to_go_on(self, start, vcr, reference, small_disk, way):
        folder = Path(vcr(*RUN, "--plan").out.strip())
        assert vcr("run", folder, "--shard", "0/3").code == 0
        small_disk("ro")
        done = start(*RUN, *way).end()
        assert done.code == 1
        assert "Read-only file system; use a folder that you may write to" in done.err
        assert "Traceback" not in done.err
        assert len(raw_records(folder)) == 8
        assert vcr("status", "results").out.split("\t")[2] == "8/24"
        small_disk("rw")
        assert start(*RUN, *way).end().code == 0
        assert_complete(folder)
        assert essence(folder) == reference.records


@WAYS
def test_memory_is_not_enough(start, vcr, reference, way):
    """Once more with smaller chunks, then alone, then it is that video's error."""
    video = "north/square"
    done = start(*RUN, *way, "--max-errors", "2", VCR_E2E_TROUBLE=f"no-memory {video}").end()
    assert done.code == 0, done.err
    folder = only_run(Path("results"))
    assert_complete(folder)
    (failed,) = [r for r in read_records(folder) if r["status"] == "error"]
    assert (failed["video"], failed["error"]["oom"]) == (video, True)
    others = [r for r in essence(folder) if json.loads(r)["batch"] != failed["batch"]]
    assert others == [r for r in reference.records if json.loads(r)["batch"] != failed["batch"]]
    assert vcr("run", folder, "--retry-errors").code == 0
    assert essence(folder) == reference.records


@pytest.mark.parametrize(
    ("what", "kind", "way"),
    [
        ("raise", "RuntimeError", IN_PROCESS),
        ("hang", "VideoTimeLimit", IN_PROCESS),
        ("hang", "VideoTimeLimit", BY_WORKERS),
        ("exit", "SystemExit", BY_WORKERS),
        ("die", "WorkerDied", BY_WORKERS),
    ],
)
def test_a_decoder(start, vcr, what, kind, way):
    """It costs the one video, whose neighbours are evaluated without it."""
    command = (*RUN, "--dataset", "moody-shapes")
    video = "north/square"
    limit = ["--set", "runtime.video_time_limit_s=1.5"] if what == "hang" else []
    process = start(*command, *way, "--max-errors", "2", *limit, VCR_E2E_DECODER=f"{what} {video}")
    done = process.end()
    assert done.code == 0, done.err
    folder = only_run(Path("results"))
    assert_complete(folder)
    (failed,) = [r for r in read_records(folder) if r["status"] == "error"]
    assert (failed["video"], failed["error"]["type"]) == (video, kind)
    assert failed["error"]["stage"] == ("worker" if what == "die" else "decode")
    assert vcr("run", folder, "--retry-errors").code == 0
    assert {r["status"] for r in read_records(folder)} == {"ok"}


@WAYS
def test_the_clock_jumps_by_a_day(start, reference, way):
    """Forwards in one worker and perhaps backwards in another; nobody takes them for stuck."""
    videos = [json.loads(record)["video"] for record in reference.records]
    done = start(
        *RUN, *way, "--set", "runtime.video_time_limit_s=0.5",
        VCR_E2E_TROUBLE=f"clock {' '.join(videos)}", VCR_E2E_DELAY="0.1",
    ).end()  # fmt: skip
    assert done.code == 0, done.err
    assert "stuck" not in done.err
    folder = only_run(Path("results"))
    assert_complete(folder)
    assert len(raw_records(folder)) == 24
    assert read_manifest(folder)["status"] == "done"
    assert essence(folder) == reference.records
