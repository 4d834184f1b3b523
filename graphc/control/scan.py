"""``scan``: a function applied along sequences, each step taking over what the one before gave; one node of a trace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.errors import ArgumentError, ShapeError
from graphc.control.sub_graphs import (
    as_they_were,
    carry_states,
    generator_states,
    refuse_changed,
    taken_checks,
    unshared,
)
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.loop import scan as scan_op
from graphc.ops.loop import steps
from graphc.ops.shape import concat
from graphc.tape.grad_mode import no_grad
from graphc.tensors.generator import own_step
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.tracer import Tracer

Step = Callable[[Any, Any], tuple[Any, Any]]


def scan(f: Step, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False) -> tuple[Any, Any]:
    """Applies ``carry, y = f(carry, x)`` to every slice ``x`` of ``xs`` along the first dimension, beginning with
    ``carry = init``, from the last slice with ``reverse``. Returns the last carry and the ``y`` stacked in the order of
    the slices.

    Carries, ``xs`` and ``y`` are tensors or nested tuples, lists and dictionaries of tensors; carries keep their shapes
    and types. Without ``xs``, ``length`` says how many steps there are and ``x`` is None. What is traced or compiled
    holds f once, whatever the length: it must not write to tensors from outside there. Random numbers differ from step
    to step, and are the same in eager mode and compiled.
    """
    sequences, structure = flatten(xs)
    count = _length(sequences, length)
    carries, shape = flatten(init)
    loop = _Loop(f, shape, structure, carries)
    run = loop.trace if isinstance(front(), Tracer) else loop.run
    last, stacks = run(carries, sequences, count, reverse)
    return unflatten(shape, last), unflatten(loop.given, stacks)


def _length(sequences: Sequence[Tensor], length: int | None) -> int:
    found = {x.shape[0] if x.shape else -1 for x in sequences} | ({length} if length is not None else set())
    if len(found) != 1 or -1 in found:
        shown = ", ".join(str(list(x.shape)) for x in sequences)
        raise ShapeError(f"scan: sequences {shown or 'none'} and length {length} do not say how many steps there are")
    (count,) = found
    if count < 1:
        raise ShapeError("scan: the sequences have no steps")
    return count


class _Loop:
    """A function and the structures of what it takes and gives."""

    def __init__(self, f: Step, carry: Structure, x: Structure, first: Sequence[Tensor]):
        self.f = f
        self.carry = carry
        self.x = x
        self.types = [(t.dtype, tuple(t.shape)) for t in first]
        self.given: Structure
        """Of what a step gives beside the carries."""

    def step(self, carries: Sequence[Tensor], slices: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The tensors of the next carry and of what is stacked."""
        with own_step():
            result = self.f(unflatten(self.carry, carries), unflatten(self.x, slices))
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentError("scan: the function must return a pair, the next carry and what is stacked")
        after, structure = flatten(result[0])
        if structure != self.carry or self.types != [(t.dtype, tuple(t.shape)) for t in after]:
            given = ", ".join(f"{t.dtype.name}{list(t.shape)}" for t in after)
            taken = ", ".join(f"{dtype.name}{list(shape)}" for dtype, shape in self.types)
            raise ShapeError(f"scan: the function takes a carry of {taken} and gives one of {given}")
        ys, self.given = flatten(result[1])
        return after, ys

    def run(self, carries: Sequence[Tensor], sequences: Sequence[Tensor], length: int, reverse: bool) -> Any:
        """One step after the other."""
        stacks: list[list[Tensor]] = []
        for t in steps(length, reverse):
            carries, ys = self.step(carries, [x.select(0, t) for x in sequences])
            stacks.append([y.reshape(1, *y.shape) for y in ys])
        stacks = stacks[::-1] if reverse else stacks
        return unshared(carries), [concat(*parts, axis=0) for parts in zip(*stacks, strict=True)]

    def trace(self, carries: Sequence[Tensor], sequences: Sequence[Tensor], length: int, reverse: bool) -> Any:
        """One node; what the function uses from outside becomes a further operand."""
        outer = front()
        assert isinstance(outer, Tracer)
        inner = Tracer(Graph("scan.step"), parent=outer)
        with dispatch.use(inner):
            given = [_argument(inner, t, f"carry.{i}", t.shape) for i, t in enumerate(carries)]
            slices = [_argument(inner, t, f"x.{i}", t.shape[1:]) for i, t in enumerate(sequences)]
            after, ys = self.step(given, slices)
            results = [refresh(inner.local(t))._data for t in (*after, *ys)]
            refuse_changed(inner, [*given, *slices], "scan")
        generators = generator_states(inner, "scan", "make it a carry")
        checks = taken_checks(inner.graph)
        operands = [*carries, *sequences, *as_they_were(inner.origins, [entry.tensor for entry in generators])]
        carry_states(inner.graph, operands, results, len(carries), generators)
        taken = len(carries) + len(generators)
        whole = dict(zip(inner.graph.inputs[taken:], operands[taken:], strict=True))
        stacked = [c.operands[0] for c in checks if c.operands[0] not in whole]
        inner.graph.set_outputs([*results, *stacked])
        counts = {"carries": taken, "sequences": len(sequences), "length": length, "reverse": reverse}
        found = outer.apply(scan_op.op, operands, {"body": inner.graph, **counts})
        found = list(found) if isinstance(found, tuple) else [found]
        whole.update(zip(stacked, found[len(results) :], strict=True))
        for check in checks:
            value = refresh(outer.local(whole[check.operands[0]]))._data
            emit(outer.graph, check.op, [value], check.attrs, check.location)
        with no_grad():
            for entry, state in zip(generators, found[len(carries) : taken], strict=True):
                outer.assign(entry.tensor, state)
        return found[: len(carries)], found[taken : len(results)]


def _argument(inner: Tracer, outer: Tensor, name: str, shape: Sequence[int]) -> Tensor:
    tensor = Tensor._wrap(inner.graph.add_input(TensorType(outer.dtype, tuple(shape)), name))
    tensor._requires_grad = outer.dtype.is_differentiable
    return tensor
