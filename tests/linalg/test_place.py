"""Choice of the code that factors matrices: native for small ones and in files and libraries, numpy for large ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.linalg import place

RANDOM = np.random.default_rng(1)


class Filter(gc.nn.Module):
    """The gain of a filter by Kalman."""

    def forward(self, p: gc.Tensor, r: gc.Tensor) -> gc.Tensor:
        return gc.linalg.solve(p + r, p).mT


def solved(n: int) -> tuple[gc.Tensor, gc.Tensor, gc.Tensor]:
    a, b = RANDOM.normal(size=(n, n)) + n * np.eye(n), RANDOM.normal(size=(n, 2))
    return gc.tensor(a), gc.tensor(b), gc.tensor(np.linalg.solve(a, b))


@pytest.mark.parametrize("n", [3, 8, 9, 20, place.NATIVE_ROWS + 1])
def test_both_ways_give_the_solution(n: int):
    a, b, wanted = solved(n)
    np.testing.assert_allclose(gc.compile(gc.linalg.solve)(a, b).numpy(), wanted.numpy(), rtol=1e-9, atol=1e-12)


def test_only_large_matrices_are_handed_to_numpy_by_a_call_that_says_why(monkeypatch: pytest.MonkeyPatch):
    def refuse(function: Any, results: Any) -> Any:
        raise RuntimeError(function.__name__)

    monkeypatch.setattr(place, "opaque", refuse)
    n = place.NATIVE_ROWS
    gc.compile(gc.linalg.solve)(*solved(n)[:2])
    with pytest.raises(RuntimeError, match=f"linalg: solve of {n + 1} rows by numpy, as these are more than {n}"):
        gc.compile(gc.linalg.solve)(*solved(n + 1)[:2])


def test_a_large_solution_has_a_gradient_in_compiled_code():
    a, b, _ = solved(place.NATIVE_ROWS + 2)
    found, wanted = a.clone().requires_grad_(), a.clone().requires_grad_()
    gc.compile(gc.linalg.solve)(found, b).sum().backward()
    gc.linalg.solve(wanted, b).sum().backward()
    np.testing.assert_allclose(found.grad.numpy(), wanted.grad.numpy(), rtol=1e-9)


def test_a_size_that_is_named_is_computed_natively():
    run = gc.compile(gc.linalg.solve, dims=[(gc.Dim("batch", max=9),), (gc.Dim("batch", max=9),)])
    for count in (1, 4, 9):
        a, b, wanted = (x.expand(count, *x.shape).clone() for x in solved(4))
        np.testing.assert_allclose(run(a, b).numpy(), wanted.numpy(), rtol=1e-9)


@pytest.mark.parametrize("n", [3, place.NATIVE_ROWS + 1])
def test_a_file_holds_native_code_whatever_the_size(n: int, tmp_path: Path):
    a, b, _ = solved(n)
    p, r = a.mT @ a, gc.eye(n).double()
    path = str(tmp_path / "filter.gcm")
    gc.export(Filter(), p, r, path=path)
    np.testing.assert_allclose(gc.load(path)(p.numpy(), r.numpy()), Filter()(p, r).numpy(), rtol=1e-9)
    assert b.shape == (n, 2)


def test_a_library_solves_without_python_and_without_taking_memory(tmp_path: Path):
    example = (gc.eye(6), gc.eye(6))
    built = gc.build_library(Filter(), *example, path=str(tmp_path / "filter.so"), realtime=True)
    assert built is not None and (tmp_path / "filter.so").stat().st_size > 0
