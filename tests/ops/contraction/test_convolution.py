"""Tests of convolution: PyTorch's values and gradients, adjointness, decompositions, second order."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.base.dtypes import dtype_of
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import evaluate
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from graphc.ops.contraction import convolution
from graphc.ops.dispatch import GraphDispatcher, use

NAMES = [f.op.name for f in (convolution.conv, convolution.conv_grad_input, convolution.conv_grad_weight)]
SAMPLES = [(name, i) for name in NAMES for i in range(len(REGISTRY[name].samples()))]


def run(name, *arrays, **attrs):
    op = REGISTRY[name]
    return op.evaluate(arrays, op.normalize(attrs))[0]


def emit(function, arrays):
    """Value of a function of graph values, and the names of the ops that it used."""
    graph = Graph()
    operands = [graph.add_input(TensorType(dtype_of(a.dtype), a.shape), f"x{i}") for i, a in enumerate(arrays)]
    with use(GraphDispatcher(graph)):
        graph.set_outputs([function(*operands)])
    return evaluate(graph, arrays)[0], {node.op.name for node in graph.nodes()}


@pytest.mark.parametrize("number", range(7))
def test_conv_is_torch(torch, number):
    sample = REGISTRY["conv"].samples()[number]
    x, w = sample.operands
    attrs = sample.attrs
    tx, tw = (torch.tensor(a, requires_grad=True) for a in (x, w))
    flat = [p for pair in reversed(attrs["padding"]) for p in pair]
    function = torch.nn.functional.conv1d if x.ndim == 3 else torch.nn.functional.conv2d
    expected = function(
        torch.nn.functional.pad(tx, flat), tw, None, attrs["stride"], 0, attrs["dilation"], attrs["groups"]
    )
    got = run("conv", x, w, **attrs)
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-4, atol=1e-5)
    g = np.random.default_rng(1).standard_normal(got.shape).astype(x.dtype)
    expected.backward(torch.tensor(g))
    dx = run("conv_grad_input", g, w, size=x.shape[2:], **attrs)
    dw = run("conv_grad_weight", x, g, kernel=w.shape[2:], **attrs)
    np.testing.assert_allclose(dx, tx.grad.numpy(), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dw, tw.grad.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name,number", SAMPLES)
def test_decomposition_is_equal(name, number):
    op = REGISTRY[name]
    sample = op.samples()[number]
    attrs = op.normalize(sample.attrs)
    expected = op.evaluate(sample.operands, attrs)[0]
    padded = any(any(pair) for pair in attrs["padding"])
    single = name == "conv" and all(n == 1 for n in sample.operands[1].shape[1:]) and attrs["groups"] == 1
    if not padded and name != "conv_grad_input" and not single:
        assert op.decompose(*sample.operands, **attrs) is None
        return
    got, used = emit(lambda *operands: op.decompose(*operands, **attrs), sample.operands)
    np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)
    assert "conv_grad_input" not in used and ("pad" in used or not expected.size or (single and "mul" in used))


def test_a_window_of_one_number_is_an_elementwise_product():
    x, weight = np.array([[[-0.0, 2.0, np.inf]]], np.float32), np.array([[[3.0]], [[0.0]]], np.float32)
    attrs = convolution.conv.op.normalize({"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1})
    got, used = emit(lambda *operands: convolution.conv.op.decompose(*operands, **attrs), (x, weight))
    np.testing.assert_array_equal(got, convolution.conv.op.evaluate((x, weight), attrs)[0])
    assert not np.signbit(got[:, :, 0]).any() and "conv" not in used
    assert convolution.conv.op.decompose(x, weight, **{**attrs, "stride": (2,)}) is None


@pytest.mark.parametrize("name,number", SAMPLES)
def test_gradient_rules_are_adjoint(name, number):
    """conv is linear in each operand: <g, f(x)> == <rule(g), x>, for each of the three ops."""
    op = REGISTRY[name]
    sample = op.samples()[number]
    operands = [a.astype(np.float64) for a in sample.operands]
    attrs = op.normalize(sample.attrs)
    result = op.evaluate(operands, attrs)[0]
    g = np.random.default_rng(2).standard_normal(result.shape)
    for rule, operand in zip(op.vjp, operands, strict=True):
        gradient, _ = emit(lambda g, r, *v, rule=rule: rule(g, r, *v, **attrs), [g, result, *operands])
        np.testing.assert_allclose(np.vdot(gradient, operand), np.vdot(g, result), rtol=1e-9)


def test_empty_batch():
    attrs = {"stride": (1, 1), "padding": ((1, 1), (0, 0)), "dilation": (1, 1), "groups": 1}
    x, w = np.zeros((0, 2, 4, 4), np.float32), np.ones((3, 2, 3, 3), np.float32)
    y = run("conv", x, w, **attrs)
    assert y.shape == (0, 3, 4, 2)
    assert run("conv_grad_input", y, w, size=(4, 4), **attrs).shape == x.shape
    np.testing.assert_array_equal(run("conv_grad_weight", x, y, kernel=(3, 3), **attrs), np.zeros_like(w))


def test_integers():
    attrs = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1}
    x, w = np.arange(6, dtype=np.int32).reshape(1, 1, 6), np.array([[[1, -2, 3]]], np.int32)
    np.testing.assert_array_equal(run("conv", x, w, **attrs), [[[4, 6, 8, 10]]])


@pytest.mark.parametrize("most", [1, 200, 1000])
@pytest.mark.parametrize("groups", [1, 2])
def test_windows_that_are_copied_in_blocks(monkeypatch: pytest.MonkeyPatch, most: int, groups: int) -> None:
    random = np.random.default_rng(0)
    x, weight = (random.integers(-5, 6, s).astype(np.float32) for s in ((2, 4, 9, 7), (6, 4 // groups, 3, 2)))
    attrs = {"stride": (2, 1), "padding": ((1, 0), (2, 1)), "dilation": (1, 2), "groups": groups}
    at_once = run("conv", x, weight, **attrs)
    assert at_once.shape == (2, 6, 4, 8)
    monkeypatch.setattr(convolution, "_MOST_COLUMNS", most)
    np.testing.assert_array_equal(run("conv", x, weight, **attrs), at_once)
