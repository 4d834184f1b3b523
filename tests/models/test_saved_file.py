"""graphc.load: a model file becomes a callable and a checkpoint what was saved, whatever the file's name."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, ArtifactError
from graphc.models.model_file import LoadedModel
from tests.checkpoints.test_pt_file import Trap, archive


def test_the_content_of_a_file_decides(tmp_path: Path):
    model = nn.Linear(2, 1)
    gc.export(model, gc.ones(1, 2), path=tmp_path / "net.gcm")
    (tmp_path / "net.gcm").rename(tmp_path / "net.pt")
    run = gc.load(tmp_path / "net.pt", map_location="cpu", weights_only=True)
    assert isinstance(run, LoadedModel) and run(np.ones((1, 2), np.float32)).shape == (1, 1)
    gc.save({"model": model.state_dict(), "epoch": 3}, tmp_path / "state.gcm")
    found = gc.load(tmp_path / "state.gcm", map_location=gc.device("cpu"), weights_only=False)
    for places in (lambda memory, place: memory, {"cuda:0": "cpu"}):
        assert gc.load(tmp_path / "state.gcm", map_location=places).keys() == found.keys()
    assert found["epoch"] == 3 and found["model"]["weight"].tolist() == model.weight.tolist()
    gc.save_state({"a": [gc.ones(1), 2]}, tmp_path / "a.npz")
    assert gc.load(tmp_path / "a.npz")["a"][1] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"map_location": "cuda"}, r"loaded tensors are in host memory\n  try    call tensor\.to\(device\)"),
        ({"map_location": {"cuda:0": "cuda:1"}}, "loaded tensors are in host memory"),
        ({"map_location": lambda memory, place: 3}, "loaded tensors are in host memory"),
        ({"trust": True}, "is not a model file, which these options need"),
        ({"trust": "cpu"}, r"trust is a bool, got 'cpu'\n  try    pass map_location='cpu'"),
        ({"target": "avx2"}, "is not a model file"),
        ({"device": "cuda-emu"}, "is not a model file"),
    ],
)
def test_what_there_is_not_is_refused(tmp_path: Path, options: dict[str, Any], message: str):
    gc.save({"a": 1}, tmp_path / "a.pt")
    with pytest.raises(ArgumentError, match=message):
        gc.load(tmp_path / "a.pt", **options)


def test_nothing_is_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    archive(tmp_path / "a.pt", pickle.dumps({"w": Trap(os.system, "touch trapped")}, 2))
    with pytest.raises(ArtifactError, match="refused"):
        gc.load(tmp_path / "a.pt")
    assert os.listdir(tmp_path) == ["a.pt"]


def test_other_files(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        gc.load(tmp_path / "none")
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(ArtifactError, match="empty"):
        gc.load(tmp_path / "a")
    with pytest.raises(ArtifactError, match="the folder has no file of weights"):
        gc.load(tmp_path)
