"""The memory plan: nothing alive at once shares a byte, all is aligned, the arena is as small as it can be."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.base.dtypes import float32, uint8
from graphc.codegen.machine.costs import MemoryCosts
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.memory import bufferize
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.memory.liveness import Interval, intervals, peak
from graphc.ir.kernel.statements import ALIGNMENT, Buffer, Call, Kernel, Program, Storage, aligned
from tests.native import lowered, scheduled
from tests.passes.graph_text import graph_of


def program(sizes: list[int], calls: list[tuple[int, ...]], scratch: int = 0) -> Program:
    """Calls that use temporaries of the given numbers of bytes."""
    storages = tuple(Storage(f"t{i}", uint8, (n,), "temp") for i, n in enumerate(sizes))
    kernels = {}
    found = []
    for call in calls:
        name = f"k{len(call)}"
        buffers = [Buffer(f"b{i}", uint8, 1, "inout") for i in range(len(call))]
        kernels[name] = Kernel(name, (*buffers, Buffer("s", float32, scratch, "scratch")), ())
        found.append(Call(name, tuple(f"t{i}" for i in call)))
    return Program("p", storages, tuple(kernels.values()), tuple(found))


@settings(deadline=None)
@given(st.data())
def test_what_is_alive_at_once_is_apart(data):
    sizes = data.draw(st.lists(st.integers(0, 300), min_size=1, max_size=12))
    number = st.integers(0, len(sizes) - 1)
    calls = data.draw(st.lists(st.lists(number, min_size=1, max_size=3, unique=True).map(tuple), max_size=12))
    plan = plan_memory(program(sizes, calls))
    live = intervals(plan)
    for i in live:
        assert i.storage.offset % ALIGNMENT == 0
        assert i.storage.offset >= 0 and i.storage.offset + i.storage.nbytes <= plan.arena
        for j in live:
            if i.storage.name < j.storage.name and i.overlaps(j):
                (a, b) = sorted((i.storage, j.storage), key=lambda s: s.offset)
                assert a.offset + a.nbytes <= b.offset or not a.nbytes or not b.nbytes
    assert plan.arena >= peak(live, {i.storage.name: i.storage.nbytes for i in live})


def test_a_chain_of_equal_temporaries_needs_two_places():
    plan = plan_memory(program([256] * 6, [(i, i + 1) for i in range(5)]))
    assert plan.arena == 512


def test_the_plan_reaches_the_lower_bound_where_greedy_order_does_not():
    plan = plan_memory(program([64, 640, 128, 640, 64], [(0, 1), (0, 2), (2, 3), (3, 4)]))
    sizes = {i.storage.name: aligned(i.storage.nbytes) for i in intervals(plan)}
    assert plan.arena == peak(intervals(plan), sizes)


def test_scratch_lies_behind_the_temporaries():
    plan = plan_memory(program([100], [(0,)], scratch=20))
    assert plan.scratch == aligned(80) and plan.arena == aligned(100) + plan.scratch


def test_alignment():
    assert [aligned(n) for n in (0, 1, 64, 65)] == [0, 64, 64, 128]


def test_a_program_without_temporaries_has_no_arena():
    graph = graph_of("graph @g(%x: f32[8]) -> (f32[8]) {\n  %e = exp(%x) : f32[8]\n  return %e\n}")
    assert scheduled(lowered(graph), target_named("avx512")).arena == 0


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 6), st.integers(0, 9)), max_size=40))
def test_few_temporaries_get_the_places_that_many_would(found):
    storages = [Storage(f"t{i}", float32, (16 * size,), "temporary") for i, (*_, size) in enumerate(found)]
    live = [Interval(s, first, first + more) for s, (first, more, _) in zip(storages, found, strict=True)]
    sizes = {s.name: s.nbytes for s in storages}
    assert bufferize._place_few(live, sizes) == bufferize._place_many(live, sizes)


def test_a_plan_is_the_same_every_time():
    calls = [tuple(np.random.default_rng(i).permutation(8)[:3].tolist()) for i in range(20)]
    sizes = [64 * (1 + i % 5) for i in range(8)]
    assert plan_memory(program(sizes, calls)) == plan_memory(program(sizes, calls))


def test_what_lies_highest_is_placed_first_the_next_time():
    """None of the orders reaches the bound here; one that was mended does."""
    sizes = [128, 64, 640, 320, 448, 448, 576, 384]
    made = program(sizes, [(0, 2), (1, 7), (2, 4), (3, 6), (4, 6), (5, 6), (6, 7)])
    assert plan_memory(made).arena == peak(intervals(made), {f"t{i}": n for i, n in enumerate(sizes)}) == 1728


def test_large_temporaries_are_followed_by_some_lines():
    made = program([4096, 4096], [(0, 1)])
    assert plan_memory(made).arena == 2 * 4096
    assert plan_memory(made, MemoryCosts(skewed_bytes=4096, skew_lines=3)).arena == 2 * (4096 + 3 * 64)
