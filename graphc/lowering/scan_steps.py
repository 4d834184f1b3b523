"""Scans as repeated calls: the step as a graph that changes carries in place, and what its storages stand for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.kernel.index import Axis, Index, as_index
from graphc.ir.kernel.statements import Program
from graphc.ops.shape import reshape
from graphc.ops.state import state_write


@dataclass(frozen=True)
class Subview:
    """A storage of a program, or the part of it that starts at ``offset``."""

    storage: str
    offset: Index = field(default_factory=Index)

    def inside(self, offset: Index, axes: Mapping[Axis, Axis]) -> Subview:
        """A part of this part, with the axes of its offset renamed."""
        total = self.offset + offset.constant
        for atom, coefficient in offset.terms:
            assert isinstance(atom, Axis)
            total = total + as_index(axes[atom]) * coefficient
        return Subview(self.storage, total)


class Repetition:
    """A scan as a loop over calls."""

    def __init__(self, node: Node, name: str):
        attrs = node.attrs
        self.carries: int = attrs["carries"]
        self.sequences: int = attrs["sequences"]
        self.axis = Axis(name, attrs["length"])
        self.reverse: bool = attrs["reverse"]
        self.body: Graph = _Stateful(self.carries).transform(attrs["body"])

    def bind(self, body: Program, operands: Sequence[str], results: Sequence[str]) -> dict[str, Subview]:
        """What the arguments and outputs of the lowered body stand for in the program around it."""
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
        """Where the slice of the present iteration starts in a sequence of slices of that size."""
        step = as_index(self.axis) * size
        return (self.axis.extent - 1) * size - step if self.reverse else step


class Branch:
    """A graph as calls that run where a flag is set; it changes the first operands, ``carries``, in place."""

    def __init__(self, graph: Graph, carries: int = 0):
        self.body: Graph = _Stateful(carries).transform(graph)

    def bind(self, body: Program, operands: Sequence[str], results: Sequence[str] = ()) -> dict[str, Subview]:
        """What the arguments and outputs of the lowered graph stand for in the program around it."""
        places = [*operands, *results]
        return {s.name: Subview(p) for s, p in zip(body.storages[: len(places)], places, strict=True)}


class _Stateful(Reemitter):
    """The body with carries as states that it writes. What lies in several places is computed into each of them by the
    kernel that computes it, as a reshape that changes nothing."""

    def __init__(self, carries: int):
        super().__init__()
        self.carries = carries
        self.source = Graph()

    def transform(self, graph: Graph) -> Graph:
        """The body: outputs are those that are stacked, carries are written."""
        self.source = graph
        target = super().transform(graph)
        after, outputs = target.outputs[: self.carries], target.outputs[self.carries :]
        taken: set[Value] = set()
        written = [self.alone(v, taken) for v in after]
        target.set_outputs([self.alone(v, taken) for v in outputs])
        for state, value in zip(target.inputs[: self.carries], written, strict=True):
            emit(target, state_write.op, (state, value), {}, name=f"{state.name}.next")
        return target

    def copy_input(self, value: Value) -> Value:
        """Carries become states."""
        if value in self.source.inputs[: self.carries]:
            return self.target.add_input(value.type, value.name, "state", value.name)
        return self.target.add_input(value.type, value.name)

    def alone(self, value: Value, taken: set[Value]) -> Value:
        """The value itself where it lies in no other place yet, else its copy."""
        fresh = value not in taken and value.node.op not in (INPUT, CONSTANT)
        taken.add(value)
        return value if fresh else emit(self.target, reshape.op, (value,), {"shape": value.shape}, name=value.name)[0]
