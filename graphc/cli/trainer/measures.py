"""Measures that compare outputs with targets: the metrics that have a name on the command line."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphc import metrics
from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import is_size
from graphc.files.manifest import TensorSpec
from graphc.metrics import Metric

Make = Callable[[TensorSpec], Metric]
"""Function that makes a metric for an entry's output."""


def _of_classes(kind: Callable[[int], Metric]) -> Make:
    """Return a function that makes a metric with as many classes as the output has scores."""

    def make(output: TensorSpec) -> Metric:
        if len(output.shape) < 2 or is_size(output.shape[-1]):
            raise ArgumentError(
                f"the output {output.name} has no last dimension of scores, one for each class",
                remedy="pass --measure mse, or an entry that returns such scores",
            )
        return kind(int(output.shape[-1]))

    return make


MEASURES: Mapping[str, Make] = {
    "accuracy": lambda output: metrics.Accuracy(),
    "top5": lambda output: metrics.Accuracy(top=5),
    "cross_entropy": lambda output: metrics.CrossEntropy(),
    "perplexity": lambda output: metrics.Perplexity(),
    "precision": _of_classes(metrics.Precision),
    "recall": _of_classes(metrics.Recall),
    "f1": _of_classes(metrics.F1),
    "auroc": lambda output: metrics.AUROC(),
    "mse": lambda output: metrics.MSE(),
    "rmse": lambda output: metrics.RMSE(),
    "mae": lambda output: metrics.MAE(),
    "r2": lambda output: metrics.R2(),
}
"""Measures by name on the command line."""


def default_measure(target: TensorSpec) -> dict[str, Make]:
    """Return the measure of a target: accuracy for classes, the mean squared error for numbers."""
    name = "accuracy" if target.dtype.startswith("i") else "mse"
    return {name: MEASURES[name]}


def measures_named(text: str) -> dict[str, Make]:
    """Return the measures in a list such as ``accuracy,mse``. Raises ArgumentError."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in MEASURES]
    if unknown or not names:
        raise ArgumentError(f"there is no measure {', '.join(unknown)!r}", remedy=f"use one of {', '.join(MEASURES)}")
    return {name: MEASURES[name] for name in names}
