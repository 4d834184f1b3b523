"""Sorting, running sums and extremes, quantiles and distinct elements against numpy, with equal elements and NaN."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc
from graphc.autograd import gradcheck
from graphc.errors import ArgumentError, AttributeValueError, IndexRangeError
from graphc.tensors.methods.ordering import running, take_along

NAN = math.nan
TIED = np.array([[3.0, 1.0, 3.0, 2.0], [0.0, 0.0, -1.0, 0.0]])
DISTINCT = np.random.default_rng(0).permutation(np.arange(24.0)).reshape(2, 3, 4)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("descending", [False, True])
def test_sort(dim: int, descending: bool):
    values, indices = graphc.tensor(TIED).sort(dim, descending)
    order = np.argsort(-TIED if descending else TIED, axis=dim, kind="stable")
    np.testing.assert_array_equal(indices.numpy(), order)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(TIED, order, dim))
    assert graphc.tensor(TIED).argsort(dim, descending).tolist() == order.tolist()


def test_nan_is_the_largest():
    x = graphc.tensor([NAN, 1.0, math.inf, -1.0])
    assert x.sort().indices.tolist() == [3, 1, 2, 0]
    assert x.sort(descending=True).indices.tolist() == [0, 2, 1, 3]


def test_scalars_are_sorted_already():
    x = graphc.tensor(2.5)
    assert [t.item() for t in (*x.sort(), *x.topk(1), *x.kthvalue(1), *x.median(0))] == [2.5, 0] * 4
    assert x.cumsum(0).item() == x.cumprod(0).item() == 2.5
    with pytest.raises(IndexRangeError):
        x.argsort(1)


def test_pieces():
    x = graphc.tensor(DISTINCT)
    result = x.argsort(1)
    np.testing.assert_array_equal(take_along(x, result, 1).numpy(), np.sort(DISTINCT, 1))
    assert running(graphc.tensor([3, 1, 2, 5]), 0, graphc.minimum, 9).tolist() == [3, 1, 1, 1]


@pytest.mark.parametrize("k", [0, 1, 3])
@pytest.mark.parametrize("largest", [False, True])
def test_topk(k: int, largest: bool):
    values, indices = graphc.tensor(DISTINCT).topk(k, 1, largest)
    order = np.argsort(-DISTINCT if largest else DISTINCT, 1)[:, :k]
    assert indices.tolist() == order.tolist()
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(DISTINCT, order, 1))


def test_kthvalue_and_median():
    x = graphc.tensor(DISTINCT)
    np.testing.assert_array_equal(x.kthvalue(2, 0).values.numpy(), np.sort(DISTINCT, 0)[1])
    assert x.kthvalue(2, 0, keepdim=True).indices.shape == (1, 3, 4)
    values, indices = x.median(2)
    np.testing.assert_array_equal(values.numpy(), np.sort(DISTINCT, 2)[..., 1])
    np.testing.assert_array_equal(np.take_along_axis(DISTINCT, indices.numpy()[..., None], 2)[..., 0], values.numpy())
    assert x.median().item() == 11
    assert graphc.tensor([1.0, NAN, 0.0]).median(0).indices.item() == 1


@pytest.mark.parametrize(
    "call", [lambda x: x.topk(5), lambda x: x.topk(-1), lambda x: x.kthvalue(0), lambda x: x.kthvalue(5)]
)
def test_counts_outside_are_refused(call):
    with pytest.raises(IndexRangeError, match="the dimension has 4 elements"):
        call(graphc.tensor(DISTINCT))


@pytest.mark.parametrize("how", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("dim", [None, 0, 2])
def test_quantile(how: str, dim: int | None):
    shares = [0.0, 0.2, 0.5, 1.0]
    result = graphc.tensor(DISTINCT).quantile(graphc.tensor(shares, dtype=graphc.float64), dim, interpolation=how)
    np.testing.assert_allclose(result.numpy(), np.quantile(DISTINCT, shares, axis=dim, method=how), rtol=1e-12)
    kept = graphc.tensor(DISTINCT).quantile(0.3, dim, keepdim=True, interpolation=how)
    np.testing.assert_allclose(kept.numpy(), np.quantile(DISTINCT, 0.3, axis=dim, keepdims=True, method=how))


@pytest.mark.parametrize(
    ("q", "how", "text"), [(1.5, "linear", "between 0 and 1"), (0.5, "cubic", "unknown interpolation 'cubic'")]
)
def test_quantile_refuses(q: float, how: str, text: str):
    with pytest.raises(AttributeValueError, match=text):
        graphc.tensor(DISTINCT).quantile(q, interpolation=how)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_running_values(dim: int):
    x = graphc.tensor(DISTINCT / 8)
    np.testing.assert_allclose(x.cumsum(dim).numpy(), np.cumsum(DISTINCT / 8, dim))
    np.testing.assert_allclose(x.cumprod(dim).numpy(), np.cumprod(DISTINCT / 8, dim))
    np.testing.assert_allclose(x.logcumsumexp(dim).numpy(), np.logaddexp.accumulate(DISTINCT / 8, dim))
    np.testing.assert_array_equal(x.cummax(dim).values.numpy(), np.maximum.accumulate(DISTINCT / 8, dim))
    np.testing.assert_array_equal(x.cummin(dim).values.numpy(), np.minimum.accumulate(DISTINCT / 8, dim))


def test_running_extremes_name_the_last_of_equal_ones():
    x = graphc.tensor([1, 3, 3, 2])
    assert x.cummax(0).indices.tolist() == [0, 1, 2, 2]
    assert graphc.tensor([2.0, 1.0, 1.0, 5.0]).cummin(0).indices.tolist() == [0, 1, 2, 2]


def test_running_values_take_no_square_of_the_length():
    def all_of(x):
        return x.cumprod(0), x.logcumsumexp(0), *x.cummax(0), *x.cummin(0)

    graph = graphc.trace(all_of, graphc.ones(1000))
    assert max(v.type.size for node in graph.nodes() for v in node.results) <= 1000


def test_products_behind_a_zero_have_gradients():
    x = graphc.tensor([2.0, 0.0, 3.0], requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad.tolist() == [1.0, 8.0, 0.0]


def test_running_values_of_whole_numbers_and_of_nothing():
    x = graphc.tensor([100, 100], dtype=graphc.int8)
    assert (x.cumsum(0).dtype, x.cumsum(0).tolist()) == (graphc.int64, [100, 200])
    assert (x.cumprod(0).dtype, x.cumprod(0).tolist()) == (graphc.int64, [100, 10000])
    empty = graphc.zeros(0, 3)
    for call in (empty.cumprod, empty.logcumsumexp):
        assert call(0).shape == (0, 3)
    assert [t.shape for t in empty.cummax(0)] == [(0, 3)] * 2


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "msort"])
def test_gradients(name: str):
    x = graphc.tensor(np.random.default_rng(1).uniform(0.5, 1.5, (3, 2))).requires_grad_()
    assert gradcheck(lambda v: v.msort() if name == "msort" else getattr(v, name)(0), [x])


def test_diff():
    x = DISTINCT[0]
    for n, dim in ((0, 0), (1, 0), (2, 1), (9, 1)):
        np.testing.assert_array_equal(graphc.tensor(x).diff(n, dim).numpy(), np.diff(x, n, dim))
    whole = graphc.tensor([1, 4, 9])
    assert whole.diff(prepend=graphc.tensor([0]), append=graphc.tensor([16])).tolist() == [1, 3, 5, 7]
    assert graphc.tensor([True, False, False]).diff().tolist() == [True, False]
    with pytest.raises(AttributeValueError, match="negative"):
        whole.diff(-1)


def test_sums_without_nan():
    x = graphc.tensor([[1.0, NAN], [2.0, 5.0]])
    assert x.nansum().item() == 8
    assert x.nansum(0).tolist() == [3, 5]
    assert x.nanmean(1, keepdim=True).tolist() == [[1], [3.5]]
    assert graphc.tensor([1, 2]).nansum().item() == 3
    low, high = x[:, :1].aminmax(dim=0)
    assert (low.tolist(), high.tolist()) == ([1], [2])


def test_membership_and_places():
    x = graphc.tensor([[1, 2], [3, 4]])
    assert x.isin(graphc.tensor([2, 3])).tolist() == [[False, True], [True, False]]
    assert x.isin([2, 3], invert=True).tolist() == [[True, False], [False, True]]
    sequence = graphc.tensor([1.0, 3.0, 3.0, 5.0])
    for side in ("left", "right"):
        expected = np.searchsorted([1, 3, 3, 5], [0, 3, 9], side)
        assert sequence.searchsorted(graphc.tensor([0.0, 3.0, 9.0]), side=side).tolist() == expected.tolist()
    assert sequence.searchsorted(3.0, right=True).item() == 3


def test_distinct_elements():
    x = np.array([3, 1, 3, 2])
    result, inverse, counts = graphc.tensor(x).unique(return_inverse=True, return_counts=True)
    assert (result.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 3], [2, 0, 2, 1], [1, 1, 2])
    assert graphc.tensor([[1, 2], [1, 2]]).unique(dim=0).tolist() == [[1, 2]]


def test_bincount():
    assert graphc.tensor([0, 2, 2]).bincount(minlength=5).tolist() == [1, 0, 2, 0, 0]
    weighted = graphc.tensor([0, 2, 2]).bincount(graphc.tensor([0.5, 1.0, 2.0]))
    assert (weighted.dtype, weighted.tolist()) == (graphc.float32, [0.5, 0, 3])
    for wrong in (graphc.tensor([-1]), graphc.tensor([0.5]), graphc.tensor([[1]])):
        with pytest.raises(ArgumentError, match="integers of 0 or more"):
            wrong.bincount()


def test_running_extremes_of_the_smallest_numbers_there_are():
    low = -math.inf
    for values, largest in (([low, 5.0, low], [low, 5.0, 5.0]), ([0.0, math.nan, 1.0], [0.0, math.nan, math.nan])):
        result = graphc.tensor(values).cummax(0)
        np.testing.assert_array_equal(result.values.numpy(), largest)
    assert graphc.tensor([0, 1, 0], dtype=graphc.uint8).cummax(0).indices.tolist() == [0, 1, 1]
    assert graphc.tensor([True, False]).cummin(0).values.tolist() == [True, False]


def test_no_elements():
    assert math.isnan(graphc.zeros(0).median().item()) and math.isnan(graphc.zeros(0, 2).nanmedian().item())
    assert graphc.zeros(0, 3).logsumexp(0).tolist() == [-math.inf] * 3
    with pytest.raises(IndexError, match="no elements"):
        graphc.zeros(0).amax()
    with pytest.raises(RuntimeError, match="at least one dimension"):
        graphc.tensor(1.0).diff()


@pytest.mark.parametrize("share", [0.3, 0.5, 0.75, 1.0])
def test_a_quantile_has_a_gradient_for_a_tensor_of_shares(share: float):
    x = graphc.tensor([3.0, 1.0, 2.0, 5.0, 4.0], dtype=graphc.float64)
    q = graphc.tensor(share, dtype=graphc.float64).requires_grad_()
    x.quantile(q).backward()
    slope = 0.0 if share * 4 == int(share * 4) else 4.0
    assert q.grad is not None and q.grad.item() == slope
    many = graphc.tensor([share, 0.3], dtype=graphc.float64).requires_grad_()
    x.quantile(many).sum().backward()
    assert many.grad is not None and many.grad.tolist() == [slope, 4.0]
    lower = graphc.tensor(share, dtype=graphc.float64).requires_grad_()
    assert not x.quantile(lower, interpolation="lower").requires_grad


def test_a_quantile_of_nan_is_nan():
    x = graphc.tensor([[1.0, np.nan, 3.0], [1.0, 2.0, 3.0]])
    assert np.isnan(x.quantile(0.25, dim=1).numpy()).tolist() == [True, False]


def test_nan_is_behind_every_element_of_a_sequence():
    sequence = graphc.tensor([1.0, 2.0, 3.0])
    for right in (False, True):
        assert sequence.searchsorted(graphc.tensor([np.nan, 2.0]), right=right).tolist() == [3, 1 + right]
    assert graphc.tensor([]).searchsorted(graphc.tensor([1.0])).tolist() == [0]


def test_runs_of_equal_elements():
    x = graphc.tensor([1, 1, 2, 2, 2, 1])
    result, inverse, counts = graphc.unique_consecutive(x, return_inverse=True, return_counts=True)
    assert result.tolist() == [1, 2, 1] and inverse.tolist() == [0, 0, 1, 1, 1, 2] and counts.tolist() == [2, 3, 1]
    assert graphc.tensor([[1, 1], [2, 2]]).unique_consecutive(dim=1).tolist() == [[1], [2]]
    assert graphc.empty(0).unique_consecutive().shape == (0,)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_running_products_of_f32_lose_no_product_on_the_way(compiled: bool):
    """Products of three elements are beyond f32 here, but not those of all."""

    def function(x):
        return x.cumprod(0)

    points = [1e-30, 1e-30, 1e30, 1e30]
    x = graphc.tensor(points, requires_grad=True)
    result = (graphc.compile(function) if compiled else function)(x)
    assert result.dtype is graphc.float32
    assert result.tolist() == pytest.approx([1e-30, 0.0, 1e-30, 1.0], rel=1e-6)
    infinite = graphc.tensor([1e-30, 1e-30, -math.inf, 2.0])
    assert infinite.cumprod(0).tolist() == [pytest.approx(1e-30), 0.0, -math.inf, -math.inf]
    result[3].backward()
    assert x.grad.tolist() == pytest.approx([1e30, 1e30, 1e-30, 1e-30], rel=1e-6)
