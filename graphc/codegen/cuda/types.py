"""Element types and literals of kernels in CUDA C."""

from __future__ import annotations

import struct

from graphc.base.dtypes import DType, bits_of, element
from graphc.ir.kernel.statements import Const

_C = {
    **{"f32": "float", "f64": "double", "i64": "long long", "i32": "int", "i8": "signed char", "u8": "unsigned char"},
    **{"u64": "unsigned long long", "u32": "unsigned", "i16": "short", "u16": "unsigned short"},
    **{"bool": "bool", "f16": "unsigned short", "bf16": "unsigned short", "bf16x2": "int"},
}
_UNSIGNED = {8: "unsigned char", 16: "unsigned short", 32: "unsigned", 64: "unsigned long long"}


def register_type(dtype: DType) -> str:
    """Return the type of a scalar."""
    return _C[dtype.name]


def memory_type(dtype: DType) -> str:
    """Return the type of an element of a buffer: a bool is a byte."""
    return "unsigned char" if dtype.kind == "b" else _C[dtype.name]


def unsigned_type(dtype: DType) -> str:
    """Return the unsigned type of the same width, in which sums and products wrap around."""
    return _UNSIGNED[dtype.bits]


def literal(const: Const) -> str:
    """Return a constant; floats by their bits, to avoid rounding."""
    dtype, value = const.dtype, const.value
    if dtype.kind == "b":
        return "true" if value else "false"
    if dtype.name == "f32":
        return f"GC_F32(0x{struct.unpack('<I', struct.pack('<f', value))[0]:08x})"
    if dtype.name == "f64":
        return f"GC_F64(0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016x})"
    if dtype.kind == "h":
        return str(bits_of(element(value, dtype)))
    if dtype.kind == "u" and dtype.bits >= 32:
        return f"{int(value)}{'ull' if dtype.bits == 64 else 'u'}"
    return integer(int(value), dtype.bits == 64)


def integer(value: int, wide: bool) -> str:
    """Return a number as an int, or as a long long if it is ``wide``; the lowest one has no literal."""
    suffix = "ll" if wide else ""
    if value in (-(2**31), -(2**63)):
        return f"({value + 1}{suffix} - 1)"
    return f"({value}{suffix})" if value < 0 else f"{value}{suffix}"
