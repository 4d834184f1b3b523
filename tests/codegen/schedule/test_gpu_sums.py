"""The pass that cuts long sums with few results into stretches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.base import Context, Scheduled
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.gpu_sums import SplitSums
from graphc.compiler.stages import Stages
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.verify import verify_program

TARGET = target_named("sm_90")
CONTEXT = Context(Forms(TARGET))


@pytest.mark.parametrize(
    "function,shape,kernels",
    [
        (lambda x: x.sum(), (300, 200), 2),
        (lambda x: x.sum(0), (1000, 3), 3),
        (lambda x: x.sum(0), (1024, 4), 2),
        (lambda x: (x * x).mean((0, 2)), (40, 3, 500), 2),
        (lambda x: x.argmax(), (70001,), 5),
    ],
    ids=["all", "columns", "even", "channels", "argmax"],
)
def test_stretches_are_kernels_of_their_own(function: Callable[..., Any], shape: tuple[int, ...], kernels: int):
    program = Stages(traced=gc.trace(function, gc.zeros(*shape)), target=TARGET).lowered
    found = SplitSums().run(Scheduled(program), CONTEXT)
    after = found.scheduled.program
    verify_program(after)
    assert len(after.kernels) == kernels and found.changed and len(found.reasons) == 1
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32)
    for a, b in zip(run_program(program, [x]), run_program(after, [x]), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4)


def test_tiles_and_short_sums_are_left():
    for function, shapes in ((lambda x: x.sum(), [(90, 90)]), (lambda x, y: x @ y, [(64, 4096), (4096, 64)])):
        program = Stages(traced=gc.trace(function, *(gc.zeros(*s) for s in shapes)), target=TARGET).lowered
        found = SplitSums().run(Scheduled(program), CONTEXT)
        assert found.scheduled.program is program and not found.reasons


def test_sums_without_results_are_left():
    program = Stages(traced=gc.trace(lambda x: x.sum(1), gc.zeros(0, 5000)), target=TARGET).lowered
    assert SplitSums().run(Scheduled(program), CONTEXT).scheduled.program is program
    assert gc.compile(lambda x: x.sum(1), device="cuda-emu")(gc.zeros(0, 5000)).shape == (0,)
