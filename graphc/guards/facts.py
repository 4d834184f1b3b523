"""What a trace has seen of the world outside of its arguments: facts that hold or do not, each with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import is_
from types import CellType
from typing import Any, NamedTuple, Protocol

import numpy as np

from graphc.base.mutation_epoch import EPOCH
from graphc.base.values import CONTAINERS, DEEPEST, is_immutable, key_of, parts_of
from graphc.guards.watch_words import Watch, Words, word_at

MISSING = type("missing", (), {"__repr__": lambda self: "none"})()


_FILLED = frozenset({list, dict, set})


class Fact(Protocol):
    """Something that code which was compiled relies on."""

    def holds(self) -> bool:
        """Whether it is still so."""
        ...

    def why(self) -> str:
        """What has changed, and where it was read."""
        ...


class Watched(Fact, Protocol):
    """A fact that can change without the mutation epoch moving on."""

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        ...


class _Read:
    """A value and what it was known by."""

    title: str
    place: str

    def __init__(self, value: Any):
        self.value = value
        self.key = key_of(value)
        self._items = value.copy() if type(value) in _FILLED else None

    def now(self) -> Any:
        """The value at present."""
        raise NotImplementedError

    def holds(self) -> bool:
        """Whether it is still so."""
        now = self.now()
        if now is self.value and is_immutable(now):
            return True
        return key_of(now) == self.key

    def refill(self) -> None:
        """Gives a container the items back that it had."""
        if self._items is not None and type(self.value) is list:
            self.value[:] = self._items
        elif self._items is not None:
            self.value.clear()
            self.value.update(self._items)

    def restore(self) -> None:
        """Makes it what it was."""
        self.refill()

    def why(self) -> str:
        """What has changed, and where it was read."""
        now = self.now()
        shown = "changed inside" if now is self.value else f"{_short(self.value)} -> {_short(now)}"
        return f"{self.title}: {shown}" + (f" (read at {self.place})" if self.place else "")


class Entry(_Read):
    """The value of one entry of a dictionary, or that there is none: a global variable, an attribute of an object."""

    def __init__(self, table: dict[Any, Any], name: Any, title: str, place: str = "", crowded: bool = False):
        """``crowded`` says that other entries of the table change often."""
        super().__init__(table.get(name, MISSING))
        self.table, self.name, self.title, self.place, self.crowded = table, name, title, place, crowded

    def now(self) -> Any:
        """The value at present."""
        return self.table.get(self.name, MISSING)

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        found = words.entry(self.table, self.name) if self.crowded else words.dictionary(self.table)
        return found and watch_inside(self.now(), words)

    def restore(self) -> None:
        """Makes it what it was."""
        self.refill()
        if self.value is MISSING:
            self.table.pop(self.name, None)
        else:
            self.table[self.name] = self.value


class Table(Entry):
    """Which dictionary of members an object has; changes of what it holds are counted."""

    def __init__(self, fields: dict[Any, Any], name: str, title: str, place: str = ""):
        self.table, self.name, self.title, self.place, self.crowded = fields, name, title, place, False
        self.value, self.key, self._items = fields.get(name, MISSING), None, None

    def holds(self) -> bool:
        """Whether it is still the same one."""
        return self.now() is self.value

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        return words.dictionary(self.table)


class Cell(_Read):
    """The value of a variable of an outer function."""

    def __init__(self, cell: CellType, title: str, place: str = ""):
        self.cell, self.title, self.place = cell, title, place
        super().__init__(self.now())

    def now(self) -> Any:
        """The value at present."""
        try:
            return self.cell.cell_contents
        except ValueError:
            return MISSING

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        return words.cell(self.cell) and watch_inside(self.now(), words)

    def restore(self) -> None:
        """Makes it what it was."""
        self.refill()
        if self.value is not MISSING:
            self.cell.cell_contents = self.value


class ClassAttribute(_Read):
    """What a class or one of its bases has under a name."""

    def __init__(self, kind: type[Any], name: str, place: str = ""):
        self.kind, self.name, self.place = kind, name, place
        self.title = f"attribute {name!r} of class {kind.__name__}"
        super().__init__(self.now())

    def now(self) -> Any:
        """The value at present, as it stands in the class."""
        return class_entry(self.kind, self.name)

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        return words.class_(self.kind) and watch_inside(self.now(), words)

    def restore(self) -> None:
        """Makes it what it was, where it stands in the class itself."""
        self.refill()
        if self.name not in vars(self.kind):
            return
        if self.value is MISSING:
            delattr(self.kind, self.name)
        else:
            setattr(self.kind, self.name, self.value)


class SpecialMethods(_Read):
    """The methods of a class that operators and calls find without asking the object."""

    def __init__(self, kind: type[Any], place: str = ""):
        self.kind, self.place, self.title = kind, place, f"special methods of class {kind.__name__}"
        super().__init__(self.now())

    def now(self) -> Any:
        """The methods at present."""
        found: dict[str, Any] = {}
        for base in reversed(self.kind.__mro__[:-1]):
            members = vars(base).copy()  # at once: another thread may be setting some
            found |= {n: v for n, v in members.items() if n[:2] == "__" and callable(v) and n not in _NOT_METHODS}
        return found

    def holds(self) -> bool:
        """Whether they are the same objects."""
        now = self.now()
        return now.keys() == self.value.keys() and all(map(is_, now.values(), map(self.value.get, now)))

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        return words.class_(self.kind)


_NOT_METHODS = frozenset({"__getattribute__", "__class__"})
"""``__getattribute__`` is replaced while a trace runs."""


class ClassOf(_Read):
    """The class of an object."""

    def __init__(self, owner: Any, place: str = "", counted: bool = False):
        self.owner, self.place, self.title = owner, place, f"class of a {type(owner).__name__}"
        self.counted = counted
        """Whether the mutation epoch tells of another class."""
        super().__init__(type(owner))

    def now(self) -> Any:
        """The class at present."""
        return type(self.owner)

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        return words.class_of(self.owner)


class Slot(_Read):
    """An attribute for which the class has a place of its own, outside of any dictionary."""

    def __init__(self, owner: Any, name: str, place: str = ""):
        self.owner, self.name, self.place = owner, name, place
        self.title = f"attribute {name!r} of {type(owner).__name__}"
        super().__init__(self.now())

    def now(self) -> Any:
        """The value at present."""
        try:
            return object.__getattribute__(self.owner, self.name)
        except AttributeError:
            return MISSING

    def watch(self, words: Words) -> bool:
        """There is no word that is certain to differ."""
        return False

    def restore(self) -> None:
        """Makes it what it was."""
        self.refill()
        if self.value is not MISSING:
            object.__setattr__(self.owner, self.name, self.value)


class Content(_Read):
    """What an object holds in all."""

    def __init__(self, value: Any, title: str, place: str = ""):
        self.title, self.place = title, place
        super().__init__(value)

    def now(self) -> Any:
        """The object itself."""
        return self.value

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        return watch_inside(self.value, words)


class Function(_Read):
    """Code and defaults of a function that ran."""

    def __init__(self, function: Any, place: str = ""):
        self.function, self.place = function, place
        self.title = f"code or defaults of {function.__qualname__}"
        super().__init__(self.now())

    def now(self) -> Any:
        """Code and defaults at present."""
        f = self.function
        return (f.__code__, f.__defaults__, f.__kwdefaults__)

    def watch(self, words: Words) -> bool:
        """Adds words that differ after a change; False where there are none."""
        _, defaults, keywords = self.now()
        return words.function(self.function) and watch_inside(defaults, words) and watch_inside(keywords, words)


def watch_inside(value: Any, words: Words, depth: int = 0) -> bool:
    """Watches what a value holds, whatever refers to it."""
    kind = type(value)
    words.owned.append(value)
    if kind is dict:
        found = words.dictionary(value)
    elif kind is list:
        found = words.list_(value)
    else:
        found = kind not in _UNWATCHED
    if not found or depth > DEEPEST:
        return False
    return all([watch_inside(part, words, depth + 1) for part in parts_of(value) if type(part) not in _LEAVES])


_LEAVES = frozenset({bool, int, float, str, bytes, type(None)})
_UNWATCHED = (CONTAINERS - {tuple, frozenset, dict, list}) | {bytearray, np.ndarray}


def class_entry(kind: type[Any], name: str) -> Any:
    """What a class or one of its bases has under a name, as it stands there."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return MISSING


