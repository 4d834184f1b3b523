"""Which numbers in arguments and attributes are part of the programs of a compiled function; each call gives others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from graphc.base.errors import ArgumentError
from graphc.base.location import raised_at
from graphc.base.sizes.symbolic import Number, NumberRecord
from graphc.guards.facts import Entry
from graphc.guards.number_reads import NumberRead, ReadPlace, TraceNumbers, changed_numbers
from graphc.ops import dispatch
from graphc.ops.define import element
from graphc.tensors.structure import Branch, Open, Static, Structure, numbers, with_numbers
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced

Given = list[tuple[str, Number]]
"""Open numbers among the arguments, each with the way to it."""
Fresh = Callable[[], TraceNumbers]
Place = str | ReadPlace
"""The way to an argument, or an attribute."""
MOST_ANSWERS = 8
"""Programs for different answers to questions about the same numbers, after which these are constants."""


class _Places:
    """The numbers in one structure of arguments."""

    def __init__(self, statics: Sequence[Static]):
        self.first = [static.key for static in statics]
        """What the numbers of the first call are known by."""
        self.open: frozenset[int] = frozenset()
        """Numbers of the places that each call gives. Replaced, never changed: other threads read it without a lock."""


class _Program(Protocol):
    """A program of the function."""

    @property
    def traced(self) -> Traced:
        """What it was made of."""
        ...


class NumberPlaces:
    """For each structure of arguments, and for the attributes that are read, which numbers are open: given by each
    call.

    A number is a constant of the program at first, and open once it takes a second value; it becomes a constant for
    good when a trace has needed its value.
    """

    def __init__(self) -> None:
        self._places: dict[Structure, _Places] = {}
        self._any = False
        """Whether any number among the arguments is open."""
        self._attributes: frozenset[ReadPlace] = frozenset()
        """Those that are open."""
        self._fixed: set[Place] = set()
        self.constants: dict[str, str] = {}
        """The way to each number that is a constant for good, or the title of the attribute, and the line that needs
        it."""
        self._new: list[str] = []
        """Titles of the attributes that were opened last."""

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

    def learned(self, structure: Any, programs: Iterable[_Program] = ()) -> tuple[Any, Given]:
        """As ``opened``, when none of the ``programs`` fits: numbers that are others than at first are open from now
        on, and so are those in attributes that are others than for one of the programs."""
        read = {place for program in programs for place in changed_numbers(program.traced.attributes.facts)}
        new = read - self._fixed - self._attributes
        self._attributes |= new
        self._new = [place.title for place in new]
        found = numbers(structure) if isinstance(structure, Branch) else []
        if found:
            loose = _loose(structure, found)
            places = self._places.setdefault(loose, _Places([s for _, s in found]))
            for i, (path, static) in enumerate(found):
                if static.key != places.first[i] and path not in self._fixed:
                    places.open |= {i}
                    self._any = True
        return self.opened(structure)

    @property
    def remarks(self) -> dict[str, str]:
        """What messages say of numbers, by the way to an argument or by the title of an attribute."""
        found = {path: f"its value is needed at {line}" for path, line in self.constants.items()}
        return found | dict.fromkeys(self._new, "from now on each call gives it")

    def fix(self, needed: Mapping[Any, str]) -> None:
        """Makes numbers constants for good, by the place of each and the line that needs it."""
        self._fixed.update(needed)
        self._attributes -= needed.keys()
        self.constants.update({p.title if isinstance(p, ReadPlace) else p: line for p, line in needed.items()})
        for loose, places in self._places.items():
            paths = [path for path, _ in numbers(loose)]
            places.open -= {i for i, path in enumerate(paths) if path in needed}
        self._any = any(places.open for places in self._places.values())

    def traced(self, structure: Any, trace: Callable[[Fresh], Traced]) -> tuple[Any, Given, Traced, GivenNumbers]:
        """What ``trace`` makes of a call with open numbers, which it gets from the function that it is given: new ones
        for each trace. Numbers whose value it needs become constants, and it traces again.

        Returns structure and open arguments as ``opened``, the trace, and how its program takes the numbers.
        """
        while True:
            shape, given = self.opened(structure)
            symbols = _Symbols(structure, shape, given, self._attributes, self._fixed)
            if not given and not self._attributes:
                found = trace(symbols)
                if not symbols.places:
                    return shape, given, found, GivenNumbers(None)
                if not (needed := symbols.pinned() | found.attributes.pinned_reads):
                    return shape, given, found, symbols.taken()
                self.fix(needed)
                continue
            try:
                found = trace(symbols)
            # NOTE: Python code in C may refuse what stands for a number. What is wrong with the call itself is raised
            # by the trace without open numbers.
            except Exception as error:
                if not symbols.places:
                    raise
                found, place = trace(TraceNumbers), f"{raised_at(error)}, {type(error).__name__}"
                self.fix(dict.fromkeys(symbols.places, place))
                if found.training is None:
                    return *self.opened(structure), found, GivenNumbers(None)
                continue
            needed = symbols.pinned() | found.attributes.pinned_reads
            if place := found.attributes.asks_type:
                needed = dict.fromkeys(symbols.places, f"{place}, type()")
            if not needed:
                return shape, given, found, symbols.taken()
            self.fix(needed)


class _Symbols:
    """Makes new numbers for each trace of a call, where symbols stand for those that are open."""

    def __init__(self, structure: Any, shape: Any, given: Given, opened: frozenset[ReadPlace], fixed: set[Place]):
        self._all = list(zip(numbers(structure), numbers(shape), strict=True)) if given else []
        self._given = given
        self._opened, self._fixed = opened, frozenset(fixed)
        self._traces: list[TraceNumbers] = []

    def __call__(self) -> TraceNumbers:
        record = NumberRecord([number for _, number in self._given])
        symbols = iter(record.symbols)
        arguments = tuple([next(symbols) if isinstance(b, Open) else a.value for (_, a), (_, b) in self._all])
        self._traces.append(TraceNumbers(arguments, record, self._opened, self._fixed))
        return self._traces[-1]

    def _places(self, trace: TraceNumbers) -> list[Place]:
        return [*(path for path, _ in self._given), *(read.place for read in trace.reads.values())]

    @property
    def places(self) -> list[Place]:
        """The numbers for which the traces have got symbols."""
        return [place for trace in self._traces for place in self._places(trace)]

    def pinned(self) -> dict[Place, str]:
        """The open numbers whose values a trace has needed, each with the line."""
        return {self._places(t)[i]: place for t in self._traces for i, place in t.record.pinned.items()}

    def taken(self) -> GivenNumbers:
        """How a program of the last trace takes its numbers."""
        trace = self._traces[-1]
        places = self._places(trace)
        return GivenNumbers(trace.record if places else None, places, list(trace.reads.values()))


def _loose(structure: Structure, found: Sequence[tuple[str, Static]]) -> Structure:
    return with_numbers(structure, iter([Open(s.value) for _, s in found]))


class GivenNumbers:
    """How a program takes the open numbers of its calls: what its trace has made of them."""

    def __init__(self, record: NumberRecord | None, places: Sequence[Place] = (), reads: Sequence[NumberRead] = ()):
        """``places`` are those of the numbers of the record, at last those of ``reads``."""
        self._record = record
        self._places = places
        self._reads = [(read.fact, type(read.fact.value)) for read in reads]
        self._inputs = [] if record is None else list(record.inputs)
        self._refused: Sequence[Number] | None = None
        """The numbers that it refused last, up to one of another type."""

    @property
    def is_none(self) -> bool:
        """Whether the program takes no numbers."""
        return self._record is None

    @property
    def are_watched(self) -> bool:
        """Whether the words of its account tell of another number in an attribute."""
        return all([isinstance(fact, Entry) for fact, _ in self._reads])

    def tensors(self, given: Given) -> list[Tensor] | None:
        """What the program takes for these numbers and those in attributes, tensors without dimensions; None where it
        does not fit them. Each attribute is read once."""
        if self._record is None:
            return []
        plain = [number for _, number in given]
        for fact, kind in self._reads:
            number = fact.now()
            if type(number) is not kind:
                self._refused = plain
                return None
            plain.append(number)
        return self._made(plain)

    def of_trace(self) -> list[Tensor]:
        """What it takes for the numbers of the call that was traced."""
        return [] if self._record is None else self._made(self._record.given) or []

    def _made(self, plain: Sequence[Number]) -> list[Tensor] | None:
        assert self._record is not None
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
    def asks(self) -> dict[Place, str]:
        """The places of numbers of which it depends on answers, each with the line that asked first."""
        return {} if self._record is None else {self._places[i]: place for i, place in self._record.asked.items()}

    def why(self) -> list[str]:
        """Why it did not fit the last numbers that it refused."""
        if self._record is None or self._refused is None:
            return []
        if len(self._refused) < len(self._places):
            return [self._reads[len(self._refused) - len(self._places)][0].why()]
        titles = [place.title if isinstance(place, ReadPlace) else place for place in self._places]
        return [f"numbers {', '.join(titles)}: {self._record.why(self._refused)}"]
