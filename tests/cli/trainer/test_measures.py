"""Measures: sums over samples, beside numpy's own formulas."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.cli.trainer.measures import MEASURES, measures_named
from graphc.errors import ArgumentError, ShapeError

SCORES = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
CLASSES = np.array([0, 3, 5, 1, 1, 7])


def test_accuracy_counts_the_best_class():
    assert MEASURES["accuracy"](SCORES, SCORES.argmax(1)) == 6
    assert MEASURES["accuracy"](SCORES, (SCORES.argmax(1) + 1) % 8) == 0
    assert MEASURES["top5"](SCORES, np.argsort(-SCORES, 1)[:, 4]) == 6
    assert MEASURES["top5"](SCORES, np.argsort(-SCORES, 1)[:, 5]) == 0


def test_cross_entropy_is_that_of_the_softmax():
    wanted = -np.log(np.exp(SCORES)[np.arange(6), CLASSES] / np.exp(SCORES).sum(1)).sum()
    assert MEASURES["cross_entropy"](SCORES, CLASSES) == pytest.approx(wanted, rel=1e-5)
    assert np.isfinite(MEASURES["cross_entropy"](SCORES * 1e4, CLASSES))


def test_samples_with_several_classes_count_once():
    scores, classes = SCORES.reshape(3, 2, 8), SCORES.argmax(1).reshape(3, 2)
    assert MEASURES["accuracy"](scores, classes) == 3


def test_differences():
    wanted = np.zeros((6, 8), np.float32)
    assert MEASURES["mse"](SCORES, wanted) == pytest.approx((SCORES**2).mean(1).sum())
    assert MEASURES["mae"](SCORES, wanted) == pytest.approx(np.abs(SCORES).mean(1).sum())
    assert MEASURES["mse"](np.ones((4, 1)), np.zeros(4)) == 4


def test_what_does_not_fit_is_refused():
    for name, wanted in (("accuracy", np.zeros(5, int)), ("accuracy", np.zeros(6)), ("mse", np.zeros((6, 7)))):
        with pytest.raises(ShapeError):
            MEASURES[name](SCORES, wanted)


def test_names():
    assert list(measures_named("accuracy, mse")) == ["accuracy", "mse"]
    for text in ("f1", ""):
        with pytest.raises(ArgumentError, match="there is no measure"):
            measures_named(text)
