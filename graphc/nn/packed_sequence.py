"""PackedSequence: sequences of different lengths stored step by step, each step with the sequences still running."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import AttributeValueError, ShapeError, ValueNeededError
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.creation import arange, from_numpy
from graphc.tensors.tensor import Tensor


class PackedSequence(NamedTuple):
    """Result of ``pack_padded_sequence``: longest sequence first, all elements of step 0, then all of step 1, ..."""

    data: Tensor
    """[sum of lengths, ...]."""
    batch_sizes: Tensor
    """Number of sequences that have each step, i64 [longest length]."""
    sorted_indices: Tensor | None = None
    """Index in the batch of each packed sequence; None when the batch was already sorted."""
    unsorted_indices: Tensor | None = None
    """Packed position of each sequence of the batch."""

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Return a copy with the data converted by ``Tensor.to``."""
        return self._replace(data=self[0].to(*args, **kwargs))

    def double(self) -> PackedSequence:
        """Return a copy with f64 data."""
        return self._replace(data=self[0].double())

    def float(self) -> PackedSequence:
        """Return a copy with f32 data."""
        return self._replace(data=self[0].float())


class MaskedSequence(PackedSequence):
    """Result of ``pack_padded_sequence`` in a trace, for lengths that each call brings.

    The elements stay padded, [steps, batch, ...] with zeros after the end of each sequence, and sequences keep their
    order, since no trace knows how many elements there are.
    """

    __slots__ = ()

    @property
    def padded(self) -> Tensor:
        """[steps, batch, ...]."""
        return self[0]

    @property
    def lengths(self) -> Tensor:
        """i64 [batch]."""
        return self[1]

    @property
    def data(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise ValueNeededError(
            "data of a packed sequence: the number of elements follows from the lengths, which only calls know",
            remedy="unpack with pad_packed_sequence, or pass the lengths as a list (compiles a program for each list)",
        )

    @property
    def batch_sizes(self) -> Tensor:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Number of sequences that have each step, i64 [steps]; zero after the longest sequence."""
        return self.mask().long().sum(1)

    def mask(self) -> Tensor:
        """Mark the steps that each sequence has: bool [steps, batch]."""
        return steps_within(self.lengths, self.padded.shape[0])

    def with_padded(self, x: Tensor, value: float = 0.0) -> MaskedSequence:
        """Return this with the elements of [steps, batch, ...], and ``value`` after the end of each sequence."""
        mask = self.mask()
        return self._replace(data=ew.where(mask.reshape(*mask.shape, *(1,) * (len(x.shape) - 2)), x, value))


class NumberedSequence(MaskedSequence):
    """MaskedSequence whose lengths are numbers among the arguments. Code that needs their values raises
    ValueNeededError: the function is then traced again with the values, and gets a PackedSequence."""

    __slots__ = ()


def steps_within(lengths: Tensor, steps: int) -> Tensor:
    """Mark the steps before the end of each sequence: bool [steps, batch]."""
    return ew.lt(arange(steps).unsqueeze(1), lengths.unsqueeze(0))


def sizes_of(packed: PackedSequence) -> np.ndarray:
    """Return the batch sizes as numbers; raise ShapeError when they do not describe the packed data."""
    sizes = np.asarray(packed.batch_sizes.tolist(), np.int64)
    if not sizes.size or sizes[-1] < 1 or (np.diff(sizes) > 0).any() or sizes.sum() != packed.data.shape[0]:
        raise ShapeError(f"batch sizes {sizes.tolist()} do not fit packed data of shape {list(packed.data.shape)}")
    return sizes


def running(sizes: np.ndarray) -> np.ndarray:
    """Mark the steps that each sequence has: bool [steps, sequences], longest sequence first."""
    return np.arange(sizes[0])[None, :] < sizes[:, None]


def packed_data(padded: Tensor, sizes: np.ndarray) -> Tensor:
    """Collect the elements of [steps, sequences, ...] that belong to sequences."""
    rows = np.flatnonzero(running(sizes))
    return padded.reshape(-1, *padded.shape[2:])[from_numpy(rows)]


def padded_data(data: Tensor, sizes: np.ndarray, value: float = 0.0) -> Tensor:
    """Spread packed data to [steps, sequences, ...], with ``value`` after the end of each sequence."""
    mask = running(sizes)
    rows = np.where(mask, (np.cumsum(sizes) - sizes)[:, None] + np.arange(sizes[0])[None, :], 0)
    values = data[from_numpy(rows.reshape(-1))].reshape(*mask.shape, *data.shape[1:])
    valid = from_numpy(mask).reshape(*mask.shape, *(1,) * (len(data.shape) - 1))
    return ew.where(valid, values, value)


def lengths_of(lengths: Any, batch: int) -> np.ndarray:
    """Return one length per sequence as numbers; raise ShapeError or AttributeValueError for bad lengths."""
    numbers = np.asarray(lengths.tolist() if isinstance(lengths, Tensor) else lengths, np.int64)
    if numbers.shape != (batch,):
        raise ShapeError(f"expected one length for each of {batch} sequences, got shape {list(numbers.shape)}")
    if batch and numbers.min() < 1:
        raise AttributeValueError(f"every sequence needs at least one element, got lengths {numbers.tolist()}")
    return numbers
