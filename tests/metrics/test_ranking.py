"""The area under the curve, beside the count of all pairs and scikit-learn's function."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ArgumentError, ShapeError
from graphc.metrics import AUROC
from tests.metrics.batches import SIZES, Batch, added, in_every_way, joined, scores


def pairs(scores: np.ndarray, positive: np.ndarray) -> float:
    difference = scores[positive][:, None] - scores[~positive][None]
    return float(((difference > 0) + 0.5 * (difference == 0)).mean())


def ties(seed: int = 5) -> list[Batch]:
    rng = np.random.default_rng(seed)
    targets = [rng.integers(0, 2, size) for size in SIZES]
    return [((t + rng.integers(0, 4, t.shape)).astype(np.float32), t) for t in targets]


def test_the_area_counts_pairs_and_ties_one_half():
    output, target = joined(ties())
    expected = pairs(output, target == 1)
    assert in_every_way(AUROC, ties()) == pytest.approx([expected] * 5, rel=1e-14)
    assert 0.5 < expected < 1


def test_two_scores_a_sample_rank_by_their_difference():
    batches = scores(2)
    output, target = joined(batches)
    expected = pairs(output[:, 1].astype(float) - output[:, 0], target == 1)
    assert in_every_way(AUROC, batches) == pytest.approx([expected] * 5, rel=1e-14)


def test_more_classes_are_compared_each_with_all_others():
    theirs = pytest.importorskip("sklearn.metrics")
    batches = scores(4, seed=1)
    shares = [(np.exp(o) / np.exp(o).sum(1, keepdims=True), t) for o, t in batches]
    output, target = joined(shares)
    rows = output.astype(np.float64)
    expected = theirs.roc_auc_score(target, rows / rows.sum(1, keepdims=True), multi_class="ovr")
    assert added(AUROC(), shares) == pytest.approx(expected, rel=1e-12)
    assert added(AUROC(), shares) == np.mean([pairs(output[:, c], target == c) for c in range(4)])


def test_one_program_serves_all_batches_of_a_shape():
    auroc = AUROC()
    add = gc.compile(lambda o, t: auroc(o, t))
    for output, target in ties()[:2]:
        add(gc.tensor(output), gc.tensor(target))
    assert len(add.programs) == 1 and not np.isnan(auroc.compute())


def test_the_area_is_not_a_number_without_both_classes():
    assert np.isnan(AUROC().compute())
    assert np.isnan(added(AUROC(), [(np.zeros(3, np.float32), np.ones(3, np.int64))]))
    broken = np.array([0.1, np.nan, 0.3], np.float32)
    assert np.isnan(added(AUROC(), [(broken, np.array([0, 1, 0]))]))


def test_targets_that_do_not_fit_are_refused():
    with pytest.raises(ShapeError, match=r"AUROC compares outputs \[3\] with targets \[2\]"):
        added(AUROC(), [(np.zeros(3, np.float32), np.zeros(2, np.int64))])
    with pytest.raises(ArgumentError, match=r"are 0 or 1[\s\S]*scores \[samples, classes\]"):
        added(AUROC(), [(np.zeros(3, np.float32), np.array([0, 1, 2]))])