def _short(value: Any) -> str:
    text = repr(value) if is_immutable(value) or value is MISSING else f"a {type(value).__name__}"
    return text if len(text) <= 60 else f"{text[:57]}..."


class _Still(NamedTuple):
    """What facts have found in a dictionary of which other entries change often."""

    words: Any
    """The table of words in which one stands for the dictionary."""
    place: int
    """Where."""
    found: list[tuple[Entry, Any]]

    def moves(self) -> bool:
        """Whether all these entries are what they were; then the dictionary is watched as it is."""
        word = word_at(self.words[self.place - 1])
        for fact, value in self.found:
            now = fact.now()
            if now is not value and not (is_immutable(now) and fact.holds()):
                return False
        self.words[self.place] = word
        return True


def _python_same(watch: Watch) -> Callable[[], bool]:
    return watch.same


class Account:
    """All facts that one compiled program relies on."""

    def __init__(
        self,
        counted: Iterable[Fact],
        watched: Iterable[Watched],
        always: Iterable[Fact] = (),
        make_same: Callable[[Watch], Callable[[], bool]] = _python_same,
        moving: Iterable[dict[Any, Any]] = (),
    ):
        """``counted`` are those whose changes the mutation epoch tells, ``always`` those that are asked each time;
        ``make_same`` makes what tells of words whether they are what they were. ``moving`` are dictionaries of which
        entries change often that are none of the facts: words tell of that, too, and then the others are looked at
        alone."""
        self.counted = tuple(counted)
        self.watched = tuple(watched)
        self.always = tuple(always)
        self.words = Watch()
        """Stay what they are while ``watched`` hold."""
        self._moving = list({id(table): table for table in moving}.values())
        self._still: list[_Still] = []
        self.taken = object()
        """Another object before words are taken anew."""
        self._told = False
        """Whether words tell of every change."""
        self._same = make_same(self.words)
        self._seen = -1
        """The mutation epoch when ``holds`` looked at ``counted`` last and they held."""

    def add(self, fact: Watched) -> None:
        """Relies on one more, of whose changes the mutation epoch and words tell together."""
        self.counted += (fact,)
        self.watched += (fact,)

    @property
    def is_certain(self) -> bool:
        """Whether the mutation epoch and the words tell of every change."""
        return self._told and not self.always

    def stands(self, taken: object) -> bool:
        """Whether nothing that words tell of has changed since ``taken`` was what it is."""
        return self._same() and self.taken is taken

    def holds(self) -> bool:
        """Whether every fact does."""
        epoch = EPOCH[0]
        if self._seen != epoch:
            if not all([fact.holds() for fact in self.counted]):
                return False
            self._seen = epoch
        for fact in self.always:
            if not fact.holds():
                return False
        return (self._told and (self._same() or self._only_moved())) or self._look()

    def _only_moved(self) -> bool:
        """Whether nothing has changed but other entries of the dictionaries where that is usual."""
        still = self._still
        self.taken = object()
        return bool(still) and all([s.moves() for s in still]) and self._same()

    def _look(self) -> bool:
        words = Words(self._moving)
        # NOTE: first the words, then the values: a change between the two is seen at the next call.
        told = all([fact.watch(words) for fact in self.watched] + [words.dictionary(t) for t in self._moving])
        if not all([fact.holds() for fact in self.watched]):
            return False
        # NOTE: those in which nothing has changed since their words were taken have what was found to hold.
        found = [(entries := self._found_in(t), words.place_of(t, len(entries) + 1)) for t in self._moving]
        self.taken = object()
        table = self.words.set(words.found, words.owned)
        self._still = [_Still(table, place, entries) for entries, place in found if place is not None]
        self._told = told
        return True

    def _found_in(self, table: dict[Any, Any]) -> list[tuple[Entry, Any]]:
        return [(f, f.now()) for f in self.watched if isinstance(f, Entry) and f.table is table and not f.crowded]

    def why(self) -> list[str]:
        """What has changed."""
        return broken(list({id(f): f for f in (*self.counted, *self.always, *self.watched)}.values()))


def broken(facts: Sequence[Fact]) -> list[str]:
    """The reasons of the facts that do not hold."""
    return [fact.why() for fact in facts if not fact.holds()]
