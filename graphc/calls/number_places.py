"""Dynamic numbers in arguments and attributes: each call passes their values, so other values need no new program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from graphc.base.errors import ArgumentError
from graphc.base.location import raised_at
from graphc.base.sizes.symbolic import Number, NumberRecord
from graphc.guards.facts import DictEntry
from graphc.guards.number_reads import NumberRead, ReadPlace, TraceNumbers, changed_numbers
from graphc.ops import dispatch
from graphc.ops.define import element
from graphc.tensors.structure import Branch, Open, Static, Structure, numbers, with_numbers
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced

DynamicValues = list[tuple[str, Number]]
"""Values of the dynamic numbers among the arguments, each with its path."""
Fresh = Callable[[], TraceNumbers]
NumberSource = str | ReadPlace
"""The path of an argument, or an attribute."""
MOST_ANSWERS = 8
"""Programs for different outcomes of branches on the same numbers, after which these become constants."""


class _ArgumentNumbers:
    """The numbers in one structure of arguments."""

    def __init__(self, statics: Sequence[Static]):
        self.first = [static.key for static in statics]
        """Keys of the numbers in the first call."""
        self.open: frozenset[int] = frozenset()
        """Indices of the dynamic numbers. Replaced as a whole, never mutated: other threads read it without a lock."""


class _Program(Protocol):
    """A program of the compiled function."""

    @property
    def traced(self) -> Traced:
        """The trace from which it was compiled."""
        ...


class DynamicNumbers:
    """The numbers that each call passes, for each structure of arguments and for the attributes read by the trace.

    A number starts as a constant of the program and becomes dynamic once it takes a second value. It becomes a constant
    for good when a trace needs its value.
    """

    def __init__(self) -> None:
        self._states: dict[Structure, _ArgumentNumbers] = {}
        self._any = False
        """Whether any number among the arguments is dynamic."""
        self._attributes: frozenset[ReadPlace] = frozenset()
        """The dynamic attributes."""
        self._fixed: set[NumberSource] = set()
        self.constants: dict[str, str] = {}
        """For each number that is a constant for good, by path or by the attribute's title: the line that needs its
        value.
        """
        self._new: list[str] = []
        """Titles of the attributes that became dynamic last."""

    def split(self, structure: Any) -> tuple[Any, DynamicValues]:
        """Return the structure with dynamic numbers abstracted, and the values of these numbers with their paths."""
        if not self._any or not isinstance(structure, Branch):
            return structure, []
        entries = numbers(structure)
        state = self._states.get(_loose(structure, entries)) if entries else None
        dynamic = state.open if state is not None else ()
        if not dynamic:
            return structure, []
        branches = [Open(s.value) if i in dynamic else s for i, (_, s) in enumerate(entries)]
        values = [(path, s.value) for i, (path, s) in enumerate(entries) if i in dynamic]
        return with_numbers(structure, iter(branches)), values

    def learn(self, structure: Any, programs: Iterable[_Program] = ()) -> tuple[Any, DynamicValues]:
        """Make numbers dynamic that differ from their first values, then split. Called when none of the ``programs``
        fits.

        Attributes whose numbers differ from those in one of the programs become dynamic too.
        """
        read = {source for program in programs for source in changed_numbers(program.traced.attributes.facts)}
        new = read - self._fixed - self._attributes
        self._attributes |= new
        self._new = [source.title for source in new]
        entries = numbers(structure) if isinstance(structure, Branch) else []
        if entries:
            loose = _loose(structure, entries)
            state = self._states.setdefault(loose, _ArgumentNumbers([s for _, s in entries]))
            for i, (path, static) in enumerate(entries):
                if static.key != state.first[i] and path not in self._fixed:
                    state.open |= {i}
                    self._any = True
        return self.split(structure)

    @property
    def remarks(self) -> dict[str, str]:
        """Remarks on numbers for messages, by the path of an argument or the title of an attribute."""
        constants_remarks = {path: f"its value is needed at {line}" for path, line in self.constants.items()}
        return constants_remarks | dict.fromkeys(self._new, "now passed by each call")

    def fix(self, needed: Mapping[Any, str]) -> None:
        """Make numbers constants for good. ``needed`` maps each to the line that needs its value."""
        self._fixed.update(needed)
        self._attributes -= needed.keys()
        self.constants.update({p.title if isinstance(p, ReadPlace) else p: line for p, line in needed.items()})
        for loose, state in self._states.items():
            paths = [path for path, _ in numbers(loose)]
            state.open -= {i for i, path in enumerate(paths) if path in needed}
        self._any = any(state.open for state in self._states.values())

    def traced(
        self, structure: Any, trace: Callable[[Fresh], Traced]
    ) -> tuple[Any, DynamicValues, Traced, NumberInputs]:
        """Trace a call with symbols for dynamic numbers. Numbers whose value the trace needs become constants; trace
        again.

        Each call of ``trace`` gets a function that creates fresh symbols. Return the structure and dynamic values as
        ``split`` does, the trace, and the inputs by which its program takes the numbers.
        """
        while True:
            shape, dynamic = self.split(structure)
            symbols = _Symbols(structure, shape, dynamic, self._attributes, self._fixed)
            if not dynamic and not self._attributes:
                result = trace(symbols)
                if not symbols.sources:
                    return shape, dynamic, result, NumberInputs(None)
                if not (needed := symbols.pinned() | result.attributes.pinned_reads):
                    return shape, dynamic, result, symbols.inputs()
                self.fix(needed)
                continue
            try:
                result = trace(symbols)
            # NOTE: C extensions may refuse a symbol where they expect a number. If the call itself is wrong, the trace
            # without symbols raises the error.
            except Exception as error:
                if not symbols.sources:
                    raise
                result, location = trace(TraceNumbers), f"{raised_at(error)}, {type(error).__name__}"
                self.fix(dict.fromkeys(symbols.sources, location))
                if result.training is None:
                    return *self.split(structure), result, NumberInputs(None)
                continue
            needed = symbols.pinned() | result.attributes.pinned_reads
            if location := result.attributes.asks_type:
                needed = dict.fromkeys(symbols.sources, f"{location}, type()")
            if not needed:
                return shape, dynamic, result, symbols.inputs()
            self.fix(needed)


class _Symbols:
    """Creates fresh symbols for the dynamic numbers at each trace of a call."""

    def __init__(
        self,
        structure: Any,
        shape: Any,
        dynamic: DynamicValues,
        dynamic_attributes: frozenset[ReadPlace],
        fixed: set[NumberSource],
    ):
        self._all = list(zip(numbers(structure), numbers(shape), strict=True)) if dynamic else []
        self._dynamic = dynamic
        self._dynamic_attributes, self._fixed = dynamic_attributes, frozenset(fixed)
        self._traces: list[TraceNumbers] = []

    def __call__(self) -> TraceNumbers:
        record = NumberRecord([number for _, number in self._dynamic])
        symbols = iter(record.symbols)
        arguments = tuple([next(symbols) if isinstance(b, Open) else a.value for (_, a), (_, b) in self._all])
        self._traces.append(TraceNumbers(arguments, record, self._dynamic_attributes, self._fixed))
        return self._traces[-1]

    def _sources(self, trace: TraceNumbers) -> list[NumberSource]:
        return [*(path for path, _ in self._dynamic), *(read.place for read in trace.reads.values())]

    @property
    def sources(self) -> list[NumberSource]:
        """The numbers for which the traces have created symbols."""
        return [source for trace in self._traces for source in self._sources(trace)]

    def pinned(self) -> dict[NumberSource, str]:
        """Return the dynamic numbers whose values a trace needed, each with the line."""
        return {self._sources(t)[i]: line for t in self._traces for i, line in t.record.pinned.items()}

    def inputs(self) -> NumberInputs:
        """Return the number inputs for a program of the last trace."""
        trace = self._traces[-1]
        sources = self._sources(trace)
        return NumberInputs(trace.record if sources else None, sources, list(trace.reads.values()))


def _loose(structure: Structure, entries: Sequence[tuple[str, Static]]) -> Structure:
    return with_numbers(structure, iter([Open(s.value) for _, s in entries]))


class NumberInputs:
    """The inputs by which a program takes the dynamic numbers of its calls, as its trace recorded them."""

    def __init__(
        self, record: NumberRecord | None, sources: Sequence[NumberSource] = (), reads: Sequence[NumberRead] = ()
    ):
        """``places`` are the sources of the record's numbers. The last of them belong to ``reads``."""
        self._record = record
        self._sources = sources
        self._reads = [(read.fact, type(read.fact.value)) for read in reads]
        self._inputs = [] if record is None else list(record.inputs)
        self._refused: Sequence[Number] | None = None
        """The numbers refused last, up to and excluding one of another type."""

    @property
    def is_empty(self) -> bool:
        """Whether the program takes no dynamic numbers."""
        return self._record is None

    @property
    def sources(self) -> tuple[NumberSource, ...]:
        """The dynamic numbers that the program takes."""
        return tuple(self._sources)

    @property
    def are_watched(self) -> bool:
        """Whether watched memory words reveal each change of a number in an attribute."""
        return all([isinstance(fact, DictEntry) for fact, _ in self._reads])

    def tensors(self, dynamic: DynamicValues) -> list[Tensor] | None:
        """Return the program's inputs for these numbers and those in attributes, as scalar tensors.

        Return None where the numbers do not fit. Read each attribute once.
        """
        if self._record is None:
            return []
        plain = [number for _, number in dynamic]
        for fact, kind in self._reads:
            number = fact.now()
            if type(number) is not kind:
                self._refused = plain
                return None
            plain.append(number)
        return self._scalars(plain)

    def traced_tensors(self) -> list[Tensor]:
        """Return the program's inputs for the numbers of the traced call."""
        return [] if self._record is None else self._scalars(self._record.given) or []

    def _scalars(self, plain: Sequence[Number]) -> list[Tensor] | None:
        assert self._record is not None
        slots = self._record.replay(plain)
        try:
            if slots is not None:
                scalar = dispatch.default().scalar
                return [scalar(element(slots[i], dtype), dtype) for i, dtype in self._inputs]
        except ArgumentError:  # an int beyond i64; a new trace will refuse it and name the line
            pass
        self._refused = plain
        return None

    @property
    def asks(self) -> dict[NumberSource, str]:
        """The numbers on whose values branches depend, each with the line that asked first."""
        return {} if self._record is None else {self._sources[i]: line for i, line in self._record.asked.items()}

    def why(self) -> list[str]:
        """Explain why the last refused numbers did not fit."""
        if self._record is None or self._refused is None:
            return []
        if len(self._refused) < len(self._sources):
            return [self._reads[len(self._refused) - len(self._sources)][0].why()]
        titles = [source.title if isinstance(source, ReadPlace) else source for source in self._sources]
        return [f"numbers {', '.join(titles)}: {self._record.why(self._refused)}"]
