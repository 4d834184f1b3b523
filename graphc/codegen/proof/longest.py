"""Worst-case instruction count of a function: bounds of its loops, and the longest path through its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.records import dataclass
from graphc.codegen.machine.step import OPPOSITE, InstructionEffects
from graphc.codegen.proof.flow import Flow, NaturalLoop, loops_of
from graphc.codegen.proof.values import State, Values

_WORD = 1 << 64
_SIGN = 1 << 63


@dataclass(frozen=True)
class LoopBound:
    """Maximum number of iterations of a loop."""

    line: int
    """Line of the loop's first instruction in the text."""
    turns: int | None
    """None: unknown."""


@dataclass(frozen=True)
class Longest:
    """Maximum instructions of a function, including its callees."""

    instructions: int | None
    """None if a loop has no bound."""
    loops: tuple[LoopBound, ...]


def longest_path(values: Values, callees: Mapping[str, int | None]) -> Longest:
    """Return the longest path through a function. ``callees``: the maximum instructions of each called function; others
    count as their call alone."""
    flow = values.flow
    loops = loops_of(flow)
    if loops is None:
        return Longest(None, (LoopBound(flow.function.lines[0].number, None),))
    weights = [_weight(flow, block, callees) for block in range(len(flow.starts))]
    counts = [turns(values, loop) for loop in loops]
    bounds = tuple(
        LoopBound(flow.function.lines[flow.starts[loop.head]].number, n) for loop, n in zip(loops, counts, strict=True)
    )
    return Longest(_collapsed(flow, loops, counts, weights), tuple(sorted(bounds, key=lambda bound: bound.line)))


def _weight(flow: Flow, block: int, callees: Mapping[str, int | None]) -> int | None:
    total = 0
    for number in flow.span(block):
        step = flow.steps[number]
        inner = callees.get(step.target, 0) if step.kind in ("call", "tail") else 0
        if inner is None:
            return None
        total += step.instructions + inner
        total += flow.function.filling.get(number, 0) if number > flow.starts[block] else 0
    return total


# ---- paths


def _collapsed(
    flow: Flow, loops: Sequence[NaturalLoop], counts: Sequence[int | None], weights: list[int | None]
) -> int | None:
    """Return the weight of the longest path. Each loop, inner ones first, collapses into one node at its head."""
    node_of = list(range(len(flow.starts)))
    for loop, number in zip(loops, counts, strict=True):
        nodes = {node_of[block] for block in loop.blocks}
        lengths = _lengths(flow, loop.head, loop.blocks, node_of, weights)
        if lengths is None or number is None:
            weights[loop.head] = None
        else:
            leaving = [node_of[b] for b in loop.blocks if any(x not in loop.blocks for x in flow.after[b])]
            around = max(lengths.get(node_of[b], 0) for b in loop.latches)
            last = max((lengths.get(node, 0) for node in leaving), default=around)
            weights[loop.head] = (number - 1) * around + last
        node_of = [loop.head if node in nodes else node for node in node_of]
    everything = frozenset(range(len(flow.starts)))
    lengths = _lengths(flow, node_of[0], everything, node_of, weights)
    return None if lengths is None else max(lengths.values())


