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
    # Functions that repeat become programs after some calls; with this switch, in both runs from the first call on.
    gc.use_deterministic_algorithms(True)
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
    assert not os.listdir(tmp_path)


def test_the_content_of_a_file_decides(tmp_path: Path):
    gc.save_state({"a": gc.ones(2)}, tmp_path / "a.npz")
    gc.save({"a": gc.ones(2)}, tmp_path / "b.pt")
    gc.export(nn.Linear(2, 1), gc.ones(1, 2), path=tmp_path / "c.gcm")
    for name in ("a.npz", "b.pt", "c.gcm"):
        found = gc.load_state((tmp_path / name).rename(tmp_path / "file.txt"))
        assert [t.shape for t in found.values()] == ([(1, 2), (1,)] if name == "c.gcm" else [(2,)])


def test_a_checkpoint_of_pytorch_gives_its_state_dictionary(tmp_path: Path):
    model = make()
    optimizer = gc.optim.Adam(model.parameters())
    model(gc.randn(5, 3)).sum().backward()
    optimizer.step()
    state, path = model.state_dict(), tmp_path / "a.ckpt"
    gc.save({"net": state, "optimizer": optimizer.state_dict(), "epoch": 3}, path)
    found = gc.load_state(path)
    assert list(found) == list(state) and found._metadata["1"] == {"version": 2}
    gc.save({"model": state, "ema": state | {"decay": gc.ones(1)}}, path)
    assert "decay" not in gc.load_state(path)
    gc.save({"ema": model.state_dict(), "mean": model.state_dict()}, path)
    with pytest.raises(ArtifactError, match="it has 2 state dictionaries: 'ema', 'mean'"):
        gc.load_state(path)
    gc.save({"weight": model[0].weight}, path)
    assert gc.load_state(path)["weight"].numpy().shape == (4, 3)


def test_types_that_graphc_lacks_are_named(tmp_path: Path):
    np.savez(tmp_path / "a.npz", x=np.zeros(2, np.longdouble))
    with pytest.raises(ArtifactError, match="'x' has element type"):
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
    with pytest.raises(ArgumentError, match="reserved"):
        gc.save_state({"graphc.tree": gc.zeros(1)}, tmp_path / "a.npz")
    assert (tmp_path / "a.npz").read_bytes() == before
