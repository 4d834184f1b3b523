"""Batches for the tests of metrics, which add them up eagerly, in compiled code, and in several processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphc as gc
from graphc.distributed import group, threads
from graphc.metrics import Metric

Batch = tuple[np.ndarray, np.ndarray]
SIZES = (5, 5, 7, 1)


def added(metric: Metric, batches: Sequence[Batch]) -> Any:
    """Return the value after all batches."""
    for output, target in batches:
        metric(gc.tensor(output), gc.tensor(target))
    return metric.compute()


def in_every_way(make: Callable[[], Metric], batches: Sequence[Batch]) -> list[Any]:
    """Return the value after the batches: eager, after a reset, compiled, and in two processes that share them."""
    metric, compiled = make(), make()
    eager = added(metric, batches)
    metric.reset()
    again = added(metric, batches)
    add = gc.compile(lambda output, target: compiled(output, target))
    for output, target in batches:
        add(gc.tensor(output), gc.tensor(target))
    values = threads.run(2, lambda _: added(make(), batches[group().rank :: 2]))
    return [eager, again, compiled.compute(), *values]


def scores(classes: int, seed: int = 0, shape: tuple[int, ...] = ()) -> list[Batch]:
    """Scores [samples, *shape, classes] and classes, which the scores mostly prefer."""
    rng = np.random.default_rng(seed)
    batches = []
    for size in SIZES:
        target = rng.integers(0, classes, (size, *shape))
        output = rng.standard_normal((size, *shape, classes)) + 1.5 * np.eye(classes)[target]
        batches.append((output.astype(np.float32), target))
    return batches


def joined(batches: Sequence[Batch]) -> Batch:
    """Return all batches as one."""
    outputs, targets = zip(*batches, strict=True)
    return np.concatenate(outputs), np.concatenate(targets)
