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
    """A complex value as two real values of one type, its real and imaginary part; shapes that differ broadcast."""

    def __init__(self, real: Any, imag: Any):
        if real.shape != imag.shape:
            shape = common_shape(real.shape, imag.shape)
            real, imag = (v if v.shape == shape else named.broadcast_to(v, shape=shape) for v in (real, imag))
        self.real = real
        self.imag = imag

    @property
    def dtype(self) -> DType:
        """Complex element type."""
        return self.real.dtype.complex

    @property
    def shape(self) -> tuple[int, ...]:
        """Common shape of both parts."""
        return self.real.shape

    @property
    def type(self) -> TensorType:
        """Complex element type and shape."""
        return TensorType(self.dtype, self.shape)


class PartsDispatcher(dispatch.GraphDispatcher):
    """Dispatcher that appends nodes on real values; complex operands and results are pairs of these."""

    def apply(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Return the results of an op, of which some may be complex."""
        if not any(isinstance(v, Complex) for v in operands) and not self._makes_complex(op, operands, attrs):
            return super().apply(op, operands, attrs)
        return apply_to_parts(op, operands, op.normalize(attrs))

    def _makes_complex(self, op: OpDef, operands: Sequence[Any], attrs: Mapping[str, Any]) -> bool:
        if not callable(op.complex):
            return False
        types = tuple(v.type for v in operands)
        return any(t.dtype.is_complex for t in op.result_types(types, op.normalize(attrs)))

    def scalar(self, value: Any, dtype: DType) -> Any:
        """Return a constant; a complex one is two real constants."""
        if not dtype.is_complex:
            return super().scalar(value, dtype)
        return Complex(
            *(super(PartsDispatcher, self).scalar(component, dtype.real) for component in (value.real, value.imag))
        )

    def constant(self, array: np.ndarray) -> Any:
        """Return a constant; a complex one is two real constants."""
        if array.dtype.kind != "c":
            return super().constant(array)
        components = (np.ascontiguousarray(np.real(array)), np.ascontiguousarray(np.imag(array)))
        return Complex(
            *(super(PartsDispatcher, self).constant(component.reshape(array.shape)) for component in components)
        )


def apply_to_parts(op: OpDef, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    """Apply an op with complex operands or results to their parts. Raise UnsupportedError for an op without a rule for
    it."""
    rule = op.complex
    if callable(rule):
        return rule(*operands, **attrs)
    if rule is OnParts.BILINEAR:
        return _bilinear(op, operands, attrs)
    if rule is OnParts.EACH or op.has(Trait.VIEW):
        return _each_part(op, operands, attrs)
    result = None if op.decompose is None else op.decompose(*operands, **attrs)
    if result is None:
        types = ", ".join(str(v.type) for v in operands)
        raise UnsupportedError(
            f"{op.name} of complex numbers ({types}) in compiled code", remedy="compute with x.real and x.imag"
        )
    return result


def _each_part(op: OpDef, operands: Sequence[Any], attrs: dict[str, Any]) -> Any:
    operand_parts = [[v.real if isinstance(v, Complex) else v for v in operands]]
    operand_parts.append([v.imag if isinstance(v, Complex) else v for v in operands])
    real, imag = (dispatch.apply(op, each, attrs) for each in operand_parts)
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
    """Apply an op of any family by its name, for rules of lower families; numbers take the type of the last other
    operand."""
    dtype = [v.dtype for v in operands if not isinstance(v, (int, float, complex))][-1]
    dispatcher = dispatch.current()
    values: list[Any] = [
        dispatcher.scalar(cast(Any, v), dtype) if isinstance(v, (int, float, complex)) else v for v in operands
    ]
    return dispatch.apply(REGISTRY[name], values, attrs)


class _Named:
    """Namespace of ops: ``named.exp(x)`` applies the op exp, see ``apply_named``."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(apply_named, name)


named = _Named()


def conjugate(x: Any) -> Any:
    """Return the complex conjugate of an operand; real operands are unchanged."""
    return named.conj(x) if x.dtype.kind == "c" else x


def holomorphic(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Extend a gradient rule that multiplies by derivatives to complex operands, by conjugating the derivatives. The
    gradient of a real loss L is then dL/d(re) + i dL/d(im), as in PyTorch."""

    def gradient(g: Any, *rest: Any, **attrs: Any) -> Any:
        if g.dtype.kind != "c":
            return rule(g, *rest, **attrs)
        return conjugate(rule(conjugate(g), *rest, **attrs))

    return gradient
