"""Sample operands for the tests of every op: reproducible, away from kinks, of many shapes and element types."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.errors import GraphcError
from graphc.ir.op import Attrs, ErrorSample, Sample
from graphc.ir.types import TensorType

FLOATS = ("float64", "float32")
INTEGERS = ("int64", "int32", "int16", "int8", "uint64", "uint32", "uint16", "uint8")
SPECIAL = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, -1.5, 2.5, 3e30, -3e30, 1e-30)
"""Values at which floating-point rules differ from the rules of real numbers."""


def floats(
    shape: Sequence[int], dtype: str = "float64", low: float = -2.0, high: float = 2.0, seed: int = 0
) -> np.ndarray:
    """Return uniform values in ``low..high``, none closer than 0.02 to a multiple of one half (where steps and kinks
    are)."""
    values = np.random.default_rng(seed).uniform(low, high, tuple(shape))
    off = values * 2 - np.rint(values * 2)
    values = np.where(np.abs(off) < 0.04, values + np.where(off < 0, -0.02, 0.02), values)
    return np.asarray(np.clip(values, low, high), dtype)


def complexes(
    shape: Sequence[int], dtype: str = "complex128", low: float = -2.0, high: float = 2.0, seed: int = 0
) -> np.ndarray:
    """Return numbers with real parts as of ``floats``, and imaginary parts in -2..2."""
    imag = floats(shape, seed=seed + 100)
    return np.asarray(floats(shape, low=low, high=high, seed=seed) + 1j * imag, dtype)


def integers(shape: Sequence[int], dtype: str = "int64", low: int = -9, high: int = 9, seed: int = 0) -> np.ndarray:
    """Return uniform integers in ``low..high``; the lower end is raised to 0 for unsigned types."""
    low = max(low, 0) if dtype.startswith("uint") else low
    return np.asarray(np.random.default_rng(seed).integers(low, high, tuple(shape), endpoint=True), dtype)


def booleans(shape: Sequence[int], seed: int = 0) -> np.ndarray:
    """Return random booleans."""
    return np.asarray(np.random.default_rng(seed).random(tuple(shape)) < 0.5)


def distinct(shape: Sequence[int], dtype: str = "float64", seed: int = 0) -> np.ndarray:
    """Return values at least 0.1 apart, in random order, so that maxima have no ties."""
    count = int(np.prod(shape, dtype=np.int64))
    values = (np.arange(count) - count / 2 + 0.3) * (0.1 if dtype in FLOATS else 1)
    return np.asarray(np.random.default_rng(seed).permutation(values).reshape(tuple(shape)), dtype)


def extremes(dtype: str) -> np.ndarray:
    """Return the smallest and largest integers of a type, and small numbers around zero."""
    info = np.iinfo(dtype)
    values = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, info.bits - 1, info.bits, 7]
    values += [] if info.min == 0 else [-1, -2, -7]
    return np.array(values, dtype)


def array(values: object, dtype: str) -> np.ndarray:
    """Return an array of the given element type."""
    return np.asarray(values, dtype)


def pairs(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a column and a row that pair every value with every other."""
    return values[:, None].copy(), values[None, :].copy()


def plain(*operands: np.ndarray, **attrs: object) -> Sample:
    """Return a sample without a test of gradients."""
    return Sample(operands, dict(attrs), differentiable=False)


def refused(
    error: type[GraphcError], message: str, *types: tuple[DType, tuple[int, ...]], **attrs: object
) -> ErrorSample:
    """Return a sample of operand types and attributes that are refused, with a fragment of the message."""
    return ErrorSample(tuple([TensorType(*t) for t in types]), message, dict(attrs), error)


def unary(low: float = -2.0, high: float = 2.0, kinds: str = "f", special: bool = True) -> Callable[[], list[Sample]]:
    """Build samples of a unary function: shapes from rank 0 to 3, a zero size, special values, integer types."""

    def make() -> list[Sample]:
        samples = [
            Sample((floats((2, 3), "float64", low, high),)),
            Sample((floats((3, 5, 7), "float32", low, high, 1),)),
            Sample((floats((), "float32", low, high, 2),)),
            Sample((floats((0, 4), "float32", low, high),)),
        ]
        if special:
            samples += [plain(array(SPECIAL, dtype)) for dtype in FLOATS]
        samples += [Sample(s.operands, differentiable=False) for s in _unary_exact(kinds)]
        return samples + ([Sample((complexes((2, 3), low=low, high=high),))] if "c" in kinds else [])

    return make


def _unary_exact(kinds: str) -> list[Sample]:
    samples = [plain(extremes(d)) for d in INTEGERS if np.dtype(d).kind in kinds]
    return samples + ([plain(booleans((3, 4)))] if "b" in kinds else [])


def binary(
    low: float = -2.0, high: float = 2.0, kinds: str = "fiu", differentiable: bool = True, special: bool = True
) -> Callable[[], list[Sample]]:
    """Build samples of a binary function: equal shapes, broadcasting both ways, rank 0, a zero size, all types."""

    def make() -> list[Sample]:
        samples: list[Sample] = []
        if "f" in kinds:
            shapes = [((2, 3), (2, 3)), ((4, 1, 3), (5, 1)), ((), (3,)), ((7,), ()), ((), ()), ((0, 3), (1, 3))]
            for seed, (a, b) in enumerate(shapes):
                dtype = FLOATS[seed % 2]
                operands = (floats(a, dtype, low, high, seed), floats(b, dtype, low, high, seed + 50))
                samples.append(Sample(operands, differentiable=differentiable))
            if special:
                samples += [plain(*pairs(array(SPECIAL, dtype))) for dtype in FLOATS]
        samples += _binary_exact(kinds)
        if "c" in kinds:
            operands = (complexes((2, 3), low=low, high=high), complexes((3,), low=low, high=high, seed=1))
            samples.append(Sample(operands, differentiable=differentiable))
        return samples

    return make


def _binary_exact(kinds: str) -> list[Sample]:
    samples = [plain(*pairs(extremes(d))) for d in INTEGERS if np.dtype(d).kind in kinds]
    if "b" in kinds:
        samples += [plain(*pairs(array([False, True], "bool"))), plain(booleans((2, 3)), booleans((3,), 1))]
    return samples


def with_attrs(operand: np.ndarray, choices: Sequence[Attrs], differentiable: bool = True) -> list[Sample]:
    """Return one sample of one operand per set of attributes."""
    return [Sample((operand,), attrs, differentiable) for attrs in choices]
