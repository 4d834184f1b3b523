"""The GPU schedule as a whole: programs compute what they computed before."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.base import Context, Scheduled
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.gpu_pipeline import GPU_PIPELINE, SplitSums
from graphc.codegen.schedule.pipeline import schedule
from graphc.compiler.stages import Stages
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.verify import verify_program
from graphc.nn import functional as F

FUNCTIONS: list[tuple[str, Callable[..., Any], list[tuple[int, ...]]]] = [
    ("map", lambda x, y: (x * y).tanh(), [(5, 7), (5, 7)]),
    ("rows", lambda x: F.layer_norm(F.softmax(x, -1), (40,)), [(3, 40)]),
    ("columns", lambda x: x.sum(0), [(50, 6)]),
    ("all", lambda x: x.std(), [(9, 11)]),
    ("product", lambda x, y: F.relu(x @ y), [(20, 24), (24, 36)]),
    ("convolution", lambda x, w: F.conv2d(x, w, padding=1), [(2, 4, 8, 8), (8, 4, 3, 3)]),
    ("scatter", lambda x: gc.zeros(4, 3).index_add(0, gc.tensor([1, 0, 1, 3]), x), [(4, 3)]),
    ("scan", lambda x: x.cumsum(0), [(12, 3)]),
    ("sort", lambda x: x.sort(0)[0], [(10, 2)]),
]


@pytest.mark.parametrize("function,shapes", [f[1:] for f in FUNCTIONS], ids=[f[0] for f in FUNCTIONS])
def test_programs_compute_what_they_computed(function: Any, shapes: list[tuple[int, ...]]):
    arrays = [np.random.default_rng(i).standard_normal(s).astype(np.float32) for i, s in enumerate(shapes)]
    target = target_named("sm_90")
    stages = Stages(gc.trace(function, *map(gc.from_numpy, arrays)), target=target)
    lowered = stages.lowered
    found, runs = schedule(lowered, Context(Forms(target)), GPU_PIPELINE)
    assert all(k.threads for k in found.program.kernels)
    assert [run.name for run in runs] == [p.name for p in GPU_PIPELINE]
    for a, b in zip(run_program(lowered, arrays), run_program(found.program, arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_every_kernel_has_a_reason():
    stages = Stages(gc.trace(lambda x: F.softmax(x, -1), gc.ones(3, 4)), target=target_named("sm_90"))
    (run,) = [run for run in (stages.scheduled, stages.passes["scheduled"])[1] if run.name == "threads"]
    assert len(run.reasons) == len(stages.scheduled.kernels)


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
