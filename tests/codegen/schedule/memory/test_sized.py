"""The memory plan for sizes known at run time: nothing alive at once shares a byte, whatever the sizes of a call."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from graphc.base.sizes.named_dims import Dim
from graphc.codegen.machine.costs import MemoryCosts
from graphc.codegen.schedule.memory.bufferize import plan_memory
from graphc.codegen.schedule.memory.liveness import intervals
from graphc.codegen.schedule.memory.sized import bound_of
from graphc.ir.kernel.dims import bind, dims_of_program
from graphc.ir.kernel.statements import ALIGNMENT, Program, aligned
from tests.codegen.schedule.memory.test_bufferize import program

BATCH, TIME = Dim("batch", 0, 64, hint=8), Dim("time", 1, 512, hint=128)
SIZES = (4 * BATCH, 64 * BATCH * TIME, 100 * TIME, 16 * TIME * TIME, 256 * BATCH * TIME, 1000, 48 * BATCH * TIME * TIME)


def sized(plan: Program, batch: int, time: int) -> Program:
    known = dims_of_program(plan)
    return bind(plan, {name: size for name, size in {"batch": batch, "time": time}.items() if name in known})


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_what_is_alive_at_once_is_apart_whatever_the_sizes(data):
    sizes = data.draw(st.lists(st.sampled_from(SIZES), min_size=1, max_size=8))
    number = st.integers(0, len(sizes) - 1)
    calls = data.draw(st.lists(st.lists(number, min_size=1, max_size=3, unique=True).map(tuple), max_size=8))
    plan = plan_memory(program(sizes, calls, scratch=TIME))
    for batch, time in itertools.product((0, 1, 3, 64), (1, 2, 129, 512)):
        fixed = sized(plan, batch, time)
        live = intervals(fixed)
        assert fixed.arena % ALIGNMENT == 0 and fixed.scratch >= (aligned(4 * time) if calls else 0)
        for i in live:
            assert i.storage.offset % ALIGNMENT == 0
            assert i.storage.offset >= 0 and i.storage.offset + i.storage.nbytes <= fixed.arena - fixed.scratch
            for j in live:
                if i.storage.name < j.storage.name and i.overlaps(j):
                    a, b = sorted((i.storage, j.storage), key=lambda s: s.offset)
                    assert a.offset + a.nbytes <= b.offset or not a.nbytes or not b.nbytes


def test_temporaries_of_run_time_sizes_share_places():
    costs = MemoryCosts(skewed_bytes=1 << 30)
    plan = plan_memory(program([64 * BATCH * TIME] * 6, [(i, i + 1) for i in range(5)]), costs)
    assert plan.arena == 128 * BATCH * TIME
    plan = plan_memory(program([128 * TIME, 64 * TIME, 64 * TIME, 128 * TIME], [(0, 1), (1, 2), (1, 2, 3)]), costs)
    assert plan.arena == 256 * TIME


def test_the_bound_of_sizes_is_no_less_than_any():
    assert bound_of([]) == 0 and bound_of([3, 8, 5]) == 8
    assert bound_of([TIME + 8, 2 * TIME]) == 2 * TIME + 8
    assert bound_of([BATCH * TIME - TIME, 5 * TIME]) == BATCH * TIME + 5 * TIME


def test_where_no_size_is_the_larger_one_the_arena_holds_both():
    costs = MemoryCosts(skewed_bytes=1 << 30)
    plan = plan_memory(program([64 * TIME, 64 * BATCH * TIME, 64 * TIME * TIME], [(0, 1), (0, 2)]), costs)
    offsets = {s.name: s.offset for s in plan.storages}
    assert offsets["t1"] == offsets["t2"] and plan.arena == 64 * (TIME + BATCH * TIME + TIME * TIME)
