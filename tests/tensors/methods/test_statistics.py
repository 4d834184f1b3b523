"""Modes, medians without NaN, and histograms against numpy, with gradients, and traced."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import AttributeValueError, DTypeError, IndexRangeError, ShapeError

NAN = np.nan


def test_mode_is_the_smallest_of_the_most_frequent_where_it_comes_last():
    x = graphc.tensor([[3, 1, 3, 1], [2, 2, 5, 0], [9, 8, 7, 6]])
    values, indices = x.mode()
    assert values.tolist() == [1, 2, 6] and indices.tolist() == [3, 1, 3]
    kept = x.mode(0, keepdim=True)
    assert kept.values.shape == kept.indices.shape == (1, 4) and kept.values.tolist() == [[2, 1, 3, 0]]
    assert graphc.mode(graphc.tensor(4.0)).values.item() == 4
    assert graphc.tensor([True, False, True]).mode().values.item() is True
    with pytest.raises(IndexRangeError, match="no elements"):
        graphc.zeros(0).mode()
    with pytest.raises(IndexRangeError):
        x.mode(2)


def test_gradients_go_to_the_elements_that_were_found():
    x = graphc.tensor([[2.0, 1.0, 2.0], [NAN, 5.0, 3.0]], requires_grad=True)
    (x.mode().values * graphc.tensor([10.0, 0.0])).sum().backward()
    assert x.grad.tolist() == [[0, 0, 10], [0, 0, 0]]
    x.grad = None
    x.nanmedian(1).values.sum().backward()
    assert x.grad.tolist()[1] == [0, 0, 1]


def test_nanmedian_is_the_lower_median_of_what_is_there():
    x = np.array([[1.0, NAN, 3.0, 2.0], [NAN, NAN, NAN, NAN], [4.0, 3.0, 2.0, 1.0], [NAN, 7.0, NAN, NAN]])
    values, indices = graphc.tensor(x).nanmedian(1)
    np.testing.assert_array_equal(values.numpy(), [2, NAN, 2, 7])
    assert indices.tolist()[0] == 3 and indices.tolist()[2:] == [2, 1]
    assert graphc.nanmedian(graphc.tensor(x)).item() == 2
    assert graphc.tensor(x).nanmedian(0, keepdim=True).values.shape == (1, 4)
    assert graphc.tensor([3, 1, 2]).nanmedian().item() == 2
    assert graphc.tensor(5.0).nanmedian(0).values.item() == 5


@pytest.mark.parametrize(("bins", "low", "high"), [(4, 0, 0), (10, -1, 1), (3, 0.5, 2), (1, -9, 9)])
def test_histogram(bins: int, low: float, high: float):
    x = np.random.default_rng(1).standard_normal((5, 8))
    result = graphc.histc(graphc.tensor(x), bins, low, high)
    expected = np.histogram(x, bins, None if low == high else (low, high))[0]
    assert result.dtype is graphc.float64
    np.testing.assert_array_equal(result.numpy(), expected)
    native = graphc.compile(lambda x: x.histc(bins, low, high))(graphc.tensor(x))
    np.testing.assert_array_equal(native.numpy(), expected)


def test_histograms_at_the_edges():
    assert graphc.tensor([2.0, 2.0, 2.0]).histc(2).tolist() == [0, 3]
    assert graphc.tensor([0.0, 1.0, 1.0, 2.0, NAN]).histc(2, 0, 1).tolist() == [1, 2]
    assert graphc.zeros(0).histc(3).tolist() == [0, 0, 0]
    with pytest.raises(DTypeError, match="floating"):
        graphc.tensor([1]).histc()
    with pytest.raises(AttributeValueError, match="0 bins"):
        graphc.ones(1).histc(0)
    with pytest.raises(AttributeValueError, match="from 2 to 1"):
        graphc.ones(1).histc(3, 2, 1)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_histogram_counts_the_largest_element(dtype: str):
    for seed in range(200):
        values = np.random.default_rng(seed).uniform(-7, 9, 30).astype(dtype)
        result = graphc.from_numpy(values).histc(5).numpy()
        assert result.sum() == 30
    x = graphc.tensor([-2.5, 0.0, 1.0, 3.7], dtype=getattr(graphc, dtype))
    assert x.histc(5).tolist() == [1, 0, 2, 0, 1]
    assert graphc.compile(lambda t: t.histc(5))(x).tolist() == [1, 0, 2, 0, 1]
    assert x.histc(4, -2.5, 3.7).tolist() == [1, 1, 1, 1]


def test_histograms_are_those_of_numpy():
    values = np.random.default_rng(0).normal(size=(40, 2))
    counts, edges = np.histogram(values, 100)
    assert [f.tolist() for f in graphc.histogram(graphc.tensor(values))] == [counts.tolist(), pytest.approx(edges)]
    result = graphc.histogram(graphc.tensor(values), 9)
    counts, edges = np.histogram(values, 9)
    assert result.hist.tolist() == counts.tolist()
    np.testing.assert_allclose(result.bin_edges.numpy(), edges)
    hist, _ = graphc.histogramdd(graphc.tensor(values), [3, 2], weight=graphc.tensor(values[:, 0] ** 2), density=True)
    expected, _ = np.histogramdd(values, [3, 2], weights=values[:, 0] ** 2, density=True)
    np.testing.assert_allclose(hist.numpy(), expected)
    edges = graphc.tensor([-1.0, 0.0, 0.5])
    result = graphc.histogram(graphc.tensor(values[:, 0]), edges)
    assert result.hist.tolist() == np.histogram(values[:, 0], edges.numpy())[0].tolist()


def test_wrong_histograms():
    with pytest.raises(DTypeError, match="histogram counts floating-point"):
        graphc.histogram(graphc.tensor([1]), 2)
    with pytest.raises(AttributeValueError, match="0 bins"):
        graphc.histogram(graphc.ones(2), 0)
    with pytest.raises(ShapeError, match="weight"):
        graphc.histogram(graphc.ones(2), 2, weight=graphc.ones(3))
    with pytest.raises(ShapeError, match="1 numbers of bins for 2"):
        graphc.histogramdd(graphc.ones(3, 2), [2])


def test_quantiles_without_what_is_missing():
    x = graphc.tensor([[1.0, float("nan"), 3.0], [float("nan")] * 3])
    assert x.nanquantile(0.5, 1)[0].item() == 2 and x.nanquantile(0.5, 1)[1].isnan().item()
    assert x.nanquantile(0.5).item() == 2
    assert x.nanquantile([0.0, 1.0]).tolist() == [1, 3]
    with pytest.raises(AttributeValueError, match="unknown interpolation 'middle'"):
        x.nanquantile(0.5, interpolation="middle")
    with pytest.raises(AttributeValueError, match="numbers between 0 and 1"):
        x.nanquantile(2.0)
    with pytest.raises(DTypeError, match="nanquantile takes floating-point elements"):
        x.isnan().long().nanquantile(0.5)
