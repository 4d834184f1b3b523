"""Orders of compiled code are those of numpy, for every length and element type, ties and NaN included."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.ops.selection import order
from graphc.ops.selection.sorting import SELECTED, argsort, merge_runs
from graphc.passes.pipeline import optimize
from tests.native import target_or_skip

TYPES = ["float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"]


def draw(shape: tuple[int, ...], dtype: str, seed: int = 0) -> np.ndarray:
    """Numbers among which many are equal, with NaN, infinities and both zeros where there are any."""
    rng = np.random.default_rng(seed)
    result = rng.integers(-9, 10, shape).astype(dtype)
    if dtype.startswith("f"):
        result += rng.integers(0, 2, shape) / 4
        flat = result.reshape(-1)
        special = [np.nan, -np.nan, np.inf, -np.inf, -0.0, 0.0]
        flat[: len(special)] = special[: flat.size]
        rng.shuffle(flat)
    return result


@pytest.mark.sampled(50)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("shape", "axis"), [((1,), 0), ((2,), 0), ((37,), 0), ((3, 70), 1), ((130, 2), 0)])
def test_the_order_is_that_of_numpy(dtype: str, shape: tuple[int, ...], axis: int, descending: bool):
    target_or_skip("host")
    x = draw(shape, dtype, sum(shape))
    result = graphc.compile(lambda x: argsort(x, axis=axis, descending=descending))(graphc.tensor(x))
    np.testing.assert_array_equal(result.numpy(), order.order_of(x, axis, descending))


@pytest.mark.sampled(50)
@pytest.mark.parametrize("count", [1, 3, SELECTED, SELECTED + 1])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_the_first_ones_are_those_of_the_order(dtype: str, descending: bool, count: int):
    target_or_skip("host")
    x = draw((2, 40), dtype, 5)
    attrs = {"axis": 1, "descending": descending, "count": count}
    result = graphc.compile(lambda x: argsort(x, **attrs))(graphc.tensor(x))
    np.testing.assert_array_equal(result.numpy(), order.order_of(x, 1, descending)[:, :count])
    np.testing.assert_array_equal(argsort(graphc.tensor(x), **attrs).numpy(), result.numpy())


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_all_numbers_of_a_type_are_ordered(dtype: str):
    target_or_skip("host")
    info = np.iinfo(dtype)
    middle = info.max // 2
    x = np.array([0, info.min, info.max, middle + 1, info.min, info.max - 1, 1, middle, info.min + 1], dtype)
    for descending in (False, True):
        for count in (-1, 3):
            attrs = {"axis": 0, "descending": descending, "count": count}
            result = graphc.compile(lambda x, attrs=attrs: argsort(x, **attrs))(graphc.tensor(x))
            expected = sorted(range(len(x)), key=lambda i: -int(x[i]) if descending else int(x[i]))
            np.testing.assert_array_equal(result.numpy(), expected if count < 0 else expected[:count])
            np.testing.assert_array_equal(argsort(graphc.tensor(x), **attrs).numpy(), result.numpy())


def test_long_lines_are_merged_run_by_run():
    target_or_skip("host")
    x = draw((2, 5000), "float32", 1)
    fast = graphc.compile(lambda x: graphc.sort(x))
    values, indices = fast(graphc.tensor(x))
    np.testing.assert_array_equal(indices.numpy(), np.argsort(x, 1, kind="stable"))
    np.testing.assert_array_equal(values.numpy(), np.sort(x, 1))


@pytest.mark.parametrize("extent", range(1, 20))
def test_runs_of_any_number_are_merged(extent: int):
    target_or_skip("host")
    rng = np.random.default_rng(extent)
    for width in (1, 2, 3, 5):
        x = rng.integers(0, 50, (extent, 2))
        for start in range(0, extent, width):
            x[start : start + width].sort(0)
        result = graphc.compile(lambda x, width=width: merge_runs(x, axis=0, width=width))(graphc.tensor(x))
        expected = [np.sort(x[start : start + 2 * width], 0) for start in range(0, extent, 2 * width)]
        np.testing.assert_array_equal(result.numpy(), np.concatenate(expected))


@pytest.mark.sampled(20)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_lines_of_every_length_are_sorted_by_one_program(dtype: str, descending: bool, axis: int):
    target_or_skip("host")
    dims = {"x": tuple(graphc.Dim("n") if d == axis else None for d in range(2))}
    for count in (-1, 2, SELECTED + 1):
        fast = graphc.compile(lambda x, c=count: argsort(x, axis=axis, descending=descending, count=c), dims=dims)
        least = max(count, 1)
        for extent in (40, least, least + 1, 64, 777):
            x = draw((2, extent) if axis else (extent, 2), dtype, extent)
            expected = order.order_of(x, axis, descending)
            if count > 0:
                expected = expected.take(range(count), axis)
            np.testing.assert_array_equal(fast(graphc.tensor(x)).numpy(), expected)
        assert len(fast.programs) == 1


def test_the_time_of_sorting_an_open_extent_does_not_grow_with_its_square():
    dim = graphc.Dim("n", hint=1 << 16)
    graph = graphc.trace(lambda x: graphc.sort(x), graphc.zeros(1 << 16), dims={"x": (dim,)})
    operations = {node.op.name for node in optimize(graph).nodes()}
    assert "sort_lines" in operations and "rank" not in operations
