"""Numbers that depend on positions only: patterns of reads, and masks of attentions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.base.sizes.size import Dimension
from graphc.ir.graph.graph import Value
from graphc.ir.graph.interpret import bound_attrs
from graphc.streams.plan import Plan
from graphc.streams.signal import Signal

_LONGEST_PERIOD = 64


@dataclass(frozen=True)
class Pattern:
    """Positions (rows of integers) that repeat: ``rows(t + period) == rows(t) + shift``."""

    period: int
    shift: int
    first: np.ndarray
    """Rows of the first period."""

    def at(self, t: int) -> np.ndarray:
        """Return the row of any number, also a negative one."""
        turns, rest = divmod(t, self.period)
        return self.first[rest] + turns * self.shift

    @property
    def last(self) -> np.ndarray:
        """Largest position in each row of the first period."""
        return self.first.reshape(self.period, -1).max(axis=1)


def numbers(value: Value, sizes: Mapping[Dimension, int]) -> np.ndarray:
    """Return the elements of a value that depends on positions only, for a length of the sequence."""
    known: dict[Value, np.ndarray] = {}
    stack = [value]
    while stack:
        node = stack[-1].node
        waiting = [v for v in node.operands if v not in known]
        if waiting:
            stack += waiting
            continue
        stack.pop()
        known.update(
            zip(
                node.results, node.op.evaluate([known[v] for v in node.operands], bound_attrs(node, sizes)), strict=True
            )
        )
    return known[value]


def pattern_of(plan: Plan, indices: Signal) -> Pattern | None:
    """Return the pattern in which integers along time repeat, apart from the end of the sequence; None if there is
    none."""
    assert indices.axis is not None
    rows = np.moveaxis(numbers(indices.value, plan.sizes), indices.axis, 0).astype(np.int64)
    half = len(rows) // 2
    for period in range(1, min(_LONGEST_PERIOD, half // 2) + 1):
        steps = rows[period:half] - rows[: half - period]
        if steps.size and (steps == steps.flat[0]).all() and steps.flat[0] > 0:
            return Pattern(period, int(steps.flat[0]), rows[:period])
    return None


def same_for_all_lengths(plan: Plan, value: Value, axis: int) -> bool:
    """Check whether the first elements along an axis are the same for sequences of another length."""
    longer: dict[Dimension, Any] = {d: 2 * n for d, n in plan.sizes.items()}
    a, b = (np.moveaxis(numbers(value, sizes), axis, 0) for sizes in (plan.sizes, longer))
    return np.array_equal(a[: len(a) // 2], b[: len(a) // 2])
