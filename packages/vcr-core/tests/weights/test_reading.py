"""What is read from weight files, and what is not."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from vcr_core.errors import ComponentUnavailable
from vcr_core.weights.reading import read_checkpoint, state_of

STATE = {"a.weight": torch.arange(4.0), "a.count": torch.tensor(3)}


class Evil:
    def __reduce__(self):
        return os.mkdir, ("owned",)


@pytest.mark.parametrize("root", ["", "state_dict", "module", "model"])
def test_roots(tmp_path, root):
    path = tmp_path / "net.pth"
    torch.save({root: STATE, "epoch": 3} if root else STATE, path)
    state = state_of(read_checkpoint(path), ("model", "module", "state_dict"), path)
    assert torch.equal(state["a.weight"], STATE["a.weight"])


def test_what_trainers_add_is_harmless(tmp_path):
    path = tmp_path / "net.pth"
    extra = {
        "args": argparse.Namespace(lr=1e-3, model="vit"),
        "best": np.float64(0.8),
        "epoch": np.int64(3),
        "history": np.arange(3.0),
    }
    torch.save({"module": STATE, **extra}, path)
    assert state_of(read_checkpoint(path), ("module",), path).keys() == STATE.keys()


def test_code_is_not_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net.pth"
    torch.save({"model": STATE, "extra": Evil()}, path)
    with pytest.raises(ComponentUnavailable, match="trust_pickle"):
        read_checkpoint(path)
    assert not Path("owned").exists()
    read_checkpoint(path, trust_pickle=True)
    assert Path("owned").exists()


@pytest.mark.filterwarnings(
    "ignore:.*torch.jit.script:FutureWarning", "ignore:.*torch.jit:DeprecationWarning"
)
def test_safetensors_and_torchscript(tmp_path):
    from safetensors.torch import save_file

    save_file(STATE, tmp_path / "net.safetensors")
    assert read_checkpoint(tmp_path / "net.safetensors").keys() == STATE.keys()
    torch.jit.script(nn.Linear(2, 1)).save(str(tmp_path / "net.pt"))
    assert set(read_checkpoint(tmp_path / "net.pt")) == {"weight", "bias"}


@pytest.mark.parametrize("name", ["net.pth", "net.safetensors", "net.pt"])
@pytest.mark.parametrize("content", [b"", b"<html>not found</html>", b"PK\x03\x04broken"])
def test_damaged_files_name_themselves(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(ComponentUnavailable, match=name):
        read_checkpoint(path)


@pytest.mark.parametrize("content", [{"epoch": 3}, {"model": {"a": "text"}}, [1, 2], {}])
def test_no_weights_inside(tmp_path, content):
    path = tmp_path / "net.pth"
    with pytest.raises(ComponentUnavailable, match="holds no weights under model"):
        state_of(content, ("model",), path)
