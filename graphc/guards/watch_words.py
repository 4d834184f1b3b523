"""Detect mutation of dicts, lists, cells, functions and classes by comparing version tags and pointers in memory.

The words compared are fields of CPython's objects: ``ob_type`` of any object, ``ob_ref`` of a cell, ``func_code``,
``func_defaults`` and ``func_kwdefaults`` of a function, ``ob_size`` and ``ob_item`` of a list, ``ma_used``,
``ma_version_tag`` and ``ma_keys`` of a dict, ``tp_version_tag`` of a class. Their structs are in
https://github.com/python/cpython/tree/3.11/Include/cpython (dictobject.h, listobject.h, funcobject.h, cellobject.h,
object.h). No offset is trusted before ``layout`` has tested it in this interpreter.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from types import CellType, FunctionType
from typing import Any

import numpy as np

from graphc.base.records import NamedTuple

_WORD = 8
"""Bytes."""


class WatchTable(ctypes.Structure):
    """Table of words as native code reads it: their number, then the address and the expected content of each."""

    _fields_ = (
        ("words", ctypes.POINTER(ctypes.c_uint64)),
        *((name, ctypes.c_void_p) for name in ("yes", "no", "incref")),  # results of the native ``same``
    )

    def __init__(self) -> None:
        super().__init__()
        self.set({}, ())

    def set(self, words: Mapping[int, int], owners: Iterable[Any]) -> ctypes.Array[ctypes.c_uint64]:
        """Replace the watched words and return the table. ``owners`` are the objects around them and their targets."""
        entries = [number for pair in words.items() for number in pair]
        table = (ctypes.c_uint64 * (len(entries) + 1))(len(words), *entries)
        table.owned = tuple(owners)  # type: ignore[attr-defined]
        # NOTE: other threads, or finalizers in this one, may compare and set words meanwhile. One assignment replaces
        # the table, and ``_table`` keeps it alive.
        self.words = table
        self._table = table
        return table

    def same(self) -> bool:
        """Return whether every word has its expected content."""
        table = self._table
        return all(word_at(table[i]) == table[i + 1] for i in range(1, len(table), 2))


class ObjectLayout(NamedTuple):
    """Offsets of words in objects, in bytes; None if this interpreter has no such word."""

    ob_type: int | None
    """Class of any object."""
    ob_ref: int | None
    """Content of a cell."""
    function_fields: tuple[int, ...] | None
    """``func_code``, ``func_defaults`` and ``func_kwdefaults`` of a function."""
    list_fields: tuple[int, int] | None
    """``ob_size`` and ``ob_item`` of a list, the number and the address of its items."""
    ma_version_tag: int | None
    """Version of a dict, a new number after each change."""
    dict_fields: tuple[int, int] | None
    """``ma_used`` and ``ma_keys`` of a dict, the number and the address of its entries."""
    tp_version_tag: int | None
    """Version of a class: each change of the class or a base clears it, the next attribute lookup sets a new one."""


NOTHING = ObjectLayout(None, None, None, None, None, None, None)


def word_at(address: int) -> int:
    """Read the word at an address."""
    return ctypes.c_uint64.from_address(address).value


class Words:
    """Collector of words to watch and of the objects that must stay alive meanwhile."""

    def __init__(self, moving_dicts: Iterable[dict[Any, Any]] = ()) -> None:
        self.found: dict[int, int] = {}
        self.owned: list[Any] = []
        self._asked = {id(table) + (layout().ma_version_tag or 0): 0 for table in moving_dicts}
        """Number of requests to watch all entries of each dict in ``moving``, by the address of its version tag."""

    def add(self, owner: Any, *offsets: int) -> None:
        """Watch words of an object."""
        self.owned.append(owner)
        for offset in offsets:
            self.add_at(id(owner) + offset)

    def add_at(self, address: int) -> None:
        """Watch the word at an address inside an object that ``owned`` contains."""
        if address in self._asked:
            self._asked[address] += 1
        if address not in self.found:
            self.found[address] = word_at(address)

    # ---- objects; these return False if a change of the object might leave all its words the same

    def class_of(self, owner: Any) -> bool:
        """Watch the class of an object."""
        return self._add(owner, layout().ob_type)

    def cell(self, cell: CellType) -> bool:
        """Watch the object in a cell."""
        return self._add(cell, layout().ob_ref)

    def function(self, function: Any) -> bool:
        """Watch code and defaults of a function."""
        return self._add(function, *(layout().function_fields or (None,)))

    def class_(self, kind: type[Any]) -> bool:
        """Watch the attributes of a class and of its bases."""
        hasattr(kind, "_")  # a failed lookup assigns a version tag to the class; a change clears it
        offset = layout().tp_version_tag
        return self._add(kind, offset) and word_at(id(kind) + (offset or 0)) != 0

    def dictionary(self, table: dict[Any, Any]) -> bool:
        """Watch all entries of a dict."""
        return self._add(table, layout().ma_version_tag)

    def place_of(self, table: dict[Any, Any], count: int) -> int | None:
        """Return the index in the table of the version tag of a dict in ``moving``, for its content to be replaced.

        None if the number of requests to watch the dict is not ``count``, or if it has changed since.
        """
        address = id(table) + (layout().ma_version_tag or 0)
        if self._asked.get(address) != count or word_at(address) != self.found[address]:
            return None
        return 2 * list(self.found).index(address) + 2

    def entry(self, table: dict[Any, Any], name: Any) -> bool:
        """Watch one entry of a dict, or its absence, whatever happens to the others."""
        offsets = layout().dict_fields
        if offsets is None:
            return self.dictionary(table)
        if name not in table:
            return self._add(table, offsets[0])
        entries = word_at(id(table) + offsets[1])
        address = _address_in(table, entries, name, table[name])
        if address is None:
            return self.dictionary(table)
        self.add(table, offsets[1])
        self.owned.append(table[name])
        self.add_at(address)
        return True

    def list_(self, items: list[Any]) -> bool:
        """Watch the items of a list."""
        offsets = layout().list_fields
        if offsets is None:
            return False
        # NOTE: the words of the list are compared first, so the items are read only if the list still has them.
        self.add(items, *offsets)
        start = word_at(id(items) + offsets[1])
        for index in range(len(items)):
            self.add_at(start + _WORD * index)
        self.owned.extend(items)
        return True

    def _add(self, owner: Any, *offsets: int | None) -> bool:
        present = [offset for offset in offsets if offset is not None]
        if len(present) == len(offsets):
            self.add(owner, *present)
        return len(present) == len(offsets)


def _address_in(table: dict[Any, Any], entries: int, name: Any, value: Any) -> int | None:
    """Return the address of the word that refers to the value of an entry, or None if it is not unique."""
    size = (sys.getsizeof(table) - sys.getsizeof({})) // _WORD
    if type(table) is not dict or size < 2 or not entries:
        return None
    words = np.ctypeslib.as_array((ctypes.c_uint64 * size).from_address(entries))
    (matches,) = np.nonzero((words[:-1] == id(name)) & (words[1:] == id(value)))
    return entries + _WORD * (int(matches[0]) + 1) if len(matches) == 1 else None


# ---- the layout of this interpreter: every offset is tested on probe objects before it is trusted


@cache
def layout() -> ObjectLayout:
    """Return the layout of objects in this interpreter; all None if it is not 64-bit CPython with the GIL."""
    is_supported = (
        sys.implementation.name == "cpython"
        and "t" not in sys.abiflags  # a build without the interpreter lock
        and ctypes.sizeof(ctypes.c_void_p) == _WORD
        and sys.byteorder == "little"
    )
    if not is_supported:
        return NOTHING
    result = ObjectLayout(
        _ob_type(), _ob_ref(), _function_fields(), _list_fields(), _ma_version_tag(), None, _tp_version_tag()
    )
    return result._replace(dict_fields=_dict_fields())


def _offset_of(owner: Any, value: Any, size: int) -> int | None:
    """Return the offset of the only word in an object that refers to a value, else None."""
    offsets = [i for i in range(_WORD, size, _WORD) if word_at(id(owner) + i) == id(value)]
    return offsets[0] if len(offsets) == 1 else None


def _ob_type() -> int | None:
    class Probe:
        pass

    class Other:
        pass

    owner = Probe()
    offset = _offset_of(owner, Probe, 2 * _WORD)
    owner.__class__ = Other  # type: ignore[assignment]
    return offset if offset is not None and word_at(id(owner) + offset) == id(Other) else None


def _ob_ref() -> int | None:
    first, second = object(), object()
    cell = CellType(first)
    offset = _offset_of(cell, first, CellType.__basicsize__)
    cell.cell_contents = second
    return offset if offset is not None and word_at(id(cell) + offset) == id(second) else None


def _function_fields() -> tuple[int, ...] | None:
    def probe(a: int = 1, *, b: int = 2) -> int:
        return a + b

    def other(a: int = 3, *, b: int = 4) -> int:
        return a - b

    names = ("__code__", "__defaults__", "__kwdefaults__")
    size = FunctionType.__basicsize__
    offsets = [_offset_of(probe, getattr(probe, name), size) for name in names]
    for name in names:
        setattr(probe, name, getattr(other, name))
    present = [i for i in offsets if i is not None]
    follows = [word_at(id(probe) + i) == id(getattr(other, n)) for i, n in zip(present, names, strict=False)]
    return tuple(present) if len(present) == len(names) and all(follows) else None


def _list_fields() -> tuple[int, int] | None:
    ob_size, ob_item, allocated = 2 * _WORD, 3 * _WORD, 4 * _WORD
    first, second = object(), object()
    probe = [first, second, first]
    if list.__basicsize__ != 5 * _WORD or word_at(id(probe) + ob_size) != 3 or word_at(id(probe) + allocated) < 3:
        return None
    start = word_at(id(probe) + ob_item)
    if start % _WORD or [word_at(start + i * _WORD) for i in range(3)] != [id(first), id(second), id(first)]:
        return None
    probe[1] = first
    return (ob_size, ob_item) if word_at(start + _WORD) == id(first) else None


def _dictionary_changes() -> list[Callable[[Any, dict[str, Any]], Any]]:
    """Return functions that change the entry ``a`` of a dict, which is also the ``__dict__`` of an object."""

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
        # NOTE: often enough for the interpreter to specialize the instruction (PEP 659).
        *[store] * 100,
        lambda owner, _: setattr(owner, "a", object()),
        lambda owner, _: delattr(owner, "a"),
    ]


def _ma_version_tag() -> int | None:
    class Probe:
        def __init__(self) -> None:
            self.a: Any = 1

    owner = Probe()
    table = vars(owner)
    offset = 3 * _WORD
    if dict.__basicsize__ < offset + _WORD:
        return None
    versions = {word_at(id(table) + offset)}
    for expected, change in enumerate(_dictionary_changes(), 2):
        change(owner, table)
        versions.add(word_at(id(table) + offset))
        if len(versions) != expected:
            return None
    table.get("a")
    return offset if word_at(id(table) + offset) in versions and _quiet(table, offset) else None


def _quiet(table: dict[str, Any], offset: int) -> bool:
    """Return whether lookups leave the version tag unchanged."""
    before = word_at(id(table) + offset)
    return "a" not in table and not list(table.items()) and word_at(id(table) + offset) == before


def _dict_fields() -> tuple[int, int] | None:
    ma_used, ma_keys = 2 * _WORD, 4 * _WORD
    names = {f"name{i}": object() for i in range(20)}
    table = dict(names)
    if dict.__basicsize__ < ma_keys + _WORD or word_at(id(table) + ma_used) != len(table):
        return None
    start = word_at(id(table) + ma_keys)
    for name in names:
        address = _address_in(table, start, name, table[name])
        table[name] = object()
        if address is None or word_at(address) != id(table[name]) or word_at(id(table) + ma_keys) != start:
            return None
    del table["name3"]
    return (ma_used, ma_keys) if word_at(id(table) + ma_used) == len(table) == len(names) - 1 else None


def _tp_version_tag() -> int | None:
    class Base:
        a = 0

    class Probe(Base):
        pass

    # Offset of tp_version_tag in PyTypeObject of 64-bit CPython, Include/cpython/object.h; it is tested below.
    offset = 384
    if sys.getsizeof(type) < offset + _WORD:
        return None
    versions: set[int] = set()
    for number in range(1, 20):
        if not hasattr(Probe, "a") or word_at(id(Probe) + offset) == 0:
            return None
        versions.add(word_at(id(Probe) + offset))
        if len(versions) != number:
            return None
        (Base if number % 2 else Probe).a = number
        if word_at(id(Probe) + offset) in versions:
            return None
    return offset
