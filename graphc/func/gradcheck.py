"""Check gradients against finite differences, for functions of f64 tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.autograd.engine import grad
from graphc.autograd.forward_ad import dual_level, make_dual, unpack_dual
from graphc.base.difference import Tolerance, difference
from graphc.base.dtypes import float64
from graphc.base.errors import ArgumentError, GradientError
from graphc.control.vmap import vmap
from graphc.ops.movement.shape import zeros_like
from graphc.tensors.complex_numbers import view_as_complex, view_as_real
from graphc.tensors.tensor import Tensor

Many = Tensor | Sequence[Any]


def _results(function: Callable[..., Any], inputs: Sequence[Any]) -> list[Tensor]:
    output = function(*inputs)
    results = list(output) if isinstance(output, (tuple, list)) else [output]
    return [t for t in results if isinstance(t, Tensor) and t.dtype.is_differentiable]


def _values(function: Callable[..., Any], inputs: Sequence[Any]) -> list[np.ndarray]:
    return [t._values(force=True).copy() for t in _results(function, inputs)]


def _numerical(function: Callable[..., Any], inputs: Sequence[Any], tensor: Tensor, eps: float) -> list[np.ndarray]:
    """Return a matrix of central differences for each result: rows are elements of ``tensor``, columns of the
    result."""
    data = tensor.detach().numpy()
    rows: list[list[np.ndarray]] = []
    for index in np.ndindex(*data.shape):
        original = data[index]
        data[index] = original + eps
        above = _values(function, inputs)
        data[index] = original - eps
        below = _values(function, inputs)
        data[index] = original
        rows.append([((a - b) / (2 * eps)).reshape(-1) for a, b in zip(above, below, strict=True)])
    count = len(_values(function, inputs))
    return [np.array([row[i] for row in rows]) for i in range(count)]


def _analytical(result: Tensor, tensor: Tensor) -> np.ndarray:
    rows = []
    for index in np.ndindex(*result.shape):
        seed = np.zeros(result.shape, result.dtype.numpy)
        seed[index] = 1
        (gradient,) = grad(result, tensor, Tensor._wrap(seed), retain_graph=True, materialize_grads=True)
        rows.append(gradient.detach().numpy().reshape(-1).copy())
    return np.array(rows).reshape(result.numel(), tensor.numel()).T


def gradcheck(
    func: Callable[..., Any],
    inputs: Many,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_batched_grad: bool = False,
    check_forward_ad: bool = False,
) -> bool:
    """Check whether the gradients of ``func`` agree with central differences of step ``eps``.

    Two backward passes must agree up to ``nondet_tol``. With ``check_forward_ad``, forward mode must agree with the
    differences too. With ``check_batched_grad``, ``vmap`` over a batch of weights must agree with single backward
    passes. Inputs that require gradients must be f64, or complex128, whose real and imaginary parts are varied. Raises
    GradientError on a difference, or returns False without ``raise_exception``; raises ArgumentError for wrong inputs.

    Example:
        >>> import graphc as gc
        >>> x = gc.tensor([0.5, 2.0], dtype=gc.float64, requires_grad=True)
        >>> gc.autograd.gradcheck(lambda x: x.exp().sum(), (x,))
        True
    """
    func, all_inputs = _on_parts(func, (inputs,) if isinstance(inputs, Tensor) else tuple(inputs))
    tensors = [(i, t) for i, t in enumerate(all_inputs) if isinstance(t, Tensor) and t.requires_grad]
    if not tensors:
        raise ArgumentError("gradcheck needs an input that requires gradients")
    for i, tensor in tensors:
        if tensor.dtype is not float64:
            raise ArgumentError(f"gradcheck: input {i} is {tensor.dtype.name}, finite differences need f64")
    try:
        _check(func, all_inputs, tensors, eps, Tolerance(rtol, atol), nondet_tol, check_forward_ad)
        if check_batched_grad:
            _check_batched(func, all_inputs, tensors, Tolerance(rtol, atol))
    except _Difference:
        if raise_exception:
            raise
        return False
    return True


def _on_parts(func: Callable[..., Any], inputs: tuple[Any, ...]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Convert a function to real tensors: complex inputs that require gradients, and complex results, become pairs."""
    pairs = {i for i, t in enumerate(inputs) if isinstance(t, Tensor) and t.requires_grad and t.dtype.is_complex}
    split = tuple(view_as_real(t).detach().clone().requires_grad_() if i in pairs else t for i, t in enumerate(inputs))

    def function(*values: Any) -> Any:
        output = func(*[view_as_complex(t) if i in pairs else t for i, t in enumerate(values)])
        results = output if isinstance(output, (tuple, list)) else [output]
        return [view_as_real(t) if isinstance(t, Tensor) and t.dtype.is_complex else t for t in results]

    return function, split


