"""Numbers that depend on positions only: patterns of reads, and masks of attentions."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.ir.graph.graph import Node, Value
from graphc.ir.graph.interpret import bound_attrs
from graphc.ops.movement import shape
from graphc.streams.plan import Plan, apply, constant
from graphc.streams.signal import Signal, resized

_LONGEST_PERIOD = 64


@dataclass(frozen=True)
class Pattern:
    """Rows of numbers that repeat: ``rows(t + period) == rows(t) + shift``, apart from both ends of a sequence."""

    period: int
    shift: int
    first: np.ndarray
    """The first period, as if the rows before it repeated, too."""
    start: np.ndarray
    """Rows at the start, which do not repeat."""
    tail: int
    """Number of rows at the end of a sequence that do not repeat."""

    def regular(self, t: int) -> np.ndarray:
        """Return a row that repeats, also of a negative number."""
        turns, rest = divmod(t, self.period)
        return self.first[rest] + turns * self.shift

    def at(self, t: int) -> np.ndarray:
        """Return the row of any number."""
        return self.start[t] if 0 <= t < len(self.start) else self.regular(t)


def numbers(plan: Plan, value: Value, length: int) -> np.ndarray:
    """Return the elements of a value that depends on positions and parameters only, for a size of the dimension of
    time."""
    sizes = {plan.dimension: length}
    known: dict[Value, np.ndarray] = {v: s.constant for v, s in plan.signals.items() if s.constant is not None}
    stack = [value]
    while stack:
        node = stack[-1].node
        waiting = [v for v in node.operands if v not in known]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        attrs = bound_attrs(node, sizes)
        if node.op is shape.slice.op and any(map(operator.gt, attrs["stops"], known[node.operands[0]].shape)):
            raise plan.unsupported(node, "numbers from a table that ends, other than in a mask")
        known.update(zip(node.results, node.op.evaluate([known[v] for v in node.operands], attrs), strict=True))
    return known[value]


def pattern_of(plan: Plan, value: Value, axis: int, still: bool = False, of: Sequence[Value] = ()) -> Pattern | None:
    """Return the pattern in which rows along time repeat in sequences of any length, or None.

    They must grow from period to period, or be the same with ``still``. ``of`` are vectors of positions: the first one
    is read at the rows' positions, the next one at the numbers found there, and so on.
    """
    length = plan.sizes[plan.dimension]
    rows, more = (np.moveaxis(_read(plan, (value, *of), n), axis, 0) for n in (length, 2 * length))
    if rows.dtype == np.bool_:
        rows, more = rows.astype(np.int64), more.astype(np.int64)
    half = len(rows) // 2
    for period in range(1, min(_LONGEST_PERIOD, half // 4) + 1):
        steps = (rows[period:half] - rows[: half - period]).reshape(half - period, -1)
        shift = steps[-1, 0]
        uneven = np.flatnonzero((steps != shift).any(axis=1))
        begin = int(uneven[-1]) + 1 if uneven.size else 0
        if begin > half // 2 or (shift != 0 if still else shift <= 0):
            continue
        turns = -(-begin // period)
        first = rows[turns * period : (turns + 1) * period] - turns * shift
        pattern = Pattern(period, shift, first, rows[:begin], _tail(rows, period, shift, half))
        same = np.array_equal(rows[:half], more[:half]) and _has_tail(plan, (value, *of), axis, pattern)
        return pattern if same else None
    return None


def _has_tail(plan: Plan, values: Sequence[Value], axis: int, pattern: Pattern) -> bool:
    """Check whether longer sequences end like a pattern does, and all that are a multiple of its shift alike."""
    shift = max(1, int(pattern.shift))
    length = plan.sizes[plan.dimension] // shift * shift
    rows, more = (np.moveaxis(_read(plan, values, n), axis, 0) for n in (length, 2 * length))
    tails = {_tail(x, pattern.period, pattern.shift, len(rows) // 2) for x in (rows, more)}
    return len(tails) == 1 and (length < plan.sizes[plan.dimension] or tails == {pattern.tail})


def _read(plan: Plan, values: Sequence[Value], length: int) -> np.ndarray:
    """Return the elements of the first value, or those that further ones have at these positions."""
    found = numbers(plan, values[0], length)
    for value in values[1:]:
        found = numbers(plan, value, length)[found]
    return found


def _tail(rows: np.ndarray, period: int, shift: Any, known: int) -> int:
    """Return the number of last rows that do not go on as the ``known`` first ones do."""
    numbers = np.arange(len(rows) - known)
    turns, source = numbers // period + 1, known - period + numbers % period
    expected = rows[source] + (turns * shift).reshape(-1, *[1] * (rows.ndim - 1))
    other = np.flatnonzero((rows[known:] != expected).reshape(len(numbers), -1).any(axis=1))
    return len(numbers) - int(other[0]) if other.size else 0


def periodic(plan: Plan, node: Node) -> Signal | None:
    """Return numbers that repeat along time, apart from both ends of a sequence, from a table; None if they do not."""
    value, axes = node.results[0], plan.axes(node.results[0])
    if len(node.results) > 1 or len(axes) != 1:
        return None
    axis = axes[0]
    pattern = pattern_of(plan, value, axis, still=True)
    if pattern is None:
        return None
    count, period = len(pattern.start), pattern.period
    rows = np.concatenate([pattern.start, *(pattern.regular(count + i)[None] for i in range(period))])
    table = np.ascontiguousarray(np.moveaxis(rows, 0, axis)).astype(value.dtype.numpy)
    block = plan.block_of(value.shape[axis])
    shape, numbers = resized(table.shape, axis, block), np.arange(block, dtype=np.int64)
    signal = Signal(value, -1, shape, axis, block, least=pattern.tail, positional=True)

    def run(first: Any) -> Sequence[Any]:
        number = apply("add", (constant(numbers), first), {})
        later = apply(
            "mod", (apply("sub", (number, constant(np.asarray(count))), {}), constant(np.asarray(period))), {}
        )
        later = apply("add", (later, constant(np.asarray(count))), {})
        early = apply("lt", (number, constant(np.asarray(count))), {})
        return (apply("gather", (constant(table), apply("where", (early, number, later), {})), {"axis": axis}),)

    return replace(signal, slot=plan.add(run, (plan.start(signal),))[0])
