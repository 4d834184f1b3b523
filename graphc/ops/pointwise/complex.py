"""Complex numbers: build them from two real parts, extract the parts, view them as pairs in memory, conjugate."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphc.base.dtypes import complex64, float32, float64
from graphc.base.errors import DTypeError, ShapeError
from graphc.ir.op import Attrs, ErrorSample, OpDef, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.batch import BatchedOperand
from graphc.ops.define import define
from graphc.ops.movement.shape import concat, filled, reshape, slice
from graphc.ops.pointwise.elementwise import ELEMENTWISE, neg
from graphc.ops.pointwise.parts_of_complex import Complex
from graphc.ops.rules import check_kind, elementwise
from graphc.ops.samples import complexes, floats

_F, _C = TensorType(float32, (2, 3)), TensorType(complex64, (2, 3))
_REAL = ErrorSample((_F,), "operand 0 is floating-point (f32)", {}, DTypeError)


def _samples(*more: Sample) -> Callable[[], list[Sample]]:
    """Return samples of a function of one complex number."""
    return lambda: [
        Sample((complexes((2, 3)),)),
        Sample((complexes((3, 5, 7), "complex64", seed=1),)),
        Sample((complexes((), "complex64", seed=2),)),
        Sample((complexes((0, 4)),)),
        *more,
    ]


# ---- parts


def _infer_part(name: str) -> Callable[[TensorType], TensorType]:
    def infer(x: TensorType) -> TensorType:
        check_kind(name, 0, x.dtype, "c")
        return TensorType(x.dtype.real, x.shape)

    return infer


def _infer_complex(real: TensorType, imag: TensorType) -> TensorType:
    result = elementwise("complex", "f")(real, imag)
    if result.dtype not in (float32, float64):
        raise DTypeError(f"complex: the parts are {result.dtype.name}", remedy="cast the parts to f32 or f64")
    return TensorType(result.dtype.complex, result.shape)


def _complex_reference(real: np.ndarray, imag: np.ndarray) -> np.ndarray:
    result = np.empty(np.broadcast_shapes(real.shape, imag.shape), np.result_type(real.dtype, np.complex64))
    result.real, result.imag = real, imag
    return result


def _zeros(x: Any) -> Any:
    return filled(0, x.dtype, x.shape)


complex = define(
    "complex",
    "The complex number of a real and an imaginary part.",
    "real imag",
    _infer_complex,
    reference=_complex_reference,
    vjp=(lambda g, result, *operands: real(g), lambda g, result, *operands: imag(g)),
    complex=Complex,
    traits=ELEMENTWISE,
    samples=lambda: [
        Sample((floats((2, 3)), floats((2, 3), seed=1))),
        Sample((floats((2, 3), "float32"), floats((2, 3), "float32", seed=1))),
        Sample((floats(()), floats((), seed=1))),
        Sample((floats((0, 3)), floats((0, 3), seed=1))),
        Sample((floats((2, 1)), floats((3,), seed=1))),
    ],
    error_samples=(
        ErrorSample((_F, TensorType(float64, (2, 3))), "f32 (operand 0) and f64 (operand 1)", {}, DTypeError),
        ErrorSample((_C, _C), "operand 0 is complex (c64)", {}, DTypeError),
    ),
)
real = define(
    "real",
    "The real part.",
    "x",
    _infer_part("real"),
    reference=lambda x: x.real,
    vjp=(lambda g, result, x: complex(g, _zeros(g)),),
    complex=lambda x: x.real,
    alias=lambda content, value: complex(value, imag(content)),
    traits=ELEMENTWISE,
    samples=_samples(),
    error_samples=(_REAL,),
)
imag = define(
    "imag",
    "The imaginary part.",
    "x",
    _infer_part("imag"),
    reference=lambda x: x.imag,
    vjp=(lambda g, result, x: complex(_zeros(g), g),),
    complex=lambda x: x.imag,
    alias=lambda content, value: complex(real(content), value),
    traits=ELEMENTWISE,
    samples=_samples(),
    error_samples=(_REAL,),
)
conj = define(
    "conj",
    "The complex conjugate: the same real part, and the imaginary part with the other sign.",
    "x",
    elementwise("conj", "c"),
    reference=np.conjugate,
    vjp=(lambda g, result, x: conj(g),),
    complex=lambda x: Complex(x.real, neg(x.imag)),
    traits=ELEMENTWISE,
    samples=_samples(),
    error_samples=(_REAL,),
)


# ---- the memory of complex numbers


def _infer_as_real(x: TensorType) -> TensorType:
    check_kind("view_as_real", 0, x.dtype, "c")
    return TensorType(x.dtype.real, (*x.shape, 2))


def _as_real_reference(x: np.ndarray) -> np.ndarray:
    x = np.asarray(x)
    components = np.real(x)
    return as_strided(components, (*x.shape, 2), (*x.strides, components.itemsize), writeable=x.flags.writeable)


def _infer_as_complex(x: TensorType) -> TensorType:
    if x.dtype not in (float32, float64):
        raise DTypeError(
            f"view_as_complex: {x.dtype.name} elements cannot be parts of complex numbers", remedy="cast to f32 or f64"
        )
    if not x.shape or x.shape[-1] != 2:
        raise ShapeError(
            f"view_as_complex: the last dimension of [{','.join(map(str, x.shape))}] is not 2",
            remedy="join the parts with stack([real, imag], -1)",
        )
    return TensorType(x.dtype.complex, x.shape[:-1])


def _as_complex_reference(x: np.ndarray) -> np.ndarray:
    interleaved = x if x.strides[-1] == x.itemsize else np.ascontiguousarray(x)
    return interleaved.view(np.result_type(x.dtype, np.complex64)).reshape(x.shape[:-1])


def _part(x: Any, number: int) -> Any:
    rank = len(x.shape) - 1
    starts, stops = (*(0,) * rank, number), (*x.shape[:-1], number + 1)
    return reshape(slice(x, starts=starts, stops=stops, steps=(1,) * (rank + 1)), shape=x.shape[:-1])


def interleaved(x: Complex) -> Any:
    """Interleave both parts of each number, in a last dimension of size 2."""
    shape = (*x.shape, 1)
    return concat(reshape(x.real, shape=shape), reshape(x.imag, shape=shape), axis=len(shape) - 1)


def parts(x: Any) -> Complex:
    """Return the complex numbers whose parts are interleaved in a last dimension of size 2."""
    return Complex(_part(x, 0), _part(x, 1))


def _batched(op: OpDef, size: int, operands: Sequence[BatchedOperand], attrs: Attrs) -> Any:
    return (view_as_real if op is view_as_real.op else view_as_complex)(operands[0].value)


view_as_real = define(
    "view_as_real",
    "Real and imaginary parts, interleaved as in memory, in an additional last dimension.",
    "x",
    _infer_as_real,
    reference=_as_real_reference,
    vjp=(lambda g, result, x: view_as_complex(g),),
    complex=interleaved,
    alias=lambda content, value: view_as_complex(value),
    traits=Trait.PURE | Trait.REINTERPRETS,
    batch=_batched,
    samples=_samples(),
    error_samples=(_REAL,),
)
view_as_complex = define(
    "view_as_complex",
    "Complex numbers from real and imaginary parts that are interleaved in the last dimension.",
    "x",
    _infer_as_complex,
    reference=_as_complex_reference,
    vjp=(lambda g, result, x: view_as_real(g),),
    complex=parts,
    alias=lambda content, value: view_as_real(value),
    traits=Trait.PURE | Trait.REINTERPRETS,
    batch=_batched,
    samples=lambda: [
        Sample((floats((3, 2)),)),
        Sample((floats((2, 3, 2), "float32"),)),
        Sample((floats((2,)),)),
        Sample((floats((0, 2)),)),
    ],
    error_samples=(
        ErrorSample((_F,), "the last dimension of [2,3] is not 2", {}, ShapeError),
        ErrorSample((_C,), "c64 elements cannot be parts", {}, DTypeError),
    ),
)
