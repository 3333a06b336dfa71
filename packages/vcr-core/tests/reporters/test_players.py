from __future__ import annotations

import base64
import builtins
import io
from typing import Any

import pytest
from vcr_core.reporters.clips import KeptClip, kept_clips, load_clip
from vcr_core.reporters.gallery import make_gallery
from vcr_core.reporters.players import MAX_FRAMES, make_player
from vcr_core.reporters.strips import GAP

np = pytest.importorskip("numpy")
pytest.importorskip("PIL.Image")


def loaded(run: Any) -> KeptClip:
    clip = load_clip(run, kept_clips(run)[0])
    assert clip is not None
    return clip


def decoded(uri: str) -> Any:
    av = pytest.importorskip("av")
    data = base64.b64decode(uri.removeprefix("data:video/webm;base64,"))
    with av.open(io.BytesIO(data)) as container:
        rate = container.streams.video[0].average_rate
        return rate, np.stack([f.to_ndarray(format="rgb24") for f in container.decode(video=0)])


def test_versions_play_side_by_side(make_run: Any, keep_clips: Any) -> None:
    pytest.importorskip("av")
    run = make_run()
    keep_clips(run, ["v0"], defended=True)
    player = make_player(loaded(run))
    assert player is not None
    assert [caption.title for caption in player.captions] == [
        "clean", "adversarial", "defended", "difference \u00d715.9",
    ]  # fmt: skip
    _, frames = decoded(player.uri)
    # 8x12 pixels, enlarged twelve times.
    assert frames.shape == (10, 96, 4 * 144 + 3 * GAP, 3)
    assert (player.height, player.width) == frames.shape[1:3]
    panels = [frames[:, :, i * (144 + GAP) :][:, :, 20:140] for i in range(4)]
    means = [float(panel.mean()) for panel in panels]
    assert means[:3] == pytest.approx([100, 100, 100], abs=3)
    assert means[3] == pytest.approx(128, abs=3)
    assert player.note == ("10 frames, 8 a second; 12\u00d78 pixels, each shown as 12\u00d712")


@pytest.mark.parametrize(
    ("source", "rate"),
    [
        ({"fps": "30000/1001", "indices": [0, 2, 4, 6]}, 15),
        ({"fps": 2, "indices": [0, 1]}, 4),
        ({"fps": 240, "indices": [3, 4, 4]}, 30),
        ({"fps": None, "indices": [0, 1]}, 8),
        ({"fps": "25", "indices": []}, 8),
        (None, 8),
    ],
)
def test_clip_plays_as_fast_as_it_was_sampled(
    make_run: Any, records: Any, keep_clips: Any, source: Any, rate: float
) -> None:
    pytest.importorskip("av")
    record = records.video("v0", right=True, held=False)
    run = make_run(records=[{**record, "input": source}])
    keep_clips(run, ["v0"])
    player = make_player(loaded(run))
    assert player is not None
    assert float(decoded(player.uri)[0]) == pytest.approx(rate, abs=0.1)


def test_long_clips_are_cut_and_say_so(make_run: Any, keep_clips: Any) -> None:
    pytest.importorskip("av")
    run = make_run()
    keep_clips(run, ["v0"])
    long = np.zeros((MAX_FRAMES + 6, 8, 12, 3), np.uint8)
    smaller = np.zeros((MAX_FRAMES + 6, 6, 10, 3), np.uint8)
    np.savez(run.folder / "artifacts" / "c0.npz", clean=long, adversarial=long, defended=smaller)
    player = make_player(loaded(run))
    assert player is not None
    assert player.note.startswith(f"the first {MAX_FRAMES} of {MAX_FRAMES + 6} frames")
    assert len(decoded(player.uri)[1]) == MAX_FRAMES


def test_without_pyav_there_are_strips_only(
    make_run: Any, keep_clips: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run()
    keep_clips(run, ["v0"])
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "vcr_core.video.preview":
            raise ImportError("No module named 'av'", name="av")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    (exhibit,) = make_gallery([run]).exhibits
    assert exhibit.player is None
    assert len(exhibit.strip.rows) == 3


def test_how_many_clips_are_shown_can_be_chosen(make_run: Any, keep_clips: Any) -> None:
    run = make_run()
    keep_clips(run, ["v0", "v1", "v2"])
    assert [one.video for one in make_gallery([run], limit=2).exhibits] == ["v0", "v1"]
    assert make_gallery([run], limit=0).exhibits == ()
    assert make_gallery([run], limit=0).kept == 3


def test_command_takes_the_number_of_clips(make_run: Any, keep_clips: Any, tmp_path: Any) -> None:
    from click.testing import CliRunner
    from vcr_core.cli.report import command

    pytest.importorskip("jinja2")
    run = make_run()
    keep_clips(run, ["v0", "v1"])
    for clips, expected in (("1", 1), ("0", 0)):
        page = tmp_path / f"{clips}.html"
        arguments = [str(run.folder), "--output", str(page), "--clips", clips]
        result = CliRunner().invoke(command, arguments, catch_exceptions=False)
        assert result.exit_code == 0
        assert page.read_text(encoding="utf-8").count('<figure class="strip"') == expected


def test_only_pages_take_clips(make_run: Any) -> None:
    from click.testing import CliRunner
    from vcr_core.cli.report import command
    from vcr_core.errors import UsageError

    arguments = [str(make_run().folder), "--format", "md", "--clips", "3"]
    result = CliRunner().invoke(command, arguments)
    assert isinstance(result.exception, UsageError)
    assert "shows no clips" in str(result.exception)
