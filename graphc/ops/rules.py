"""Type rules that op families share: element types, broadcasting, axes, and the errors they raise."""

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
    """A shape as errors print it, e.g. ``[2,3]``."""
    return f"[{','.join(map(str, shape))}]"


def check_kind(name: str, operand: int, dtype: DType, kinds: str) -> None:
    """Raises DTypeError unless the kind of ``dtype`` is among the letters ``kinds`` (see ir.kernel.scalar)."""
    if dtype.kind not in kinds:
        allowed = ", ".join(d.name for d in ALL if d.kind in kinds)
        what = f"{name}: operand {operand} is {KIND_NAMES[dtype.kind]} ({dtype.name}), which {name} does not take"
        raise DTypeError(what, remedy=f"cast it to one of {allowed}")


def check_one_dtype(name: str, types: Sequence[TensorType], first: int = 0) -> None:
    """Raises DTypeError unless all types have one element type; ``first`` is the operand number of the first."""
    for i, type in enumerate(types):
        if type.dtype is not types[0].dtype:
            what = f"{name}: element types differ: {types[0].dtype.name} (operand {first}) and "
            raise DTypeError(f"{what}{type.dtype.name} (operand {first + i})", remedy="cast one of them")


def broadcast(name: str, types: Sequence[TensorType]) -> tuple[int, ...]:
    """The common shape by numpy's rules; raises ShapeError with the first pair of dimensions that does not fit.

    Whether a size is 1 is only asked of one that is not equal to what it meets."""
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
    """Rule of an elementwise op: one element type of given kinds, broadcast shapes; gives ``result`` or that type."""

    def infer(*types: TensorType) -> TensorType:
        for i, type in enumerate(types):
            check_kind(name, i, type.dtype, kinds)
        check_one_dtype(name, types)
        return TensorType(result or types[0].dtype, broadcast(name, types))

    return infer


def check_axis(name: str, axis: int, rank: int, attribute: str = "axis") -> None:
    """Raises IndexRangeError unless ``0 <= axis < rank``; negative axes are resolved before an op is applied."""
    if not 0 <= axis < rank:
        allowed = f"0 to {rank - 1}" if rank else "none, the operand has no dimensions"
        what = f"{name}: {attribute} {axis} is out of range for rank {rank}"
        raise IndexRangeError(what, remedy=f"allowed: {allowed}")


def check_axes(name: str, axes: Sequence[int], rank: int) -> None:
    """Raises IndexRangeError for an axis outside the rank, AttributeValueError for one that is listed twice."""
    for axis in axes:
        check_axis(name, axis, rank)
    if len(set(axes)) != len(axes):
        raise AttributeValueError(f"{name}: an axis is listed twice in {list(axes)}", remedy="list each axis once")


def check_count(name: str, attribute: str, values: Sequence[object], rank: int) -> None:
    """Raises AttributeValueError unless there is one entry per dimension."""
    if len(values) != rank:
        what = f"{name}: {attribute} has {len(values)} entries for an operand of rank {rank}"
        raise AttributeValueError(what, remedy="give one entry per dimension")


def check_sizes(name: str, shape: Sequence[int]) -> None:
    """Raises ShapeError when a dimension is negative."""
    if any(extent < 0 for extent in shape):
        raise ShapeError(f"{name}: shape {show(shape)} has a negative dimension", remedy="dimensions are 0 or more")


def check_type(what: str, given: TensorType, expected: TensorType, remedy: str) -> None:
    """Raises DTypeError and ShapeError where a value that a sub-graph takes or gives is of another type."""
    if given.dtype is not expected.dtype:
        raise DTypeError(f"{what} is {given.dtype.name}, not {expected.dtype.name}", remedy="cast it")
    if given.shape != expected.shape:
        raise ShapeError(f"{what} has shape {show(given.shape)}, not {show(expected.shape)}", remedy=remedy)
