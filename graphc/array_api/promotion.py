"""Type promotion by the array API standard, which treats arrays without dimensions like all others."""

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
"""Kinds of element types by their names in ``isdtype`` and ``__array_namespace_info__().dtypes``."""


def common_type(name: str, *operands: Any) -> DType:
    """Return the type of a result of arrays, element types and Python numbers.

    A number takes the type of the arrays, unless it is of a higher kind. The standard does not define integers with
    floats, which give floats here. int8 with uint8 gives int32, where the standard says int16. Raises ArgumentError for
    other objects.
    """
    numbers: list[Any] = [o for o in operands if isinstance(o, Scalar)]
    types = [_type_of(name, o) for o in operands if not isinstance(o, Scalar)]
    if not types:
        return reduce(promote, [_default(python_scalar_type(n)) for n in numbers])
    result = reduce(promote, types)
    for number in numbers:
        number_type = scalar_type(number, result)
        result = number_type if number_type.kind == result.kind or number_type.real is result else _default(number_type)
    return result


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
    """Convert operands to their common type. Numbers become arrays without dimensions."""
    dtype = common_type(name, *operands)
    return [as_type(o, dtype) for o in operands]


def apply(name: str, function: Callable[..., Any], *operands: Any) -> Any:
    """Apply ``function`` to the promoted operands."""
    return function(*promoted(name, *operands))


def kinds_of(kind: str | DType | Sequence[Any]) -> tuple[set[str], set[DType]]:
    """Return the kind letters and types denoted by a kind, a type, or a tuple of these.

    Raises DTypeError for an unknown kind.
    """
    letters: set[str] = set()
    types: set[DType] = set()
    one: Any
    for one in kind if isinstance(kind, (tuple, list)) else (kind,):
        if isinstance(one, DType):
            types.add(one)
        elif one in KINDS:
            letters |= set(KINDS[one])
        else:
            raise DTypeError(f"unknown kind {one!r} of element types", remedy=f"use one of {', '.join(KINDS)}")
    return letters, types
