"""Steps on a few numbers: each element of their small arrays becomes a scalar, so that a step is plain arithmetic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops.dispatch import GraphDispatcher, current, use
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise
from graphc.ops.reduction import reduce
from graphc.passes.base import PassResult, held_graphs, run_inside

_APART = 1 << 16
"""Distance between the numbers of elements in two evaluations of a view, which has the same constants in both."""


@dataclass(frozen=True)
class ScalarSteps:
    """Split the small arrays of a scan's step into their elements.

    Needs: a graph that is not differentiated any more. Does: where a step joins few numbers to arrays, such as the
    three rates of a differential equation, splits its carries into scalar ones, and emits its arithmetic element by
    element. An array whose elements are computed differently needs a kernel of its own, scalars do not. Leaves: scans
    of other steps; equal numbers, with sums in the order of their elements.

        %a = scan(%c) {body: %x = slice(%c), %y = slice(%c), concat(neg(%y), %x)}
        -> %a.0, %a.1 = scan(%c0, %c1) {body: neg(%c1), %c0};  %a = concat(%a.0, %a.1)
    """

    name: str = "scalar-steps"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Count changed scans."""
        rewrites = self.costs.rewrites
        changed = run_inside(self, graph)
        for node in graph.having(Trait.LOOP):
            if _is_small(node, rewrites.scalar_elements):
                changed += _split(graph, node, rewrites.scalar_nodes)
        return PassResult(graph, changed)


def _is_small(node: Node, most: int) -> bool:
    """Check whether a step computes few numbers, and joins some of them to arrays that it uses or returns."""
    body: Graph = node.attrs["body"]
    last = node.attrs["carries"] + node.attrs["sequences"]
    if any(is_size(n) or n > most for v in body.inputs[:last] for n in v.shape):
        return False
    shared = body.inputs[last:]
    values = [*body.inputs, *(v for inner in body.nodes() for v in inner.results)]
    if any(is_size(n) for v in values for n in v.shape):
        return False
    if not all(1 <= prod(v.shape) <= most or v in shared for v in values) or not all(map(_can_split, body.nodes())):
        return False
    joined = {
        v for inner in body.nodes() if len(inner.operands) > 1 and inner.op.has(Trait.VIEW) for v in inner.results
    }
    return any(v in body.outputs or any(not r.op.has(Trait.VIEW) for r, _ in body.uses(v)) for v in joined)


def _can_split(node: Node) -> bool:
    op = node.op
    if op is CONSTANT:
        return True
    if op is reduce.sum.op:
        return node.operands[0].dtype is node.result.dtype and node.result.dtype.itemsize >= 4
    simple = op.has(Trait.PURE) and not any(map(op.has, (Trait.RANDOM, Trait.MATERIALIZE, Trait.STATE_READ)))
    if not simple or held_graphs(node) or len(node.results) != 1:
        return False
    return op.has(Trait.ELEMENTWISE) or op.has(Trait.VIEW)


def _split(graph: Graph, node: Node, most: int) -> bool:
    """Replace a scan by one of scalars; return False if its step would have more than ``most`` nodes."""
    old: Graph = node.attrs["body"]
    carries = node.attrs["carries"]
    body = Graph(old.name)
    elements: dict[Value, np.ndarray] = {}
    for value in old.inputs[:carries]:
        numbers = range(prod(value.shape))
        parts = [body.add_input(TensorType(value.dtype), f"{value.name}.{i}") for i in numbers]
        elements[value] = _array([_Element(part) for part in parts], value.shape)
    for value in old.inputs[carries:]:
        elements[value] = _elements_of(body.add_input(value.type, value.name))
    with use(GraphDispatcher(body)):
        for inner in old.nodes():
            if inner.op is not CONSTANT:
                operands = [elements.get(v, _constants(body, v)) for v in inner.operands]
                elements[inner.result] = _apply(body, inner, operands)
            if len(body.nodes()) > most:
                return False
        body.set_outputs([e.value() for out in old.outputs for e in elements.get(out, _constants(body, out)).flat])
    _replace(graph, node, body)
    return True


