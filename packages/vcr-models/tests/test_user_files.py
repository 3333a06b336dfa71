"""Models that users bring as files: the same results as the model that was exported."""

from __future__ import annotations

import textwrap

import pytest
import torch
import vcr_core as vcr
from torch import nn
from vcr_core.errors import ComponentUnavailable, ConfigError
from vcr_core.threat import Linf
from vcr_models.files.network_file import read_labels
from vcr_models.tiny.build import TinyClassifier

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

SETTINGS = {"labels": "motion", "frames": 16, "policy": "center", "size": 64, "layout": "NTCHW"}


class Plain(nn.Module):
    """A bundled classifier as a module of one view."""

    def __init__(self):
        super().__init__()
        self.classifier = TinyClassifier.load("tiny-r3d")
        self.network = self.classifier.network

    def forward(self, clips):
        return self.classifier.logits(clips)[:, 0]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    module = Plain().eval()
    clips = torch.rand(2, 16, 3, 64, 64)
    torch.jit.trace(module, clips, check_trace=False).save(str(path / "script.pt"))
    free = {0: torch.export.Dim("batch", min=1, max=64)}
    torch.export.save(
        torch.export.export(module, (clips,), dynamic_shapes=(free,)), path / "free.pt2"
    )
    torch.export.save(torch.export.export(module, (clips,)), path / "two.pt2")
    return path


def records(model, attack=None):
    result = vcr.evaluate(model=model, attack=attack, threat=Linf("4/255"), limit=5,
                          runtime={"batch_videos": 3})  # fmt: skip
    return [
        [(record[corner]["pred"], record[corner]["p_label"]) for corner in record
         if corner in ("clean", "attacked")]
        for record in result.records
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "more"), [("script.pt", {}), ("free.pt2", {}), ("two.pt2", {"batch": 2})]
)
def test_a_file_gives_the_records_of_the_model_that_was_exported(folder, file, more):
    model = vcr.load("model", "network-file", file=str(folder / file), **SETTINGS, **more)
    ours = records(model, vcr.load("attack", "ifgsm", steps=3))
    wanted = records("tiny-r3d", vcr.load("attack", "ifgsm", steps=3))
    assert [[p for p, _ in row] for row in ours] == [[p for p, _ in row] for row in wanted]
    for row, other in zip(ours, wanted, strict=True):
        for (_, one), (_, two) in zip(row, other, strict=True):
            assert one == pytest.approx(two, abs=1e-4)


def test_probabilities_become_logits(folder, tmp_path):
    class Soft(Plain):
        def forward(self, clips):
            return super().forward(clips).softmax(-1)

    path = tmp_path / "soft.pt2"
    torch.export.save(torch.export.export(Soft().eval(), (torch.rand(1, 16, 3, 64, 64),)), path)
    model = vcr.load("model", "network-file", file=str(path), output="probabilities", batch=1,
                     **SETTINGS)  # fmt: skip
    clips = torch.rand(2, 16, 3, 64, 64)
    wanted = TinyClassifier.load("tiny-r3d").logits(clips).log_softmax(-1)
    found = model.logits(clips)
    close = wanted.exp() > 1e-6
    assert torch.allclose(found[close], wanted[close], atol=1e-3)


def test_its_content_and_not_its_place_tells_runs_apart(folder, tmp_path):
    from vcr_core.config.resolve import resolve_run

    def identity(path):
        tables = {
            "model": {"name": "network-file", "file": str(path), **SETTINGS},
            "dataset": {"name": "motion"},
        }
        return resolve_run(tables).identity["model"]

    copy = tmp_path / "copy.pt2"
    copy.write_bytes((folder / "free.pt2").read_bytes())
    assert identity(folder / "free.pt2") == identity(copy)
    assert identity(folder / "free.pt2") != identity(folder / "two.pt2")


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "no TorchScript"), (b"text", "no TorchScript"), (b"PK\x05\x06" + b"\0" * 18, "cannot")],
)
def test_files_that_are_none(tmp_path, content, message):
    path = tmp_path / "net.pt2"
    path.write_bytes(content)
    with pytest.raises(ComponentUnavailable, match=message):
        vcr.load("model", "network-file", file=str(path), **SETTINGS)


def test_settings_that_cannot_be_right(folder, tmp_path):
    file = str(folder / "free.pt2")
    with pytest.raises(ConfigError, match="there is no file"):
        vcr.load("model", "network-file", file=str(tmp_path / "none.pt"), **SETTINGS)
    with pytest.raises(ConfigError, match="divide them by 255"):
        vcr.load("model", "network-file", file=file, std=(58.0, 57.0, 57.0), **SETTINGS)
    with pytest.raises(ConfigError, match="above 0"):
        vcr.load("model", "network-file", file=file, std=(0.0, 1.0, 1.0), **SETTINGS)
    with pytest.raises(ConfigError, match="none of kinetics400"):
        vcr.load("model", "network-file", file=file, **{**SETTINGS, "labels": "nowhere.txt"})


