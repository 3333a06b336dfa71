"""What is read back from an exported file gives the recorded prediction."""

from __future__ import annotations

import hashlib
import json
import shutil

import numpy as np
import pytest
import torch
import vcr_core as vcr
from vcr_core.errors import StoreError, UsageError
from vcr_core.export_videos.index import INDEX_FILE
from vcr_core.prediction import aggregate
from vcr_core.protocols import VideoItem
from vcr_core.testing.toys.cnn import ToyCnn
from vcr_core.testing.toys.shapes import ShapesDataset
from vcr_core.video.sampling import whole_video

CASES = {
    "white-box": {},
    "all views": {"protocol": {"views": "full"}},
    "untied": {"protocol": {"views": "full", "tie_frames": False}},
    "no access": {"attack": "toy-grain"},
    "shorter": {"attack": "toy-drop-one"},
    "other sampling": {"attack": "toy-one-later"},
    "defended": {"defense": "toy-darken"},
    "random": {"defense": "toy-noise", "protocol": {"eval_repeats": 3}},
    "chain": {"defense": ["toy-noise", "toy-vote"]},
    "shorter, defended": {"attack": "toy-drop-one", "defense": "toy-quantise"},
    "targeted": {"targeted": True},
}

HOSTILE = (
    "a/b", "a?b", "../../up", "/etc/passwd", "tab\tin\nside", "\u202etfel", "con", "COM1.mkv",
    "x" * 300, "-rf", "videos.json", ".", "e\u0301", "\u00e9", "100%d",
)  # fmt: skip
"""Names that are no file names, that look alike, or that are longer than a file system takes."""


class Renamed(ShapesDataset):
    """The shapes under other ids."""

    def ids(self) -> list[str]:
        return list(HOSTILE)

    def item(self, video_id: str) -> VideoItem:
        known = super().item(super().ids()[HOSTILE.index(video_id)])
        return VideoItem(video_id, known.label, known.source)


