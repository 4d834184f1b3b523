"""NumPy files: arrays come back as they were, and damaged or dangerous files are refused."""

from __future__ import annotations

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from graphc.errors import ArgumentError, ArtifactError
from graphc.files.numpy_file import read_npy, read_npz, write_npz

ARRAYS = [
    np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(5, dtype=">i4"),
    np.array(True),
    np.zeros((3, 0), np.int8),
    np.array([1 + 2j]),
    np.arange(3, dtype=np.float16),
]


@pytest.mark.parametrize("array", ARRAYS, ids=str)
def test_arrays_come_back(tmp_path: Path, array: np.ndarray):
    np.save(tmp_path / "a.npy", array)
    found = read_npy(tmp_path / "a.npy")
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.flags.writeable
    np.testing.assert_array_equal(found, array)


def test_archives_come_back(tmp_path: Path):
    arrays = {f"layer/{i}": a for i, a in enumerate(ARRAYS)}
    write_npz(tmp_path / "a.npz", arrays)
    np.savez_compressed(tmp_path / "b.npz", **{k.replace("/", "."): v for k, v in arrays.items()})
    found, compressed = read_npz(tmp_path / "a.npz"), read_npz(tmp_path / "b.npz")
    with np.load(tmp_path / "a.npz", allow_pickle=False) as numpy_found:
        for name, array in arrays.items():
            np.testing.assert_array_equal(found[name], array)
            np.testing.assert_array_equal(numpy_found[name], array)
            np.testing.assert_array_equal(compressed[name.replace("/", ".")], array)
    assert list(found) == list(arrays)


def test_equal_arrays_make_equal_files(tmp_path: Path):
    for name in ("a", "b"):
        write_npz(tmp_path / name, {"x": np.arange(3)})
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_failed_write_leaves_the_old_file(tmp_path: Path):
    write_npz(tmp_path / "a.npz", {"x": np.arange(3)})
    before = (tmp_path / "a.npz").read_bytes()
    with pytest.raises(ArgumentError, match="'y' is a list of object"):
        write_npz(tmp_path / "a.npz", {"x": np.zeros(9), "y": [object()]})
    assert (tmp_path / "a.npz").read_bytes() == before
    assert os.listdir(tmp_path) == ["a.npz"]


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, place: Path):
        self.place = place

    def __reduce__(self):
        return os.mkdir, (str(self.place),)


def test_objects_are_refused_and_never_unpickled(tmp_path: Path):
    array = np.array([Trap(tmp_path / "trapped")], object)
    np.save(tmp_path / "a.npy", array, allow_pickle=True)
    np.savez(tmp_path / "a.npz", x=array)
    with pytest.raises(ArtifactError, match="no numbers"):
        read_npy(tmp_path / "a.npy")
    with pytest.raises(ArtifactError, match="no numbers"):
        read_npz(tmp_path / "a.npz")
    assert not (tmp_path / "trapped").exists()


def with_header(header: str, body: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1099511627776, 1099511627776), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, -1), }",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }",
        "{'descr': '|O', 'fortran_order': False, 'shape': (), }",
        "{'descr': '<U4', 'fortran_order': False, 'shape': (), }",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
        "{'descr': '<f4', 'fortran_order': False}",
        "__import__('os').mkdir('trapped')",
        "((((((((((((((((((((((((((((((((((((((((",
        "",
    ],
)
def test_wrong_headers_are_refused(tmp_path: Path, header: str):
    (tmp_path / "a.npy").write_bytes(with_header(header, b"\0" * 4))
    with pytest.raises(ArtifactError, match=r"a\.npy: "):
        read_npy(tmp_path / "a.npy")


def test_every_truncation_and_extra_bytes_are_refused(tmp_path: Path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(7))
    data = path.read_bytes()
    for length in range(len(data)):
        path.write_bytes(data[:length])
        with pytest.raises(ArtifactError):
            read_npy(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(ArtifactError, match="57 bytes follow the header"):
        read_npy(path)


def test_members_that_are_no_arrays_are_refused(tmp_path: Path):
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(2))
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as archive:
        archive.writestr("x.npy", buffer.getvalue())
        archive.writestr("evil.pkl", b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ArtifactError, match=r"evil\.pkl"):
        read_npz(tmp_path / "a.npz")


def test_folders_and_missing_files(tmp_path: Path):
    with pytest.raises(ArtifactError, match="regular file"):
        read_npy(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_npy(tmp_path / "none.npy")


@pytest.mark.parametrize("shape", ["(True,)", "(0, 36893488147419103232)", "(False, 3)"])
def test_a_shape_is_made_of_whole_numbers_that_are_not_too_large(tmp_path, shape):
    path = tmp_path / "x.npy"
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".ljust(117).encode() + b"\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(4 * ("True" in shape)))
    with pytest.raises(ArtifactError, match="shape"):
        read_npy(path)
