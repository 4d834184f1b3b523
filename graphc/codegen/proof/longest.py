"""The most instructions that a function runs: how often its loops go round, and the longest way through its blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphc.codegen.machine.step import OPPOSITE, Step
from graphc.codegen.proof.flow import Flow, Loop, loops_of
from graphc.codegen.proof.values import State, Values

_WORD = 1 << 64
_SIGN = 1 << 63


@dataclass(frozen=True)
class LoopBound:
    """How often a loop goes round at most."""

    line: int
    """Of the first instruction of the loop in the text."""
    turns: int | None
    """None: not known."""


@dataclass(frozen=True)
class Longest:
    """The most instructions of a function, those of what it calls included."""

    instructions: int | None
    """None where a loop has no bound."""
    loops: tuple[LoopBound, ...]


def longest_path(values: Values, callees: Mapping[str, int | None]) -> Longest:
    """The longest way through a function. ``callees``: the most instructions of each function that it calls; what is
    not among them counts as its call alone."""
    flow = values.flow
    loops = loops_of(flow)
    if loops is None:
        return Longest(None, (LoopBound(flow.function.lines[0].number, None),))
    weights = [_weight(flow, block, callees) for block in range(len(flow.starts))]
    known = [turns(values, loop) for loop in loops]
    bounds = tuple(
        LoopBound(flow.function.lines[flow.starts[loop.head]].number, n) for loop, n in zip(loops, known, strict=True)
    )
    return Longest(_collapsed(flow, loops, known, weights), tuple(sorted(bounds, key=lambda bound: bound.line)))


def _weight(flow: Flow, block: int, callees: Mapping[str, int | None]) -> int | None:
    total = 0
    for number in flow.span(block):
        step = flow.steps[number]
        inner = callees.get(step.target, 0) if step.kind in ("call", "tail") else 0
        if inner is None:
            return None
        total += 1 + inner
        total += flow.function.filling.get(number, 0) if number > flow.starts[block] else 0
    return total


# ---- paths


def _collapsed(flow: Flow, loops: Sequence[Loop], known: Sequence[int | None], weights: list[int | None]) -> int | None:
    """The weight of the longest way, with each loop, inner ones first, taken as one block at its head."""
    stands = list(range(len(flow.starts)))
    for loop, number in zip(loops, known, strict=True):
        parts = {stands[block] for block in loop.blocks}
        lengths = _lengths(flow, loop.head, loop.blocks, stands, weights)
        if lengths is None or number is None:
            weights[loop.head] = None
        else:
            leaving = [stands[b] for b in loop.blocks if any(x not in loop.blocks for x in flow.after[b])]
            around = max(lengths.get(stands[b], 0) for b in loop.latches)
            last = max((lengths.get(part, 0) for part in leaving), default=around)
            weights[loop.head] = (number - 1) * around + last
        stands = [loop.head if part in parts else part for part in stands]
    everything = frozenset(range(len(flow.starts)))
    lengths = _lengths(flow, stands[0], everything, stands, weights)
    return None if lengths is None else max(lengths.values())


def _lengths(
    flow: Flow, head: int, blocks: frozenset[int], stands: Sequence[int], weights: Sequence[int | None]
) -> dict[int, int] | None:
    """The longest way from a head to the end of each part of some blocks, without going round; None where some part
    has no known weight."""
    after: dict[int, dict[int, int]] = {stands[b]: {} for b in blocks}
    for block in blocks:
        ways = after[stands[block]]
        for other in {x for x in flow.after[block] if x in blocks and stands[x] not in (stands[block], head)}:
            ways[stands[other]] = max(ways.get(stands[other], 0), _filling(flow, block, other))
    order, seen, stack = [], set(), [(head, False)]
    while stack:
        part, done = stack.pop()
        if done:
            order.append(part)
        elif part not in seen:
            seen.add(part)
            stack += [(part, True), *((other, False) for other in after[part])]
    lengths: dict[int, int] = {}
    before = dict.fromkeys(order, 0)
    for part in reversed(order):
        weight = weights[part]
        if weight is None:
            return None
        lengths[part] = before[part] + weight
        for other, filling in after[part].items():
            before[other] = max(before[other], lengths[part] + filling)
    return lengths


def _filling(flow: Flow, block: int, other: int) -> int:
    """Instructions that do nothing between two blocks of which one runs on into the other."""
    start = flow.starts[other]
    return flow.function.filling.get(start, 0) if other == block + 1 else 0


# ---- loops


def turns(values: Values, loop: Loop) -> int | None:
    """How often a loop goes round at most: the least number of all places at which it may end."""
    flow = values.flow
    found = []
    for block in loop.blocks:
        leaves = [x not in loop.blocks for x in flow.after[block]]
        if any(leaves) and all(block in flow.dominators[latch] for latch in loop.latches):
            number = _turns_until(values, loop, block, stays_if=not leaves[0])
            found += [] if number is None else [number]
    return min(found, default=None)


def _turns_until(values: Values, loop: Loop, block: int, stays_if: bool) -> int | None:
    """How often a block runs that ends a loop when its comparison says so."""
    state = State(dict(values.entering[block].known))
    last: Step | None = None
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


def _start(values: Values, loop: Loop, value: Any) -> tuple[Any, int] | None:
    """What a value is in the first turn, and what it grows by in each; None where that is not so."""
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
    """How often a comparison is made of ``first``, ``first + step`` and so on with ``end`` until it does not hold, that
    time included. ``exact``: these are the numbers themselves, not those behind a base that is not known."""
    if holds == "eq":
        return 2 if first == end else 1
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
