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
    found = numbers(*array.shape, seed=7)
    return found if array.dtype.kind == "c" else np.array(found.real, array.dtype)


def agree(functions: Functions, *arrays: np.ndarray, tolerance: float = 1e-9) -> None:
    """Fails, naming the function, where a result or a gradient differs."""
    torch = pytest.importorskip("torch")
    given = [torch.tensor(a, requires_grad=True) for a in arrays]
    wanted = {name: function(torch, *given) for name, function in functions.items()}
    values = {name: y.detach().resolve_conj().numpy() for name, y in wanted.items()}
    moving = [name for name, y in wanted.items() if y.requires_grad]
    gradients = {n: torch_gradients(torch, wanted[n], given, values[n]) for n in moving}
    own = [graphc.tensor(a, requires_grad=True) for a in arrays]
    for name, function in functions.items():
        found = function(graphc, *own)
        same(f"{name}, eagerly", found, values[name], tolerance)
        assert found.requires_grad == (name in moving), name
        for i, wanted_gradient in enumerate(gradients.get(name, ())):
            (gradient,) = graphc.autograd.grad(
                found, own[i], graphc.tensor(weights_like(values[name])), True, False, True, True
            )
            if wanted_gradient is not None:
                same(f"gradient {i} of {name}, eagerly", gradient, wanted_gradient, tolerance)
    _agree_compiled(functions, own, values, gradients, tolerance)


def torch_gradients(torch: Any, result: Any, given: list[Any], value: np.ndarray) -> list[np.ndarray | None]:
    """Gradients of the weighted sum, as arrays."""
    weights = torch.tensor(weights_like(value))
    found = torch.autograd.grad(result, given, weights, retain_graph=True, allow_unused=True)
    return [None if g is None else g.resolve_conj().numpy() for g in found]


def _agree_compiled(functions: Functions, own: list[Any], values: Any, gradients: Any, tolerance: float) -> None:
    compiled = graphc.compile(lambda *xs: [function(graphc, *xs) for function in functions.values()])
    results = dict(zip(functions, compiled(*own), strict=True))
    for name, found in results.items():
        same(f"{name}, compiled", found, values[name], tolerance)
    moving = [results[n] for n in gradients]
    weights = [graphc.tensor(weights_like(values[n])) for n in gradients]
    if not moving:
        return
    for i, total in enumerate(graphc.autograd.grad(moving, own, weights, allow_unused=True)):
        parts = [g[i] for g in gradients.values() if g[i] is not None]
        if parts:
            same(f"gradient {i} of all, compiled", total, np.sum(parts, 0), tolerance * 10)


def same(title: str, found: Any, wanted: np.ndarray, tolerance: float) -> None:
    """Fails unless types, shapes and numbers are the same."""
    array = found.detach().numpy()
    assert (array.dtype, array.shape) == (wanted.dtype, wanted.shape), title
    np.testing.assert_allclose(array, wanted, rtol=tolerance, atol=tolerance, err_msg=title)
