"""Derivatives of functions at given inputs, called at once: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.autograd import jacobian as whole
from graphc.autograd import transforms
from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor

Inputs = Any
"""A tensor, or a tuple of tensors; results that belong to inputs are nested alike."""


def _tuple(inputs: Inputs) -> tuple[Any, ...]:
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    for i, value in enumerate(given):
        if not isinstance(value, Tensor):
            raise ArgumentError(f"input {i} is a {type(value).__name__}, expected a tensor")
    return given


def _called(function: Callable[[], Any], create_graph: bool) -> Any:
    if create_graph:
        return function()
    with no_grad():
        return function()


def _like(inputs: Inputs, found: Any) -> Any:
    return tuple(found) if isinstance(inputs, tuple) else found[0]


def _one_number(function: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*args: Any) -> Any:
        output = function(*args)
        if not isinstance(output, Tensor) or output.numel() != 1:
            shown = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise AttributeValueError(f"the function must return one number, got {shown}")
        return output.reshape(())

    return checked


def jacobian(
    func: Callable[..., Any], inputs: Inputs, create_graph: bool = False, strategy: str = "reverse-mode"
) -> Any:
    """The Jacobian of ``func`` at ``inputs``: for every output and input a tensor of shape output.shape + input.shape.

    ``strategy`` is ``reverse-mode`` or ``forward-mode``. With ``create_graph`` the result can be differentiated.
    """
    modes = {"reverse-mode": whole.jacrev, "forward-mode": whole.jacfwd}
    if strategy not in modes:
        raise AttributeValueError(f"jacobian: strategy {strategy!r} is none of {', '.join(modes)}")
    given = _tuple(inputs)
    numbers = tuple(range(len(given))) if isinstance(inputs, tuple) else 0
    return _called(lambda: modes[strategy](func, numbers)(*given), create_graph)


def hessian(func: Callable[..., Any], inputs: Inputs, create_graph: bool = False) -> Any:
    """The second derivatives of ``func``, which returns one number, at ``inputs``."""
    given = _tuple(inputs)
    numbers = tuple(range(len(given))) if isinstance(inputs, tuple) else 0
    return _called(lambda: whole.hessian(_one_number(func), numbers)(*given), create_graph)


def vjp(func: Callable[..., Any], inputs: Inputs, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """(output, v times the Jacobian); ``v`` is nested as the output and may be left out for one number."""

    def run() -> tuple[Any, Any]:
        output, pull = transforms.vjp(func, *_tuple(inputs))
        return output, _like(inputs, pull(_weights(output) if v is None else v))

    return _called(run, create_graph)


def _weights(output: Any) -> Any:
    if not isinstance(output, Tensor) or output.numel() != 1:
        raise ArgumentError("v may be left out only for a function that returns one number")
    return output.new_ones(output.shape)


def jvp(func: Callable[..., Any], inputs: Inputs, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """(output, the Jacobian times v); ``v`` is nested as the inputs and may be left out for one number."""
    given = _tuple(inputs)
    tangents = tuple(_weights(x) for x in given) if v is None else _tuple(v)
    return _called(lambda: transforms.jvp(func, given, tangents), create_graph)


def hvp(func: Callable[..., Any], inputs: Inputs, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """(output, the Hessian times v) of a function that returns one number: a tangent of the gradient."""
    given = _tuple(inputs)
    tangents = tuple(_weights(x) for x in given) if v is None else _tuple(v)
    both = transforms.value_and_grad(_one_number(func), tuple(range(len(given))))

    def run() -> tuple[Any, Any]:
        (value, _), (_, found) = transforms.jvp(both, given, tangents)
        return value, _like(inputs, found)

    return _called(run, create_graph)


def vhp(func: Callable[..., Any], inputs: Inputs, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """(output, v times the Hessian): as ``hvp``, since the Hessian is symmetric."""
    return hvp(func, inputs, v, create_graph)
