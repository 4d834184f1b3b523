"""Running sums and the largest elements, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.interop.onnx.module import from_onnx
from tests.interop.onnx.single import check, model

pytest.importorskip("onnx")

X = np.random.default_rng(0).standard_normal((3, 5)).astype(np.float32)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_sums_from_either_end(exclusive: int, reverse: int):
    check("CumSum", X, np.array(1, np.int64), known=(1,), exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_products_from_either_end(exclusive: int, reverse: int):
    module = from_onnx(
        model("CumProd", X, np.array(1, np.int64), known=(1,), version=26, exclusive=exclusive, reverse=reverse)
    )
    rows = X[:, ::-1] if reverse else X
    wanted = np.cumprod(rows, 1)
    if exclusive:
        wanted = np.concatenate([np.ones((3, 1)), wanted[:, :-1]], 1)
    np.testing.assert_allclose(module(X).numpy(), wanted[:, ::-1] if reverse else wanted, rtol=1e-5)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "uint64"])
def test_the_largest_elements_come_in_order(dtype: str, largest: int):
    x = np.array([[3, 1, 200, 7, 5], [9, 8, 100, 6, 0]]).astype(dtype)
    x = x << np.uint64(56) if dtype == "uint64" else x
    k = np.array([3], np.int64)
    check("TopK", x, k, known=(1,), results=[dtype, np.int64], largest=largest)


def test_of_equal_elements_the_first_is_taken():
    x = np.array([[1, 2, 2, 1]], np.float32)
    module = from_onnx(model("TopK", x, np.array([2], np.int64), known=(1,), results=[np.float32, np.int64]))
    assert module(x)[1].tolist() == [[1, 2]]


@pytest.mark.parametrize("axis", [0, 1])
def test_rows_of_any_number_are_in_order(axis: int):
    x = np.random.default_rng(1).standard_normal((5, 4)).astype(np.float32)
    check("CumSum", x, np.array(axis, np.int64), known=(1,), open_rows=True, exclusive=1)
    check("TopK", x, np.array([2], np.int64), known=(1,), results=[np.float32, np.int64], open_rows=True, axis=axis)
