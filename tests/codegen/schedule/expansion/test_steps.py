"""The steps of vector math, each over the numbers that its promise covers."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import float32, float64
from graphc.codegen.schedule.expansion import steps
from tests.codegen.lanes import evaluate
from tests.native import target_or_skip

both = pytest.mark.parametrize("dtype", [float32, float64], ids=str)


@both
def test_format_describes_the_bits(dtype):
    layout, info = steps.format_of(dtype), np.finfo(dtype.numpy)
    assert (layout.mantissa, layout.tiny) == (info.nmant, info.tiny)
    for value, bits in ((1, layout.one), (2 / 3, layout.two_thirds)):
        assert np.array(value, dtype.numpy).view(layout.integer.numpy) == bits


@both
@pytest.mark.parametrize("count", [1, 2, steps.LONG, steps.LONG + 1, 2 * steps.LONG + 5, 4 * steps.LONG])
def test_polynomials_of_any_length_have_all_their_terms(dtype, count: int):
    coefficients = [float(k + 1) for k in range(count)]
    x = np.array([0, 1, -1, 2, -2, 0.5], dtype.numpy)
    got = evaluate(lambda nest, v: steps.polynomial(nest, v, coefficients) + v * 0.0, [dtype], [x])
    np.testing.assert_allclose(got, np.polyval(coefficients[::-1], x.astype(np.float64)), rtol=1e-6)


@both
def test_nearest_rounds_halves_to_even(dtype):
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 3.49, -3.51, 0], dtype.numpy)
    got = evaluate(lambda nest, v: steps.nearest(nest, v, 1.0)[1], [dtype], [x])
    np.testing.assert_array_equal(got, np.rint(x))


@both
@pytest.mark.parametrize("offset", [-1, 0, 1])
def test_powers_of_two(dtype, offset: int):
    n = np.arange(-100, 100).astype(dtype.numpy)

    def power(nest, x):
        return steps.power_of_two(nest, steps.nearest(nest, x, 1.0)[0], offset)

    def inverse(nest, x):
        return steps.inverse_power_of_two(nest, steps.nearest(nest, x, 1.0)[0], offset)

    np.testing.assert_array_equal(evaluate(power, [dtype], [n]), np.exp2(n + offset))
    np.testing.assert_array_equal(evaluate(inverse, [dtype], [n]), np.exp2(offset - n))


@both
def test_inverse_power_of_two_ends_in_zero(dtype):
    largest = np.array([np.finfo(dtype.numpy).maxexp], dtype.numpy)
    got = evaluate(
        lambda nest, x: steps.inverse_power_of_two(nest, steps.nearest(nest, x, 1.0)[0], 1), [dtype], [largest]
    )
    assert got.tolist() == [0.0]


@both
@pytest.mark.parametrize("lanes", [2, 8, 16])
@pytest.mark.parametrize("level", ["sse2", "avx2", "avx512"])
def test_scale_rounds_denormal_results_once(dtype, level: str, lanes: int):
    target = target_or_skip(level)
    info = np.finfo(dtype.numpy)
    x = np.random.default_rng(1).uniform(0.5, 2, 400).astype(dtype.numpy)
    n = np.linspace(info.minexp - info.nmant - 3, info.maxexp + 1, 400).round().astype(dtype.numpy)
    with np.errstate(over="ignore", under="ignore"):
        want = np.ldexp(x, n.astype(np.int32))
    np.testing.assert_array_equal(evaluate(steps.scale, [dtype, dtype], [x, n], target, lanes), want)


@both
def test_split_is_exact_for_all_positive_numbers(dtype):
    info = np.finfo(dtype.numpy)
    x = np.exp2(np.random.default_rng(4).uniform(info.minexp - info.nmant + 1, info.maxexp, 4000)).astype(dtype.numpy)
    x = np.concatenate([x, np.array([info.tiny, info.max, info.smallest_subnormal, 1, 2 / 3, 4 / 3], dtype.numpy)])
    k = evaluate(lambda nest, v: steps.split_any(nest, v)[0], [dtype], [x])
    f = evaluate(lambda nest, v: steps.split_any(nest, v)[1], [dtype], [x])
    assert f.min() >= -0.33333335 and f.max() < 0.33333335
    np.testing.assert_array_equal(np.ldexp(1 + f.astype(np.longdouble), k.astype(np.int32)), x)


@both
def test_clamp_and_magnitude_keep_nan(dtype):
    x = np.array([np.nan, -np.inf, -3, 0.5, 3, np.inf], dtype.numpy)
    got = evaluate(lambda nest, v: steps.clamp(nest, v, -1.0, 2.0), [dtype], [x])
    np.testing.assert_array_equal(got, np.array([np.nan, -1, -1, 0.5, 2, 2], dtype.numpy))
    got = evaluate(lambda nest, v: steps.magnitude(nest, v, 2.0), [dtype], [x])
    np.testing.assert_array_equal(got, np.array([np.nan, 2, 2, 0.5, 2, 2], dtype.numpy))
