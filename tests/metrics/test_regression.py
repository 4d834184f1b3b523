"""MAE, MSE, RMSE and R2, beside formulas in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.errors import ShapeError
from graphc.metrics import MAE, MSE, R2, RMSE
from tests.metrics.batches import SIZES, Batch, added, in_every_way, joined


def points(offset: float = 0.0) -> list[Batch]:
    rng = np.random.default_rng(3)
    targets = [offset + rng.standard_normal((size, 2)).astype(np.float32) for size in SIZES]
    return [((t + 0.3 * rng.standard_normal(t.shape)).astype(np.float32), t) for t in targets]


def test_errors_are_means_over_all_elements():
    output, target = (a.astype(np.float64) for a in joined(points()))
    difference = output - target
    expected = {MAE: np.abs(difference).mean(), MSE: (difference**2).mean(), RMSE: (difference**2).mean() ** 0.5}
    for kind, value in expected.items():
        assert in_every_way(kind, points()) == pytest.approx([value] * 5, rel=1e-12)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_the_coefficient_of_determination_does_not_depend_on_the_batches(offset: float):
    output, target = (a.astype(np.float64) for a in joined(points(offset)))
    expected = 1 - ((target - output) ** 2).sum() / ((target - target.mean()) ** 2).sum()
    assert in_every_way(R2, points(offset)) == pytest.approx([expected] * 5, rel=1e-9)
    assert 0.5 < expected < 1


def test_the_coefficient_of_determination_is_that_of_scikit_learn():
    theirs = pytest.importorskip("sklearn.metrics")
    output, target = joined(points())
    expected = theirs.r2_score(target.ravel().astype(np.float64), output.ravel().astype(np.float64))
    assert added(R2(), points()) == pytest.approx(expected, rel=1e-12)


def test_constant_targets():
    ones = np.ones(3, np.float32)
    assert np.isnan(added(R2(), [(ones, ones)]))
    assert added(R2(), [(2 * ones, ones)]) == -np.inf


def test_shapes_that_differ_are_refused():
    with pytest.raises(ShapeError, match=r"MAE compares outputs \[3, 1\] with targets \[3\][\s\S]*squeeze"):
        added(MAE(), [(np.zeros((3, 1), np.float32), np.zeros(3, np.float32))])
