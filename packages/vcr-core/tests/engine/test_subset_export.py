"""A run's videos become a manifest, and a manifest becomes another run's subset."""

from __future__ import annotations

from pathlib import Path

import pytest
from vcr_core.cli import main
from vcr_core.datasets.manifest import read_manifest
from vcr_core.testing.toys.installed import installed
from vcr_core.testing.toys.labels import DIRECTIONS


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    root = tmp_path / "videos"
    for direction in DIRECTIONS:
        for number in range(2):
            path = root / direction / f"{number} - ä.mp4"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(f"{direction}{number}".encode())
    return root


def test_out_and_in(videos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    subset, results = tmp_path / "subset.csv", str(tmp_path / "results")
    with installed():
        base = ["run", "--model", "toy-cnn", "--dataset", "folder", "--plan", "--results", results]
        root = ["--set", f"dataset.root={videos}"]
        assert main([*base, *root, "--limit", "5"]) == 0
        run = capsys.readouterr().out.strip()
        assert main(["export", run, "--format", "manifest", "--output", str(subset)]) == 0
        manifest = read_manifest(subset)
        assert len(manifest.rows) == 5
        assert manifest.facts == {"dataset": "folder", "rule": "hash", "seed": "42"}
        assert all((videos / row.path).is_file() and row.sha256 for row in manifest.rows)
        capsys.readouterr()
        assert main([*base, *root, "--set", f"dataset.subset={subset}"]) == 0
        other = capsys.readouterr().out.strip()
    from vcr_core.manifest import planned_videos
    from vcr_core.manifest import read_manifest as read_run

    assert set(planned_videos(read_run(other))) == {row.id for row in manifest.rows}
    assert Path(other) != Path(run)


def test_generated_videos_have_no_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with installed():
        results = str(tmp_path / "results")
        assert main(["run", "--model", "toy-cnn", "--dataset", "toy-shapes", "--limit", "2",
                     "--plan", "--results", results]) == 0  # fmt: skip
        run = capsys.readouterr().out.strip()
        assert main(["export", run, "--format", "manifest", "--output", "x.csv"]) == 2
        assert "no file that a manifest could list" in capsys.readouterr().err
        assert main(["export", run, "--format", "manifest"]) == 2
