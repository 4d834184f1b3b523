"""Functions under ``graphc.`` that are no methods: joining, grids, places, moments, draws."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError
from graphc.tensors import free_functions


def floats(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


@pytest.mark.parametrize("name", free_functions.__all__)
def test_everything_is_reached_from_the_package(name: str):
    assert getattr(graphc, name) is getattr(free_functions, name)


def test_joining():
    a, b = floats(2, 3), floats(2, 3, seed=1)
    pair = [graphc.tensor(a), graphc.tensor(b)]
    np.testing.assert_array_equal(graphc.cat(pair, dim=-1).numpy(), np.concatenate([a, b], -1))
    np.testing.assert_array_equal(graphc.stack(pair, dim=1).numpy(), np.stack([a, b], 1))
    assert graphc.concat is graphc.concatenate is graphc.cat
    assert graphc.row_stack is graphc.vstack


def test_products():
    a, b, c = floats(2, 3), floats(3, 4), floats(4, 2)
    tensors = [graphc.tensor(v) for v in (a, b, c)]
    np.testing.assert_allclose(graphc.matmul(*tensors[:2]).numpy(), a @ b)
    np.testing.assert_allclose(graphc.chain_matmul(*tensors).numpy(), a @ b @ c)


def test_where():
    x = graphc.tensor([[1.0, -1.0], [-2.0, 3.0]])
    assert graphc.where(x > 0, x, 0).tolist() == [[1, 0], [0, 3]]
    assert [t.tolist() for t in graphc.where(x > 0)] == [[0, 1], [0, 1]]


def test_common_shapes():
    x, y = graphc.broadcast_tensors(graphc.zeros(3, 1), graphc.zeros(4))
    assert x.shape == y.shape == (3, 4)
    assert graphc.broadcast_shapes((2, 1), [3], ()) == (2, 3)
    assert [f(graphc.tensor(1.0)).ndim for f in (graphc.atleast_1d, graphc.atleast_2d, graphc.atleast_3d)] == [1, 2, 3]


@pytest.mark.parametrize("indexing", ["ij", "xy"])
@pytest.mark.parametrize("sizes", [(3,), (2, 3), (2, 3, 4)])
def test_meshgrid(indexing: str, sizes: tuple[int, ...]):
    arrays = [floats(s) for s in sizes]
    wanted = np.meshgrid(*arrays, indexing=indexing)
    tensors = [graphc.tensor(a) for a in arrays]
    for found in (graphc.meshgrid(*tensors, indexing=indexing), graphc.meshgrid(tensors, indexing=indexing)):
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(x.numpy(), y)


@pytest.mark.parametrize("name", ["block_diag", "cartesian_prod", "combinations", "broadcast_tensors", "meshgrid"])
def test_numbers_are_no_tensors(name: str):
    with pytest.raises(ArgumentError, match=rf"{name}: float is no tensor\n  try    pass a tensor"):
        getattr(graphc, name)(3.0)


def test_meshgrid_refuses_other_orders():
    with pytest.raises(ArgumentError, match="'ij' or 'xy'"):
        graphc.meshgrid(graphc.zeros(2), indexing="yx")


def test_places():
    bounds = graphc.tensor([1.0, 3.0])
    for right in (False, True):
        wanted = np.searchsorted([1, 3], [0, 1, 2, 3, 4], "right" if right else "left").tolist()
        assert graphc.bucketize(graphc.tensor([0.0, 1, 2, 3, 4]), bounds, right=right).tolist() == wanted
        assert graphc.searchsorted(bounds, graphc.tensor([0.0, 1, 2, 3, 4]), right=right).tolist() == wanted
    assert graphc.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert graphc.triu_indices(2, 2, 1).tolist() == [[0], [1]]


@pytest.mark.parametrize(("options", "ddof"), [({}, 1), ({"unbiased": False}, 0), ({"correction": 2}, 2)])
@pytest.mark.parametrize("dim", [None, 0, (0, 1)])
def test_moments(options: dict, ddof: int, dim: object):
    array = floats(4, 5)
    for name, reference in (("var_mean", np.var), ("std_mean", np.std)):
        spread, mean = getattr(graphc, name)(graphc.tensor(array), dim, **options)
        np.testing.assert_allclose(spread.numpy(), reference(array, axis=dim, ddof=ddof), rtol=1e-12)
        np.testing.assert_allclose(mean.numpy(), np.mean(array, axis=dim), rtol=1e-12, atol=1e-15)


def test_moments_take_a_flag_in_place_of_dimensions():
    array = floats(4, 5)
    spread, mean = graphc.var_mean(graphc.tensor(array), False)
    assert spread.item() == pytest.approx(array.var())
    assert mean.item() == pytest.approx(array.mean())


def test_questions():
    x = graphc.zeros(2, 3)
    assert graphc.numel(x) == 6
    assert graphc.is_floating_point(x) and not graphc.is_floating_point(x.long())
    assert graphc.result_type(graphc.tensor([1]), 0.5) is graphc.float32
    assert not graphc.is_nonzero(graphc.tensor([0.0]))
    assert graphc.typename(x) == x.type()
    assert graphc.typename(3) == "int"
    assert graphc.typename(graphc.nn.Linear(1, 1)).endswith(".Linear")


def test_draws_with_replacement_follow_the_weights():
    graphc.manual_seed(0)
    drawn = graphc.multinomial(graphc.tensor([[0.0, 3.0, 1.0], [2.0, 0.0, 0.0]]), 4000, replacement=True).numpy()
    counts = np.bincount(drawn[0], minlength=3)
    assert counts[0] == 0
    assert abs(counts[1] / 4000 - 0.75) < 0.05
    assert set(drawn[1].tolist()) == {0}


def test_draws_without_replacement_are_distinct():
    graphc.manual_seed(0)
    first = set()
    for _ in range(20):
        drawn = graphc.multinomial(graphc.tensor([1.0, 2.0, 0.0, 3.0]), 3).tolist()
        assert sorted(drawn) == [0, 1, 3]
        first.add(drawn[0])
    assert len(first) > 1


@pytest.mark.parametrize(
    ("weights", "count", "text"),
    [
        (graphc.tensor([1, 2]), 1, "floating-point"),
        (graphc.ones(1, 1, 1), 1, "vector or a matrix"),
        (graphc.ones(2), 3, "3 of 2"),
    ],
)
def test_multinomial_refuses(weights: graphc.Tensor, count: int, text: str):
    with pytest.raises(ArgumentError, match=text):
        graphc.multinomial(weights, count)


def test_coordinates_of_positions():
    rows, columns = graphc.unravel_index(graphc.tensor([1, 5, 11]), (3, 4))
    assert rows.tolist() == [0, 1, 2] and columns.tolist() == [1, 1, 3]
    with pytest.raises(graphc.errors.AttributeValueError, match="out of range for shape"):
        graphc.unravel_index(graphc.tensor([12]), (3, 4))
    with pytest.raises(graphc.errors.DTypeError):
        graphc.unravel_index(graphc.ones(1), (3, 4))


def test_what_may_be_cast():
    assert graphc.can_cast(graphc.int64, graphc.float32) and not graphc.can_cast(graphc.float32, graphc.int64)


@pytest.mark.parametrize("dtype", [graphc.uint8, graphc.int8, graphc.int32])
def test_coordinates_of_narrow_positions_are_int64(dtype: graphc.DType):
    rows, columns = graphc.unravel_index(graphc.tensor([1, 5, 11], dtype=dtype), (1000, 4))
    assert rows.dtype is columns.dtype is graphc.int64
    assert rows.tolist() == [0, 1, 2] and columns.tolist() == [1, 1, 3]
