"""Programs of functions that read values of a call: segments that run one after the other, chosen by what they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.errors import TraceError
from graphc.base.records import NamedTuple
from graphc.base.sizes.assumptions import Assumptions, by_stage
from graphc.base.sizes.size import Dimension
from graphc.calls.bindings import Slot
from graphc.calls.number_places import NumberInputs
from graphc.calls.outside import Outside
from graphc.calls.plan import Plan, summed
from graphc.calls.sized_traces import structure_at, value_at
from graphc.guards.attributes import set_again
from graphc.ir.graph.cut import Part
from graphc.ir.graph.graph import Graph, Value, input_path
from graphc.runtime.native_chain import ChainStep, NativeChain
from graphc.tensors.structure import Branch, Leaf, unflatten
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
        self.tensors = dict(tensors)
        self.function = make(part.graph, tensors)

    def is_same(self, part: Part, tensors: Mapping[str, Tensor]) -> bool:
        """Return whether a part of another trace computes the same with the same tensors."""
        same = self.tensors.keys() == tensors.keys() and all(t is tensors[p] for p, t in self.tensors.items())
        mine, other = self.part.graph, part.graph
        return same and mine == other and list(mine.assumptions) == list(other.assumptions)

    def take(self, slots: Mapping[str, Slot]) -> None:
        """Use the tensors that have replaced those of the trace."""
        for path, tensor in self.tensors.items():
            now = slots[path].tensor()
            if now is not tensor:
                self.tensors[path] = now
                self.function.replace(path, now)

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
        self.slots = outside.slots
        graph, assumptions = traced.graph, tuple(traced.assumptions.found.values())
        graph.assumptions = assumptions
        tensors = {input_path(a.value): a.tensor for a in traced.arguments}
        self.parts, self.groups = zip(*traced.parts(), strict=True)
        """The parts of the graph, and the indices of the reads after each."""
        order = [i for group in self.groups for i in group]
        staged = by_stage(assumptions, [traced.reads[i].dimension for i in order])
        self._early = staged[0]
        """The assumptions that the sizes of the arguments decide."""
        self._assumptions = dict(zip(order, staged[1:], strict=True))
        """The assumptions that each read decides after all reads before."""
        self.segments: list[ProgramSegment] = []
        for part in self.parts:
            bound = {path: tensors[path] for v in part.graph.inputs if (path := input_path(v))}
            same = next((segment for segment in before if segment.is_same(part, bound)), None)
            self.segments.append(same or ProgramSegment(part, bound, make))

    def holds(self) -> bool:
        """Return whether the world outside is as the trace saw it, apart from tensors of the same types."""
        if not (self.account.holds() and all(slot.holds() for slot in self.slots.values())):
            return False
        for segment in self.segments:
            segment.take(self.slots)
        return True

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
        if any(not a.holds(known) for a in self._early):
            return None
        for part, segment, group in zip(self.parts, self.segments, self.groups, strict=True):
            if segment not in done:
                done[segment] = segment.run([values[v] for v in part.inputs])
            values.update(zip(part.outputs, done[segment], strict=True))
            for number in group:
                if not self._fits(number, values, known, answers):
                    # NOTE: a trace with another answer may have other reads after this one.
                    for later in [i for i in answers if i > number]:
                        del answers[later]
                    return None
        results = [values[v] for v in self.traced.graph.outputs]
        if self.traced.effects:
            set_again(tuple([(table, name, value_at(x, known)) for table, name, x in self.traced.effects]))
        structure = self.traced.structure
        return results[0] if isinstance(structure, Leaf) else unflatten(structure_at(structure, known), results)

    def _fits(self, number: int, values: dict[Value, Any], known: dict[Dimension, int], answers: Answers) -> bool:
        """Read a value at the end of a segment; return whether the trace is valid for it."""
        read = self.traced.reads[number]
        answer = answers[number] = int(values[read.value].item())
        low, high = read.range
        if not low <= answer <= high:
            return False
        if read.dimension is not None and read.input is not None:
            known[read.dimension], values[read.input] = answer, answer
        return all(a.holds(known) for a in self._assumptions[number])

    @property
    def form(self) -> DType | int | None:
        """The type of a result that is one tensor, or the number of results in a tuple; None for other results."""
        structure, outputs = self.traced.structure, self.traced.graph.outputs
        if isinstance(structure, Leaf):
            return outputs[0].dtype
        is_tuple = len(outputs) > 1 and structure == Branch(tuple, (), (Leaf(),) * len(outputs))
        return len(outputs) if is_tuple else None

    def native(self) -> NativePath | None:
        """Return the native calls of the segments for calls like the one before; None where a call needs more."""
        traced, token = self.traced, self.account.taken
        calls = [call for segment in self.segments if (call := segment.function._short_way()) is not None]
        if len(calls) < len(self.segments) or not self.account.is_certain:
            return None
        if not all(slot.counted for slot in self.slots.values()):
            return None
        if (
            self.form is None
            or traced.effects
            or traced.aliases
            or traced.written
            or traced.attributes.compares_identity
        ):
            return None
        index = {v: i for i, v in enumerate(traced.inputs)}
        count, steps = len(index), []
        for part, segment, call, group in zip(self.parts, self.segments, calls, self.groups, strict=True):
            reads = [traced.reads[i] for i in group]
            inputs = tuple([index[v] for v in part.inputs])
            ranges = tuple([read.range for read in reads])
            steps.append(ChainStep(segment, call.call, inputs, len(part.outputs) == 1, ranges))
            for value in (*part.outputs, *(read.input for read in reads)):
                if value is not None:
                    index.setdefault(value, count)
                count += 1
        counters = [counter for call in calls for counter in call.counters]
        versions = [version for call in calls for version in call.versions]
        return NativePath(self, calls[0].epoch, NativeChain(steps), token, counters, versions)


class NativePath(NamedTuple):
    """The native calls of a path."""

    path: TracedPath
    epoch: int
    """The mutation epoch for which it is valid."""
    chain: NativeChain
    token: object
    """Token of the path's account for its watched words."""
    counters: list[list[int]]
    versions: list[list[int]]
    """Values of the counters for which it is valid."""

    def run(self, arguments: Sequence[Any], done: dict[Any, Any]) -> Any:
        """Return what ``NativeChain.run`` returns; None where the world outside of the trace has changed."""
        return self.chain.run(arguments, done) if self.path.account.stands(self.token) else None


