"""Stochastic equations with known moments and paths: strong orders, kinds of noise, equal paths in all modes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.base.errors import ArgumentError, ConditionError, ShapeError
from graphc.integrate import sdeint


def f64(*values):
    return gc.tensor(*values, dtype=gc.float64)


def brownian(seed, steps, paths):
    """Return the increments of a path [steps, paths] as ``sdeint`` draws them on a unit interval."""
    gc.manual_seed(seed)
    start = gc.zeros(paths, dtype=gc.float64)
    t = gc.linspace(0, 1, steps + 1, dtype=gc.float64)
    path = sdeint(lambda t, y: 0 * y, lambda t, y: gc.ones_like(y), start, t)
    return np.diff(path.numpy(), axis=0)


# Geometric Brownian motion dy = a y dt + b y dW: the Ito solution is exp((a - b^2 / 2) t + b W), the Stratonovich one
# exp(a t + b W).
A, B = 0.5, 0.8


@pytest.mark.parametrize("method, order", [("euler", 0.5), ("milstein", 1.0), ("heun", 1.0)])
def test_paths_converge_with_the_strong_order(method, order):
    errors = []
    solve = gc.compile(lambda y0, t: sdeint(lambda t, y: A * y, lambda t, y: B * y, y0, t, method=method))
    for steps in (32, 128, 512):
        final = brownian(3, steps, 400).sum(0)
        gc.manual_seed(3)
        t, y0 = gc.linspace(0, 1, steps + 1, dtype=gc.float64), gc.ones(400, dtype=gc.float64)
        y = solve(y0, t)
        exact = np.exp((A if method == "heun" else A - B * B / 2) + B * final)
        errors.append(np.abs(y[-1].numpy() - exact).mean())
    orders = np.log(np.array(errors[:-1]) / errors[1:]) / np.log(4)
    assert np.all(np.abs(orders - order) < 0.2)


def test_a_seed_gives_one_path_in_eager_mode_and_compiled():
    def solve(y0):
        return sdeint(lambda t, y: -y, lambda t, y: 0.3 * y, y0, f64([0.0, 0.5, 1.0]), substeps=8)

    paths = []
    for run in (solve, gc.compile(solve)):
        gc.manual_seed(5)
        paths.append(run(gc.ones(4, dtype=gc.float64)).numpy())
    np.testing.assert_allclose(paths[0], paths[1], rtol=1e-12)
    assert len(set(paths[0][-1])) == 4


@pytest.mark.parametrize("method", ["euler", "heun"])
def test_general_noise_has_the_covariance_of_its_matrix(method):
    matrix = f64([[1.0, 0.0, 0.5], [0.5, 2.0, 0.0]])

    def one(start):
        return sdeint(lambda t, y: 0 * y, lambda t, y: matrix, start, f64([0.0, 1.0]), method=method, noise="general")

    gc.manual_seed(1)
    ends = gc.compile(lambda starts: gc.map(one, starts))(gc.zeros(4000, 2, dtype=gc.float64))[:, -1].numpy()
    np.testing.assert_allclose(np.cov(ends.T), (matrix @ matrix.mT).numpy(), atol=0.2)
    np.testing.assert_allclose(ends.mean(0), 0, atol=0.1)


def test_gradients_are_those_of_the_path():
    def end(b):
        y0 = gc.ones(3, dtype=gc.float64)
        return sdeint(lambda t, y: A * y, lambda t, y: b * y, y0, f64([0.0, 1.0]), substeps=16, method="milstein")

    def loss(b):
        return end(b)[-1].sum()

    def at(b):
        gc.manual_seed(2)
        return loss(f64(b)).item()

    for run in (gc.grad(loss), gc.compile(gc.grad(loss))):
        gc.manual_seed(2)
        np.testing.assert_allclose(run(f64(B)).item(), (at(B + 1e-5) - at(B - 1e-5)) / 2e-5, rtol=1e-7)


def test_errors_name_the_argument():
    y0, t = f64([1.0, 2.0]), f64([0.0, 1.0])
    with pytest.raises(ArgumentError, match="no method 'rk4'"):
        sdeint(lambda t, y: y, lambda t, y: y, y0, t, method="rk4")
    with pytest.raises(ArgumentError, match="no noise 'white'"):
        sdeint(lambda t, y: y, lambda t, y: y, y0, t, noise="white")
    with pytest.raises(ArgumentError, match="milstein needs diagonal noise"):
        sdeint(lambda t, y: y, lambda t, y: y, y0, t, method="milstein", noise="general")
    with pytest.raises(ArgumentError, match="substeps=0"):
        sdeint(lambda t, y: y, lambda t, y: y, y0, t, substeps=0)
    with pytest.raises(ArgumentError, match="one real tensor"):
        sdeint(lambda t, y: y, lambda t, y: y, (y0, y0), t)
    with pytest.raises(ShapeError, match=r"diffusion returns shape \[\] for a state of \[2\] and diagonal noise"):
        sdeint(lambda t, y: y, lambda t, y: y.sum(), y0, t)
    with pytest.raises(ConditionError, match="must rise"):
        sdeint(lambda t, y: y, lambda t, y: y, y0, f64([1.0, 0.0]))
