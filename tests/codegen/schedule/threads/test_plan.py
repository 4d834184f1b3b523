"""The thread plan: which kernels are shared, where barriers stand, and how many threads there should be."""

from __future__ import annotations

from dataclasses import replace

import pytest

from graphc.base.dtypes import float32
from graphc.base.sizes.named_dims import Dim
from graphc.codegen.llvm.entry import THREADS, emit_program
from graphc.codegen.machine.linkage import ENTRY
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.threads.execution import Execution
from graphc.codegen.schedule.threads.plan import ThreadPlan, plan_threads
from graphc.ir.kernel.index import Axis, as_index
from graphc.ir.kernel.repeat import owners
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Load, Loop, Program, Storage, Store
from tests.native import emitted, priced
from tests.runtime.threaded import SHARED

N = 1000


def kernel(name: str, kind: str) -> Kernel:
    """Copies b0 to b1."""
    i = Axis("i", N)
    body = (Load("v", "b0", as_index(i), float32), Store("b1", as_index(i), "v"))
    return Kernel(name, (Buffer("b0", float32, N, "in"), Buffer("b1", float32, N, "out")), (Loop(i, kind, body),))


def program(calls: str, **offsets: int) -> Program:
    """Calls such as ``p x t`` (parallel kernel copies x to t) or ``s x t`` (serial); ``places`` are temporaries."""
    call_list = [Call(k, (a, b)) for k, a, b in (c.split() for c in calls.split(","))]
    names = sorted({a for c in call_list for a in c.args} - set(offsets), key=lambda n: (n != "x", n))
    storages = [Storage(n, float32, (N,), "input" if n == "x" else "output") for n in names]
    storages += [Storage(n, float32, (N,), "temp", offset=at) for n, at in offsets.items()]
    kernels = (kernel("p", "parallel"), kernel("s", "serial"))
    return Program("f", tuple(storages), kernels, tuple(call_list), arena=1 << 16)


@pytest.mark.parametrize(
    ("calls", "offsets", "expected"),
    [
        ("p x a", {}, set()),
        ("p x a,p x b", {}, set()),
        ("p x a,p a b", {}, {1}),
        ("p x a,p x b,p a c,p b d", {}, {2}),
        ("p x a,p a b,p b c", {}, {1, 2}),
        ("p x a,p x a", {}, {1}),
        ("p x t,p t a", {"t": 0}, {1}),
        ("p x t,p x u,p t a", {"t": 0, "u": 4096}, {2}),
        ("p x t,p x u", {"t": 0, "u": 3968}, {1}),
        ("p x t,p t a,p x u", {"t": 0, "u": 3968}, {1, 2}),
        ("s x a,s a b,s b c,p x d", {}, set()),
        ("s x a,s a b,p b c", {}, {2}),
        ("p x a,s a b,s b c,p c d", {}, {1, 3}),
    ],
)
def test_a_barrier_stands_where_a_thread_needs_what_another_did(
    calls: str, offsets: dict[str, int], expected: set[int]
):
    scheduled = program(calls, **offsets)
    plan = plan_threads(scheduled, SHARED)
    assert set(plan.chunked) == {"p"}
    assert plan.barriers == expected
    text = emitted(scheduled, SHARED)
    assert text.count("call void @graphc_meet(") == len(expected)
    assert THREADS in text


def test_an_alias_is_the_memory_that_it_uses():
    scheduled = program("p x a,p y b")
    storages = tuple(
        Storage(s.name, s.dtype, s.shape, s.cls, alias="a" if s.name == "y" else "") for s in scheduled.storages
    )
    scheduled = Program("f", storages, scheduled.kernels, scheduled.calls, scheduled.arena)
    assert {n: s.name for n, s in owners(scheduled).items()} == {"a": "a", "b": "b", "x": "x", "y": "a"}
    assert plan_threads(scheduled, SHARED).barriers == {1}


def test_little_work_is_left_to_one_thread():
    scheduled = program("p x a")
    assert plan_threads(scheduled, host_target()) == ThreadPlan()
    assert THREADS not in emitted(scheduled, host_target())


def test_threads_are_as_many_as_the_work_feeds():
    target = priced(SHARED, threads={"team_ns": 1000, "part_ns": 500})
    several = plan_threads(program(",".join(["p x a"] * 20)), target)
    more = plan_threads(program(",".join(["p x a"] * 200)), target)
    assert 2 <= several.most < more.most <= 256


def test_work_that_cannot_be_shared_makes_no_plan():
    assert plan_threads(program("s x a,s a b"), SHARED) == ThreadPlan()


def test_a_target_without_a_pool_has_no_plan():
    target = replace(SHARED, triple="wasm32-unknown-unknown")
    assert plan_threads(program("p x a"), target) == ThreadPlan()


def test_the_plan_may_be_given():
    scheduled = program("p x a")
    assert f"define void @{ENTRY}" in emit_program(scheduled, SHARED, Execution())
    assert THREADS not in emit_program(scheduled, SHARED, Execution())


def repeated(calls: str, loops: dict[int, tuple[Axis, ...]], **offsets: int) -> Program:
    """``program`` with loops around some calls."""
    scheduled = program(calls, **offsets)
    around = tuple(replace(c, loops=loops.get(i, ())) for i, c in enumerate(scheduled.calls))
    return replace(scheduled, calls=around)


OUTER, INNER = Axis("r0", 3), Axis("r1", 2)


