"""LSTMs with quantized weights, against onnxruntime and a composition, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.interop.onnx.one_node import MICROSOFT, check, floats, needs_exact_bytes, needs_runtime

TIME, BATCH, INPUTS, HIDDEN = 5, 2, 6, 8
X = floats(TIME, BATCH, INPUTS)
CONSTANTS = (1, 2, 3, 8, 9, 10, 11)
OPTIONS: dict[str, Any] = {"domain": MICROSOFT, "outputs": 3, "constants": CONSTANTS, "hidden_size": HIDDEN}


def _codes(signed: bool, directions: int, rows: int, channels: bool, seed: int) -> list[np.ndarray]:
    """Return codes, scales and zero points of a weight."""
    rng = np.random.default_rng(seed)
    kind, low = (np.int8, -127) if signed else (np.uint8, 1)
    codes = rng.integers(low, low + 254, (directions, rows, 4 * HIDDEN)).astype(kind)
    shape = (directions, 4 * HIDDEN) if channels else (directions,)
    zero = np.full(shape, 0 if signed else 128, kind)
    return [codes, (rng.random(shape) * 0.002 + 0.003).astype(np.float32), zero]


def _inputs(signed: bool = True, directions: int = 1, channels: bool = False, **others: Any) -> list[Any]:
    w, w_scale, w_zero = _codes(signed, directions, INPUTS, channels, 1)
    r, r_scale, r_zero = _codes(signed, directions, HIDDEN, channels, 2)
    extra = [others.get(name) for name in ("lens", "h", "c", "p")]
    return [X, w, r, others.get("b"), *extra, w_scale, w_zero, r_scale, r_zero]


def _rounded(x: np.ndarray) -> np.ndarray:
    low, high = min(x.min(), 0), max(x.max(), 0)
    scale = np.float32((high - low) / 255 or 1)
    zero = np.clip(np.round(-low / scale), 0, 255)
    return (np.clip(np.round(x / scale) + zero, 0, 255) - zero) * scale


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def _lstm(arrays: list[Any]) -> list[np.ndarray]:
    """An LSTM in one direction without bias or peepholes, in f64."""
    weights = [(arrays[i][0].astype(float) - arrays[z][0]) * arrays[s][0] for i, s, z in ((1, 8, 9), (2, 10, 11))]
    hidden = cell = np.zeros((BATCH, HIDDEN))
    states = []
    for x in _rounded(X):
        i, o, f, c = np.split(x @ weights[0] + _rounded(hidden) @ weights[1], 4, -1)
        cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(c)
        hidden = _sigmoid(o) * np.tanh(cell)
        states.append(hidden)
    return [np.stack(states)[:, None], hidden[None], cell[None]]


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("channels", [True, False])
def test_inputs_and_states_are_rounded_to_256_levels(signed, channels):
    arrays = _inputs(signed, channels=channels)
    sizes = {0: ("t", "n", INPUTS)}
    check("DynamicQuantizeLSTM", *arrays, expected=_lstm(arrays), tolerance=1e-4, open_sizes=sizes, **OPTIONS)


@needs_exact_bytes
@needs_runtime
@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_an_lstm_with_quantized_weights_computes_what_onnxruntime_does(signed, direction):
    directions = 2 if direction == "bidirectional" else 1
    bias = floats(directions, 8 * HIDDEN, seed=3) * 0.2
    states = [floats(directions, BATCH, HIDDEN, seed=seed) for seed in (4, 5)]
    arrays = _inputs(signed, directions, b=bias, h=states[0], c=states[1])
    options = {"direction": direction, "runtime": True, "tolerance": 1e-5, **OPTIONS}
    check("DynamicQuantizeLSTM", *arrays, open_sizes={0: ("t", BATCH, INPUTS)}, **options)


@needs_exact_bytes
@needs_runtime
def test_lengths_and_peepholes_are_those_of_an_lstm():
    arrays = _inputs(lens=np.array([5, 3], np.int32), p=floats(1, 3 * HIDDEN, seed=6) * 0.2)
    check("DynamicQuantizeLSTM", *arrays, runtime=True, tolerance=1e-5, **OPTIONS)
