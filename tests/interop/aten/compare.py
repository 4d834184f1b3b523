"""Compares rules of the table with what PyTorch computes, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc
from graphc.interop.aten.table import find

torch = pytest.importorskip("torch")

Sample = tuple[Any, ...]
"""The operator without ``aten.``, its arguments, and as a last dictionary those that are given by name."""


def check(sample: Sample) -> None:
    """Asserts that the rule of an operator gives what PyTorch does: values, shapes, element types, and None."""
    name, *args = sample
    kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
    target = f"aten.{name}" if "." in name else f"aten.{name}.default"
    space, overload = target.split(".")[1:]
    expected = getattr(getattr(torch.ops.aten, space), overload)(*_copied(args), **kwargs)
    function: Any = find(target)
    assert function is not None, target
    given, named = _ours(args), _ours(kwargs)
    with graphc.no_grad():
        _same(function(*given, **named), expected)
        compiled = graphc.compile(lambda *tensors: function(*_filled(given, tensors), **named))
        _same(compiled(*_tensors(_ours(args))), expected)


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.clone()
    return type(value)([_copied(v) for v in value]) if isinstance(value, (list, tuple)) else value


def _ours(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return graphc.tensor(value.numpy().copy())
    if isinstance(value, torch.dtype):
        return getattr(graphc, str(value).removeprefix("torch."))
    if isinstance(value, dict):
        return {k: _ours(v) for k, v in value.items()}
    return type(value)([_ours(v) for v in value]) if isinstance(value, (list, tuple)) else value


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, graphc.Tensor):
        return [value]
    return [t for v in value for t in _tensors(v)] if isinstance(value, (list, tuple)) else []


def _filled(value: Any, tensors: Any) -> Any:
    rest = iter(tensors)

    def fill(part: Any) -> Any:
        if isinstance(part, graphc.Tensor):
            return next(rest)
        return type(part)([fill(p) for p in part]) if isinstance(part, (list, tuple)) else part

    return fill(value)


def _same(found: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        for ours, theirs in zip(found, expected, strict=True):
            _same(ours, theirs)
    elif isinstance(expected, torch.Tensor):
        assert str(expected.dtype) == f"torch.{found.dtype.long_name}"
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6, strict=True)
    else:
        assert found == expected
