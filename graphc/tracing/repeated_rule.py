"""Update rules in a trace: the nodes of a parameter's update, copied for other parameters of equal types."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.base.dtypes import DType
from graphc.base.location import Location
from graphc.ir.graph.graph import CONSTANT, INPUT, Node, Value
from graphc.ir.op import Attrs, OpDef, Trait, Types
from graphc.tape.tangents import USED
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import VOLATILE, refresh
from graphc.tracing.tracer import Tracer

Changes = Sequence[tuple[Tensor, Tensor]]
"""Pairs of a tensor and its new value."""
_Source = Value | int
"""Operand of a copied node: a value that all parameters share, a tensor of the parameter (its number), or the result
of an earlier copy (counted down from -1)."""


class _Step(NamedTuple):
    """A node to append again."""

    op: OpDef
    sources: tuple[_Source, ...]
    attrs: Attrs
    types: Types
    location: Location


class _Recorded(NamedTuple):
    """The update of one parameter: its nodes, and for each change the number of the tensor and the new value."""

    steps: list[_Step]
    changes: list[tuple[int, _Source]]


class RepeatedRule:
    """An update rule of the library in a trace, with the numbers of one group for one element type.

    The rule runs once for each combination of element types and shapes. For further parameters the same nodes are
    appended, in the same order and with the names and inputs that the rule would give them. A rule runs in full for
    each parameter where a copy could differ: where its nodes are not pure, are views, or hold constants, and in a trace
    that is differentiated later.
    """

    def __init__(self, tracer: Tracer, prefix: str, rule: Callable[..., Changes], *numbers: Any):
        """``prefix`` begins the names of nodes; ``numbers`` are the last arguments of the rule."""
        self._tracer = tracer
        self._prefix = prefix
        self._rule = rule
        self._numbers = numbers
        self._recorded: dict[Hashable, _Recorded | None] = {}

    def __call__(self, param: Tensor, gradient: Tensor, state: Mapping[str, Tensor]) -> Changes:
        """Return what the rule returns for a parameter."""
        tensors = [param, gradient, *state.values()]
        if self._tracer.differentiable or VOLATILE[0] or USED[0]:
            return self._rule(param, gradient, state, *self._numbers)
        key = (*state, *[_key(t.dtype, t.shape) for t in tensors])
        if key not in self._recorded:
            first = self._tracer.graph.next_id
            changes = self._rule(param, gradient, state, *self._numbers)
            self._recorded[key] = self._record(tensors, self._tracer.graph.created_since(first), changes)
            return changes
        recorded = self._recorded[key]
        return self._rule(param, gradient, state, *self._numbers) if recorded is None else self._copy(tensors, recorded)

    def _value(self, tensor: Tensor) -> Value:
        """Return the value of a tensor, which becomes an argument of the graph on first use."""
        return refresh(self._tracer.local(tensor))._data

    def _record(self, tensors: Sequence[Tensor], nodes: Sequence[Node], changes: Changes) -> _Recorded | None:
        """Return the update of a parameter by new nodes, or None where copies could differ from it."""
        own = [(i, self._value(t)) for i, t in enumerate(tensors) if self._is_used(t)]
        numbers = {id(t): i for i, t in enumerate(tensors)}
        sources: dict[Value, _Source] = {value: i for i, value in own}
        if len(sources) < len(own) or len(numbers) < len(tensors):
            return None  # Two tensors have one value: which of them a node reads is not known.
        steps: list[_Step] = []
        for node in nodes:
            if node.op is INPUT or (node.op is CONSTANT and not node.results[0].shape):
                continue  # Arguments are added on first use, and scalar constants exist for all.
            if not self._is_repeatable(node):
                return None
            types = tuple([r.type for r in node.results])
            operands = tuple([sources.get(v, v) for v in node.operands])
            steps.append(_Step(node.op, operands, node.attrs, types, node.location))
            sources[node.results[0]] = -len(steps)
        if any(id(target) not in numbers for target, _ in changes):
            return None
        values = [(numbers[id(target)], self._value(new)) for target, new in changes]
        return _Recorded(steps, [(number, sources.get(value, value)) for number, value in values])

    def _is_used(self, tensor: Tensor) -> bool:
        """Check whether a tensor is part of the graph already."""
        return isinstance(tensor._data, Value) or id(tensor) in self._tracer.captured

    def _is_repeatable(self, node: Node) -> bool:
        """Check whether the node is a plain application of a library's op, under the name that its op gives it."""
        op, name = node.op, f"{self._prefix}{node.op.name}"
        if op.module or op is CONSTANT or op.alias is not None or len(node.results) != 1:
            return False
        if not op.has(Trait.PURE) or op.has_any(Trait.EFFECT | Trait.RANDOM):
            return False
        rest = node.results[0].name.removeprefix(name)
        return not rest or (rest.startswith(".") and rest[1:].isdigit())

    def _copy(self, tensors: Sequence[Tensor], recorded: _Recorded) -> Changes:
        graph, results = self._tracer.graph, list[Value]()
        values: dict[int, Value] = {}

        def value_of(source: _Source) -> Value:
            if isinstance(source, Value):
                return source
            if source < 0:
                return results[-source - 1]
            if source not in values:
                values[source] = self._value(tensors[source])
            return values[source]

        for op, sources, attrs, types, location in recorded.steps:
            operands = [value_of(source) for source in sources]
            results.append(graph.add_node(op, operands, attrs, types, location, f"{self._prefix}{op.name}").results[0])
        return [(tensors[number], Tensor._wrap(value_of(source))) for number, source in recorded.changes]


def _key(dtype: DType, shape: Sequence[int]) -> Hashable:
    """Return a key of a type. Sizes of a call are compared as objects, since equal ones may differ in range."""
    return dtype, *[extent if type(extent) is int else (id(extent),) for extent in shape]
