"""Large products of matrices are a library's, and what it does not do with them is a kernel behind them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

import graphc as gc
import graphc.nn.functional as F
from graphc.codegen.machine.cuda.costs import GPU
from graphc.codegen.machine.target import host_target
from graphc.codegen.schedule.base import Context, PassResult, Scheduled
from graphc.codegen.schedule.forms import Forms
from graphc.codegen.schedule.gpu_products import LibraryProducts
from graphc.compiler.stages import Stages
from graphc.ir.kernel.interpret import run_program
from graphc.ir.kernel.statements import Program
from graphc.ir.kernel.verify import verify_program

SMALL = replace(GPU, product_work=100, product_side=2, product_split=4)


def result(function: Callable, *shapes: tuple[int, ...], costs=SMALL, features: str = "") -> tuple[Program, PassResult]:
    program = Stages(traced=gc.trace(function, *(gc.zeros(*s) for s in shapes))).lowered
    target = replace(host_target(), features=features)
    found = LibraryProducts(costs=costs).run(Scheduled(program), Context(Forms(target)))
    verify_program(found.scheduled.program)
    random = np.random.default_rng(3)
    given = [random.normal(size=s).astype(np.float32) for s in shapes]
    for a, b in zip(run_program(program, given), run_program(found.scheduled.program, given), strict=True):
        np.testing.assert_array_equal(a, b)
    return program, found


def test_a_product_as_it_is() -> None:
    program, output = result(lambda x, w, b: F.relu(x @ w + b), (10, 8), (8, 6), (6,))
    assert output.scheduled.program == program and output.changed == 1
    (product,) = output.scheduled.execution.products.values()
    assert product.epilogue == "relu_bias" and product.fast == ""
    assert output.reasons == ("k0: the library's product of 10x6, 8 terms, epilogue relu_bias",)


def test_what_the_library_does_not_do_is_a_kernel_behind_it() -> None:
    program, output = result(lambda x, w, b: F.gelu(x @ w + b), (10, 8), (8, 6), (6,))
    after = output.scheduled.program
    assert [k.name for k in after.kernels] == ["k0_product", "k0"]
    assert list(output.scheduled.execution.products) == ["k0_product"]
    assert [s.cls for s in after.storages] == [*(s.cls for s in program.storages), "temp"]


def test_small_products_and_short_sums_are_left() -> None:
    program, output = result(lambda x, w: x @ w, (10, 8), (8, 6), costs=GPU)
    assert output.scheduled.program == program and not output.changed
    short = replace(SMALL, product_split=9)
    _, output = result(lambda x, w: F.gelu(x @ w), (10, 8), (8, 6), costs=short)
    assert not output.changed


def test_tf32_where_the_target_says_so() -> None:
    _, output = result(lambda x, w: x @ w, (10, 8), (8, 6), features="+tf32")
    (product,) = output.scheduled.execution.products.values()
    descriptor = product.descriptor()
    assert descriptor is not None and descriptor.compute == "tf32"
