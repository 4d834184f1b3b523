"""Reader of GGUF files, version 3: metadata, and tensors that stay in the mapped file."""

from __future__ import annotations

import os
import stat
import struct
from math import prod
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArtifactError, UnsupportedError
from graphc.files.container import MAX_BYTES
from graphc.llm.blocks import FORMATS, BlockFormat

MAGIC = b"GGUF"
_VERSION = 3
_SCALARS = {
    0: np.dtype("u1"),
    1: np.dtype("i1"),
    2: np.dtype("<u2"),
    3: np.dtype("<i2"),
    4: np.dtype("<u4"),
    5: np.dtype("<i4"),
    6: np.dtype("<f4"),
    7: np.dtype("?"),
    10: np.dtype("<u8"),
    11: np.dtype("<i8"),
    12: np.dtype("<f8"),
}
"""Types of metadata with one number."""
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")
"""Length of a string, before its bytes."""
_MAX_RANK = 4
_ALIGNMENT, _MAX_ALIGNMENT = 32, 1 << 16
"""Bytes: default of ``general.alignment``, and the largest value that is read."""
_AGAIN = "download or convert the file again"


class GgufTensor(NamedTuple):
    """Tensor of a file: its blocks are a view of the mapped file."""

    format: BlockFormat
    blocks: np.ndarray
    """[..., K / format.size] of ``format.fields``: the last dimension of the tensor is divided into blocks."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Return the sizes of the tensor, slowest first."""
        return (*self.blocks.shape[:-1], self.blocks.shape[-1] * self.format.size)


class GgufFile(NamedTuple):
    """Content of a GGUF file."""

    path: str
    metadata: dict[str, Any]
    """Numbers, strings, lists of strings, and arrays, by key."""
    tensors: dict[str, GgufTensor]


class _Cursor:
    """Position in the header of a file. Every read is checked against the end of the file."""

    def __init__(self, path: str, data: np.ndarray):
        self.path, self.data, self.position = path, data, 0

    def error(self, what: str) -> ArtifactError:
        return ArtifactError(f"{self.path}: {what} (at byte {self.position})", remedy=_AGAIN)

    def take(self, count: int, what: str) -> memoryview:
        """Return the next bytes."""
        end = self.position + count
        if end > len(self.data):
            raise self.error(f"the file ends inside {what}: it needs {count} bytes")
        view = self.data[self.position : end].data
        self.position = end
        return view

    def number(self, code: str, what: str) -> int:
        """Return an integer of the ``struct`` type ``code``."""
        return struct.unpack("<" + code, self.take(struct.calcsize(code), what))[0]

    def string(self, what: str) -> str:
        start = self.position
        try:
            return str(self.take(self.number("Q", what), what), "utf-8")
        except UnicodeDecodeError:
            self.position = start
            raise self.error(f"{what} is not UTF-8") from None

    def value(self, what: str) -> Any:
        """Return a value of metadata: a number, a string, a list of strings, or an array."""
        kind = self.number("I", what)
        if kind == _STRING:
            return self.string(what)
        if kind == _ARRAY:
            return self._array(what)
        return self._numbers(kind, 1, what)[0].item()

    def _array(self, what: str) -> Any:
        kind, count = self.number("I", what), self.number("Q", what)
        if kind != _STRING:
            return self._numbers(kind, count, what)
        if count * _LENGTH.size > len(self.data) - self.position:
            raise self.error(f"the file ends inside {what}: it has {count} strings")
        return self._strings(count, what)

    def _strings(self, count: int, what: str) -> list[str]:
        """Return the next strings. Vocabularies have tens of thousands, so the loop reads the file without calls."""
        buffer, end, total = self.data.data, self.position, len(self.data)
        strings = []
        for _ in range(count):
            start = end + _LENGTH.size
            end = start + _LENGTH.unpack_from(buffer, end)[0] if start <= total else start
            if end > total:
                self.position = min(start, total)
                raise self.error(f"the file ends inside {what}: it has {count} strings")
            try:
                strings.append(str(buffer[start:end], "utf-8"))
            except UnicodeDecodeError:
                self.position = start
                raise self.error(f"{what} is not UTF-8") from None
        self.position = end
        return strings

    def _numbers(self, kind: int, count: int, what: str) -> np.ndarray:
        dtype = _SCALARS.get(kind)
        if dtype is None:
            raise self.error(f"{what} has the unknown type {kind}")
        numbers = np.frombuffer(self.take(count * dtype.itemsize, what), np.uint8)
        return numbers != 0 if dtype.kind == "b" else numbers.view(dtype)


