"""Metrics of classes: accuracy, the confusion matrix, and precision, recall and F1 from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.metrics.metric import Metric
from graphc.tensors.tensor import Tensor

AVERAGES = ("binary", "macro", "weighted", "micro", "none")


def check_scores(name: str, output: Any, target: Any, dim: int) -> None:
    """Raise ShapeError unless the output is the target with a dimension ``dim`` of scores; DTypeError for targets that
    are not whole numbers."""
    rest = list(output.shape)
    if output.ndim:
        del rest[dim]
    if output.ndim != target.ndim + 1 or rest != list(target.shape):
        raise ShapeError(
            f"{name}: scores {list(output.shape)} do not fit classes {list(target.shape)}",
            remedy="give scores one more dimension than targets, the classes, and pass its index as dim=",
        )
    if target.dtype.is_floating_point:
        raise DTypeError(f"{name}: targets are classes, got {target.dtype}", remedy="pass target.long()")


def predicted(name: str, output: Any, target: Any, dim: int, threshold: float | None) -> Any:
    """Return the class of each sample, i64 in the shape of the target.

    The output holds scores, with the classes along ``dim``; or one score a sample, of class 1 from ``threshold`` on; or
    classes, as integers or bools.
    """
    if output.ndim == target.ndim + 1:
        check_scores(name, output, target, dim)
        return output.argmax(dim)
    if tuple(output.shape) != tuple(target.shape):
        check_scores(name, output, target, dim)
    if not output.dtype.is_floating_point:
        return output.long()
    if threshold is None:
        raise ArgumentError(
            f"{name}: the output has one score for each sample, and no threshold",
            remedy="pass threshold=0.0 for logits, or threshold=0.5 for probabilities",
        )
    return (output >= threshold).long()


class Accuracy(Metric):
    """Share of the samples whose class is right.

    Args:
        top: number of classes with the largest scores among which the right one counts.
        dim: dimension of the classes in the scores; the others are those of the targets.
        threshold: for outputs with one score a sample, the score from which on it is class 1.
        ignore_index: a class in targets whose samples are left out, such as -100 in padding.

    Example:
        >>> import graphc as gc
        >>> accuracy = gc.metrics.Accuracy()
        >>> accuracy(gc.tensor([[0.1, 0.9], [0.8, 0.2]]), gc.tensor([1, 1]))
        >>> accuracy.compute()
        0.5
    """

    is_higher_better = True
    correct: Tensor
    count: Tensor

    def __init__(
        self, top: int = 1, *, dim: int = -1, threshold: float | None = None, ignore_index: int | None = None
    ) -> None:
        super().__init__()
        if not isinstance(top, int) or top < 1:
            raise ArgumentError(f"Accuracy: top is a number of classes, got {top!r}", remedy="pass top=1 or more")
        self.top, self.dim, self.threshold, self.ignore_index = top, dim, threshold, ignore_index
        self.add_sum("correct", whole=True)
        self.add_sum("count", whole=True)

    def update(self, output: Any, target: Any) -> None:
        """Add scores, or classes, and the right classes."""
        if self.top == 1:
            right = predicted("Accuracy", output, target, self.dim, self.threshold) == target
        else:
            check_scores("Accuracy", output, target, self.dim)
            best = output.topk(min(self.top, output.shape[self.dim]), dim=self.dim).indices
            right = (best == target.unsqueeze(self.dim)).any(dim=self.dim)
        if self.ignore_index is None:
            self.count += right.numel()
        else:
            counted = target != self.ignore_index
            right = right & counted
            self.count += counted.sum()
        self.correct += right.sum()

    def value_of(self, sums: Mapping[str, np.ndarray]) -> float:
        return float(sums["correct"] / sums["count"])


class Confusion(Metric):
    """Confusion matrix, i64[classes, classes]: entry [i, j] counts samples of class i for which j was predicted.

    Args:
        classes: number of classes.
        dim, threshold: as for ``Accuracy``.

    Example:
        >>> import graphc as gc
        >>> confusion = gc.metrics.Confusion(2)
        >>> confusion(gc.tensor([1, 1, 0]), gc.tensor([1, 0, 0]))
        >>> confusion.compute().tolist()
        [[1, 1], [0, 1]]
    """

    counts: Tensor

    def __init__(self, classes: int = 2, *, dim: int = -1, threshold: float | None = None) -> None:
        super().__init__()
        if not isinstance(classes, int) or classes < 2:
            raise ArgumentError(f"{type(self).__name__}: classes is at least 2, got {classes!r}")
        self.classes, self.dim, self.threshold = classes, dim, threshold
        self.add_sum("counts", (classes * classes,), whole=True)

    def update(self, output: Any, target: Any) -> None:
        """Add scores, or classes, and the right classes. Raise IndexRangeError for classes that do not exist."""
        name, size = type(self).__name__, self.classes
        if output.ndim == target.ndim + 1 and output.shape[self.dim] != size:
            raise ShapeError(
                f"{name}: {output.shape[self.dim]} scores a sample, and {size} classes",
                remedy=f"make it by {name}({output.shape[self.dim]})",
            )
        columns, rows = predicted(name, output, target, self.dim, self.threshold).reshape(-1), target.reshape(-1).long()
        exist = (rows >= 0) & (rows < size) & (columns >= 0) & (columns < size)
        # NOTE: the index of other classes is outside of the table, so that index_add_ reports them.
        cells = (rows * size + columns).where(exist, size * size)
        self.counts.index_add_(0, cells, exist.long())

    def value_of(self, sums: Mapping[str, np.ndarray]) -> Any:
        return sums["counts"].reshape(self.classes, self.classes)


class _Ratio(Confusion):
    """Base of ratios of the true positives of each class, and of their average over classes."""

    is_higher_better = True

    def __init__(
        self, classes: int = 2, average: str | None = None, *, dim: int = -1, threshold: float | None = None
    ) -> None:
        super().__init__(classes, dim=dim, threshold=threshold)
        self.average = average or ("binary" if classes == 2 else "macro")
        if self.average not in AVERAGES or (self.average == "binary" and classes != 2):
            raise ArgumentError(
                f"{type(self).__name__}: average is {average!r} for {classes} classes",
                remedy=f"use one of {', '.join(AVERAGES[classes != 2 :])}",
            )

    def value_of(self, sums: Mapping[str, np.ndarray]) -> Any:
        counts = super().value_of(sums)
        correct, actual, claimed = counts.diagonal(), counts.sum(axis=1), counts.sum(axis=0)
        if self.average == "micro":
            return float(self._ratio(correct.sum(), actual.sum(), claimed.sum()))
        values = np.nan_to_num(self._ratio(correct, actual, claimed), nan=0.0)
        if self.average == "none":
            return values
        if self.average == "binary":
            return float(values[1])
        return float(np.average(values, weights=actual) if self.average == "weighted" else values.mean())

    def _ratio(self, correct: Any, actual: Any, claimed: Any) -> Any:
        """Return the ratio from numbers of samples: correctly predicted, in the class, predicted as the class."""
        raise NotImplementedError


class Precision(_Ratio):
    """Share of the samples predicted as a class that are of it; 0 if there are none.

    Args:
        classes: number of classes.
        average: ``binary`` returns the value of class 1 (the default for 2 classes), ``macro`` the mean over classes
            (the default for more), ``weighted`` the mean weighted by the samples of each class, ``micro`` the value of
            all samples together, ``none`` an array f64[classes].
        dim, threshold: as for ``Accuracy``.

    Example:
        >>> import graphc as gc
        >>> precision = gc.metrics.Precision(threshold=0.5)
        >>> precision(gc.tensor([0.9, 0.8, 0.2]), gc.tensor([1, 0, 1]))
        >>> precision.compute()
        0.5
    """

    def _ratio(self, correct: Any, actual: Any, claimed: Any) -> Any:
        return correct / claimed


class Recall(_Ratio):
    """Share of the samples of a class that are predicted as it; 0 if there are none. Arguments as for ``Precision``."""

    def _ratio(self, correct: Any, actual: Any, claimed: Any) -> Any:
        return correct / actual


class F1(_Ratio):
    """Harmonic mean of precision and recall; 0 for a class without samples. Arguments as for ``Precision``."""

    def _ratio(self, correct: Any, actual: Any, claimed: Any) -> Any:
        return 2 * correct / (actual + claimed)
