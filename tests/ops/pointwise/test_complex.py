"""Parts of complex numbers: arithmetic, reductions, products and gradients against PyTorch, views that share memory."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from tests.tensors.against_torch import agree, numbers

X, Y = numbers(3, 4), numbers(3, 4, seed=1)


@pytest.mark.torch
def test_arithmetic_is_that_of_torch():
    agree(
        {
            "products": lambda library, x, y: (x * y + x / y - 2j * x) * (1 - 1j),
            "with real": lambda library, x, y: x * y.real + x.imag - y / 3,
            "parts": lambda library, x, y: library.complex(x.imag, y.real) + x.conj(),
            "size": lambda library, x, y: x.abs() * y.angle(),
            "sign": lambda library, x, y: library.sgn(x) * y,
            "polar": lambda library, x, y: library.polar(x.abs(), y.angle()),
            "memory": lambda library, x, y: library.view_as_complex(library.view_as_real(x) * 2) + y,
            "equal": lambda library, x, y: (x == y) | (x != x * 1),
            "logic": lambda library, x, y: library.logical_and(x, y) ^ library.isfinite(x),
            "narrow": lambda library, x, y: x.to(library.complex64).to(library.complex128).real * 0 + x,
        },
        X,
        Y,
    )


@pytest.mark.torch
def test_reductions_and_products_are_those_of_torch():
    agree(
        {
            "sums": lambda library, x, y: x.sum(1, keepdim=True) + y.mean(0) + x.var(1).sum(),
            "norms": lambda library, x, y: x.norm() + library.abs(y).max(),
            "products": lambda library, x, y: x.prod(1) + y.prod(),
            "running": lambda library, x, y: x.cumsum(1) * y.cumprod(0),
            "matmul": lambda library, x, y: x @ y.mH + library.einsum("ij,kj->ik", x, y),
            "vectors": lambda library, x, y: library.vdot(x[0], y[1]) + library.dot(x[2], y[0]),
            "addmm": lambda library, x, y: library.addmm(x[:, :3], x, y.T, beta=0.5, alpha=2),
            "outer": lambda library, x, y: library.outer(x[0], y[1]) + library.tensordot(x, y, 2),
        },
        X,
        Y,
    )


@pytest.mark.torch
def test_elements_move_as_in_torch():
    agree(
        {
            "shapes": lambda library, x: x.reshape(4, 3).T.flip(0).roll(1, 1)[None].expand(2, 3, 4),
            "indices": lambda library, x: x[:, [0, 2, 2]] + x[1:2, ::2].sum(),
            "gather": lambda library, x: x.gather(1, library.tensor([[0, 1], [1, 1], [3, 0]])),
            "add": lambda library, x: library.index_add(x, 1, library.tensor([0, 1]), x[:, :2] * 1j),
            "join": lambda library, x: library.cat([x, library.stack([x[0], x[1]]) * 1j], 0),
            "choose": lambda library, x: library.where(x.real > 0, x, x * 2j).masked_fill(x.imag > 0.5, 1 - 1j),
            "triangle": lambda library, x: library.tril(x) + library.triu(x, 1) * 1j,
            "pad": lambda library, x: library.nn.functional.pad(x, (1, 2)),
            "in place": lambda library, x: changed(x),
        },
        X,
    )


def changed(x):
    y = x.clone().mul_(2j).add_(1)
    y[0] = 1j
    y[:, 1] *= 2
    y.real[2] = 5.0
    return y


@pytest.mark.torch
def test_convolutions_are_those_of_torch():
    conv = {"conv1d": lambda library, x, w: library.nn.functional.conv1d(x, w, padding=1, stride=2)}
    agree(conv, numbers(2, 3, 9), numbers(4, 3, 3, seed=2))


def test_parts_share_memory_and_leave_gradients():
    x = graphc.tensor([1 + 2j, 3 - 1j])
    x.real[0] = 7.0
    graphc.view_as_real(x)[1, 1] = 5.0
    np.testing.assert_array_equal(x.numpy(), [7 + 2j, 3 + 5j])
    assert x.imag.numpy().base is not None and np.shares_memory(x.imag.numpy(), x.numpy())
    strided = graphc.view_as_real(graphc.tensor(X).T[::2])
    np.testing.assert_array_equal(strided.numpy()[..., 1], X.T[::2].imag)


def test_wrong_parts_are_refused():
    with pytest.raises(graphc.errors.DTypeError, match="imag is for complex tensors"):
        _ = graphc.tensor([1.0]).imag
    with pytest.raises(graphc.errors.DTypeError, match="parts are f32 and f64"):
        graphc.complex(graphc.ones(2), graphc.ones(2, dtype=graphc.float64))
    with pytest.raises(graphc.errors.GradientError, match="real"):
        (graphc.tensor([1j], requires_grad=True) * 1).sum().backward()
