"""IDX files, the format of the MNIST digits, plain or compressed by gzip."""

from __future__ import annotations

import gzip
import os
import stat
import zlib
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.data.dataset import Dataset
from graphc.files.archive import LARGEST_RATIO, fill
from graphc.files.container import MAX_BYTES
from graphc.tensors.creation import from_numpy

__all__ = ["MNIST", "read_idx"]

_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_GZIP = b"\x1f\x8b"
_SPLITS = {True: "train", False: "t10k"}


def read_idx(path: str | os.PathLike[str]) -> np.ndarray:
    """Return the array of an IDX file in the byte order of this machine; gzip is recognized by its first bytes.

    Raises ArtifactError for a wrong magic number or element type, and if the size does not match the dimensions
    (checked before memory is allocated); OSError.
    """
    name = os.fspath(path)
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise ArtifactError(f"{name}: it is not a regular file")
    size = os.path.getsize(path)
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == _GZIP
            file.seek(0)
            if not packed:
                return _read(file, size, name)
            with gzip.GzipFile(fileobj=file) as unpacked:
                return _read(unpacked, size * LARGEST_RATIO, name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ArtifactError(f"{name}: the gzip stream is damaged: {error}") from None


def _read(file: Any, limit: int, name: str) -> np.ndarray:
    head = _exactly(file, 4, name)
    if head[:2] != b"\0\0" or head[2] not in _TYPES:
        raise ArtifactError(f"{name}: not an IDX file: it begins with {head.hex(' ')}")
    dims = _exactly(file, 4 * head[3], name)
    shape = tuple(int.from_bytes(dims[i : i + 4]) for i in range(0, len(dims), 4))
    dtype = np.dtype(_TYPES[head[2]])
    needed = prod(shape) * dtype.itemsize
    if needed > min(limit, MAX_BYTES) or len(shape) > 64:
        raise ArtifactError(
            f"{name}: shape {list(shape)} of {dtype.name} needs {needed} bytes, more than the file can hold"
        )
    data = np.empty(needed, np.uint8)
    count = fill(file, data)
    if count != needed or file.read(1):
        kind = "fewer" if count != needed else "more"
        raise ArtifactError(f"{name}: shape {list(shape)} of {dtype.name} needs {needed} bytes, the file has {kind}")
    array = data.view(dtype).reshape(shape)
    return array.astype(dtype.newbyteorder("="), copy=False)


def _exactly(file: BinaryIO, count: int, name: str) -> bytes:
    data = file.read(count)
    if len(data) < count:
        raise ArtifactError(f"{name}: the IDX file is truncated inside its header")
    return data


class MNIST(Dataset):
    """Handwritten digits from a folder with MNIST's four files (plain or ``.gz``): pairs of image and label.

    Images are f32[1, 28, 28] from 0 to 1, after which ``transform`` is applied; labels are ints. ``images`` (u8[n, 28,
    28]) and ``labels`` (i64[n]) are the raw arrays. Raises FileNotFoundError, and ArtifactError if a file is damaged or
    the two files do not belong together.
    """

    def __init__(
        self, folder: str | os.PathLike[str], train: bool = True, transform: Callable[[Any], Any] | None = None
    ):
        self.images = read_idx(_find(Path(folder), f"{_SPLITS[train]}-images-idx3-ubyte"))
        labels = read_idx(_find(Path(folder), f"{_SPLITS[train]}-labels-idx1-ubyte"))
        fits = labels.ndim == 1 and self.images.shape == (labels.size, 28, 28) and labels.max(initial=0) <= 9
        if not fits or self.images.dtype != np.uint8 or labels.dtype != np.uint8:
            raise ArtifactError(
                f"{os.fspath(folder)}: images {list(self.images.shape)} and labels {list(labels.shape)} "
                "are not a pair of MNIST files"
            )
        self.labels = labels.astype(np.int64)
        self.transform = transform
        if transform is None:
            self.take = self._take

    def __getitem__(self, index: int) -> tuple[Any, int]:
        image = from_numpy(self.images[index, None] / np.float32(255))
        return (image if self.transform is None else self.transform(image)), int(self.labels[index])

    def __len__(self) -> int:
        return len(self.labels)

    def _take(self, indices: list[int]) -> list[Any]:
        rows = np.asarray(indices, np.int64)
        return [from_numpy(self.images[rows, None] / np.float32(255)), from_numpy(self.labels[rows])]


def _find(folder: Path, name: str) -> Path:
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise FileNotFoundError(2, f"neither {name} nor {name}.gz exists", str(folder))
