"""Compares functions on complex tensors with PyTorch: eagerly one by one, compiled as one program, with gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import graphc

Functions = Mapping[str, Callable[..., Any]]
"""Functions of a library, ``graphc`` or ``torch``, and of its tensors."""


def numbers(*shape: int, seed: int = 0, dtype: Any = np.complex128) -> np.ndarray:
    """Complex numbers whose parts are normally distributed."""
    random = np.random.default_rng(seed)
    return np.asarray(random.standard_normal(shape) + 1j * random.standard_normal(shape), dtype)


def weights_like(array: np.ndarray) -> np.ndarray:
    """Weights of a sum, by which a gradient of every element is told from the others."""
    weights = numbers(*array.shape, seed=7)
    return weights if array.dtype.kind == "c" else np.array(weights.real, array.dtype)


def agree(functions: Functions, *arrays: np.ndarray, tolerance: float = 1e-9) -> None:
    """Fails, naming the function, where a result or a gradient differs."""
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(a, requires_grad=True) for a in arrays]
    results_of_torch = {name: function(torch, *tensors) for name, function in functions.items()}
    values = {name: y.detach().resolve_conj().numpy() for name, y in results_of_torch.items()}
    moving = [name for name, y in results_of_torch.items() if y.requires_grad]
    gradients = {n: torch_gradients(torch, results_of_torch[n], tensors, values[n]) for n in moving}
    own = [graphc.tensor(a, requires_grad=True) for a in arrays]
    for name, function in functions.items():
        result = function(graphc, *own)
        same(f"{name}, eagerly", result, values[name], tolerance)
        assert result.requires_grad == (name in moving), name
        for i, wanted_gradient in enumerate(gradients.get(name, ())):
            (gradient,) = graphc.autograd.grad(
                result, own[i], graphc.tensor(weights_like(values[name])), True, False, True, True
            )
            if wanted_gradient is not None:
                same(f"gradient {i} of {name}, eagerly", gradient, wanted_gradient, tolerance)
    _agree_compiled(functions, own, values, gradients, tolerance)


def torch_gradients(torch: Any, result: Any, leaves: list[Any], value: np.ndarray) -> list[np.ndarray | None]:
    """Gradients of the weighted sum, as arrays."""
    weights = torch.tensor(weights_like(value))
    gradients = torch.autograd.grad(result, leaves, weights, retain_graph=True, allow_unused=True)
    return [None if g is None else g.resolve_conj().numpy() for g in gradients]


def _agree_compiled(functions: Functions, own: list[Any], values: Any, gradients: Any, tolerance: float) -> None:
    compiled = graphc.compile(lambda *xs: [function(graphc, *xs) for function in functions.values()])
    results = dict(zip(functions, compiled(*own), strict=True))
    for name, result in results.items():
        same(f"{name}, compiled", result, values[name], tolerance)
    moving = [results[n] for n in gradients]
    weights = [graphc.tensor(weights_like(values[n])) for n in gradients]
    if not moving:
        return
    for i, total in enumerate(graphc.autograd.grad(moving, own, weights, allow_unused=True)):
        gradient_arrays = [g[i] for g in gradients.values() if g[i] is not None]
        if gradient_arrays:
            same(f"gradient {i} of all, compiled", total, np.sum(gradient_arrays, 0), tolerance * 10)


def same(title: str, actual: Any, expected: np.ndarray, tolerance: float) -> None:
    """Fails unless types, shapes and numbers are the same."""
    array = actual.detach().numpy()
    assert (array.dtype, array.shape) == (expected.dtype, expected.shape), title
    np.testing.assert_allclose(array, expected, rtol=tolerance, atol=tolerance, err_msg=title)
