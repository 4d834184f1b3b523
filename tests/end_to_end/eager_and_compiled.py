"""Programs that inspect their results, run in eager mode and compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import graphc as gc

Wrap = Callable[[Any], Any]
"""What a program puts around its function: nothing, or ``gc.compile``."""
Program = Callable[[Wrap], Iterator[Any]]


def seen(program: Program, wrap: Wrap) -> list[np.ndarray | None]:
    """Inspected values of the program, in order."""
    gc.manual_seed(7)
    return [None if v is None else np.array(v.detach().numpy() if hasattr(v, "detach") else v) for v in program(wrap)]


def numbers(*shape: int) -> Any:
    """Normal numbers, the same in every call."""
    return gc.tensor(np.random.default_rng([3, *shape]).standard_normal(shape).astype(np.float32))


def leaf(*shape: int) -> Any:
    """Normal numbers that want gradients."""
    return numbers(*shape).requires_grad_()


def compare(found: list[np.ndarray | None], expected: list[np.ndarray | None]) -> None:
    """Asserts equal shapes, types and values."""
    assert len(found) == len(expected)
    for i, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert (a is None) == (b is None), f"{i}: {a} is not {b}"
        if a is not None and b is not None:
            assert (a.shape, a.dtype) == (b.shape, b.dtype), i
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6, err_msg=str(i))
