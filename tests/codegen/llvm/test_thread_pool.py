"""The pool itself: every chunk runs once in a thread of its own, barriers hold, a taken pool means running alone."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from graphc.codegen.llvm.build import build_object
from graphc.codegen.llvm.thread_pool import RESET, RUN, SIZE, emit_pool
from graphc.codegen.machine.target import Target, host_target, target_named
from graphc.errors import CompileError
from graphc.runtime.loader import host, link_forever

Work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p)
Run = ctypes.CFUNCTYPE(
    ctypes.c_int64, Work, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, use_errno=True
)
Barrier = ctypes.CFUNCTYPE(None)


class Pool:
    """A pool of its own, whose work is Python."""

    def __init__(self) -> None:
        addresses = link_forever(build_object(emit_pool(host_target()), host_target()), (RUN, RESET, SIZE), host())
        self.native = Run(addresses[RUN])
        self.size = ctypes.CFUNCTYPE(ctypes.c_int64)(addresses[SIZE])

    def run(
        self,
        chunks: int,
        work: Callable[[int, int, Callable[[], None] | None, int], None],
        bytes_: int = 0,
        spin: int = 0,
    ) -> int:
        """Runs ``work(chunk, chunks, barrier, scratch address)`` in chunks. Threads that do not spin lose no core, so
        they share the work on a busy machine too."""
        errors: list[BaseException] = []

        def call(table: int, chunk: int, count: int, barrier: int | None, scratch: int | None) -> None:
            assert table == 77
            try:
                work(chunk, count, Barrier(barrier) if barrier else None, scratch or 0)
            except BaseException as error:
                errors.append(error)

        used = self.native(Work(call), 77, chunks, spin, bytes_)
        assert not errors, errors
        return used


@pytest.fixture(scope="module")
def pool() -> Pool:
    return Pool()


@pytest.mark.parametrize("chunks", [1, 2, 3, 8, 2, 5])
def test_every_chunk_runs_once_in_its_own_thread(pool: Pool, chunks: int):
    seen: list[tuple[int, int, int]] = []
    barrier_given = set()

    def work(chunk: int, count: int, barrier, scratch: int) -> None:
        barrier_given.add(barrier is not None)
        if barrier:
            barrier()
        seen.append((chunk, count, threading.get_native_id()))

    assert pool.run(chunks, work) == chunks
    assert sorted(chunk for chunk, _, _ in seen) == list(range(chunks))
    assert {count for _, count, _ in seen} == {chunks}
    assert len({thread for _, _, thread in seen}) == chunks
    assert next(thread for chunk, _, thread in seen if chunk == 0) == threading.get_native_id()
    assert barrier_given == {chunks > 1}


def test_workers_are_kept(pool: Pool):
    def none(*_) -> None:
        pass

    pool.run(4, none)
    before = pool.size()
    for _ in range(20):
        pool.run(4, none)
        pool.run(2, none)
    assert pool.size() == before >= 3


@pytest.mark.parametrize("chunks", [2, 3, 6])
def test_nobody_passes_a_barrier_before_all_are_there(pool: Pool, chunks: int):
    phases = 40
    arrived: Counter[int] = Counter()
    lock = threading.Lock()

    def work(chunk: int, count: int, barrier, scratch: int) -> None:
        for phase in range(phases):
            with lock:
                arrived[phase] += 1
            barrier()
            assert arrived[phase] == chunks

    assert pool.run(chunks, work) == chunks
    assert arrived == dict.fromkeys(range(phases), chunks)


def test_a_late_part_is_waited_for(pool: Pool):
    """Longer than the time for which threads spin: the caller and the others sleep and are woken."""
    done: list[int] = []

    def work(chunk: int, count: int, barrier, scratch: int) -> None:
        if chunk == 2:
            time.sleep(0.05)
        barrier()
        if chunk == 1:
            time.sleep(0.05)
        done.append(chunk)

    assert pool.run(3, work) == 3
    assert sorted(done) == [0, 1, 2]


def test_sleeping_workers_are_woken(pool: Pool):
    for _ in range(5):
        counted: list[int] = []
        time.sleep(0.01)
        assert pool.run(3, lambda chunk, *_, counted=counted: counted.append(chunk)) == 3
        assert sorted(counted) == [0, 1, 2]


def test_calls_run_alone_while_others_take_the_cores_of_waiting_threads():
    """Two threads and a busy process share one core, so each barrier gives the core to the other process."""
    cores = os.sched_getaffinity(0)
    pool, start = Pool(), time.monotonic()

    def used() -> int:
        def work(chunk: int, count: int, barrier, scratch: int) -> None:
            for _ in range(10):
                if barrier:
                    barrier()

        return pool.run(2, work, spin=20_000_000)

    os.sched_setaffinity(0, {min(cores)})
    try:
        with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
            try:
                while used() > 1:
                    assert time.monotonic() - start < 30, "the pool goes on to use threads"
            finally:
                other.kill()
        while used() == 1:  # a later call tries threads again
            assert time.monotonic() - start < 60, "the pool never uses threads again"
    finally:
        os.sched_setaffinity(0, cores)


def test_a_call_inside_a_call_runs_alone(pool: Pool):
    inner: list[tuple[int, int]] = []

    def work(chunk: int, count: int, barrier, scratch: int) -> None:
        assert pool.run(4, lambda p, n, *_: inner.append((p, n))) == 1

    assert pool.run(3, work) == 3
    assert inner == [(0, 1)] * 3


def test_callers_at_the_same_time_run_alone_or_together(pool: Pool):
    """Two callers are inside at once: exactly one of them has the pool."""
    meet = threading.Barrier(2, timeout=30)
    used: list[int] = []

    def work(chunk: int, count: int, barrier, scratch: int) -> None:
        if chunk == 0:
            meet.wait()
            meet.wait()

    callers = [threading.Thread(target=lambda: used.append(pool.run(2, work))) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert sorted(used) == [1, 2]
    assert pool.run(2, lambda *_: None) == 2


def test_each_part_has_scratch_memory_of_its_own(pool: Pool):
    for size in (64, 4096, 1 << 20, 128):
        places: dict[int, int] = {}

        def work(chunk: int, count: int, barrier, scratch: int, places=places, size=size) -> None:
            places[chunk] = scratch
            if scratch:
                ctypes.memset(scratch, chunk, size)
                barrier()
                assert ctypes.string_at(scratch, size) == bytes([chunk]) * size
            else:
                barrier()

        assert pool.run(4, work, size) == 4
        assert places[0] == 0
        result = sorted(places[p] for p in (1, 2, 3))
        assert all(b - a >= size for a, b in pairwise(result))
        assert all(place % 64 == 0 for place in result)


def test_without_memory_the_caller_runs_alone(pool: Pool):
    seen: list[tuple[int, int, int]] = []
    huge = 1 << 60
    assert pool.run(3, lambda chunk, count, barrier, scratch: seen.append((chunk, count, scratch)), huge) == 1
    assert seen == [(0, 1, 0)]
    assert pool.run(3, lambda *_: None, 64) == 3


def test_the_text_is_the_same_each_time_and_names_what_it_exports():
    text = emit_pool(host_target())
    assert text == emit_pool(host_target())
    assert re.findall(r"^define \w+ @(\w+)", text, re.M) == [RUN, RESET, SIZE]


def test_targets():
    assert host_target().has_pool and target_named("neon").has_pool
    assert "aarch64.hint" in emit_pool(target_named("neon"))
    assert build_object(emit_pool(target_named("neon")), target_named("neon"))[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    "target",
    [
        replace(host_target(), triple="x86_64-apple-darwin"),
        Target(triple="riscv64-unknown-linux-gnu"),
    ],
    ids=["a system without futexes", "a family of which is not known how it waits"],
)
def test_a_target_without_a_pool(target: Target):
    assert not target.has_pool
    with pytest.raises(CompileError, match=f"no thread pool for {target.triple}"):
        emit_pool(target)


def test_a_pool_of_a_library_has_names_of_its_own():
    text = emit_pool(host_target(), "net__")
    assert f"define hidden i64 @net__{RUN}(" in text and f"define hidden void @net__{RESET}(" in text
    assert f"@{RUN}" not in text and f"@{SIZE}" not in text