def _replace(graph: Graph, node: Node, body: Graph) -> None:
    """Put a scan with another body, whose carries and stacks are scalars, in the place of a scan."""
    carries = node.attrs["carries"]
    with use(GraphDispatcher(graph, node.location)):
        firsts = [e.value() for first in node.operands[:carries] for e in _elements_of(first).flat]
        attrs = {**node.attrs, "body": body, "carries": len(firsts)}
        name = node.results[0].name.removesuffix(".0")
        results = iter(emit(graph, node.op, [*firsts, *node.operands[carries:]], attrs, node.location, name))
        for value, out in zip(node.results, node.attrs["body"].outputs, strict=True):
            parts = [next(results) for _ in range(prod(out.shape))]
            if graph.is_used(value):
                graph.replace_uses(value, _joined(parts, value.shape))
    graph.erase(node)


def _joined(parts: Sequence[Value], target: tuple[int, ...]) -> Value:
    """Return scalars, or stacks of scalars, as one value."""
    columns = [shape.reshape(part, shape=(*part.shape, 1)) for part in parts]
    joined = shape.concat(*columns, axis=len(parts[0].shape)) if len(columns) > 1 else columns[0]
    return shape.reshape(joined, shape=target)


# ---- elements


class _Element:
    """A scalar of a step, or an element of an array that is read where it is used."""

    def __init__(self, source: Value, number: int = 0):
        self.source, self.number = source, number
        self._read: Value | None = None

    def value(self) -> Value:
        """Return the scalar."""
        if self._read is None:
            self._read = self.source if self.source.shape == () else _element(self.source, self.number)
        return self._read


def _element(value: Value, number: int) -> Value:
    starts = tuple(int(i) for i in np.unravel_index(number, value.shape))
    stops, steps = tuple(i + 1 for i in starts), (1,) * len(starts)
    return shape.reshape(shape.slice(value, starts=starts, stops=stops, steps=steps), shape=())


def _elements_of(value: Value) -> np.ndarray:
    return _array([_Element(value, i) for i in range(prod(value.shape))], value.shape)


def _constants(body: Graph, value: Value) -> np.ndarray:
    """Return the elements of a constant; an empty array for other values."""
    if value.node.op is not CONSTANT:
        return np.empty(0, object)
    array = np.asarray(value.node.attrs["value"])
    return _array([_Element(body.scalar(x, value.dtype)) for x in array.flat], value.shape)


def _array(elements: Sequence[Any], target: Sequence[int]) -> np.ndarray:
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(tuple(target))


# ---- ops


def _apply(body: Graph, node: Node, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Emit an op element by element, and return the elements of its result."""
    if node.op.has(Trait.VIEW):
        return _view(body, node, operands)
    if node.op is reduce.sum.op:
        axes = node.attrs["axes"]
        moved = np.moveaxis(operands[0], axes, range(len(axes)))
        terms = moved.reshape(prod(moved.shape[: len(axes)]), -1)
        return _array([_sum(column) for column in terms.T], node.result.shape)
    rows = zip(*(x.flat for x in np.broadcast_arrays(*operands)), strict=True)
    results = [current().apply(node.op, [e.value() for e in row], node.attrs) for row in rows]
    return _array([_Element(value) for value in results], node.result.shape)


def _view(body: Graph, node: Node, operands: Sequence[np.ndarray]) -> np.ndarray:
    """Return the elements that a view shows, and constants that it adds."""
    elements = [e for operand in operands for e in operand.flat]
    numbered, start = [], 0
    for operand in operands:
        numbered.append(np.arange(start, start + operand.size, dtype=np.float64).reshape(operand.shape))
        start += operand.size
    first = node.op.evaluate(numbered, node.attrs)[0]
    second = node.op.evaluate([x + _APART for x in numbered], node.attrs)[0]
    found = [
        elements[int(a)] if a != b else _Element(body.scalar(a, node.result.dtype))
        for a, b in zip(first.flat, second.flat, strict=True)
    ]
    return _array(found, node.result.shape)


def _sum(terms: Iterable[_Element]) -> _Element:
    """Return a sum from the first term to the last one."""
    first, *others = (term.value() for term in terms)
    total = elementwise.add(first, 0.0) if first.dtype.kind == "f" else first  # a sum starts at 0, which hides -0
    for value in others:
        total = elementwise.add(total, value)
    return _Element(total)