class _Difference(GradientError):
    """Difference detected by a check, as opposed to an error of the function under test."""


def _forward(function: Callable[..., Any], inputs: Sequence[Any], number: int) -> list[np.ndarray]:
    """Return a matrix of tangents for each result: rows are elements of input ``number``, columns of the result."""
    tensor = inputs[number]
    rows: list[list[np.ndarray]] = []
    for index in np.ndindex(*tensor.shape):
        direction = np.zeros(tensor.shape)
        direction[index] = 1
        with dual_level() as level:
            dual = make_dual(tensor, Tensor._wrap(direction))
            duals = [
                unpack_dual(r, level=level) for r in _results(function, [*inputs[:number], dual, *inputs[number + 1 :]])
            ]
        rows.append([(zeros_like(p) if t is None else t).detach().numpy().reshape(-1) for p, t in duals])
    return [np.array(columns) for columns in zip(*rows, strict=True)]


def _check(
    func: Callable[..., Any],
    all_inputs: Any,
    tensors: Any,
    eps: float,
    tolerance: Tolerance,
    nondet_tol: float,
    forward: bool,
) -> None:
    for i, tensor in tensors:
        numerical = _numerical(func, all_inputs, tensor, eps)
        for o, pushed in enumerate(_forward(func, all_inputs, i) if forward else ()):
            what = f"tangent of result {o} for input {i} differs from finite differences"
            _require(what, pushed, numerical[o], tolerance, "tangents")
        for o, result in enumerate(_results(func, all_inputs)):
            analytical = _analytical(result, tensor) if result.requires_grad else np.zeros_like(numerical[o])
            what = f"gradient of result {o} for input {i} differs from finite differences"
            _require(what, analytical, numerical[o].reshape(analytical.shape), tolerance, "gradient")
            repeated = _analytical(result, tensor) if result.requires_grad else analytical
            what = f"two backward passes give gradients of result {o} for input {i} that differ"
            _require(what, analytical, repeated, Tolerance(0.0, nondet_tol))


def _require(what: str, actual: np.ndarray, expected: np.ndarray, tolerance: Tolerance, name: str = "") -> None:
    """Raise _Difference for arrays that differ; the message shows both where ``name`` says what the first one is."""
    largest = difference("", actual, expected, tolerance)
    if not largest.is_within:
        shown = f"\nfinite differences:\n{expected}\n{name}:\n{actual}" if name else ""
        raise _Difference(f"{what} by up to {largest.absolute:.3g}{shown}")


def _check_batched(func: Callable[..., Any], all_inputs: Any, tensors: Any, tolerance: Tolerance) -> None:
    for o, result in enumerate(_results(func, all_inputs)):
        if not result.requires_grad or not result.numel():
            continue
        seeds = Tensor._wrap(np.eye(result.numel()).reshape(result.numel(), *result.shape))
        for i, tensor in tensors:

            def row(seed: Tensor, result: Tensor = result, tensor: Tensor = tensor) -> Tensor:
                return grad(result, tensor, seed, retain_graph=True, materialize_grads=True)[0]

            batched = vmap(row)(seeds).detach().numpy().reshape(result.numel(), -1).T
            what = f"batched gradient of result {o} for input {i} differs from single ones"
            _require(what, batched, _analytical(result, tensor), tolerance)


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Many,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Check the gradients of the gradients of ``func``, with the arguments and errors of ``gradcheck``."""
    all_inputs = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    differentiable = [i for i, t in enumerate(all_inputs) if isinstance(t, Tensor) and t.requires_grad]
    results = [r for r in _results(func, all_inputs) if r.requires_grad]
    rng = np.random.default_rng(0)
    seeds = [Tensor._wrap(rng.standard_normal(r.shape)).requires_grad_() for r in results]

    def gradients(*arguments: Any) -> tuple[Any, ...]:
        inner, weights = arguments[: len(all_inputs)], list(arguments[len(all_inputs) :])
        outputs = [r for r in _results(func, inner) if r.requires_grad]
        return grad(outputs, [inner[i] for i in differentiable], weights, create_graph=True, materialize_grads=True)

    return gradcheck(
        gradients,
        (*all_inputs, *seeds),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )
