"""The op that replaces a slice of a tensor by another tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import float32, float64
from graphc.base.errors import AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.op import Attr, Attrs, ErrorSample, OnParts, OpDef, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops import bounds, dispatch
from graphc.ops.batch import BatchedOperand, spread
from graphc.ops.define import define
from graphc.ops.movement.shape import behind, filled, slice
from graphc.ops.rules import check_count, check_one_dtype
from graphc.ops.samples import booleans, floats, integers, plain

_F = TensorType(float32, (2, 3))
_AT = {"starts": (0, 0), "steps": (1, 1)}


def _infer_update_slice(x: TensorType, new: TensorType, starts: tuple[int, ...], steps: tuple[int, ...]) -> TensorType:
    if new.dtype is not x.dtype:
        check_one_dtype("update_slice", (x, new))
    if new.rank != x.rank:
        what = f"update_slice: a slice of rank {new.rank} in a tensor of rank {x.rank}"
        raise ShapeError(what, remedy="reshape the slice, with dimensions of size 1")
    for name, values in (("starts", starts), ("steps", steps)):
        check_count("update_slice", name, values, x.rank)
    for dim, (start, step, count, extent) in enumerate(zip(starts, steps, new.shape, x.shape, strict=True)):
        if step < 1:
            raise AttributeValueError(
                f"update_slice: step {step} at dim {dim} is not positive", remedy="pass 1 or more"
            )
        if start < 0 or behind(extent, start, step, count) < 0:
            what = f"update_slice: {count} elements from {start} on at dim {dim} are not inside 0:{extent}"
            raise IndexRangeError(what, remedy="choose starts and steps that keep the slice inside")
    return x


def slice_stops(starts: Sequence[int], steps: Sequence[int], counts: Sequence[int]) -> tuple[int, ...]:
    """Return the exclusive end of a slice along each dimension."""
    sides = zip(starts, steps, counts, strict=True)
    return tuple(start + (count - 1) * step + 1 if count else start for start, step, count in sides)


def slice_index(starts: Sequence[int], steps: Sequence[int], counts: Sequence[int]) -> tuple[Any, ...]:
    """Return a slice as a numpy index."""
    sides = zip(starts, steps, counts, strict=True)
    return tuple(np.s_[start : start + count * step : step] for start, step, count in sides)


def _update_slice_reference(x: np.ndarray, new: np.ndarray, starts: Any, steps: Any) -> np.ndarray:
    result = np.array(x)
    result[slice_index(starts, steps, new.shape)] = new
    return result


def _nest_update_slice(c: LowerContext, x: OperandRef, new: OperandRef, starts: Any, steps: Any) -> None:
    with c.nest.loops(new.shape) as index:
        at = [i * step + start for i, start, step in zip(index, starts, steps, strict=True)]
        c.store(at, c.load(new, index))


def _gradient_of_part(g: Any, result: Any, x: Any, new: Any, starts: Any, steps: Any) -> Any:
    return slice(g, starts=starts, stops=slice_stops(starts, steps, new.shape), steps=steps)


def _batched_update_slice(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    x, new = (spread(entry, size) for entry in operands)
    return dispatch.apply(op, (x, new), {"starts": (0, *attrs["starts"]), "steps": (1, *attrs["steps"])})


update_slice = define(
    "update_slice",
    "x with part in place of the elements at starts, starts + steps, ... along each dimension, as many as part has.",
    "x part",
    _infer_update_slice,
    attrs=[
        Attr("starts", "ints", "first element per dimension"),
        Attr("steps", "ints", "distance per dimension, 1 or more"),
    ],
    reference=_update_slice_reference,
    vjp=(
        lambda g, result, x, new, starts, steps: update_slice(
            g, filled(0, g.dtype, new.shape), starts=starts, steps=steps
        ),
        _gradient_of_part,
    ),
    lower_nest=_nest_update_slice,
    complex=OnParts.EACH,
    updates=0,
    traits=Trait.PURE | Trait.MATERIALIZE,
    bounds=bounds.union(0, 1),
    batch=_batched_update_slice,
    samples=lambda: [
        Sample((floats((5, 6)), floats((3, 2), seed=1)), {"starts": (1, 3), "steps": (1, 2)}),
        Sample(
            (floats((2, 7, 3), "float32"), floats((1, 7, 2), "float32", 1)), {"starts": (1, 0, 1), "steps": (1,) * 3}
        ),
        Sample((floats((9,)), floats((3,), seed=1)), {"starts": (1,), "steps": (3,)}),
        Sample((floats((4,)), floats((4,), seed=1)), {"starts": (0,), "steps": (1,)}),
        Sample((floats((4, 3)), floats((0, 3))), {"starts": (4, 0), "steps": (2, 1)}),
        Sample((floats(()), floats((), seed=1)), {"starts": (), "steps": ()}),
        plain(integers((9,), "int8"), integers((2,), "int8", seed=1), starts=(6,), steps=(2,)),
        plain(booleans((3, 3)), booleans((2, 1), 1), starts=(1, 1), steps=(1, 1)),
    ],
    error_samples=[
        ErrorSample((_F, _F), "2 elements from 1 on at dim 0", {"starts": (1, 0), "steps": (1, 1)}, IndexRangeError),
        ErrorSample((_F, _F), "2 elements from 0 on at dim 0", {"starts": (0, 0), "steps": (2, 1)}, IndexRangeError),
        ErrorSample((_F, _F), "step 0 at dim 0", {"starts": (0, 0), "steps": (0, 1)}, AttributeValueError),
        ErrorSample((_F, _F), "starts has 1 entries", {"starts": (0,), "steps": (1, 1)}, AttributeValueError),
        ErrorSample((_F, TensorType(float32, (3,))), "a slice of rank 1", _AT, ShapeError),
        ErrorSample(
            (_F, TensorType(float64, (2, 3))),
            "f32 (operand 0) and f64",
            {"starts": (0, 0), "steps": (1, 1)},
            DTypeError,
        ),
    ],
)
