"""Large weights of ONNX files, left where the file is mapped: protobuf parses the rest, which is small."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

LEAST = 1 << 16
"""Bytes of a tensor that stays in the file."""
MOST_FIELDS = 1000
"""Fields of a tensor that is no list of single numbers: its dimensions, its type, its name and its data."""
_GRAPH, _INITIALIZER, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 7, 5, 9, 13, 14
"""Field numbers of ModelProto, GraphProto and TensorProto (three of them)."""
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5
"""Wire types of protobuf."""


class WireField(NamedTuple):
    """A field of a protobuf message, as positions in the file."""

    number: int
    kind: int
    begin: int
    start: int
    """First byte of the value, after tag and length."""
    end: int


class LargeData:
    """Weights in a mapped file. In the small message each is external data at a location that no file can name."""

    def __init__(self, data: memoryview):
        self._data = data
        self._location = os.urandom(16).hex()

    def find(self, entries: dict[str, str]) -> np.ndarray | None:
        """Return the bytes that external data of the small message refers to, a view of the file; None for others."""
        if entries.get("location") != self._location:
            return None
        offset, length = int(entries["offset"]), int(entries["length"])
        return np.frombuffer(self._data, np.uint8, length, offset)

    def small_message(self) -> bytes:
        """Return the ModelProto without large weights. Damaged data is returned as it is, for protobuf to refuse."""
        try:
            return b"".join(self._model())
        except (IndexError, ValueError):
            return bytes(self._data)

    def _model(self) -> Iterator[bytes | memoryview]:
        for field in _fields(self._data, 0, len(self._data)):
            if field.number == _GRAPH and field.kind == _BYTES:
                yield _encoded(_GRAPH, b"".join(self._graph(field)))
            else:
                yield self._data[field.begin : field.end]

    def _graph(self, graph: WireField) -> Iterator[bytes | memoryview]:
        for field in _fields(self._data, graph.start, graph.end):
            if field.number == _INITIALIZER and field.kind == _BYTES and field.end - field.start >= LEAST:
                yield _encoded(_INITIALIZER, b"".join(self._tensor(field)))
            else:
                yield self._data[field.begin : field.end]

    def _tensor(self, tensor: WireField) -> Iterator[bytes | memoryview]:
        fields = list(islice(_fields(self._data, tensor.start, tensor.end), MOST_FIELDS))
        raw = [f for f in fields if f.number == _RAW_DATA and f.kind == _BYTES]
        is_external = any(f.number in (_EXTERNAL_DATA, _DATA_LOCATION) for f in fields)
        if len(fields) == MOST_FIELDS or len(raw) != 1 or raw[0].end - raw[0].start < LEAST or is_external:
            yield self._data[tensor.start : tensor.end]
            return
        yield from (self._data[f.begin : f.end] for f in fields if f is not raw[0])
        start, end = raw[0].start, raw[0].end
        for key, value in (("location", self._location), ("offset", start), ("length", end - start)):
            yield _encoded(_EXTERNAL_DATA, _encoded(1, key.encode()) + _encoded(2, str(value).encode()))
        yield bytes([_DATA_LOCATION << 3 | _VARINT, 1])


def _fields(data: memoryview, position: int, end: int) -> Iterator[WireField]:
    """Yield the fields of a message. Raise ValueError or IndexError where it is not one."""
    while position < end:
        begin = position
        tag, position = _varint(data, position)
        kind, start = tag & 7, position
        if kind == _BYTES:
            size, start = _varint(data, position)
            position = start + size
        elif kind == _VARINT:
            _, position = _varint(data, position)
        elif kind in (_EIGHT, _FOUR):
            position += 8 if kind == _EIGHT else 4
        else:
            raise ValueError(f"wire type {kind}")
        if position > end:
            raise ValueError("a field ends after its message")
        yield WireField(tag >> 3, kind, begin, start, position)


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    """Return a number of variable length, and the position after it."""
    byte = data[position]
    if byte < 128:
        return byte, position + 1
    value, shift = byte & 127, 7
    while byte >= 128:
        position += 1
        byte = data[position]
        value |= (byte & 127) << shift
        shift += 7
        if shift > 70:
            raise ValueError("a number has more than ten bytes")
    return value, position + 1


def _encoded(number: int, value: bytes) -> bytes:
    """Return a field of bytes."""
    return _number(number << 3 | _BYTES) + _number(len(value)) + value


def _number(value: int) -> bytes:
    encoded = bytearray()
    while value >= 128:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
