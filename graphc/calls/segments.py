"""Programs of functions that read values of a call: segments that run one after the other, chosen by what they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.errors import TraceError
from graphc.base.sizes.assumptions import Assumptions, by_stage
from graphc.base.sizes.size import Dimension
from graphc.calls.number_places import NumberInputs
from graphc.calls.outside import Outside
from graphc.calls.plan import Plan, summed
from graphc.calls.sized_traces import structure_at, value_at
from graphc.guards.attributes import set_again
from graphc.ir.graph.cut import Part, cut
from graphc.ir.graph.graph import Graph, Value, input_path
from graphc.ir.graph.interpret import assumed
from graphc.tensors.structure import Leaf, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import Traced

MOST_PATHS = 16
"""Limit on the paths of one signature, of which the oldest goes."""
Answers = dict[int, int]
"""Values that a call has read, by the index of the read."""
Function = Any
"""A compiled function."""


Maker = Callable[[Graph, Mapping[str, Tensor]], Function]
"""Compiles a graph with its params and states, by path."""


class ProgramSegment:
    """A part of a trace as a compiled function."""

    def __init__(self, part: Part, tensors: Mapping[str, Tensor], make: Maker):
        self.part = part
        self.tensors = tensors
        self.function = make(part.graph, tensors)

    def is_same(self, part: Part, tensors: Mapping[str, Tensor]) -> bool:
        """Return whether a part of another trace computes the same with the same tensors."""
        same = self.tensors.keys() == tensors.keys() and all(t is tensors[p] for p, t in self.tensors.items())
        mine, other = self.part.graph, part.graph
        return same and mine == other and list(mine.assumptions) == list(other.assumptions)

    def run(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs."""
        results = self.function(*arguments)
        return results if isinstance(results, tuple) else (results,)


class TracedPath:
    """The segments of one trace, which is valid for what it has read."""

    def __init__(self, traced: Traced, outside: Outside, before: Sequence[ProgramSegment], make: Maker):
        """Compile the segments that none of those of ``before`` equals."""
        self.traced = traced
        self.account = outside.account()
        self.slots = list(outside.slots.values())
        graph, assumptions = traced.graph, tuple(traced.assumptions.found.values())
        graph.assumptions = assumptions
        self.dimensions = [read.dimension for read in traced.reads]
        self.assumptions = by_stage(assumptions, self.dimensions)
        """By the number of reads after which all their sizes are known."""
        tensors = {input_path(a.value): a.tensor for a in traced.arguments}
        with assumed(graph):
            self.parts = cut(graph, [r.value for r in traced.reads], [r.input for r in traced.reads])
        self.segments: list[ProgramSegment] = []
        for part in self.parts:
            bound = {path: tensors[path] for v in part.graph.inputs if (path := input_path(v))}
            same = next((segment for segment in before if segment.is_same(part, bound)), None)
            self.segments.append(same or ProgramSegment(part, bound, make))

    def holds(self) -> bool:
        """Return whether the world outside is as the trace saw it."""
        return self.account.holds() and all(slot.holds() for slot in self.slots)

    def run(
        self,
        leaves: Sequence[Any],
        sizes: Mapping[Dimension, int],
        answers: Answers,
        done: dict[ProgramSegment, tuple[Any, ...]],
    ) -> Any:
        """Return the result of a call, or None where it reads something else than the trace.

        ``answers`` receives what it reads, ``done`` the results of its segments.
        """
        values: dict[Value, Any] = dict(zip(self.traced.inputs, leaves, strict=True))
        known = dict(sizes)
        if self._is_broken(0, known):
            return None
        for number, (part, segment) in enumerate(zip(self.parts, self.segments, strict=True)):
            if segment not in done:
                done[segment] = segment.run([values[v] for v in part.inputs])
            values.update(zip(part.outputs, done[segment], strict=True))
            if number < len(self.dimensions) and not self._fits(number, values, known, answers):
                return None
        results = [values[v] for v in self.traced.graph.outputs]
        if self.traced.effects:
            set_again(tuple([(table, name, value_at(x, known)) for table, name, x in self.traced.effects]))
        structure = self.traced.structure
        return results[0] if isinstance(structure, Leaf) else unflatten(structure_at(structure, known), results)

    def _fits(self, number: int, values: dict[Value, Any], known: dict[Dimension, int], answers: Answers) -> bool:
        """Read the value at the end of a segment; return whether the trace is valid for it."""
        read = self.traced.reads[number]
        answer = answers[number] = int(values[read.value].item())
        dimension = self.dimensions[number]
        if dimension is None or read.input is None:
            return bool(answer) is read.answer
        if not dimension.low <= answer <= dimension.high:
            return False
        known[dimension], values[read.input] = answer, answer
        return not self._is_broken(number + 1, known)

    def _is_broken(self, reads: int, known: Mapping[Dimension, int]) -> bool:
        """Return whether an assumption does not hold that this number of reads decides."""
        return any(not a.holds(known) for a in self.assumptions[reads])


