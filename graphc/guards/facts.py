"""Facts about the world outside of a trace's arguments; compiled code is valid while they hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from types import CellType
from typing import Any, Protocol

import numpy as np

from graphc.base.locks import cached_property
from graphc.base.mutation_epoch import EPOCH
from graphc.base.records import NamedTuple
from graphc.base.values import CONTAINERS, DEEPEST, is_immutable, key_of, parts_of
from graphc.guards.watch_words import WatchTable, Words, word_at

MISSING = type("missing", (), {"__repr__": lambda self: "none"})()


_FILLED = frozenset({list, dict, set})


class Fact(Protocol):
    """A property of the world outside that compiled code relies on."""

    def holds(self) -> bool:
        """Return whether the property is unchanged."""
        ...

    def why(self) -> str:
        """Describe the change, and the line that read the value."""
        ...


class Watched(Fact, Protocol):
    """A fact that can change without a step of the mutation epoch."""

    def watch(self, words: Words) -> bool:
        """Add the memory words that every change alters; return False if some change alters none."""
        ...


class _Read:
    """A value as it was read, and its key for comparison."""

    title: str
    read_at: str

    def __init__(self, value: Any):
        self.value = value
        self.key = key_of(value)
        self._items = value.copy() if type(value) in _FILLED else None

    def now(self) -> Any:
        """Return the present value."""
        raise NotImplementedError

    def holds(self) -> bool:
        """Return whether the present value equals the former one."""
        now = self.now()
        if now is self.value and is_immutable(now):
            return True
        return key_of(now) == self.key

    def refill(self) -> None:
        """Restore the items of a container."""
        if self._items is not None and type(self.value) is list:
            self.value[:] = self._items
        elif self._items is not None:
            self.value.clear()
            self.value.update(self._items)

    def restore(self) -> None:
        """Restore the former value."""
        self.refill()

    def why(self) -> str:
        now = self.now()
        shown = "changed inside" if now is self.value else f"{_short(self.value)} -> {_short(now)}"
        return f"{self.title}: {shown}" + (f" (read at {self.read_at})" if self.read_at else "")


class DictEntry(_Read):
    """The value of a dictionary entry, or its absence: a global variable, or an attribute of an object."""

    def __init__(self, table: dict[Any, Any], name: Any, title: str, read_at: str = "", crowded: bool = False):
        """Record the entry; ``crowded`` means that other entries of the table change often."""
        super().__init__(table.get(name, MISSING))
        self.table, self.name, self.title, self.read_at, self.crowded = table, name, title, read_at, crowded

    def now(self) -> Any:
        return self.table.get(self.name, MISSING)

    def watch(self, words: Words) -> bool:
        is_watched = words.entry(self.table, self.name) if self.crowded else words.dictionary(self.table)
        return is_watched and watch_inside(self.now(), words)

    def restore(self) -> None:
        self.refill()
        if self.value is MISSING:
            self.table.pop(self.name, None)
        else:
            self.table[self.name] = self.value


class Table(DictEntry):
    """The identity of an object's member dictionary; the mutation epoch counts changes of its content."""

    def __init__(self, fields: dict[Any, Any], name: str, title: str, read_at: str = ""):
        self.table, self.name, self.title, self.read_at, self.crowded = fields, name, title, read_at, False
        self.value, self.key, self._items = fields.get(name, MISSING), None, None

    def holds(self) -> bool:
        """Return whether the dictionary is the same object."""
        return self.now() is self.value

    def watch(self, words: Words) -> bool:
        return words.dictionary(self.table)


class Cell(_Read):
    """The value of a closure variable."""

    def __init__(self, cell: CellType, title: str, read_at: str = ""):
        self.cell, self.title, self.read_at = cell, title, read_at
        super().__init__(self.now())

    def now(self) -> Any:
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def watch(self, words: Words) -> bool:
        return words.cell(self.cell) and watch_inside(self.now(), words)

    def restore(self) -> None:
        self.refill()
        if self.value is not MISSING:
            self.cell.cell_contents = self.value


class ClassAttribute(_Read):
    """The attribute a class defines or inherits under a name."""

    def __init__(self, kind: type[Any], name: str, read_at: str = ""):
        self.kind, self.name, self.read_at = kind, name, read_at
        self.title = f"attribute {name!r} of class {kind.__name__}"
        super().__init__(self.now())

    def now(self) -> Any:
        """Return the present attribute as the class stores it, without descriptor binding."""
        return class_entry(self.kind, self.name)

    def watch(self, words: Words) -> bool:
        return words.class_(self.kind) and watch_inside(self.now(), words)

    def restore(self) -> None:
        """Restore the former attribute if the class itself defines it."""
        self.refill()
        if self.name not in vars(self.kind):
            return
        if self.value is MISSING:
            delattr(self.kind, self.name)
        else:
            setattr(self.kind, self.name, self.value)


