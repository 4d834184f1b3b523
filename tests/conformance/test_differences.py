"""Intended differences from PyTorch: the values of graphc, eager and compiled, and those of PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
import graphc.nn.functional as F
from graphc.autograd import gradcheck

pytestmark = pytest.mark.torch

NAN, INF = np.nan, np.inf


def gradient(library: Any, function: Callable[..., Any], points: Any, compiled: bool = False) -> np.ndarray:
    """Return the gradient of the sum of a function."""
    x = library.tensor(np.asarray(points), requires_grad=True)
    (graphc.compile(function) if compiled else function)(x).sum().backward()
    return np.asarray(x.grad.numpy())


both = pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])


@both
@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "hardswish"])
def test_an_infinite_gradient_goes_through_each_factor_of_a_product(torch, name: str, compiled: bool):
    """``x f(x)`` has the gradients ``g f(x)`` and ``g x f'(x)``, and the second one is infinity times 0 at 0; PyTorch
    multiplies their sum."""
    result = gradient(graphc, lambda x: graphc.log2(getattr(F, name)(x)), [0.0, 1.0], compiled)
    theirs = gradient(torch, lambda x: torch.log2(getattr(torch.nn.functional, name)(x)), [0.0, 1.0])
    assert np.isnan(result[0]) and np.isinf(theirs[0])
    np.testing.assert_allclose(result[1], theirs[1], rtol=1e-9)


@both
@pytest.mark.parametrize("correction", [0, 1])
@pytest.mark.parametrize("name", ["var", "std"])
def test_a_variance_over_no_named_dimensions_has_the_gradient_of_that_over_all(
    torch, name: str, correction: int, compiled: bool
):
    """``dim=()`` stands for all dimensions; PyTorch's gradient counts one element there."""
    points = [1.0, 2.0, 4.0]
    of_all = gradient(graphc, lambda x: getattr(graphc, name)(x, correction=correction), points)
    result = gradient(graphc, lambda x: getattr(graphc, name)(x, dim=(), correction=correction), points, compiled)
    np.testing.assert_allclose(result, of_all, rtol=1e-12)
    x = graphc.tensor(np.array(points), requires_grad=True)
    assert gradcheck(lambda x: getattr(graphc, name)(x, dim=(), correction=correction), (x,))
    theirs = gradient(torch, lambda x: getattr(torch, name)(x, dim=(), correction=correction), points)
    assert not np.allclose(theirs, of_all, equal_nan=True)


AT_NAN = {"hardswish": NAN, "elu": NAN, "selu": NAN, "celu": NAN, "hardshrink": 1.0, "softshrink": 0.0}
"""By activation: its gradient at NaN."""


@both
@pytest.mark.parametrize("name", AT_NAN)
def test_activations_have_one_gradient_at_nan_wherever_it_stands(torch, name: str, compiled: bool):
    """PyTorch has two, by whether an element is one of eight side by side or of the rest of a tensor."""
    result = gradient(graphc, getattr(F, name), np.full(33, NAN), compiled)
    np.testing.assert_array_equal(result, np.full(33, AT_NAN[name]))
    theirs = gradient(torch, getattr(torch.nn.functional, name), np.full(33, NAN))
    assert len(set(map(str, theirs))) == 2 and str(AT_NAN[name]) in set(map(str, theirs))


@both
@pytest.mark.parametrize("mode", ["bilinear", "bicubic"])
def test_a_dimension_that_keeps_its_size_is_not_resampled(torch, mode: str, compiled: bool):
    """PyTorch multiplies the neighbours there by weights of 0, and infinity becomes NaN."""
    image = np.array([[[[1.0, -INF, 2.0, 3.0, 5.0, 4.0, 1.0]]]])

    def resized(x: Any) -> Any:
        return F.interpolate(x, size=(1, 7), mode=mode)

    result = (graphc.compile(resized) if compiled else resized)(graphc.tensor(image)).numpy()
    np.testing.assert_array_equal(result, image)
    theirs = torch.nn.functional.interpolate(torch.tensor(image), size=(1, 7), mode=mode).numpy()
    assert np.all((theirs == image) | np.isnan(theirs)) and np.isnan(theirs).any()


