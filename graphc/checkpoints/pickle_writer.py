"""Writer of pickles: containers, numbers and strings directly, other objects as calls of named functions."""

from __future__ import annotations

import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import ArgumentError

MAX_DEPTH = 128
_LONGEST_INT = 255
_STORABLE = "save tensors, dictionaries, lists, tuples, numbers, strings, bools and None only"


class Name(NamedTuple):
    """Class or function by its path."""

    module: str
    name: str


class PickledCall(NamedTuple):
    """Object as the result of a function call."""

    function: Name
    arguments: tuple[Any, ...]


class Persistent(NamedTuple):
    """Object stored outside of the pickle under this id."""

    identity: tuple[Any, ...]


class PickleWriter:
    """Writer of a pickle of protocol 2 with opcodes that ``torch.load(weights_only=True)`` accepts.

    ``describe`` returns the Call that creates an object other than the plain ones, or None if it cannot be saved.
    """

    def __init__(self, describe: Callable[[Any], PickledCall | None]):
        self.describe = describe
        self.out = bytearray(b"\x80\x02")
        self.memo: dict[int, int] = {}
        self.memoized: list[Any] = []
        """Objects in the memo; the references keep their ids from being reused."""

    def dump(self, value: Any) -> bytes:
        """Return the pickle of an object, in which repeated objects are written once. Raises ArgumentError with the
        path of a value that cannot be written."""
        self._write(value, ())
        self.out += b"."
        return bytes(self.out)

    def _write(self, value: Any, path: tuple[Any, ...]) -> None:
        if len(path) > MAX_DEPTH:
            raise ArgumentError(f"the object is nested more than {MAX_DEPTH} deep")
        if isinstance(value, np.generic):
            value = value.item()
        number = self.memo.get(id(value))
        if number is not None:
            self.out += struct.pack("<cI", b"j", number)
            return
        for kinds, write in _WRITERS:
            if isinstance(value, kinds):
                write(self, value, path)
                return
        call = self.describe(value)
        if call is None:
            remedy = "save its state_dict()" if hasattr(value, "state_dict") else _STORABLE
            raise ArgumentError(f"{_text(path)} is a {type(value).__name__}, which cannot be saved", remedy=remedy)
        self._write_call(call, path)
        self._remember(value)

    def _remember(self, value: Any) -> None:
        self.memo[id(value)] = len(self.memoized)
        self.out += struct.pack("<cI", b"r", len(self.memoized))
        self.memoized.append(value)

    # ---- plain objects

    def _write_constant(self, value: Any, path: Any) -> None:
        self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]

    def _write_int(self, value: int, path: tuple[Any, ...]) -> None:
        if -(1 << 31) <= value < 1 << 31:
            self.out += struct.pack("<ci", b"J", value)
            return
        digits = pickle.encode_long(int(value))
        if len(digits) > _LONGEST_INT:
            raise ArgumentError(
                f"{_text(path)} is a number of {len(digits)} bytes, at most {_LONGEST_INT} can be saved"
            )
        self.out += struct.pack("<cB", b"\x8a", len(digits)) + digits

    def _write_float(self, value: float, path: Any) -> None:
        self.out += struct.pack(">cd", b"G", value)

    def _write_text(self, value: str, path: Any) -> None:
        data = value.encode("utf-8", "surrogatepass")
        self.out += struct.pack("<cI", b"X", len(data)) + data

    # ---- containers

    def _write_list(self, value: list[Any], path: tuple[Any, ...]) -> None:
        self.out += b"]"
        self._remember(value)
        self.out += b"("
        for i, item in enumerate(value):
            self._write(item, (*path, i))
        self.out += b"e"

    def _write_tuple(self, value: Sequence[Any], path: tuple[Any, ...]) -> None:
        self.out += b"("
        for i, item in enumerate(value):
            self._write(item, (*path, i))
        self.out += b"t"
        self._remember(value)

    def _write_dict(self, value: dict[Any, Any], path: tuple[Any, ...]) -> None:
        ordered = isinstance(value, OrderedDict)
        self.out += b"ccollections\nOrderedDict\n)R" if ordered else b"}"
        self._remember(value)
        self.out += b"("
        for key, item in value.items():
            if not isinstance(key, str | int | float | None):
                raise ArgumentError(
                    f"{_text(path)} has a key of class {type(key).__name__}",
                    remedy="use strings, numbers, bools or None as keys",
                )
            self._write(key, path)
            self._write(item, (*path, key))
        self.out += b"u"
        metadata = getattr(value, "_metadata", None)
        if ordered and metadata:
            self._write({"_metadata": metadata}, (*path, "_metadata"))
            self.out += b"b"

    # ---- other objects

    def _write_name(self, value: Name, path: Any) -> None:
        self.out += f"c{value.module}\n{value.name}\n".encode()

    def _write_call(self, value: PickledCall, path: tuple[Any, ...]) -> None:
        self._write_name(value.function, path)
        self._write_tuple(value.arguments, path)
        self.out += b"R"

    def _write_persistent(self, value: Persistent, path: tuple[Any, ...]) -> None:
        self._write_tuple(value.identity, path)
        self.out += b"Q"


def _text(path: tuple[Any, ...]) -> str:
    return "".join(f"[{key!r}]" for key in path) or "the object"


_WRITERS: tuple[tuple[Any, Callable[[PickleWriter, Any, tuple[Any, ...]], None]], ...] = (
    ((bool, type(None)), PickleWriter._write_constant),
    (int, PickleWriter._write_int),
    (float, PickleWriter._write_float),
    (str, PickleWriter._write_text),
    (Name, PickleWriter._write_name),
    (PickledCall, PickleWriter._write_call),
    (Persistent, PickleWriter._write_persistent),
    (list, PickleWriter._write_list),
    (tuple, PickleWriter._write_tuple),
    (dict, PickleWriter._write_dict),
)
"""Writers by class, the first match counts. Instances of subclasses are loaded as the class listed here."""
