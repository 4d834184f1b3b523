"""Operations whose results have as many elements as the values say: eager mode, and one program for all counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import graphc as gc

RANDOM = np.random.default_rng(0)
NUMBERS = [RANDOM.standard_normal((5, 4)).astype(np.float32), np.full((5, 4), -1, np.float32), np.eye(5, 4, dtype="f4")]
CODES = [np.array(a, np.int64) for a in ([3, 1, 1, 3, 3, 0, 2], [7, 7, 7, 7, 7, 7, 7], [0, 0, 0, 1, 1, 0, 0])]


def _numpy_unique(x: np.ndarray) -> list[np.ndarray]:
    values, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    return [values, inverse.reshape(x.shape), counts]


def _runs(x: np.ndarray) -> list[np.ndarray]:
    start = np.flatnonzero(np.append(True, x[1:] != x[:-1]))
    return [x[start], np.searchsorted(start, np.arange(len(x)), "right") - 1, np.diff(np.append(start, len(x)))]


CASES: dict[str, tuple[Sequence[np.ndarray], Callable[[gc.Tensor], Any], Callable[[np.ndarray], Any]]] = {
    "mask": (NUMBERS, lambda x: x[x > 0], lambda x: x[x > 0]),
    "mask of rows": (NUMBERS, lambda x: x[x[:, 0] > 0] @ x.T, lambda x: x[x[:, 0] > 0] @ x.T),
    "mask and slice": (NUMBERS, lambda x: x[x[:, 0] > 0, 1:3], lambda x: x[x[:, 0] > 0, 1:3]),
    "masked_select": (NUMBERS, lambda x: x.masked_select(x[0] < 0), lambda x: x[np.broadcast_to(x[0] < 0, x.shape)]),
    "nonzero": (NUMBERS, lambda x: (x > 0).nonzero(), lambda x: np.argwhere(x > 0)),
    "where": (NUMBERS, lambda x: gc.where(x > 0), lambda x: np.nonzero(x > 0)),
    "unique": (CODES, lambda x: x.unique(return_inverse=True, return_counts=True), _numpy_unique),
    "unique rows": (NUMBERS, lambda x: (x > 0).unique(dim=0), lambda x: np.unique(x > 0, axis=0)),
    "unique columns": (NUMBERS, lambda x: x.unique(dim=1), lambda x: np.unique(x, axis=1)),
    "runs": (CODES, lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), _runs),
    "bincount": (CODES, lambda x: x.bincount(minlength=3), lambda x: np.bincount(x, minlength=3)),
    "weights": (CODES, lambda x: x.bincount(x.exp()), lambda x: np.bincount(x, np.exp(np.float32(x)))),
    "repeats": (CODES, lambda x: (x + 1).repeat_interleave(x), lambda x: np.repeat(x + 1, x)),
}


@pytest.mark.parametrize("name", CASES)
def test_compiled_and_eager_results(name: str) -> None:
    arrays, function, reference = CASES[name]
    compiled = gc.compile(function)
    for array in arrays:
        expected = reference(array)
        expected = expected if isinstance(expected, (tuple, list)) else [expected]
        for results in (function(gc.tensor(array)), compiled(gc.tensor(array))):
            results = results if isinstance(results, tuple) else [results]
            for result, e in zip(results, expected, strict=True):
                assert result.shape == e.shape
                np.testing.assert_allclose(result.numpy(), e, rtol=1e-6)
    assert len(compiled.variants) == 1
    assert len(compiled.variants[0].paths) == 1


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[x > 0].unique(),
        lambda x: x[x > 0].unique_consecutive(return_counts=True)[1],
        lambda x: x[x > 0].to(gc.int64).bincount(minlength=3),
        lambda x: x[x > 0].repeat_interleave(x[x > 0].to(gc.int64)),
        lambda x: x[x > 0].sum(),
    ],
    ids=["unique", "runs", "bincount", "repeats", "sum"],
)
def test_there_may_be_no_element_at_all(function: Callable[[gc.Tensor], gc.Tensor]) -> None:
    compiled = gc.compile(function)
    for values in ([1.0, -1.0, 2.0, 1.0], [-1.0, -1.0, -1.0, -1.0]):
        x = gc.tensor(values)
        assert compiled(x).tolist() == function(x).tolist()
    empty = gc.zeros(0)
    assert gc.compile(function)(empty).tolist() == function(empty).tolist()


def test_complex_numbers_are_ordered_by_real_and_imaginary_part() -> None:
    x = gc.tensor([1 + 2j, 1 - 1j, 0 + 5j, 1 + 2j])
    for function in (gc.unique, gc.compile(gc.unique)):
        assert function(x).tolist() == [5j, 1 - 1j, 1 + 2j]


def test_each_nan_is_distinct() -> None:
    x = gc.tensor([np.nan, 1.0, np.nan, 1.0])
    for function in (gc.unique, gc.compile(gc.unique)):
        np.testing.assert_array_equal(function(x).numpy(), np.array([1, np.nan, np.nan], np.float32))


def test_a_mask_of_constants_has_a_known_count() -> None:
    keep = np.array([True, False, True])
    compiled = gc.compile(lambda x: x[gc.tensor(keep)])
    assert compiled(gc.tensor([1.0, 2.0, 3.0])).tolist() == [1, 3]
    assert len(compiled.programs) == 1


def test_gradients_of_masked_elements() -> None:
    def f(x: gc.Tensor) -> gc.Tensor:
        return x[x > 0].exp().sum()

    x = gc.tensor([1.0, -1.0, 0.5], requires_grad=True)
    gc.compile(f)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), [np.e, 0, np.exp(0.5)], rtol=1e-6)


def test_negative_numbers_have_no_count() -> None:
    bad = gc.tensor([1, -1])
    with pytest.raises(gc.errors.ArgumentError, match="integers of 0 or more"):
        gc.bincount(bad)
    with pytest.raises(gc.errors.GraphcError, match=r"integers of 0 or more|outside"):
        gc.compile(gc.bincount)(bad)
    with pytest.raises(gc.errors.AttributeValueError, match="repeats must be"):
        bad.repeat_interleave(bad)
    with pytest.raises(gc.errors.GraphcError, match="number of repeats is negative"):
        gc.compile(lambda x: x.repeat_interleave(x))(bad)


def test_traces_for_one_program_have_no_counts() -> None:
    x = gc.tensor([1.0, -1.0])
    for function in (lambda x: x[x > 0], lambda x: x.nonzero(), lambda x: x.unique()):
        with pytest.raises(gc.errors.ValueNeededError, match=r"the number of results of .* is a size that only calls"):
            gc.trace(function, x)
    with pytest.raises(gc.errors.ValueNeededError, match="needs the values of a traced tensor"):
        gc.vmap(lambda row: row[row > 0].sum())(x.reshape(1, 2))
