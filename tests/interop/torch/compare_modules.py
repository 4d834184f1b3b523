"""Compares modules of PyTorch with what from_torch makes of them: results, gradients, and written buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc

torch = pytest.importorskip("torch")


def arguments(given: tuple[Any, ...], dtype: Any) -> list[Any]:
    """Tensors for shapes, drawn around 0; tensors of numbers with the element type."""
    generator = torch.Generator().manual_seed(1)
    results = []
    for value in given:
        if isinstance(value, torch.Tensor):
            results.append(value.to(dtype) if value.is_floating_point() else value)
        else:
            results.append(torch.randn(*value, generator=generator, dtype=torch.float64).to(dtype))
    return results


def check_module(sample: Any, dtype: Any, training: bool, tolerance: float) -> None:
    """Check results, gradients of arguments and parameters, and buffers against PyTorch's."""
    title, make, given = sample
    torch.manual_seed(0)
    module = make().to(dtype).train(training)
    args = arguments(given, dtype)
    imported = graphc.from_torch(module, tuple(args))
    assert list(imported.state_dict()) == list(module.state_dict())
    assert [n for n, _ in imported.named_parameters()] == [n for n, _ in module.named_parameters()]
    drawn = [not isinstance(a, torch.Tensor) for a in given]
    theirs = [a.clone().requires_grad_(d) for a, d in zip(args, drawn, strict=True)]
    ours = [graphc.tensor(a.numpy().copy()).requires_grad_(d) for a, d in zip(args, drawn, strict=True)]
    result, expected = imported(*ours), module(*theirs)
    same(result, expected, tolerance, title)
    total = sum((_flat(expected, torch.Tensor)), start=torch.zeros((), dtype=dtype))
    if total.requires_grad:
        total.backward()
        sum(_flat(result, graphc.Tensor), start=graphc.zeros(())).backward()
        for a, b in zip(ours, theirs, strict=True):
            same(a.grad, b.grad, tolerance, f"{title}: gradient of an argument")
        for (name, a), (_, b) in zip(imported.named_parameters(), module.named_parameters(), strict=True):
            same(a.grad, b.grad, tolerance, f"{title}: gradient of {name}")
    for (name, a), (_, b) in zip(imported.named_buffers(), module.named_buffers(), strict=True):
        same(a, b, tolerance, f"{title}: buffer {name}")


def _flat(value: Any, kind: Any) -> list[Any]:
    """Sums of squares of the floating-point tensors in a value."""
    if isinstance(value, kind):
        return [(value * value).sum()] if "float" in str(value.dtype) or "f" in str(value.dtype) else []
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return [t for part in parts for t in _flat(part, kind)]


def same(result: Any, expected: Any, tolerance: float, title: str) -> None:
    """Asserts that two nested values are equal up to rounding."""
    if isinstance(expected, torch.Tensor):
        assert str(expected.dtype) == f"torch.{result.dtype.long_name}", title
        scale = max(1.0, float(expected.detach().abs().max())) if expected.numel() else 1.0
        arrays = result.detach().numpy(), expected.detach().numpy()
        np.testing.assert_allclose(*arrays, rtol=tolerance, atol=tolerance * scale, err_msg=title, strict=True)
    elif isinstance(expected, (tuple, list)):
        for a, b in zip(result, expected, strict=True):
            same(a, b, tolerance, title)
    elif isinstance(expected, dict):
        assert list(result) == list(expected), title
        for key, value in expected.items():
            same(result[key], value, tolerance, f"{title}: {key}")
    else:
        assert result == expected, title
