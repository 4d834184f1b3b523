"""Reflections: columns that are zero already stay, as LAPACK leaves them."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.ops.factorization import orthogonal


@pytest.mark.parametrize(
    "matrix",
    [
        np.eye(3),
        -np.eye(3),
        np.zeros((3, 2)),
        np.triu(np.ones((3, 4))),
        np.array([[3.0, 0.0], [4.0, 0.0], [0.0, 0.0], [0.0, 0.0]]),
        np.diag([1.0, 0.0, 2.0]),
    ],
    ids=["one", "minus one", "nothing", "upper", "less rank", "a zero"],
)
def test_compiled_code_gives_the_signs_of_lapack(matrix: np.ndarray):
    for complete in (False, True):
        found = gc.compile(lambda x, c=complete: orthogonal.qr(x, complete=c))(gc.tensor(matrix))
        np.testing.assert_allclose(
            found.numpy(), orthogonal.qr(gc.tensor(matrix), complete=complete).numpy(), atol=1e-15
        )
