"""State files: models and whole checkpoints are saved and come back, in every format."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError, ArtifactError

FORMATS = [".npz", ".safetensors"]


def need(suffix: str) -> None:
    if suffix == ".safetensors":
        pytest.importorskip("safetensors")


def make() -> nn.Module:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))


@pytest.mark.parametrize("suffix", FORMATS)
def test_models(tmp_path: Path, suffix: str):
    need(suffix)
    gc.manual_seed(0)
    model, other = make(), make()
    gc.save_state(model.state_dict(), tmp_path / f"m{suffix}")
    found = gc.load_state(tmp_path / f"m{suffix}")
    other.load_state_dict(found)
    x = gc.randn(5, 3)
    np.testing.assert_array_equal(other.eval()(x).detach().numpy(), model.eval()(x).detach().numpy())
    assert set(found) == set(model.state_dict())


def train(model, optimizer, steps: int) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        (model(gc.ones(4, 3) * (step + 1)) ** 2).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_run_continues_from_its_checkpoint(tmp_path: Path, suffix: str):
    need(suffix)
    gc.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = gc.optim.Adam(model.parameters(), lr=0.01)
    train(model, optimizer, 3)
    tree = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    gc.save_state(tree, tmp_path / f"c{suffix}")
    train(model, optimizer, 3)

    found = gc.load_state(tmp_path / f"c{suffix}")
    again = nn.Linear(3, 2)
    again.load_state_dict(found["model"])
    resumed = gc.optim.Adam(again.parameters(), lr=0.5)
    resumed.load_state_dict(found["optimizer"])
    assert found["epoch"] == 3
    train(again, resumed, 3)
    np.testing.assert_array_equal(again.weight.detach().numpy(), model.weight.detach().numpy())


def test_other_suffixes_are_refused(tmp_path: Path):
    for suffix in (".pt", ".bin", ""):
        with pytest.raises(ArgumentError, match="no format"):
            gc.save_state({"a": gc.zeros(1)}, tmp_path / f"m{suffix}")
    with pytest.raises(ArgumentError, match="no format"):
        gc.load_state(tmp_path / "m.bin")
    assert not os.listdir(tmp_path)


def test_types_that_graphc_lacks_are_named(tmp_path: Path):
    np.savez(tmp_path / "a.npz", x=np.zeros(2, np.complex64))
    with pytest.raises(ArtifactError, match="'x' has element type complex64"):
        gc.load_state(tmp_path / "a.npz")


def test_a_damaged_description_names_the_file(tmp_path: Path):
    np.savez(tmp_path / "a.npz", **{"x": np.zeros(2), "graphc.tree": np.frombuffer(b'{"tensor": "y"}', np.uint8)})
    with pytest.raises(ArtifactError, match=r"a\.npz: the description"):
        gc.load_state(tmp_path / "a.npz")


def test_a_failed_save_leaves_the_old_file(tmp_path: Path):
    gc.save_state({"a": gc.zeros(1)}, tmp_path / "a.npz")
    before = (tmp_path / "a.npz").read_bytes()
    with pytest.raises(ArgumentError):
        gc.save_state({"a": gc.zeros(1), "b": object()}, tmp_path / "a.npz")
    with pytest.raises(ArgumentError, match="taken"):
        gc.save_state({"graphc.tree": gc.zeros(1)}, tmp_path / "a.npz")
    assert (tmp_path / "a.npz").read_bytes() == before
