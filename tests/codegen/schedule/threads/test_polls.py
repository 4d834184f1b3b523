"""Positions where long programs poll and can end."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import graphc as gc
from graphc import nn
from graphc.codegen.llvm.entry import ARMED, CUT, INTERRUPT, LOOK
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.threads.plan import ThreadPlan, plan_threads
from graphc.codegen.schedule.threads.polls import find_polls
from graphc.compiler.compile import compile_graph, load_compiled
from graphc.compiler.stages import Stages
from graphc.files.manifest import INTERRUPTIBLE_NS
from graphc.ir.kernel.repeat import owners
from graphc.ir.kernel.statements import Program
from graphc.runtime import interrupts
from tests.native import emitted


def step_program(width: int) -> Program:
    """A training step's program."""
    model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(width, width), nn.Tanh())])
    step = gc.compile_step(model, nn.functional.mse_loss, gc.optim.SGD(model.parameters(), lr=0.1))
    step(gc.rand(width, width), gc.rand(width, width))
    return Stages(step.graphs[0]).scheduled


@pytest.fixture(scope="module")
def long_step() -> Program:
    return step_program(384)


def first_write(program: Program) -> int:
    kernels, owner = {k.name: k for k in program.kernels}, owners(program)
    return next(
        number
        for number, call in enumerate(program.calls)
        for buffer, name in zip(kernels[call.kernel].arguments, call.args, strict=True)
        if buffer.role != "in" and owner[name].cls in ("param", "state")
    )


def test_short_programs_poll_nothing():
    program = step_program(8)
    assert not find_polls(program, ThreadPlan(), host_target())
    assert f"@{INTERRUPT}" not in emitted(program, host_target())


def test_polls_come_before_the_first_write_to_parameters(long_step: Program):
    polls = find_polls(long_step, ThreadPlan(), host_target())
    assert polls and max(polls) <= first_write(long_step)


def test_threads_poll_at_barriers(long_step: Program):
    threads = plan_threads(long_step, host_target())
    polls = find_polls(long_step, threads, host_target())
    assert threads.chunked and polls and polls <= threads.barriers


def test_nothing_polls_after_a_write_at_the_start(long_step: Program):
    number = first_write(long_step)
    calls = (long_step.calls[number], *long_step.calls[:number], *long_step.calls[number + 1 :])
    assert not find_polls(replace(long_step, calls=calls), ThreadPlan(), host_target())


@pytest.mark.parametrize("threads", [1, 2])
def test_a_program_ends_at_the_poll_and_leaves_parameters(threads: int):
    before_threads = gc.get_num_threads()
    gc.set_num_threads(threads)
    try:
        model = nn.Sequential(*[layer for _ in range(6) for layer in (nn.Linear(384, 384), nn.Tanh())])
        step = gc.compile_step(model, nn.functional.mse_loss, gc.optim.SGD(model.parameters(), lr=0.1))
        x = gc.rand(384, 384)
        step(x, x)
        program = load_compiled(compile_graph(step.graphs[0]))
        assert program.manifest.nanoseconds >= INTERRUPTIBLE_NS and program.interruptible
        bound = tuple(np.full(spec.shape, 0.01, np.float32) for spec in program.bound)
        inputs = [np.ones(spec.shape, np.float32) for spec in program.inputs]
        frame = program.frame(bound)
        sizes = program.sizes.fixed
        kept = [program._take_inputs(frame, sizes, inputs), program._allocate(frame, sizes)]
        if frame.arena is None:
            memory = np.empty(program.manifest.arena + 64, np.uint8)
            frame.pointers[program.arena_slot] = -(-memory.ctypes.data // 64) * 64
        for word, signals, cut in ((ARMED, 2, True), (ARMED, 2 << 8 | 10, True), (0, 2, False), (ARMED, 10, False)):
            interrupts._signals.word.value = signals
            frame.last.value = word
            before = [b.copy() for b in bound]
            program._entry(frame.address)
            assert (frame.last.value >= CUT) is cut
            assert all(np.array_equal(a, b) for a, b in zip(before, bound, strict=True)) is cut
        del kept
    finally:
        interrupts._signals.word.value = 0
        gc.set_num_threads(before_threads)


def test_threads_poll_in_each_step_of_a_loop_that_a_flag_ends():
    w = gc.rand(256, 256)
    with gc.no_grad():
        loop = lambda x: gc.while_loop(lambda s: s.sum() < 9, lambda s: (s @ w).tanh(), x)  # noqa: E731
        program = Stages(gc.trace(loop, gc.rand(256, 256))).scheduled
    threads = plan_threads(program, host_target())
    (loop,) = threads.shared_loops(program.calls)
    first = next(i for i, call in enumerate(program.calls) if loop in call.loops)
    assert first in find_polls(program, threads, host_target())
    text = emitted(program, host_target())
    look = text.index(f"call void @{LOOK}(ptr %v{first}, i64 {first + CUT})")
    assert text.index(f"L{first}.0:") < look < text.index("call void @graphc_meet(", look) < text.index(f"U{first}:")