def test_a_loop_without_shared_kernels_is_run_by_one_thread():
    scheduled = repeated("p x t,s x a,s t b,s a c,p b d", {i: (OUTER,) for i in (1, 2, 3)}, t=0)
    assert plan_threads(scheduled, SHARED).barriers == {1, 4}
    text = emitted(scheduled, SHARED)
    assert text.count("call void @graphc_meet(") == 2
    assert text.index("call void @graphc_meet(") < text.index("A1:") < text.index("L1.0:") < text.index("E1.0:")


@pytest.mark.parametrize(
    ("calls", "loops", "expected"),
    [
        ("p x a,p x b", {0: (OUTER,), 1: (OUTER,)}, {0}),
        ("p x a,p a b", {0: (OUTER,), 1: (OUTER,)}, {0, 1}),
        ("s x a,p a b,s b c", {i: (OUTER,) for i in range(3)}, {1, 2}),
        ("p x a,s x b,s b c,p c d", {1: (OUTER,), 2: (OUTER, INNER), 3: (OUTER,)}, {2, 3}),
    ],
)
def test_a_barrier_stands_for_what_an_iteration_leaves(calls: str, loops: dict, expected: set[int]):
    scheduled = repeated(calls, loops)
    plan = plan_threads(scheduled, SHARED)
    assert plan.barriers == expected
    assert OUTER in plan.shared_loops(scheduled.calls)
    assert emitted(scheduled, SHARED).count("call void @graphc_meet(") == len(expected)


def test_barriers_of_a_loop_that_a_call_may_skip_do_not_count_behind_it():
    often, perhaps = Axis("r0", Dim("n", 1, 9)), Axis("r0", Dim("n", 1, 9) - 1)
    for loop, expected in ((often, {1}), (perhaps, {1, 2})):
        scheduled = repeated("p x a,p a b,p a c", {1: (loop,)})
        assert plan_threads(scheduled, SHARED).barriers == expected


TAKEN, OTHER, MORE = Axis("r2", 1, "f"), Axis("r3", 1, "g"), Axis("r4", 1 << 40, "f")


def flagged(calls: str, loops: dict[int, tuple[Axis, ...]], **offsets: int) -> Program:
    """``repeated`` with flags: those of ``TAKEN`` and ``OTHER`` are arrays that calls may write to."""
    scheduled = repeated(calls, loops, **offsets)
    storage_names = {s.name for s in scheduled.storages}
    flags = [Storage(n, float32, (N,), "temp", offset=1 << 15) for n in ("f", "g") if n not in storage_names]
    return replace(scheduled, storages=(*scheduled.storages, *flags))


@pytest.mark.parametrize(
    ("calls", "loops", "expected", "meets"),
    [
        # Threads meet before and behind both looks at a flag, and need no barrier more around the loop.
        ("p x a,p a b,p b c", {1: (TAKEN,)}, set(), 4),
        # They also meet where a loop without an end looks for Ctrl-C.
        ("p x a,p a b,p b c", {1: (MORE,)}, set(), 5),
        ("p x a,p a b,p b c,p c d", {1: (TAKEN,), 2: (OTHER,)}, set(), 8),
        ("p x a,p a b,p b c", {0: (TAKEN,), 1: (TAKEN,)}, {1}, 5),
        # What one iteration leaves for the next: the flag is looked at in between.
        ("p x a,p a b", {0: (MORE,), 1: (MORE,)}, {1}, 6),
        # A loop inside whose first call is the first one around it, too, begins again without a look at the flag.
        ("p x a,s a b", {0: (TAKEN, INNER), 1: (TAKEN, INNER)}, {0, 1}, 6),
        # A loop that the first thread runs alone, behind which the barrier before it counts: it stands before the flag.
        ("p x a,s a b,p b c", {1: (TAKEN,)}, {1, 2}, 2),
        # One inside of a loop of all threads is skipped with its barriers.
        ("p x a,s x d,s a b,p a c", {i: (OUTER, TAKEN) if i in (1, 2) else (OUTER,) for i in range(4)}, {0, 2, 3}, 7),
        # The flag that the first thread looks at is made by all of them.
        ("p x f,s x b", {1: (TAKEN,)}, {1}, 1),
    ],
)
def test_loops_with_flags(calls: str, loops: dict, expected: set[int], meets: int):
    scheduled = flagged(calls, loops)
    plan = plan_threads(scheduled, SHARED)
    assert plan.barriers == expected
    assert emitted(scheduled, SHARED).count("call void @graphc_meet(") == meets


def test_all_threads_look_at_a_flag_between_two_barriers():
    scheduled = flagged("p x a,p a b", {0: (MORE,), 1: (MORE,)})
    lines = [line.strip() for line in emitted(scheduled, SHARED).splitlines()]
    looks = [i for i, line in enumerate(lines) if line.startswith(("%f0.0 = load i8", "%g0.0 = load i8"))]
    assert len(looks) == 2
    for look in looks:
        assert "@graphc_meet" in lines[look - 1] and "@graphc_meet" in lines[look + 3]


def test_steps_that_a_flag_ends_are_few_in_an_estimate():
    scheduled = flagged("p x a", {0: (MORE,)})
    target = priced(SHARED, threads={"part_ns": 1 << 40})
    assert plan_threads(scheduled, target).most == 2


def test_small_kernels_of_loops_are_left_to_one_thread():
    repeated_ns = host_target().costs.threads.repeated_ns
    target = priced(SHARED, threads={"repeated_ns": repeated_ns})
    assert set(plan_threads(repeated("p x a", {}), target).chunked) == {"p"}
    assert plan_threads(repeated("p x a", {0: (OUTER,)}), target) == ThreadPlan()
