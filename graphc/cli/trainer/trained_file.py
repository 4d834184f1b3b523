"""Model file after a training: the entries of the original file with new weights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from graphc.files import model_content
from graphc.files.model_content import Artifact, StoredEntry
from graphc.models.golden import sample_calls
from graphc.models.model_graph import read_graph


def save_trained(stored: Artifact, state: Mapping[str, np.ndarray], path: str | os.PathLike[str]) -> None:
    """Write a model with the arrays of ``state`` instead of its own arrays of these names.

    Native code is kept, because it has no constants that calls change. The outputs of sample calls are recomputed for
    entries with changed arrays. Raises OSError.
    """
    changed = {name for name, array in state.items() if not _equal(array, stored.weights[name])}
    trained = replace(stored, weights={name: state.get(name, array) for name, array in stored.weights.items()})
    entries = tuple(_with_new_samples(trained, e) if changed.intersection(e.spec.uses) else e for e in stored.entries)
    model_content.save(path, replace(trained, entries=entries))


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _with_new_samples(stored: Artifact, entry: StoredEntry) -> StoredEntry:
    if not entry.golden:
        return entry
    examples = entry.golden[0].inputs  # sample_calls derives the other calls from the first one
    graphs = [read_graph(stored, name) for name in entry.spec.programs]
    return replace(entry, golden=sample_calls(entry.spec, graphs, stored.weights, examples, len(entry.golden)))
