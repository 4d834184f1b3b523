"""Element types of results by the rules of the array API standard: arrays without dimensions count as others do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from graphc.base.dtypes import DType, complex64, float32, promote, python_scalar_type, scalar_type
from graphc.base.errors import DTypeError
from graphc.ops.define import Scalar, as_type, no_tensor
from graphc.tensors.creation import get_default_dtype

KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}
"""What ``isdtype`` and ``__array_namespace_info__().dtypes`` call the kinds of element types."""


def common_type(name: str, *operands: Any) -> DType:
    """The type of a result of arrays, element types and Python numbers: a number takes the type of the arrays, unless
    it is of a higher kind than these.

    The standard says nothing of integers beside floats, and says int16 for int8 beside uint8: these become floats, and
    int32. Raises ArgumentError for what is none of the three.
    """
    numbers: list[Any] = [o for o in operands if isinstance(o, Scalar)]
    known = [_type_of(name, o) for o in operands if not isinstance(o, Scalar)]
    if not known:
        return reduce(promote, [_default(python_scalar_type(n)) for n in numbers])
    found = reduce(promote, known)
    for number in numbers:
        wanted = scalar_type(number, found)
        found = wanted if wanted.kind == found.kind or wanted.real is found else _default(wanted)
    return found


def _type_of(name: str, operand: Any) -> DType:
    dtype = operand if isinstance(operand, DType) else getattr(operand, "dtype", None)
    if not isinstance(dtype, DType):
        raise no_tensor(name, operand)
    return dtype


def _default(dtype: DType) -> DType:
    if dtype in (float32, complex64):
        return get_default_dtype() if dtype is float32 else get_default_dtype().complex
    return dtype


def promoted(name: str, *operands: Any) -> list[Any]:
    """Operands as their common type; numbers become arrays without dimensions."""
    dtype = common_type(name, *operands)
    return [as_type(o, dtype) for o in operands]


def apply(name: str, function: Callable[..., Any], *operands: Any) -> Any:
    """What ``function`` makes of the promoted operands."""
    return function(*promoted(name, *operands))


def kinds_of(kind: str | DType | Sequence[Any]) -> tuple[set[str], set[DType]]:
    """The letters and the types that a kind, a type, or a tuple of them stands for; raises DTypeError for an unknown
    kind."""
    letters: set[str] = set()
    types: set[DType] = set()
    one: Any
    for one in kind if isinstance(kind, (tuple, list)) else (kind,):
        if isinstance(one, DType):
            types.add(one)
        elif one in KINDS:
            letters |= set(KINDS[one])
        else:
            raise DTypeError(f"there is no kind {one!r} of element types", remedy=f"one of {', '.join(KINDS)}")
    return letters, types
