"""Derivatives at given inputs against known ones and against PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, AttributeValueError
from graphc.func import functional

RNG = np.random.default_rng(6)
X, W = RNG.standard_normal(3), RNG.standard_normal((2, 3))


def tensors():
    return graphc.from_numpy(X.copy()), graphc.from_numpy(W.copy())


def product(x, w):
    return (w @ x).tanh()


def number(x, w):
    return (w @ x).tanh().prod() + (x**3).sum()


def test_one_input_and_several():
    x, w = tensors()
    np.testing.assert_allclose(functional.jacobian(lambda x: w @ x, x).numpy(), W)
    (of_x,) = functional.jacobian(lambda x: w @ x, (x,))
    np.testing.assert_allclose(of_x.numpy(), W)
    np.testing.assert_allclose(functional.hessian(lambda x: (x**3).sum(), x).numpy(), np.diag(6 * X), atol=1e-12)
    assert not of_x.requires_grad


def test_results_can_be_differentiated():
    x = tensors()[0].requires_grad_()
    for strategy in ("reverse-mode", "forward-mode"):
        x.grad = None
        functional.jacobian(lambda x: x**3, x, create_graph=True, strategy=strategy).sum().backward()
        np.testing.assert_allclose(x.grad.numpy(), 6 * X)
        assert not functional.jacobian(lambda x: x**3, x, strategy=strategy).requires_grad
    x.grad = None
    functional.hvp(lambda x: (x**4).sum(), x, x.detach(), create_graph=True)[1].sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 24 * X * X)


def test_what_is_wrong_is_said():
    x, w = tensors()
    with pytest.raises(AttributeValueError, match="strategy"):
        functional.jacobian(lambda x: x, x, strategy="sideways")
    with pytest.raises(AttributeValueError, match="one number"):
        functional.hessian(lambda x: x, x)
    with pytest.raises(ArgumentError, match="left out"):
        functional.vjp(lambda x: x, x)
    with pytest.raises(ArgumentError, match="left out"):
        functional.hvp(number, (x, w))
    with pytest.raises(ArgumentError, match="input 1 is a float"):
        functional.jacobian(product, (x, 1.0))


def test_the_same_as_pytorch(torch):

    def run(library, module):
        x, w = library.from_numpy(X.copy()), library.from_numpy(W.copy())
        v = (x * 2, w + 1)
        rows = [
            *module.jacobian(product, (x, w)),
            *module.hessian(number, (x, w))[0],
            *module.hessian(number, (x, w))[1],
        ]
        rows += [module.vjp(product, (x, w), x[:2])[0], *module.vjp(product, (x, w), x[:2])[1]]
        rows += [*module.jvp(product, (x, w), v), *module.jvp(lambda a: a * x, x[0], library.ones_like(x[0]))]
        for name in ("hvp", "vhp"):
            value, found = getattr(module, name)(number, (x, w), v)
            rows += [value, *found]
        return rows

    theirs = run(torch, torch.autograd.functional)
    for a, b in zip(run(graphc, functional), theirs, strict=True):
        assert a.shape == tuple(b.shape)
        np.testing.assert_allclose(a.detach().numpy(), b.numpy(), 1e-9, 1e-12)
