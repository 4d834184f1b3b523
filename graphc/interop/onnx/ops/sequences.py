"""Rules of ONNX operators on sequences, which are lists of values, and on optional values, which may be None."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, IndexRangeError
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.tensors import free_functions as free

Values = list[Value]


@op("SequenceConstruct", values=True)
def sequence_construct(*inputs: Value) -> Values:
    return list(inputs)


@op("SequenceEmpty", values=True)
def sequence_empty(*, dtype: int = 1) -> Values:
    return []


@op("SequenceLength", values=True)
def sequence_length(input_sequence: Values) -> Any:
    return np.int64(len(input_sequence))


@op("SequenceAt", values=True, host="position")
def sequence_at(input_sequence: Values, position: Value) -> Value:
    return input_sequence[_resolved(input_sequence, position, 0)]


@op("SequenceErase", values=True, host="position")
def sequence_erase(input_sequence: Values, position: Value | None = None) -> Values:
    """Remove one element, the last without a position."""
    erased = _resolved(input_sequence, position, 0) if position is not None else len(input_sequence) - 1
    return [v for i, v in enumerate(input_sequence) if i != erased]


@op("SequenceInsert", values=True, host="position")
def sequence_insert(input_sequence: Values, tensor: Value, position: Value | None = None) -> Values:
    """Insert one element, at the end without a position."""
    at = _resolved(input_sequence, position, 1) if position is not None else len(input_sequence)
    return [*input_sequence[:at], tensor, *input_sequence[at:]]


def _resolved(values: Values, position: Value, more: int) -> int:
    """Resolve a position that may count from the end. Raises IndexRangeError."""
    number = int(position.number)
    if not -len(values) <= number < len(values) + more:
        raise IndexRangeError(f"position {number} is out of range for a sequence of {len(values)} elements")
    return number + len(values) if number < 0 else number


@op("SplitToSequence", values=True, host="split")
def split_to_sequence(input: Value, split: Value | None = None, *, axis: int = 0, keepdims: int = 1) -> Values:
    """Split into segments of the given sizes, or of one size with a smaller last one. Without sizes into single
    entries."""
    extent = input.shape[axis]
    sizes = _segment_sizes(extent, 1 if split is None else split.numbers)
    bounds = list(accumulate(sizes, initial=0))
    before = (slice(None),) * (axis % len(input.shape))
    keeps_axis = split is not None or keepdims
    return [
        _segment(input, (*before, slice(start, start + size) if keeps_axis else start))
        for start, size in zip(bounds, sizes, strict=False)
    ]


def _segment_sizes(extent: int, split: Any) -> Sequence[int]:
    if not isinstance(split, int):
        return split
    full, rest = divmod(extent, split)
    return [*[split] * full, *([rest] if rest else [])]


def _segment(value: Value, index: tuple[Any, ...]) -> Value:
    if value.is_known:
        return Value(value.element, None, np.asarray(value.array[index]))
    return Value(value.element, value.tensor[index])


@op("ConcatFromSequence", values=True)
def concat_from_sequence(input_sequence: Values, *, axis: int, new_axis: int = 0) -> Value:
    if not input_sequence:
        raise ArgumentError("ConcatFromSequence: the sequence is empty")
    element = input_sequence[0].element
    if all(v.is_known for v in input_sequence):
        joined = np.stack if new_axis else np.concatenate
        return Value(element, None, joined([v.array for v in input_sequence], axis))
    tensors = [v.tensor for v in input_sequence]
    return Value(element, free.stack(tensors, axis) if new_axis else free.cat(tensors, axis))


# ---- optional values


@op("Optional", values=True)
def optional(input: Any = None, *, type: Any = None) -> Any:
    return input


@op("OptionalHasElement", values=True)
def optional_has_element(input: Any = None) -> Any:
    return np.bool_(input is not None)


@op("OptionalGetElement", values=True)
def optional_get_element(input: Any) -> Any:
    if input is None:
        raise ArgumentError("OptionalGetElement: the optional value is absent")
    return input
