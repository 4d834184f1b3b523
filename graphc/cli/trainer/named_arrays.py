"""Dataset with one array per input of an entry, read in batches by name."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ShapeError
from graphc.cli.trainer.conversion import Conversion, Scaling, conversion
from graphc.data.dataset import Dataset
from graphc.files.manifest import TensorSpec


class NamedArrays(Dataset):
    """Rows of arrays by name, converted to the types and shapes of inputs when read."""

    def __init__(self, arrays: Mapping[str, Any], place: str):
        """``arrays`` are numpy arrays, or columns such as ``Pictures``; ``place`` names them in errors."""
        self.arrays = dict(arrays)
        self.place = place
        self._conversions: dict[str, Conversion] = {}
        lengths = {name: a.shape[0] if a.shape else 0 for name, a in self.arrays.items()}
        if len(set(lengths.values())) > 1:
            listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise ShapeError(f"{place} holds different numbers of samples: {listed}")
        self._length = next(iter(lengths.values()), 0)

    def fit(self, inputs: Sequence[TensorSpec], scaling: Scaling) -> list[str]:
        """Select the inputs to read, and return messages about conversions.

        Raises ArgumentError for an input without an array; ShapeError and DTypeError.
        """
        missing = [spec.name for spec in inputs if spec.name not in self.arrays]
        if missing:
            raise ArgumentError(
                f"{self.place} has no {', '.join(missing)}, which the entry takes; it has {', '.join(self.arrays)}",
                remedy="name the arrays like the inputs, or pass --data NAME=FILE,NAME=FILE",
            )
        self._conversions = {
            spec.name: conversion(self.arrays[spec.name], spec, scaling, f"{self.place}: {spec.name}")
            for spec in inputs
        }
        return [note for c in self._conversions.values() for note in c.notes]

    def __len__(self) -> int:
        return self._length

    def take(self, indices: Sequence[int]) -> dict[str, np.ndarray]:
        """Return the batch of these samples by input name."""
        rows = np.asarray(indices, np.int64)
        return {name: convert(self.arrays[name][rows]) for name, convert in self._conversions.items()}

    def __getitem__(self, index: Any) -> dict[str, np.ndarray]:
        return {name: rows[0] for name, rows in self.take([index]).items()}

    def digest(self) -> str:
        """Return a digest of the content, which ties checkpoints to their data."""
        state = hashlib.sha256()
        for name, array in sorted(self.arrays.items()):
            state.update(f"{name} {array.dtype} {array.shape}\n".encode())
            own = getattr(array, "digest", None)
            state.update(own() if own is not None else np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return state.hexdigest()