CONVENTIONS: dict[str, tuple[Callable[..., Any], float, float, float]] = {
    "x ** -0.5 at -0": (lambda t, x: x**-0.5, -0.0, INF, -INF),
    "x ** -0.5 at -inf, where it is NaN": (lambda t, x: x**-0.5, -INF, NAN, -0.0),
    "x ** 1.5 at -inf": (lambda t, x: x**1.5, -INF, INF, NAN),
    "trigamma at a pole": (lambda t, x: t.digamma(x), -INF, INF, NAN),
    "mean without NaN of NaN alone": (lambda t, x: t.nanmean(x), NAN, 0.0, NAN),
}
"""A function, where, and the two gradients."""


@both
@pytest.mark.parametrize("name", CONVENTIONS)
def test_gradients_where_functions_have_none(torch, name: str, compiled: bool):
    function, point, ours, theirs = CONVENTIONS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = gradient(graphc, lambda x: function(graphc, x), [point], compiled)
        other = gradient(torch, lambda x: function(torch, x), [point])
    np.testing.assert_array_equal(result, [ours])
    np.testing.assert_array_equal(other, [theirs])


RUNNING: dict[str, tuple[Callable[..., Any], list[float], list[float], list[float]]] = {
    "cumprod with infinity": (lambda x: x.cumprod(0), [2.0, INF, 3.0], [INF, 8.0, INF], [INF, NAN, INF]),
    "cumprod with NaN": (lambda x: x.cumprod(0), [2.0, 3.0, NAN], [NAN, NAN, 6.0], [NAN, NAN, NAN]),
    "cumprod with NaN and 0": (lambda x: x.cumprod(0), [0.0, 2.0, NAN], [NAN, NAN, 0.0], [NAN, 0.0, 0.0]),
    "logcumsumexp with infinity": (lambda x: x.logcumsumexp(0), [2.0, INF, 3.0], [1.0, 2.0, 0.0], [1.0, NAN, 0.0]),
    "logcumsumexp of one": (lambda x: x.logcumsumexp(0), [-INF], [1.0], [NAN]),
}
"""A function, an operand, and the two gradients of the sum of its results."""


@both
@pytest.mark.parametrize("name", RUNNING)
def test_gradients_of_running_results_that_are_not_finite(torch, name: str, compiled: bool):
    """PyTorch divides by the element and subtracts the result, where there is a product and a weight of 1."""
    function, points, ours, theirs = RUNNING[name]
    np.testing.assert_array_equal(gradient(graphc, function, points, compiled), ours)
    np.testing.assert_array_equal(gradient(torch, function, points), theirs)


@both
@pytest.mark.parametrize(("share", "place"), [(0.0, 0), (1.0, 2)])
def test_a_quantile_at_an_element_is_that_element(torch, share: float, place: int, compiled: bool):
    """PyTorch adds 0 times the distance of the element to itself, which is NaN at infinities."""
    points = np.array([-INF, 1.0, INF])

    def quantile(x: Any) -> Any:
        return x.quantile(share)

    result = (graphc.compile(quantile) if compiled else quantile)(graphc.tensor(points))
    assert result.item() == points[place]
    assert np.isnan(quantile(torch.tensor(points)).item())


@both
def test_the_most_frequent_element_is_a_number_if_there_is_one(torch, compiled: bool):
    """NaN equals nothing, itself included. PyTorch sorts by a comparison that has no order with NaN."""
    points = np.array([NAN, NAN, 1.0])

    def mode(x: Any) -> Any:
        return x.mode(0).values

    assert (graphc.compile(mode) if compiled else mode)(graphc.tensor(points)).item() == 1
    assert np.isnan(mode(torch.tensor(points)).item())
