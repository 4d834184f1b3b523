"""Derivatives of functions at given inputs: Jacobians, Hessians, and their products with vectors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.autograd import transforms
from graphc.base.errors import ArgumentError, AttributeValueError
from graphc.func import jacobian as jacobians
from graphc.tape.grad_mode import no_grad
from graphc.tensors.structure import flatten, replace
from graphc.tensors.tensor import Tensor

Inputs = Any
"""One argument, or a tuple of arguments: tensors or nested containers of them. Results for inputs have the same
nesting."""


def _tuple(inputs: Inputs) -> tuple[Any, ...]:
    values = inputs if type(inputs) is tuple else (inputs,)
    for i, value in enumerate(values):
        if not flatten(value)[0]:
            raise ArgumentError(f"input {i} is a {type(value).__name__}, expected a tensor or a container of tensors")
    return values


def _call(function: Callable[[], Any], create_graph: bool) -> Any:
    if create_graph:
        return function()
    with no_grad():
        return function()


def _like(inputs: Inputs, results: Any) -> Any:
    return tuple(results) if type(inputs) is tuple else results[0]


def _one_number(function: Callable[..., Any]) -> Callable[..., Any]:
    def checked(*args: Any) -> Any:
        output = function(*args)
        if not isinstance(output, Tensor) or output.numel() != 1:
            actual = list(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise AttributeValueError(f"the function must return one number, got {actual}")
        return output.reshape(())

    return checked


def jacobian(
    func: Callable[..., Any], inputs: Inputs, create_graph: bool = False, strategy: str = "reverse-mode"
) -> Any:
    """Return the Jacobian of ``func`` at ``inputs``: a tensor of shape output.shape + input.shape for each pair.

    ``strategy`` is ``reverse-mode`` or ``forward-mode``. With ``create_graph`` the result is differentiable. Raises
    AttributeValueError for another strategy, ArgumentError for inputs other than tensors.

    Example:
        >>> import graphc as gc
        >>> gc.autograd.functional.jacobian(lambda x: x**2, gc.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    modes = {"reverse-mode": jacobians.jacrev, "forward-mode": jacobians.jacfwd}
    if strategy not in modes:
        raise AttributeValueError(f"jacobian: strategy must be one of {', '.join(modes)}, got {strategy!r}")
    values = _tuple(inputs)
    numbers = tuple(range(len(values))) if type(inputs) is tuple else 0
    return _call(lambda: modes[strategy](func, numbers)(*values), create_graph)


def hessian(func: Callable[..., Any], inputs: Inputs, create_graph: bool = False) -> Any:
    """Return the second derivatives at ``inputs`` of ``func``, which returns one number."""
    values = _tuple(inputs)
    numbers = tuple(range(len(values))) if type(inputs) is tuple else 0
    return _call(lambda: jacobians.hessian(_one_number(func), numbers)(*values), create_graph)


def vjp(func: Callable[..., Any], inputs: Inputs, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """Return (output, v times the Jacobian). ``v`` is nested like the output; a scalar output needs none."""

    def run() -> tuple[Any, Any]:
        output, pull = transforms.vjp(func, *_tuple(inputs))
        return output, _like(inputs, pull(_weights(output) if v is None else v))

    return _call(run, create_graph)


def _weights(output: Any) -> Any:
    if not isinstance(output, Tensor) or output.numel() != 1:
        raise ArgumentError("v may be left out only for a function that returns one number")
    return output.new_ones(output.shape)


def jvp(func: Callable[..., Any], inputs: Inputs, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """Return (output, the Jacobian times v). ``v`` is nested like the inputs; scalar inputs need none."""
    values = _tuple(inputs)
    tangents = replace(values, _weights) if v is None else _tuple(v)
    return _call(lambda: transforms.jvp(func, values, tangents), create_graph)


def hvp(func: Callable[..., Any], inputs: Inputs, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """Return (output, the Hessian times v) of a function with one number as output, as a tangent of the gradient."""
    values = _tuple(inputs)
    tangents = replace(values, _weights) if v is None else _tuple(v)
    value_and_gradient = transforms.value_and_grad(_one_number(func), tuple(range(len(values))))

    def run() -> tuple[Any, Any]:
        (value, _), (_, product) = transforms.jvp(value_and_gradient, values, tangents)
        return value, _like(inputs, product)

    return _call(run, create_graph)


def vhp(func: Callable[..., Any], inputs: Inputs, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """Return (output, v times the Hessian). This equals ``hvp``, since the Hessian is symmetric."""
    return hvp(func, inputs, v, create_graph)
