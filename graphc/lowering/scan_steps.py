"""Scans as repeated calls: the step as a graph that updates carries in place, and the binding of its storages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from graphc.base.records import dataclass
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.kernel.index import Axis, Index, as_index
from graphc.ir.kernel.statements import Program
from graphc.ops.effects.state import state_write
from graphc.ops.movement.shape import reshape


@dataclass(frozen=True)
class Subview:
    """A storage of a program, or its part from element ``offset`` on."""

    storage: str
    offset: Index = field(default_factory=Index)

    def inside(self, offset: Index, axes: Mapping[Axis, Axis]) -> Subview:
        """Return a subview of this subview, with the axes of its offset renamed."""
        total = self.offset + offset.constant
        for atom, coefficient in offset.terms:
            assert isinstance(atom, Axis)
            total = total + as_index(axes[atom]) * coefficient
        return Subview(self.storage, total)


class Repetition:
    """A scan as a loop over calls of its body's kernels."""

    def __init__(self, node: Node, name: str):
        attrs = node.attrs
        self.carries: int = attrs["carries"]
        self.sequences: int = attrs["sequences"]
        self.axis = Axis(name, attrs["length"])
        self.reverse: bool = attrs["reverse"]
        self.body: Graph = _Stateful(self.carries).transform(attrs["body"])

    def bind(self, body: Program, operands: Sequence[str], results: Sequence[str]) -> dict[str, Subview]:
        """Return, for each argument and output of the lowered body, its subview in the enclosing program."""
        count, outputs = len(operands), len(results) - self.carries
        bound: dict[str, Subview] = {}
        for i, storage in enumerate(body.storages[: count + outputs]):
            if i < self.carries:
                bound[storage.name] = Subview(results[i])
            elif i < self.carries + self.sequences:
                bound[storage.name] = Subview(operands[i], self.slice(storage.size))
            elif i < count:
                bound[storage.name] = Subview(operands[i])
            else:
                bound[storage.name] = Subview(results[i - count + self.carries], self.slice(storage.size))
        return bound

    def slice(self, size: int) -> Index:
        """Return the offset of the current iteration's slice in a sequence of slices of ``size`` elements."""
        step = as_index(self.axis) * size
        return (self.axis.extent - 1) * size - step if self.reverse else step


class Branch:
    """A graph as calls that run only if a flag is set; it updates the first ``carries`` operands in place."""

    def __init__(self, graph: Graph, carries: int = 0):
        self.body: Graph = _Stateful(carries).transform(graph)

    def bind(self, body: Program, operands: Sequence[str], results: Sequence[str] = ()) -> dict[str, Subview]:
        """Return, for each argument and output of the lowered graph, its storage in the enclosing program."""
        names = [*operands, *results]
        return {s.name: Subview(name) for s, name in zip(body.storages[: len(names)], names, strict=True)}


class _Stateful(Reemitter):
    """Rewriter of a scan's body in which carries become states.

    A value that must be stored several times gets an identity reshape per copy, so that its own kernel writes them all.
    """

    def __init__(self, carries: int):
        super().__init__()
        self.carries = carries
        self.source = Graph()

    def transform(self, graph: Graph) -> Graph:
        """Return the body with the stacked values as outputs and the carries as written states."""
        self.source = graph
        target = super().transform(graph)
        after, outputs = target.outputs[: self.carries], target.outputs[self.carries :]
        stored: set[Value] = set()
        written = [self.alone(v, stored) for v in after]
        target.set_outputs([self.alone(v, stored) for v in outputs])
        for state, value in zip(target.inputs[: self.carries], written, strict=True):
            emit(target, state_write.op, (state, value), {}, name=f"{state.name}.next")
        return target

    def copy_input(self, value: Value) -> Value:
        """Declare carries as states, other inputs as inputs."""
        if value in self.source.inputs[: self.carries]:
            return self.target.add_input(value.type, value.name, "state", value.name)
        return self.target.add_input(value.type, value.name)

    def alone(self, value: Value, stored: set[Value]) -> Value:
        """Return the value itself if it is stored nowhere else yet, else a copy of it."""
        fresh = value not in stored and value.node.op not in (INPUT, CONSTANT)
        stored.add(value)
        return value if fresh else emit(self.target, reshape.op, (value,), {"shape": value.shape}, name=value.name)[0]