def _lengths(
    flow: Flow, head: int, blocks: frozenset[int], node_of: Sequence[int], weights: Sequence[int | None]
) -> dict[int, int] | None:
    """Return the longest acyclic path from a head to the end of each node of some blocks; None if a node's weight is
    unknown."""
    after: dict[int, dict[int, int]] = {node_of[b]: {} for b in blocks}
    for block in blocks:
        edges = after[node_of[block]]
        for other in {x for x in flow.after[block] if x in blocks and node_of[x] not in (node_of[block], head)}:
            edges[node_of[other]] = max(edges.get(node_of[other], 0), _filling(flow, block, other))
    order, visited, stack = [], set(), [(head, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
        elif node not in visited:
            visited.add(node)
            stack += [(node, True), *((other, False) for other in after[node])]
    lengths: dict[int, int] = {}
    before = dict.fromkeys(order, 0)
    for node in reversed(order):
        weight = weights[node]
        if weight is None:
            return None
        lengths[node] = before[node] + weight
        for other, filling in after[node].items():
            before[other] = max(before[other], lengths[node] + filling)
    return lengths


def _filling(flow: Flow, block: int, other: int) -> int:
    """Return the padding instructions between two blocks if one falls through to the other."""
    start = flow.starts[other]
    return flow.function.filling.get(start, 0) if other == block + 1 else 0


# ---- loops


def turns(values: Values, loop: NaturalLoop) -> int | None:
    """Return the maximum iterations of a loop: the least over all its exits."""
    flow = values.flow
    bounds = []
    for block in loop.blocks:
        leaves = [x not in loop.blocks for x in flow.after[block]]
        if any(leaves) and all(block in flow.dominators[latch] for latch in loop.latches):
            number = _turns_until(values, loop, block, stays_if=not leaves[0])
            bounds += [] if number is None else [number]
    return min(bounds, default=None)


def _turns_until(values: Values, loop: NaturalLoop, block: int, stays_if: bool) -> int | None:
    """Return the maximum runs of a block whose comparison ends a loop."""
    state = State(dict(values.entering[block].values))
    last: InstructionEffects | None = None
    compared: Any = None
    for number, step in values.walk(block, state):
        if number == values.flow.span(block)[-1]:
            last, compared = step, values.compared(step, state)
    if last is None or last.kind != "branch" or not last.condition or compared is None:
        return None
    condition = last.condition if stays_if else OPPOSITE[last.condition]
    left, right, bits = compared
    for a, b, holds in ((left, right, condition), (right, left, _SWAPPED[condition])):
        start = _start(values, loop, a)
        if start is not None:
            (base, first), step = start
            if base == b[0] and (bits or holds in ("eq", "ne")):
                return _count(first, step, b[1], holds, bits or 64, base is None)
    return None


_SWAPPED = {
    **{"ne": "ne", "eq": "eq", "lt": "gt", "gt": "lt", "le": "ge", "ge": "le"},
    **{"ult": "ugt", "ugt": "ult", "ule": "uge", "uge": "ule"},
}


def _start(values: Values, loop: NaturalLoop, value: Any) -> tuple[Any, int] | None:
    """Return the value before the first iteration and its increment per iteration; None without a constant
    increment."""
    base, number = value
    if not (isinstance(base, tuple) and base[:2] == ("join", loop.head)):
        return None
    key = base[2]
    before = {values.leaving[b].of(key) for b in values.flow.before[loop.head] if b in values.leaving}
    outside = {
        values.leaving[b].of(key) for b in values.flow.before[loop.head] if b not in loop.blocks and b in values.leaving
    }
    steps = {values.leaving[b].of(key) for b in loop.latches if b in values.leaving}
    if len(outside) != 1 or len(steps) != 1 or not before:
        return None
    (start,), (after,) = outside, steps
    if start is None or after is None or after[0] != base or not after[1]:
        return None
    return (start[0], start[1] + number), after[1]


def _count(first: int, step: int, end: int, holds: str, bits: int, exact: bool) -> int | None:
    """Return how often ``first``, ``first + step`` and so on are compared with ``end`` until the condition fails, that
    time included. ``exact``: these are the numbers themselves, not offsets from an unknown base."""
    if holds == "eq":
        return 1 if (first - end) % (1 << 32) else 2  # in registers of 32 bits and more
    if holds == "ne":
        distance = end - first
        if bits == 64 and distance % step and exact:
            return None
        return distance // step + 1 if distance % step == 0 and distance // step >= 0 else None
    if not exact:
        return None
    if holds.startswith("u"):
        first, end, holds = first % _WORD, end % _WORD, holds[1:]
    upwards = holds in ("lt", "le")
    if (step > 0) != upwards:
        return None
    distance = (end - first) * (1 if upwards else -1) + (holds in ("le", "ge"))
    number = max(0, -(-distance // abs(step)))
    last, most = first + number * step, _SIGN if bits == 64 else 1 << (bits - 1)
    return number + 1 if min(first, end, last) >= 0 and max(first, end, last) < most else None