Retrace = Callable[[Sequence[Any], Answers, Sequence[ProgramSegment]], TracedPath]


class Segmented:
    """The programs of one signature of a function that reads values of each call: a path for each that it may take."""

    def __init__(self, name: str, first: TracedPath, retrace: Retrace):
        self.name = name
        self.paths = [first]
        self._retrace = retrace
        """Traces the function for a call on tensors, with the values that it has read so far and the segments."""
        self._native: list[NativePath] = []
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

    @property
    def single(self) -> bool:
        """Whether the result of the last call is one tensor."""
        return isinstance(self.traced.structure, Leaf)

    def shortcut(self) -> Callable[..., Any] | None:
        """Return a callable that runs the native calls of the paths that were taken; None where a call needs more."""
        path = self.paths[0]
        first = path.native()
        if first is None:
            return None
        others = [n for n in self._native if n.path in self.paths and n.path is not path and n.epoch == first.epoch]
        others = [n for n in others if n.counters == n.versions and n.path.form == path.form]
        native = self._native = [first, *others]

        def call(*arguments: Any) -> Any:
            done: dict[Any, Any] = {}
            for one in native:
                result = one.run(arguments, done)
                if result is not None:
                    return result
            return None

        return call

    def versions(self) -> tuple[list[list[int]], list[list[int]]]:
        """Return two lists that stay equal while the shortcut is valid."""
        return [c for n in self._native for c in n.counters], [v for n in self._native for v in n.versions]

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
