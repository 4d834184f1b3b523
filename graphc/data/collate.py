"""Collation of samples to a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float64
from graphc.base.errors import ArgumentError, ShapeError
from graphc.tensors.creation import from_numpy, tensor
from graphc.tensors.methods.shaping import stacked
from graphc.tensors.tensor import Tensor

__all__ = ["default_collate", "default_convert"]


def default_collate(batch: Sequence[Any]) -> Any:
    """Join samples along a new first dimension.

    Tensors and arrays are stacked; ints become an i64 tensor, floats f64, bools bool; strings and bytes stay a list;
    dictionaries, named tuples, tuples and lists are joined entry by entry (tuples become lists). Raises ShapeError if
    samples differ in shape or length, ArgumentError with the class of any other value.

    Example:
        >>> import graphc as gc
        >>> gc.utils.data.default_collate([{"x": 1, "name": "a"}, {"x": 2, "name": "b"}])
        {'x': tensor([1, 2]), 'name': ['a', 'b']}
    """
    if not batch:
        raise ArgumentError("an empty batch cannot be joined")
    return _collate(list(batch), "")


def _collate(batch: list[Any], path: str) -> Any:
    first = batch[0]
    if isinstance(first, Tensor | np.ndarray | np.generic):
        return _stack(batch, path)
    if isinstance(first, bool | int):
        return tensor(batch)
    if isinstance(first, float):
        return tensor(batch, dtype=float64)
    if isinstance(first, str | bytes):
        return batch
    if isinstance(first, Mapping):
        return _collate_mappings(batch, path)
    if isinstance(first, tuple | list):
        return _collate_sequences(batch, path)
    raise ArgumentError(
        f"samples{path} hold a {type(first).__name__}, which cannot be joined to a batch",
        remedy="pass a function: DataLoader(..., collate_fn=your_function)",
    )


def _stack(batch: list[Any], path: str) -> Tensor:
    shapes = {tuple(sample.shape) for sample in batch}
    if len(shapes) > 1:
        listed = " and ".join(str(list(s)) for s in sorted(shapes)[:2])
        raise ShapeError(
            f"samples{path} have shapes {listed}: they cannot be stacked",
            remedy="use samples of one shape, or DataLoader(..., collate_fn=your_function)",
        )
    if isinstance(batch[0], Tensor):
        return stacked(batch)
    return from_numpy(np.stack(batch))


def _collate_mappings(batch: list[Any], path: str) -> Any:
    first = batch[0]
    if any(set(sample) != set(first) for sample in batch):
        raise ArgumentError(f"samples{path} have different keys")
    joined = {key: _collate([sample[key] for sample in batch], f"{path}[{key!r}]") for key in first}
    return joined if type(first) is dict else type(first)(joined)


def _collate_sequences(batch: list[Any], path: str) -> Any:
    first = batch[0]
    if any(len(sample) != len(first) for sample in batch):
        lengths = sorted({len(sample) for sample in batch})
        raise ShapeError(f"samples{path} have {lengths[0]} and {lengths[-1]} entries: they cannot be joined")
    joined = [_collate(list(column), f"{path}[{i}]") for i, column in enumerate(zip(*batch, strict=True))]
    return type(first)(*joined) if hasattr(first, "_fields") else joined


def default_convert(sample: Any) -> Any:
    """Convert the numpy arrays and scalars in a sample to tensors."""
    if isinstance(sample, np.ndarray | np.generic):
        return from_numpy(np.asarray(sample))
    if isinstance(sample, Mapping):
        return type(sample)({key: default_convert(value) for key, value in sample.items()})  # type: ignore[call-arg]
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*map(default_convert, sample))
    if isinstance(sample, tuple | list):
        return type(sample)(map(default_convert, sample))
    return sample
