"""The steps on a nest: records that say what they do, each leaving a valid kernel with the same results."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, is_dataclass, replace

import numpy as np
import pytest

from graphc.codegen.machine.target import target_named
from graphc.codegen.schedule.base import Context, Nest
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.steps import STEPS, run_steps
from graphc.errors import PassError
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Kernel
from graphc.ir.kernel.verify import verify_kernel
from tests.native import lowered
from tests.passes.graph_text import graph_of

MAP = """
    graph @map(%x: f32[6,40], %b: f32[6,1]) -> (f32[40,6]) {
      %f = broadcast_to(%b) {shape=[6,40]} : f32[6,40]
      %y = mul(%x, %f) : f32[6,40]
      %e = exp(%y) : f32[6,40]
      %z = transpose(%e) {permutation=[1,0]} : f32[40,6]
      return %z
    }"""
PAD = """
    graph @pad(%x: f32[3,20]) -> (f32[3,36]) {
      %y = pad(%x) {high=[0,7], interior=[0,0], low=[0,9]} : f32[3,36]
      return %y
    }"""
PRODUCT = """
    graph @product(%x: f32[40,24], %w: f32[40,24]) -> (f32[40,40]) {
      %y = matmul(%x, %w) {transpose_a=false, transpose_b=true} : f32[40,40]
      return %y
    }"""


def kernel_of_graph(text: str) -> Kernel:
    (kernel,) = lowered(graph_of(text)).kernels
    return kernel


def context(target: str = "avx512") -> Context:
    return Context(Forms(target_named(target)))


def results(kernel: Kernel, seed: int = 0) -> list[np.ndarray]:
    """Return the results of a kernel, from the same random numbers for the same seed."""
    random = np.random.default_rng(seed)
    arrays = {b.name: random.standard_normal(b.size).astype(np.float32) for b in kernel.arguments}
    run_kernel(kernel, arrays)
    return [arrays[b.name] for b in kernel.arguments if b.role != "in"]


def test_steps_say_what_they_need_do_and_leave():
    assert len({s.name for s in STEPS}) == len(STEPS)
    for step in STEPS:
        doc = type(step).__doc__ or ""
        assert all(word in doc for word in ("Needs:", "Does:", "Leaves:", "->")), step.name
        assert is_dataclass(step) and type(step)() == step
        with pytest.raises(FrozenInstanceError):
            step.name = "other"  # type: ignore[misc]


@pytest.mark.parametrize("target", ["avx512", "sse2", "neon"])
@pytest.mark.parametrize("text", [MAP, PAD], ids=["map", "pad"])
def test_every_step_leaves_a_valid_kernel_with_the_same_results(target: str, text: str):
    given = kernel_of_graph(text)
    expected = results(given)
    nest = Nest(given, Names())
    for step in STEPS:
        nest = step.run(nest, context(target)).nest
        verify_kernel(nest.kernel)
        for got, wanted in zip(results(nest.kernel), expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=2e-6, err_msg=step.name)


def test_a_product_becomes_a_register_block_with_a_reason():
    nest, runs = run_steps(Nest(kernel_of_graph(PRODUCT), Names()), context())
    assert nest.tile is not None
    done = {run.name: run for run in runs}
    assert f"register block {nest.tile.label}" in done["contraction"].reasons[0]
    assert not any(done[name].changed for name in ("index-set-splitting", "hoisting", "narrow-loads", "lanes"))


def test_what_is_no_product_gets_lanes():
    nest, runs = run_steps(Nest(kernel_of_graph(PAD), Names()), context())
    done = {run.name: run.changed for run in runs}
    assert nest.tile is None and done["contraction"] == 0 and done["lanes"] == 1


def test_steps_are_printed_after(monkeypatch, capsys):
    monkeypatch.setenv("GRAPHC_PRINT_AFTER", "hoisting,lanes")
    run_steps(Nest(kernel_of_graph(PAD), Names()), context())
    printed = capsys.readouterr().err
    assert "// after pass 4, hoisting\nkernel @" in printed and "// after pass 6, lanes\nkernel @" in printed


def test_a_wrong_step_is_named(monkeypatch):
    class Forgets:
        """Loses the first buffer of a kernel."""

        name = "forgets"

        def run(self, nest, context):
            left = replace(nest.kernel, buffers=nest.kernel.buffers[1:])
            return type(STEPS[0].run(nest, context))(replace(nest, kernel=left), 1)

    monkeypatch.setenv("GRAPHC_VERIFY", "pass")
    with pytest.raises(PassError, match=r"pass forgets failed \(passes before it: canonical-form\)"):
        run_steps(Nest(kernel_of_graph(PAD), Names()), context(), (STEPS[0], Forgets()))
