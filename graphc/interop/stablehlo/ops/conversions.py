"""Rules of conversions of element types, and of complex numbers and their parts."""

from __future__ import annotations

from graphc.base.dtypes import bfloat16, float16, float32, float64, named
from graphc.interop.stablehlo.call import OperationCall
from graphc.interop.stablehlo.registry import rule
from graphc.ops.movement.shape import reshape, slice
from graphc.ops.pointwise import complex as parts
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.bits import bitcast
from graphc.tensors.free_functions import stack
from graphc.tensors.tensor import Tensor

_NARROW = {(5, 10): float16, (8, 7): bfloat16, (8, 23): float32, (11, 52): float64}


@rule("convert", pointwise=True)
def convert(call: OperationCall, x: Tensor) -> Tensor:
    return ew.cast(x, dtype=call.type.dtype)


@rule("reduce_precision", pointwise=True)
def reduce_precision(call: OperationCall, x: Tensor) -> Tensor:
    """Round to the exponent and fraction of another type."""
    bits = call.int("exponent_bits"), call.int("mantissa_bits")
    narrow = _NARROW.get(bits)
    if narrow is None:
        raise call.unsupported(f"{bits[0]} bits of exponent and {bits[1]} of fraction")
    return x if narrow.bits >= x.dtype.bits else x.to(narrow).to(x.dtype)


@rule("bitcast_convert")
def bitcast_convert(call: OperationCall, x: Tensor) -> Tensor:
    """Read bits as another type. A narrower type adds a last dimension of pieces, lowest first; a wider joins them."""
    dtype = call.type.dtype
    if dtype.bits == x.dtype.bits:
        return bitcast(x, dtype=dtype)
    if {dtype.kind, x.dtype.kind} & {"c", "b"}:
        raise call.unsupported(f"the bits of {x.dtype.name} as {dtype.name}")
    source, result = named(f"u{x.dtype.bits}"), named(f"u{dtype.bits}")
    bits = bitcast(x, dtype=source) if x.dtype is not source else x
    count = max(source.bits, result.bits) // min(source.bits, result.bits)
    if result.bits < source.bits:
        pieces = [ew.cast(ew.shift_right(bits, i * result.bits), dtype=result) for i in range(count)]
        joined = stack(pieces, -1)
    else:
        joined = _joined(ew.cast(bits, dtype=result), count, source.bits)
    return joined if dtype is result else bitcast(joined, dtype=dtype)


def _joined(bits: Tensor, count: int, width: int) -> Tensor:
    """Join the pieces along the last dimension, lowest first."""
    lead = tuple(bits.shape[:-1])
    zeros, ones = (0,) * len(lead), (1,) * bits.ndim
    total = None
    for i in range(count):
        piece = reshape(slice(bits, starts=(*zeros, i), stops=(*lead, i + 1), steps=ones), shape=lead)
        piece = ew.shift_left(piece, i * width)
        total = piece if total is None else ew.bit_or(total, piece)
    assert total is not None
    return total


@rule("complex", pointwise=True)
def complex_number(call: OperationCall, real: Tensor, imaginary: Tensor) -> Tensor:
    return parts.complex(real, imaginary)


@rule("real", pointwise=True)
def real(call: OperationCall, x: Tensor) -> Tensor:
    return parts.real(x) if x.dtype.is_complex else x


@rule("imag", pointwise=True)
def imaginary(call: OperationCall, x: Tensor) -> Tensor:
    return parts.imag(x) if x.dtype.is_complex else ew.mul(x, 0)
