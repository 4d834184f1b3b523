"""Losses of classification, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.module import from_onnx
from tests.interop.onnx.single import check, model

pytest.importorskip("onnx")

X = np.random.default_rng(0).standard_normal((3, 5, 2)).astype(np.float32)
LABELS = np.array([[0, 4], [1, 1], [3, 2]], np.int64)
WEIGHT = np.array([0.2, 0.3, 0.6, 0.1, 1.0], np.float32)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignored", [{}, {"ignore_index": 1}])
def test_negative_log_likelihood(reduction: str, weighted: bool, ignored: dict[str, int]):
    given = (X, LABELS, WEIGHT) if weighted else (X, LABELS)
    check("NegativeLogLikelihoodLoss", *given, reduction=reduction, **ignored)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy_also_gives_the_logarithms(reduction: str, weighted: bool):
    given = (X, LABELS, WEIGHT) if weighted else (X, LABELS)
    check("SoftmaxCrossEntropyLoss", *given, reduction=reduction, results=[np.float32] * 2, rtol=1e-4)


def test_gradients_of_scores_sum_to_zero():
    x = graphc.tensor(X, requires_grad=True)
    from_onnx(model("SoftmaxCrossEntropyLoss", X, LABELS))(x, graphc.tensor(LABELS)).backward()
    np.testing.assert_allclose(x.grad.numpy().sum(1), 0, atol=1e-6)
