"""Indexing by ints, slices, None, Ellipsis, integer tensors and masks, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError, TraceError
from graphc.ir.interpret import evaluate

ARRAY = np.arange(120.0).reshape(4, 5, 6)
INDEX = np.array([[2, 0], [-1, 1]])
BASIC = [
    0,
    -1,
    np.s_[1:3],
    np.s_[::2, 1:-1],
    np.s_[..., 3],
    np.s_[1, ..., None],
    np.s_[None, 2, :, ::3],
    np.s_[:, None, -2],
    np.s_[3:1],
    np.s_[10:, :2],
    np.s_[1:100],
    (),
    np.s_[...],
]
ADVANCED = [
    INDEX,
    np.s_[:, INDEX],
    np.s_[..., INDEX],
    np.s_[1:3, INDEX, ::2],
    np.s_[INDEX, INDEX],
    np.s_[:, INDEX, INDEX],
    np.s_[INDEX, :, INDEX],
    np.s_[INDEX, 1:3, np.array([0, 5])],
    np.s_[None, INDEX],
    ARRAY > 50,
    np.s_[np.array([True, False, True, False])],
    np.s_[:, np.array([True, False, True, False, True]), 2:4],
]


def to_tensors(index):
    if isinstance(index, tuple):
        return tuple(map(to_tensors, index))
    return graphc.from_numpy(index) if isinstance(index, np.ndarray) else index


@pytest.mark.parametrize("index", BASIC, ids=str)
def test_basic_indices_are_views(index):
    x = graphc.from_numpy(ARRAY.copy())
    part = x[index]
    np.testing.assert_array_equal(part.numpy(), ARRAY[index])
    assert part.shape == np.asarray(ARRAY[index]).shape
    if part.numel():
        assert part._base is x and np.shares_memory(part.numpy(), x.numpy())


@pytest.mark.parametrize("index", ADVANCED, ids=range(len(ADVANCED)))
def test_index_tensors_copy(index):
    x = graphc.from_numpy(ARRAY.copy())
    part = x[to_tensors(index)]
    np.testing.assert_array_equal(part.numpy(), ARRAY[index])
    assert part._base is None


def test_lists_and_scalars_as_indices():
    x = graphc.from_numpy(ARRAY)
    np.testing.assert_array_equal(x[[1, 3]].numpy(), ARRAY[[1, 3]])
    np.testing.assert_array_equal(x[graphc.tensor(2)].numpy(), ARRAY[2])
    np.testing.assert_array_equal(x[range(2)].numpy(), ARRAY[:2])
    assert x[[]].shape == (0, 5, 6)
    np.testing.assert_array_equal(x[: graphc.tensor(2)].numpy(), ARRAY[:2])


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED], ids=range(len(BASIC) + len(ADVANCED)))
@pytest.mark.parametrize("recorded", [False, True])
def test_assignment(index, recorded):
    expected = ARRAY.copy()
    value = np.random.default_rng(0).standard_normal(ARRAY[index].shape)
    expected[index] = value
    x = graphc.from_numpy(ARRAY.copy())
    if recorded:
        x = x.requires_grad_() * 1
    x[to_tensors(index)] = graphc.from_numpy(value)
    np.testing.assert_array_equal(x.detach().numpy(), expected)
    x[to_tensors(index)] = -1
    expected[index] = -1
    np.testing.assert_array_equal(x.detach().numpy(), expected)


def test_the_last_of_several_values_stays():
    x = graphc.zeros(3)
    x[graphc.tensor([1, 1, 2])] = graphc.tensor([5.0, 6.0, 7.0])
    assert x.tolist() == [0, 6, 7]
    y = graphc.zeros(3, dtype=graphc.bool_)
    y[graphc.tensor([0, 2])] = True
    assert y.tolist() == [True, False, True]


@pytest.mark.parametrize("index", [*BASIC[:8], *ADVANCED[:9]], ids=range(17))
def test_traced_indexing(index):
    def function(x, *tensors):
        rest = iter(tensors)

        def fill(item):
            if isinstance(item, tuple):
                return tuple(map(fill, item))
            return next(rest) if isinstance(item, np.ndarray) else item

        place = fill(index)
        y = x * 1
        rest = iter(tensors)
        y[fill(index)] = -2.0
        return x[place], y

    arrays = [i for i in (index if isinstance(index, tuple) else (index,)) if isinstance(i, np.ndarray)]
    tensors = [graphc.from_numpy(a) for a in arrays]
    x = graphc.from_numpy(ARRAY)
    graph = graphc.trace(function, x, *tensors)
    part, changed = evaluate(graph, [ARRAY, *arrays])
    np.testing.assert_array_equal(part, ARRAY[index])
    expected = ARRAY.copy()
    expected[index] = -2
    np.testing.assert_array_equal(changed, expected)


def test_traced_masks():
    x = graphc.from_numpy(ARRAY)

    def fill(x):
        y = x * 1
        y[x > 50] = 0.0
        y[graphc.tensor([True, False, False, False])] = 7.0
        return y

    expected = ARRAY.copy()
    expected[ARRAY > 50] = 0
    expected[0] = 7
    np.testing.assert_array_equal(evaluate(graphc.trace(fill, x), [ARRAY])[0], expected)
    with pytest.raises(TraceError, match="boolean mask, whose result has a size that depends on values"):
        graphc.trace(lambda x: x[x > 50], x)


def test_accumulation_counts_repeated_positions():
    x = graphc.zeros(3)
    x.index_put_((graphc.tensor([1, 1, 2]),), graphc.tensor([5.0, 6.0, 7.0]), accumulate=True)
    assert x.tolist() == [0, 11, 7]


def test_writing_back_a_part_writes_once():
    x = graphc.zeros(2, 2)
    x[0] += 1
    assert x._version == 1


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED[:9]], ids=range(len(BASIC) + 9))
def test_gradients(index):
    x = graphc.from_numpy(ARRAY.copy() / 50).requires_grad_()
    (x[to_tensors(index)] ** 2).sum().backward()
    expected = np.zeros_like(ARRAY)
    np.add.at(expected, index, 2 * ARRAY[index] / 50)
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_gradient_of_an_assigned_value():
    def function(x, v):
        y = x * 1
        y[1:, graphc.tensor([0, 2])] = v
        return y * y

    x = graphc.from_numpy(np.arange(6.0).reshape(2, 3)).requires_grad_()
    v = graphc.from_numpy(np.array([[3.0, 4.0]])).requires_grad_()
    assert gradcheck(function, (x, v))


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (4, IndexRangeError, "index 4 is out of range for dimension 0 of size 4"),
        (np.s_[0, 0, 0, 0], IndexRangeError, "4 indices for a tensor with 3 dimensions"),
        (np.s_[..., ...], IndexRangeError, "one Ellipsis"),
        (np.s_[::-1], AttributeValueError, "step of a slice must be 1 or more"),
        (1.5, ArgumentError, "float is no index"),
        (True, ArgumentError, "a bool is no index"),
        (graphc.tensor([0.5]), IndexRangeError, "must be integers or booleans, got f32"),
        (graphc.tensor([7, 0]), IndexRangeError, "values outside of -4..3"),
        (graphc.tensor([-5, 0]), IndexRangeError, "values outside of -4..3"),
    ],
)
def test_wrong_indices(index, error, message):
    with pytest.raises(error, match=message):
        graphc.from_numpy(ARRAY)[index]


def test_wrong_values():
    with pytest.raises(ShapeError):
        graphc.zeros(2, 3)[0] = graphc.ones(2)
    with pytest.raises(ShapeError, match="does not broadcast to the indexed shape"):
        graphc.zeros(3)[graphc.tensor([0, 1])] = graphc.ones(3)
    with pytest.raises(IndexRangeError, match="mask of shape"):
        graphc.zeros(3)[graphc.tensor([True, False])] = 1.0


def test_masks_and_index_tensors_that_do_not_fit():
    x = graphc.zeros(3, 1)
    with pytest.raises(IndexRangeError, match=r"mask of shape \[1\]"):
        x[..., graphc.tensor([True]), 0]
    with pytest.raises(IndexRangeError, match="broadcast"):
        x[graphc.tensor([0, 1, 2]), graphc.tensor([0, 0])]
    with pytest.raises(ArgumentError, match="a bool is no index"):
        x[x.sum() > 0]


def test_the_last_of_several_values_stays_even_beside_infinity():
    x = graphc.zeros(2)
    x[graphc.tensor([0, 0])] = graphc.tensor([float("inf"), 1.0])
    assert x.tolist() == [1.0, 0.0]