def test_labels_from_a_text_file(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("\ufeffwalk\n\nrun fast\n", encoding="utf-8")
    assert read_labels(str(path)).names == ("walk", "run fast")
    path.write_text("walk\nwalk\n")
    with pytest.raises(ConfigError, match="one different class name a line"):
        read_labels(str(path))


MODEL = """
    from torch import nn
    from vcr_core import ClipSpec, as_classifier
    from beside import CLASSES

    def model(bias=0.0):
        net = nn.Sequential(nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(3, len(CLASSES)))
        nn.init.constant_(net[2].bias, bias)
        return as_classifier(net, labels=CLASSES, clip=ClipSpec(frames=4, size=16))

    def nothing():
        return 3

    def broken():
        raise KeyError("weights")
"""


def test_a_function_in_a_python_file(tmp_path):
    (tmp_path / "beside.py").write_text("CLASSES = ['a', 'b']\n")
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(MODEL))
    model = vcr.load("model", "python-file", file=str(path), arguments={"bias": 2.0})
    assert model.labels.names == ("a", "b")
    assert model.logits(torch.zeros(1, 4, 3, 16, 16)).tolist() == [[[2.0, 2.0]]]
    for function, error, message in (
        ("nothing", ComponentUnavailable, "returned int; it must return a classifier"),
        ("broken", ComponentUnavailable, "broken failed: KeyError: 'weights'"),
        ("modle", ConfigError, "no function 'modle'; it has broken, model, nothing"),
    ):
        with pytest.raises(error, match=message):
            vcr.load("model", "python-file", file=str(path), function=function)
    path.write_text("import no_such_package\n")
    with pytest.raises(ComponentUnavailable, match="no_such_package"):
        vcr.load("model", "python-file", file=str(path))


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    transformers = pytest.importorskip("transformers")
    path = tmp_path_factory.mktemp("hub") / "videomae"
    config = transformers.VideoMAEConfig(
        image_size=32, num_frames=4, hidden_size=32, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=32, id2label={0: "walk", 1: "run"}, label2id={"walk": 0, "run": 1},
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.VideoMAEForVideoClassification(config).save_pretrained(path)
    (path / "preprocessor_config.json").write_text(
        '{"image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}'
    )
    return path


def test_a_checkpoint_of_transformers_says_what_it_takes(checkpoint):
    transformers = pytest.importorskip("transformers")
    model = vcr.load("model", "transformers-video", checkpoint=str(checkpoint))
    assert model.labels.names == ("walk", "run")
    assert (model.clip.frames, model.clip.size) == (4, 32)
    clips = torch.rand(2, 4, 3, 32, 32, requires_grad=True)
    mean = torch.tensor([0.5, 0.4, 0.3]).view(3, 1, 1)
    std = torch.tensor([0.2, 0.3, 0.4]).view(3, 1, 1)
    theirs = transformers.VideoMAEForVideoClassification.from_pretrained(checkpoint).eval()
    found = model.logits(clips)
    assert torch.allclose(found[:, 0], theirs(pixel_values=(clips - mean) / std).logits, atol=1e-6)
    found.sum().backward()
    assert (clips.grad != 0).all()


def test_checkpoints_that_do_not_fit(checkpoint, tmp_path):
    import json
    import shutil

    with pytest.raises(ComponentUnavailable, match="there is no folder"):
        vcr.load("model", "transformers-video", checkpoint=str(tmp_path / "none"))
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    (copy / "preprocessor_config.json").unlink()
    with pytest.raises(ComponentUnavailable, match=r"set model\.mean and model\.std"):
        vcr.load("model", "transformers-video", checkpoint=str(copy))
    given = {"mean": (0.5,) * 3, "std": (0.5,) * 3}
    assert vcr.load("model", "transformers-video", checkpoint=str(copy), **given).clip.frames == 4
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps(config | {"num_hidden_layers": 2}))
    with pytest.raises(ComponentUnavailable, match="do not fit: missing_keys"):
        vcr.load("model", "transformers-video", checkpoint=str(copy), **given)
    del config["id2label"], config["label2id"]
    (copy / "config.json").write_text(json.dumps(config))
    with pytest.raises(ComponentUnavailable, match="does not name its 2 classes"):
        vcr.load("model", "transformers-video", checkpoint=str(copy), **given)
