"""``scan``: apply a function along sequences, passing a carry from step to step; one node of a trace."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.errors import ArgumentError, ShapeError
from graphc.base.sizes.size import is_size
from graphc.control.checkpoint import checkpoint as run_again
from graphc.control.counted import CountedSteps
from graphc.control.step_values import MOST_STEPS, constant
from graphc.control.sub_graphs import (
    as_they_were,
    carry_states,
    generator_states,
    refuse_changed,
    taken_checks,
    unshared,
)
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Value
from graphc.ir.op import Attrs
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.flow.control import inline
from graphc.ops.flow.loop import scan as scan_op
from graphc.ops.flow.loop import steps
from graphc.ops.movement.shape import concat
from graphc.tape.grad_mode import no_grad
from graphc.tensors.matching import Sides, matched_types, types_of
from graphc.tensors.random.generator import own_step
from graphc.tensors.structure import Structure, flatten, replace, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.tracer import Tracer

Step = Callable[[Any, Any], tuple[Any, Any]]
_CARRY = Sides("scan", "carry")


def scan(
    f: Step,
    init: Any,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    *,
    checkpoint: int | bool = False,
) -> tuple[Any, Any]:
    """Apply ``carry, y = f(carry, x)`` to each slice ``x`` of a sequence, and stack the results ``y``.

    Traced and compiled code contains ``f`` once for any length. Random numbers differ between steps; eager and compiled
    code draw the same ones.

    Args:
        f: function of (carry, x) that returns (carry, y). In traced code it must not write to tensors from outside.
        init: first carry. Carries, ``xs`` and ``y`` are tensors or nested tuples, lists, dictionaries and dataclasses
            of tensors; carries keep their shapes and types.
        xs: sequences, all of one length along the first dimension.
        length: number of steps where ``xs`` is None; then ``x`` is None.
        reverse: begin with the last slice.
        checkpoint: a number k: a gradient keeps the carry before each k steps alone, and runs the k steps again in the
            backward pass. True stands for about the square root of the number of steps, which keeps the fewest values.

    Returns:
        (last carry, stacked ``y``), the latter in the order of the slices.

    Raises:
        ShapeError: a carry changes its shape, or the sequences have different lengths or no steps.
        DTypeError: a carry changes its element type.
        ArgumentError: ``f`` returns anything but a pair, or a carry of another nesting; or ``checkpoint`` is no number
            of steps, or the number of steps is a named dimension.

    Example:
        >>> import graphc as gc
        >>> gc.scan(lambda total, x: (total + x, total + x), gc.tensor(0), gc.tensor([1, 2, 3]))
        (tensor(6), tensor([1, 3, 6]))
    """
    sequences, structure = flatten(xs)
    count = _length(sequences, length)
    if checkpoint:
        return _in_chunks(f, init, xs, count, reverse, chunk_length("scan", checkpoint, count))
    carries, shape = flatten(init)
    loop = _Loop(f, shape, structure, carries)
    run = loop.trace if isinstance(front(), Tracer) else loop.run
    last, stacks = run(carries, sequences, count, reverse)
    return unflatten(shape, last), unflatten(loop.outputs, stacks)


def _length(sequences: Sequence[Tensor], length: int | None) -> int:
    lengths = {x.shape[0] if x.shape else -1 for x in sequences} | ({length} if length is not None else set())
    if len(lengths) != 1 or -1 in lengths:
        shown = ", ".join(str(list(x.shape)) for x in sequences)
        raise ShapeError(f"scan: sequences {shown or 'none'} and length {length} do not determine the number of steps")
    (count,) = lengths
    if count < 1:
        raise ShapeError("scan: the sequences have no steps")
    return count


def chunk_length(name: str, checkpoint: Any, count: Any) -> int:
    """Return the number of steps of a chunk, after which a loop keeps its state. Raises ArgumentError for anything but
    a positive int or True, and for a count that a call decides."""
    if is_size(count):
        raise ArgumentError(
            f"{name}: checkpoint needs a number of steps that is the same in all calls, not {count}",
            remedy="trace without named dimensions, or leave checkpoint out",
        )
    if not isinstance(checkpoint, int) or checkpoint < 1:
        raise ArgumentError(
            f"{name}: checkpoint must be True or at least 1, got {checkpoint!r}",
            remedy="pass the number of steps that are computed again together",
        )
    return math.isqrt(max(count - 1, 0)) + 1 if checkpoint is True else checkpoint


def _in_chunks(f: Step, init: Any, xs: Any, count: int, reverse: bool, size: int) -> tuple[Any, Any]:
    """Run a scan of checkpointed scans of ``size`` steps, and one of the last steps."""
    rest = count % size
    first, last = (rest, count) if reverse else (0, count - rest)

    def steps_of(carry: Any, rows: Any, length: int) -> tuple[Any, Any]:
        return run_again(lambda carry, rows: scan(f, carry, rows, length, reverse), carry, rows)

    carry, pieces = init, []
    if first < last:
        chunks = replace(xs, lambda x: x[first:last].reshape(-1, size, *x.shape[1:]))
        carry, ys = scan(lambda carry, rows: steps_of(carry, rows, size), carry, chunks, count // size, reverse)
        pieces.append(replace(ys, lambda y: y.reshape(-1, *y.shape[2:])))
    if rest:
        carry, ys = steps_of(carry, replace(xs, lambda x: x[:first] if reverse else x[last:]), rest)
        pieces.append(ys)
    pieces = pieces[::-1] if reverse else pieces
    columns = zip(*[flatten(ys)[0] for ys in pieces], strict=True)
    return carry, unflatten(flatten(pieces[0])[1], [concat(*column, axis=0) for column in columns])


class _Loop:
    """The loop over a function, with the structures of its arguments and results."""

    def __init__(self, f: Step, carry: Structure, x: Structure, first: Sequence[Tensor]):
        self.f = f
        self.carry = carry
        self.x = x
        self.types = types_of(first)
        self.outputs: Structure
        """Structure of a step's stacked results."""

    def step(self, carries: Sequence[Tensor], slices: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """Run one step; return the tensors of the next carry and of the stacked results."""
        with own_step():
            result = self.f(unflatten(self.carry, carries), unflatten(self.x, slices))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentError("scan: the function must return a pair: the next carry, and the results to stack")
        after = matched_types(self.carry, self.types, result[0], _CARRY)
        ys, self.outputs = flatten(result[1])
        return after, ys

    def run(self, carries: Sequence[Tensor], sequences: Sequence[Tensor], length: int, reverse: bool) -> Any:
        """Run the steps one by one, in eager mode."""
        stacks: list[list[Tensor]] = []
        for t in steps(length, reverse):
            carries, ys = self.step(carries, [x.select(0, t) for x in sequences])
            stacks.append([y.reshape(1, *y.shape) for y in ys])
        stacks = stacks[::-1] if reverse else stacks
        return unshared(carries), [concat(*results, axis=0) for results in zip(*stacks, strict=True)]

    def trace(self, carries: Sequence[Tensor], sequences: Sequence[Tensor], length: int, reverse: bool) -> Any:
        """Trace the step as one node; tensors it uses from outside become further operands."""
        outer = front()
        assert isinstance(outer, Tracer)
        inner = Tracer(Graph("scan.step"), parent=outer)
        with dispatch.use(inner):
            carried = [_argument(inner, t, f"carry.{i}", t.shape) for i, t in enumerate(carries)]
            slices = [_argument(inner, t, f"x.{i}", t.shape[1:]) for i, t in enumerate(sequences)]
            after, ys = self.step(carried, slices)
            results = [refresh(inner.local(t))._data for t in (*after, *ys)]
            refuse_changed(inner, [*carried, *slices], "scan")
        return emit_steps(inner, carries, sequences, results, {"length": length, "reverse": reverse}, "scan")


def emit_steps(
    inner: Tracer,
    carries: Sequence[Tensor],
    sequences: Sequence[Tensor],
    results: list[Value],
    attrs: Attrs,
    name: str,
    checkpoint: int | bool = False,
) -> tuple[list[Tensor], list[Tensor]]:
    """Append a scan of a traced step to the running trace; return the last carries and the stacks.

    Args:
        inner: the trace of a step. Its first arguments are the carries and the slices.
        carries: operands of the scan, of which ``sequences`` are those to be sliced.
        results: next carries and results to stack, of the graph of the step.
        attrs: ``length`` and ``reverse`` of the scan.
        name: the loop in errors.
        checkpoint: as of ``scan``.

    Raises:
        TraceError: the step writes to tensors from outside.
    """
    outer = front()
    assert isinstance(outer, Tracer)
    generators = generator_states(inner, name, "make it a carry")
    checks = taken_checks(inner.graph)
    operands = [*carries, *sequences, *as_they_were(inner.origins, [entry.tensor for entry in generators])]
    carry_states(inner.graph, operands, results, len(carries), generators)
    carry_count = len(carries) + len(generators)
    unstacked = dict(zip(inner.graph.inputs[carry_count:], operands[carry_count:], strict=True))
    stacked = [c.operands[0] for c in checks if c.operands[0] not in unstacked]
    inner.graph.set_outputs([*results, *stacked])
    counts = {"carries": carry_count, "sequences": len(sequences), **attrs}
    outputs = _emit(outer, inner.graph, operands, counts, checkpoint)
    unstacked.update(zip(stacked, outputs[len(results) :], strict=True))
    for check in checks:
        value = refresh(outer.local(unstacked[check.operands[0]]))._data
        emit(outer.graph, check.op, [value], check.attrs, check.location)
    with no_grad():
        for entry, state in zip(generators, outputs[len(carries) : carry_count], strict=True):
            outer.assign(entry.tensor, state)
    return outputs[: len(carries)], outputs[carry_count : len(results)]


def _emit(outer: Tracer, body: Graph, operands: Sequence[Tensor], attrs: Attrs, checkpoint: int | bool) -> list[Tensor]:
    """Append a scan, of slices where a step reads and writes one of a tensor."""

    def apply(operands: Sequence[Tensor], attrs: Attrs) -> list[Tensor]:
        if checkpoint:
            return _checkpointed(operands, checkpoint=checkpoint, **attrs)
        outputs = outer.apply(scan_op.op, operands, attrs)
        return list(outputs) if isinstance(outputs, tuple) else [outputs]

    if is_size(attrs["length"]) or not 0 < attrs["length"] <= MOST_STEPS:
        return apply(operands, {"body": body, **attrs})
    return CountedSteps(body, [constant(outer, x) for x in operands], attrs).run(operands, apply)


def _checkpointed(
    operands: Sequence[Tensor],
    body: Graph,
    carries: int,
    sequences: int,
    length: int,
    reverse: bool,
    checkpoint: int | bool,
) -> list[Tensor]:
    """Run a traced step in chunks; return the last carries and the stacks."""
    last = carries + sequences

    def step(carry: Any, rows: Any) -> tuple[Any, Any]:
        results = inline(body, [*carry, *(rows or ()), *operands[last:]])
        return list(results[:carries]), list(results[carries:])

    rows = list(operands[carries:last]) or None
    ends, stacks = scan(step, list(operands[:carries]), rows, length, reverse, checkpoint=checkpoint)
    return [*ends, *stacks]


def _argument(inner: Tracer, outer: Tensor, name: str, shape: Sequence[int]) -> Tensor:
    tensor = Tensor._wrap(inner.graph.add_input(TensorType(outer.dtype, tuple(shape)), name))
    tensor._requires_grad = outer.dtype.is_differentiable
    return tensor