def read_gguf(path: str | os.PathLike[str]) -> GgufFile:
    """Map a file and read its header; weights are read when they are used.

    Every size is checked against the file before memory is taken. Raises ArtifactError for damaged files and for files
    of other formats, UnsupportedError for other versions and block formats; OSError.
    """
    name = os.fspath(path)
    info = os.stat(path)
    if not stat.S_ISREG(info.st_mode) or not 0 < info.st_size <= MAX_BYTES:
        raise ArtifactError(f"{name}: it is not a regular file of 1 to {MAX_BYTES} bytes")
    cursor = _Cursor(name, np.memmap(path, np.uint8, "r").view(np.ndarray))
    if bytes(cursor.take(min(4, info.st_size), "its magic bytes")) != MAGIC:
        raise ArtifactError(f"{name}: it is not a GGUF file", remedy="pass a .gguf file")
    version = cursor.number("I", "its version")
    if version != _VERSION:
        raise UnsupportedError(
            f"{name}: version {version} of GGUF; only version {_VERSION}, little-endian, is read",
            remedy="convert it again with a newer converter",
        )
    tensors, pairs = cursor.number("Q", "the number of tensors"), cursor.number("Q", "the number of metadata entries")
    metadata: dict[str, Any] = {}
    for _ in range(pairs):
        key = cursor.string("a key of the metadata")
        if key in metadata:
            raise cursor.error(f"the metadata hold {key!r} twice")
        metadata[key] = cursor.value(f"the metadata {key!r}")
    return GgufFile(name, metadata, _tensors(cursor, tensors, metadata.get("general.alignment", _ALIGNMENT)))


def _tensors(cursor: _Cursor, count: int, alignment: Any) -> dict[str, GgufTensor]:
    valid = isinstance(alignment, int) and 0 < alignment <= _MAX_ALIGNMENT and not alignment & (alignment - 1)
    if not valid:
        raise cursor.error(f"general.alignment is {alignment!r}, not a power of two up to {_MAX_ALIGNMENT}")
    entries: dict[str, tuple[BlockFormat, tuple[int, ...], int]] = {}
    for _ in range(count):
        name = cursor.string("the name of a tensor")
        if name in entries:
            raise cursor.error(f"two tensors are named {name!r}")
        entries[name] = _entry(cursor, name)
    start = -(-cursor.position // alignment) * alignment
    tensors = {}
    for name, (kind, shape, offset) in entries.items():
        size = prod(shape) * kind.bytes
        if offset % alignment or start + offset + size > len(cursor.data):
            raise cursor.error(
                f"the data of {name!r} ({size} bytes from {start + offset}) are not inside the file, or not aligned"
            )
        tensors[name] = GgufTensor(kind, cursor.data[start + offset :][:size].view(kind.fields).reshape(shape))
    return tensors


def _entry(cursor: _Cursor, name: str) -> tuple[BlockFormat, tuple[int, ...], int]:
    """Read format, shape in blocks, and offset of a tensor."""
    rank = cursor.number("I", f"the entry of {name!r}")
    if not 0 < rank <= _MAX_RANK:
        raise cursor.error(f"{name!r} has {rank} dimensions, not 1 to {_MAX_RANK}")
    sizes = [cursor.number("Q", f"the entry of {name!r}") for _ in range(rank)]
    number, offset = cursor.number("I", f"the entry of {name!r}"), cursor.number("Q", f"the entry of {name!r}")
    kind = FORMATS.get(number)
    if kind is None:
        raise UnsupportedError(
            f"{cursor.path}: {name!r} has the block format {number}",
            remedy=f"convert the file to one of {', '.join(k.name for k in FORMATS.values())}",
        )
    if sizes[0] % kind.size or prod(sizes) == 0:
        raise cursor.error(f"{name!r} has sizes {sizes}, which are not blocks of {kind.size}")
    return kind, (*reversed(sizes[1:]), sizes[0] // kind.size), offset
