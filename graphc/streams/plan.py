"""Plan of a stream: the steps of a tick and their states, built from a graph by rules for its ops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import gcd
from typing import Any

import numpy as np

from graphc.base.errors import StreamError
from graphc.base.records import dataclass
from graphc.base.sizes.size import Dimension, at, is_size
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import bound_attrs, has_effect, live_nodes
from graphc.ir.op import REGISTRY
from graphc.ops import dispatch
from graphc.streams.signal import Signal, of_axis, resized

Tensors = Sequence[Any]
Mask = tuple[int, Value, bool | None]
"""A mask among the operands of a node: see ``masks_of``."""
LONG = 1 << 24
"""A length beyond the reach of any op."""
_RING_COST = 32
"""Samples that are moved in the time that a ring takes beyond what it reads."""


class Indivisible(Exception):
    """A block has to be a multiple of ``factor`` samples: ticks have to be ``times`` as long."""

    def __init__(self, factor: int, node: Node, block: int = 1):
        super().__init__(factor)
        self.factor = factor
        self.times = factor // gcd(factor, block)
        self.node = node


@dataclass(frozen=True)
class State:
    """An array that ticks read and write."""

    name: str
    initial: np.ndarray = field(compare=False)


@dataclass(frozen=True)
class Step:
    """A part of a tick: ``run`` takes the tensors in ``reads``, then the states, and returns those in ``writes``, then
    new contents of the states."""

    run: Callable[..., Tensors] = field(compare=False)
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    states: tuple[State, ...] = ()
    refusal: StreamError | None = field(default=None, compare=False)
    """Raised if a result is needed."""
    always: bool = False
    """Whether it runs although nobody reads its results: steps run in order, and others are dropped then."""


class Plan:
    """Steps and states of a tick, and what the rules of ops need to add them."""

    def __init__(
        self,
        graph: Graph,
        dimension: Dimension,
        length: int,
        ticks: int,
        apply_rule: Callable[[Plan, Node], None] = lambda *_: None,
    ):
        self.graph = graph
        self.dimension = dimension
        self.sizes: Mapping[Dimension, int] = {dimension: length}
        """A long sequence, at which sizes of the graph are compared."""
        self.ticks = ticks
        """Its number of ticks."""
        self.masks: Mapping[Node, Mask] = {}
        """Nodes that hide samples from each other, see ``masks_of``."""
        self.back: int | None = 0
        """How many samples before it a sample sees at most in an attention; None for all of them."""
        self.last: int | None = None
        """Largest size of the dimension of time at which no table has ended; None without tables."""
        self.longest: int | None = None
        """Number of samples that an attention over all earlier ones keeps."""
        self.apply = apply_rule
        """Adds the steps of a node to a plan."""
        self.steps: list[Step] = []
        self.slots = 0
        self.refused: set[int] = set()
        """Slots that cannot be computed."""
        self.signals: dict[Value, Signal] = {}
        effects = [v for node in graph.nodes() if has_effect(node) for v in node.results]
        self.live = live_nodes(graph, [*graph.outputs, *effects])
        """Nodes of the outputs, of checks and other effects."""
        self.read = {v for node in self.live for v in node.operands} | {*graph.outputs}
        """Values that matter to the outputs."""
        self._names: dict[str, int] = {}
        self._counters: dict[int, int] = {}
        self._places: dict[tuple[int, int], int] = {}

    def inside(self, body: Graph) -> Plan:
        """Return an empty plan for the body of a loop."""
        return Plan(body, self.dimension, self.sizes[self.dimension], self.ticks, self.apply)

    # ---- sizes

    def depends(self, size: Any) -> bool:
        """Check whether a size depends on the length of the sequence."""
        return is_size(size) and at(size, {self.dimension: LONG}) != at(size, {self.dimension: 2 * LONG})

    def size(self, size: Any) -> int:
        """Return a size at the compared length."""
        return at(size, self.sizes) if is_size(size) else int(size)

    def attrs(self, node: Node) -> dict[str, Any]:
        """Return the attributes of a node at the compared length."""
        return dict(bound_attrs(node, self.sizes))

    def axes(self, value: Value) -> list[int]:
        """Return the dimensions of a value whose size depends on the length."""
        return [i for i, n in enumerate(value.shape) if self.depends(n)]

    def block_of(self, size: Any) -> int:
        """Return how many samples of a sequence whose length is ``size`` belong to a tick."""
        length = self.sizes[self.dimension]
        return (at(size, {self.dimension: 2 * length}) - at(size, {self.dimension: length})) // self.ticks

    def bounded(self, length: int) -> int:
        """Return a size of the dimension of time at which no table has ended."""
        return length if self.last is None else min(length, self.last)

    def length_for(self, value: Value, samples: int) -> int:
        """Return a size of the dimension at which a value has at least so many samples."""
        size, axis = 64, self.axes(value)[-1]
        while at(value.shape[axis], {self.dimension: size}) < samples:
            size *= 2
        return size

    def window(self, block: int) -> int:
        """Return how many samples an attention keeps, those of a tick included."""
        if self.back is not None:
            return self.back + block
        return max(self.longest or 0, block)

    def late(self, signal: Signal) -> int:
        """Return how many samples of a sequence the stream has not computed when the last input has come."""
        assert signal.axis is not None
        return self.size(signal.value.shape[signal.axis]) - (self.ticks * signal.block - signal.delay)

    def judged(self, node: Node, signals: Sequence[Signal], result: Signal) -> Signal:
        """Return a result with the samples that need later input, and the op to blame."""
        if not result.positional and any(s.positional for s in signals):
            result = replace(result, positional=all(s.positional or s.constant is not None for s in signals))
        if result.columns is None and len(self.axes(result.value)) > 1:
            raise self.unsupported(node, "values of pairs of samples")
        if result.axis is None or result.positional:
            return result
        # What a stream has beyond the end of a sequence is not there when the next op looks at the sequence.
        size = result.value.shape[result.axis]
        if self.block_of(size) != result.block * result.rows:
            raise self.unsupported(node, "it takes a share of the sequence, or repeats it")
        length, produced = self.size(size) // result.rows, self.ticks * result.block
        least = max(result.least, produced - length)
        ahead = length - (produced - least)
        known = next((s.cause for s in signals if s.ahead > 0 and s.cause), node)
        return replace(result, least=least, ahead=ahead, cause=known if ahead > 0 else None)

    def is_read(self, value: Value) -> bool:
        """Check whether a value matters to the outputs."""
        return value in self.read

    # ---- steps

    def slot(self) -> int:
        """Return a new index among the tensors of a tick."""
        self.slots += 1
        return self.slots - 1

    def add(
        self,
        run: Callable[..., Tensors],
        reads: Sequence[int],
        states: Sequence[State] = (),
        count: int = 1,
        always: bool = False,
    ) -> list[int]:
        """Append a step with ``count`` results, and return their slots."""
        writes = tuple([self.slot() for _ in range(count)])
        self.steps.append(Step(run, tuple(reads), writes, tuple(states), always=always))
        if not self.refused.isdisjoint(reads):
            self.refused.update(writes)
        return [*writes]

    def refuse(self, error: StreamError) -> int:
        """Append a step that cannot run; the error is raised if its result is needed. Return its slot."""
        slot = self.slot()
        self.steps.append(Step(lambda *_: (), (), (slot,), (), error))
        self.refused.add(slot)
        return slot

    def runs(self, signals: Sequence[Signal]) -> bool:
        """Check whether all signals can be computed."""
        return self.refused.isdisjoint(s.slot for s in signals)

    def state(self, node: Node | None, kind: str, initial: np.ndarray) -> State:
        """Return a new state, named after the module of an op."""
        module = node.location.module if node is not None else ""
        parts = "".join(c if c.isalnum() else "_" for c in module).strip("_")
        base = "_".join(part for part in (parts, kind) if part)
        number = self._names[base] = self._names.get(base, -1) + 1
        return State(f"{base}_{number}" if number else base, np.ascontiguousarray(initial))

    def array(self, array: np.ndarray) -> int:
        """Return the slot of a constant."""
        return self.add(lambda: (dispatch.current().constant(array),), ())[0]

    # ---- blocks of signals

    def start(self, signal: Signal) -> int:
        """Return the slot of the number (i64) of the first sample in the block of a signal."""
        if signal.block not in self._counters:
            state, more = self.state(None, "position", np.zeros((), np.int64)), np.asarray(signal.block, np.int64)
            run = lambda count: (count, apply("add", (count, constant(more)), {}))  # noqa: E731
            self._counters[signal.block] = self.add(run, (), (state,))[0]
        slot, delay = self._counters[signal.block], signal.delay
        if delay == 0:
            return slot
        offset = np.asarray(delay, np.int64)
        return self.add(lambda count: (apply("sub", (count, constant(offset)), {}),), (slot,))[0]

    def history(self, node: Node, signal: Signal, count: int) -> int:
        """Return the slot of a block with the ``count`` samples before it."""
        if count == 0:
            return signal.slot
        axis = signal.axis
        assert axis is not None
        state = self.state(node, "history", self.before(signal, count))
        total = count + signal.block

        def run(block: Any, past: Any) -> Tensors:
            both = apply("concat", (past, block), {"axis": axis})
            return both, cut(both, axis, total - count, total)

        return self.add(run, (signal.slot,), (state,))[0]

    def samples(self, node: Node, signal: Signal, positions: np.ndarray) -> int:
        """Return the slot of the samples at positions (integers) from the first sample of the block on: negative ones
        are earlier samples, which are kept in order, or in a ring where few of many are read."""
        axis = signal.axis
        assert axis is not None
        past, count = max(0, -int(positions.min())), len(positions)
        if past + signal.block > 3 * count + _RING_COST:
            return self._ring(node, signal, positions, past)
        slot, local = self.history(node, signal, past), positions + past
        if (np.diff(local) == 1).all():
            first = int(local[0])
            return self.add(lambda x: (cut(x, axis, first, first + count),), (slot,))[0]
        return self.add(lambda x: (apply("gather", (x, constant(local)), {"axis": axis}),), (slot,))[0]

    def _ring(self, node: Node, signal: Signal, positions: np.ndarray, past: int) -> int:
        """Keep samples in a ring, whose oldest block each tick replaces, and read some of them."""
        axis, block = signal.axis, signal.block
        assert axis is not None
        blocks = -(-past // block) + 1
        size = blocks * block
        initial = np.zeros(resized(signal.shape, axis, size), signal.value.dtype.numpy)
        initial[of_axis(axis, signal.rank, slice(size - past, None))] = self.before(signal, past)
        initial = np.moveaxis(initial, axis, 0)
        order = (axis, *(i for i in range(signal.rank) if i != axis))
        back = tuple(int(i) for i in np.argsort(order))
        ring, place = self.state(node, "ring", initial), self._place(size, block)
        own, around = {"axis": 0}, np.asarray(size, np.int64)
        own_positions, new = positions + size, np.arange(block, dtype=np.int64)

        def run(x: Any, first: Any, kept: Any) -> Tensors:
            rows = apply("transpose", (x,), {"permutation": order})
            kept = apply("scatter", (kept, apply("add", (first, constant(new)), {}), rows), own)
            numbers = wrapped(apply("add", (first, constant(own_positions)), {}), around)
            return apply("transpose", (apply("gather", (kept, numbers), own),), {"permutation": back}), kept

        return self.add(run, (signal.slot, place), (ring,))[0]

    def _place(self, size: int, block: int) -> int:
        """Return the slot of the first position of the block in rings of a size."""
        if (size, block) not in self._places:
            state = self.state(None, "place", np.zeros(1, np.int64))
            more, around = np.asarray(block, np.int64), np.asarray(size, np.int64)

            def run(first: Any) -> Tensors:
                return first, wrapped(apply("add", (first, constant(more)), {}), around)

            self._places[size, block] = self.add(run, (), (state,))[0]
        return self._places[size, block]

    def before(self, signal: Signal, count: int) -> np.ndarray:
        """Return the ``count`` samples before the first block: zeros, then those known."""
        axis = signal.axis
        assert axis is not None
        found = np.zeros(resized(signal.shape, axis, count), signal.value.dtype.numpy)
        if signal.prefix is not None:
            last = signal.prefix[of_axis(axis, signal.rank, slice(max(0, signal.known - count), None))]
            found[of_axis(axis, signal.rank, slice(count - last.shape[axis], None))] = last
        return found

    def delayed(self, node: Node, signal: Signal, delay: int) -> Signal:
        """Return a signal with a larger delay."""
        more = delay - signal.delay
        if more == 0 or signal.axis is None:
            return signal
        if signal.columns is not None or more < 0:
            raise self.unsupported(node, "an attention to samples that are computed later than its rows")
        if signal.rows > 1:
            return self._rows_delayed(node, signal, delay)
        axis, block = signal.axis, signal.block
        slot = self.samples(node, signal, np.arange(block) - more)
        prefix = None if delay >= 0 else signal.prefix[of_axis(axis, signal.rank, slice(0, -delay))]  # type: ignore[index]
        return replace(signal, slot=slot, delay=delay, prefix=prefix)

    def _rows_delayed(self, node: Node, signal: Signal, delay: int) -> Signal:
        """Return merged sequences with a larger delay."""
        slot = self.delayed(node, self.taken_apart(signal), delay).slot
        return replace(signal, slot=self.reshaped(slot, signal.shape), delay=delay)

    def taken_apart(self, signal: Signal) -> Signal:
        """Return merged sequences with a dimension of their own before time."""
        if signal.rows == 1 or signal.axis is None:
            return signal
        slot = self.reshaped(signal.slot, signal.alone)
        return replace(signal, slot=slot, shape=signal.alone, axis=signal.axis + 1, rows=1)

    def reshaped(self, slot: int, shape: tuple[int, ...]) -> int:
        """Return the slot of a tensor in another shape."""
        return self.add(lambda x: (apply("reshape", (x,), {"shape": shape}),), (slot,))[0]

    def aligned(self, node: Node, signals: Sequence[Signal], multiple: int = 1) -> list[Signal]:
        """Return signals with one delay, a multiple of a number of samples."""
        moving = [s for s in signals if s.axis is not None]
        if not moving:
            return [*signals]
        if len({s.block for s in moving}) > 1:
            raise self.unsupported(node, "operands of different rates")
        if any(s.latest for s in signals):
            raise self.unsupported(node, "the last sample together with all samples")
        most = max(s.delay for s in moving)
        delay = -(-most // multiple) * multiple
        return [self.delayed(node, s, delay) if s.axis is not None else s for s in signals]

    def cleared(self, node: Node, signal: Signal, value: float) -> Signal:
        """Return a signal whose samples before the start are ``value``."""
        if signal.delay <= 0 or signal.axis is None:
            return signal
        axis, rank, block, start = signal.axis, signal.rank, signal.block, self.start(signal)
        numbers = np.arange(block, dtype=np.int64).reshape([block if i == axis else 1 for i in range(rank)])
        filler = np.asarray(value, signal.value.dtype.numpy)

        def run(x: Any, first: Any) -> Tensors:
            number = apply("add", (constant(numbers), first), {})
            started = apply("ge", (number, constant(np.asarray(0, np.int64))), {})
            return (apply("where", (started, x, constant(filler)), {}),)

        return replace(signal, slot=self.add(run, (signal.slot, start))[0])

    # ---- results

    def result(self, node: Node, slot: int, index: int = 0, **facts: Any) -> Signal:
        """Return the signal of a result of a node."""
        return Signal(node.results[index], slot, **facts)

    @staticmethod
    def where(node: Node) -> str:
        """Return the name of an op in messages: its module, or its own name."""
        return f"{node.op.name} in {node.location.module}" if node.location.module else node.op.name

    def whole(self, node: Node, why: str) -> StreamError:
        """Return the error for an op that needs the whole sequence."""
        return self.error(
            node,
            f"{self.where(node)} needs the whole sequence: {why}",
            "compute it over a window, or of earlier samples only",
        )

    def unsupported(self, node: Node, what: str) -> StreamError:
        """Return the error for an op without a rule for this use."""
        return self.error(
            node, f"{self.where(node)} cannot be streamed: {what}", "write it with ops along one dimension of time"
        )

    @staticmethod
    def error(node: Node, what: str, remedy: str) -> StreamError:
        """Return an error about an op, with its place in the user's code."""
        return StreamError(what, origin=node.location.describe() or None, remedy=remedy)


def constant(array: np.ndarray) -> Any:
    """Return an array as an operand of ops."""
    return dispatch.current().constant(array)


def apply(name: str, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
    """Apply the op of this name."""
    return dispatch.apply(REGISTRY[name], operands, attrs)


def wrapped(positions: Any, size: np.ndarray) -> Any:
    """Return positions in a ring from positions below twice its size; a division would take longer."""
    over = apply("ge", (positions, constant(size)), {})
    return apply("where", (over, apply("sub", (positions, constant(size)), {}), positions), {})


def cut(x: Any, axis: int, first: int, last: int, step: int = 1) -> Any:
    """Return samples of a tensor along an axis."""
    if (first, last, step) == (0, x.shape[axis], 1):
        return x
    rank = len(x.shape)
    starts, stops, steps = [0] * rank, [*x.shape], [1] * rank
    starts[axis], stops[axis], steps[axis] = first, last, step
    return apply("slice", (x,), {"starts": tuple(starts), "stops": tuple(stops), "steps": tuple(steps)})
