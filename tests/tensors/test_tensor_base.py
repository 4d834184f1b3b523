"""Versions, edges, gradients and hooks as tensors keep them."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import graphc
from graphc.errors import DTypeError, GradientError
from graphc.tensors.tensor_base import dtype_from, edge_of, refresh


class Exp(graphc.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]


def test_grad_must_fit():
    x = graphc.ones(2, requires_grad=True)
    x.grad = graphc.ones(2)
    with pytest.raises(GradientError, match=r"grad has shape \[3\], the tensor \[2\]"):
        x.grad = graphc.ones(3)
    with pytest.raises(DTypeError, match="grad is f64, the tensor f32"):
        x.grad = graphc.ones(2, dtype=graphc.float64)
    with pytest.raises(DTypeError, match="a tensor or None, got float"):
        x.grad = 1.0
    x.grad = None
    assert x.grad is None


def test_hooks_need_gradients():
    x = graphc.ones(2)
    with pytest.raises(GradientError, match="register_hook needs a tensor that requires"):
        x.register_hook(print)
    with pytest.raises(GradientError, match="does not require gradients"):
        x.retain_grad()
    y = x.requires_grad_() * 2
    with pytest.raises(GradientError, match="needs a leaf"):
        y.register_post_accumulate_grad_hook(print)
    x.retain_grad()
    assert not x.retains_grad
    y.retain_grad()
    assert y.retains_grad


def test_graphs_are_freed_without_the_garbage_collector():
    x = graphc.ones(2, requires_grad=True)
    gc.disable()
    try:
        y = Exp.apply((x * 2).exp()).sum()
        watch = weakref.ref(y.grad_fn.next_functions[0][0])
        y.backward()
        del y
        assert watch() is None
    finally:
        gc.enable()


def test_edges():
    x = graphc.ones(2, requires_grad=True)
    node, index = edge_of(x)
    assert node.variable is x and index == 0
    y = x.max(0).values
    assert edge_of(y) == (y.grad_fn, 0)
    assert y.register_gradient_edge()[0] is y.grad_fn


def test_versions_are_shared_by_views():
    x = graphc.zeros(2, 2)
    row, flat = x[0], x.view(-1)
    row.add_(1)
    flat.add_(1)
    assert (x._version, row._version, flat._version) == (2, 2, 2)
    assert x.clone()._version == 0 and x.detach()._version == 2
    assert row._is_view() and not x._is_view() and x._base is None
    assert refresh(row) is row


def test_arrays_of_other_types():
    assert dtype_from(np.zeros(1, np.int8)) is graphc.int8
    assert dtype_from(np.zeros(1, complex)) is graphc.complex128
    with pytest.raises(DTypeError, match="are not supported"):
        dtype_from(np.zeros(1, np.longdouble))
