"""Measures that compare outputs with targets, each as a sum over samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from graphc.base.errors import ArgumentError, ShapeError

Measure = Callable[[np.ndarray, np.ndarray], float]
_TOP = 5


def _logarithms(scores: np.ndarray) -> np.ndarray:
    shifted = scores - scores.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def _by_class(scores: np.ndarray, target: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return scores as f64[samples, classes], and the class of each sample."""
    if scores.ndim != target.ndim + 1 or scores.shape[:-1] != target.shape or target.dtype.kind not in "iu":
        raise ShapeError(
            f"scores {list(scores.shape)} do not fit classes {list(target.shape)} of {target.dtype.name}",
            remedy="pass --measure mse, or an entry whose last dimension has a score for each class",
        )
    return scores.reshape(-1, scores.shape[-1]).astype(np.float64), target.reshape(-1)


def _rows(scores: np.ndarray, target: np.ndarray) -> float:
    """Return the number of elements per sample, by which sums over elements are divided."""
    return target.size / len(target) if len(target) else 1.0


def accuracy(scores: np.ndarray, target: np.ndarray) -> float:
    """Count the samples whose class has the largest score."""
    rows, classes = _by_class(scores, target)
    return float((rows.argmax(axis=1) == classes).sum()) / _rows(scores, target)


def top5(scores: np.ndarray, target: np.ndarray) -> float:
    """Count the samples whose class is among the five with the largest scores."""
    rows, classes = _by_class(scores, target)
    best = np.argsort(-rows, axis=1, kind="stable")[:, :_TOP]
    return float((best == classes[:, None]).any(axis=1).sum()) / _rows(scores, target)


def cross_entropy(scores: np.ndarray, target: np.ndarray) -> float:
    """Sum the negative log-softmax of scores at the class."""
    rows, classes = _by_class(scores, target)
    return float(-_logarithms(rows)[np.arange(len(classes)), classes].sum()) / _rows(scores, target)


def _differences(output: np.ndarray, target: np.ndarray) -> np.ndarray:
    if output.size != target.size or len(output) != len(target):
        raise ShapeError(f"outputs {list(output.shape)} are compared with {list(target.shape)}")
    return (output.astype(np.float64).reshape(len(output), -1)) - target.astype(np.float64).reshape(len(target), -1)


def mse(output: np.ndarray, target: np.ndarray) -> float:
    """Sum the mean squared difference of each sample."""
    return float((_differences(output, target) ** 2).mean(axis=1).sum())


def mae(output: np.ndarray, target: np.ndarray) -> float:
    """Sum the mean absolute difference of each sample."""
    return float(np.abs(_differences(output, target)).mean(axis=1).sum())


MEASURES: Mapping[str, Measure] = {
    "accuracy": accuracy,
    "top5": top5,
    "cross_entropy": cross_entropy,
    "mse": mse,
    "mae": mae,
}
"""Measures by name on the command line."""


def measures_named(text: str) -> dict[str, Measure]:
    """Return the measures in a list such as ``accuracy,mse``. Raises ArgumentError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in MEASURES]
    if unknown or not names:
        raise ArgumentError(f"there is no measure {', '.join(unknown)!r}", remedy=f"use one of {', '.join(MEASURES)}")
    return {name: MEASURES[name] for name in names}
