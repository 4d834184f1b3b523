"""Numbers that each call of compiled code gives, as arguments or in attributes, and what stands for them in a trace."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.base.sizes.symbolic import KINDS, NumberRecord, value
from graphc.guards.facts import Entry, Fact, Slot, class_entry


class ReadPlace(NamedTuple):
    """Where a number is read: an attribute of an object that was there before the trace."""

    owner: int
    """Identity of the object. One that takes the place of an object that is gone may be taken for it, which costs a
    program, nothing else."""
    name: str
    title: str
    """What messages call it."""


class NumberRead(NamedTuple):
    """A number that a trace has read, and each call reads once."""

    place: ReadPlace
    fact: Any
    """With the number as ``value`` and ``key``; ``now`` gives that of a call."""
    symbol: Any
    """What stands for it in the trace."""


class TraceNumbers:
    """What one trace gets for the numbers that each call gives."""

    def __init__(
        self,
        arguments: Sequence[Any] = (),
        record: NumberRecord | None = None,
        opened: Collection[ReadPlace] = frozenset(),
        fixed: Collection[Any] = frozenset(),
    ):
        self.arguments = arguments
        """What stands for each number among the arguments: itself, or a symbolic number of ``record``; nothing where
        each is itself."""
        self.record = record or NumberRecord()
        self.opened = opened
        self.fixed = fixed
        """Numbers whose values traces need, so that they are constants."""
        self.reads: dict[tuple[int, str], NumberRead] = {}
        """Attributes of which symbolic numbers were given, in the order of the record, after the arguments."""

    def read(self, owner: Any, name: str, number: Any, fact: Fact | None) -> Any:
        """What the trace gets for what it reads in an attribute for the first time, which is ``fact``."""
        if not self.opened or type(number) not in KINDS or not isinstance(fact, (Entry, Slot)):
            return number
        place = ReadPlace(id(owner), name, fact.title)
        if place not in self.opened or fact.value is not number or _is_computed(owner, fact):
            return number
        found = self.reads[id(owner), name] = NumberRead(place, fact, self.record.add(number))
        return found.symbol

    def again(self, key: tuple[int, str], number: Any) -> Any:
        """What the trace gets for what it has read before."""
        found = self.reads.get(key)
        return number if found is None or found.fact.value is not number else found.symbol

    def born(self, owner: Any) -> None:
        """An object that is made by the trace has no numbers that calls give."""
        for found in self.reads.values():
            if found.place.owner == id(owner):
                value(found.symbol)


def _is_computed(owner: Any, fact: Entry | Slot) -> bool:
    """Whether the class gives another value for an attribute than the dictionary of the object holds."""
    return isinstance(fact, Entry) and hasattr(type(class_entry(type(owner), fact.name)), "__set__")


def changed_numbers(facts: Mapping[Any, Fact]) -> Iterator[ReadPlace]:
    """The places in attributes where a trace has read numbers that are others now, of the same type."""
    for key, fact in facts.items():
        if isinstance(fact, (Entry, Slot)) and type(fact.value) in KINDS and isinstance(key[0], int):
            same_type = type(fact.now()) is type(fact.value)
            if same_type and not fact.holds():
                yield ReadPlace(key[0], key[1], fact.title)
