"""Steps that read and write one slice of a tensor each, by a counter: they take and return slices instead.

The trace does it, not a pass: derivatives would keep the whole tensor of each step, or add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.sizes.size import is_size
from graphc.control.step_values import StepValues, source
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.op import Attrs
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement import shape as moves
from graphc.ops.movement.slice_update import slice_stops, update_slice
from graphc.ops.pointwise.elementwise import add
from graphc.ops.selection.index import gather, iota, scatter, scatter_add
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


class Rows(NamedTuple):
    """Slices of a tensor along an axis, slice ``start + stride * t`` for step t."""

    axis: int
    start: int
    stride: int


class _Write(NamedTuple):
    """Update of one slice of a carry in each step."""

    rows: Rows
    update: Value
    """New content of the slice, or what is added to it."""
    adds: bool
    reads: tuple[Node, ...]
    """Nodes that read the slice before."""


class _NewScan(NamedTuple):
    """Results of the former scan by number: those that the new one computes, and the sources of the others."""

    carried: Sequence[int]
    stacked: Sequence[int]
    same: Sequence[int]
    """Carries that no step changes."""
    writes: Mapping[int, _Write]
    lines: Mapping[int, Rows]
    """Stacked results that are linear functions of their position."""


class CountedSteps:
    """A scan whose step reads and writes slices by its number, as a scan over these slices.

    Carries that no step changes become shared operands, and the last values of counters become constants.
    """

    def __init__(self, body: Graph, known: Sequence[np.ndarray | None], attrs: Attrs):
        """Take the operands of a scan that are constants, None for others. ``body`` is changed."""
        self.body = body
        self.carries, self.sequences = attrs["carries"], attrs["sequences"]
        self.length, self.reverse = attrs["length"], attrs["reverse"]
        last = self.carries + self.sequences
        entire = [a if i < self.carries or i >= last else None for i, a in enumerate(known)]
        self.values = StepValues(body, entire, self.carries)
        for value, array in zip(body.inputs[self.carries : last], known[self.carries : last], strict=True):
            if array is not None:
                self.values.varying[value] = array[::-1] if self.reverse else array
        self.types = [value.type for value in body.outputs]
        self.ends = {
            i: rows[-1:].reshape(())
            for i, value in enumerate(body.inputs)
            if (rows := self.values.counted(self.length).get(value)) is not None
        }
        """Last values of counters, by number of the carry."""
        self._linear: dict[Value, Rows | None] = {}
        self._slices: dict[tuple[int, Rows], Value] = {}
        """Arguments that take slices, by operand."""

    def run(self, operands: Sequence[Tensor], apply: Callable[..., Sequence[Tensor]]) -> list[Tensor]:
        """Return the results of the scan. ``apply`` runs another scan: it takes operands and attributes."""
        self._without_room()
        _drop_dead_nodes(self.body)
        same = [i for i in range(self.carries) if source(self.body.outputs[i]) is self.body.inputs[i]]
        writes = {i: w for i in range(self.carries) if i not in same and (w := self._write(i)) is not None}
        reads = self._reads(same)
        lines = self._lines()
        if not self.sequences and len(self.body.outputs) == self.carries + len(lines):
            strides = [rows.stride for rows in (*(r for _, r in reads.values()), *(w.rows for w in writes.values()))]
            self.reverse = sum(stride < 0 for stride in strides) * 2 > len(strides)
        stacks = self._replace(reads, writes)
        return self._applied(operands, apply, self._planned(same, writes, lines, stacks), stacks)

    # ---- what steps read and write

    def rows(self, x: Value, index: Value, axis: int) -> Rows | None:
        """Return the slices that a position selects in the steps; None where it may be out of range, or is no linear
        function of the step."""
        index = source(index)
        rows = self._line(index)
        if rows is None or is_size(x.shape[axis]):
            return None
        ends = rows.start, rows.start + rows.stride * (self.length - 1)
        return rows._replace(axis=axis) if min(ends) >= 0 and max(ends) < x.shape[axis] else None

    def _line(self, value: Value) -> Rows | None:
        """Return an integer of the steps as a linear function of their number, whose slope is not 0."""
        if value not in self._linear:
            self._linear[value] = self._computed_line(value)
        return self._linear[value]

    def _computed_line(self, value: Value) -> Rows | None:
        if value.dtype.kind not in "iu" or any(is_size(s) or s != 1 for s in value.shape):
            return None
        array = self.values.at(value, self.length)
        if array is None or max(abs(int(array.min())), abs(int(array.max()))) >= 1 << 62:
            return None
        numbers = array.reshape(-1).astype(np.int64)
        start, stride = int(numbers[0]), int(numbers[1] - numbers[0]) if self.length > 1 else 1
        linear = stride != 0 and np.array_equal(numbers, start + stride * np.arange(self.length))
        return Rows(0, start, stride) if linear else None

    def _reads(self, same: Sequence[int]) -> dict[Node, tuple[int, Rows]]:
        """Return the nodes that take a slice of an operand which no step changes."""
        numbers = {v: i for i, v in enumerate(self.body.inputs) if i in same or i >= self.carries + self.sequences}
        reads: dict[Node, tuple[int, Rows]] = {}
        for node in self.body.nodes_of(lambda op: op is gather.op):
            x = source(node.operands[0])
            rows = self._selected(node) if x in numbers else None
            if rows is not None:
                reads[node] = numbers[x], rows
        return reads

    def _without_room(self) -> None:
        """Update a tensor itself where it got room at its end for positions out of range, and there are none."""
        for node in self.body.nodes_of(lambda op: op is moves.slice.op):
            update = node.operands[0].node
            if update.op not in _SCATTERS or any(node.attrs["starts"]):
                continue
            content, index, new = update.operands
            x, axis = content.node.operands[0] if content.node.op is moves.pad.op else content, update.attrs["axis"]
            if _is_room(content, x, axis) and x.type == node.result.type and self.rows(x, index, axis) is not None:
                with use(GraphDispatcher(self.body, update.location)):
                    self.body.replace_uses(node.result, dispatch.apply(update.op, (x, index, new), update.attrs))

    def _write(self, number: int) -> _Write | None:
        """Return the update of a carry of which each step reads and writes one slice only, and another one each."""
        before, node = self.body.inputs[number], source(self.body.outputs[number]).node
        if node.op not in _SCATTERS or source(node.operands[0]) is not before:
            return None
        rows = self.rows(before, node.operands[1], node.attrs["axis"])
        reads = None if rows is None else self._other_uses(before, node, rows)
        if rows is None or reads is None or not self._is_result_only(self.body.outputs[number], node):
            return None
        return _Write(rows, node.operands[2], node.op is scatter_add.op, reads)

    def _is_result_only(self, value: Value, write: Node) -> bool:
        """Check whether an update has no use but to become the next carry."""
        while value.node is not write and self.body.is_used_once(value):
            value = value.node.operands[0]
        return value.node is write and self.body.is_used_once(value)

    def _other_uses(self, value: Value, write: Node, rows: Rows) -> tuple[Node, ...] | None:
        """Return the reads of a carry's slice; None for a carry that has other uses than these and the update."""
        reads, stack = [], [value]
        while stack:
            present = stack.pop()
            if present in self.body.outputs:
                return None
            for node, position in self.body.uses(present):
                if source(node.results[0]) is value:
                    stack += node.results
                elif node.op is gather.op and position == 0 and self._selected(node) == rows:
                    reads.append(node)
                elif node is not write or position != 0:
                    return None
        return tuple(reads)

    def _selected(self, node: Node) -> Rows | None:
        return self.rows(node.operands[0], node.operands[1], node.attrs["axis"])

    # ---- the new scan

    def _replace(self, reads: Mapping[Node, tuple[int, Rows]], writes: Mapping[int, _Write]) -> list[Value]:
        """Replace reads by arguments; return the new contents of the slices that are written."""
        with use(GraphDispatcher(self.body)):
            for node, (number, rows) in reads.items():
                self._read(node, number, rows)
            stacks = []
            for number, write in writes.items():
                for node in write.reads:
                    self._read(node, number, write.rows)
                shape = _without(self.body.inputs[number].shape, write.rows.axis)
                new = moves.reshape(write.update, shape=shape)
                stacks.append(add(self._slice(number, write.rows), new) if write.adds else new)
        return stacks

    def _read(self, node: Node, number: int, rows: Rows) -> None:
        self.body.replace_uses(node.results[0], moves.reshape(self._slice(number, rows), shape=node.results[0].shape))

    def _slice(self, number: int, rows: Rows) -> Value:
        """Return the argument for slices of an operand."""
        if (number, rows) not in self._slices:
            x = self.body.inputs[number]
            kind = TensorType(x.dtype, _without(x.shape, rows.axis))
            self._slices[number, rows] = self.body.add_input(kind, f"{x.name}.slice")
        return self._slices[number, rows]

    def _applied(
        self,
        operands: Sequence[Tensor],
        apply: Callable[..., Sequence[Tensor]],
        plan: _NewScan,
        stacks: Sequence[Value],
    ) -> list[Tensor]:
        """Run the scan of the rewritten step; return the results of the former one."""
        body, last = self.body, self.carries + self.sequences
        arguments, outputs = body.inputs[:], body.outputs
        carried, stacked = plan.carried, plan.stacked
        body.set_outputs([*(outputs[i] for i in (*carried, *stacked)), *stacks])
        _drop_dead_nodes(body)
        sequences = [i for i in range(self.carries, last) if body.is_used(arguments[i])]
        sliced = {key: value for key, value in self._slices.items() if body.is_used(value)}
        shared = [i for i in (*range(last, len(operands)), *plan.same) if body.is_used(arguments[i])]
        order = [*(arguments[i] for i in (*carried, *sequences)), *sliced.values(), *(arguments[i] for i in shared)]
        for value in {*body.inputs} - {*order}:
            body.erase(value.node)
        body.inputs[:] = order
        rows = [self._taken(operands[i], rows) for i, rows in sliced]
        passed = [*(operands[i] for i in (*carried, *sequences)), *rows, *(operands[i] for i in shared)]
        counts = {"carries": len(carried), "sequences": len(sequences) + len(rows)}
        attrs = {"body": body, **counts, "length": self.length, "reverse": self.reverse}
        results = apply(passed, attrs) if body.outputs else []
        computed = dict(zip((*carried, *stacked), results, strict=False))
        for (i, write), new in zip(plan.writes.items(), results[len(computed) :], strict=True):
            computed[i] = self._put(operands[i], write.rows, new)
        return [computed[i] if i in computed else self._known(i, operands, plan) for i in range(len(outputs))]

    def _lines(self) -> dict[int, Rows]:
        """Return the stacked results that are linear functions of the step, by position."""
        lines = {i: self._line(source(v)) for i, v in enumerate(self.body.outputs) if i >= self.carries}
        return {i: self._towards(line) for i, line in lines.items() if line is not None}

    def _planned(
        self,
        same: Sequence[int],
        writes: Mapping[int, _Write],
        lines: Mapping[int, Rows],
        stacks: Sequence[Value],
    ) -> _NewScan:
        """Return the carries and stacks that the new scan has."""
        outputs = self.body.outputs
        stacked = [i for i in range(self.carries, len(outputs)) if i not in lines]
        carried = [i for i in range(self.carries) if i not in same and i not in writes]
        needed = [outputs[i] for i in (*carried, *stacked) if i not in self.ends]
        live = live_nodes(self.body, [*needed, *stacks])
        carried = [i for i in carried if i not in self.ends or self.body.inputs[i].node in live]
        return _NewScan(carried, stacked, same, writes, lines)

    def _known(self, number: int, operands: Sequence[Tensor], plan: _NewScan) -> Tensor:
        """Return a result that the new scan does not compute."""
        if number in plan.same:
            return operands[number].clone()
        if number < self.carries:
            return front().local(front().constant(self.ends[number]))
        line, kind = plan.lines[number], self.types[number]
        numbers = iota(shape=(self.length, *kind.shape), axis=0, dtype=int64) * line.stride + line.start
        return numbers.to(kind.dtype)

    def _towards(self, rows: Rows) -> Rows:
        """Return slices by position, which is not the step where the scan runs backwards."""
        if not self.reverse:
            return rows
        return Rows(rows.axis, rows.start + rows.stride * (self.length - 1), -rows.stride)

    def _region(self, x: Tensor, rows: Rows) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        """Return first indices and steps of all slices in a tensor, and whether positions go from the last to the
        first."""
        _, start, stride = self._towards(rows)
        first = min(start, start + stride * (self.length - 1))
        starts = tuple([first if d == rows.axis else 0 for d in range(x.ndim)])
        return starts, tuple([abs(stride) if d == rows.axis else 1 for d in range(x.ndim)]), stride < 0

    def _taken(self, x: Tensor, rows: Rows) -> Tensor:
        """Return the slices, by position along the first dimension."""
        starts, steps, turned = self._region(x, rows)
        counts = tuple([self.length if d == rows.axis else s for d, s in enumerate(x.shape)])
        if counts != tuple(x.shape):
            x = moves.slice(x, starts=starts, stops=slice_stops(starts, steps, counts), steps=steps)
        x = moves.flip(x, axes=(rows.axis,)) if turned else x
        return x.movedim(rows.axis, 0) if rows.axis else x

    def _put(self, x: Tensor, rows: Rows, new: Tensor) -> Tensor:
        """Return a tensor with new slices."""
        starts, steps, turned = self._region(x, rows)
        new = new.movedim(0, rows.axis) if rows.axis else new
        new = moves.flip(new, axes=(rows.axis,)) if turned else new
        return new if new.shape == x.shape else update_slice(x, new, starts=starts, steps=steps)


def _drop_dead_nodes(graph: Graph) -> None:
    live = live_nodes(graph, graph.outputs)
    for node in reversed(graph.nodes()):
        if node not in live:
            graph.erase(node)


def _without(shape: Sequence[int], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


def _is_room(value: Value, like: Value, axis: int) -> bool:
    """Check for a tensor with one more entry at the end of an axis than ``like`` has."""
    node = value.node
    return (
        node.op is moves.pad.op
        and value.shape == tuple([s + (d == axis) for d, s in enumerate(like.shape)])
        and not any((*node.attrs["low"], *node.attrs["interior"]))
    )


_SCATTERS = (scatter.op, scatter_add.op)
