"""IDX files: every element type, plain and compressed, and refusal of what is damaged."""

from __future__ import annotations

import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from graphc.data import MNIST, DataLoader, read_idx
from graphc.errors import ArtifactError

TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}


def encode(array: np.ndarray, code: int = 8) -> bytes:
    dims = b"".join(n.to_bytes(4) for n in array.shape)
    return bytes([0, 0, code, array.ndim]) + dims + array.astype(TYPES[code]).tobytes()


def compressed(data: bytes) -> bytes:
    """A gzip stream without the time of day, since the bytes are part of test ids."""
    return gzip.compress(data, mtime=0)


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("packed", [False, True])
def test_every_type_comes_back(tmp_path: Path, code: int, packed: bool):
    array = np.arange(24).reshape(2, 3, 4)
    data = encode(array, code)
    (tmp_path / "a").write_bytes(gzip.compress(data) if packed else data)
    found = read_idx(tmp_path / "a")
    assert found.dtype == np.dtype(TYPES[code]).newbyteorder("=")
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize("shape", [(), (0,), (5, 0, 2)])
def test_scalars_and_empty_arrays(tmp_path: Path, shape):
    (tmp_path / "a").write_bytes(encode(np.zeros(shape)))
    assert read_idx(tmp_path / "a").shape == shape


@pytest.mark.parametrize("packed", [False, True])
def test_every_truncation_is_refused(tmp_path: Path, packed: bool):
    data = encode(np.arange(40))
    data = gzip.compress(data) if packed else data
    for length in range(len(data)):
        (tmp_path / "a").write_bytes(data[:length])
        with pytest.raises(ArtifactError, match=r"/a: "):
            read_idx(tmp_path / "a")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (encode(np.arange(3)) + b"\0", "the file has more"),
        (b"\0\0\x07\x01\0\0\0\x01\0", "not an IDX file: it begins with 00 00 07 01"),
        (b"PK\3\4....", "not an IDX file"),
        (bytes([0, 0, 8, 4]) + b"\xff" * 16 + b"\0" * 9, "more than the file can hold"),
        (bytes([0, 0, 14, 255]) + b"\0\0\0\1" * 255 + b"\0" * 8, "more than the file can hold"),
        (compressed(bytes([0, 0, 8, 1]) + b"\x7f\xff\xff\xff" + b"\0" * 9), "more than the file can hold"),
        (compressed(encode(np.arange(9)))[:-8] + b"\0" * 8, "gzip stream is damaged"),
    ],
)
def test_wrong_content_is_refused(tmp_path: Path, data: bytes, text: str):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(ArtifactError, match=text):
        read_idx(tmp_path / "a")


def write_mnist(folder: Path, count: int = 5) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(0)
    images, labels = generator.integers(0, 256, (count, 28, 28)), generator.integers(0, 10, count)
    (folder / "train-images-idx3-ubyte.gz").write_bytes(gzip.compress(encode(images)))
    (folder / "train-labels-idx1-ubyte").write_bytes(encode(labels))
    return images, labels


def test_digits(tmp_path: Path):
    images, labels = write_mnist(tmp_path)
    data = MNIST(tmp_path)
    image, label = data[3]
    assert image.shape == (1, 28, 28)
    np.testing.assert_allclose(image.numpy()[0], images[3] / 255, rtol=1e-6)
    assert label == labels[3]
    batch, marks = next(iter(DataLoader(data, 4)))
    assert batch.shape == (4, 1, 28, 28)
    assert marks.tolist() == labels[:4].tolist()
    slow = next(iter(DataLoader(MNIST(tmp_path, transform=lambda x: x), 4)))
    np.testing.assert_array_equal(batch.numpy(), slow[0].numpy())
    assert MNIST(tmp_path, transform=lambda x: x.flatten())[0][0].shape == (784,)
    with pytest.raises(FileNotFoundError, match="t10k-images"):
        MNIST(tmp_path, train=False)


@pytest.mark.parametrize("labels", [np.arange(4), np.array([1, 2, 3, 4, 10]), np.zeros((5, 1))])
def test_files_that_do_not_belong_together(tmp_path: Path, labels: np.ndarray):
    write_mnist(tmp_path)
    (tmp_path / "train-labels-idx1-ubyte").write_bytes(encode(labels))
    with pytest.raises(ArtifactError, match="not a pair of MNIST files"):
        MNIST(tmp_path)


def test_lengths_are_products_in_exact_arithmetic(tmp_path: Path):
    shape = (1 << 31, 1 << 31, 4)
    assert math.prod(shape) % (1 << 64) == 0
    (tmp_path / "a").write_bytes(bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4) for n in shape))
    with pytest.raises(ArtifactError, match="more than the file can hold"):
        read_idx(tmp_path / "a")
