"""Area under the receiver operating characteristic, exact, from the scores of all samples."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.distributed.group import group
from graphc.metrics.classification import check_scores
from graphc.metrics.metric import Metric, check_shapes
from graphc.tensors.creation import zeros
from graphc.tracing.host import opaque


class AUROC(Metric):
    """Area under the receiver operating characteristic: the probability that a sample of class 1 has a larger score
    than one of class 0, where equal scores count one half.

    Outputs hold one score a sample, [samples] like the targets, or scores [samples, classes]. With 2 classes the
    difference of the scores ranks the samples. With more the value is the mean over the classes, each against all
    others; pass probabilities then, since scores of different samples are compared. NaN if a class has no samples, or
    all of them.

    Scores stay in host memory, 8 bytes each; compiled code hands them over by a call of Python in each
    batch.

    Example:
        >>> import graphc as gc
        >>> auroc = gc.metrics.AUROC()
        >>> auroc(gc.tensor([0.1, 0.4, 0.35, 0.8]), gc.tensor([0, 0, 1, 1]))
        >>> auroc.compute()
        0.75
    """

    is_higher_better = True

    def __init__(self) -> None:
        super().__init__()
        self._batches: list[tuple[np.ndarray, np.ndarray]] = []

    def update(self, output: Any, target: Any) -> None:
        """Add scores, and the class of each sample."""
        if output.ndim == 2:
            check_scores("AUROC", output, target, 1)
        else:
            check_shapes("AUROC", output, target)
        opaque(self._add, results=lambda *_: zeros(()))(output.double(), target)

    def _add(self, output: Any, target: Any) -> np.float32:
        self._batches.append((np.array(output._values(force=True)), np.array(target._values(force=True))))
        return np.float32(0)

    def reset(self) -> None:
        self._batches.clear()

    def compute(self) -> float:
        here = group()
        everywhere = here.gather_objects(self._batches) if here.size > 1 else [self._batches]
        batches = [batch for own in everywhere for batch in own]
        if not batches:
            return float("nan")
        scores, target = (np.concatenate(arrays) for arrays in zip(*batches, strict=True))
        if scores.ndim == 1:
            return area(scores, _is_one(target))
        if scores.shape[1] == 2:
            return area(scores[:, 1] - scores[:, 0], _is_one(target))
        return float(np.mean([area(scores[:, c], target == c) for c in range(scores.shape[1])]))


def _is_one(target: np.ndarray) -> np.ndarray:
    """Return where targets are 1. Raise ArgumentError for targets other than 0 and 1."""
    if not np.isin(target, (0, 1)).all():
        raise ArgumentError(
            "AUROC: targets for one score a sample, or two, are 0 or 1", remedy="pass scores [samples, classes]"
        )
    return target == 1


def area(scores: np.ndarray, positive: np.ndarray) -> float:
    """Return the area under the curve by the ranks of the scores (Hanley and McNeil 1982); NaN with one class only, or
    with a score that is NaN."""
    ones = int(positive.sum())
    others = positive.size - ones
    if not ones or not others or np.isnan(scores).any():
        return float("nan")
    _, indices, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[indices]
    return float((ranks[positive].sum() - ones * (ones + 1) / 2) / (ones * others))
