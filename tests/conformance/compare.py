"""Runs one expression on graphc and on PyTorch: results, gradients, second gradients, and classes of errors."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc


class Case(NamedTuple):
    """An expression of the library ``t`` (graphc or torch) and of tensors, with the arrays that these are made of."""

    name: str
    expression: Callable[..., Any]
    arrays: tuple[np.ndarray, ...]
    tolerance: float = 1e-9
    order: int = 2
    """How often it is differentiated: 0, 1 or 2."""


def cases(*rows: Sequence[Any]) -> list[Any]:
    """Parameters of a test, one per row of (name, expression, arrays, ...)."""
    names = [row[0] for row in rows]
    repeated = {n for n in names if names.count(n) > 1}
    assert not repeated, f"names used twice: {repeated}"
    return [pytest.param(Case(*row), id=row[0]) for row in rows]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """Normal numbers, f64."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape)


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers between 0.2 and 0.8."""
    return np.random.default_rng([seed, *shape]).uniform(0.2, 0.8, shape)


def spread(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers no two of which are near each other, in random order."""
    count = int(np.prod(shape))
    return np.random.default_rng(seed).permutation(np.arange(count) * 0.37 - count * 0.15).reshape(shape)


def whole(high: int, *shape: int, low: int = 0, seed: int = 0) -> np.ndarray:
    """Whole numbers from ``low`` to below ``high`` (i64)."""
    return np.random.default_rng([seed, *shape]).integers(low, high, shape)


def truth(*shape: int, seed: int = 0) -> np.ndarray:
    """Booleans."""
    return np.random.default_rng([seed, *shape]).random(shape) < 0.5


def strided(array: np.ndarray) -> np.ndarray:
    """The same elements, not contiguous in memory: every second one of a larger array in another order."""
    if not array.shape:
        return array
    room = np.zeros(tuple(2 * s for s in array.shape[::-1]), array.dtype).transpose()
    view = room[tuple(slice(None, None, 2) for _ in array.shape)]
    view[...] = array
    return view


def leaves(value: Any) -> list[Any]:
    """The tensors of nested tuples, lists and dictionaries, and numbers and booleans."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [leaf for item in value for leaf in leaves(item)]
    return [] if value is None else [value]


def number(value: Any) -> np.ndarray:
    """Return the values of a tensor of either library or of a Python number; bf16, which numpy lacks, as f32."""
    if not hasattr(value, "numpy"):
        return np.asarray(value)
    return (value.float() if _is_bfloat(value) else value).numpy(force=True)


def _is_bfloat(value: Any) -> bool:
    return str(getattr(value, "dtype", "")) in ("bf16", "torch.bfloat16")


def equal(ours: Any, theirs: Any, tolerance: float, what: str) -> None:
    """Asserts equal shape, element type and values."""
    x, y = number(ours), number(theirs)
    assert _is_bfloat(ours) == _is_bfloat(theirs), f"{what}: type {ours.dtype}, torch {theirs.dtype}"
    assert x.shape == y.shape, f"{what}: shape {x.shape}, torch {y.shape}"
    assert x.dtype == y.dtype, f"{what}: type {x.dtype}, torch {y.dtype}"
    scale = max(1.0, float(np.max(np.abs(y), initial=0.0, where=np.isfinite(y)))) if y.dtype.kind == "f" else 1.0
    np.testing.assert_allclose(x, y, rtol=tolerance, atol=tolerance * scale, err_msg=what)


def operands(library: Any, arrays: Sequence[np.ndarray], requires_grad: bool) -> list[Any]:
    """Tensors that share no memory with the arrays but have their strides."""
    made = []
    for array in arrays:
        copy = array if array.flags.c_contiguous else strided(array)
        tensor = library.from_numpy(copy.copy() if copy is array else copy)
        floating = array.dtype.kind == "f"
        made.append(tensor.requires_grad_() if requires_grad and floating else tensor)
    return made


def gradients(library: Any, results: Sequence[Any], inputs: Sequence[Any], create_graph: bool, seed: int) -> list[Any]:
    """Return gradients of the weighted sum of all differentiable results; None for inputs that they do not depend on."""
    roots = [r for r in results if getattr(r, "requires_grad", False)]
    weights = [
        library.from_numpy(np.asarray(normal(*r.shape, seed=seed + i), number(r).dtype)).to(r.dtype)
        for i, r in enumerate(roots)
    ]
    expected = [x for x in inputs if x.requires_grad]
    if not roots or not expected:
        return [None] * len(expected)
    found = library.autograd.grad(roots, expected, weights, create_graph=create_graph, allow_unused=True)
    return list(found)


def agree(case: Case, arrays: Sequence[np.ndarray], order: int) -> None:
    """Asserts that both libraries give the same results and the same gradients up to ``order``."""
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = operands(graphc, arrays, order > 0)
        other = operands(torch, arrays, order > 0)
        results = leaves(case.expression(graphc, *mine))
        expected = leaves(case.expression(torch, *other))
        assert len(results) == len(expected)
        for i, (a, b) in enumerate(zip(results, expected, strict=True)):
            equal(a, b, case.tolerance, f"result {i}")
            assert getattr(a, "requires_grad", False) == getattr(b, "requires_grad", False), (
                f"result {i}: requires_grad"
            )
        for level in range(1, order + 1):
            results = gradients(graphc, results, mine, level < order, 100 * level)
            expected = gradients(torch, expected, other, level < order, 100 * level)
            for i, (a, b) in enumerate(zip(results, expected, strict=True)):
                _same_gradient(a, b, case.tolerance * 10, f"gradient {level} of operand {i}")
            results, expected = _connected(results, expected)


def _connected(ours: Sequence[Any], theirs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Pairs of gradients that can be differentiated again in both libraries."""
    kept = [
        (a, b)
        for a, b in zip(ours, theirs, strict=True)
        if a is not None and b is not None and a.requires_grad and b.requires_grad
    ]
    return [a for a, _ in kept], [b for _, b in kept]


