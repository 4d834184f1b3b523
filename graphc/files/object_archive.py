"""Object code that consists of several object files, as one Unix archive (``ar``); a single file stands for itself."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.base.errors import ArtifactError

_MAGIC = b"!<arch>\n"
_HEADER = 60
_END = b"`\n"


def join_objects(objects: Sequence[bytes]) -> bytes:
    """One object file as it is, several as an archive of members ``0.o``, ``1.o`` and so on."""
    if len(objects) == 1:
        return objects[0]
    parts = [_MAGIC]
    for number, code in enumerate(objects):
        fields = f"{number}.o/".ljust(16), "0".ljust(12), "0".ljust(6), "0".ljust(6), "644".ljust(8)
        parts.append("".join((*fields, str(len(code)).ljust(10))).encode() + _END)
        parts.append(code + b"\n" * (len(code) % 2))
    return b"".join(parts)


def split_objects(code: bytes) -> list[bytes]:
    """The object files that ``join_objects`` has joined. Raises ArtifactError for a damaged archive."""
    if not code.startswith(_MAGIC):
        return [code]
    found, position = [], len(_MAGIC)
    while position < len(code):
        header = code[position : position + _HEADER]
        size = header[48:58].strip()
        start = position + _HEADER
        if header[58:] != _END or not size.isdigit() or start + int(size) > len(code):
            raise ArtifactError(f"the archive of object code is damaged at byte {position}")
        found.append(code[start : start + int(size)])
        position = start + int(size) + int(size) % 2
    return found
