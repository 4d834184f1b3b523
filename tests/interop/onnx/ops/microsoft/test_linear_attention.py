"""Operators of models with linear attention, against numpy and onnxruntime, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import graphc as gc
from graphc.base.errors import UnsupportedError
from tests.interop.onnx.one_node import MICROSOFT, check, floats, model_of, needs_runtime

BATCH, TIME, HEADS, SIZE = 2, 5, 2, 4
PLAIN: dict[str, Any] = {"domain": MICROSOFT, "tolerance": 1e-4}
RUNTIME: dict[str, Any] = {**PLAIN, "runtime": True}
THREE = [floats(BATCH, TIME, HEADS * SIZE, seed=seed) for seed in (1, 2, 3)]
STATE, DECAY = floats(BATCH, HEADS, SIZE, SIZE, seed=4), -np.abs(floats(BATCH, TIME, HEADS, seed=5))
RATE = np.abs(floats(BATCH, TIME, HEADS, seed=6)) * 0.3


@needs_runtime
@pytest.mark.parametrize(
    ("rule", "gates"),
    [("linear", ()), ("gated", (DECAY,)), ("delta", (None, RATE)), ("gated_delta", (DECAY, RATE))],
    ids=["linear", "gated", "delta", "gated_delta"],
)
def test_recurrences_are_those_of_onnxruntime(rule, gates):
    options = {"q_num_heads": HEADS, "kv_num_heads": HEADS, "update_rule": rule, "outputs": 2}
    check("LinearAttention", *THREE, STATE, *gates, **options, **RUNTIME)


IMAGE, FILTERS, BIAS = floats(BATCH, 6, TIME), floats(6, 1, 4, seed=1), floats(6, seed=2)


def _convolved(x: np.ndarray, past: np.ndarray, dilation: int) -> list[np.ndarray]:
    steps = np.concatenate([past, x], 2)
    taps = [steps[:, :, i * dilation : i * dilation + TIME] * FILTERS[:, :, i] for i in range(4)]
    return [np.sum(taps, 0) + BIAS[:, None], steps[:, :, TIME:]]


@pytest.mark.parametrize("dilation", [1, 2])
@pytest.mark.parametrize("last", [0, 1])
def test_a_causal_convolution_returns_its_last_steps(dilation, last):
    past = floats(BATCH, 6, 3 * dilation, seed=3)
    expected = _convolved(IMAGE, past, dilation)
    arrays = [IMAGE, FILTERS, BIAS, past]
    if last:
        expected = [np.moveaxis(a, 1, -1) for a in expected]
        arrays = [np.moveaxis(IMAGE, 1, -1).copy(), FILTERS, BIAS, np.moveaxis(past, 1, -1).copy()]
    options = {"channels_last": last, "dilation": dilation, "constants": (1, 2), "outputs": 2}
    sizes = {0: ("b", *arrays[0].shape[1:]), 3: ("b", *arrays[3].shape[1:])}
    check("CausalConvWithState", *arrays, expected=expected, open_sizes=sizes, **options, **PLAIN)


@needs_runtime
def test_causal_convolutions_are_those_of_onnxruntime():
    past = floats(BATCH, 6, 6, seed=3)
    options = {"activation": "silu", "dilation": 2, "outputs": 2}
    check("CausalConvWithState", IMAGE, FILTERS, BIAS, past, **options, **RUNTIME)
    x, past = floats(BATCH, TIME, 2, 3), floats(BATCH, 3, 2, 3, seed=3)
    check("CausalConvWithState", x, FILTERS, BIAS, past, channels_last=1, outputs=2, **RUNTIME)
    check("CausalConvWithState", x, FILTERS, channels_last=1, outputs=2, **RUNTIME)


def test_other_forms_of_causal_convolutions_are_refused():
    module = gc.from_onnx(model_of("CausalConvWithState", (IMAGE, FILTERS), domain=MICROSOFT, state_window=2))
    with pytest.raises(UnsupportedError, match="state_window"):
        module(IMAGE, FILTERS)


X, GATE = floats(BATCH, TIME, 8), floats(BATCH, TIME, 8, seed=9)
GATES: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "LinearAttentionGate": ([X, floats(8, seed=1), floats(8, seed=2), GATE], {"outputs": 2}),
    "GatedRMSNorm": ([X, floats(4), GATE], {}),
    "GatedRMSNorm by sigmoid": ([X, floats(8), GATE], {"activation": "sigmoid", "epsilon": 1e-3}),
    "BranchwiseRMSNorm": ([X, floats(4)], {"num_branches": 2}),
    "BranchwiseRMSNorm of groups": ([X.reshape(BATCH, TIME, 2, 4), floats(8)], {}),
    "GatedAdd": ([X, GATE, floats(BATCH, TIME, 1)], {}),
}


@needs_runtime
@pytest.mark.parametrize("name", GATES)
def test_gates_are_those_of_onnxruntime(name):
    arrays, options = GATES[name]
    check(name.split()[0], *arrays, open_sizes={0: ("b", *arrays[0].shape[1:])}, **options, **RUNTIME)


def test_groups_are_divided_by_their_root_mean_square():
    groups, scale = X.reshape(BATCH, TIME, 2, 4), floats(4)
    normal = groups / np.sqrt((groups**2).mean(-1, keepdims=True) + 1e-5) * scale
    expected = normal.reshape(X.shape) * GATE / (1 + np.exp(-GATE))
    check("GatedRMSNorm", X, scale, GATE, expected=[expected], **PLAIN)
