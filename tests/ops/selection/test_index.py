"""Facts about gather, scatter_add and iota: ranges, repeated indices, that one is the transpose of the other."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import int8
from graphc.checks.op_derivatives import array_type
from graphc.errors import IndexRangeError
from graphc.ir.kernel.interpret import run_kernel
from graphc.ir.op import REGISTRY
from graphc.ops.selection import index as ix
from tests.ops.apply import gradients, run
from tests.ops.one_kernel import lower_op


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_gather_is_take(axis):
    x, indices = np.random.default_rng(0).standard_normal((3, 4, 5)), np.array([[2, 0], [1, 2]])
    found = run(lambda v, i: ix.gather(v, i, axis=axis), x, indices)
    np.testing.assert_array_equal(found, np.take(x, indices, axis))


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_scatter_add_is_the_transpose_of_gather(axis):
    random = np.random.default_rng(0)
    x, indices = random.standard_normal((3, 4, 5)), np.array([[2, 0], [2, 2]])
    y = random.standard_normal(np.take(x, indices, axis).shape)
    spread = run(lambda v, i, u: ix.scatter_add(v, i, u, axis=axis), np.zeros_like(x), indices, y)
    np.testing.assert_allclose(np.vdot(np.take(x, indices, axis), y), np.vdot(x, spread))


def test_repeated_indices_add_up():
    x, indices = np.zeros(3), np.array([1, 1, 0, 1])
    found = run(lambda v, i, u: ix.scatter_add(v, i, u, axis=0), x, indices, np.array([1.0, 2, 4, 8]))
    np.testing.assert_array_equal(found, [4, 11, 0])
    np.testing.assert_array_equal(gradients(lambda v, i: ix.gather(v, i, axis=0), x, indices)[0], [1, 3, 0])


@pytest.mark.parametrize("wrong", [3, -1])
def test_an_index_out_of_range_is_an_error(wrong):
    with pytest.raises(IndexRangeError, match=rf"index {wrong} \(at \[1\]\) is out of range for 3 elements"):
        REGISTRY["gather"].evaluate((np.zeros(3), np.array([0, wrong])), {"axis": 0})
    with pytest.raises(IndexRangeError, match="scatter_add: index"):
        REGISTRY["scatter_add"].evaluate((np.zeros(3), np.array([0, wrong]), np.ones(2)), {"axis": 0})


@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8"])
def test_kernels_take_the_nearest_element(dtype):
    x = np.arange(5, dtype=np.float32)
    indices = np.array([127, 0, 4, 5], dtype) if dtype == "uint8" else np.array([127, -128, 4, -1], dtype)
    kernel = lower_op(REGISTRY["gather"], (array_type(x), array_type(indices)), {"axis": 0})
    out = np.zeros(4, np.float32)
    run_kernel(kernel, {"in0": x, "in1": indices, "out": out})
    np.testing.assert_array_equal(out, [4, 0, 4, 4] if dtype == "uint8" else [4, 0, 4, 0])


def test_iota():
    np.testing.assert_array_equal(run(lambda: ix.iota(shape=(2, 3), axis=1)), [[0, 1, 2], [0, 1, 2]])
    assert run(lambda: ix.iota(shape=(2,), axis=0)).dtype == np.int64
    wrapped = run(lambda: ix.iota(shape=(130,), axis=0, dtype=int8))
    np.testing.assert_array_equal(wrapped[126:], [126, 127, -128, -127])


def test_gathered_shape():
    assert ix.gathered_shape((2, 3, 4), (5, 6), 1) == (2, 5, 6, 4)
    assert ix.gathered_shape((2,), (), 0) == ()