def _same_gradient(ours: Any, theirs: Any, tolerance: float, what: str) -> None:
    """None and zeros are the same."""
    if theirs is None or ours is None:
        known = ours if theirs is None else theirs
        assert known is None or not np.any(number(known)), f"{what}: one library has none"
        return
    equal(ours, theirs, tolerance, what)


def check(case: Case) -> None:
    """All comparisons of one case: dense and strided operands in f64 with gradients, and results in f32."""
    agree(case, case.arrays, case.order)
    if any(a.ndim and a.size for a in case.arrays):
        agree(case, [strided(a) for a in case.arrays], min(case.order, 1))
    floats = [a.dtype.kind == "f" for a in case.arrays]
    if any(floats):
        single = [a.astype(np.float32) if f else a for a, f in zip(case.arrays, floats, strict=True)]
        agree(case._replace(tolerance=max(2e-4, case.tolerance)), single, 0)


def error_classes(error: BaseException) -> set[type]:
    """Return the built-in classes by which ``except`` catches ``error``."""
    known = {c for c in vars(builtins).values() if isinstance(c, type) and issubclass(c, Exception)}
    return {c for c in type(error).__mro__ if c in known} - {Exception}


def raised_by(library: Any, expression: Callable[..., Any], arrays: Sequence[np.ndarray]) -> BaseException:
    """Return the exception that the expression raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            expression(library, *operands(library, arrays, True))
        except Exception as error:
            return error
    raise AssertionError(f"{library.__name__} raised nothing")


def check_error(case: Case) -> None:
    """Asserts that ``except`` with the class that PyTorch raises also catches what graphc raises."""
    torch = pytest.importorskip("torch")
    expected = raised_by(torch, case.expression, case.arrays)
    result = raised_by(graphc, case.expression, case.arrays)
    expected_result = error_classes(expected)
    most = max(expected_result, key=lambda c: len(c.__mro__))
    assert isinstance(result, most), (
        f"graphc raises {type(result).__mro__}, torch {type(expected).__name__}: {expected}"
    )
