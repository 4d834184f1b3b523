"""Steps of optimizers, and gradients of parts of a graph."""

import numpy as np
import pytest

pytest.importorskip("onnx")
from tests.interop.onnx.alike import check

DOMAIN = "ai.onnx.preview.training"
STEP = [np.float32(0.1), np.int64(3)]
X, G, V, H = (np.array(row, np.float32) for row in ([1, -2], [0.5, 4], [0.1, 0.2], [0.3, 0.4]))


def _text(node: str, states: str) -> str:
    inputs = ", ".join(f"float[2] {name}" for name in f"x g {states}".split())
    results = ", ".join(f"float[2] {name}2" for name in f"x {states}".split())
    names = ", ".join(f"{name}2" for name in f"x {states}".split())
    call = f"{DOMAIN}.{node}(r, t, x, g, {', '.join(states.split())})"
    return f"(float r, int64 t, {inputs}) => ({results}) {{ {names} = {call} }}"


def test_a_step_of_adagrad() -> None:
    h = H + G * G
    expected = [X - 0.1 / (1 + 3 * 0.5) * G / (np.sqrt(h) + 1e-3), h]
    check(_text("Adagrad<decay_factor=0.5, epsilon=0.001>", "h"), *STEP, X, G, H, expected=expected)


def test_a_step_of_adam() -> None:
    g = G + 0.2 * X
    v, h = 0.9 * V + 0.1 * g, 0.99 * H + 0.01 * g * g
    rate = 0.1 * np.sqrt(1 - 0.99**3) / (1 - 0.9**3)
    expected = [X - rate * v / (np.sqrt(h) + 1e-3), v, h]
    node = "Adam<alpha=0.9, beta=0.99, epsilon=0.001, norm_coefficient=0.2>"
    check(_text(node, "v h"), *STEP, X, G, V, H, expected=expected)


@pytest.mark.parametrize("mode", ["standard", "nesterov"])
def test_a_step_with_momentum(mode: str) -> None:
    v = 0.9 * V + 0.5 * G
    expected = [X - 0.1 * (G + 0.9 * v if mode == "nesterov" else v), v]
    node = f'Momentum<alpha=0.9, beta=0.5, mode="{mode}", norm_coefficient=0.0>'
    check(_text(node, "v"), *STEP, X, G, V, expected=expected)


def test_several_parameters_are_updated_at_once() -> None:
    text = """(float r, int64 t, float[2] a, float[2] b, float[2] ga, float[2] gb, float[2] va, float[2] vb)
        => (float[2] a2, float[2] b2, float[2] va2, float[2] vb2) {
        a2, b2, va2, vb2 = ai.onnx.preview.training.Momentum<alpha=0.0, beta=1.0, mode="standard",
            norm_coefficient=0.0>(r, t, a, b, ga, gb, va, vb)
    }"""
    expected = [X - 0.1 * G, H - 0.1 * V, G, V]
    check(text, *STEP, X, H, G, V, X, X, expected=expected)


def test_a_gradient_of_a_part_of_the_graph() -> None:
    text = """(float[2] a, float[2] b) => (float[2] y, float[2] da, float[2] db) {
        s = Add(a, b) p = Mul(s, a) y = Neg(p)
        da, db = ai.onnx.preview.training.Gradient<xs=["a", "b"], y="y">(a, b)
    }"""
    check(text, X, G, expected=[-(X + G) * X, -2 * X - G, -X])
