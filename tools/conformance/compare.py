"""Compare results of graphc with those of PyTorch: kinds, shapes, and elements within tolerances."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import graphc as gc
from graphc.base.difference import EXACT, Tolerance, difference, distances
from tools.conformance.samples import array_of
from tools.conformance.tally import UnequalError

USUAL = {torch.float32: (1.3e-6, 1e-5), torch.float64: (1e-7, 1e-7)}
"""Relative and absolute tolerance of ``torch.testing``; used where the table has no other."""


def compare(
    results: Sequence[Any],
    expected: Sequence[Any],
    allowed: tuple[float, float],
    exact: Callable[[], list[Any]] | None = None,
    shapes_only: bool = False,
) -> None:
    """Raise UnequalError where the results differ. An element beyond the tolerance passes if it is within the tolerance
    of the f64 result, or no farther from it than PyTorch's result."""
    if len(results) != len(expected):
        raise UnequalError(f"{len(results)} results, PyTorch has {len(expected)}")
    for index, (a, b) in enumerate(zip(results, expected, strict=True)):
        x, y = array_of(a), array_of(b)
        kind = (_type_name(a), tuple(x.shape))
        if kind != (_type_name(b), tuple(y.shape)):
            raise UnequalError(f"{kind[0]}{list(kind[1])}, PyTorch {_type_name(b)}{list(y.shape)}")
        comparison = difference("", x, y, Tolerance(*allowed) if x.dtype.kind in "fc" else EXACT)
        if shapes_only or comparison.is_within:
            continue
        if exact is not None and x.dtype == np.float32 and _as_near(x, y, array_of(exact()[index]), allowed):
            continue
        raise UnequalError(str(comparison))


def weighted_gradients(library: Any, results: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
    """Return the gradients of the sum of all results, each element with a weight that both libraries use; zeros for
    None, and of results without a gradient."""
    differentiable = [(i, t) for i, t in enumerate(results) if t.requires_grad]
    if not differentiable:
        return [library.zeros_like(x) for x in inputs]
    weights = [np.random.default_rng([7, i]).standard_normal(tuple(t.shape)) for i, t in differentiable]
    seeds = [library.tensor(w).to(t.dtype) for w, (_, t) in zip(weights, differentiable, strict=True)]
    gradients = library.autograd.grad([t for _, t in differentiable], list(inputs), seeds, allow_unused=True)
    return [library.zeros_like(x) if g is None else g for x, g in zip(inputs, gradients, strict=True)]


def _type_name(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return str(value.dtype).removeprefix("torch.")
    return value.dtype.long_name if isinstance(value, gc.Tensor) else type(value).__name__


def _as_near(x: np.ndarray, y: np.ndarray, exact: np.ndarray, allowed: tuple[float, float]) -> bool:
    if exact.shape != x.shape or exact.dtype != np.float64:
        return False
    finite = np.isfinite(exact) & np.isfinite(x) & np.isfinite(y)
    if difference("", x[~finite], y[~finite], EXACT).count:
        return False
    allowed_distances = np.maximum(distances(y, exact), allowed[1] + allowed[0] * np.abs(exact))
    return bool(np.all((distances(x, exact) <= allowed_distances)[finite]))
