"""Measures of outputs beside what they should be, each a sum over samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from graphc.base.errors import ArgumentError, ShapeError

Measure = Callable[[np.ndarray, np.ndarray], float]
_TOP = 5


def _logarithms(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _by_class(scores: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Scores as [samples, classes] in f64, and the number of the class of each."""
    if scores.ndim != wanted.ndim + 1 or scores.shape[:-1] != wanted.shape or wanted.dtype.kind not in "iu":
        raise ShapeError(
            f"scores {list(scores.shape)} do not fit classes {list(wanted.shape)} of {wanted.dtype.name}",
            remedy="--measure mse, or an entry that gives a score for each class along its last dimension",
        )
    return scores.reshape(-1, scores.shape[-1]).astype(np.float64), wanted.reshape(-1)


def _rows(scores: np.ndarray, wanted: np.ndarray) -> float:
    """What sums over elements are divided by so that they count samples."""
    return wanted.size / len(wanted) if len(wanted) else 1.0


def accuracy(scores: np.ndarray, wanted: np.ndarray) -> float:
    """Samples whose class has the largest score."""
    rows, classes = _by_class(scores, wanted)
    return float((rows.argmax(axis=1) == classes).sum()) / _rows(scores, wanted)


def top5(scores: np.ndarray, wanted: np.ndarray) -> float:
    """Samples whose class is among the five with the largest scores."""
    rows, classes = _by_class(scores, wanted)
    best = np.argsort(-rows, axis=1, kind="stable")[:, :_TOP]
    return float((best == classes[:, None]).any(axis=1).sum()) / _rows(scores, wanted)


def cross_entropy(scores: np.ndarray, wanted: np.ndarray) -> float:
    """Minus the logarithm of the softmax of scores at the class."""
    rows, classes = _by_class(scores, wanted)
    return float(-_logarithms(rows)[np.arange(len(classes)), classes].sum()) / _rows(scores, wanted)


def _differences(found: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    if found.size != wanted.size or len(found) != len(wanted):
        raise ShapeError(f"outputs {list(found.shape)} are compared with {list(wanted.shape)}")
    return (found.astype(np.float64).reshape(len(found), -1)) - wanted.astype(np.float64).reshape(len(wanted), -1)


def mse(found: np.ndarray, wanted: np.ndarray) -> float:
    """Mean of the squares of the differences of a sample."""
    return float((_differences(found, wanted) ** 2).mean(axis=1).sum())


def mae(found: np.ndarray, wanted: np.ndarray) -> float:
    """Mean of the differences of a sample without their signs."""
    return float(np.abs(_differences(found, wanted)).mean(axis=1).sum())


MEASURES: Mapping[str, Measure] = {
    "accuracy": accuracy,
    "top5": top5,
    "cross_entropy": cross_entropy,
    "mse": mse,
    "mae": mae,
}
"""By their names on the command line."""


def measures_named(text: str) -> dict[str, Measure]:
    """The measures that ``accuracy,mse`` names. Raises ArgumentError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in MEASURES]
    if unknown or not names:
        raise ArgumentError(f"there is no measure {', '.join(unknown)!r}", remedy=f"one of {', '.join(MEASURES)}")
    return {name: MEASURES[name] for name in names}
