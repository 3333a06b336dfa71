"""``vcr weights`` and models whose files are not here, as a user meets them."""

from __future__ import annotations

import hashlib
import json

import pytest
import torch
from click.testing import CliRunner
from vcr_core import ClipSpec, ModelSpec, WeightSpec
from vcr_core.availability import readiness
from vcr_core.cli.weights import command
from vcr_core.components import build, weights_of
from vcr_core.config.experiment import Chosen
from vcr_core.errors import ComponentUnavailable, ConfigError, NotAvailable, UsageError
from vcr_core.loading import Entry
from vcr_core.weights.places import file_name

NAME = "net-12345678.pth"


def model(weights):
    return weights


@pytest.fixture
def spec(tmp_path, monkeypatch):
    monkeypatch.setenv("VCR_WEIGHTS_DIR", str(tmp_path / "weights"))
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    torch.save({"a": torch.ones(2)}, tmp_path / NAME)
    sha256 = hashlib.sha256((tmp_path / NAME).read_bytes()).hexdigest()
    return ModelSpec(
        name="far-net",
        summary="A network whose weights are elsewhere",
        target=f"{__name__}:model",
        label_space="toy",
        num_classes=2,
        clip=ClipSpec(frames=4),
        weights=(
            WeightSpec(
                variant="k2",
                url=f"https://127.0.0.1:1/{NAME}",
                sha256=sha256,
                bytes=10,
                license="CC-BY-4.0",
                clean_accuracy=0.5,
            ),
            WeightSpec(variant="k3", url="https://127.0.0.1:1/other.pth"),
        ),
    )


@pytest.fixture
def known(spec, monkeypatch):
    entry = Entry(spec, "far", "1.0")

    class Only:
        def entries(self, kind=None):
            return [entry] if kind in (None, "model") else []

        def find(self, kind, ref):
            name, _, variant = ref.partition(".")
            if name != spec.name:
                raise UsageError(f"there is no model {name!r}")
            return entry, variant

    monkeypatch.setattr("vcr_core.cli.weights.registry", Only)
    return entry


def chosen(spec, variant="k2", **params):
    return Chosen(spec=spec, distribution="far", version="1.0", variant=variant, params=params)


def run(*words):
    return CliRunner().invoke(
        command, [str(w) for w in words], catch_exceptions=False, standalone_mode=False
    )


def test_list_fetch_verify_path(known, tmp_path):
    listed = json.loads(run("list", "--json").stdout)["weights"]
    assert [(row["weights"], row["here"]) for row in listed] == [
        ("far-net.k2", "no"),
        ("far-net.k3", "no"),
    ]
    result = run("fetch", "far-net.k2", "--from", tmp_path)
    assert result.return_value == 0
    assert "CC-BY-4.0" in result.stderr
    assert (tmp_path / "weights" / NAME).is_file()
    assert run("path", "far-net.k2").stdout.strip() == str(tmp_path / "weights" / NAME)
    assert "ok" in run("verify").stdout
    (tmp_path / "weights" / NAME).write_bytes(b"changed")
    failed = run("verify", "far-net")
    assert failed.return_value == 1
    assert "another file" in failed.stdout
    assert "not here" in failed.stdout


def test_a_source_that_has_nothing_ends_with_its_reason(known, tmp_path):
    result = run("fetch", "far-net.k3", "--from", tmp_path / "nowhere")
    assert result.return_value == NotAvailable.exit_code
    assert "no such file" in result.stderr


@pytest.mark.parametrize("words", [("fetch",), ("fetch", "far-net", "--all")])
def test_fetch_wants_names_or_all(known, words):
    assert CliRunner().invoke(command, words).exit_code == 2


def test_unknown_names(known):
    with pytest.raises(UsageError, match="no model"):
        run("path", "near-net")
    with pytest.raises(UsageError, match="no weights 'k9'; it has k2, k3"):
        run("path", "far-net.k9")
    with pytest.raises(NotAvailable, match="not on this machine"):
        run("path", "far-net.k2")


def test_a_missing_file_says_what_to_do(spec, tmp_path):
    assert readiness(spec).text == "weights not downloaded"
    with pytest.raises(ComponentUnavailable) as caught:
        build(chosen(spec))
    for part in ("vcr weights fetch far-net.k2", NAME, "CC-BY-4.0", "model.file=", "weights"):
        assert part in str(caught.value)
    (tmp_path / "weights").mkdir()
    (tmp_path / NAME).rename(tmp_path / "weights" / NAME)
    assert readiness(spec).ok
    assert weights_of(chosen(spec)).file.endswith(NAME)
    assert weights_of(chosen(spec, "k3")).file == ""


def test_a_file_of_the_users_own(spec, tmp_path):
    first = weights_of(chosen(spec, file=str(tmp_path / NAME)))
    assert first.file == str(tmp_path / NAME)
    torch.save({"a": torch.zeros(2)}, tmp_path / "mine.pth")
    assert weights_of(chosen(spec, file=str(tmp_path / "mine.pth"))).sha256 != first.sha256
    with pytest.raises(ConfigError, match="there is no file"):
        weights_of(chosen(spec, file=str(tmp_path / "none.pth")))


def test_names_on_disk():
    assert file_name(WeightSpec(url="https://a.org/x%20y.pth?raw=1")) == "x y.pth"
    assert file_name(WeightSpec(url="https://a.org/pytorch_model.bin", filename="z.bin")) == "z.bin"
    assert file_name(WeightSpec()) == ""
