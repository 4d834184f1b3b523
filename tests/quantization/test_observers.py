"""Ranges that observers choose: extremes, percentiles, and the least divergence."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.errors import AttributeValueError, NonFiniteError
from graphc.quantization.observers import OBSERVERS, HistogramObserver, observer_of

RANDOM = np.random.default_rng(0)


def observed(method: str, *batches: np.ndarray) -> tuple[float, float]:
    observer = observer_of(method)()
    for batch in batches:
        observer.observe("layer", batch.astype(np.float32))
    return observer.range()


@pytest.mark.parametrize("method", OBSERVERS)
def test_a_range_includes_zero(method: str):
    low, high = observed(method, np.array([3.0, 5.0]))
    assert low == 0 and 4.9 < high <= 5
    low, high = observed(method, np.array([-3.0, -5.0]))
    assert high == 0 and -5 <= low < -4.9


@pytest.mark.parametrize("method", OBSERVERS)
def test_zeros_alone_have_an_empty_range(method: str):
    assert observed(method, np.zeros(4)) == (0.0, 0.0)
    assert OBSERVERS[method]().is_empty


def test_minmax_takes_the_extremes_of_all_batches():
    assert observed("minmax", np.array([-1.0, 2.0]), np.array([0.5, 7.0])) == (-1.0, 7.0)


def test_percentile_and_entropy_leave_outliers_out():
    normal = RANDOM.standard_normal(100_000)
    outlier = np.append(normal, 60.0)
    assert observed("minmax", outlier)[1] == 60
    assert 3.5 < observed("percentile", outlier)[1] < 4.5
    assert 2.5 < observed("entropy", outlier)[1] < 12


def test_entropy_keeps_the_range_of_inputs_without_outliers():
    low, high = observed("entropy", RANDOM.uniform(-1, 1, 100_000))
    assert low < -0.95 and high > 0.95


def test_a_histogram_counts_alike_for_one_batch_and_for_many_of_growing_size():
    values = np.sort(np.abs(RANDOM.standard_normal(4096)).astype(np.float32))
    values = np.append(values, np.float32(1000.0))
    small, whole = HistogramObserver(), HistogramObserver()
    for chunk in np.array_split(values, 7):
        small.observe("layer", chunk)
    whole.observe("layer", values)
    assert small.counts.sum() == values.size and np.array_equal(small.counts, whole.counts)


@pytest.mark.parametrize("method", OBSERVERS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_with_the_name_of_the_layer(method: str, value: float):
    with pytest.raises(NonFiniteError, match="an input of layer holds NaN or infinity"):
        observed(method, np.array([1.0, value]))


def test_an_unknown_method_is_refused():
    with pytest.raises(AttributeValueError, match="'mean' is not known"):
        observer_of("mean")
