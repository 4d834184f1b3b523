"""graphc.save: PyTorch reads the file without unpickling code, and both ways keep every bit, view and flag."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.errors import ArgumentError
from graphc.files.archive import Archive


def saved(obj: Any, path: Path) -> Any:
    gc.save(obj, path)
    return gc.load(path)


@pytest.mark.parametrize("dtype", ["f64", "f32", "i64", "i32", "i8", "u8", "bool"])
def test_every_type_and_shape_comes_back(tmp_path: Path, dtype: str):
    value = gc.tensor(np.arange(-3, 3).reshape(2, 3)).to_dtype(dtype)
    tree = {"a": value, "t": value.t(), "empty": value[:0], "scalar": value[1, 1]}
    loaded = saved(tree, tmp_path / "a.pt")
    for name, tensor in tree.items():
        assert loaded[name].dtype is tensor.dtype and loaded[name].shape == tensor.shape
        np.testing.assert_array_equal(loaded[name].numpy(), tensor.numpy())


def test_numbers_that_are_not_finite_keep_their_bits(tmp_path: Path):
    bits = np.array([0x7FC00001, 0xFF800000, 0x80000000, 0x00000001], np.uint32)
    loaded = saved([bits.view(np.float32), float("inf")], tmp_path / "a.pt")
    assert loaded[0].numpy().view(np.uint32).tolist() == bits.tolist() and loaded[1] == float("inf")


def test_tensors_that_share_memory_share_it_when_they_are_read(tmp_path: Path):
    base = gc.arange(24).reshape(4, 6)
    loaded = saved({"part": base[1:3, ::2], "base": base, "t": base.t(), "other": base.clone()}, tmp_path / "a.pt")
    loaded["base"][1, 0] = -1
    assert loaded["part"][0, 0].item() == loaded["t"][0, 1].item() == -1
    assert loaded["other"][1, 0].item() == 6
    with Archive(tmp_path / "a.pt") as archive:
        assert [archive.size(n) for n in archive.names if "/data/" in n] == [24 * 8, 24 * 8]


def test_a_part_of_a_large_tensor_is_written_without_the_rest(tmp_path: Path):
    base = gc.zeros(100, 100)
    loaded = saved(
        {"column": base[:, 3], "rows": base[2:4], "expanded": base[:1, :1].expand(50, 50)}, tmp_path / "a.pt"
    )
    assert {n: t.shape for n, t in loaded.items()} == {"column": (100,), "rows": (2, 100), "expanded": (50, 50)}
    gc.save(base[:, 3], tmp_path / "column.pt")
    assert (tmp_path / "column.pt").stat().st_size < 2000
    gc.save(base[:1, :1].expand(50, 50), tmp_path / "expanded.pt")
    assert (tmp_path / "expanded.pt").stat().st_size < 2000


def test_arrays_in_other_orders_are_written_by_value(tmp_path: Path):
    array = np.arange(6, dtype=np.float32)
    loaded = saved([array[::-1], array.astype(">f4"), np.asfortranarray(array.reshape(2, 3))], tmp_path / "a.pt")
    assert loaded[0].tolist() == [5, 4, 3, 2, 1, 0] and loaded[1].tolist() == array.tolist()
    assert loaded[2].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_parameters_and_gradients(tmp_path: Path):
    weight = nn.Parameter(gc.ones(2))
    loaded = saved({"p": weight, "again": weight, "g": gc.ones(2, requires_grad=True)}, tmp_path / "a.pt")
    assert isinstance(loaded["p"], nn.Parameter) and loaded["p"].requires_grad and loaded["again"] is loaded["p"]
    assert loaded["g"].requires_grad and not isinstance(loaded["g"], nn.Parameter)


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path):
    path = tmp_path / "a.pt"
    gc.save({"a": gc.ones(1)}, path)
    before = path.read_bytes()
    shared = np.zeros(4, np.float32)
    for obj, message in (
        ({"f": open}, r"\['f'\] is a builtin_function_or_method"),
        ({"a": np.array(["x"])}, "arrays of <U1 cannot be saved"),
        ({"a": shared, "b": shared.view(np.int32)}, "different element types share memory"),
    ):
        with pytest.raises(ArgumentError, match=message):
            gc.save(obj, path)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["a.pt"]
    with open(path, "rb") as file, pytest.raises(ArgumentError, match="takes a path"):
        gc.save({}, file)  # type: ignore[arg-type]


def test_equal_objects_make_equal_files(tmp_path: Path):
    for name in "ab":
        gc.save({"x": gc.arange(5), "y": [1, "z"]}, tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def trained(steps: int) -> tuple[nn.Module, gc.optim.Adam]:
    gc.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    optimizer = gc.optim.Adam(model.parameters(), lr=0.01)
    train(model, optimizer, steps)
    return model, optimizer


def train(model: nn.Module, optimizer: Any, steps: int) -> None:
    x = gc.tensor(np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3))
    for _ in range(steps):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()


def test_a_run_continues_from_its_checkpoint(tmp_path: Path):
    model, optimizer = trained(3)
    tree = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}
    loaded = saved(tree, tmp_path / "run.pt")
    train(model, optimizer, 2)
    again, resumed = trained(0)
    again.load_state_dict(loaded["model"])
    resumed.load_state_dict(loaded["optimizer"])
    train(again, resumed, 2)
    for name, tensor in model.state_dict().items():
        np.testing.assert_array_equal(again.state_dict()[name].numpy(), tensor.numpy())


@pytest.mark.parametrize("mmap", [False, True])
def test_pytorch_reads_what_graphc_writes(torch, tmp_path: Path, mmap: bool):
    model, optimizer = trained(2)
    base = gc.randn(4, 6)
    plain = [1, 2.5, None, True, "ü\ud800", (), -1, 1 << 40, -(1 << 90), {3: {}, None: [[]]}]
    views = {"base": base, "part": base[1:3, ::2], "t": base.t(), "row": base[:1].expand(5, 6)}
    types = {d: gc.tensor([0, 1, 3]).to_dtype(d) for d in ("f64", "f32", "i64", "i32", "i8", "u8", "bool")}
    tree = {"plain": plain, "again": plain, "views": views, "types": types, "parameter": model[0].weight}
    tree |= {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "empty": gc.zeros(0, 3)}
    gc.save(tree, tmp_path / "a.pt")
    loaded = torch.load(tmp_path / "a.pt", weights_only=True, mmap=mmap)
    assert loaded["plain"] == plain and loaded["again"] is loaded["plain"]
    for name, tensor in (views | types | model.state_dict()).items():
        other = (loaded["views"] | loaded["types"] | loaded["model"])[name]
        assert other.detach().numpy().tobytes() == tensor.numpy().tobytes() and tuple(other.shape) == tensor.shape
    storage = loaded["views"]["base"].untyped_storage().data_ptr()
    assert all(t.untyped_storage().data_ptr() == storage for t in loaded["views"].values())
    assert isinstance(loaded["parameter"], torch.nn.Parameter)
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    theirs.load_state_dict(loaded["model"])
    adam = torch.optim.Adam(theirs.parameters())
    adam.load_state_dict(loaded["optimizer"])
    theirs(torch.linspace(-1, 1, 15).reshape(5, 3)).pow(2).sum().backward()
    adam.step()
    assert adam.param_groups[0]["lr"] == 0.01 and adam.state[theirs[0].weight]["step"] == 3
    train(model, optimizer, 1)
    # NOTE: the gradient of the bias is rounding alone, since the norm takes its value out again.
    for name in ("0.weight", "1.weight", "1.bias"):
        mine, other = model.state_dict()[name], theirs.state_dict()[name]
        np.testing.assert_allclose(mine.numpy(), other.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("new", [True, False], ids=["archive", "legacy"])
def test_graphc_reads_what_pytorch_writes_of_it_again(torch, tmp_path: Path, new: bool):
    model, optimizer = trained(2)
    base = gc.randn(4, 6)
    tree = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "views": (base, base[::2, 1:].t())}
    gc.save(tree, tmp_path / "a.pt")
    theirs = torch.load(tmp_path / "a.pt", weights_only=True)
    torch.save(theirs, tmp_path / "b.pt", _use_new_zipfile_serialization=new)
    loaded = gc.load(tmp_path / "b.pt")
    gc.save(loaded, tmp_path / "c.pt")
    assert (tmp_path / "c.pt").read_bytes() == (tmp_path / "a.pt").read_bytes()
