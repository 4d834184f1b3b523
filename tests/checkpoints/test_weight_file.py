"""Files of weights: each format is known by its content, shards become one dictionary, other files are named."""

from __future__ import annotations

import json
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.checkpoints import weight_file
from graphc.checkpoints.weight_file import format_of, is_state, read_weights
from graphc.errors import ArtifactError
from graphc.files.container import is_container


def encode(header: Any, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def entry(dtype: str, shape: list[int], start: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def shard(path: Path, **values: float) -> None:
    header = {name: entry("BF16", [1], 2 * i, 2 * i + 2) for i, name in enumerate(values)}
    body = b"".join(np.float32([v]).tobytes()[2:] for v in values.values())
    path.write_bytes(encode(header, body))


def index(folder: Path, weight_map: dict[str, str]) -> Path:
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": weight_map}))
    return path


def test_formats_are_told_by_content(tmp_path: Path):
    gc.save_state({"a": gc.ones(2)}, tmp_path / "npz.npz")
    gc.save({"a": gc.ones(2)}, tmp_path / "torch")
    gc.export(gc.nn.Linear(2, 1), gc.ones(1, 2), path=tmp_path / "model.gcm")
    index(tmp_path, {"a": "x"}).rename(tmp_path / "index")
    names = {"npz.npz": "npz", "torch": weight_file.TORCH, "model.gcm": "model file", "index": weight_file.INDEX}
    for name, kind in names.items():
        found = format_of((tmp_path / name).rename(tmp_path / "other.dat"))
        assert found is not None and found.name == kind
        assert is_container(tmp_path / "other.dat") == (kind == "model file")
    assert not is_container(tmp_path)


@pytest.mark.parametrize("length", [0x80, 0x7B, 0x504B, 123])
def test_headers_of_safetensors_that_begin_like_other_files(tmp_path: Path, length: int):
    pytest.importorskip("safetensors")
    text = json.dumps({"a": entry("F32", [1], 0, 4)}).encode().ljust(length)
    (tmp_path / "a").write_bytes(encode(text, np.float32([3]).tobytes()))
    assert read_weights(tmp_path / "a").tree["a"].tolist() == [3]


def test_shards_become_one_dictionary(tmp_path: Path):
    pytest.importorskip("safetensors")
    shard(tmp_path / "1", a=1.0, b=2.0)
    shard(tmp_path / "2", c=3.0)
    path = index(tmp_path, {"a": "1", "b": "1", "c": "2"})
    for place in (path, tmp_path):
        found = read_weights(place)
        assert {n: t.tolist() for n, t in found.tree.items()} == {"a": [1], "b": [2], "c": [3]}
        assert found.path == str(path) and found.tree["a"].dtype is gc.bfloat16


def test_shards_of_pytorch(tmp_path: Path):
    gc.save({"a": gc.ones(2)}, tmp_path / "1.bin")
    gc.save({"b": gc.zeros(2)}, tmp_path / "2.bin")
    path = index(tmp_path, {"a": "1.bin", "b": "2.bin"}).rename(tmp_path / "pytorch_model.bin.index.json")
    assert gc.load_state(path)["a"].tolist() == gc.load(tmp_path)["a"].tolist() == [1, 1]


@pytest.mark.parametrize(
    ("second", "weight_map", "message"),
    [
        ({"a": gc.ones(1)}, {"a": "1", "b": "2"}, "'a' is in 1 and in 2"),
        ({"c": gc.ones(1)}, {"a": "1", "b": "2"}, "2 lacks 'b', which the index says"),
        ({"b": gc.ones(1), "c": gc.ones(1)}, {"a": "1", "b": "2"}, "2 holds 'c', which the index does not name"),
        ({"b": {"c": gc.ones(1)}}, {"a": "1", "b": "2"}, "2 is not a dictionary of names and tensors"),
        ({"b": gc.ones(1)}, {"a": "1", "b": "3"}, "1 of the 2 files that it names are missing: 3"),
        (
            {"b": gc.ones(1)},
            {"a": "1", "b": "model.safetensors.index.json"},
            "index.json is not a dictionary of names and tensors",
        ),
    ],
)
def test_shards_that_do_not_fit_their_index(tmp_path: Path, second: Any, weight_map: dict[str, str], message: str):
    gc.save({"a": gc.ones(1)}, tmp_path / "1")
    gc.save(second, tmp_path / "2")
    with pytest.raises(ArtifactError, match=message):
        read_weights(index(tmp_path, weight_map))


def test_narrow_arrays_of_numpy(tmp_path: Path):
    np.savez(tmp_path / "a.npz", h=np.float16([[0.1, 65504]]), s=np.int16([-3]))
    found = read_weights(tmp_path / "a.npz")
    assert {n: (t.dtype.name, t.shape) for n, t in found.tree.items()} == {"h": ("f16", (1, 2)), "s": ("i16", (1,))}
    assert found.tree["h"].numpy().tolist() == np.float16([[0.1, 65504]]).tolist()


def test_other_files_are_named(tmp_path: Path):
    path = tmp_path / "a.safetensors"
    for data, message in (
        (b"", "not a file of weights, but empty"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"GGUF\3\0\0\0", "a GGUF file"),
        (b"hello", "first bytes 68 65 6c 6c 6f"),
        (b"\xff" * 20, "a file of unknown format"),
    ):
        path.write_bytes(data)
        assert format_of(path) is None
        with pytest.raises(ArtifactError, match=message):
            read_weights(path)
    with tarfile.open(path, "w") as file:
        file.add(__file__, "pickle")
    with pytest.raises(ArtifactError, match="a tar archive; PyTorch wrote such files"):
        read_weights(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/archive_format", "pt2")
    with pytest.raises(ArtifactError, match=r"model of torch\.export\n  try    call graphc\.from_pt2"):
        read_weights(path)
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(ArtifactError, match="no file of weights"):
        read_weights(empty)
    with pytest.raises(FileNotFoundError):
        read_weights(tmp_path / "none")


def test_an_archive_that_grows_without_end_is_refused(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "a.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/data.pkl", b"\x80\x02}.")
        with archive.open("net/data/0", "w", force_zip64=True) as member:
            for _ in range(300):
                member.write(bytes(1 << 20))
    with pytest.raises(ArtifactError, match="more than 100 times as many"):
        read_weights(tmp_path / "a.pt")


def test_state_dictionaries():
    assert is_state({}) and is_state({"a": gc.ones(1)})
    assert not is_state({"a": 1}) and not is_state([gc.ones(1)]) and not is_state({1: gc.ones(1)})
