"""safetensors files: tensors come back, foreign types too, and damaged files are refused."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import graphc as gc
from graphc.checkpoints import load_safetensors, save_safetensors
from graphc.checkpoints.safetensors_file import read_safetensors
from graphc.errors import ArgumentError, ArtifactError

pytest.importorskip("safetensors")


def encode(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize("dtype", ["f64", "f32", "i64", "i32", "i8", "u8", "bool"])
def test_every_type_comes_back(tmp_path: Path, dtype: str):
    value = gc.tensor(np.arange(6).reshape(2, 3)).to_dtype(dtype)
    save_safetensors({"a": value.t(), "empty": value[:0], "scalar": value[1, 1]}, tmp_path / "a")
    found = load_safetensors(tmp_path / "a")
    assert found["a"].dtype.name == dtype
    np.testing.assert_array_equal(found["a"].numpy(), value.t().numpy())
    assert found["empty"].shape == (0, 3)
    assert found["scalar"].shape == ()
    found["a"].add_(1) if dtype != "bool" else None


def test_texts_beside_the_tensors(tmp_path: Path):
    save_safetensors({"a": np.zeros(1)}, tmp_path / "a", {"model": "net"})
    assert read_safetensors(tmp_path / "a")[1] == {"model": "net"}


@pytest.mark.parametrize(
    ("tensors", "metadata"),
    [({"z": np.zeros(1, np.complex128)}, {}), ({"__metadata__": np.zeros(1)}, {}), ({"a": np.zeros(1)}, {"epoch": 3})],
)
def test_what_the_format_has_no_room_for_is_not_written(tmp_path: Path, tensors, metadata):
    with pytest.raises(ArgumentError):
        save_safetensors(tensors, tmp_path / "a", metadata)
    assert not (tmp_path / "a").exists()


def test_narrow_types_stay_what_they_are(tmp_path: Path):
    header = {"h": entry("F16", [2], 0, 4), "b": entry("BF16", [1, 1], 4, 6), "s": entry("I16", [1], 6, 8)}
    body = np.float16([0.5, -2]).tobytes() + b"\x80\x3f" + np.int16([-3]).tobytes()
    (tmp_path / "a").write_bytes(encode(header, body))
    found = load_safetensors(tmp_path / "a")
    assert {n: (t.dtype.name, t.tolist()) for n, t in found.items()} == {
        "h": ("f16", [0.5, -2.0]),
        "b": ("bf16", [[1.0]]),
        "s": ("i16", [-3]),
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\3\4",
        b"\xff" * 8,
        encode({"a": entry("F32", [2], 0, 4)}, b"\0" * 4),
        encode({"a": entry("F32", [1], 0, 4)}, b"\0" * 3),
        encode({"a": entry("F32", [1], 0, 4)}, b"\0" * 5),
        encode({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 0, 4)}, b"\0" * 4),
        encode({"a": entry("F32", [1 << 40, 1 << 40], 0, 4)}, b"\0" * 4),
        encode({"a": entry("F32", [-1], 0, 4)}, b"\0" * 4),
        encode({"a": entry("OBJ", [1], 0, 4)}, b"\0" * 4),
        encode(b'{"a": '),
        encode(b"[" * 5000),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, data: bytes):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(ArtifactError, match="/a: "):
        load_safetensors(tmp_path / "a")


def test_every_truncation_is_refused(tmp_path: Path):
    save_safetensors({"a": np.arange(4.0), "b": np.zeros(2, np.int8)}, tmp_path / "a")
    data = (tmp_path / "a").read_bytes()
    for length in range(len(data)):
        (tmp_path / "a").write_bytes(data[:length])
        with pytest.raises(ArtifactError):
            load_safetensors(tmp_path / "a")


def test_types_that_graphc_lacks_are_named(tmp_path: Path):
    (tmp_path / "a").write_bytes(encode({"a": entry("F8_E4M3", [8], 0, 8)}, b"\0" * 8))
    with pytest.raises(ArtifactError, match="'a' has element type F8_E4M3"):
        load_safetensors(tmp_path / "a")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path):
    save_safetensors({"a": np.zeros(1)}, tmp_path / "a")
    before = (tmp_path / "a").read_bytes()
    with pytest.raises(ArgumentError, match="'b' is a list"):
        save_safetensors({"b": [1]}, tmp_path / "a")
    assert (tmp_path / "a").read_bytes() == before
    assert os.listdir(tmp_path) == ["a"]


def test_places_that_are_no_files(tmp_path: Path):
    with pytest.raises(ArtifactError, match="regular file"):
        load_safetensors(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_safetensors(tmp_path / "none")


def test_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ArgumentError, match=r"\[interop\]"):
        load_safetensors(tmp_path / "a")


def test_exchange_with_pytorch(torch, tmp_path: Path):
    theirs = pytest.importorskip("safetensors.torch")

    tensors = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.tensor([1.5, -2.25], dtype=torch.bfloat16)}
    theirs.save_file(tensors, str(tmp_path / "a"))
    found = load_safetensors(tmp_path / "a")
    for name, tensor in tensors.items():
        assert found[name].tolist() == tensor.tolist()
    save_safetensors(found, tmp_path / "b")
    for name, tensor in theirs.load_file(str(tmp_path / "b")).items():
        assert (tensor.dtype, tensor.tolist()) == (tensors[name].dtype, tensors[name].tolist())