def sidecar(path):
    return json.loads(path.with_name(path.name + ".json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", CASES)
def test_files_reproduce_the_recorded_predictions(name, evaluate, frames_of, tmp_path):
    result = evaluate(**CASES[name])
    folders = result.export_videos(tmp_path / "out", previews=())
    answers = result.check_videos(tmp_path / "out")
    # A vote over mirror images makes two directions equally probable.
    assert {answer.verdict for answer in answers} <= {"same", "tie" if name == "chain" else "same"}
    draws = len(result.records[0].get("attacked_defended") or ())
    assert len(answers) == 2 * 2 * (1 + draws)
    # The same by hand, with nothing but the file, its sidecar and the model.
    model = ToyCnn()
    for folder, record in zip(folders, result.records, strict=True):
        for version, corner in (("clean", "clean"), ("adversarial", "attacked")):
            path = folder / f"{version}.mkv"
            clips = torch.from_numpy(frames_of(path)[sidecar(path)["gather"]]).float() / 255
            with torch.no_grad():
                logits = model.logits(clips.permute(0, 1, 4, 2, 3))
            scores = aggregate(logits.flatten(0, 1).unsqueeze(0))[0].exp()
            assert int(scores.argmax()) == record[corner]["pred"]
            assert float(scores.max()) == pytest.approx(record[corner]["p_pred"], abs=1e-5)


def test_frames_are_those_of_the_source_and_inside_the_ball(evaluate, frames_of, tmp_path):
    result = evaluate(limit=3)
    dataset = ShapesDataset()
    for folder, record in zip(
        result.export_videos(tmp_path, previews=()), result.records, strict=True
    ):
        clean, adversarial = (frames_of(folder / f"{v}.mkv") for v in ("clean", "adversarial"))
        told = sidecar(folder / "clean.mkv")
        source = dataset.item(record["video"]).source
        np.testing.assert_array_equal(clean, source.read(whole_video).frames[told["indices"]])
        assert told["indices"] == record["input"]["indices"]
        largest = np.abs(adversarial.astype(int) - clean).max()
        assert 0 < largest <= 8
        assert largest == round(record["perturbation"]["linf"] * 255)


def test_sidecar_names_everything(evaluate, frames_of, tmp_path):
    result = evaluate(limit=1, defense="toy-darken", targeted=True)
    [folder] = result.export_videos(tmp_path, previews=())
    [record] = result.records
    told = sidecar(folder / "adversarial.mkv")
    frames = frames_of(folder / "adversarial.mkv")
    assert told["sha256"] == hashlib.sha256(frames.tobytes()).hexdigest()
    assert told["shape"] == list(frames.shape)
    assert (told["version"], told["domain"], told["exact"]) == (
        "adversarial",
        "sampled-frames",
        True,
    )
    assert (told["video"], told["run"]) == (record["video"], result.view.name)
    assert (told["model"], told["attack"], told["defenses"]) == (
        "toy-cnn", "toy-descent", ["toy-darken"],
    )  # fmt: skip
    assert told["threat"]["eps"] == "8/255"
    assert told["seeds"] == record["seeds"]
    assert told["label_name"] == result.view.manifest["dataset"]["labels"][record["label"]]
    assert told["target"] == record["target"]
    assert told["record"]["attacked"] == record["attacked"]
    assert told["record"]["attacked_defended"] == record["attacked_defended"]
    assert told["plan"]["table"] == [told["indices"]]
    assert told["source"]["sha256"] == record["input"]["sha256"]
    assert told["experiment_hash"] == result.view.manifest["experiment_hash"]
    index = json.loads((folder.parent / INDEX_FILE).read_text())
    [entry] = index["videos"]
    assert entry["files"]["adversarial"] == {"file": "adversarial.mkv", "sha256": told["sha256"]}


def test_defended_file_holds_what_reaches_the_model(evaluate, frames_of, tmp_path):
    result = evaluate(limit=1, defense="toy-darken", protocol={"views": "full"})
    [folder] = result.export_videos(tmp_path, previews=())
    told = sidecar(folder / "defended.mkv")
    assert (told["domain"], told["exact"], told["clips"]) == ("clips-behind-defense", False, [2, 4])
    gather = np.ravel(sidecar(folder / "adversarial.mkv")["gather"])
    adversarial = frames_of(folder / "adversarial.mkv")[gather]
    expected = np.rint(adversarial / 255 * np.float32(0.9) * 255)
    found = frames_of(folder / "defended.mkv")
    assert np.abs(found - expected).max() <= 1
    assert (found == expected).mean() > 0.99


def test_of_several_versions_the_first_is_shown_and_counted(evaluate, frames_of, tmp_path):
    result = evaluate(limit=1, defense="toy-vote")
    [folder] = result.export_videos(tmp_path, previews=())
    assert sidecar(folder / "defended.mkv")["other_versions"] == 1
    np.testing.assert_array_equal(
        frames_of(folder / "defended.mkv"), frames_of(folder / "adversarial.mkv")
    )


def test_what_8_bits_do_not_hold_is_marked(evaluate, tmp_path):
    result = evaluate(limit=1, threat=vcr.Linf("8/255", quantize=False))
    [folder] = result.export_videos(tmp_path, previews=())
    assert not sidecar(folder / "adversarial.mkv")["exact"]
    [path] = (result.folder / "artifacts").glob("*.npz")
    with np.load(path) as arrays:
        clean = arrays["clean"]
    np.savez(path, clean=clean, adversarial=clean)
    with pytest.raises(StoreError, match=r"8 bits do not hold .*adversarial, bare: class"):
        result.export_videos(tmp_path, previews=())


def test_hostile_ids_become_safe_names(evaluate, tmp_path):
    result = evaluate(dataset=Renamed(), limit=None, protocol={})
    out = tmp_path / "out"
    folders = result.export_videos(out, previews=(), recreate=True)
    assert len({str(folder).casefold() for folder in folders}) == len(HOSTILE)
    home = out / folders[0].parent.name
    index = json.loads((home / INDEX_FILE).read_text(encoding="ascii"))
    places = {entry["video"]: entry["folder"] for entry in index["videos"]}
    assert set(places) == set(HOSTILE)
    for video, name in places.items():
        assert (home / name).parent == home
        assert len(name) < 100
        assert name.isascii()
        assert sidecar(home / name / "clean.mkv")["video"] == video
    assert {p.parent for p in out.rglob("*.mkv")} == {home / name for name in places.values()}
    assert all(answer.is_good for answer in result.check_videos(out))


@pytest.mark.parametrize(
    "name", ["кино 電影", "50%d", "a:b", "file:x", "it's, [so] #1", "-o", "pipe|", "https:"]
)
def test_any_folder_will_do(name, evaluate, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = evaluate(limit=1)
    [folder] = result.export_videos(name, previews=["mp4", "gif"])
    assert (tmp_path / name).is_dir()
    assert (folder / "side-by-side_preview.mp4").stat().st_size
    assert all(answer.is_good for answer in result.check_videos(name))


def test_one_level_is_kept_and_previews_are_never_asked(evaluate, tmp_path, frames_of):
    result = evaluate(limit=1, threat=vcr.Linf("1/255"))
    [folder] = result.export_videos(tmp_path)
    adversarial = frames_of(folder / "adversarial.mkv")
    delta = adversarial.astype(int) - frames_of(folder / "clean.mkv")
    assert set(np.unique(delta)) <= {-1, 0, 1}
    assert (delta != 0).mean() > 0.5
    for path in folder.glob("*_preview.*"):
        path.unlink()
    assert all(answer.is_good for answer in result.check_videos(tmp_path))


def test_objects_from_python_need_python(evaluate, tmp_path):
    from vcr_core.export_videos.writing import write_videos

    result = evaluate(model=ToyCnn())
    with pytest.raises(UsageError, match="made in Python"):
        list(write_videos(result.view, tmp_path))
    assert len(result.export_videos(tmp_path, previews=())) == 2


def test_a_run_that_attacks_nothing_has_no_videos(evaluate, tmp_path):
    with pytest.raises(UsageError, match="attacks nothing"):
        evaluate(attack=None, threat=None).export_videos(tmp_path)


def test_attacking_again_gives_the_same_files(evaluate, frames_of, tmp_path):
    result = evaluate(limit=9, runtime={"batch_videos": 3})
    kept = result.export_videos(tmp_path / "kept", previews=())
    assert len(kept) == 4
    chosen = [record["video"] for record in result.records[1:6]]
    with pytest.raises(StoreError, match=r"--recreate.*keep_clips"):
        result.export_videos(tmp_path / "again", only=chosen, previews=())
    shutil.rmtree(result.folder / "artifacts")
    with pytest.raises(StoreError, match="--recreate"):
        result.export_videos(tmp_path / "again", previews=())
    again = result.export_videos(tmp_path / "again", only=chosen, recreate=True, previews=())
    assert len(again) == 5
    assert sidecar(again[0] / "clean.mkv")["frames_from"] == "made again"
    for one, other in zip(kept[1:], again, strict=False):
        assert one.name == other.name
        for name in ("clean.mkv", "adversarial.mkv"):
            np.testing.assert_array_equal(frames_of(one / name), frames_of(other / name))
    assert not (result.folder / "artifacts").exists()


def test_all_are_attacked_again_up_to_a_limit(evaluate, tmp_path):
    result = evaluate(limit=6)
    assert len(result.export_videos(tmp_path, recreate=True, limit=5, previews=())) == 5
    assert len(result.check_videos(tmp_path)) == 10
