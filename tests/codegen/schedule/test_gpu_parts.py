"""Two kernels for one: stretches of long sums, and what adds them."""

from __future__ import annotations

import numpy as np

import graphc as gc
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.base import Context, Scheduled
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.gpu_parts import SplitTerms, can_split, unused
from graphc.compiler.stages import Stages
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.verify import verify_program


def test_stretches_of_long_sums() -> None:
    shapes = (1100, 16), (1100, 17)
    program = Stages(traced=gc.trace(lambda x, w: gc.exp(x.T @ w * 0.01), *(gc.zeros(*s) for s in shapes))).lowered
    found = SplitTerms().run(Scheduled(program), Context(Forms(host_target())))
    after = found.scheduled.program
    verify_program(after)
    assert [(k.name, k.threads > 0) for k in after.kernels] == [("k0_parts", True), ("k0", False)]
    assert [s.cls for s in after.storages] == ["input", "input", "output", "temp"]
    assert found.changed and "segments" in found.reasons[0]
    random = np.random.default_rng(3)
    given = [random.normal(size=s).astype(np.float32) for s in shapes]
    (a,), (b,) = run_program(program, given), run_program(after, given)
    np.testing.assert_allclose(a, b, rtol=1e-5)


def test_short_sums_are_left() -> None:
    program = Stages(traced=gc.trace(lambda x, w: x @ w, gc.zeros(16, 20), gc.zeros(20, 17))).lowered
    found = SplitTerms().run(Scheduled(program), Context(Forms(host_target())))
    assert found.scheduled.program is program and not found.changed


def test_names() -> None:
    assert unused("sums", {"a"}) == "sums" and unused("sums", {"sums", "sums.0"}) == "sums.1"
    program = Stages(traced=gc.trace(lambda x: x * 2, gc.zeros(4))).lowered
    assert can_split(program, program.kernels[0], "_parts")
    assert not can_split(program, program.kernels[0], "")
