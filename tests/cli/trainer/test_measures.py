"""Measures by name: the metrics that they make for an output, and unknown names."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.cli.trainer.measures import MEASURES, default_measure, measures_named
from graphc.errors import ArgumentError
from graphc.files.manifest import TensorSpec

SCORES = np.random.default_rng(0).standard_normal((6, 8)).astype(np.float32)
CLASSES = np.array([0, 3, 5, 1, 1, 7])
OUTPUT = TensorSpec("scores", "f32", (6, 8))


def measured(name: str, output: np.ndarray, target: np.ndarray) -> float:
    metric = MEASURES[name](OUTPUT)
    metric(gc.tensor(output), gc.tensor(target))
    return metric.compute()


def test_measures_of_classes():
    assert measured("accuracy", SCORES, SCORES.argmax(1)) == 1
    assert measured("top5", SCORES, np.argsort(-SCORES, 1)[:, 4]) == 1
    assert measured("top5", SCORES, np.argsort(-SCORES, 1)[:, 5]) == 0
    losses = -np.log(np.exp(SCORES)[np.arange(6), CLASSES] / np.exp(SCORES).sum(1))
    assert measured("cross_entropy", SCORES, CLASSES) == pytest.approx(losses.mean(), rel=1e-5)
    assert measured("perplexity", SCORES, CLASSES) == pytest.approx(np.exp(losses.mean()), rel=1e-5)
    assert measured("f1", SCORES, SCORES.argmax(1)) == pytest.approx(len(set(SCORES.argmax(1))) / 8)


def test_measures_of_numbers():
    assert measured("mse", SCORES, np.zeros_like(SCORES)) == pytest.approx((SCORES**2).mean())
    assert measured("mae", SCORES, np.zeros_like(SCORES)) == pytest.approx(np.abs(SCORES).mean())
    assert measured("r2", SCORES, SCORES) == 1


def test_classes_need_a_dimension_of_scores():
    with pytest.raises(ArgumentError, match="no last dimension of scores"):
        MEASURES["f1"](TensorSpec("scores", "f32", (6,)))


def test_default_measure():
    assert list(default_measure(TensorSpec("y", "i64", (6,)))) == ["accuracy"]
    assert list(default_measure(TensorSpec("y", "f32", (6,)))) == ["mse"]


def test_names():
    assert list(measures_named("accuracy, mse")) == ["accuracy", "mse"]
    for text in ("f2", ""):
        with pytest.raises(ArgumentError, match="there is no measure"):
            measures_named(text)
