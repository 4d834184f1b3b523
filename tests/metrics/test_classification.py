"""Accuracy, confusion matrix, precision, recall and F1, beside formulas in numpy and scikit-learn's functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import graphc as gc
from graphc.errors import ArgumentError, DTypeError, IndexRangeError, ShapeError
from graphc.metrics import F1, Accuracy, Confusion, Precision, Recall
from graphc.metrics.classification import AVERAGES
from tests.metrics.batches import added, in_every_way, joined, scores


def test_accuracy_is_the_share_of_right_classes():
    batches = scores(4)
    output, target = joined(batches)
    expected = (output.argmax(1) == target).mean()
    assert in_every_way(Accuracy, batches) == [expected] * 5 and 0.3 < expected < 1


def test_accuracy_of_the_largest_scores():
    batches = scores(6, seed=1)
    output, target = joined(batches)
    expected = (np.argsort(-output, 1)[:, :3] == target[:, None]).any(1).mean()
    assert in_every_way(lambda: Accuracy(top=3), batches) == [expected] * 5
    assert added(Accuracy(top=9), batches) == 1.0


def test_classes_may_be_another_dimension():
    batches = scores(3, shape=(4,))
    output, target = joined(batches)
    expected = (output.argmax(2) == target).mean()
    assert added(Accuracy(), batches) == expected
    moved = [(o.transpose(0, 2, 1), t) for o, t in batches]
    assert in_every_way(lambda: Accuracy(dim=1), moved) == [expected] * 5


def test_one_score_a_sample_has_a_threshold():
    output = np.array([0.2, 0.6, 0.4, 0.9], np.float32)
    target = np.array([0, 1, 1, 0])
    assert added(Accuracy(threshold=0.5), [(output, target)]) == 0.5
    assert added(Accuracy(threshold=0.0), [(output, target)]) == 0.5
    assert added(Accuracy(threshold=0.4), [(output, target)]) == 0.75
    with pytest.raises(ArgumentError, match=r"no threshold[\s\S]*threshold=0.0 for logits"):
        added(Accuracy(), [(output, target)])


def test_padding_is_left_out():
    batches = scores(3)
    output, target = joined(batches)
    expected = (output.argmax(1) == target)[target != 2].mean()
    assert in_every_way(lambda: Accuracy(ignore_index=2), batches) == [expected] * 5


def test_the_confusion_matrix_counts_pairs():
    batches = scores(3, seed=2)
    output, target = joined(batches)
    expected = np.zeros((3, 3), np.int64)
    np.add.at(expected, (target, output.argmax(1)), 1)
    for counts in in_every_way(lambda: Confusion(3), batches):
        assert counts.dtype == np.int64 and np.array_equal(counts, expected)


def ratios(kind: Any, counts: np.ndarray) -> np.ndarray:
    correct, actual, claimed = np.diag(counts), counts.sum(1), counts.sum(0)
    divisor = {Precision: claimed, Recall: actual, F1: (actual + claimed) / 2}[kind]
    return np.where(divisor > 0, correct / np.maximum(divisor, 1e-300), 0.0)


@pytest.mark.parametrize("kind", [Precision, Recall, F1])
@pytest.mark.parametrize("classes", [2, 5])
def test_ratios_follow_from_the_confusion_matrix(kind: Any, classes: int):
    batches = scores(classes, seed=classes)
    counts = added(Confusion(classes), batches)
    values = ratios(kind, counts)
    expected = {
        "macro": values.mean(),
        "weighted": (values * counts.sum(1)).sum() / counts.sum(),
        "micro": np.trace(counts) / counts.sum(),
        "none": values,
        "binary": values[1],
    }
    for average in AVERAGES[classes != 2 :]:
        for value in in_every_way(lambda average=average: kind(classes, average), batches):
            assert np.allclose(value, expected[average], rtol=1e-14)
    assert added(kind(classes), batches) == pytest.approx(expected["binary" if classes == 2 else "macro"])


@pytest.mark.parametrize("average", AVERAGES[1:4])
def test_ratios_are_those_of_scikit_learn(average: str):
    theirs = pytest.importorskip("sklearn.metrics")
    batches = scores(5, seed=7)
    batches = [(output, np.where(target == 3, 0, target)) for output, target in batches]  # no sample of class 3
    output, target = joined(batches)
    keywords = {"average": average, "zero_division": 0}
    for kind, function in ((Precision, "precision_score"), (Recall, "recall_score"), (F1, "f1_score")):
        expected = getattr(theirs, function)(target, output.argmax(1), labels=range(5), **keywords)
        assert added(kind(5, average), batches) == pytest.approx(expected, rel=1e-12), function


def test_predicted_classes_need_no_threshold():
    assert added(F1(), [(np.array([1, 1, 0]), np.array([1, 0, 0]))]) == pytest.approx(2 / 3)
    assert added(F1(), [(np.array([True, True, False]), np.array([True, False, False]))]) == pytest.approx(2 / 3)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match=r"Accuracy: scores \[2, 3\] do not fit classes \[3\]"):
        added(Accuracy(), [(np.zeros((2, 3), np.float32), np.zeros(3, np.int64))])
    with pytest.raises(DTypeError, match=r"F1: targets are classes[\s\S]*target.long\(\)"):
        added(F1(), [(np.zeros((2, 2), np.float32), np.zeros(2, np.float32))])
    with pytest.raises(ShapeError, match=r"Recall: 3 scores a sample, and 2 classes[\s\S]*Recall\(3\)"):
        added(Recall(), [(np.zeros((2, 3), np.float32), np.zeros(2, np.int64))])
    with pytest.raises(ArgumentError, match=r"average is 'binary' for 3 classes[\s\S]*use one of macro"):
        F1(3, "binary")
    with pytest.raises(ArgumentError, match="top is a number of classes, got 0"):
        Accuracy(0)
    with pytest.raises(ArgumentError, match="classes is at least 2, got 1"):
        Confusion(1)


@pytest.mark.parametrize("pair", [(0, 3), (3, 0), (-1, 1), (1, -1)])
@pytest.mark.parametrize("compiled", [False, True])
def test_classes_that_do_not_exist_are_refused(pair: tuple[int, int], compiled: bool):
    confusion = Confusion(3)
    add = gc.compile(lambda o, t: confusion(o, t)) if compiled else confusion
    with pytest.raises(IndexRangeError):
        add(gc.tensor([pair[0]]), gc.tensor([pair[1]]))
