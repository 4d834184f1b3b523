"""The model file that a training leaves: all entries of the file that it began with, with other weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from graphc.files import model_content
from graphc.files.model_content import Artifact, StoredEntry


def save_trained(stored: Artifact, state: Mapping[str, np.ndarray], path: str | os.PathLike[str]) -> list[str]:
    """Writes a model with the arrays of ``state`` in the place of its own ones of these names; what is left out, for
    people. Native code stays: what calls change is no constant of it. Sample calls of entries that take another array
    now are of the model as it was, and are left out. Raises OSError."""
    changed = {name for name, array in state.items() if not _equal(array, stored.weights[name])}
    weights = {name: state.get(name, array) for name, array in stored.weights.items()}
    entries = [_without_old_samples(entry, changed) for entry in stored.entries]
    left = [e.spec.name for e, new in zip(stored.entries, entries, strict=True) if e.golden and not new.golden]
    model_content.save(path, replace(stored, entries=tuple(entries), weights=weights))
    return [f"{name}: its sample calls are of the weights before, and are left out" for name in left]


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _without_old_samples(entry: StoredEntry, changed: set[str]) -> StoredEntry:
    if not changed.intersection(entry.spec.uses):
        return entry
    return replace(entry, golden=(), spec=replace(entry.spec, golden=()))
