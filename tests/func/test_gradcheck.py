"""Finite differences find wrong gradients, and only those."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.autograd import Function, gradcheck, gradgradcheck
from graphc.errors import ArgumentError, GradientError


class Scaled(Function):
    """x**2 with a gradient that is off by a factor."""

    @staticmethod
    def forward(ctx, x, factor):
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * x

    @staticmethod
    def backward(ctx, g):
        return ctx.factor * ctx.saved_tensors[0] * g, None


X = graphc.from_numpy(np.array([1.0, -2.0, 0.5])).requires_grad_()


def test_right_gradients_pass():
    assert gradcheck(lambda x: Scaled.apply(x, 2.0), X)
    assert gradcheck(lambda x, y: (x * y, x.sum()), (X, X.detach().clone().requires_grad_()))
    assert gradgradcheck(lambda x: x**3, X)


def test_wrong_gradients_are_found():
    with pytest.raises(GradientError, match=r"gradient of result 0 for input 0 differs .* by up to 0.2"):
        gradcheck(lambda x: Scaled.apply(x, 2.1), X)
    assert not gradcheck(lambda x: Scaled.apply(x, 1.9), X, raise_exception=False)


def test_missing_gradients_are_found():
    assert not gradcheck(lambda x: x.detach() * 2, X, raise_exception=False)


def test_wrong_second_gradients_are_found():
    class Cut(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0].detach() * g

    assert gradcheck(Cut.apply, X)
    assert not gradgradcheck(Cut.apply, X, raise_exception=False)


def test_inputs_must_allow_it():
    with pytest.raises(ArgumentError, match="needs an input that requires"):
        gradcheck(lambda x: x, X.detach())
    with pytest.raises(ArgumentError, match="input 0 is f32"):
        gradcheck(lambda x: x, graphc.ones(1, requires_grad=True))


def test_gradients_that_change_between_passes_are_found():
    class Drifting(Function):
        passes = 0

        @staticmethod
        def forward(ctx, x):
            return x * 2

        @classmethod
        def backward(cls, ctx, g):
            cls.passes += 1
            return g * (2 + 1e-7 * cls.passes)

    with pytest.raises(GradientError, match="two backward passes give gradients of result 0 for input 0"):
        gradcheck(Drifting.apply, X)
    assert not gradcheck(Drifting.apply, X, raise_exception=False)
    assert gradcheck(Drifting.apply, X, nondet_tol=1e-5)


def test_errors_of_the_function_are_not_differences():
    def failing(x):
        (x * 2).detach().requires_grad_(False).sum().backward()
        return x

    with pytest.raises(GradientError, match="does not require"):
        gradcheck(failing, X, raise_exception=False)


def test_wrong_tangents_are_found():
    class Halved(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

        @staticmethod
        def jvp(ctx, t):
            return t

    assert gradcheck(Halved.apply, X)
    with pytest.raises(GradientError, match=r"tangent of result 0 for input 0 differs .* by up to 1"):
        gradcheck(Halved.apply, X, check_forward_ad=True)
    assert gradcheck(
        lambda x, y: (x * y, y.sum(), x.detach().exp() * 0),
        (X, (X * 2).detach().requires_grad_()),
        check_forward_ad=True,
    )


def test_gradients_of_batches_are_checked():
    assert gradcheck(lambda x: (x.exp().cumsum(0), x.sum()), X, check_batched_grad=True)
    assert gradcheck(lambda x: Scaled.apply(x, 2.0), X, check_batched_grad=True)
    with pytest.raises(GradientError, match=r"batched gradient of result 0 for input 0 differs .* by up to"):
        gradcheck(Changing.apply, X, check_batched_grad=True)


class Changing(Function):
    """Its backward gives something else where it is traced."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * (3 if graphc.is_tracing() else 2)
