"""Reductions, eagerly and compiled, with axes as attributes and as inputs."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.module import from_onnx
from tests.interop.onnx.alike import module_of
from tests.interop.onnx.single import check, model

pytest.importorskip("onnx")

X = np.random.default_rng(0).uniform(0.5, 2, (3, 4, 5)).astype(np.float32)
NAMES = [
    *("ReduceSum", "ReduceMean", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2"),
    *("ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"),
]


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", [[1], [0, -1], None])
@pytest.mark.parametrize("name", NAMES)
def test_axes_are_an_input(name: str, axes: list[int] | None, keepdims: int):
    given = [] if axes is None else [np.array(axes, np.int64)]
    check(name, X, *given, known=(1,), keepdims=keepdims)


@pytest.mark.parametrize("name", NAMES)
def test_axes_were_an_attribute(name: str):
    check(name, X, version=11, axes=[0, 2], keepdims=0)


@pytest.mark.parametrize("name", ["ReduceSum", "ReduceSumSquare", "ReduceLogSum", "ReduceL2"])
def test_without_axes_nothing_may_be_reduced(name: str):
    result = from_onnx(model(name, X, noop_with_empty_axes=1))(X).numpy()
    expected = {"ReduceSum": X, "ReduceSumSquare": X * X, "ReduceLogSum": np.log(X), "ReduceL2": X}[name]
    np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "expected"), [("ReduceSum", 0), ("ReduceProd", 1), ("ReduceMax", -np.inf), ("ReduceMin", np.inf)]
)
def test_nothing_has_a_neutral_element(name: str, expected: float):
    x = np.zeros((2, 0), np.float32)
    module = from_onnx(model(name, x, np.array([1], np.int64), known=(1,), keepdims=0))
    assert module(x).tolist() == [expected] * 2


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint64", "bool"])
@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin"])
def test_extremes_of_every_type(name: str, dtype: str):
    x = (np.array([[0, 1, 5], [7, 3, 2]]) * (2**63 // 4 if dtype == "uint64" else 1)).astype(dtype)
    check(name, x, np.array([0], np.int64), known=(1,), results=[dtype])


def test_sums_of_whole_numbers_stay_in_their_type():
    x = np.full((2, 3), 2**31 - 1, np.uint32)
    check("ReduceSum", x, np.array([1], np.int64), known=(1,), results=[np.uint32])


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("name", ["ArgMax", "ArgMin"])
def test_positions_of_the_first_or_last_extreme(name: str, keepdims: int, last: int):
    x = np.array([[2, 1, 2, 1], [3, 3, 0, 0]], np.float32)
    check(name, x, results=[np.int64], axis=1, keepdims=keepdims, select_last_index=last)


def test_rows_of_any_number_are_reduced():
    module = check("ReduceMean", X, np.array([0], np.int64), known=(1,), open_rows=True, keepdims=0)
    np.testing.assert_allclose(module(X[:2]).numpy(), X[:2].mean(0), rtol=1e-6)


@pytest.mark.parametrize("p", [1, 2])
def test_norms_of_zeros_leave_zeros(p: int):
    x = np.array([[3, -4], [0, 0]], np.float32)
    result = from_onnx(model("LpNormalization", x, p=p, axis=1))(x)
    np.testing.assert_allclose(result.numpy(), [[3 / (7, 5)[p - 1], -4 / (7, 5)[p - 1]], [0, 0]], rtol=1e-6)


def test_mean_and_variance_are_taken_away():
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 4)).astype(np.float32)
    check("MeanVarianceNormalization", x, rtol=1e-4, atol=1e-5)


def test_gradients_of_a_norm():
    x = graphc.tensor([[3.0, 4.0]], requires_grad=True)
    module = from_onnx(model("ReduceL2", x.detach().numpy(), keepdims=0))
    module(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [[0.6, 0.8]], rtol=1e-6)


def test_extremes_of_open_sizes_may_be_of_no_elements():
    """The call failed: a filter of neighbours by values leaves none, as in imputers of scikit-learn."""
    module = module_of("""(float[n] x, float[h, 3] y) => (float v, float[3] w) {
        zero = Constant<value_float=0.0>() first = Constant<value_ints=[0]>()
        is_positive = Greater(x, zero) rows = NonZero(is_positive) row = Squeeze(rows, first) positive = Gather(x, row)
        v = ReduceMax<keepdims=0>(positive) w = ReduceMin<keepdims=0>(y, first) }""")
    compiled = graphc.compile(module, dims=module.dims)
    for x, height in (([1, -2, 3], 2), ([-1, -2], 1), ([-1, 5], 0), ([], 3)):
        values = np.array(x, np.float32)
        largest, least = compiled(values, np.ones((height, 3), np.float32))
        assert largest.item() == np.max(values, where=values > 0, initial=-np.inf)
        assert least.tolist() == [1.0 if height else np.inf] * 3
