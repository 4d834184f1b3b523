"""Rules of constants, and of operations that move elements by fixed positions."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, int64
from graphc.base.errors import ParseError
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.graph import Dense
from graphc.interop.stablehlo.registry import rule
from graphc.ops.movement import shape as moves
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.selection.index import iota as positions
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


@rule("constant", pointwise=True)
def constant(call: OperationCall) -> Tensor:
    """Return a constant; one whose elements are all the same holds one element."""
    value = call.attributes.get("value")
    if not isinstance(value, Dense):
        raise ParseError(f"line {call.operation.line}: the constant has no value")
    array = value.array
    same = array.size > 0 and not any(array.strides)
    if same:
        array = array.reshape(-1)[:1].reshape(())
    tensor = front().constant(np.array(array))
    if tensor.dtype is not value.dtype:
        tensor = tensor.to(value.dtype)
    return moves.broadcast_to(tensor, shape=value.array.shape) if same and value.array.ndim else tensor


@rule("iota")
def iota(call: OperationCall) -> Tensor:
    result = call.type
    if result.dtype.kind in "iu":
        return positions(shape=result.shape, axis=call.int("iota_dimension"), dtype=result.dtype)
    return ew.cast(positions(shape=result.shape, axis=call.int("iota_dimension"), dtype=int64), dtype=result.dtype)


@rule("reshape")
def reshape(call: OperationCall, x: Tensor) -> Tensor:
    return moves.reshape(x, shape=call.type.shape)


@rule("transpose")
def transpose(call: OperationCall, x: Tensor) -> Tensor:
    return moves.transpose(x, permutation=call.ints("permutation"))


@rule("broadcast_in_dim")
def broadcast_in_dim(call: OperationCall, x: Tensor) -> Tensor:
    """Place the dimensions of ``x`` at those of the result; the others, and those of size 1, repeat."""
    places = call.ints("broadcast_dimensions")
    if [*places] != sorted(places):
        order = tuple(int(i) for i in np.argsort(places))
        x, places = moves.transpose(x, permutation=order), tuple(sorted(places))
    sizes = [1] * call.type.rank
    for place, size in zip(places, x.shape, strict=True):
        sizes[place] = size
    return moves.broadcast_to(moves.reshape(x, shape=sizes), shape=call.type.shape)


@rule("concatenate")
def concatenate(call: OperationCall, *tensors: Tensor) -> Tensor:
    return tensors[0] if len(tensors) == 1 else moves.concat(*tensors, axis=call.int("dimension"))


@rule("slice")
def slice_(call: OperationCall, x: Tensor) -> Tensor:
    starts, stops = call.ints("start_indices"), call.ints("limit_indices")
    return moves.slice(x, starts=starts, stops=stops, steps=call.ints("strides", (1,) * x.ndim))


@rule("reverse")
def reverse(call: OperationCall, x: Tensor) -> Tensor:
    axes = call.ints("dimensions")
    return moves.flip(x, axes=axes) if axes else x


@rule("pad")
def pad(call: OperationCall, x: Tensor, value: Tensor) -> Tensor:
    """Put ``value`` around and between elements; negative sizes cut elements off."""
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (call.ints(name, (0,) * x.ndim) for name in names)
    return padded(call, x, value, low, high, interior)


def padded(call: OperationCall, x: Tensor, value: Tensor, low: Any, high: Any, interior: Any) -> Tensor:
    """Return ``x`` padded with a number that may be known to calls only."""
    sizes: dict[str, Any] = {"low": low, "high": high, "interior": interior}
    if not (any(low) or any(high) or any(interior)):
        return x
    known = call.known(value)
    if known is not None and x.dtype.kind not in "ch":
        return moves.pad(x, value=known.item(), **sizes)
    if known is not None and x.dtype.is_complex and not np.any(known):
        return moves.pad(x, value=0, **sizes)
    inside = moves.pad(moves.filled(True, bool_, tuple(x.shape)), value=False, **sizes)
    return ew.where(inside, moves.pad(x, value=0, **sizes), value)


@rule("optimization_barrier")
def optimization_barrier(call: OperationCall, *tensors: Tensor) -> tuple[Tensor, ...]:
    return tensors
