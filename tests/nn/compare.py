"""Runs a function of graphc and one of PyTorch on the same numbers and compares results and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc


def floats(*shape: int, seed: int = 0, dtype: str = "float64") -> np.ndarray:
    """Normal numbers."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers between 0.1 and 0.9."""
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape)


def classes(high: int, *shape: int, seed: int = 0) -> np.ndarray:
    """Whole numbers below ``high`` (i64)."""
    return np.random.default_rng(seed).integers(0, high, shape)


def tensor(array: np.ndarray, requires_grad: bool = False) -> Any:
    """A tensor with a copy of the array."""
    made = graphc.tensor(np.array(array))
    return made.requires_grad_() if requires_grad else made


def flatten(value: Any) -> list[Any]:
    """The tensors of nested tuples and lists."""
    if isinstance(value, (tuple, list)):
        return [t for item in value for t in flatten(item)]
    return [value]


def same(a: Any, b: Any, rtol: float = 1e-9, atol: float = 1e-10) -> None:
    """Check that a tensor of graphc and one of PyTorch agree in shape, type and values."""
    x, y = np.asarray(a.detach()), b.detach().numpy()
    assert x.shape == y.shape
    assert x.dtype == y.dtype
    np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)


def agree(ours: Any, theirs: Any, *arrays: np.ndarray, rtol: float = 1e-9, atol: float = 1e-10, **options: Any) -> None:
    """Asserts that both functions give the same results and the same gradients of all floating-point operands.

    Operands are the arrays; ``options`` go to both, arrays among them as tensors without gradient.
    """
    torch = pytest.importorskip("torch")
    needs = [a.dtype.kind == "f" for a in arrays]
    mine = [tensor(a, need) for a, need in zip(arrays, needs, strict=True)]
    other = [torch.tensor(a, requires_grad=need) for a, need in zip(arrays, needs, strict=True)]
    my_options = {k: tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    other_options = {k: torch.tensor(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    results = flatten(ours(*mine, **my_options))
    expected = flatten(theirs(*other, **other_options))
    assert len(results) == len(expected)
    for a, b in zip(results, expected, strict=True):
        same(a, b, rtol, atol)
    if not any(needs):
        return
    pull(torch, results, expected)
    for a, b, need in zip(mine, other, needs, strict=True):
        if need and b.grad is not None:
            assert a.grad is not None
            same(a.grad, b.grad, rtol, atol)


def pull(torch: Any, results: list[Any], expected: list[Any]) -> None:
    """Backward through both lists of results with the same random weights."""
    total, other_total = 0.0, 0.0
    for i, (a, b) in enumerate(zip(results, expected, strict=True)):
        if not b.requires_grad:
            assert not a.requires_grad
            continue
        weights = np.asarray(floats(*a.shape, seed=100 + i), np.asarray(a.detach()).dtype)
        total = total + (a * tensor(weights)).sum()
        other_total = other_total + (b * torch.tensor(weights)).sum()
    total.backward()
    other_total.backward()


def load(module: Any, other: Any) -> None:
    """Copies the state of a PyTorch module into one of graphc; both must have the same names and shapes."""
    report = module.load_state_dict({k: v.detach().numpy().copy() for k, v in other.state_dict().items()})
    assert str(report) == "<All keys matched successfully>"
    assert list(module.state_dict()) == list(other.state_dict())


def modules_agree(
    ours: Any, theirs: Any, *arrays: np.ndarray, rtol: float = 1e-8, atol: float = 1e-9, **options: Any
) -> None:
    """Check that a module of graphc with a PyTorch module's state gives its results, gradients and new state.

    Both are made double; integer arrays are inputs without gradient.
    """
    ours, theirs = ours.double(), theirs.double()
    load(ours, theirs)
    agree(ours, theirs, *arrays, rtol=rtol, atol=atol, **options)
    expected = dict(theirs.named_parameters())
    for name, parameter in ours.named_parameters():
        if expected[name].grad is None:
            assert parameter.grad is None
        else:
            same(parameter.grad, expected[name].grad, rtol, atol)
    for name, value in theirs.state_dict().items():
        same(ours.state_dict()[name], value, rtol, atol)
