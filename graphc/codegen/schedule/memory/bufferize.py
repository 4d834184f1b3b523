"""Memory plan: an offset in one arena for every temporary of a program."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.sizes.size import hint, is_size
from graphc.codegen.machine.costs import DEFAULT, MemoryCosts
from graphc.codegen.schedule.memory.liveness import Interval, intervals, peak
from graphc.codegen.schedule.memory.sized import Placement, bound_of
from graphc.ir.kernel.statements import ALIGNMENT, Call, Program, aligned


def reserved(nbytes: int, costs: MemoryCosts) -> int:
    """Return the bytes to reserve for a temporary.

    Large ones get a few cache lines more, so that neighbours do not start at the same offset in a page, where loads and
    stores of both would alias.
    """
    return aligned(nbytes) + (costs.skew_lines * ALIGNMENT if hint(nbytes) >= costs.skewed_bytes else 0)


_ORDERS: tuple[Callable[[Interval, int], tuple], ...] = (
    lambda i, size: (-size, i.first),
    lambda i, size: (-size * (i.last - i.first + 1), i.first),
    lambda i, size: (-(i.last - i.first), -size, i.first),
    lambda i, size: (i.first, -size),
)
_FEW = 512
"""Number of temporaries up to which a Python loop places one faster than numpy."""


def plan_memory(program: Program, costs: MemoryCosts = DEFAULT.memory) -> Program:
    """Place all temporaries in an arena.

    Needs: a lowered, scheduled program. Does: places temporaries by best fit in several orders and keeps the smallest
    arena. Unless this is near the lower bound, it tries again with the highest temporary placed first. Of sizes
    known only at run time, expected values decide the order, and only proven facts decide overlaps. Leaves: offsets in
    the storages, the arena's size, kernel scratch at its end.
    """
    live = intervals(program)
    sizes = {i.storage.name: reserved(i.storage.nbytes, costs) for i in live}
    expected = {name: hint(size) for name, size in sizes.items()}
    sized = Placement(sizes, costs.arena_proofs) if any(map(is_size, sizes.values())) else None
    bound = peak(live, expected)
    best: dict[str, Any] = {}
    best_size, arena = -1, 0
    orders = [sorted(live, key=lambda i: (*f(i, expected[i.storage.name]), i.storage.name)) for f in _ORDERS]
    placed = costs.arena_placed if sized is None else costs.arena_proven
    again = min(costs.arena_orders, placed // (len(live) + 1))
    for ordered in (*orders, *(o for o in orders for _ in range(again))):
        offsets, size = _place(ordered, expected) if sized is None else sized.place(ordered)
        if best_size < 0 or size < best_size:
            best_size = size
            best, arena = (offsets, size) if sized is None else sized.exact()
        if best_size <= bound * costs.arena_near:
            break
        highest = max(ordered, key=lambda i: offsets[i.storage.name] + expected[i.storage.name])
        ordered.remove(highest)
        ordered.insert(0, highest)
    storages = tuple(replace(s, offset=best[s.name]) if s.name in best else s for s in program.storages)
    scratch = bound_of(list(dict.fromkeys(_scratch_bytes(program, call) for call in program.calls)))
    return replace(program, storages=storages, arena=arena + scratch, scratch=scratch)


def _scratch_bytes(program: Program, call: Call) -> Any:
    buffers = program.kernel(call.kernel).buffers
    return sum(aligned(call.size(b.size) * b.dtype.itemsize) for b in buffers if b.role == "scratch")


def _place(ordered: list[Interval], sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    """Place temporaries by best fit: in the smallest gap between simultaneously live ones."""
    return (_place_few if len(ordered) <= _FEW else _place_many)(ordered, sizes)


def _place_few(ordered: list[Interval], sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    offsets: dict[str, int] = {}
    placed: list[tuple[int, int, int, int, int]] = []
    """(begin, number, end, first, last) of each, sorted."""
    top = 0
    for number, (storage, first, last) in enumerate((i.storage, i.first, i.last) for i in ordered):
        size = sizes[storage.name]
        free, best, least = 0, -1, -1
        for begin, _, end, since, until in placed:
            if since <= last and until >= first:
                if size <= begin - free and (best < 0 or begin - free < least):
                    best, least = free, begin - free
                free = max(free, end)
        offset = offsets[storage.name] = free if best < 0 else best
        insort(placed, (offset, number, offset + size, first, last))
        top = max(top, offset + size)
    return offsets, top


def _place_many(ordered: list[Interval], sizes: dict[str, int]) -> tuple[dict[str, int], int]:
    offsets = np.zeros(len(ordered), np.int64)
    ends = np.zeros(len(ordered), np.int64)
    first, last = (np.array([getattr(i, name) for i in ordered], np.int64) for name in ("first", "last"))
    for number, interval in enumerate(ordered):
        size = sizes[interval.storage.name]
        alive = np.flatnonzero((first[:number] <= interval.last) & (last[:number] >= interval.first))
        offsets[number] = _best_gap(offsets[alive], ends[alive], size)
        ends[number] = offsets[number] + size
    by_name = {i.storage.name: offset for i, offset in zip(ordered, offsets.tolist(), strict=True)}
    return by_name, int(ends.max(initial=0))


def _best_gap(starts: np.ndarray, ends: np.ndarray, size: int) -> int:
    """Return the start of the smallest gap of at least ``size`` bytes between pieces of memory."""
    order = np.argsort(starts, kind="stable")
    free = np.concatenate(([0], np.maximum.accumulate(ends[order])))
    gaps = starts[order] - free[:-1]
    fitting = np.flatnonzero(gaps >= size)
    return int(free[fitting[np.argmin(gaps[fitting])]] if fitting.size else free[-1])
