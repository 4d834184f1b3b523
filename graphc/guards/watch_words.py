"""Words of memory that differ after a dictionary, list, cell, function or class was changed; no value is read."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import CellType, FunctionType
from typing import Any, NamedTuple

import numpy as np

_WORD = 8


class Watch(ctypes.Structure):
    """A table of words as native code reads it: how many there are, then of each its address and what stood there."""

    _fields_ = (
        ("words", ctypes.POINTER(ctypes.c_uint64)),
        *((name, ctypes.c_void_p) for name in ("yes", "no", "incref")),  # what the native ``same`` answers
    )

    def __init__(self) -> None:
        super().__init__()
        self.set({}, ())

    def set(self, words: Mapping[int, int], owned: Iterable[Any]) -> ctypes.Array[ctypes.c_uint64]:
        """Watches other words; ``owned`` are the objects that they are part of and refer to. Returns the table."""
        flat = [number for pair in words.items() for number in pair]
        table = (ctypes.c_uint64 * (len(flat) + 1))(len(words), *flat)
        table.owned = tuple(owned)  # type: ignore[attr-defined]
        # NOTE: other threads compare and set words meanwhile, and so does this one where objects are collected here: a
        # table takes the place of the one before in one step, which also keeps it alive.
        self.words = table
        self._table = table
        return table

    def same(self) -> bool:
        """Whether every word is what it was."""
        table = self._table
        return all(word_at(table[i]) == table[i + 1] for i in range(1, len(table), 2))


class Layout(NamedTuple):
    """Offsets in objects; None where this interpreter has no such word."""

    kind: int | None
    """Of the class of any object."""
    cell: int | None
    """Of what a cell refers to."""
    function: tuple[int, ...] | None
    """Of code, defaults and keyword defaults of a function."""
    items: tuple[int, int] | None
    """Of the number and the address of the items of a list."""
    version: int | None
    """Of the number that each change of a dictionary makes anew."""
    table: tuple[int, int] | None
    """Of the number of entries, and of the address of the entries of a dictionary."""
    tag: int | None
    """Of the number that each change of a class or of a base of it makes anew."""


NOTHING = Layout(None, None, None, None, None, None, None)


def word_at(address: int) -> int:
    """The word in memory at an address."""
    return ctypes.c_uint64.from_address(address).value


class Words:
    """Collects words, and the objects that must live as long as they are watched."""

    def __init__(self, moving: Iterable[dict[Any, Any]] = ()) -> None:
        self.found: dict[int, int] = {}
        self.owned: list[Any] = []
        self._asked = {id(table) + (layout().version or 0): 0 for table in moving}
        """How often it was asked to watch all entries of some dictionaries."""

    def add(self, owner: Any, *offsets: int) -> None:
        """Watches words of an object."""
        self.owned.append(owner)
        for offset in offsets:
            self.add_at(id(owner) + offset)

    def add_at(self, address: int) -> None:
        """Watches the word at an address within an object that ``owned`` holds."""
        if address in self._asked:
            self._asked[address] += 1
        if address not in self.found:
            self.found[address] = word_at(address)

    # ---- objects; False where a change of the object is not certain to change a word

    def class_of(self, owner: Any) -> bool:
        """Watches which class an object has."""
        return self._add(owner, layout().kind)

    def cell(self, cell: CellType) -> bool:
        """Watches what a cell refers to."""
        return self._add(cell, layout().cell)

    def function(self, function: Any) -> bool:
        """Watches code and defaults of a function."""
        return self._add(function, *(layout().function or (None,)))

    def class_(self, kind: type[Any]) -> bool:
        """Watches the attributes of a class and of its bases."""
        hasattr(kind, "_")  # a name that `type` lacks: looking for it gives the class a tag, which a change takes away
        offset = layout().tag
        return self._add(kind, offset) and word_at(id(kind) + (offset or 0)) != 0

    def dictionary(self, table: dict[Any, Any]) -> bool:
        """Watches all entries of a dictionary."""
        return self._add(table, layout().version)

    def place_of(self, table: dict[Any, Any], count: int) -> int | None:
        """Where in the table of words one stands for all entries of a dictionary, one of ``moving``; None where others
        than so many have asked to watch it, or it has changed since."""
        address = id(table) + (layout().version or 0)
        if self._asked.get(address) != count or word_at(address) != self.found[address]:
            return None
        return 2 * list(self.found).index(address) + 2

    def entry(self, table: dict[Any, Any], name: Any) -> bool:
        """Watches one entry of a dictionary, whatever happens to the others; or that there is none."""
        offsets = layout().table
        if offsets is None:
            return self.dictionary(table)
        if name not in table:
            return self._add(table, offsets[0])
        entries = word_at(id(table) + offsets[1])
        place = _place_in(table, entries, name, table[name])
        if place is None:
            return self.dictionary(table)
        self.add(table, offsets[1])
        self.owned.append(table[name])
        self.add_at(place)
        return True

    def list_(self, items: list[Any]) -> bool:
        """Watches which items a list has."""
        offsets = layout().items
        if offsets is None:
            return False
        # NOTE: the words of the items are compared after those of the list, which say that they are still there.
        self.add(items, *offsets)
        start = word_at(id(items) + offsets[1])
        for number in range(len(items)):
            self.add_at(start + _WORD * number)
        self.owned.extend(items)
        return True

    def _add(self, owner: Any, *offsets: int | None) -> bool:
        known = [offset for offset in offsets if offset is not None]
        if len(known) == len(offsets):
            self.add(owner, *known)
        return len(known) == len(offsets)


def _place_in(table: dict[Any, Any], entries: int, name: Any, value: Any) -> int | None:
    """Address of the word that refers to the value of one entry, or None where it is not found."""
    size = (sys.getsizeof(table) - sys.getsizeof({})) // _WORD
    if type(table) is not dict or size < 2 or not entries:
        return None
    words = np.ctypeslib.as_array((ctypes.c_uint64 * size).from_address(entries))
    (found,) = np.nonzero((words[:-1] == id(name)) & (words[1:] == id(value)))
    return entries + _WORD * (int(found[0]) + 1) if len(found) == 1 else None


# ---- where the words are: each place is tried before it is trusted


@cache
def layout() -> Layout:
    """Where the words are in this interpreter."""
    usual = (
        sys.implementation.name == "cpython"
        and "t" not in sys.abiflags  # a build without the interpreter lock
        and ctypes.sizeof(ctypes.c_void_p) == _WORD
        and sys.byteorder == "little"
    )
    if not usual:
        return NOTHING
    found = Layout(_kind(), _cell(), _function(), _items(), _version(), None, _tag())
    return found._replace(table=_table())


def _offset_of(owner: Any, value: Any, size: int) -> int | None:
    """The one place within an object that refers to a value."""
    found = [i for i in range(_WORD, size, _WORD) if word_at(id(owner) + i) == id(value)]
    return found[0] if len(found) == 1 else None


def _kind() -> int | None:
    class Probe:
        pass

    class Other:
        pass

    owner = Probe()
    at = _offset_of(owner, Probe, 2 * _WORD)
    owner.__class__ = Other  # type: ignore[assignment]
    return at if at is not None and word_at(id(owner) + at) == id(Other) else None


def _cell() -> int | None:
    first, second = object(), object()
    cell = CellType(first)
    at = _offset_of(cell, first, CellType.__basicsize__)
    cell.cell_contents = second
    return at if at is not None and word_at(id(cell) + at) == id(second) else None


def _function() -> tuple[int, ...] | None:
    def probe(a: int = 1, *, b: int = 2) -> int:
        return a + b

    def other(a: int = 3, *, b: int = 4) -> int:
        return a - b

    names = ("__code__", "__defaults__", "__kwdefaults__")
    size = FunctionType.__basicsize__
    at = [_offset_of(probe, getattr(probe, name), size) for name in names]
    for name in names:
        setattr(probe, name, getattr(other, name))
    known = [i for i in at if i is not None]
    moved = [word_at(id(probe) + i) == id(getattr(other, n)) for i, n in zip(known, names, strict=False)]
    return tuple(known) if len(known) == len(names) and all(moved) else None


def _items() -> tuple[int, int] | None:
    size, items, room = 2 * _WORD, 3 * _WORD, 4 * _WORD
    first, second = object(), object()
    probe = [first, second, first]
    if list.__basicsize__ != 5 * _WORD or word_at(id(probe) + size) != 3 or word_at(id(probe) + room) < 3:
        return None
    start = word_at(id(probe) + items)
    if start % _WORD or [word_at(start + i * _WORD) for i in range(3)] != [id(first), id(second), id(first)]:
        return None
    probe[1] = first
    return (size, items) if word_at(start + _WORD) == id(first) else None


def _dictionary_changes() -> list[Callable[[Any, dict[str, Any]], Any]]:
    """Ways to change an entry ``a`` of a dictionary that is also that of an object."""

    def store(owner: Any, _: Any) -> None:
        owner.a = object()

    return [
        lambda _, d: d.__setitem__("a", object()),
        lambda _, d: d.update(a=object()),
        lambda _, d: d.pop("a"),
        lambda _, d: d.setdefault("a", object()),
        lambda _, d: d.__delitem__("a"),
        lambda _, d: d.__ior__({"a": object()}),
        lambda _, d: d.clear(),
        # NOTE: often enough that the interpreter replaces the instruction by its fast form.
        *[store] * 100,
        lambda owner, _: setattr(owner, "a", object()),
        lambda owner, _: delattr(owner, "a"),
    ]


def _version() -> int | None:
    class Probe:
        def __init__(self) -> None:
            self.a: Any = 1

    owner = Probe()
    table = vars(owner)
    at = 3 * _WORD
    if dict.__basicsize__ < at + _WORD:
        return None
    seen = {word_at(id(table) + at)}
    for number, change in enumerate(_dictionary_changes(), 2):
        change(owner, table)
        seen.add(word_at(id(table) + at))
        if len(seen) != number:
            return None
    table.get("a")
    return at if word_at(id(table) + at) in seen and _quiet(table, at) else None


def _quiet(table: dict[str, Any], at: int) -> bool:
    """Whether looking does not count as a change."""
    before = word_at(id(table) + at)
    return "a" not in table and not list(table.items()) and word_at(id(table) + at) == before


def _table() -> tuple[int, int] | None:
    used, entries = 2 * _WORD, 4 * _WORD
    names = {f"name{i}": object() for i in range(20)}
    table = dict(names)
    if dict.__basicsize__ < entries + _WORD or word_at(id(table) + used) != len(table):
        return None
    start = word_at(id(table) + entries)
    for name in names:
        place = _place_in(table, start, name, table[name])
        table[name] = object()
        if place is None or word_at(place) != id(table[name]) or word_at(id(table) + entries) != start:
            return None
    del table["name3"]
    return (used, entries) if word_at(id(table) + used) == len(table) == len(names) - 1 else None


def _tag() -> int | None:
    class Base:
        a = 0

    class Probe(Base):
        pass

    at = 384
    if sys.getsizeof(type) < at + _WORD:
        return None
    seen: set[int] = set()
    for number in range(1, 20):
        if not hasattr(Probe, "a") or word_at(id(Probe) + at) == 0:
            return None
        seen.add(word_at(id(Probe) + at))
        if len(seen) != number:
            return None
        (Base if number % 2 else Probe).a = number
        if word_at(id(Probe) + at) in seen:
            return None
    return at
