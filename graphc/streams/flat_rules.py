"""Rules for reads and writes at row-major offsets of a flattened tensor, each within the elements of its own sample."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.base.sizes.size import at, is_size
from graphc.ir.graph.graph import Node, Value
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise
from graphc.streams.attention_rules import is_positional
from graphc.streams.plan import Plan, apply, constant
from graphc.streams.positions import numbers
from graphc.streams.signal import Signal, resized


@dataclass(frozen=True)
class Offsets:
    """Offsets in a flattened tensor of several sequences, each with ``width`` elements for a sample.

    Element ``t`` of time is at ``((row + row_step * n) * length + t) * width + within + step * n``, where ``n`` are
    computed numbers.
    """

    width: int
    row: np.ndarray
    within: np.ndarray
    computed: Value | None = None
    row_step: int = 0
    step: int = 0

    def at(self, length: int, axis: int) -> np.ndarray:
        """Return the offsets in sequences of a length, without those of computed numbers."""
        t = np.arange(length, dtype=np.int64).reshape([length if i == axis else 1 for i in range(self.row.ndim)])
        return (self.row * length + t) * self.width + self.within


def is_own(signals: Sequence[Signal]) -> bool:
    """Check whether an op may read or write the elements of a flattened tensor by samples: its first two operands."""
    x, indices = signals[:2]
    return x.rank == 1 and x.axis == 0 and indices.axis is not None and x.block % indices.block == 0


def offsets_of(plan: Plan, x: Signal, indices: Signal) -> Offsets | None:
    """Return how offsets split into those of sequences and samples, and those within a sample; None if they do not."""
    axis, value = indices.axis, indices.value
    assert axis is not None
    known: dict[Value, bool] = {}
    terms = _terms(value)
    fixed = [v for v in terms if is_positional(v, known)]
    computed = [v for v in terms if v not in fixed]
    if len(computed) > 1:
        return None
    width = x.block // indices.block
    samples, sums, steps = [], [], []
    number, factor = _product(computed[0], known) if computed else (None, None)
    for length in (plan.sizes[plan.dimension], 2 * plan.sizes[plan.dimension]):
        shape = tuple(at(n, {plan.dimension: length}) if is_size(n) else n for n in value.shape)
        total = sum((numbers(plan, v, length) for v in fixed), np.zeros((), np.int64))
        sums.append(np.broadcast_to(total, shape).astype(np.int64))
        samples.append(shape[axis])
        steps.append(np.ones((), np.int64) if factor is None else numbers(plan, factor, length))
    if any(s.size != 1 for s in steps):
        return None
    row, within = _split(_first(sums[0], axis), _first(sums[1], axis), width, samples)
    row_step, step = _split(steps[0].reshape(()), steps[1].reshape(()), width, samples)
    offsets = Offsets(width, row, within, number, int(row_step), int(step))
    if any(not np.array_equal(offsets.at(n, axis), s) for n, s in zip(samples, sums, strict=True)):
        return None
    return offsets if _is_inside(offsets, x.rows) else None


def _first(array: np.ndarray, axis: int) -> np.ndarray:
    """Return the first element of a dimension."""
    return np.take(array, [0], axis)


def _split(first: np.ndarray, second: np.ndarray, width: int, lengths: Sequence[int]) -> tuple[Any, Any]:
    """Return factors ``a`` and ``b`` with which numbers are ``a * length * width + b``, from those at two lengths."""
    length, longer = lengths
    row = (second - first) // (width * (longer - length))
    return row, first - row * width * length


def _is_inside(offsets: Offsets, rows: int) -> bool:
    """Check whether offsets without computed numbers stay in their sample, and numbers change one of both parts."""
    inside = ((offsets.within >= 0) & (offsets.within < offsets.width)).all()
    return bool(
        inside and ((offsets.row >= 0) & (offsets.row < rows)).all() and not (offsets.row_step and offsets.step)
    )


def _terms(value: Value) -> list[Value]:
    """Return the values whose sum a value is, if none of its elements is negative."""
    node = value.node
    if node.op is elementwise.add.op:
        return [term for v in node.operands for term in _terms(v)]
    if node.op is elementwise.where.op:
        negative, _, same = node.operands
        if negative.node.op is elementwise.lt.op and negative.node.operands[0] is same:
            return _terms(same)
    return [value]


def _product(value: Value, known: dict[Value, bool]) -> tuple[Value, Value | None]:
    """Return computed numbers and what they are multiplied by, which follows from the length."""
    node = value.node
    if node.op is elementwise.mul.op:
        for number, factor in (node.operands, node.operands[::-1]):
            if is_positional(factor, known) and not factor.shape:
                return number, factor
    return value, None


def ready(plan: Plan, node: Node, signals: Sequence[Signal]) -> tuple[list[Signal], int, int]:
    """Return the operands with one delay, the slot of the offsets in a tick, and the delay in samples.

    Raises StreamError for offsets that are not known to be those of the same sample.
    """
    x, indices = signals[:2]
    offsets = offsets_of(plan, x, indices)
    computed = None if offsets is None or offsets.computed is None else plan.signals[offsets.computed]
    if offsets is None or (computed is not None and not plan.runs([computed])):
        raise plan.whole(node, "it reads or writes samples at positions that it computes")
    width, axis, block = offsets.width, indices.axis, indices.block
    assert axis is not None
    others = [s for s in (computed, *signals[2:]) if s is not None and s.axis is not None]
    delay = max(0, -(-x.delay // width), *(s.delay for s in others))
    aligned = [plan.delayed(node, x, delay * width), indices, *(plan.delayed(node, s, delay) for s in signals[2:])]
    table = offsets.at(block, axis)
    if computed is None:
        return aligned, plan.array(table), delay
    by_row = offsets.row_step != 0
    first, step = (offsets.row, offsets.row_step) if by_row else (offsets.within, offsets.step)
    limits = {"low": 0, "high": (x.rows if by_row else width) - 1, "what": f"{plan.where(node)}: index"}
    factor = step * (block * width if by_row else 1)

    def run(number: Any) -> Sequence[Any]:
        number = apply("cast", (number,), {"dtype": indices.value.dtype})
        own = apply("mul", (number, constant(np.asarray(step))), {})
        check = apply("check_index", (apply("add", (own, constant(first)), {}),), limits)
        own = apply("mul", (number, constant(np.asarray(factor))), {})
        return apply("add", (own, constant(table)), {}), check

    number = plan.cleared(node, plan.delayed(node, computed, delay), 0)
    slot = plan.add(run, (number.slot,), count=2, always=True)[0]
    return aligned, slot, delay


def read(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for ``gather`` from a flattened tensor, as in sort, topk and take_along_dim along channels."""
    indices = signals[1]
    (x, _), slot, delay = ready(plan, node, signals)
    axis, block = indices.axis, indices.block
    assert axis is not None
    slot = plan.add(lambda flat, offsets: (dispatch.apply(node.op, (flat, offsets), {"axis": 0}),), (x.slot, slot))[0]
    shape = resized(tuple(map(plan.size, node.results[0].shape)), axis, block)
    least = max(indices.least, -(-x.least // (x.block // block)))
    return [plan.result(node, slot, shape=shape, axis=axis, block=block, delay=delay, least=least)]


def write(plan: Plan, node: Node, signals: Sequence[Signal]) -> list[Signal]:
    """Rule for ``scatter`` and its variants into a flattened tensor."""
    x, indices, updates = signals
    if not is_own(signals) or updates.axis != indices.axis:
        raise plan.whole(node, "it writes samples at positions that it computes")
    (x, _, updates), slot, delay = ready(plan, node, signals)
    attrs, width = plan.attrs(node), x.block // indices.block
    run = lambda flat, offsets, new: (dispatch.apply(node.op, (flat, offsets, new), attrs),)  # noqa: E731
    slot = plan.add(run, (x.slot, slot, updates.slot))[0]
    least = max(x.least, indices.least * width, updates.least * width)
    facts = {"axis": 0, "block": x.block, "delay": delay * width, "least": least, "rows": x.rows}
    return [plan.result(node, slot, shape=x.shape, **facts)]
