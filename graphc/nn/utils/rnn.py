"""Sequences of different lengths: pad them, pack them for recurrent layers, and unpack them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import AttributeValueError, ShapeError, ValueNeededError
from graphc.base.sizes.symbolic import is_symbolic
from graphc.nn.packed_sequence import (
    MaskedSequence,
    NumberedSequence,
    PackedSequence,
    lengths_of,
    packed_data,
    padded_data,
    running,
    sizes_of,
)
from graphc.ops.movement import shape
from graphc.ops.movement.shape import concat
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.creation import from_numpy, tensor
from graphc.tensors.free_functions import assert_true
from graphc.tensors.indexing import require
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front

__all__ = ["PackedSequence", "pack_padded_sequence", "pack_sequence", "pad_packed_sequence", "pad_sequence"]
__all__ += ["unpack_sequence", "unpad_sequence"]


def pad_sequence(
    sequences: Sequence[Tensor], batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Tensor:
    """Pad tensors [length, ...] to one tensor [longest, batch, ...] or [batch, longest, ...].

    Example:
        >>> import graphc as gc
        >>> gc.nn.utils.rnn.pad_sequence([gc.tensor([1, 2]), gc.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if padding_side not in ("left", "right"):
        raise AttributeValueError(f"pad_sequence: padding_side {padding_side!r} is neither 'left' nor 'right'")
    if not sequences:
        raise ShapeError("pad_sequence: the list of sequences is empty")
    longest = max(s.shape[0] for s in sequences)
    axis = 0 if batch_first else 1
    padded = [_filled(s, longest, padding_value, padding_side == "left").unsqueeze(axis) for s in sequences]
    return concat(*padded, axis=axis)


def _filled(x: Tensor, length: int, value: float, pad_left: bool) -> Tensor:
    missing, none = length - x.shape[0], (0,) * (len(x.shape) - 1)
    if not missing:
        return x
    pads = (missing, 0) if pad_left else (0, missing)
    return shape.pad(x, low=(pads[0], *none), high=(pads[1], *none), interior=(0, *none), value=padding_of(x, value))


def padding_of(x: Tensor, value: float) -> bool | int | float:
    """Convert ``value`` to a number of the kind that ``x`` holds: bool, int or float."""
    return value if x.dtype.is_floating_point else bool(value) if x.dtype.kind == "b" else int(value)


def unpad_sequence(padded_sequences: Tensor, lengths: Any, batch_first: bool = False) -> list[Tensor]:
    """Cut the sequences out of the result of ``pad_sequence``."""
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    numbers = lengths_of(lengths, rows.shape[0])
    return [rows[i][: int(n)] for i, n in enumerate(numbers)]


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack [time, batch, ...] (batch first with ``batch_first``), whose sequences have ``lengths`` (list or tensor).

    They must come longest first unless ``enforce_sorted=False``. Raises AttributeValueError and ShapeError for lengths
    that do not fit. A compiled function with ``lengths`` as a tensor argument is one program for all lengths: it
    computes all steps and masks those after the end of a sequence, and checks the lengths in each call. A list among
    the arguments becomes data of the program once another one comes.
    """
    x = input.transpose(0, 1) if batch_first else input
    if isinstance(lengths, (tuple, list)) and any(map(is_symbolic, lengths)):
        return NumberedSequence(*_masked(x, tensor(lengths, dtype=int64), enforce_sorted))
    if isinstance(lengths, Tensor) and front().known(lengths) is None:
        return _masked(x, lengths, enforce_sorted)
    numbers = lengths_of(lengths, x.shape[1])
    if numbers.size and numbers.max() > x.shape[0]:
        raise ShapeError(f"pack_padded_sequence: length {numbers.max()} exceeds the {x.shape[0]} steps of the input")
    order = inverse = None
    if not enforce_sorted:
        permutation = np.argsort(-numbers, kind="stable")
        order, inverse = from_numpy(permutation), from_numpy(np.argsort(permutation))
        x, numbers = x.index_select(1, order), numbers[permutation]
    elif (np.diff(numbers) > 0).any():
        raise AttributeValueError(
            f"pack_padded_sequence: lengths {numbers.tolist()} are not sorted, longest first",
            remedy="pass enforce_sorted=False",
        )
    sizes = (numbers[None, :] > np.arange(numbers.max())[:, None]).sum(1)
    return PackedSequence(packed_data(x[: len(sizes)], sizes), from_numpy(sizes), order, inverse)


def _masked(x: Tensor, lengths: Tensor, enforce_sorted: bool) -> MaskedSequence:
    """Pack [steps, batch, ...] for lengths that only calls know; each call checks them."""
    if tuple(lengths.shape) != (x.shape[1],):
        raise ShapeError(f"expected one length for each of {x.shape[1]} sequences, got shape {list(lengths.shape)}")
    lengths = lengths.long()
    require(lengths, 1, x.shape[0], "pack_padded_sequence: length")
    if enforce_sorted:
        message = "pack_padded_sequence: lengths are not sorted, longest first: pass enforce_sorted=False"
        assert_true(ew.ge(lengths[:-1], lengths[1:]), message)
    return MaskedSequence(x, lengths).with_padded(x)


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack tensors [length, ...]."""
    return pack_padded_sequence(pad_sequence(sequences), [s.shape[0] for s in sequences], False, enforce_sorted)


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Tensor, Tensor]:
    """Return (padded sequences in their original order, their lengths i64 [batch]).

    The inverse of ``pack_padded_sequence``. ``total_length`` is the number of steps, at least the longest length. A
    compiled function with lengths as a tensor needs it where no sequence has all steps of the input.
    """
    if isinstance(sequence, MaskedSequence):
        x, lengths = _unmasked(sequence, padding_of(sequence.padded, padding_value), total_length)
        return (x.transpose(0, 1) if batch_first else x), lengths
    sizes = sizes_of(sequence)
    value = padding_of(sequence.data, padding_value)
    x = padded_data(sequence.data, sizes, value)
    lengths = from_numpy(running(sizes).sum(0))
    if total_length is not None:
        if total_length < len(sizes):
            raise AttributeValueError(
                f"pad_packed_sequence: total_length {total_length} is below the longest length {len(sizes)}"
            )
        x = _filled(x, total_length, value, False)
    if sequence.unsorted_indices is not None:
        x = x.index_select(1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices]
    return (x.transpose(0, 1) if batch_first else x), lengths


def _unmasked(sequence: MaskedSequence, value: float, total_length: int | None) -> tuple[Tensor, Tensor]:
    """Return [steps, batch, ...] and the lengths; each call checks that the number of steps is that of eager mode."""
    x, lengths = sequence.with_padded(sequence.padded, value).padded, sequence.lengths
    steps = x.shape[0]
    if total_length is None and isinstance(sequence, NumberedSequence):
        raise ValueNeededError("pad_packed_sequence: the number of steps is the longest length")
    if total_length is None:
        message = "pad_packed_sequence: no sequence has all steps of the input: pass total_length= the number of steps"
        assert_true(ew.eq(lengths, steps).any(), message)
    elif total_length < steps:
        require(lengths, 1, total_length, "pad_packed_sequence: total_length is below a length:")
        x = x[:total_length]
    elif total_length != steps:
        x = _filled(x, total_length, value, False)
    return x, lengths


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Return the sequences that ``pack_sequence`` packed."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
