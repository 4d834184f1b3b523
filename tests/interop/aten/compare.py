"""Compares rules of the table with what PyTorch computes, eagerly and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc.interop.aten.table import find

torch = pytest.importorskip("torch")

Sample = tuple[Any, ...]
"""The operator without ``aten.``, its arguments, and as a last dictionary those that are given by name."""


def check(sample: Sample, results: int | None = None, compiled: bool = True) -> None:
    """Check that an operator's rule gives PyTorch's results: values, shapes, element types, and None.

    ``results`` is how many of the results count, where others serve only PyTorch's own backward pass. An operator whose
    result has a size that depends on values is not ``compiled``."""
    _judge(sample, compiled, lambda result, expected: _same(_first(result, results), _first(expected, results)))


def check_kind(sample: Sample) -> None:
    """The same for shapes and element types alone."""
    _judge(sample, True, _alike)


def check_moments(sample: Sample) -> None:
    """The same for an operator that draws numbers: shapes, types, and about the same mean, deviation and extremes."""
    _judge(sample, True, _distributed)


def check_memory(sample: Sample) -> None:
    """Asserts that results are views of arguments where PyTorch's are: they agree when arguments are overwritten."""
    target, args, kwargs = _parts(sample)
    theirs, ours = _copied(args), _ours(args)
    expected, result = _operator(target)(*theirs, **kwargs), find(target)(*ours, **_ours(kwargs))  # type: ignore[misc]
    with graphc.no_grad():
        for tensor in (*_tensors(theirs), *_tensors(ours)):
            tensor.copy_(tensor == 0)
    _same(result, expected)


def target_of(name: str) -> str:
    """The operator of a sample as the table names it."""
    full = name if name.startswith("prims.") else f"aten.{name}"
    return full if full.count(".") == 2 else f"{full}.default"


def _judge(sample: Sample, compiled: bool, judge: Callable[[Any, Any], None]) -> None:
    target, args, kwargs = _parts(sample)
    expected = _operator(target)(*_copied(args), **kwargs)
    function: Any = find(target)
    assert function is not None, target
    given, named = _ours(args), _ours(kwargs)
    with graphc.no_grad():
        judge(function(*given, **named), expected)
        if compiled:
            run = graphc.compile(lambda *tensors: function(*_filled(given, tensors), **named))
            judge(run(*_tensors(_ours(args))), expected)


def _parts(sample: Sample) -> tuple[str, list[Any], dict[str, Any]]:
    name, *args = sample
    kwargs = args.pop() if args and isinstance(args[-1], dict) else {}
    return target_of(name), args, kwargs


def _operator(target: str) -> Any:
    package, space, overload = target.split(".")
    return getattr(getattr(getattr(torch.ops, package), space), overload)


def _first(result: Any, results: int | None) -> Any:
    return result if results is None else list(result)[:results]


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
    if isinstance(value, (list, tuple)):
        return type(value)([_ours(v) for v in value if not isinstance(v, torch.device)])
    return value


def _tensors(value: Any) -> list[Any]:
    if isinstance(value, (graphc.Tensor, torch.Tensor)):
        return [value]
    return [t for v in value for t in _tensors(v)] if isinstance(value, (list, tuple)) else []


def _filled(value: Any, tensors: Any) -> Any:
    rest = iter(tensors)

    def fill(part: Any) -> Any:
        if isinstance(part, graphc.Tensor):
            return next(rest)
        return type(part)([fill(p) for p in part]) if isinstance(part, (list, tuple)) else part

    return fill(value)


def _same(result: Any, expected: Any) -> None:
    if isinstance(expected, (list, tuple)):
        for ours, theirs in zip(result, expected, strict=True):
            _same(ours, theirs)
    elif isinstance(expected, torch.Tensor):
        assert str(expected.dtype) == f"torch.{result.dtype.long_name}"
        theirs = expected.resolve_conj().numpy()
        # A sum that cancels is as exact as its largest terms are.
        largest = float(np.abs(np.nan_to_num(theirs, posinf=0, neginf=0)).max(initial=1.0))
        np.testing.assert_allclose(result.numpy(), theirs, rtol=1e-5, atol=1e-6 * largest, strict=True)
    else:
        assert result == expected


def _alike(result: Any, expected: Any) -> None:
    assert str(expected.dtype) == f"torch.{result.dtype.long_name}" and tuple(result.shape) == tuple(expected.shape)


def _distributed(result: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for ours, theirs in zip(result, expected, strict=True):
            _distributed(ours, theirs)
        return
    _alike(result, expected)
    ours, theirs = result.numpy().astype(np.float64), expected.double().numpy()
    near = 6 * max(theirs.std(), 1e-3) * theirs.size**-0.5
    assert abs(ours.mean() - theirs.mean()) < 2 * near and abs(ours.std() - theirs.std()) < 2 * near
    spread = 0.15 * float(np.ptp(theirs))
    assert abs(ours.min() - theirs.min()) <= spread and abs(ours.max() - theirs.max()) <= spread
