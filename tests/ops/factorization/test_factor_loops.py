"""Kernels in loops against LAPACK, at sizes at which lanes end within rows."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.ops.factorization import factors, orthogonal

RANDOM = np.random.default_rng(13)


@pytest.mark.parametrize("n", [9, 17, 33])
def test_compiled_loops_do_what_the_references_do(n: int):
    a = RANDOM.normal(size=(3, n, n)).astype(np.float32) + np.eye(n, dtype=np.float32) * 4
    b, positive = a[..., :2].copy(), a @ a.swapaxes(1, 2)
    for function, *given in (
        (factors.solve, a, b),
        (factors.lu, a),
        (factors.cholesky, positive),
        (factors.solve_triangular, positive, b),
        (orthogonal.qr, a),
    ):
        tensors = [gc.tensor(x) for x in given]
        found, wanted = gc.compile(lambda *x, f=function: f(*x))(*tensors).numpy(), function(*tensors).numpy()
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-4 * np.abs(wanted).max())


def test_pivots_are_the_largest_and_a_column_of_zeros_has_none():
    a = np.array([[0.0, 2.0], [0.0, 4.0]]).repeat(5, 0).repeat(5, 1)[:9, :9]
    run = gc.compile(lambda x: factors.lu(x))
    np.testing.assert_array_equal(run(gc.tensor(a)).numpy(), factors.lu(gc.tensor(a)).numpy())


def test_a_singular_system_is_not_finite():
    x = gc.compile(lambda a, b: factors.solve(a, b))(gc.ones(12, 12), gc.ones(12, 1))
    assert not x.isfinite().all()
