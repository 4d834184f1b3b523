"""Numbers that each call passes, as arguments or in attributes, and the symbols that replace them in a trace."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from graphc.base.records import NamedTuple
from graphc.base.sizes.symbolic import KINDS, NumberRecord, value
from graphc.guards.facts import DictEntry, Fact, SlotAttribute, class_entry


class ReadPlace(NamedTuple):
    """The attribute that holds a number, of an object that existed before the trace."""

    owner: int
    """Identity of the object. A new object may reuse the identity of a deleted one, which only costs an extra
    program."""
    name: str
    title: str
    """The name of the attribute in messages."""


class NumberRead(NamedTuple):
    """A number the trace has read; each call reads it once."""

    place: ReadPlace
    fact: Any
    """The fact about the attribute; its ``value`` and ``key`` are those of the trace, ``now`` returns the present
    number."""
    symbol: Any
    """The symbolic number that the trace used."""


class TraceNumbers:
    """The symbolic numbers of one trace."""

    def __init__(
        self,
        arguments: Sequence[Any] = (),
        record: NumberRecord | None = None,
        opened: Collection[ReadPlace] = frozenset(),
        fixed: Collection[Any] = frozenset(),
    ):
        self.arguments = arguments
        """For each number argument, itself or a symbolic number of ``record``; empty if all are plain."""
        self.record = record or NumberRecord()
        self.opened = opened
        self.fixed = fixed
        """Numbers that must be constants because traces need their values."""
        self.reads: dict[tuple[int, str], NumberRead] = {}
        """Attributes that were read as symbolic numbers, in the order of the record, after the arguments."""

    def read(self, owner: Any, name: str, number: Any, fact: Fact | None) -> Any:
        """Return the value the trace receives on its first read of a number attribute; ``fact`` describes it."""
        if not self.opened or type(number) not in KINDS or not isinstance(fact, (DictEntry, SlotAttribute)):
            return number
        location = ReadPlace(id(owner), name, fact.title)
        if location not in self.opened or fact.value is not number or _is_computed(owner, fact):
            return number
        number_read = self.reads[id(owner), name] = NumberRead(location, fact, self.record.add(number))
        return number_read.symbol

    def again(self, key: tuple[int, str], number: Any) -> Any:
        """Return the value the trace receives when it reads an attribute again."""
        number_read = self.reads.get(key)
        return number if number_read is None or number_read.fact.value is not number else number_read.symbol

    def born(self, owner: Any) -> None:
        """Fix the numbers of an object the trace itself created: calls do not pass them."""
        for number_read in self.reads.values():
            if number_read.place.owner == id(owner):
                value(number_read.symbol)


def _is_computed(owner: Any, fact: DictEntry | SlotAttribute) -> bool:
    """Return whether the class overrides an attribute of the object's dictionary."""
    return isinstance(fact, DictEntry) and hasattr(type(class_entry(type(owner), fact.name)), "__set__")


def changed_numbers(facts: Mapping[Any, Fact]) -> Iterator[ReadPlace]:
    """Yield the attributes whose numbers have changed since the trace, but not their types."""
    for key, fact in facts.items():
        if isinstance(fact, (DictEntry, SlotAttribute)) and type(fact.value) in KINDS and isinstance(key[0], int):
            same_type = type(fact.now()) is type(fact.value)
            if same_type and not fact.holds():
                yield ReadPlace(key[0], key[1], fact.title)
