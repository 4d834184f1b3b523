"""Cross-entropy and perplexity, beside a formula in numpy."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.metrics import CrossEntropy, Perplexity
from tests.metrics.batches import Batch, added, in_every_way, joined, scores


def entropy(batches: list[Batch], without: int | None = None) -> float:
    output, target = joined(batches)
    logarithms = output.astype(np.float64) - np.log(np.exp(output.astype(np.float64)).sum(-1, keepdims=True))
    losses = -np.take_along_axis(logarithms, target[..., None], -1)[..., 0]
    return float(losses[target != without].mean())


def test_perplexity_is_the_exponential_of_the_mean():
    batches = scores(7, shape=(3,))
    assert in_every_way(CrossEntropy, batches) == pytest.approx([entropy(batches)] * 5, rel=1e-12)
    assert in_every_way(Perplexity, batches) == pytest.approx([np.exp(entropy(batches))] * 5, rel=1e-12)


def test_padding_is_left_out():
    batches = scores(7, shape=(3,))
    expected = np.exp(entropy(batches, without=2))
    padded = [(output, np.where(target == 2, -100, target)) for output, target in batches]
    assert in_every_way(Perplexity, padded) == pytest.approx([expected] * 5, rel=1e-12)
    assert added(Perplexity(ignore_index=2), batches) == pytest.approx(expected, rel=1e-12)


def test_classes_may_be_another_dimension():
    batches = scores(4, shape=(3,))
    moved = [(output.transpose(0, 2, 1), target) for output, target in batches]
    assert added(CrossEntropy(dim=1), moved) == pytest.approx(entropy(batches), rel=1e-12)