Retrace = Callable[[Sequence[Any], Answers, Sequence[ProgramSegment]], TracedPath]


class Segmented:
    """The programs of one signature of a function that reads values of each call: a path for each that it may take."""

    def __init__(self, name: str, first: TracedPath, retrace: Retrace):
        self.name = name
        self.paths = [first]
        self._retrace = retrace
        """Traces the function for a call on tensors, with the values that it has read so far and the segments."""
        self.numbers = NumberInputs(None)
        self.assumptions = Assumptions()
        self.drawn: dict[Any, dict[str, int]] = {}
        self.sources: list[int] = []
        self.memory_report = None
        self.is_thrashing = False

    used: int
    """Sequence number of the last use, set by the store."""

    @property
    def traced(self) -> Traced:
        """The trace of the path that was taken last."""
        return self.paths[0].traced

    @property
    def nbytes(self) -> int:
        """See ``program_store``: the segments are compiled functions with programs in stores of their own."""
        return 0

    def holds(self) -> bool:
        """Check that the world outside is unchanged since the traces."""
        return all(path.holds() for path in self.paths)

    def why(self) -> list[str]:
        """Return what changed."""
        return [reason for path in self.paths for reason in path.account.why()]

    def shortcut(self) -> None:
        """Return None: each call chooses its path in Python."""

    def run(self, leaves: Sequence[Any], sizes: Mapping[Dimension, int] | None = None) -> Any:
        """Call the path whose trace is valid for what the call reads; trace another one where there is none."""
        done: dict[ProgramSegment, tuple[Any, ...]] = {}
        read: Answers = {}
        for path in self.paths:
            answers: Answers = {}
            result = path.run(leaves, sizes or {}, answers, done)
            if result is not None:
                self._use(path)
                return result
            read = answers if len(answers) > len(read) else read
        for _ in range(MOST_PATHS):
            path = self._retrace(leaves, read, self.segments)
            result = path.run(leaves, sizes or {}, read := {}, done)
            self._use(path)
            if result is not None:
                return result
        raise TraceError(f"{self.name} reads other values in each trace", remedy="call it without compilation")

    def _use(self, path: TracedPath) -> None:
        if self.paths[0] is not path:
            self.paths = [path, *(p for p in self.paths if p is not path)][:MOST_PATHS]

    @property
    def segments(self) -> list[ProgramSegment]:
        """The segments of all paths, each once."""
        return list(dict.fromkeys(segment for path in self.paths for segment in path.segments))

    @property
    def plans(self) -> list[Plan]:
        """The plans of the programs of all segments."""
        return [plan for segment in self.segments for plan in segment.function.programs]

    def plan(self, leaves: Sequence[Tensor] | None = None) -> Plan:
        """Return the cost of the path that was taken last, for the expected sizes of what it reads.

        A segment counts once a call has compiled it.
        """
        plans = [plan for segment in self.paths[0].segments for plan in segment.function.programs]
        return summed(self.name, tuple([f"{v.name}: {v.type}" for v in self.traced.inputs]), plans)


def no_training(name: str, traced: Traced) -> None:
    """Raise TraceError where a trace that reads values changes gradients or calls Python functions."""
    if traced.training is not None or traced.host:
        raise TraceError(
            f"{name} reads values of a call, and it changes gradients or calls Python functions",
            origin=traced.reads[0].place,
            remedy="compile the model alone, and call backward() and the optimizer outside",
        )
