"""Complex values of graphs as pairs of real ones, and the dispatcher that applies ops to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from graphc.base.dtypes import DType
from graphc.base.errors import UnsupportedError
from graphc.base.sizes.dims import common_shape
from graphc.ir.graph.graph import Value
from graphc.ir.op import REGISTRY, OnParts, OpDef, Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch


class Complex:
    """A complex value as its real and its imaginary part, two real values of one type; shapes that differ broadcast."""

    def __init__(self, real: Any, imag: Any):
        if real.shape != imag.shape:
            shape = common_shape(real.shape, imag.shape)
            real, imag = (v if v.shape == shape else named.broadcast_to(v, shape=shape) for v in (real, imag))
        self.real = real
        self.imag = imag

    @property
    def dtype(self) -> DType:
        """The complex element type."""
        return self.real.dtype.complex

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape."""
        return self.real.shape

    @property
    def type(self) -> TensorType:
        """Element type and shape."""
        return TensorType(self.dtype, self.shape)


class PartsDispatcher(dispatch.GraphDispatcher):
    """Appends nodes on real values; complex operands and results are pairs of these."""

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The results of an op, of which some may be complex."""
        if not any(isinstance(v, Complex) for v in operands) and not self._makes_complex(op, operands, attrs):
            return super().apply(op, operands, attrs)
        return apply_to_parts(op, operands, op.normalize(attrs))

    def _makes_complex(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
        if not callable(op.complex):
            return False
        types = tuple(v.type for v in operands)
        return any(t.dtype.is_complex for t in op.result_types(types, op.normalize(attrs)))

    def scalar(self, value: Any, dtype: DType) -> Any:
        """A constant; a complex one as two."""
        if not dtype.is_complex:
            return super().scalar(value, dtype)
        return Complex(*(super(PartsDispatcher, self).scalar(part, dtype.real) for part in (value.real, value.imag)))

    def constant(self, array: np.ndarray) -> Any:
        """A constant; a complex one as two."""
        if array.dtype.kind != "c":
            return super().constant(array)
        parts = (np.ascontiguousarray(np.real(array)), np.ascontiguousarray(np.imag(array)))
        return Complex(*(super(PartsDispatcher, self).constant(part.reshape(array.shape)) for part in parts))


def apply_to_parts(op: OpDef, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """What an op with complex operands or results becomes. Raises UnsupportedError for one that has no rule for it."""
    rule = op.complex
    if callable(rule):
        return rule(*operands, **attrs)
    if rule is OnParts.BILINEAR:
        return _bilinear(op, operands, attrs)
    if rule is OnParts.EACH or op.has(Trait.VIEW):
        return _each_part(op, operands, attrs)
    found = None if op.decompose is None else op.decompose(*operands, **attrs)
    if found is None:
        types = ", ".join(str(v.type) for v in operands)
        raise UnsupportedError(f"{op.name} of complex numbers ({types}) in compiled code", remedy="x.real and x.imag")
    return found


def _each_part(op: OpDef, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    parts = [[v.real if isinstance(v, Complex) else v for v in operands]]
    parts.append([v.imag if isinstance(v, Complex) else v for v in operands])
    real, imag = (dispatch.apply(op, each, attrs) for each in parts)
    return tuple(map(Complex, real, imag)) if isinstance(real, tuple) else Complex(real, imag)


def _bilinear(op: OpDef, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    x, y = operands

    def product(a: Value, b: Value) -> Any:
        return dispatch.apply(op, (a, b), attrs)

    return Complex(
        named.sub(product(x.real, y.real), product(x.imag, y.imag)),
        named.add(product(x.real, y.imag), product(x.imag, y.real)),
    )


def apply_named(name: str, *operands: Any, **attrs: Any) -> Any:
    """An op of any family by its name, for rules of those below it; numbers take the type of the last operand that is
    none."""
    dtype = [v.dtype for v in operands if not isinstance(v, (int, float, complex))][-1]
    made = dispatch.current()
    values: list[Any] = [
        made.scalar(cast(Any, v), dtype) if isinstance(v, (int, float, complex)) else v for v in operands
    ]
    return dispatch.apply(REGISTRY[name], values, attrs)


class _Named:
    """``named.exp(x)`` applies the op exp, see ``apply_named``."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(apply_named, name)


named = _Named()


def conjugate(x: Any) -> Any:
    """The complex conjugate of an operand; a real one is its own."""
    return named.conj(x) if x.dtype.kind == "c" else x


def holomorphic(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A gradient rule that multiplies by derivatives, for complex operands too: there by their conjugates, so that the
    gradient of a real loss L is dL/d(re) + i dL/d(im), as PyTorch has it."""

    def gradient(g: Any, *rest: Any, **attrs: Any) -> Any:
        if g.dtype.kind != "c":
            return rule(g, *rest, **attrs)
        return conjugate(rule(conjugate(g), *rest, **attrs))

    return gradient
