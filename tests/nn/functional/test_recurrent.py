"""Steps of recurrent networks against their formulas."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import ShapeError
from graphc.nn.functional.recurrent import STEPS, recurrent_cell, recurrent_layer, stacked
from tests.nn.compare import floats, tensor


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def parameters(gates: int) -> list[np.ndarray]:
    return [floats(gates * 4, 3), floats(gates * 4, 4, seed=1), floats(gates * 4, seed=2), floats(gates * 4, seed=3)]


def test_lstm_formula():
    w, u, b, c = parameters(4)
    x, h, cell = floats(2, 3, seed=4), floats(2, 4, seed=5), floats(2, 4, seed=6)
    i, f, g, o = np.split(x @ w.T + b + h @ u.T + c, 4, axis=1)
    new_cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    found = recurrent_cell("LSTM", tensor(x), (tensor(h), tensor(cell)), *map(tensor, (w, u, b, c)))
    np.testing.assert_allclose(found[1].numpy(), new_cell, rtol=1e-10)
    np.testing.assert_allclose(found[0].numpy(), sigmoid(o) * np.tanh(new_cell), rtol=1e-10)


def test_gru_formula():
    w, u, b, c = parameters(3)
    x, h = floats(2, 3, seed=4), floats(2, 4, seed=5)
    xr, xz, xn = np.split(x @ w.T + b, 3, axis=1)
    hr, hz, hn = np.split(h @ u.T + c, 3, axis=1)
    new = np.tanh(xn + sigmoid(xr + hr) * hn)
    expected = (1 - sigmoid(xz + hz)) * new + sigmoid(xz + hz) * h
    found = recurrent_cell("GRU", tensor(x), (tensor(h),), *map(tensor, (w, u, b, c)))
    np.testing.assert_allclose(found[0].numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", sorted(STEPS))
def test_layer_is_its_steps(kind: str):
    _, gates, kinds = STEPS[kind]
    weights = [tensor(p) for p in parameters(gates)]
    x, state = tensor(floats(5, 2, 3)), (tensor(floats(2, 4)),) * kinds
    forward, end = recurrent_layer(kind, x, state, *weights)
    backward, start = recurrent_layer(kind, x, state, *weights, reverse=True)
    here, there = state, state
    for t in range(5):
        here = recurrent_cell(kind, x[t], here, *weights)
        there = recurrent_cell(kind, x[4 - t], there, *weights)
        np.testing.assert_allclose(forward[t].numpy(), here[0].numpy(), rtol=1e-10)
        np.testing.assert_allclose(backward[4 - t].numpy(), there[0].numpy(), rtol=1e-10)
    for found, expected in zip((*end, *start), (*here, *there), strict=True):
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-10)


def test_empty_sequence():
    with pytest.raises(ShapeError, match="no steps"):
        recurrent_layer("GRU", tensor(floats(0, 2, 3)), (tensor(floats(2, 4)),), *map(tensor, parameters(3)))


def test_stacked():
    assert stacked([tensor(floats(2)), tensor(floats(2))]).shape == (2, 2)
