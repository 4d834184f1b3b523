"""Zip archives of arrays: every size is checked before memory is allocated, and members are read as a whole."""

from __future__ import annotations

import os
import stat
import zipfile
import zlib
from types import TracebackType
from typing import Any, Self

import numpy as np

from graphc.base.errors import ArtifactError
from graphc.files.container import MAX_BYTES

MAX_MEMBERS = 1 << 20
LARGEST_RATIO = 1032
"""Largest expansion factor of a deflate stream."""
FREE_BYTES = 1 << 28
"""Total size up to which an archive may expand by any factor."""
RATIO = 100
"""Largest expansion factor of a larger archive; trained weights compress to half at best."""
_KINDS = {zipfile.ZIP_STORED: "stored", zipfile.ZIP_DEFLATED: "deflated"}


class Archive:
    """An open zip archive. Raises ArtifactError if it is damaged, encrypted, or declares more bytes than it can hold.

    Names of members are only keys: nothing is ever written to a path from an archive.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = os.fspath(path)
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise ArtifactError(f"{self.path}: it is not a regular file")
        try:
            self._file = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError) as error:
            raise self.error(f"not a readable zip archive: {error}") from None
        try:
            self._members = self._check()
        # NOTE: Ctrl-C too, because no other code could close the file.
        except BaseException:
            self._file.close()
            raise

    def error(self, what: str, remedy: str | None = None) -> ArtifactError:
        """Return an ArtifactError that names this file."""
        return ArtifactError(f"{self.path}: {what}", remedy=remedy)

    def _check(self) -> dict[str, zipfile.ZipInfo]:
        if not all(e.filename for e in self._file.infolist()):
            raise self.error("a member has no name")
        entries = [e for e in self._file.infolist() if not e.is_dir()]
        members = {e.filename: e for e in entries}
        if len(members) != len(entries):
            raise self.error("two members have the same name")
        if len(members) > MAX_MEMBERS or sum(e.file_size for e in entries) > MAX_BYTES:
            raise self.error("the archive is too large")
        for entry in entries:
            self._check_member(entry)
        self._check_growth(sum(e.file_size for e in entries))
        return members

    def _check_growth(self, total: int) -> None:
        size = os.path.getsize(self.path)
        if total > max(FREE_BYTES, RATIO * size):
            raise self.error(
                f"its {size} bytes grow to {total}, more than {RATIO} times as many",
                remedy="save it without compression (numpy.savez, graphc.save_state) if its origin is trusted",
            )

    def _check_member(self, entry: zipfile.ZipInfo) -> None:
        if entry.flag_bits & 1:
            raise self.error(f"{entry.filename!r} is encrypted")
        if entry.compress_type not in _KINDS:
            raise self.error(
                f"{entry.filename!r} is compressed by method {entry.compress_type}, which is not supported"
            )
        stored = entry.compress_type == zipfile.ZIP_STORED
        most = entry.compress_size if stored else entry.compress_size * LARGEST_RATIO
        if entry.compress_size > os.path.getsize(self.path) or entry.file_size > most:
            raise self.error(f"{entry.filename!r} declares {entry.file_size} bytes, more than the archive can hold")

    @property
    def names(self) -> list[str]:
        """Names of the members, in the order of the archive."""
        return list(self._members)

    def size(self, name: str) -> int:
        """Bytes of a member."""
        return self._members[name].file_size

    def is_compressed(self, name: str) -> bool:
        """Return whether a member is compressed."""
        return self._members[name].compress_type != zipfile.ZIP_STORED

    def read(self, name: str) -> np.ndarray:
        """Return the bytes of a member as a new u8 array, after comparing its checksum."""
        entry = self._members[name]
        data = np.empty(entry.file_size, np.uint8)
        try:
            with self._file.open(entry) as stream:
                count = fill(stream, data)
                extra = stream.read(1)
        except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, ValueError, OSError) as error:
            raise self.error(f"member {name!r} is damaged: {error}", remedy="copy or save the file again") from None
        if count != data.size or extra:
            raise self.error(f"member {name!r} does not have its declared length")
        return data

    def close(self) -> None:
        """Close the file; members can no longer be read."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def fill(stream: Any, data: np.ndarray) -> int:
    """Read from a stream into ``data`` (u8) until either ends; return the number of bytes."""
    view, position = data.data, 0
    while position < data.size:
        count = stream.readinto(view[position:])
        if not count:
            break
        position += count
    return position
