"""Epilogues of products, as a library computes them."""

from __future__ import annotations

import pytest

import graphc as gc
import graphc.nn.functional as F
from graphc.codegen.schedule.gpu.product_epilogue import Epilogue, match_epilogue
from graphc.codegen.schedule.gpu.sum_of_products import find_sum_of_products
from graphc.compiler.stages import Stages
from graphc.ir.kernel.map import Names


def epilogue(function) -> Epilogue | None:
    given = [gc.zeros(*s) for s in ((8, 8), (8, 8), (8,), (8, 8))]
    (kernel,) = Stages(traced=gc.trace(function, *given)).lowered.kernels
    found = find_sum_of_products(kernel, Names("p"))
    assert found is not None
    return match_epilogue(found.after)


@pytest.mark.parametrize(
    ("function", "activation", "alpha", "added"),
    [
        (lambda x, w, b, r: x @ w, "", 1.0, 0),
        (lambda x, w, b, r: x @ w * 0.25, "", 0.25, 0),
        (lambda x, w, b, r: r + (b + x @ w), "", 1.0, 2),
        (lambda x, w, b, r: F.relu(x @ w), "relu", 1.0, 0),
        (lambda x, w, b, r: F.relu(x @ w * 2 + b), "relu", 2.0, 1),
        (lambda x, w, b, r: F.gelu(x @ w + b + r, approximate="tanh"), "gelu", 1.0, 2),
    ],
)
def test_what_a_library_does(function, activation: str, alpha: float, added: int) -> None:
    found = epilogue(function)
    assert found is not None
    assert (found.activation, found.alpha, len(found.added)) == (activation, alpha, added)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w, b, r: F.gelu(x @ w),
        lambda x, w, b, r: F.relu(x @ w) + b,
        lambda x, w, b, r: (x @ w + b) * 0.5,
        lambda x, w, b, r: (x @ w) * r,
        lambda x, w, b, r: -(x @ w),
        lambda x, w, b, r: gc.tanh(x @ w),
    ],
)
def test_what_it_does_not(function) -> None:
    assert epilogue(function) is None
