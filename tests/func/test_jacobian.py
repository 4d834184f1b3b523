"""Jacobians and Hessians: shapes, nesting, both modes, compiled, and against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, AttributeValueError, ShapeError

RNG = np.random.default_rng(4)
X, W = RNG.standard_normal(3), RNG.standard_normal((2, 3))
BOTH = pytest.mark.parametrize("name", ["jacrev", "jacfwd"])


def tensors(*arrays):
    return [graphc.from_numpy(a.copy()) for a in arrays]


def network(x, w):
    return {"y": (w @ x).tanh(), "z": (x * x).sum() * w}


@BOTH
def test_known_jacobians(name: str):
    jacobian = getattr(graphc, name)
    x, w = tensors(X, W)
    np.testing.assert_allclose(jacobian(lambda x: x**3)(x).numpy(), np.diag(3 * X**2))
    np.testing.assert_allclose(jacobian(lambda x: (x**2).sum())(x).numpy(), 2 * X)
    np.testing.assert_allclose(jacobian(lambda x, w: w @ x)(x, w).numpy(), W)
    of_both = jacobian(lambda x, w: w @ x, argnums=(0, 1))(x, w)
    assert isinstance(of_both, tuple) and [j.shape for j in of_both] == [(2, 3), (2, 2, 3)]
    assert jacobian(lambda x: x.sum() * 0 + 1)(x).tolist() == [0, 0, 0]


@BOTH
def test_nesting_and_aux(name: str):
    jacobian = getattr(graphc, name)
    x, w = tensors(X, W)
    found, extra = jacobian(lambda p, k: ([p["x"] * k, p["w"].sum()], "extra"), has_aux=True)({"x": x, "w": w}, 2.0)
    assert extra == "extra"
    np.testing.assert_allclose(found[0]["x"].numpy(), 2 * np.eye(3))
    assert found[0]["w"].shape == (3, 2, 3) and not found[0]["w"].numpy().any()
    np.testing.assert_allclose(found[1]["w"].numpy(), np.ones((2, 3)))


@BOTH
def test_compiled_jacobians(name: str):
    jacobian = getattr(graphc, name)(network, argnums=(0, 1))
    x, w = tensors(X, W)
    eager, native = jacobian(x, w), graphc.compile(jacobian)(x, w)
    for key in ("y", "z"):
        for a, b in zip(eager[key], native[key], strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-9, 1e-12)


def test_hessian():
    x, w = tensors(X, W)
    np.testing.assert_allclose(graphc.hessian(lambda x: (x**3).sum())(x).numpy(), np.diag(6 * X), atol=1e-12)
    second = graphc.hessian(lambda x, w: ((w @ x) ** 2).sum(), argnums=(0, 1))
    (xx, xw), (wx, ww) = second(x, w)
    for rows, native in zip(second(x, w), graphc.compile(second)(x, w), strict=True):
        for a, b in zip(rows, native, strict=True):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-9, 1e-12)
    np.testing.assert_allclose(xx.numpy(), 2 * W.T @ W)
    np.testing.assert_allclose(xw.numpy().transpose(1, 2, 0), wx.numpy())
    assert ww.shape == (2, 3, 2, 3)


def test_jvp():
    x, w = tensors(X, W)
    output, tangent = graphc.jvp(network, (x, w), (x, w * 2))
    np.testing.assert_allclose(output["y"].numpy(), np.tanh(W @ X))
    np.testing.assert_allclose(tangent["y"].numpy(), (1 - np.tanh(W @ X) ** 2) * 3 * (W @ X))
    *_, extra = graphc.jvp(lambda x: (x, 5), (x,), (x,), has_aux=True)
    assert extra == 5
    assert graphc.jvp(lambda x: w * 2, (x,), (x,))[1].tolist() == [[0] * 3] * 2
    assert not tangent["y"].requires_grad


def test_jvp_refuses_what_does_not_fit():
    x, w = tensors(X, W)
    with pytest.raises(ArgumentError, match="tangents: a tuple of 2 in the primals and a tuple of 1"):
        graphc.jvp(network, (x, w), (x,))
    with pytest.raises(ShapeError, match="does not fit"):
        graphc.jvp(lambda x: x, (x,), (w,))
    with pytest.raises(ArgumentError, match="has_aux"):
        graphc.jvp(lambda x: x, (x,), (x,), has_aux=True)
    with pytest.raises(ArgumentError, match="argnums"):
        graphc.jacrev(network, argnums=2)(x, w)
    with pytest.raises(ArgumentError, match="has elements"):
        graphc.jacfwd(lambda x: x)(graphc.zeros(0))


def test_nothing_has_a_jacobian_without_rows():
    assert graphc.jacrev(lambda x: x[:0])(tensors(X)[0]).shape == (0, 3)


def test_the_same_as_pytorch(torch):

    def run(library, functions):
        x, w = library.from_numpy(X.copy()), library.from_numpy(W.copy())
        scalar = lambda x, w: (w @ x).tanh().prod() + (x**2 @ x)  # noqa: E731
        return [
            *(getattr(functions, n)(network, argnums=(0, 1))(x, w)[k] for n in ("jacrev", "jacfwd") for k in "yz"),
            *functions.hessian(scalar, argnums=(0, 1))(x, w),
            tuple(functions.jvp(network, (x, w), (x * 2, w + 1))[1].values()),
            functions.vjp(network, x, w)[1]({"y": x[:2], "z": w}),
        ]

    for ours, theirs in zip(run(graphc, graphc), run(torch, torch.func), strict=True):
        for a, b in zip(ours, theirs, strict=True):
            assert a.shape == tuple(b.shape)
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-9, 1e-12)


def test_eagerly_the_function_may_ask_for_values():
    x = tensors(X)[0]
    function = lambda x: x**2 if x.sum() > -100 else x  # noqa: E731
    for jacobian in (graphc.jacrev, graphc.jacfwd):
        np.testing.assert_allclose(jacobian(function)(x).numpy(), np.diag(2 * X))


def test_in_a_trace_all_rows_are_computed_at_once():
    """The number of nodes does not grow with the size."""
    counts = []
    for size in (3, 30):
        graph = graphc.trace(graphc.jacrev(lambda x: x.tanh() * x.sum()), graphc.ones(size))
        counts.append(sum(1 for _ in graph.nodes()))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("size", [0, 1.5, "all", True])
def test_chunks_have_a_size(size: object):
    with pytest.raises(AttributeValueError, match="jacrev: chunk_size must be None or at least 1"):
        graphc.jacrev(lambda x: x**2, chunk_size=size)  # type: ignore[arg-type]  # pyright: ignore


@pytest.mark.parametrize("function", [graphc.func.hessian, lambda f: graphc.func.jacfwd(graphc.func.jacrev(f))])
def test_second_derivatives_without_recording(function):
    """The backward pass in the batch of an outer derivative keeps the tangents of that derivative."""
    derivative, x = function(lambda x: (x**3).sum()), graphc.tensor([1.0, 2.0])
    with graphc.no_grad():
        assert derivative(x).tolist() == [[6, 0], [0, 12]]
        assert graphc.compile(derivative)(x).tolist() == [[6, 0], [0, 12]]

    def without(x):
        with graphc.no_grad():
            return derivative(x)

    assert graphc.compile(without)(x).tolist() == [[6, 0], [0, 12]]


def test_a_batched_backward_pass_of_an_eager_function_keeps_tangents():
    x = graphc.tensor([1.0, 2.0])

    def rows(x):
        _, pull = graphc.vjp(lambda x: (x**3).sum(), x)
        return graphc.vmap(lambda w: pull(w)[0])(graphc.tensor([1.0, 2.0]))

    with graphc.no_grad():
        assert graphc.jvp(rows, (x,), (graphc.ones(2),))[1].tolist() == [[6, 12], [12, 24]]