class SpecialMethods(_Read):
    """The special methods of a class, which operators and calls look up on the class."""

    def __init__(self, kind: type[Any], read_at: str = ""):
        self.kind, self.read_at, self.title = kind, read_at, f"special methods of class {kind.__name__}"
        super().__init__(self.now())

    def now(self) -> Any:
        methods: dict[str, Any] = {}
        for base in reversed(self.kind.__mro__[:-1]):
            members = vars(base).copy()  # atomic: another thread may be setting members
            methods |= {n: v for n, v in members.items() if n[:2] == "__" and callable(v) and n not in _NOT_METHODS}
        return methods

    def holds(self) -> bool:
        """Return whether the methods are the same objects."""
        now = self.now()
        return now.keys() == self.value.keys() and all(map(is_, now.values(), map(self.value.get, now)))

    def watch(self, words: Words) -> bool:
        return words.class_(self.kind)


_NOT_METHODS = frozenset({"__getattribute__", "__class__"})
"""Names that are not compared; a running trace replaces ``__getattribute__``."""


class ClassOf(_Read):
    """The class of an object."""

    def __init__(self, owner: Any, read_at: str = "", counted: bool = False):
        self.owner, self.read_at, self.title = owner, read_at, f"class of a {type(owner).__name__}"
        self.counted = counted
        """Whether the mutation epoch advances when the class is replaced."""
        super().__init__(type(owner))

    def now(self) -> Any:
        return type(self.owner)

    def watch(self, words: Words) -> bool:
        return words.class_of(self.owner)


class SlotAttribute(_Read):
    """An attribute the class stores in a slot, outside of any dictionary."""

    def __init__(self, owner: Any, name: str, read_at: str = ""):
        self.owner, self.name, self.read_at = owner, name, read_at
        self.title = f"attribute {name!r} of {type(owner).__name__}"
        super().__init__(self.now())

    def now(self) -> Any:
        try:
            return object.__getattribute__(self.owner, self.name)
        except AttributeError:
            return MISSING

    def watch(self, words: Words) -> bool:
        """Return False: no memory word is certain to change."""
        return False

    def restore(self) -> None:
        self.refill()
        if self.value is not MISSING:
            object.__setattr__(self.owner, self.name, self.value)


class Content(_Read):
    """The whole content of an object."""

    def __init__(self, value: Any, title: str, read_at: str = ""):
        self.title, self.read_at = title, read_at
        super().__init__(value)

    def now(self) -> Any:
        """Return the object itself."""
        return self.value

    def watch(self, words: Words) -> bool:
        return watch_inside(self.value, words)


class FunctionCode(_Read):
    """The code and the defaults of a function that ran."""

    def __init__(self, function: Any, read_at: str = ""):
        self.function, self.read_at = function, read_at
        self.title = f"code or defaults of {function.__qualname__}"
        super().__init__(self.now())

    def now(self) -> Any:
        f = self.function
        return (f.__code__, f.__defaults__, f.__kwdefaults__)

    def watch(self, words: Words) -> bool:
        _, defaults, keywords = self.now()
        return words.function(self.function) and watch_inside(defaults, words) and watch_inside(keywords, words)


def watch_inside(value: Any, words: Words, depth: int = 0) -> bool:
    """Watch everything a value holds; return False if some change alters no word."""
    kind = type(value)
    words.owned.append(value)
    if kind is dict:
        is_watched = words.dictionary(value)
    elif kind is list:
        is_watched = words.list_(value)
    else:
        is_watched = kind not in _UNWATCHED
    if not is_watched or depth > DEEPEST:
        return False
    return all([watch_inside(item, words, depth + 1) for item in parts_of(value) if type(item) not in _LEAVES])


_LEAVES = frozenset({bool, int, float, str, bytes, type(None)})
_UNWATCHED = (CONTAINERS - {tuple, frozenset, dict, list}) | {bytearray, np.ndarray}


def class_entry(kind: type[Any], name: str) -> Any:
    """Return the attribute a class defines or inherits, without descriptor binding; ``MISSING`` if there is
    none."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return MISSING


def _short(value: Any) -> str:
    text = repr(value) if is_immutable(value) or value is MISSING else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Still(NamedTuple):
    """The facts about one dictionary whose other entries change often, and its version word."""

    words: Any
    """The table of watched words."""
    offset: int
    """Index of the dictionary's version word in the table."""
    entries: list[tuple[DictEntry, Any]]
    """Each fact with the value that held last."""

    def moves(self) -> bool:
        """Return whether all these entries are unchanged; if so, accept the dictionary's present version."""
        word = word_at(self.words[self.offset - 1])
        for fact, value in self.entries:
            now = fact.now()
            if now is not value and not (is_immutable(now) and fact.holds()):
                return False
        self.words[self.offset] = word
        return True


