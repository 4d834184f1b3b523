"""Shared type rules: element types, broadcasting, axes, and the errors they raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NoReturn

from graphc.base.dtypes import ALL, DType
from graphc.base.errors import AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.base.sizes.size import is_one
from graphc.ir.types import TensorType

KIND_NAMES = {
    "f": "floating-point",
    "i": "signed integer",
    "u": "unsigned integer",
    "b": "boolean",
    "c": "complex",
    "h": "half-width",
    "p": "pairs",
}


def show(shape: Sequence[int]) -> str:
    """Format a shape as errors print it, e.g. ``[2,3]``."""
    return f"[{','.join(map(str, shape))}]"


def check_kind(name: str, operand: int, dtype: DType, kinds: str) -> None:
    """Raise DTypeError unless the kind of ``dtype`` is among the letters ``kinds`` (see ir.kernel.scalar)."""
    if dtype.kind not in kinds:
        allowed = ", ".join(d.name for d in ALL if d.kind in kinds)
        what = f"{name}: operand {operand} is {KIND_NAMES[dtype.kind]} ({dtype.name}), which {name} does not take"
        raise DTypeError(what, remedy=f"cast it to one of {allowed}")


def check_one_dtype(name: str, types: Sequence[TensorType], first: int = 0) -> None:
    """Raise DTypeError unless all types have one element type; ``first`` is the operand number of the first."""
    for i, type in enumerate(types):
        if type.dtype is not types[0].dtype:
            what = f"{name}: element types differ: {types[0].dtype.name} (operand {first}) and "
            raise DTypeError(f"{what}{type.dtype.name} (operand {first + i})", remedy="cast one of them")


def broadcast(name: str, types: Sequence[TensorType]) -> tuple[int, ...]:
    """Return the common shape by numpy's rules; raise ShapeError with the first pair of dimensions that does not fit.

    A size is compared with 1 only if it differs from the size opposite to it.
    """
    if types and all([t.shape is types[0].shape for t in types]):
        return tuple(types[0].shape)
    rank = max((t.rank for t in types), default=0)
    result = [1] * rank
    owner = [0] * rank
    for i, type in enumerate(types):
        for dim, extent in enumerate(type.shape, start=rank - type.rank):
            if is_one(extent):
                continue
            if not is_one(result[dim]):
                if extent == result[dim] or extent == 1:
                    continue
                if result[dim] != 1:
                    _refuse_broadcast(name, types, (owner[dim], i), dim - rank)
            result[dim], owner[dim] = extent, i
    return tuple(result)


def _refuse_broadcast(name: str, types: Sequence[TensorType], pair: tuple[int, int], dim: int) -> NoReturn:
    shapes = " and ".join(f"{show(types[i].shape)} (operand {i})" for i in pair)
    first, second = (types[i].shape[dim] for i in pair)
    raise ShapeError(
        f"{name}: shapes {shapes} do not broadcast: {first} and {second} at dim {dim}",
        remedy="make the dimensions equal or 1 (reshape, slice, or broadcast_to)",
    )


def elementwise(name: str, kinds: str, result: DType | None = None) -> Callable[..., TensorType]:
    """Build the rule of an elementwise op: one element type of given kinds, broadcast shapes; the result has ``result``
    or that type."""

    def infer(*types: TensorType) -> TensorType:
        for i, type in enumerate(types):
            check_kind(name, i, type.dtype, kinds)
        check_one_dtype(name, types)
        return TensorType(result or types[0].dtype, broadcast(name, types))

    return infer


def check_axis(name: str, axis: int, rank: int, attribute: str = "axis") -> None:
    """Raise IndexRangeError unless ``0 <= axis < rank``; negative axes are resolved before an op is applied."""
    if not 0 <= axis < rank:
        remedy = f"pass an axis from 0 to {rank - 1}" if rank else "pass an operand with dimensions"
        what = f"{name}: {attribute} {axis} is out of range for rank {rank}"
        raise IndexRangeError(what, remedy=remedy)


def check_axes(name: str, axes: Sequence[int], rank: int) -> None:
    """Raise IndexRangeError for an axis outside the rank, AttributeValueError for a duplicate axis."""
    for axis in axes:
        check_axis(name, axis, rank)
    if len(set(axes)) != len(axes):
        raise AttributeValueError(f"{name}: an axis is listed twice in {list(axes)}", remedy="list each axis once")


def check_count(name: str, attribute: str, values: Sequence[object], rank: int) -> None:
    """Raise AttributeValueError unless there is one entry per dimension."""
    if len(values) != rank:
        what = f"{name}: {attribute} has {len(values)} entries for an operand of rank {rank}"
        raise AttributeValueError(what, remedy="give one entry per dimension")


def check_sizes(name: str, shape: Sequence[int]) -> None:
    """Raise ShapeError for a negative dimension."""
    if any(extent < 0 for extent in shape):
        raise ShapeError(
            f"{name}: shape {show(shape)} has a negative dimension", remedy="make all dimensions 0 or more"
        )


def check_type(what: str, type: TensorType, expected: TensorType, remedy: str) -> None:
    """Raise DTypeError or ShapeError where an argument or result of a sub-graph has another type."""
    if type.dtype is not expected.dtype:
        raise DTypeError(f"{what} is {type.dtype.name}, not {expected.dtype.name}", remedy="cast it")
    if type.shape != expected.shape:
        raise ShapeError(f"{what} has shape {show(type.shape)}, not {show(expected.shape)}", remedy=remedy)
