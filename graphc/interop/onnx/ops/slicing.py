"""Rules of ONNX operators that slice, pad, flip or mask along axes: Slice, Pad, Trilu, ReverseSequence."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.sizes.size import larger, positive_part, smaller
from graphc.interop.onnx.registry import host, op
from graphc.nn import functional as F
from graphc.tensors.creation import arange
from graphc.tensors.free_functions import where
from graphc.tensors.tensor import Tensor


@op("Slice", host="starts ends axes steps", moves=True)
def slice_(data: Tensor, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> Tensor:
    """Slice axes. Negative steps run backwards from ``start`` to before ``end``."""
    cuts = [slice(None)] * data.ndim
    backwards = []
    for axis, start, end, step in _ranges(data.ndim, starts, ends, axes, steps):
        cuts[axis] = slice(start, end, step) if step > 0 else _forwards(data.shape[axis], start, end, step)
        if step < 0:
            backwards.append(axis)
    result = data[tuple(cuts)] if cuts else data
    return result.flip(backwards) if backwards else result


@host("Slice")
def slice_known(data: np.ndarray, starts: Any, ends: Any, axes: Any = None, steps: Any = None) -> np.ndarray:
    cuts = [slice(None)] * data.ndim
    for axis, start, end, step in _ranges(data.ndim, starts, ends, axes, steps):
        cuts[axis] = slice(start, end, step)
    return data[tuple(cuts)]


def _ranges(rank: int, starts: Any, ends: Any, axes: Any, steps: Any) -> Any:
    """Yield axis, start, end and step of each sliced axis."""
    first, last = (np.asarray(v, object).reshape(-1).tolist() for v in (starts, ends))
    sliced_axes = range(len(first)) if axes is None else [int(a) % rank for a in np.asarray(axes).reshape(-1)]
    strides = [1] * len(first) if steps is None else np.asarray(steps).reshape(-1).tolist()
    return zip(sliced_axes, first, last, strides, strict=True)


def _forwards(extent: Any, start: Any, end: Any, step: int) -> slice:
    """Return the elements of a negative step as a slice in ascending order."""
    start = smaller(start if start >= 0 else start + extent, extent - 1)
    end = larger(end if end >= 0 else end + extent, -1)
    count = positive_part((start - end - step - 1) // -step)
    return slice(start + (count - 1) * step, start + 1, -step) if count else slice(0, 0)


_MODES = {"constant": "constant", "reflect": "reflect", "edge": "replicate", "wrap": "circular"}
"""Padding modes of graphc by their names in ONNX."""


@op("Pad", since=2, host="pads constant_value axes")
def pad(
    data: Tensor, pads: Any, constant_value: Any = None, axes: Any = None, *, mode: str = "constant", value: float = 0
) -> Tensor:
    """Pad axes before and after. Negative numbers crop."""
    filling = value if constant_value is None else np.asarray(constant_value).reshape(-1)[0]
    named = range(data.ndim) if axes is None else [int(a) % data.ndim for a in np.asarray(axes).reshape(-1)]
    before: list[Any] = [0] * data.ndim
    after: list[Any] = [0] * data.ndim
    for i, axis in enumerate(named):
        before[axis], after[axis] = pads[i], pads[len(named) + i]
    pairs = [n for pair in zip(reversed(before), reversed(after), strict=True) for n in pair]
    return F.pad(data, pairs, _MODES[mode], filling if mode == "constant" else None)


@op("Trilu", host="k")
def trilu(input: Tensor, k: Any = None, *, upper: int = 1) -> Tensor:
    k = 0 if k is None else np.asarray(k).reshape(-1).tolist()[0]
    return input.triu(k) if upper else input.tril(k)


@op("ReverseSequence")
def reverse_sequence(input: Tensor, sequence_lens: Tensor, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """Reverse the first elements of each sequence, as many as its length says."""
    rows = input.movedim((batch_axis, time_axis), (0, 1))
    times = arange(rows.shape[1])
    lengths = sequence_lens.unsqueeze(1)
    positions = where(times < lengths, lengths - 1 - times, times)
    reversed_rows = rows[arange(rows.shape[0]).unsqueeze(1), positions]
    return reversed_rows.movedim((0, 1), (batch_axis, time_axis))
