"""Writes between an operation and its backward pass: eager mode gives a gradient where PyTorch does.

PyTorch's gradient of a quotient reads the operands and not the result, that of an exponential the result; what a rule
reads must be as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.errors import GradientError

pytestmark = pytest.mark.torch

LEFT, RIGHT = [0.3, 0.9, 0.45, 0.7], [0.8, 0.35, 0.6, 0.25]
OF_OPERANDS: dict[str, Callable[..., Any]] = {
    "div": lambda t, x, y: x / y,
    "div by a number": lambda t, x, y: x / 3,
    "number by x": lambda t, x, y: 3 / x,
    "square": lambda t, x, y: x**2,
    "root as a power": lambda t, x, y: x**0.5,
    "inverse root as a power": lambda t, x, y: x**-0.5,
    "logarithm": lambda t, x, y: t.log(x),
    "sine": lambda t, x, y: t.sin(x),
    "erfinv": lambda t, x, y: t.erfinv(x),
    "erf": lambda t, x, y: t.erf(x),
    "atan2": lambda t, x, y: t.atan2(x, y),
    "softsign": lambda t, x, y: t.nn.functional.softsign(x),
    "gelu": lambda t, x, y: t.nn.functional.gelu(x),
    "cosine": lambda t, x, y: t.nn.functional.cosine_similarity(x[None], y[None]),
    "layer norm": lambda t, x, y: t.nn.functional.layer_norm(x, (4,)),
    "mean": lambda t, x, y: x.mean(),
    "product": lambda t, x, y: x * y,
    "lerp": lambda t, x, y: t.lerp(x, y, 0.25),
}
OF_RESULTS = ("exp", "tanh", "sigmoid", "reciprocal")
IN_PLACE: dict[str, Callable[..., Any]] = {
    **{
        f"{n}_": lambda x, y, n=n: getattr(x, f"{n}_")(y)
        for n in ("add", "sub", "mul", "div", "pow", "atan2", "copysign", "hypot", "fmod", "remainder")
    },
    "addcmul_": lambda x, y: x.addcmul_(y, y),
    "addcdiv_": lambda x, y: x.addcdiv_(y, y + 1),
    "lerp_": lambda x, y: x.lerp_(y, 0.5),
    "+=": lambda x, y: x.__iadd__(y),
    "*=": lambda x, y: x.__imul__(y),
    "/=": lambda x, y: x.__itruediv__(y),
    "**=": lambda x, y: x.__ipow__(y),
    "clamp_": lambda x, y: x.clamp_(y, y + 0.1),
}


def gradients(library: Any, function: Callable[..., Any]) -> list[np.ndarray]:
    """Return the gradients of both operands."""
    leaves = [library.tensor(v, dtype=library.float64, requires_grad=True) for v in (LEFT, RIGHT)]
    function(*leaves).sum().backward()
    return [np.zeros(4) if x.grad is None else x.grad.numpy() for x in leaves]


def written(library: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with its result read and then written to."""

    def run(x: Any, y: Any) -> Any:
        result = function(library, x, y)
        before = result * 3
        result += 1
        return before + result

    return run


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("name", OF_OPERANDS)
def test_results_that_no_gradient_reads_may_be_written_to(torch, name: str, compiled: bool):
    ours = written(graphc, OF_OPERANDS[name])
    found = gradients(graphc, graphc.compile(ours) if compiled else ours)
    np.testing.assert_allclose(found, gradients(torch, written(torch, OF_OPERANDS[name])), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", OF_RESULTS)
def test_results_that_a_gradient_reads_may_not(torch, name: str):
    with pytest.raises(GradientError, match="modified by an in-place operation: a result"):
        gradients(graphc, written(graphc, lambda t, x, y: getattr(t, name)(x)))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        gradients(torch, written(torch, lambda t, x, y: getattr(t, name)(x)))


def test_a_quotient_that_is_computed_again_has_higher_derivatives(torch):
    found = []
    for library in (graphc, torch):
        a, b = (library.tensor(v, dtype=library.float64, requires_grad=True) for v in (LEFT, RIGHT))
        quotient = a / b
        product = quotient * 2
        quotient += 1
        first = library.autograd.grad((quotient * product).sum(), [a, b], create_graph=True)
        found.append([t.tolist() for t in library.autograd.grad(first[0].sum() + first[1].sum(), [a, b])])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
@pytest.mark.parametrize("part", [False, True], ids=["whole", "part"])
@pytest.mark.parametrize("name", IN_PLACE)
def test_the_operand_of_an_operation_in_place_gets_the_gradient_at_what_was_there_before(
    torch, name: str, part: bool, compiled: bool
):

    def function(x: Any, y: Any) -> Any:
        content = x.detach() * 2
        IN_PLACE[name](content[1:3] if part else content, y[1:3] if part else y)
        return content * 3

    found = gradients(graphc, graphc.compile(function) if compiled else function)
    np.testing.assert_allclose(found, gradients(torch, function), rtol=1e-9)
