"""Operands that are easily forgotten: every element type, shape and stride; repeated, special and tiny values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

FLOATS = ("float32", "float64")
INTEGERS = ("int64", "int32", "int8", "uint8")
TYPES = (*FLOATS, *INTEGERS, "bool")
SHAPES = ((2, 3), (), (1,), (0,), (5,), (3, 1), (0, 3), (2, 1, 3), (2, 0, 3), (4, 3, 2), (33,), (2, 17))
"""Shapes of operands without a fixed rank: no dimensions, no elements, a remainder after full vectors."""
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-40, -1e-40, 5e-324, 1e-30)
"""Among them denormal numbers of f32 and f64."""
LARGE = (*SPECIAL, 3e38, -3e38, 88.0, -88.0, 1e5)
"""The same and some that overflow soon; where numbers are summed, the order would decide."""
LAYOUTS = ("dense", "transposed", "stepped", "negative", "expanded")


@dataclass(frozen=True)
class Operand:
    """Description of an operand."""

    kind: str
    """``float``, ``positive``, ``any``, ``integer``, ``bool`` or ``index``."""
    shape: tuple[int, ...] | None = None
    """None: any shape, the same for all such operands of a call."""
    below: int = 0
    """Exclusive bound of indices, which are at least 0."""


def _of(kind: str) -> Callable[..., Operand]:
    return lambda *shape: Operand(kind, shape)


f, p, a, i, b = map(_of, ("float", "positive", "any", "integer", "bool"))
"""Operands of a shape: floats, numbers between 0.1 and 0.9, numbers of any type, integers, booleans."""


def n(below: int, *shape: int) -> Operand:
    """Return indices, some of them repeated."""
    return Operand("index", shape, below)


ANY, FLOAT, POSITIVE = Operand("any"), Operand("float"), Operand("positive")
INTEGER, BOOL = Operand("integer"), Operand("bool")


class Choice(NamedTuple):
    """Random choices for the operands of one call."""

    float_type: str
    any_type: str
    shape: tuple[int, ...]
    layout: str
    special: bool
    """Whether floating-point operands hold special values, and integers those at their limits."""
    large: bool = True
    """Whether numbers that overflow soon are among them."""


def choose(random: np.random.Generator) -> Choice:
    """Return a choice by chance, most often an ordinary one."""
    return Choice(
        str(random.choice(FLOATS)),
        str(random.choice(TYPES)),
        SHAPES[int(random.integers(len(SHAPES)))],
        str(random.choice(LAYOUTS)),
        bool(random.random() < 0.4),
    )


def dtype_of(operand: Operand, choice: Choice) -> str:
    """Return the element type of an operand."""
    if operand.kind in ("float", "positive"):
        return choice.float_type
    if operand.kind == "any":
        return choice.any_type
    if operand.kind == "integer":
        return choice.any_type if choice.any_type in INTEGERS else "int64"
    return "bool" if operand.kind == "bool" else "int64"


def array_of(operand: Operand, choice: Choice, random: np.random.Generator) -> np.ndarray:
    """Return values of an operand, dense."""
    shape = choice.shape if operand.shape is None else operand.shape
    dtype = dtype_of(operand, choice)
    if operand.kind == "index":
        return np.asarray(random.integers(0, max(operand.below, 1), shape), dtype)
    if dtype == "bool":
        return np.asarray(random.random(shape) < 0.5)
    if dtype in INTEGERS:
        return _integers(dtype, shape, choice.special, random)
    if operand.kind == "positive":
        return np.asarray(random.uniform(0.1, 0.9, shape), dtype)
    values = np.asarray(random.uniform(-2, 2, shape), dtype)
    if choice.special and values.size:
        mask = random.random(shape) < 0.5
        with np.errstate(all="ignore"):
            chosen = random.choice(LARGE if choice.large and operand.shape is None else SPECIAL, shape)
            values = np.where(mask, np.asarray(chosen, dtype), values)
    return np.asarray(values, dtype)


def _integers(dtype: str, shape: Sequence[int], special: bool, random: np.random.Generator) -> np.ndarray:
    low = 0 if dtype == "uint8" else -5
    values = np.asarray(random.integers(low, 6, shape), dtype)
    if special and values.size:
        limits = np.iinfo(dtype)
        extremes = np.array([limits.min, limits.max, limits.max - 1, limits.min + 1, 0, 1], dtype)
        values = np.where(random.random(shape) < 0.5, random.choice(extremes, shape), values)
    return np.asarray(values, dtype)


def laid_out(array: np.ndarray, layout: str) -> np.ndarray:
    """Return the same values (of the first row only, if it is repeated) at other strides."""
    if not array.ndim or layout == "dense":
        return array.copy()
    if layout == "transposed":
        return np.ascontiguousarray(array.T).T
    if layout == "expanded":
        return np.broadcast_to(array[:1].copy(), array.shape) if array.shape[0] else array.copy()
    step = 2 if layout == "stepped" else -1
    room = np.zeros(tuple(abs(step) * s for s in array.shape), array.dtype)
    view = room[tuple(slice(None, None, step) for _ in array.shape)]
    view[...] = array
    return view
