"""Differences of arrays: figures, element types, tolerances, the worst element, several arrays as one."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from graphc.base.difference import (
    EXACT,
    TOLERANCES,
    Difference,
    SignalNoise,
    Tolerance,
    are_close,
    combined,
    difference,
    distances,
    largest,
    tolerance_for,
)
from graphc.base.dtypes import BY_NAME, bfloat16, bfloat16x2, elements, narrow

ONE = np.arange(6, dtype=np.float32).reshape(2, 3)


def of(actual: object, reference: object, tolerance: Tolerance | None = EXACT) -> Difference:
    return difference("y", np.asarray(actual), np.asarray(reference), tolerance)


@pytest.mark.parametrize(
    ("actual", "reference", "absolute", "relative", "count", "position"),
    [
        ([1.0, 2.0], [1.0, 2.0], 0, 0, 0, None),
        ([1.0, 2.5], [1.0, 2.0], 0.5, 0.25, 1, (1,)),
        ([0.0, 1.0], [0.5, 2.0], 1, 1, 2, (1,)),
        ([1e-3, 1.5], [0.0, 1.0], 0.5, 0.5, 2, (1,)),
        ([1e-3, 1.0], [0.0, 1.0], 1e-3, inf, 1, (0,)),
        ([nan, 1.0], [nan, 1.0], 0, 0, 0, None),
        ([inf, -inf], [inf, -inf], 0, 0, 0, None),
        ([1.0, nan], [1.0, 1.0], inf, inf, 1, (1,)),
        ([1.0, 1.0], [1.0, nan], inf, inf, 1, (1,)),
        ([nan], [0.0], inf, inf, 1, (0,)),
        ([nan, 1.5], [0.0, 1.0], inf, inf, 2, (0,)),
        ([inf], [-inf], inf, inf, 1, (0,)),
        ([1.0], [inf], inf, inf, 1, (0,)),
        ([inf], [1.0], inf, inf, 1, (0,)),
        ([], [], 0, 0, 0, None),
        ([3], [5], 2, 0.4, 1, (0,)),
        ([True, False], [False, False], 1, inf, 1, (0,)),
        ([1 << 62, 5], [(1 << 62) + 1, 5], 1, 1 / (1 << 62), 1, (0,)),
        ([-(1 << 63)], [(1 << 63) - 1], 2.0**64, 2, 1, (0,)),
        ([1, 2j], [1, -2j], 4, 2, 1, (1,)),
        ([complex(nan, 1)], [complex(1, nan)], 0, 0, 0, None),
        ([complex(inf, 1)], [complex(inf, 2)], inf, inf, 1, (0,)),
        (3.0, 2.0, 1, 0.5, 1, ()),
    ],
)
def test_figures(actual: object, reference: object, absolute: float, relative: float, count: int, position: object):
    result = of(actual, reference)
    assert (result.absolute, result.relative, result.count) == (absolute, relative, count)
    assert result.position == position and result.is_within == (count == 0) and result.ratio == (inf if count else 0)


def test_signs_of_zeros_and_payloads_are_bits_only():
    for a, b in ((0.0, -0.0), (np.float32(0), 0.0)):
        assert not of(a, b).is_equal and of(a, b).count == 0
    assert of(ONE, ONE.copy()).is_equal


@pytest.mark.parametrize("name", TOLERANCES)
def test_each_element_type_has_its_tolerance(name: str):
    dtype, rtol = BY_NAME[name], TOLERANCES[name].rtol
    reference = elements([100.0, 200.0], dtype)
    for factor, within in ((0.3, True), (3.0, False)):
        actual = elements([100.0, 200.0 * (1 + factor * rtol + (2**-8 if name == "bf16" and factor > 1 else 0))], dtype)
        assert of(actual, reference, None).is_within is within, factor


def test_narrow_and_packed_types():
    result = of(elements([1.0, -2.0], bfloat16), elements([1.0, 3.0], bfloat16), Tolerance(0, 5))
    assert (result.absolute, result.count, result.position, result.is_within) == (5, 1, (1,), True)
    assert (result.actual, result.expected, result.ratio) == (-2.0, 3.0, 1.0)
    pairs = [np.array([1, n], "<u4").view(bfloat16x2.numpy) for n in (2, 3)]
    assert (of(pairs[0], pairs[1]).count, of(pairs[0], pairs[1]).expected) == (1, 3) and of(
        pairs[0], pairs[0]
    ).count == 0


def test_the_tolerance_is_that_of_the_less_exact_type():
    assert tolerance_for(np.zeros(1), np.zeros(1, np.float32)) == TOLERANCES["f32"]
    assert tolerance_for(np.zeros(1, np.int64), np.ones(1, bool)) == EXACT
    assert tolerance_for(ONE, ONE) == (1e-4, 5e-5) and tolerance_for(ONE, ONE, 0.5, 0.0) == (0.5, 0.0)


def test_the_worst_element_is_one_beyond_the_tolerance():
    result = of([1e6 + 1, 0.2], [1e6, 0.1], Tolerance(1e-5, 0.0))
    assert (result.position, result.beyond, result.count, result.absolute) == ((1,), 1, 2, 1.0)
    assert result.ratio == pytest.approx(1e5) and result.allowed == pytest.approx(1e-6)
    assert of([1e6 + 1, 0.2], [1e6, 0.1], Tolerance(0, 2.0)).position == (0,)
    assert list(distances(np.array([1.0, nan, 3.0, nan]), np.array([1.0, nan, 5.0, 1.0]))) == [0.0, 0.0, 2.0, inf]
    assert list(are_close(np.array([1e6 + 1, 0.2]), np.array([1e6, 0.1]), Tolerance(1e-5))) == [True, False]


@pytest.mark.parametrize(("actual", "reference"), [(nan, 1.0), (1.0, nan), (inf, 1.0), (1.0, inf), (inf, -inf)])
def test_no_tolerance_allows_what_is_not_finite(actual: float, reference: float):
    assert not of(actual, reference, Tolerance(10, 1e300)).is_within


def test_nan_is_equal_unless_told_otherwise():
    array = np.array([1.0, nan])
    result = difference("y", array, array, EXACT, equal_nan=False)
    assert (result.count, result.position, result.is_within, result.is_equal) == (1, (1,), False, True)


def test_other_shapes_and_types_are_problems():
    result = of(ONE, ONE[:1])
    assert result.problem == "float32[2, 3] instead of float32[1, 3]" and not result.is_within
    assert (result.absolute, result.count, result.position) == (inf, 6, None) and not of(ONE[:0], ONE[:, :0]).is_within
    result = difference("y", elements([1.0], bfloat16), np.array([2.0]), EXACT, same_dtype=True)
    assert (result.problem, result.absolute) == ("bfloat16[1] instead of float64[1]", 1.0) and not result.is_within
    assert of(ONE, ONE.astype(float)).is_within and not of(ONE, ONE.astype(float)).is_equal


def test_texts_and_fields():
    assert str(of(ONE, ONE)) == "y: equal" and str(of(ONE[:0], ONE[:0])) == "y: equal, without elements"
    assert str(of(ONE, ONE.T)) == "y: float32[2, 3] instead of float32[3, 2]"
    result = of([1.0, 2.5], [1.0, 2.0], Tolerance(0.0, 0.25))
    assert str(result) == (
        "y: 1 of 2 elements differ, 1 beyond the tolerance, by at most 0.5 (relative 0.25, 2 of the "
        "tolerance); the worst is y[1] = 2.5, expected 2"
    )
    assert str(of([2.5], [2.0], Tolerance(0, 1.0))).startswith("y: within the tolerance: 1 of 1 elements differ, by")
    fields = result.as_json()
    assert (fields["position"], fields["within"], fields["allowed"], fields["expected"]) == ([1], False, 0.25, 2.0)
    assert of([1j], [2j]).as_json()["actual"] == "1j" and of([1], [1]).as_json()["position"] is None


def test_several_arrays_are_one_difference():
    small, large = of([1.0, 1.5], [1.0, 1.0], Tolerance(0, 0.1)), of([9.0], [5.0], Tolerance(0, 8.0))
    result = combined([small, large])
    assert (result.absolute, result.relative, result.ratio) == (4.0, 0.8, 5.0)
    assert (result.size, result.count, result.beyond, result.position) == (3, 2, 1, (1,))
    assert not result.is_equal and not combined([small, of(ONE, ONE.T)]).is_within
    other_type = difference("z", ONE, ONE.astype(float), same_dtype=True)
    assert not combined([of([2.5], [2.0], Tolerance(0, 1.0)), other_type]).is_within
    assert combined([]) == Difference()


def test_the_largest_finite_magnitude():
    assert largest(np.array([-3.0, inf])) == 3.0 and largest(np.zeros(0)) == 0.0
    assert largest(elements([-3.0, nan], bfloat16)) == 3.0 and largest(np.array([3 + 4j])) == 5.0


def ratio_of(exact, result) -> float:
    sums = SignalNoise()
    sums.add(np.array(exact, np.float32), np.array(result, np.float32))
    return sums.snr


def test_a_tenth_of_each_element_is_20_db():
    assert ratio_of([10.0, -20.0], [11.0, -18.0]) == pytest.approx(20)


def test_ratios_sum_over_all_arrays():
    sums = SignalNoise()
    sums.add(np.array([3.0]), np.array([3.0]))
    sums.add(np.array([4.0 + 0j]), np.array([4.0 + 0.5j]))
    assert (sums.signal, sums.noise, sums.terms) == (25.0, 0.25, 2)
    assert sums.snr == pytest.approx(20)


def test_equal_results_have_no_noise():
    assert ratio_of([1.0, inf, nan], [1.0, inf, nan]) == inf
    assert SignalNoise().snr != SignalNoise().snr


def test_an_overflow_leaves_no_signal():
    assert ratio_of([1.0, 2.0], [1.0, inf]) == -inf
    assert ratio_of([1.0, 2.0], [1.0, nan]) == -inf


def test_zeros_that_change_are_noise_alone():
    assert ratio_of([0.0], [1.0]) < -1000


def test_ratios_read_bf16_as_numbers():
    sums = SignalNoise()
    sums.add(np.array([10.0], np.float32), narrow(np.array([11.0], np.float32), bfloat16))
    assert sums.snr == pytest.approx(20)
