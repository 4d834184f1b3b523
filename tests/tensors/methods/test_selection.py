"""Picking, placing, splitting and joining along dimensions against numpy, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError
from graphc.tensors.methods import selection

CUBE = np.random.default_rng(0).standard_normal((2, 3, 4))


def same(result: graphc.Tensor, expected: np.ndarray) -> None:
    assert result.shape == np.shape(expected)
    np.testing.assert_array_equal(result.numpy(), expected)


def counting(*shape: int) -> graphc.Tensor:
    return graphc.arange(float(np.prod(shape))).reshape(*shape)


def test_take():
    indices = np.array([[0, 23], [-1, 5]])
    same(graphc.tensor(CUBE).take(graphc.tensor(indices)), np.take(CUBE, indices))


@pytest.mark.parametrize(("dim", "shape"), [(0, (1, 3, 4)), (1, (2, 2, 1)), (-1, (1, 1, 3)), (None, (5,))])
def test_take_along_dim(dim: int | None, shape: tuple[int, ...]):
    indices = np.random.default_rng(1).integers(-2, 2, shape)
    result = graphc.tensor(CUBE).take_along_dim(graphc.tensor(indices), dim)
    if dim is None:
        return same(result, CUBE.reshape(-1)[indices])
    sizes = np.broadcast_shapes(shape, tuple(1 if d == dim % 3 else s for d, s in enumerate(CUBE.shape)))
    same(result, np.take_along_axis(CUBE, np.broadcast_to(indices, sizes), dim))


def test_placing_by_index():
    base, index, rows = counting(3, 2), graphc.tensor([2, 0, 2]), counting(3, 2) + 10
    expected = np.arange(6.0).reshape(3, 2)
    np.add.at(expected, [2, 0, 2], 2 * (np.arange(6.0).reshape(3, 2) + 10))
    same(base.index_add(0, index, rows, alpha=2), expected)
    assert base.index_copy(0, graphc.tensor([2, 0]), rows[:2]).tolist() == [[12, 13], [2, 3], [10, 11]]
    assert base.index_fill(1, graphc.tensor([0]), -1).tolist() == [[-1, 1], [-1, 3], [-1, 5]]
    assert base.index_put((graphc.tensor([0, 0]), graphc.tensor([1, 1])), graphc.tensor([5.0, 7.0]), True)[0, 1] == 13
    assert base.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_placing_by_mask_and_slice():
    base = counting(2, 3)
    mask = graphc.tensor([False, True, True])
    assert base.masked_scatter(mask, graphc.tensor([9.0, 8.0, 7.0, 6.0])).tolist() == [[0, 9, 8], [3, 7, 6]]
    assert base.select_scatter(graphc.tensor([7.0, 8.0]), 1, -1).tolist() == [[0, 1, 7], [3, 4, 8]]
    assert base.slice_scatter(graphc.zeros(2, 2), 1, 0, None, 2).tolist() == [[0, 1, 0], [0, 4, 0]]
    assert base.tolist() == [[0, 1, 2], [3, 4, 5]]


REDUCTIONS = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "amax": np.max, "amin": np.min}


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("how", REDUCTIONS)
@pytest.mark.parametrize("is_integer", [False, True])
def test_scatter_reduce(how: str, include_self: bool, is_integer: bool):
    rng = np.random.default_rng(2)
    base, update = rng.integers(-9, 9, (3, 4)), rng.integers(-9, 9, (5, 3))
    index = rng.integers(0, 3, (5, 3))
    if not is_integer:
        base, update = base / 2, update / 2
    expected = base.copy()
    for row, column in np.ndindex(3, 3):
        met = update[index[:, column] == row, column]
        if met.size:
            value = REDUCTIONS[how]([*([base[row, column]] if include_self else []), *met])
            expected[row, column] = np.floor(value) if is_integer else value
    result = graphc.tensor(base).scatter_reduce(
        0, graphc.tensor(index), graphc.tensor(update), how, include_self=include_self
    )
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-12)
    assert result.dtype is graphc.tensor(base).dtype


def test_elements_equal_to_a_scattered_extreme_share_its_gradient():
    x = graphc.tensor([-2.0, 0.0, 5.0], requires_grad=True)
    updates = graphc.tensor([-1.0, 0.0, -0.0, 5.0], requires_grad=True)
    index = graphc.tensor([0, 1, 1, 2])
    x.scatter_reduce(0, index, updates, "amax").sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0, 1 / 3, 1 / 2], rtol=1e-6)
    np.testing.assert_allclose(updates.grad.numpy(), [1, 1 / 3, 1 / 3, 1 / 2], rtol=1e-6)


@pytest.mark.parametrize("include_self", [True, False])
def test_scattered_extremes_do_not_compare_all_pairs(include_self: bool):
    def largest(x, index, updates):
        return x.scatter_reduce(0, index, updates, "amax", include_self=include_self)

    index = graphc.zeros(900, dtype=graphc.int64)
    graph = graphc.trace(largest, graphc.zeros(800), index, graphc.zeros(900))
    assert max(v.type.size for node in graph.nodes() for v in node.results) <= 900


def test_scatter_reduce_refuses():
    x, index = graphc.zeros(2, 2), graphc.zeros(1, 2, dtype=graphc.int64)
    with pytest.raises(AttributeValueError, match="unknown reduce 'median'"):
        x.scatter_reduce(0, index, x, "median")


@pytest.mark.parametrize("sections", [1, 3, 5, (1, 3), (0, 9), (-1,)])
def test_tensor_split(sections: int | tuple[int, ...]):
    x = np.arange(8.0).reshape(4, 2)
    for result, expected in zip(graphc.tensor(x).tensor_split(sections), np.array_split(x, sections), strict=True):
        same(result, expected)


def test_splits():
    x = graphc.tensor(CUBE)
    for result, expected in ((x.hsplit(3), np.hsplit(CUBE, 3)), (x.vsplit(2), np.vsplit(CUBE, 2))):
        assert [p.tolist() for p in result] == [w.tolist() for w in expected]
    assert [p.shape for p in x.dsplit((1, 3))] == [(2, 3, 1), (2, 3, 2), (2, 3, 1)]
    assert [p.tolist() for p in graphc.tensor([1, 2, 3]).hsplit(3)] == [[1], [2], [3]]
    assert [p.shape[1] for p in x.split_with_sizes([1, 2], 1)] == [1, 2]
    with pytest.raises(AttributeValueError, match="at least one part"):
        x.tensor_split(0)


@pytest.mark.parametrize(("dim", "size", "step"), [(0, 2, 1), (1, 2, 1), (-1, 2, 2), (2, 4, 3), (1, 0, 2)])
def test_unfold(dim: int, size: int, step: int):
    windows = np.lib.stride_tricks.sliding_window_view(CUBE, size, dim) if size else np.zeros((2, 4, 4, 0))
    expected = np.take(windows, range(0, windows.shape[dim % 3], step), dim % 3)
    same(graphc.tensor(CUBE).unfold(dim, size, step), expected)


def test_unfold_of_scalars_and_refusals():
    assert graphc.tensor(3.0).unfold(0, 1, 1).tolist() == [3]
    for size, step in ((5, 1), (1, 0), (-1, 1)):
        with pytest.raises(IndexRangeError, match="do not fit a dimension of size 4"):
            graphc.tensor(CUBE).unfold(2, size, step)


@pytest.mark.parametrize("k", [-1, 0, 1, 2, 3, 6])
def test_rot90(k: int):
    for dims in ((0, 1), (2, 0)):
        same(graphc.tensor(CUBE).rot90(k, dims), np.rot90(CUBE, k, dims))


def test_flips():
    same(graphc.tensor(CUBE).fliplr(), np.fliplr(CUBE))
    same(graphc.tensor(CUBE).flipud(), np.flipud(CUBE))
    with pytest.raises(ShapeError, match="at least 2"):
        graphc.zeros(2).fliplr()
    with pytest.raises(ShapeError, match="at least 1"):
        graphc.tensor(1.0).flipud()


def test_diagonals_and_places():
    assert graphc.tensor([1, 2]).diag().tolist() == [[1, 0], [0, 2]]
    assert graphc.tensor([[1, 2], [3, 4]]).diagflat(1).shape == (5, 5)
    assert graphc.tensor([[1], [2]]).diag_embed().tolist() == [[[1]], [[2]]]
    same(graphc.tensor(CUBE > 1).argwhere(), np.argwhere(CUBE > 1))


def test_sum_to_size():
    assert graphc.tensor(CUBE).sum_to_size(()).item() == pytest.approx(CUBE.sum())
    for x in (graphc.tensor([True, True]), graphc.tensor(2, dtype=graphc.uint8)):
        assert x.sum_to_size(()).dtype is graphc.int64 and x.sum_to_size(()).item() == 2
    np.testing.assert_allclose(graphc.tensor(CUBE).sum_to_size(3, 1).numpy(), CUBE.sum((0, 2))[:, None])
    with pytest.raises(ShapeError, match="does not broadcast"):
        graphc.tensor(CUBE).sum_to_size(5)


@pytest.mark.parametrize("name", ["hstack", "vstack", "dstack", "column_stack"])
@pytest.mark.parametrize("shape", [(3,), (3, 2), (3, 2, 2)])
def test_joining(name: str, shape: tuple[int, ...]):
    a, b = (np.random.default_rng(i).standard_normal(shape) for i in range(2))
    same(getattr(selection, name)([graphc.tensor(a), graphc.tensor(b)]), getattr(np, name)([a, b]))


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_at_least(rank: int):
    for array in (np.float64(2), CUBE[0, 0], CUBE[0], CUBE):
        expected = (np.atleast_1d, np.atleast_2d, np.atleast_3d)[rank - 1](array)
        same(selection.at_least(graphc.tensor(array), rank), expected)


def test_joining_promotes_and_needs_tensors():
    mixed = selection.joined("hstack", [graphc.tensor([1]), graphc.tensor([0.5])], 0)
    assert (mixed.dtype, mixed.tolist()) == (graphc.float32, [1, 0.5])
    with pytest.raises(ArgumentError, match="at least one"):
        selection.joined("hstack", [], 0)


def test_blocks_and_products():
    blocks = selection.block_diag(graphc.ones(1, 2), graphc.tensor([2.0]), graphc.tensor(3.0))
    assert blocks.tolist() == [[1, 1, 0, 0], [0, 0, 2, 0], [0, 0, 0, 3]]
    pairs = selection.cartesian_prod(graphc.tensor([1, 2]), graphc.tensor([3, 4]))
    assert pairs.tolist() == [[1, 3], [1, 4], [2, 3], [2, 4]]
    assert selection.cartesian_prod(graphc.tensor([1, 2])).tolist() == [1, 2]


@pytest.mark.parametrize("offset", [-1, 0, 2])
def test_triangle_indices(offset: int):
    same(graphc.tril_indices(3, 4, offset), np.stack(np.tril_indices(3, offset, 4)))
    same(graphc.triu_indices(3, 4, offset), np.stack(np.triu_indices(3, offset, 4)))


def test_gradients_reach_what_was_picked_and_placed():
    x, y = (graphc.tensor(a).requires_grad_() for a in (CUBE[0], CUBE[1]))
    index = graphc.tensor([1, 0, 1])
    assert gradcheck(lambda a, b: a.index_add(0, index, b), [x, y])
    assert gradcheck(lambda a, b: a.unfold(1, 2, 1).sum_to_size(4 - 1, 1) + b.rot90()[:3, :1], [x, y])
    assert gradcheck(lambda a, b: a.slice_scatter(b[:, :2], 1, 0, 2), [x, y])


def test_as_strided_scatter_replaces_what_as_strided_gives():
    x, src = graphc.arange(12.0).reshape(3, 4), graphc.tensor([[20.0, 21.0], [22.0, 23.0]])
    result = graphc.as_strided_scatter(x, src, (2, 2), (4, 1), 1)
    assert graphc.equal(result.as_strided((2, 2), (4, 1), 1), src) and result.sum() == x.sum() - 14 + 86
    with pytest.raises(ArgumentError, match="as_strided takes a row-major tensor"):
        x.t().as_strided_scatter(src, (2, 2), (4, 1), 1)
    assert gradcheck(
        lambda x, s: x.as_strided_scatter(s, (2, 2), (4, 1), 1),
        [graphc.randn(3, 4, dtype=graphc.float64, requires_grad=True) for _ in range(1)]
        + [graphc.randn(2, 2, dtype=graphc.float64, requires_grad=True)],
    )


def test_placing_in_place():
    x = graphc.zeros(2, 2)
    assert x.put_(graphc.tensor([0, 3]), graphc.tensor([1.0, 2.0])) is x and x.tolist() == [[1, 0], [0, 2]]
    x.index_reduce_(0, graphc.tensor([1]), graphc.full((1, 2), 3.0), "amax")
    assert x.tolist() == [[1, 0], [3, 3]]


def test_wrong_places():
    with pytest.raises(ShapeError, match="2 elements for 1 positions"):
        graphc.ones(3).put(graphc.tensor([0]), graphc.ones(2))
    with pytest.raises(AttributeValueError, match="unknown reduce 'sum'"):
        graphc.ones(3).index_reduce(0, graphc.tensor([0]), graphc.ones(1), "sum")
    with pytest.raises(ShapeError, match="diagonal_scatter"):
        graphc.ones(3, 3).diagonal_scatter(graphc.ones(2))
    assert graphc.tensor(2.0).nonzero_static(size=2).shape == (2, 0)
