"""Which numbers among the arguments of a compiled function are part of its programs, and which each call gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.base.location import raised_at
from graphc.base.symbolic import Number, NumberRecord
from graphc.ops import dispatch
from graphc.ops.define import element
from graphc.tensors.structure import Branch, Open, Static, Structure, numbers, with_numbers
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced

Given = list[tuple[str, Number]]
"""Open numbers, each with the way to it."""
Fresh = Callable[[], Sequence[Any]]
MOST_ANSWERS = 8
"""Programs for different answers to questions about the same numbers, after which these are constants."""


class _Places:
    """The numbers in one structure of arguments."""

    def __init__(self, statics: Sequence[Static]):
        self.first = [static.key for static in statics]
        """What the numbers of the first call are known by."""
        self.open: frozenset[int] = frozenset()
        """Numbers of the places that each call gives. Replaced, never changed: other threads read it without a lock."""


class NumberPlaces:
    """For each structure of arguments, which of its numbers are open: given by each call.

    A number is a constant of the program at first, and open once it takes a second value; it becomes a constant for
    good when a trace has needed its value.
    """

    def __init__(self) -> None:
        self._places: dict[Structure, _Places] = {}
        self._any = False
        """Whether any number is open."""
        self.constants: dict[str, str] = {}
        """The way to each number that is a constant for good, and the line that needs it."""

    def opened(self, structure: Any) -> tuple[Any, Given]:
        """The structure that programs are known by, and the open numbers of this call, each with the way to it."""
        if not self._any or not isinstance(structure, Branch):
            return structure, []
        found = numbers(structure)
        places = self._places.get(_loose(structure, found)) if found else None
        taken = places.open if places is not None else ()
        if not taken:
            return structure, []
        shown = [Open(s.value) if i in taken else s for i, (_, s) in enumerate(found)]
        given = [(path, s.value) for i, (path, s) in enumerate(found) if i in taken]
        return with_numbers(structure, iter(shown)), given

    def learned(self, structure: Any) -> tuple[Any, Given]:
        """As ``opened``, when none of the programs fits: numbers that are others than at first are open from now on."""
        found = numbers(structure) if isinstance(structure, Branch) else []
        if found:
            loose = _loose(structure, found)
            places = self._places.setdefault(loose, _Places([s for _, s in found]))
            for i, (path, static) in enumerate(found):
                if static.key != places.first[i] and path not in self.constants:
                    places.open |= {i}
                    self._any = True
        return self.opened(structure)

    def fix(self, needed: Mapping[str, str]) -> None:
        """Makes numbers constants for good, by the way to each and the line that needs it."""
        self.constants.update(needed)
        for loose, places in self._places.items():
            paths = [path for path, _ in numbers(loose)]
            places.open -= {i for i, path in enumerate(paths) if path in needed}
        self._any = any(places.open for places in self._places.values())

    def traced(self, structure: Any, trace: Callable[[Fresh], Traced]) -> tuple[Any, Given, Traced, GivenNumbers]:
        """What ``trace`` makes of a call with open numbers, which it gets from the function that it is given: a new
        list of all numbers for each trace. Numbers whose value it needs become constants, and it traces again.

        Returns structure and open numbers as ``opened``, the trace, and how its program takes the numbers.
        """
        while True:
            shape, given = self.opened(structure)
            if not given:
                return shape, given, trace(tuple), GivenNumbers(None)
            symbols = _Symbols(structure, shape, given)
            try:
                found = trace(symbols)
            # NOTE: Python code in C may refuse what stands for a number. What is wrong with the call itself is raised
            # by the trace without open numbers.
            except Exception as error:
                found, place = trace(tuple), str(raised_at(error))
                self.fix({path: f"{place}, {type(error).__name__}" for path, _ in given})
                return *self.opened(structure), found, GivenNumbers(None)
            paths = [path for path, _ in given]
            needed = {paths[i]: place for i, place in symbols.pinned().items()}
            if place := found.attributes.asks_type:
                needed = dict.fromkeys(paths, f"{place}, type()")
            if not needed:
                return shape, given, found, GivenNumbers(symbols.records[-1], paths)
            self.fix(needed)


class _Symbols:
    """Makes a new list of all numbers of a structure, where symbols stand for those that are open."""

    def __init__(self, structure: Structure, shape: Structure, given: Given):
        self._all = list(zip(numbers(structure), numbers(shape), strict=True))
        self._given = [number for _, number in given]
        self.records: list[NumberRecord] = []

    def __call__(self) -> tuple[Any, ...]:
        record = NumberRecord(self._given)
        self.records.append(record)
        symbols = iter(record.symbols)
        return tuple([next(symbols) if isinstance(b, Open) else a.value for (_, a), (_, b) in self._all])

    def pinned(self) -> dict[int, str]:
        """The open numbers whose values a trace has needed, each with the line."""
        return {i: place for record in self.records for i, place in record.pinned.items()}


def _loose(structure: Structure, found: Sequence[tuple[str, Static]]) -> Structure:
    return with_numbers(structure, iter([Open(s.value) for _, s in found]))


class GivenNumbers:
    """How a program takes the open numbers of its calls: what its trace has made of them."""

    def __init__(self, record: NumberRecord | None, paths: Sequence[str] = ()):
        self._record = record
        self._paths = paths
        self._inputs = [] if record is None else list(record.inputs)
        self._refused: Sequence[Number] | None = None

    @property
    def is_none(self) -> bool:
        """Whether the program takes no numbers."""
        return self._record is None

    def tensors(self, given: Given) -> list[Tensor] | None:
        """What the program takes for these numbers, tensors without dimensions; None where it does not fit them."""
        if self._record is None:
            return []
        plain = [number for _, number in given]
        slots = self._record.replay(plain)
        try:
            if slots is not None:
                scalar = dispatch.default().scalar
                return [scalar(element(slots[i], dtype), dtype) for i, dtype in self._inputs]
        except ArgumentError:  # a whole number beyond i64, which a trace refuses with the line
            pass
        self._refused = plain
        return None

    @property
    def asks(self) -> dict[str, str]:
        """The ways to numbers of which it depends on answers, each with the line that asked first."""
        return {} if self._record is None else {self._paths[i]: place for i, place in self._record.asked.items()}

    def why(self) -> list[str]:
        """Why it did not fit the last numbers that it refused."""
        if self._record is None or self._refused is None:
            return []
        return [f"numbers {', '.join(self._paths)}: {self._record.why(self._refused)}"]
