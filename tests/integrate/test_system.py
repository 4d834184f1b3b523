"""Parts that the integrators share: rising times, weighted sums of rates, norms, and equal steps."""

from __future__ import annotations

import numpy as np

import graphc as gc
from graphc.integrate.system import advanced, equal_steps, norm_of, rising


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def test_falling_times_become_rising_ones_with_the_opposite_rate():
    times, sign, rate = rising("test", f64([3.0, 1.0, 0.0]), f64(0.0), lambda t, ys: [10 * t + ys[0]])
    assert times.tolist() == [-3.0, -1.0, 0.0]
    assert sign.item() == -1
    assert rate(f64(-3.0), [f64(1.0)])[0].item() == -31


def test_a_sum_of_rates_leaves_out_zeros_and_does_not_multiply_by_one():
    rates = [[f64(float("nan"))], [f64(2.0)], [f64(3.0)]]
    assert advanced([f64(1.0)], f64(0.5), (0.0, 1.0, 2.0), rates)[0].item() == 1 + 0.5 * (2 + 6)
    assert advanced([f64(1.0)], f64(0.5), (0.0,), rates)[0].item() == 1


def test_the_norm_is_a_root_mean_square_over_all_tensors():
    errors, scales = [f64([3.0, 0.0]), f64(8.0)], [f64([1.0, 1.0]), f64(2.0)]
    np.testing.assert_allclose(norm_of(errors, scales).item(), np.sqrt((9 + 0 + 16) / 3))


def test_equal_steps_divide_each_interval():
    def step(t, h, state):
        return state[0] + h, state[1] + t

    times = f64([0.0, 1.0, 4.0])
    for substeps in (1, 2):
        last, stacked = equal_steps(step, (f64(0.0), f64(0.0)), times, substeps)
        assert stacked[0].tolist() == [1.0, 4.0]
        assert last[1].item() == (0 + 1 if substeps == 1 else 0 + 0.5 + 1 + 2.5)
