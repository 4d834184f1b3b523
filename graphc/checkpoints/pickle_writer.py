"""A writer of pickles: containers, numbers and texts as they are, other objects as calls of functions that it names."""

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
_STORABLE = "tensors, dictionaries, lists, tuples, numbers, texts, bools and None"


class Name(NamedTuple):
    """A class or function by its path."""

    module: str
    name: str


class Call(NamedTuple):
    """The object that a function gives for these arguments."""

    function: Name
    arguments: tuple[Any, ...]


class Persistent(NamedTuple):
    """An object that lies beside the pickle, under this id."""

    identity: tuple[Any, ...]


class PickleWriter:
    """One pickle of protocol 2, of which ``torch.load(weights_only=True)`` knows every opcode.

    ``describe`` says which Call makes an object that is none of the plain ones, or gives None where there is none.
    """

    def __init__(self, describe: Callable[[Any], Call | None]):
        self.describe = describe
        self.out = bytearray(b"\x80\x02")
        self.memo: dict[int, int] = {}
        self.kept: list[Any] = []
        """What is in the memo, so that no other object gets its id."""

    def dump(self, value: Any) -> bytes:
        """The pickle of an object. What occurs several times in it is written once. Raises ArgumentError that names the
        place of what cannot be written."""
        self._write(value, ())
        self.out += b"."
        return bytes(self.out)

    def _write(self, value: Any, place: tuple[Any, ...]) -> None:
        if len(place) > MAX_DEPTH:
            raise ArgumentError(f"the object is nested more than {MAX_DEPTH} deep")
        if isinstance(value, np.generic):
            value = value.item()
        number = self.memo.get(id(value))
        if number is not None:
            self.out += struct.pack("<cI", b"j", number)
            return
        for kinds, write in _WRITERS:
            if isinstance(value, kinds):
                write(self, value, place)
                return
        call = self.describe(value)
        if call is None:
            remedy = "its state_dict()" if hasattr(value, "state_dict") else _STORABLE
            raise ArgumentError(f"{_text(place)} is a {type(value).__name__}, which cannot be saved", remedy=remedy)
        self._write_call(call, place)
        self._remember(value)

    def _remember(self, value: Any) -> None:
        self.memo[id(value)] = len(self.kept)
        self.out += struct.pack("<cI", b"r", len(self.kept))
        self.kept.append(value)

    # ---- plain objects

    def _write_constant(self, value: Any, place: Any) -> None:
        self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]

    def _write_int(self, value: int, place: tuple[Any, ...]) -> None:
        if -(1 << 31) <= value < 1 << 31:
            self.out += struct.pack("<ci", b"J", value)
            return
        digits = pickle.encode_long(int(value))
        if len(digits) > _LONGEST_INT:
            raise ArgumentError(f"{_text(place)} is a number of {len(digits)} bytes, at most {_LONGEST_INT} are saved")
        self.out += struct.pack("<cB", b"\x8a", len(digits)) + digits

    def _write_float(self, value: float, place: Any) -> None:
        self.out += struct.pack(">cd", b"G", value)

    def _write_text(self, value: str, place: Any) -> None:
        data = value.encode("utf-8", "surrogatepass")
        self.out += struct.pack("<cI", b"X", len(data)) + data

    # ---- containers

    def _write_list(self, value: list[Any], place: tuple[Any, ...]) -> None:
        self.out += b"]"
        self._remember(value)
        self.out += b"("
        for i, item in enumerate(value):
            self._write(item, (*place, i))
        self.out += b"e"

    def _write_tuple(self, value: Sequence[Any], place: tuple[Any, ...]) -> None:
        self.out += b"("
        for i, item in enumerate(value):
            self._write(item, (*place, i))
        self.out += b"t"
        self._remember(value)

    def _write_dict(self, value: dict[Any, Any], place: tuple[Any, ...]) -> None:
        ordered = isinstance(value, OrderedDict)
        self.out += b"ccollections\nOrderedDict\n)R" if ordered else b"}"
        self._remember(value)
        self.out += b"("
        for key, item in value.items():
            if not isinstance(key, str | int | float | None):
                raise ArgumentError(
                    f"{_text(place)} has a key of class {type(key).__name__}", remedy="texts, numbers, bools and None"
                )
            self._write(key, place)
            self._write(item, (*place, key))
        self.out += b"u"
        metadata = getattr(value, "_metadata", None)
        if ordered and metadata:
            self._write({"_metadata": metadata}, (*place, "_metadata"))
            self.out += b"b"

    # ---- other objects

    def _write_name(self, value: Name, place: Any) -> None:
        self.out += f"c{value.module}\n{value.name}\n".encode()

    def _write_call(self, value: Call, place: tuple[Any, ...]) -> None:
        self._write_name(value.function, place)
        self._write_tuple(value.arguments, place)
        self.out += b"R"

    def _write_persistent(self, value: Persistent, place: tuple[Any, ...]) -> None:
        self._write_tuple(value.identity, place)
        self.out += b"Q"


def _text(place: tuple[Any, ...]) -> str:
    return "".join(f"[{key!r}]" for key in place) or "the object"


_WRITERS: tuple[tuple[Any, Callable[[PickleWriter, Any, tuple[Any, ...]], None]], ...] = (
    ((bool, type(None)), PickleWriter._write_constant),
    (int, PickleWriter._write_int),
    (float, PickleWriter._write_float),
    (str, PickleWriter._write_text),
    (Name, PickleWriter._write_name),
    (Call, PickleWriter._write_call),
    (Persistent, PickleWriter._write_persistent),
    (list, PickleWriter._write_list),
    (tuple, PickleWriter._write_tuple),
    (dict, PickleWriter._write_dict),
)
"""Which function writes an object: the first whose class it is of. Subclasses come back as the class listed here."""
