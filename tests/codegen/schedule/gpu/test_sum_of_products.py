"""Sums of products are found whatever their factors are computed from."""

from __future__ import annotations

import graphc as gc
import graphc.nn.functional as F
from graphc.codegen.schedule.gpu.sum_of_products import SumOfProducts, find_sum_of_products
from graphc.compiler.stages import Stages
from graphc.ir.kernel.map import Names


def found(function, *shapes: tuple[int, ...]) -> SumOfProducts | None:
    kernels = Stages(traced=gc.trace(function, *(gc.zeros(*s) for s in shapes))).lowered.kernels
    return find_sum_of_products(kernels[-1], Names("p"))


def extents(axes) -> list[int]:
    return [x.extent for x in axes]


def test_axes_of_one_factor_of_both_and_of_the_sum() -> None:
    it = found(lambda x, w: x @ w, (3, 4, 5), (3, 5, 6))
    assert it is not None and it.terms == 5
    assert (extents(it.only(it.left)), extents(it.only(it.right)), extents(it.shared)) == ([4], [6], [3])


def test_groups_of_a_convolution_are_shared() -> None:
    it = found(lambda x, w: F.conv2d(x, w, groups=2), (2, 6, 5, 5), (8, 3, 3, 3))
    assert it is not None
    assert extents(it.shared) == [2]
    assert sorted(extents(it.only(it.right))) == [4]


def test_what_is_no_sum_of_products() -> None:
    assert found(lambda x: x.sum(0), (4, 5)) is None
    assert found(lambda x: x * 2, (4, 5)) is None
    assert found(lambda x: x.softmax(1), (4, 5)) is None
