"""Assertion that tensors, or nested ones, are equal up to rounding; its message names the worst element."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphc.base.difference import EXACT, Tolerance, difference
from graphc.base.errors import AttributeValueError
from graphc.tensors.creation import as_tensor
from graphc.tensors.placement import on_host
from graphc.tensors.tensor import Tensor

TORCH_TOLERANCES = {
    **dict.fromkeys(("f64", "c128"), Tolerance(1e-7, 1e-7)),
    **dict.fromkeys(("f32", "c64"), Tolerance(1.3e-6, 1e-5)),
    "f16": Tolerance(1e-3, 1e-5),
    "bf16": Tolerance(1.6e-2, 1e-5),
}
"""Relative and absolute tolerance by element type, as in PyTorch; other types are compared exactly."""


def assert_close(
    actual: Any,
    expected: Any,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless ``|actual - expected| <= atol + rtol * |expected|`` for all elements.

    The arguments are tensors, arrays or numbers, or sequences and mappings of these; shapes, element types and devices
    must be equal too. Default tolerances follow the less exact element type. ``msg`` replaces the message, or is
    a function of it. Raises AttributeValueError for ``rtol`` without ``atol``, or the reverse.

    Example:
        >>> import graphc as gc
        >>> gc.testing.assert_close(gc.tensor([1.0]), gc.tensor([1.0 + 1e-7]))
    """
    if (rtol is None) != (atol is None):
        raise AttributeValueError("assert_close: rtol and atol must be passed together", remedy="pass both or neither")
    checks = {"dtype": check_dtype, "device": check_device, "stride": check_stride}
    tolerances = None if rtol is None or atol is None else Tolerance(rtol, atol)
    problem = _problem(actual, expected, tolerances, equal_nan, checks)
    if problem:
        raise AssertionError(problem if msg is None else msg if isinstance(msg, str) else msg(problem))


def _problem(actual: Any, expected: Any, tolerances: Any, equal_nan: bool, checks: dict[str, bool]) -> str:
    """Describe the first difference; empty if there is none."""
    if isinstance(actual, Mapping) and isinstance(expected, Mapping):
        if actual.keys() != expected.keys():
            return f"the keys differ: {sorted(map(str, actual))} and {sorted(map(str, expected))}"
        pairs = [(key, actual[key], expected[key]) for key in actual]
    elif _is_nested(actual) and _is_nested(expected):
        if len(actual) != len(expected):
            return f"there are {len(actual)} items and {len(expected)}"
        pairs = [(i, a, e) for i, (a, e) in enumerate(zip(actual, expected, strict=True))]
    else:
        return _difference(as_tensor(actual), as_tensor(expected), tolerances, equal_nan, checks)
    problems = ((key, _problem(a, e, tolerances, equal_nan, checks)) for key, a, e in pairs)
    return next((f"item {key!r}: {problem}" for key, problem in problems if problem), "")


def _is_nested(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _difference(a: Tensor, e: Tensor, tolerances: Any, equal_nan: bool, checks: dict[str, bool]) -> str:
    attributes = {"dtype": (a.dtype, e.dtype), "device": (a.device, e.device)}
    if a.shape != e.shape:
        return f"the shapes differ: {list(a.shape)} and {list(e.shape)}"
    for name, (mine, other) in attributes.items():
        if checks[name] and mine != other:
            return f"the {name}s differ: {mine!r} and {other!r}"
    if checks["stride"] and a.stride() != e.stride():
        return f"the strides differ: {a.stride()} and {e.stride()}"
    usual = [TORCH_TOLERANCES.get(t.dtype.name, EXACT) for t in (a, e)]
    tolerance = tolerances or Tolerance(*map(max, *usual))
    x, y = (on_host(t.detach()._data) for t in (a, e))
    comparison = difference("", x, y, tolerance, equal_nan=equal_nan)
    allowed = f"; allowed are {tolerance.atol:g} + {tolerance.rtol:g} times the expected size"
    return "" if comparison.is_within else f"{comparison}{allowed}"
