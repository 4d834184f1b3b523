"""Tensor data next to a model file, read only from regular files within its folder, without following links."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping

import numpy as np

from graphc.base.errors import ArtifactError

MOST_FILLED = 1 << 30
"""Bytes of all sparse tensors of a model, expanded."""
MOST_SHARED = 4
"""Times that tensors may read a file over. Tied tensors may share bytes."""
_OPEN = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = _OPEN | os.O_DIRECTORY


class External:
    """Folder of a model file.

    Paths are opened component by component from a descriptor of the folder: checks and reads see the same file.
    """

    def __init__(self, folder: str | None):
        """Take the folder of the model file. ``None`` means a model without a folder, which cannot have external
        data."""
        self._folder = folder
        self._read: dict[tuple[int, int], int] = {}
        """Bytes that tensors have read, by device and inode of the file."""
        self._filled = 0

    def fill(self, size: int, title: str) -> None:
        """Count bytes of memory that no file backs, such as the zeros of a sparse tensor.

        Raises ArtifactError where the total exceeds the limit.
        """
        self._filled += size
        if self._filled > MOST_FILLED:
            raise ArtifactError(f"{title}: sparse tensors take more than {MOST_FILLED} bytes once they are expanded")

    def read(self, entries: Mapping[str, str], size: int, title: str) -> np.ndarray:
        """Return the ``size`` bytes of a tensor, mapped from its file.

        Raises ArtifactError for a location outside of the folder, for links, and for a file with fewer bytes.
        """
        location = entries.get("location", "")
        offset, length = _whole(entries, "offset", 0, title), _whole(entries, "length", size, title)
        if length != size:
            raise ArtifactError(f"{title}: {length} bytes in {location[:80]!r}, its shape needs {size}")
        if self._folder is None:
            raise ArtifactError(
                f"{title}: its data is in the file {location[:80]!r}, and the model has no folder",
                remedy="pass the path of the model file to from_onnx",
            )
        if size == 0:
            return np.empty(0, np.uint8)
        file = self._open(location, title)
        try:
            info = os.fstat(file)
            if not stat.S_ISREG(info.st_mode) or info.st_nlink != 1:
                raise ArtifactError(f"{title}: {location[:80]!r} is not a regular file with exactly one name")
            if offset + size > info.st_size:
                raise ArtifactError(
                    f"{title}: bytes {offset}..{offset + size} of {location[:80]!r}, which has {info.st_size}"
                )
            key = info.st_dev, info.st_ino
            self._read[key] = self._read.get(key, 0) + size
            if self._read[key] > MOST_SHARED * info.st_size:
                raise ArtifactError(f"{title}: tensors read {location[:80]!r} more than {MOST_SHARED} times over")
            with os.fdopen(os.dup(file), "rb") as stream:
                return np.memmap(stream, np.uint8, "r", offset, (size,))
        finally:
            os.close(file)

    def _open(self, location: str, title: str) -> int:
        components = location.split("/")
        invalid = os.path.isabs(location) or "\\" in location or "\0" in location
        if invalid or not all(component not in ("", ".", "..") for component in components):
            raise ArtifactError(f"{title}: {location[:80]!r} is not a path within the folder of the model")
        assert self._folder is not None
        folder = os.open(self._folder or ".", os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
        try:
            for component in components[:-1]:
                inner = os.open(component, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = inner
            return os.open(components[-1], _OPEN | os.O_NONBLOCK, dir_fd=folder)
        except OSError as error:
            raise ArtifactError(f"{title}: {location[:80]!r} cannot be opened: {error.strerror}") from None
        finally:
            os.close(folder)


def _whole(entries: Mapping[str, str], name: str, default: int, title: str) -> int:
    text = entries.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdecimal()) or len(text) > 18:
        raise ArtifactError(f"{title}: the {name} {text[:40]!r} of its data is not a number of bytes")
    return int(text)
