"""Changes of a model's parameters that leave its results alone, each undone where the results of a call do change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from graphc.nn.module import Module
from graphc.quantization.batches import Batch, run
from graphc.tensors.structure import flatten

Undo = Callable[[], None]
Change = Callable[[], Undo]
"""Function that changes a model, and returns a function that undoes it."""
_TOLERANCE = 1e-3
"""Largest change of a result, as a fraction of its largest element, that rounding explains."""


def parameter_uses(model: Module) -> Counter[int]:
    """Return the number of modules that hold each parameter, by ``id``."""
    return Counter(id(p) for module in model.modules() for p in module._parameters.values() if p is not None)


def results_of(model: Module, batch: Batch) -> list[np.ndarray]:
    """Return copies of the tensors that a call returns."""
    return [np.array(t._values(force=True)) for t in flatten(run(model, batch))[0]]


def apply_changes(model: Module, batch: Batch, changes: Sequence[Change]) -> list[int]:
    """Apply the changes that keep the results of a call; return their indices.

    All are tried together, then, if the results differ, one by one. No change is kept where the call returns no
    floating-point tensors, since nothing shows what it does.
    """
    before = results_of(model, batch)
    if not any(a.dtype.kind == "f" and a.size for a in before):
        return []
    if _apply_together(model, batch, changes, before):
        return list(range(len(changes)))
    return [i for i, change in enumerate(changes) if _apply_together(model, batch, [change], before)]


def _apply_together(model: Module, batch: Batch, changes: Sequence[Change], before: list[np.ndarray]) -> bool:
    undo = [change() for change in changes]
    if all(_is_close(a, b) for a, b in zip(results_of(model, batch), before, strict=True)):
        return True
    for step in reversed(undo):
        step()
    return False


def _is_close(a: np.ndarray, b: np.ndarray) -> bool:
    if b.dtype.kind != "f" or not b.size:
        return True  # an index of the largest of two equal numbers may change
    return a.shape == b.shape and bool(np.abs(a - b).max() <= _TOLERANCE * np.abs(b).max())
