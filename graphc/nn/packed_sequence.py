"""PackedSequence: sequences of different lengths, step by step, each step holding those that are still running."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.creation import from_numpy
from graphc.tensors.tensor import Tensor


class PackedSequence(NamedTuple):
    """What ``pack_padded_sequence`` gives: longest sequence first, all elements of step 0, then all of step 1, ..."""

    data: Tensor
    """[sum of lengths, ...]."""
    batch_sizes: Tensor
    """How many sequences have each step, i64 [longest length]."""
    sorted_indices: Tensor | None = None
    """Which sequence of the batch comes at each place; None when they were sorted."""
    unsorted_indices: Tensor | None = None
    """At which place each sequence of the batch is."""

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """With the data converted as by ``Tensor.to``."""
        return self._replace(data=self.data.to(*args, **kwargs))

    def double(self) -> PackedSequence:
        """With f64 data."""
        return self._replace(data=self.data.double())

    def float(self) -> PackedSequence:
        """With f32 data."""
        return self._replace(data=self.data.float())


def sizes_of(packed: PackedSequence) -> np.ndarray:
    """The batch sizes as numbers; raises ShapeError when they are none of a packed sequence."""
    sizes = np.asarray(packed.batch_sizes.tolist(), np.int64)
    if not sizes.size or sizes[-1] < 1 or (np.diff(sizes) > 0).any() or sizes.sum() != packed.data.shape[0]:
        raise ShapeError(f"batch sizes {sizes.tolist()} do not fit packed data of shape {list(packed.data.shape)}")
    return sizes


def running(sizes: np.ndarray) -> np.ndarray:
    """Whether a sequence has a step, [steps, sequences], longest first."""
    return np.arange(sizes[0])[None, :] < sizes[:, None]


def packed_data(padded: Tensor, sizes: np.ndarray) -> Tensor:
    """The elements of [steps, sequences, ...] that belong to sequences."""
    rows = np.flatnonzero(running(sizes))
    return padded.reshape(-1, *padded.shape[2:])[from_numpy(rows)]


def padded_data(data: Tensor, sizes: np.ndarray, value: float = 0.0) -> Tensor:
    """[steps, sequences, ...] with ``value`` where a sequence has ended."""
    mask = running(sizes)
    rows = np.where(mask, (np.cumsum(sizes) - sizes)[:, None] + np.arange(sizes[0])[None, :], 0)
    found = data[from_numpy(rows.reshape(-1))].reshape(*mask.shape, *data.shape[1:])
    shown = from_numpy(mask).reshape(*mask.shape, *(1,) * (len(data.shape) - 1))
    return ew.where(shown, found, value)


def lengths_of(lengths: Any, batch: int) -> np.ndarray:
    """Lengths as numbers, one per sequence; raises ShapeError or AttributeValueError for what is none."""
    numbers = np.asarray(lengths.tolist() if isinstance(lengths, Tensor) else lengths, np.int64)
    if numbers.shape != (batch,):
        raise ShapeError(f"lengths of shape {list(numbers.shape)} for {batch} sequences")
    if batch and numbers.min() < 1:
        raise AttributeValueError(f"every sequence needs an element, lengths are {numbers.tolist()}")
    return numbers
