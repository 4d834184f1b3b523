"""Tests of pooling: values and gradients against PyTorch's, edge cases of the window rules."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

import graphc as gc
from graphc.errors import AttributeValueError, DTypeError
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.statements import Load, walk
from graphc.ir.op import REGISTRY
from graphc.ir.types import TensorType
from graphc.lowering.program import lower_graph
from graphc.ops.reduction import window
from graphc.passes.pipeline import optimize


def run(name, *arrays, **attrs):
    op = REGISTRY[name]
    return op.evaluate(arrays, op.normalize(attrs))[0]


def pairs(padding):
    return tuple((p, p) for p in padding)


@pytest.mark.parametrize("kernel,stride,padding,dilation", [(2, 2, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2), (2, 3, 1, 1)])
def test_max_pool_is_torch(torch, kernel, stride, padding, dilation):
    x = np.random.default_rng(0).integers(-4, 4, (2, 3, 9, 11)).astype(np.float32)  # many ties
    given = {"kernel": (kernel,) * 2, "stride": (stride,) * 2, "padding": pairs((padding,) * 2)}
    t = torch.tensor(x, requires_grad=True)
    expected = torch.nn.functional.max_pool2d(t, kernel, stride, padding, dilation)
    got = run("max_pool", x, dilation=(dilation,) * 2, **given)
    np.testing.assert_array_equal(got, expected.detach().numpy())
    g = np.random.default_rng(1).standard_normal(got.shape).astype(np.float32)
    expected.backward(torch.tensor(g))
    got = run("max_pool_grad", x, g, dilation=(dilation,) * 2, **given)
    np.testing.assert_allclose(got, t.grad.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel,stride,padding,include", [(2, 2, 0, True), (3, 2, 1, True), (3, 1, 1, False)])
def test_avg_pool_is_torch(torch, kernel, stride, padding, include):
    x = np.random.default_rng(0).standard_normal((2, 3, 9, 11)).astype(np.float32)
    given = {"kernel": (kernel,) * 2, "stride": (stride,) * 2, "padding": pairs((padding,) * 2)}
    t = torch.tensor(x, requires_grad=True)
    expected = torch.nn.functional.avg_pool2d(t, kernel, stride, padding, count_include_pad=include)
    got = run("avg_pool", x, count_include_pad=include, **given)
    np.testing.assert_allclose(got, expected.detach().numpy(), rtol=1e-5, atol=1e-6)
    g = np.random.default_rng(1).standard_normal(got.shape).astype(np.float32)
    expected.backward(torch.tensor(g))
    got = run("avg_pool_grad", g, size=(9, 11), count_include_pad=include, **given)
    np.testing.assert_allclose(got, t.grad.numpy(), rtol=1e-5, atol=1e-6)


def test_nan_wins_and_padding_never_does():
    x = np.array([[np.nan, 1], [-np.inf, -np.inf]], np.float32)
    given = {"kernel": (2, 2), "stride": (2, 2), "padding": ((1, 1), (1, 1)), "dilation": (1, 1)}
    got = run("max_pool", x, **given)
    np.testing.assert_array_equal(got, x)
    ones = np.ones((2, 2), np.float32)
    np.testing.assert_array_equal(run("max_pool_grad", x, ones, **given), ones)


def test_lowest_integer_is_chosen_over_padding():
    x = np.full((3, 3), np.iinfo(np.int32).min, np.int32)
    given = {"kernel": (2, 2), "stride": (1, 1), "padding": ((1, 0), (1, 0)), "dilation": (1, 1)}
    g = np.arange(9, dtype=np.int32).reshape(3, 3)
    got = run("max_pool_grad", x, g, **given)
    expected = np.array([[8, 5, 0], [7, 8, 0], [0, 0, 0]], np.int32)
    expected[0, 0] = 0 + 1 + 3 + 4
    expected[0, 1], expected[1, 0], expected[1, 1] = 2 + 5, 6 + 7, 8
    np.testing.assert_array_equal(got, expected)


def test_pick_is_the_transpose_of_grad():
    random = np.random.default_rng(2)
    x, h = random.standard_normal((2, 2, 3, 8, 7))
    attrs = {"kernel": (3, 2), "stride": (2, 1), "padding": ((1, 1), (0, 1)), "dilation": (1, 2)}
    g = random.standard_normal(run("max_pool", x, **attrs).shape)
    left = np.vdot(run("max_pool_pick", x, h, **attrs), g)
    np.testing.assert_allclose(left, np.vdot(h, run("max_pool_grad", x, g, **attrs)))
    np.testing.assert_array_equal(run("max_pool_pick", x, x, **attrs), run("max_pool", x, **attrs))


def test_wrong_attributes():
    op = REGISTRY["max_pool"]
    x = TensorType(window.float32, (1, 4, 4))
    attrs = op.normalize({"kernel": (2, 2), "stride": (2, 2), "padding": ((0, 2), (0, 0)), "dilation": (1, 1)})
    with pytest.raises(AttributeValueError, match="smaller than the window"):
        op.result_types((x,), attrs)
    attrs["padding"] = ((0, 0), (0, 0))
    assert op.result_types((x,), attrs) == (TensorType(window.float32, (1, 2, 2)),)
    with pytest.raises(DTypeError):
        op.result_types((TensorType(window.bool_, (1, 4, 4)),), attrs)


WIDE = [  # sizes, kernel, stride, padding of windows that overlap much, or are larger than what they slide over
    ((7, 7), (13, 13), (1, 1), ((6, 6), (6, 6))),
    ((9, 6), (5, 4), (1, 1), ((2, 2), (1, 2))),
    ((12, 20), (8, 9), (2, 1), ((0, 3), (4, 4))),
    ((6, 5, 4), (3, 3, 3), (1, 1, 1), ((1, 1), (1, 1), (1, 1))),
]


def reads(graph: Graph) -> int:
    """Count the elements that a program reads."""
    total = 0
    for kernel in lower_graph(graph).kernels:
        total += sum(prod(loop.axis.extent for loop in loops) for s, loops in walk(kernel.body) if isinstance(s, Load))
    return total


@pytest.mark.parametrize(("sizes", "kernel", "stride", "padding"), WIDE)
@pytest.mark.parametrize("op", ["max", "avg", "avg of what is there", "gradient"])
def test_overlapping_windows_are_pooled_one_dimension_after_the_other(op, sizes, kernel, stride, padding):
    attrs = {"kernel": kernel, "stride": stride, "padding": padding}

    def function(x):
        if op == "max":
            return window.max_pool(x, **attrs, dilation=(1,) * len(kernel))
        if op == "gradient":
            return window.avg_pool_grad(x, size=sizes, **attrs, count_include_pad=False)
        return window.avg_pool(x, **attrs, count_include_pad=op == "avg")

    slide = window.Sliding(kernel, stride, padding, (1,) * len(kernel))
    counts = slide.output("pool", sizes)
    x = gc.randn(2, *(counts if op == "gradient" else sizes))
    graph = optimize(gc.trace(function, x))
    assert len([n for n in graph.nodes() if "pool" in n.op.name]) == len(kernel)
    assert reads(graph) <= prod(counts) * prod(kernel) * 2 // (1 if op == "gradient" else 2)
    np.testing.assert_allclose(gc.compile(function)(x).numpy(), function(x).numpy(), rtol=1e-5, atol=1e-6)


def test_what_wins_a_window_wins_it_by_rows_too():
    x = gc.randn(1, 1, 8, 8)
    x[0, 0, 2, 3], x[0, 0, 5] = np.nan, -np.inf
    attrs = {"kernel": (5, 5), "stride": (1, 1), "padding": ((2, 2), (2, 2)), "dilation": (1, 1)}
    result = gc.compile(lambda x: window.max_pool(x, **attrs))(x).numpy()
    np.testing.assert_array_equal(result, window.max_pool(x, **attrs).numpy())


@pytest.mark.parametrize(("kernel", "stride"), [((3, 3), (2, 2)), ((8, 8), (8, 8)), ((3, 3), (1, 1)), ((9, 1), (1, 1))])
def test_windows_that_overlap_little_are_pooled_at_once(kernel, stride):
    attrs = {"kernel": kernel, "stride": stride, "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}
    graph = optimize(gc.trace(lambda x: window.max_pool(x, **attrs), gc.rand(2, 3, 24, 24)))
    assert [n.op.name for n in graph.nodes()] == ["max_pool"]
