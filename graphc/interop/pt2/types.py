"""Element types and layouts by their codes in ``.pt2`` files."""

from __future__ import annotations

from graphc.base import dtypes
from graphc.base.dtypes import DType
from graphc.interop.pt2.fields import Field

_NAMES = {
    **{1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64"},
    **{9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16"},
    **{29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu"},
    **{34: "uint32", 35: "uint64"},
}
_KNOWN: dict[str, DType] = {d.long_name: d for d in dtypes.ALL}
_STRIDED = 7


def element_type(field: Field) -> DType:
    """Return the element type with this code. Raises UnsupportedError for one that graphc lacks."""
    name = _NAMES.get(field.integer())
    if name is None:
        raise field.wrong("the code of an element type")
    if name not in _KNOWN:
        raise field.unsupported(f"graphc has no tensors of {name}", remedy="call model.float() before the export")
    return _KNOWN[name]


def check_strided(field: Field) -> None:
    """Raise UnsupportedError for all layouts but the strided one."""
    if field.integer(0, 7) != _STRIDED:
        raise field.unsupported("graphc has no sparse tensors")
