"""Archives (Unix ``ar``) of several object files; a single object file needs no archive."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.base.errors import ArtifactError

_MAGIC = b"!<arch>\n"
_HEADER = 60
_END = b"`\n"


def join_objects(objects: Sequence[bytes]) -> bytes:
    """Join object files to an archive of members ``0.o``, ``1.o`` and so on; a single one is returned unchanged."""
    if len(objects) == 1:
        return objects[0]
    chunks = [_MAGIC]
    for number, code in enumerate(objects):
        fields = f"{number}.o/".ljust(16), "0".ljust(12), "0".ljust(6), "0".ljust(6), "644".ljust(8)
        chunks.append("".join((*fields, str(len(code)).ljust(10))).encode() + _END)
        chunks.append(code + b"\n" * (len(code) % 2))
    return b"".join(chunks)


def split_objects(code: bytes) -> list[bytes]:
    """Return the object files that ``join_objects`` joined. Raises ArtifactError for a damaged archive."""
    if not code.startswith(_MAGIC):
        return [code]
    objects, position = [], len(_MAGIC)
    while position < len(code):
        header = code[position : position + _HEADER]
        size = header[48:58].strip()
        start = position + _HEADER
        if header[58:] != _END or not size.isdigit() or start + int(size) > len(code):
            raise ArtifactError(f"the archive of object code is damaged at byte {position}")
        objects.append(code[start : start + int(size)])
        position = start + int(size) + int(size) % 2
    return objects
