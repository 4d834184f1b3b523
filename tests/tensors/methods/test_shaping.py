"""Views, joining, splitting and rearranging methods of tensors."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, AttributeValueError, IndexRangeError, ShapeError


def counting(*shape: int) -> graphc.Tensor:
    return graphc.arange(float(np.prod(shape))).reshape(*shape)


def test_views_share_memory_and_version():
    x = graphc.zeros(2, 3)
    for view in (x.view(3, 2), x.view(-1), x.t(), x[0], x[:, 1:], x.unsqueeze(0), x.expand(4, 2, 3), x.flatten()):
        before = view._version
        x += 1
        assert np.shares_memory(view.numpy(), x.numpy())
        assert view._version == before + 1
        assert view._base is x


def test_view_refuses_what_needs_a_copy():
    x = counting(2, 3)
    with pytest.raises(ShapeError, match="cannot be viewed"):
        x.t().view(6)
    assert x.t().reshape(6).tolist() == [0, 3, 1, 4, 2, 5]
    assert x.t().contiguous().view(6).tolist() == [0, 3, 1, 4, 2, 5]
    with pytest.raises(ArgumentError, match="view takes sizes"):
        x.view("f64")


@pytest.mark.parametrize(
    ("sizes", "shape"),
    [((6,), (6,)), ((-1, 2), (3, 2)), (((3, -1),), (3, 2)), (([2, 3],), (2, 3)), ((1, 6, 1), (1, 6, 1))],
)
def test_reshape(sizes, shape):
    assert counting(2, 3).reshape(*sizes).shape == shape


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((4,), "has 4 elements, the tensor has 6"),
        ((-1, -1), "only one"),
        ((-1, 4), "does not fit"),
        ((-2, 3), "negative"),
    ],
)
def test_reshape_errors(sizes, message):
    with pytest.raises(ShapeError, match=message):
        counting(2, 3).reshape(*sizes)


def test_transposes():
    x = counting(2, 3, 4)
    assert x.permute(2, 0, 1).shape == (4, 2, 3)
    assert x.permute((0, -1, 1)).shape == (2, 4, 3)
    assert x.transpose(0, -1).shape == (4, 3, 2)
    assert x.mT.shape == (2, 4, 3)
    assert x.T.shape == (4, 3, 2)
    assert x.movedim(0, -1).shape == (3, 4, 2)
    assert x.movedim((0, 1), (1, 2)).shape == (4, 2, 3)
    with pytest.raises(AttributeValueError, match="must list each"):
        x.permute(0, 0, 1)
    with pytest.raises(ShapeError, match="at most 2"):
        x.t()


def test_sizes_of_one():
    x = counting(1, 3, 1)
    assert x.squeeze().shape == (3,)
    assert x.squeeze(0).shape == (3, 1)
    assert x.squeeze(1).shape == (1, 3, 1)
    assert x.squeeze((0, 2)).shape == (3,)
    assert x.unsqueeze(-1).shape == (1, 3, 1, 1)
    assert x.flatten(1).shape == (1, 3)
    assert graphc.tensor(3.0).flatten().shape == (1,)
    assert counting(2, 6).unflatten(1, (2, -1)).shape == (2, 2, 3)


def test_expand_and_repeat():
    x = counting(3, 1)
    assert x.expand(2, -1, 4).shape == (2, 3, 4)
    with pytest.raises(ShapeError):
        x.expand(4)
    with pytest.raises(ArgumentError, match="share memory"):
        x.expand(3, 4).add_(1)
    x.expand(1, 1, -1, -1).add_(1)
    assert x.flatten().tolist() == [1, 2, 3]
    x.sub_(1)
    np.testing.assert_array_equal(x.repeat(2, 1, 3).numpy(), np.tile(x.numpy(), (2, 1, 3)))
    np.testing.assert_array_equal(counting(2, 2).repeat_interleave(2, 1).numpy(), [[0, 0, 1, 1], [2, 2, 3, 3]])
    assert not np.shares_memory(x.repeat(1, 1).numpy(), x.numpy())


def test_splitting():
    x = counting(7, 2)
    assert [p.shape[0] for p in x.split(3)] == [3, 3, 1]
    assert [p.shape[0] for p in x.split([2, 5])] == [2, 5]
    assert [p.shape[0] for p in x.chunk(3)] == [3, 3, 1]
    assert [p.tolist() for p in counting(2, 2).unbind(1)] == [[0, 2], [1, 3]]
    assert x.narrow(0, 2, 3).shape == (3, 2)
    assert x.select(1, -1).shape == (7,)
    with pytest.raises(ShapeError, match="do not sum to 7"):
        x.split([2, 2])
    with pytest.raises(IndexRangeError, match="is outside"):
        x.narrow(0, 5, 3)


def test_empty_vectors_that_are_joined_count_for_type_and_gradient():
    whole, empty = graphc.tensor([[1, 2]], dtype=graphc.int8), graphc.zeros(0).requires_grad_()
    joined = graphc.cat([whole, empty], -1)
    assert joined.dtype is graphc.float32 and joined.tolist() == [[1, 2]]
    joined.sum().backward()
    assert empty.grad.shape == (0,)
    assert graphc.cat([graphc.zeros(0), graphc.zeros(0)]).shape == (0,)


def test_joining():
    x = counting(2, 2)
    assert graphc.cat([x, x + 4], 1).tolist() == [[0, 1, 4, 5], [2, 3, 6, 7]]
    assert graphc.cat([graphc.zeros(0), x]).shape == (2, 2)
    assert graphc.cat([x, graphc.tensor([[1, 2]])]).dtype is graphc.float32
    assert graphc.stack([x, x], -1).shape == (2, 2, 2)
    with pytest.raises(ShapeError, match="equal shapes"):
        graphc.stack([x, counting(3)])
    with pytest.raises(AttributeValueError, match="at least one"):
        graphc.cat([])


def test_order_of_elements():
    x = counting(2, 3)
    assert x.flip(1).tolist() == [[2, 1, 0], [5, 4, 3]]
    assert not np.shares_memory(x.flip(1).numpy(), x.numpy())
    np.testing.assert_array_equal(x.roll(1, 0).numpy(), np.roll(x.numpy(), 1, 0))
    np.testing.assert_array_equal(x.roll((1, -1), (0, 1)).numpy(), np.roll(x.numpy(), (1, -1), (0, 1)))
    np.testing.assert_array_equal(x.roll(2).numpy(), np.roll(x.numpy(), 2))
    np.testing.assert_array_equal(counting(3, 3).tril(-1).numpy(), np.tril(counting(3, 3).numpy(), -1))
    np.testing.assert_array_equal(counting(2, 3, 3).triu(1).numpy(), np.triu(counting(2, 3, 3).numpy(), 1))
    np.testing.assert_array_equal(counting(3, 4).diagonal(1).numpy(), np.diagonal(counting(3, 4).numpy(), 1))


def test_selection_by_index_tensors():
    x = counting(3, 4)
    index = graphc.tensor([[3, 0], [1, 1], [2, 0]])
    np.testing.assert_array_equal(x.gather(1, index).numpy(), np.take_along_axis(x.numpy(), index.numpy(), 1))
    assert x.index_select(1, graphc.tensor([2, 0])).shape == (3, 2)
    assert graphc.zeros(2, 3).scatter(1, graphc.tensor([[1], [2]]), 5.0).tolist() == [[0, 5, 0], [0, 0, 5]]
    added = graphc.zeros(3).scatter_add(0, graphc.tensor([1, 1, 2]), graphc.tensor([1.0, 2.0, 3.0]))
    assert added.tolist() == [0, 3, 3]
    with pytest.raises(IndexRangeError):
        x.gather(1, graphc.tensor([[4]]))


def test_masks():
    x = counting(2, 2)
    assert x.masked_fill(x > 1, -1.0).tolist() == [[0, 1], [-1, -1]]
    assert x.masked_select(x > 1).tolist() == [2, 3]
    rows = graphc.tensor([1, 2]).masked_select(graphc.tensor([[True, False], [True, True]]))
    assert rows.tolist() == [1, 1, 2]
    assert x.nonzero().tolist() == [[0, 1], [1, 0], [1, 1]]
    assert graphc.where(x > 1, x, 0).tolist() == [[0, 0], [2, 3]]
    with pytest.raises(ArgumentError, match="boolean mask"):
        x.masked_fill(x, 0)
    with pytest.raises(graphc.errors.AttributeValueError, match="1j does not fit f32"):
        graphc.ones(2).masked_fill(graphc.tensor([True, False]), 1j)


def test_sorting():
    x = graphc.tensor([[3.0, 1.0, 2.0], [0.0, 5.0, 4.0]])
    values, indices = x.sort(descending=True)
    assert values.tolist() == [[3, 2, 1], [5, 4, 0]]
    assert indices.tolist() == [[0, 2, 1], [1, 2, 0]]
    assert x.topk(2).values.tolist() == [[3, 2], [5, 4]]
    assert x.topk(1, largest=False).indices.tolist() == [[1], [0]]
    assert graphc.tensor([2, 1, 2, 1]).argsort(descending=True).tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.reshape(4, 3),
        lambda x: x.t() * x.t(),
        lambda x: x.expand(2, 3, 4) ** 2,
        lambda x: x.repeat(2, 1),
        lambda x: graphc.cat([x, x * 2], 1),
        lambda x: graphc.stack(x.unbind(0)[::-1]),
        lambda x: x.roll(1, 0) * x,
        lambda x: x.tril(),
        lambda x: x.flip(0) * x,
        lambda x: x.gather(1, graphc.tensor([[0, 0], [3, 1], [2, 2]])),
        lambda x: x.scatter(0, graphc.tensor([[2, 1]]), x[:1, :2] * 3),
        lambda x: x.diagonal(),
        lambda x: x.sort(1).values,
        lambda x: x.masked_fill(x > 0, 2.0) * x,
        lambda x: x.chunk(2, 1)[1] * 3,
        lambda x: x.repeat_interleave(2),
    ],
)
def test_gradients(function):
    x = graphc.from_numpy(np.random.default_rng(0).standard_normal((3, 4))).requires_grad_()
    assert gradcheck(function, (x,))


def test_length_and_iteration():
    x = counting(2, 3)
    assert len(x) == 2
    assert [row.tolist() for row in x] == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ArgumentError):
        len(graphc.tensor(1.0))
    with pytest.raises(ArgumentError):
        iter(graphc.tensor(1.0))


def test_joining_takes_lists():
    x = graphc.ones(2)
    for name in ("cat", "concat", "concatenate", "stack", "hstack", "vstack", "row_stack", "dstack", "column_stack"):
        function = getattr(graphc, name)
        for argument in (x, 3, 2.5, None):
            with pytest.raises(ArgumentError, match=r"takes a list of tensors, got (one tensor|int|float|NoneType)"):
                function(argument)
        for argument in ([x, 1.0], "ab", {"a": x}):
            with pytest.raises(ArgumentError, match="is no tensor"):
                function(argument)
        assert function(iter([x, x])).numel() == 4
    with pytest.raises(ArgumentError, match="is no tensor"):
        graphc.cat([x, 1.0])


def test_entries_repeated_by_numbers_of_their_own():
    x = counting(3, 2).requires_grad_()
    for repeats in (graphc.tensor([2, 0, 1]), [2, 0, 1]):
        np.testing.assert_array_equal(
            x.repeat_interleave(repeats, 0).detach().numpy(), np.repeat(counting(3, 2).numpy(), [2, 0, 1], 0)
        )
    x.repeat_interleave(graphc.tensor([2, 0, 1]), 0).sum().backward()
    assert x.grad.tolist() == [[2, 2], [0, 0], [1, 1]]
    assert graphc.repeat_interleave(graphc.tensor([1, 0, 2])).tolist() == [0, 2, 2]
    with pytest.raises(AttributeValueError, match="one int, or 3 ints"):
        x.repeat_interleave(graphc.tensor([1, 2]), 0)
    with pytest.raises(AttributeValueError, match="repeats must be one int"):
        x.repeat_interleave([1, 2, -1], 0)


def test_a_scatter_of_an_open_number_of_elements_asks_for_no_size():
    n = graphc.Dim("n", min=0)
    scatter = graphc.compile(lambda x, i, s: x.scatter(0, i, s), dims=[None, (n,), (n,)])
    for count in (2, 0, 3):
        result = scatter(graphc.zeros(4), graphc.arange(count), graphc.ones(count))
        assert result.tolist() == [1.0] * count + [0.0] * (4 - count)
    assert len(scatter.programs) == 1