def _python_same(watch: WatchTable) -> Callable[[], bool]:
    return watch.same


class Account:
    """All facts that one compiled program relies on."""

    def __init__(
        self,
        counted: Iterable[Fact],
        watched: Iterable[Watched],
        always: Iterable[Fact] = (),
        make_same: Callable[[WatchTable], Callable[[], bool] | None] = _python_same,
        moving: Iterable[dict[Any, Any]] = (),
    ):
        """Collect the facts.

        The mutation epoch advances on each change of ``counted``. ``always`` are checked at each call. ``make_same``
        returns a function that compares the watched words, or None as long as it has none. ``moving`` are dictionaries
        that hold facts and whose other entries change often: after such a change only the entries of facts are
        compared.
        """
        self.counted = tuple(counted)
        self.watched = tuple(watched)
        self.always = tuple(always)
        self.words = WatchTable()
        """Memory words that are unchanged while ``watched`` hold."""
        self._moving = list({id(table): table for table in moving}.values())
        self._still: list[_Still] = []
        self.taken = object()
        """A token that is replaced before words are read again."""
        self._is_complete = False
        """Whether every change alters a watched word."""
        self._make_same = make_same
        self._epoch = -1
        """The mutation epoch when ``holds`` last found ``counted`` true."""

    @cached_property
    def _same(self) -> Callable[[], bool]:
        """The function that compares the watched words. A first call needs none, and building it takes a while."""
        return self._make_same(self.words) or self._same_for_now

    def _same_for_now(self) -> bool:
        """Compare the watched words in Python, until there is a function for it."""
        self._same = self._make_same(self.words) or self._same_for_now
        return self.words.same()

    def add(self, fact: Watched) -> None:
        """Add a fact whose changes the mutation epoch and words report together."""
        self.counted += (fact,)
        self.watched += (fact,)

    @property
    def is_watched(self) -> bool:
        """Return whether the mutation epoch and the words together report every change of facts outside ``always``."""
        return self._is_complete

    @property
    def is_certain(self) -> bool:
        """Return whether the mutation epoch and the words together report every change."""
        return self._is_complete and not self.always

    def stands(self, token: object) -> bool:
        """Return whether no watched word has changed since ``token`` was the token."""
        return self._same() and self.taken is token

    def holds(self) -> bool:
        """Return whether every fact holds."""
        epoch = EPOCH[0]
        if self._epoch != epoch:
            if not all([fact.holds() for fact in self.counted]):
                return False
            self._epoch = epoch
        for fact in self.always:
            if not fact.holds():
                return False
        return (self._is_complete and (self._same() or self._only_moved())) or self._look()

    def _only_moved(self) -> bool:
        """Return whether only other entries of the ``moving`` dictionaries have changed."""
        still = self._still
        self.taken = object()
        return bool(still) and all([s.moves() for s in still]) and self._same()

    def _look(self) -> bool:
        """Compare all watched values and read their words again; return whether the values are unchanged."""
        words = Words(self._moving)
        # NOTE: read the words before the values, so that a change in between shows at the next call.
        is_complete = all([fact.watch(words) for fact in self.watched] + [words.dictionary(t) for t in self._moving])
        if not all([fact.holds() for fact in self.watched]):
            return False
        # NOTE: dictionaries that are unchanged since their words were read have the values that were just compared.
        offsets = [(entries := self._entries_in(t), words.place_of(t, len(entries) + 1)) for t in self._moving]
        self.taken = object()
        table = self.words.set(words.found, words.owned)
        self._still = [_Still(table, offset, entries) for entries, offset in offsets if offset is not None]
        self._is_complete = is_complete
        return True

    def _entries_in(self, table: dict[Any, Any]) -> list[tuple[DictEntry, Any]]:
        return [(f, f.now()) for f in self.watched if isinstance(f, DictEntry) and f.table is table and not f.crowded]

    def why(self) -> list[str]:
        """Describe all changes."""
        return broken(list({id(f): f for f in (*self.counted, *self.always, *self.watched)}.values()))


def broken(facts: Sequence[Fact]) -> list[str]:
    """Return the descriptions of all broken facts."""
    return [fact.why() for fact in facts if not fact.holds()]
