"""Data of tensors beside a model file: read only from regular files within its folder, no links among them."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

import numpy as np

from graphc.base.errors import ArtifactError

MOST_FILLED = 1 << 30
"""Bytes of all sparse tensors of a model, written out."""
MOST_SHARED = 4
"""How often tensors may read a file in all: tied ones may lie in the same place."""
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = _OPEN | os.O_DIRECTORY


class External:
    """The folder of a model file. Files in it are opened part by part from a descriptor of the folder, so that what was
    checked is what is read."""

    def __init__(self, folder: str | None):
        """None: a model that has no folder, of which no data can lie beside it."""
        self._folder = folder
        self._read: dict[tuple[int, int], int] = {}
        """Bytes that tensors took, by device and number of the file."""
        self._filled = 0

    def fill(self, size: int, title: str) -> None:
        """Counts bytes of memory that no file has, such as the zeros of a sparse tensor. Raises ArtifactError where
        they are too many in all."""
        self._filled += size
        if self._filled > MOST_FILLED:
            raise ArtifactError(f"{title}: sparse tensors take more than {MOST_FILLED} bytes as what they stand for")

    def read(self, entries: Mapping[str, str], size: int, title: str) -> np.ndarray:
        """The bytes of a tensor, which are to be ``size``, mapped from the file. Raises ArtifactError for a place
        outside of the folder, links, and a file that has not that many bytes."""
        location = entries.get("location", "")
        offset, length = _whole(entries, "offset", 0, title), _whole(entries, "length", size, title)
        if length != size:
            raise ArtifactError(f"{title}: {length} bytes in {location[:80]!r}, its shape needs {size}")
        if self._folder is None:
            raise ArtifactError(
                f"{title}: its data is in the file {location[:80]!r}, and the model has no folder",
                remedy="from_onnx of the path of the file",
            )
        if size == 0:
            return np.empty(0, np.uint8)
        file = self._open(location, title)
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
                raise ArtifactError(f"{title}: {location[:80]!r} is no regular file with one name")
            if offset + size > info.st_size:
                raise ArtifactError(
                    f"{title}: bytes {offset}..{offset + size} of {location[:80]!r}, which has {info.st_size}"
                )
            key = info.st_dev, info.st_ino
            self._read[key] = self._read.get(key, 0) + size
            if self._read[key] > MOST_SHARED * info.st_size:
                raise ArtifactError(f"{title}: tensors read {location[:80]!r} more than {MOST_SHARED} times over")
            with os.fdopen(os.dup(file), "rb") as opened:
                return np.memmap(opened, np.uint8, "r", offset, (size,))
        finally:
            os.close(file)

    def _open(self, location: str, title: str) -> int:
        parts = location.split("/")
        wrong = os.path.isabs(location) or "\\" in location or "\0" in location
        if wrong or not all(part not in ("", ".", "..") for part in parts):
            raise ArtifactError(f"{title}: {location[:80]!r} is no path within the folder of the model")
        assert self._folder is not None
        at = os.open(self._folder or ".", os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            for part in parts[:-1]:
                inner = os.open(part, _FOLDER, dir_fd=at)
                os.close(at)
                at = inner
            return os.open(parts[-1], _OPEN | os.O_NONBLOCK, dir_fd=at)
        except OSError as error:
            raise ArtifactError(f"{title}: {location[:80]!r} cannot be opened: {error.strerror}") from None
        finally:
            os.close(at)


def _whole(entries: Mapping[str, str], name: str, missing: int, title: str) -> int:
    text = entries.get(name, "")
    if not text:
        return missing
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise ArtifactError(f"{title}: the {name} {text[:40]!r} of its data is no number of bytes")
    return int(text)
