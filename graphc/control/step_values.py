"""Values that loops compute from constants and counters alone, for many steps at once; trip counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from graphc.base.dtypes import ALL, float32, float64
from graphc.base.errors import IndexRangeError
from graphc.ir.graph.graph import INPUT, Graph, Node, Value, has_sizes
from graphc.ir.graph.interpret import Evaluator, live_nodes
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batching import batched_graph
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.movement.shape import broadcast_to, reshape, slice, transpose
from graphc.ops.pointwise.elementwise import add, bit_and, cast, logical_and, sub
from graphc.passes.base import held_graphs
from graphc.passes.fold import is_exact
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import refresh
from graphc.tracing.tracer import Tracer

MOST_STEPS = 1 << 22
"""Steps up to which the values of loops are computed while they are traced."""
_MOST_ELEMENTS = 4 * MOST_STEPS
"""Elements of a value in all steps up to which it is computed while a loop is traced."""
_FIRST_STEPS = 1 << 10
"""Steps in which the end of a loop is searched first; then in twice as many, and so on."""
_MOST_NODES = 200
"""Nodes up to which an outer value is computed while a loop is traced."""
_COPIES = frozenset(f.op for f in (reshape, broadcast_to, transpose, slice, cast))
"""Ops that return their operand where the type stays the same; a transposition only with its own permutation."""
_COUNTERS = frozenset(TensorType(t) for t in ALL if t.kind in "iu" or t in (float32, float64))
"""Types of counters: sums of these are the same in NumPy and in native code."""


def source(value: Value) -> Value:
    """Return the value of which another one is a copy of the same type."""
    while value.node.op in _COPIES and value.type == value.node.operands[0].type:
        permutation = value.node.attrs.get("permutation", ())
        if tuple(permutation) != tuple(range(len(permutation))):
            break
        value = value.node.operands[0]
    return value


def constant(tracer: Tracer, tensor: Tensor) -> np.ndarray | None:
    """Return the elements of a tensor that depends on few constants only; None for others."""
    return _Constants(tracer).value(refresh(tracer.local(tensor))._data)


class _Constants:
    """Evaluator of the constants of a trace and of those around it."""

    def __init__(self, tracer: Tracer):
        self.tracer = tracer
        self.left = _MOST_NODES
        self.arrays: dict[Value, np.ndarray | None] = {}

    def value(self, value: Value) -> np.ndarray | None:
        """Return the elements of a value of the trace, None if they are no constants."""
        if value not in self.arrays:
            self.arrays[value] = None
            self.arrays[value] = self._computed(value)
        return self.arrays[value]

    def _computed(self, value: Value) -> np.ndarray | None:
        node = value.node
        if node.op is INPUT:
            outer = next((o for o, inner in self.tracer.lifted.items() if inner is value), None)
            parent = self.tracer.parent
            return None if outer is None or parent is None else _Constants(parent).value(outer)
        self.left -= 1
        if self.left < 0 or not _is_plain(node) or value.type.size > MOST_STEPS:
            return None
        operands = []
        for operand in node.operands:
            array = self.value(operand)
            if array is None:
                return None
            operands.append(array)
        self.tracer.asked.add(node)
        try:
            return node.op.evaluate(operands, node.attrs)[value.index]
        except IndexRangeError:  # the check reports it in steps that read the element
            return None


def _is_plain(node: Node) -> bool:
    """Check whether a node computes its results from its operands alone, of sizes that are known, and the same bits in
    NumPy as in native code."""
    if not node.op.has(Trait.PURE) or node.op.has(Trait.RANDOM) or held_graphs(node) or has_sizes(node):
        return False
    return not node.operands or is_exact(node)


class StepValues:
    """Values of a step by the number of the step, counted from 0.

    ``fixed`` holds arguments that are the same in all steps, ``first`` and ``growth`` those of counters: their first
    value, and the number that each step adds to it.
    """

    def __init__(self, body: Graph, known: Sequence[np.ndarray | None], carries: int):
        """Take constants for the arguments of ``body``, None for others: for carries, those before the first step."""
        self.body, self.carries = body, carries
        self.fixed: dict[Value, np.ndarray] = {}
        self.first: dict[Value, np.ndarray] = {}
        self.growth: dict[Value, np.ndarray] = {}
        self.varying: dict[Value, np.ndarray] = {}
        """Arguments whose elements for all steps are known: [steps, *shape]."""
        for i, (value, array) in enumerate(zip(body.inputs, known, strict=True)):
            if array is not None and (i >= carries or source(body.outputs[i]) is value):
                self.fixed[value] = array
        for i in range(carries):
            self._count(body, i, known[i])

    def _count(self, body: Graph, number: int, first: np.ndarray | None) -> None:
        """Register a carry to which each step adds the same number."""
        before, node = body.inputs[number], source(body.outputs[number]).node
        if first is None or before in self.fixed or before.type not in _COUNTERS or node.op not in (add.op, sub.op):
            return
        operands = [source(v) for v in node.operands]
        if before not in operands or (node.op is sub.op and operands[0] is not before):
            return
        step = _compute(body, operands[1 - operands.index(before)], self.fixed, {}, 1)
        if step is not None and step.shape == (1,):
            self.first[before] = first
            self.growth[before] = step if node.op is add.op else np.negative(step)

    def counted(self, count: int, first: Mapping[Value, np.ndarray] | None = None) -> dict[Value, np.ndarray]:
        """Return the counters before each of ``count`` steps and after the last one, from other first values on."""
        rows = {}
        for value, start in (self.first if first is None else first).items():
            steps = np.repeat(self.growth[value], count + 1)
            steps[0] = start
            rows[value] = np.add.accumulate(steps, dtype=start.dtype)
        return rows

    def at(self, value: Value, count: int) -> np.ndarray | None:
        """Return a value in each of ``count`` steps, [count, *shape]; None if more than known arguments decides it."""
        return _compute(self.body, value, self.fixed, {**self.varying, **self.counted(count)}, count)

    def trip_count(self, test: Graph, known: Sequence[np.ndarray | None]) -> tuple[int | None, bool]:
        """Return the number of steps until a condition is first false or an upper bound, and whether it is exact.

        The conditions of a conjunction that constants and counters decide give the number; None where there are none,
        and for more than ``MOST_STEPS`` steps. ``test`` takes the carries first; ``known`` holds its arguments that are
        constants.
        """
        before = dict(zip(self.body.inputs, test.inputs[: self.carries], strict=False))
        fixed = {before[v]: a for v, a in self.fixed.items() if v in before}
        others = zip(test.inputs[self.carries :], known[self.carries :], strict=True)
        fixed |= {value: array for value, array in others if array is not None}
        counts = [self._holding(test, part, fixed, before) for part in _conjunction(test.outputs[0])]
        decided = [count for count in counts if count is not None]
        return min(decided, default=None), len(decided) == len(counts)

    def _holding(
        self, test: Graph, condition: Value, fixed: Mapping[Value, np.ndarray], before: Mapping[Value, Value]
    ) -> int | None:
        """Return the number of steps before which a condition holds."""
        first, start, count = self.first, 0, _FIRST_STEPS
        while start < MOST_STEPS:
            rows = self.counted(count, first)
            holds = _compute(test, condition, fixed, {before[v]: a for v, a in rows.items()}, count)
            if holds is None:
                return None
            if not holds.all():
                return start + int(np.argmin(holds))
            first = {value: row[-1:].reshape(()) for value, row in rows.items()}
            start, count = start + count, 2 * count
        return None


def _conjunction(condition: Value) -> list[Value]:
    """Return conditions that all hold exactly where one holds."""
    condition = source(condition)
    if condition.node.op not in (logical_and.op, bit_and.op):
        return [condition]
    return [part for v in condition.node.operands for part in _conjunction(v)]


def _compute(
    graph: Graph, value: Value, fixed: Mapping[Value, np.ndarray], rows: Mapping[Value, np.ndarray], count: int
) -> np.ndarray | None:
    """Return a value of a graph in each of ``count`` steps. Arguments are ``fixed`` or have ``rows`` for steps."""
    inputs = _inputs_of(value, fixed.keys() | rows.keys(), _MOST_ELEMENTS // count)
    if inputs is None:
        return None
    batch = batched_graph(_restricted(graph, value, inputs), count, [v in rows for v in inputs])
    try:
        return Evaluator().run(batch, [rows[v][:count] if v in rows else fixed[v] for v in inputs])[0]
    except IndexRangeError:  # the check reports it in steps that read the element
        return None


def _inputs_of(value: Value, known: Iterable[Value], size: int) -> list[Value] | None:
    """Return the arguments that a value depends on, None where one is not known, or a node is not plain or has more
    than ``size`` elements."""
    known, seen, stack = set(known), set[Value](), [value]
    while stack:
        present = stack.pop()
        if present in seen:
            continue
        seen.add(present)
        if present.node.op is INPUT:
            if present not in known:
                return None
        elif present.type.size > size or not _is_plain(present.node):
            return None
        stack += present.node.operands
    return [v for v in seen if v.node.op is INPUT]


def _restricted(graph: Graph, value: Value, inputs: Sequence[Value]) -> Graph:
    """Return the graph of one value."""
    part = Graph(f"{graph.name}.part")
    values = {v: part.add_input(v.type, v.name) for v in inputs}
    needed = live_nodes(graph, [value])
    with dispatch.use(GraphDispatcher(part)):
        for node in graph.nodes():
            if node in needed:
                results = dispatch.apply(node.op, [values[v] for v in node.operands], node.attrs)
                values.update(zip(node.results, results if isinstance(results, tuple) else (results,), strict=True))
    part.set_outputs([values[value]])
    return part
