"""Tensor methods for computation: operators, functions of elements, comparisons, reductions, products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import DType, int64
from graphc.base.errors import ArgumentError, AttributeValueError, GraphcError, ShapeError
from graphc.base.lazy import deferred
from graphc.base.sizes.dims import Dims, dim_of, dims_of
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.define import Scalar, common_type
from graphc.ops.effects.state import straight_through
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors import composite
from graphc.tensors.methods.algebra import Algebra, scaled_sum
from graphc.tensors.methods.elementary import Elementary
from graphc.tensors.methods.ordering import Extreme, Ordering, not_empty, take_along
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor_base import TensorBase, dtype_from, front, name_in_error, need_tensor

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

_matrix_norm = deferred("graphc.linalg.norms:matrix_norm")


def operand(value: Any) -> Any:
    """Convert an operator's operand: arrays become tensors; NotImplemented lets Python try the other operand."""
    if isinstance(value, (TensorBase, Scalar)):
        return value
    if isinstance(value, np.ndarray):
        dtype_from(value)
        return front().constant(value.copy())
    return NotImplemented


def _binary(function: Any, doc: str) -> Any:
    def method(self: Any, other: Any) -> Any:
        other = operand(other)
        return NotImplemented if other is NotImplemented else function(self, other)

    method.__doc__ = doc
    return method


def _reflected(function: Any, doc: str) -> Any:
    def method(self: Any, other: Any) -> Any:
        other = operand(other)
        return NotImplemented if other is NotImplemented else function(other, self)

    method.__doc__ = doc
    return method


def _unary(function: Any) -> Any:
    def method(self: Any) -> Any:
        return function(self)

    method.__doc__ = function.__doc__
    return method


def _two(function: Any, op: str = "", name: str = "") -> Any:
    """Return a method of two operands. Errors say ``name`` for the op ``op``, where the two differ."""

    def method(self: Any, other: Any) -> Any:
        try:
            return function(self, other)
        except GraphcError as error:
            if name:
                name_in_error(error, op, name)
            raise

    method.__doc__ = function.__doc__
    return method


def _scaled(function: Any, doc: str) -> Any:
    def method(self: Any, other: Any, *, alpha: Any = 1) -> Any:
        return function(self, other if alpha == 1 else ew.mul(other, alpha) if _is_tensor(other) else other * alpha)

    method.__doc__ = doc
    return method


def _is_tensor(value: Any) -> bool:
    return isinstance(value, TensorBase)


def product(a: Any, b: Any) -> Any:
    """Compute the matrix product ``@``: vectors are rows on the left and columns on the right; batches broadcast."""
    if not _is_tensor(b) or not _is_tensor(a):
        raise ArgumentError(f"matmul takes two tensors, got {type(a).__name__} and {type(b).__name__}")
    if not a.shape or not b.shape:
        raise ShapeError("matmul: both operands need at least one dimension", remedy="use a * b")
    return matmul(a, b) if len(a.shape) > 1 and len(b.shape) > 1 else _with_vectors(a, b)


@compiled_when_repeated
def _with_vectors(a: Any, b: Any) -> Any:
    row_matrix = shape.reshape(a, shape=(1, *a.shape)) if len(a.shape) == 1 else a
    column_matrix = shape.reshape(b, shape=(*b.shape, 1)) if len(b.shape) == 1 else b
    result = matmul(row_matrix, column_matrix)
    full = result.shape
    result_shape = (
        full[:-2] + (() if row_matrix is not a else full[-2:-1]) + (() if column_matrix is not b else full[-1:])
    )
    return shape.reshape(result, shape=result_shape)


def divide(x: Any, y: Any, rounding_mode: str | None = None) -> Any:
    """Compute the quotient; ``floor`` and ``trunc`` round it to an integer and keep integer types."""
    if rounding_mode is None:
        return ew.div(x, y)
    if rounding_mode == "floor":
        return ew.floor_div(x, y)
    if rounding_mode == "trunc":
        exact = common_type([x, y], "div").kind != "f"
        if exact:
            return _truncated_quotient(x, y)
        # NOTE: the gradient is that of `floor_div`, 0; through the quotient it would be 0 / 0 for a zero divisor.
        return straight_through(ew.floor_div(x, y), mathematics.trunc(ew.div(x, y)))
    raise ArgumentError(f"div: rounding_mode must be None, 'floor' or 'trunc', got {rounding_mode!r}")


def _truncated_quotient(x: Any, y: Any) -> Any:
    """Compute the truncated quotient of integers without floats: one more than the floor for a negative inexact
    quotient."""
    negative = ew.ne(ew.lt(x, 0), ew.lt(y, 0))
    rest = ew.logical_and(negative, ew.mod(x, y))
    floor = ew.floor_div(x, y)
    return ew.add(floor, ew.cast(rest, dtype=floor.dtype))


class Arithmetic(Elementary, Ordering, Algebra):
    """Operators, element functions, comparisons and reductions."""

    __add__ = _binary(ew.add, "Add elements.")
    __radd__ = _reflected(ew.add, "Add elements.")
    __sub__ = _binary(ew.sub, "Subtract elements.")
    __rsub__ = _reflected(ew.sub, "Subtract elements.")
    __mul__ = _binary(ew.mul, "Multiply elements.")
    __rmul__ = _reflected(ew.mul, "Multiply elements.")
    __truediv__ = _binary(ew.div, "Divide elements.")
    __rtruediv__ = _reflected(ew.div, "Divide elements.")
    __div__, __rdiv__ = __truediv__, __rtruediv__
    __floordiv__ = _binary(ew.floor_div, "Divide elements and round down.")
    __rfloordiv__ = _reflected(ew.floor_div, "Divide elements and round down.")
    __mod__ = _binary(ew.mod, "Compute the remainder with the sign of the divisor.")
    __rmod__ = _reflected(ew.mod, "Compute the remainder with the sign of the divisor.")
    __pow__ = _binary(composite.power, "Raise elements to a power.")
    __rpow__ = _reflected(mathematics.pow, "Raise elements to a power.")
    __and__ = _binary(ew.bit_and, "Compute the bitwise and.")
    __rand__ = _reflected(ew.bit_and, "Compute the bitwise and.")
    __or__ = _binary(ew.bit_or, "Compute the bitwise or.")
    __ror__ = _reflected(ew.bit_or, "Compute the bitwise or.")
    __xor__ = _binary(ew.bit_xor, "Compute the bitwise exclusive or.")
    __rxor__ = _reflected(ew.bit_xor, "Compute the bitwise exclusive or.")
    __lshift__ = _binary(ew.shift_left, "Shift bits to the left.")
    __rshift__ = _binary(ew.shift_right, "Shift bits to the right.")
    __rlshift__ = _reflected(ew.shift_left, "Shift bits to the left.")
    __rrshift__ = _reflected(ew.shift_right, "Shift bits to the right.")
    __eq__ = _binary(ew.eq, "Compare elements for equality.")
    __ne__ = _binary(ew.ne, "Compare elements for inequality.")
    __lt__ = _binary(ew.lt, "Return whether elements are smaller.")
    __le__ = _binary(ew.le, "Return whether elements are smaller or equal.")
    __gt__ = _binary(ew.gt, "Return whether elements are larger.")
    __ge__ = _binary(ew.ge, "Return whether elements are larger or equal.")
    __hash__ = object.__hash__
    __neg__ = _unary(ew.neg)
    __abs__ = _unary(ew.abs)
    __invert__ = _unary(ew.bit_not)

    def __pos__(self) -> Tensor:
        return self  # type: ignore[return-value]

    def __matmul__(self, other: Any) -> Tensor:
        other = operand(other)
        return product(self, other) if _is_tensor(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Tensor:
        other = operand(other)
        return product(other, self) if _is_tensor(other) else NotImplemented

    add = _scaled(ew.add, "Add ``alpha * other``.")
    sub = subtract = _scaled(ew.sub, "Subtract ``alpha * other``.")
    mul = multiply = _two(ew.mul)
    floor_divide = _two(ew.floor_div, "floor_div", "floor_divide")
    remainder = _two(ew.mod, "mod", "remainder")
    maximum = _two(ew.maximum)
    minimum = _two(ew.minimum)
    eq, ne = _two(ew.eq), _two(ew.ne)
    lt, le, gt, ge = _two(ew.lt), _two(ew.le), _two(ew.gt), _two(ew.ge)
    logical_and, logical_or, logical_xor = _two(ew.logical_and), _two(ew.logical_or), _two(ew.logical_xor)
    bitwise_and, bitwise_or, bitwise_xor = (
        _two(getattr(ew, f"bit_{n}"), f"bit_{n}", f"bitwise_{n}") for n in ("and", "or", "xor")
    )
    logical_not, bitwise_not = _unary(ew.logical_not), _unary(ew.bit_not)
    neg, abs, reciprocal = _unary(ew.neg), _unary(ew.abs), _unary(ew.reciprocal)
    exp, expm1 = _unary(mathematics.exp), _unary(mathematics.expm1)
    log, log1p = _unary(mathematics.log), _unary(mathematics.log1p)
    sqrt, rsqrt = _unary(mathematics.sqrt), _unary(mathematics.rsqrt)
    sin, cos, tanh = (_unary(getattr(mathematics, n)) for n in ("sin", "cos", "tanh"))
    erf = _unary(compiled_when_repeated(mathematics.erf))
    atan, asin, acos, atan2 = (
        *(_unary(getattr(mathematics, n)) for n in ("atan", "asin", "acos")),
        _two(mathematics.atan2),
    )
    arctan, arcsin, arccos, arctan2 = atan, asin, acos, atan2
    floor, ceil, trunc = (_unary(getattr(mathematics, n)) for n in ("floor", "ceil", "trunc"))
    isnan, isfinite = _unary(mathematics.isnan), _unary(mathematics.isfinite)
    absolute, negative, not_equal = abs, neg, ne
    less, less_equal, greater, greater_equal = lt, le, gt, ge
    fix = trunc
    relu, sigmoid, silu = _unary(composite.relu), _unary(composite.sigmoid), _unary(composite.silu)

    def rsub(self, other: Any, *, alpha: Any = 1) -> Tensor:
        """Compute ``other - alpha * self``."""
        return ew.sub(other, self if alpha == 1 else ew.mul(self, alpha))

    def sign(self) -> Tensor:
        """Compute -1, 0 or 1 by the sign of elements; booleans are unchanged."""
        return ew.mul(self, True) if self.dtype.kind == "b" else ew.sign(self)

    def div(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide elements; ``floor`` and ``trunc`` round the quotient to an integer and keep integer types."""
        return divide(self, other, rounding_mode)

    divide = true_divide = div

    def pow(self, exponent: Any) -> Tensor:
        """Raise each element to the power ``exponent``, a number or a tensor."""
        return composite.power(self, exponent)

    def square(self) -> Tensor:
        """Multiply elements by themselves; booleans become i64."""
        return ew.mul(self, self) if self.dtype.kind != "b" else ew.cast(self, dtype=int64)

    def round(self, *, decimals: int = 0) -> Tensor:
        """Round to the nearest integer (halves to even), or to a number of decimals."""
        if not decimals:
            return mathematics.round(self)
        return ew.div(mathematics.round(ew.mul(self, 10.0**decimals)), 10.0**decimals)

    def isinf(self) -> Tensor:
        """Return whether elements are infinite."""
        return ew.logical_not(ew.logical_or(mathematics.isfinite(self), mathematics.isnan(self)))

    @compiled_when_repeated
    def addcmul(self, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
        """Compute ``self + value * tensor1 * tensor2``."""
        return ew.add(self, ew.mul(ew.mul(tensor1, tensor2), value) if value != 1 else ew.mul(tensor1, tensor2))

    @compiled_when_repeated
    def addcdiv(self, tensor1: Any, tensor2: Any, *, value: float = 1) -> Tensor:
        """Compute ``self + value * tensor1 / tensor2``."""
        return ew.add(self, ew.mul(ew.div(tensor1, tensor2), value) if value != 1 else ew.div(tensor1, tensor2))

    @compiled_when_repeated
    def lerp(self, end: Any, weight: Any) -> Tensor:
        """Compute ``self + weight * (end - self)``, from the nearer end, so that both ends are exact."""
        difference = ew.sub(end, self)
        if isinstance(weight, (int, float, np.number)):
            near = abs(weight) < 0.5
            return ew.add(self, ew.mul(difference, weight)) if near else ew.sub(end, ew.mul(difference, 1 - weight))
        near = ew.lt(ew.abs(weight), 0.5)
        return ew.add(ew.where(near, self, end), ew.mul(difference, ew.where(near, weight, ew.sub(weight, 1))))

    def clamp(self, min: Any = None, max: Any = None) -> Tensor:
        """Limit elements to min..max (numbers or tensors; either may be None)."""
        return composite.clamp(self, min, max)

    clip = clamp

    def softmax(self, dim: int, dtype: DType | None = None) -> Tensor:
        """Compute exp(x) divided by its sum along ``dim``."""
        return composite.softmax(self, dim, dtype)

    def log_softmax(self, dim: int, dtype: DType | None = None) -> Tensor:
        """Compute the logarithm of the softmax along ``dim``."""
        return composite.log_softmax(self, dim, dtype)

    def logsumexp(self, dim: Dims, keepdim: bool = False) -> Tensor:
        """Compute log(sum(exp(x))) along ``dim``."""
        return composite.logsumexp(self, dim, keepdim)

    # ---- reductions

    def sum(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """Compute the sum along ``dim`` (None: of all elements); integers are summed as i64 without ``dtype``.

        Example:
            >>> import graphc as gc
            >>> gc.tensor([[1, 2], [3, 4]]).sum(dim=0)
            tensor([4, 6])
        """
        return composite.total(self, dim, keepdim, dtype)

    def mean(self, dim: Dims = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """Compute the mean along ``dim``."""
        return composite.mean(self, dim, keepdim, dtype)

    def var(
        self,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor:
        """Compute the variance along ``dim``; ``correction`` is subtracted from the count (``unbiased`` is its old
        form)."""
        dim, correction = _spread_arguments(dim, unbiased, correction)
        return composite.var(self, dim, correction, keepdim)

    def std(
        self,
        dim: Any = None,
        unbiased: bool | None = None,
        keepdim: bool = False,
        *,
        correction: float | None = None,
    ) -> Tensor:
        """Compute the square root of the variance."""
        dim, correction = _spread_arguments(dim, unbiased, correction)
        return composite.std(self, dim, correction, keepdim)

    @compiled_when_repeated
    def prod(self, dim: int | None = None, keepdim: bool = False, *, dtype: DType | None = None) -> Tensor:
        """Compute the product along ``dim``; integers are multiplied as i64 without ``dtype``."""
        return composite.folded(reduce.prod, self, dim, keepdim, dtype)

    def amax(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """Return the largest element along ``dim``."""
        axes = dims_of(dim, self.ndim)
        not_empty(self, axes, "amax")
        return reduce.max(self, axes=axes, keepdims=keepdim)

    def amin(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """Return the smallest element along ``dim``."""
        axes = dims_of(dim, self.ndim)
        not_empty(self, axes, "amin")
        return reduce.min(self, axes=axes, keepdims=keepdim)

    def argmax(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """Return the index of the first largest element along ``dim`` (None: in the flattened tensor).

        Example:
            >>> import graphc as gc
            >>> gc.tensor([[1, 5], [7, 2]]).argmax(dim=1)
            tensor([1, 0])
        """
        return _position(reduce.argmax, self, dim, keepdim)

    def argmin(self, dim: int | None = None, keepdim: bool = False) -> Tensor:
        """Return the index of the first smallest element along ``dim`` (None: in the flattened tensor)."""
        return _position(reduce.argmin, self, dim, keepdim)

    @compiled_when_repeated
    def max(self, dim: Any = None, keepdim: bool = False) -> Any:
        """Return the largest element; with a dimension, (values, indices); with a tensor, the larger of each pair."""
        return _extreme(self, dim, keepdim, (reduce.max, reduce.argmax, ew.maximum))

    @compiled_when_repeated
    def min(self, dim: Any = None, keepdim: bool = False) -> Any:
        """Return the smallest element; with a dimension, (values, indices); with a tensor, the smaller of each pair."""
        return _extreme(self, dim, keepdim, (reduce.min, reduce.argmin, ew.minimum))

    @compiled_when_repeated
    def any(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """Return whether some element is nonzero (u8 for u8, as in PyTorch); ``()`` reduces no dimension."""
        return _logical(reduce.any, self, dim, keepdim)

    @compiled_when_repeated
    def all(self, dim: Dims = None, keepdim: bool = False) -> Tensor:
        """Return whether all elements are nonzero (u8 for u8, as in PyTorch); ``()`` reduces no dimension."""
        return _logical(reduce.all, self, dim, keepdim)

    def _truth(self) -> Any:
        return self if self.dtype.kind == "b" else ew.ne(self, 0)

    def count_nonzero(self, dim: Dims = None) -> Tensor:
        """Count the nonzero elements."""
        return composite.total(self._truth(), dim)

    def norm(self, p: Any = "fro", dim: Dims = None, keepdim: bool = False, dtype: DType | None = None) -> Tensor:
        """Compute the p-norm along ``dim`` (``fro`` is the 2-norm, ``nuc`` the sum of the singular values of matrices
        along two dimensions), in ``dtype`` if given."""
        if p == "nuc":
            return _matrix_norm(self, p, tuple(range(self.ndim)) if dim is None else dim, keepdim, dtype=dtype)
        if isinstance(p, str) and p != "fro":
            raise AttributeValueError(f"norm: unknown p {p!r}", remedy="pass a number, 'fro' or 'nuc'")
        x = self if dtype is None else ew.cast(self, dtype=dtype)
        return composite.norm(x, 2.0 if p in (None, "fro") else float(p), dim, keepdim)

    # ---- products

    def matmul(self, other: Tensor) -> Tensor:
        """Compute the matrix product, like ``@``."""
        return product(self, other)

    def mm(self, mat2: Tensor) -> Tensor:
        """Compute the product of two matrices."""
        _check_ranks("mm", self, mat2, 2)
        return matmul(self, mat2)

    def bmm(self, mat2: Tensor) -> Tensor:
        """Compute the products of two batches of matrices."""
        _check_ranks("bmm", self, mat2, 3)
        if self.shape[0] != mat2.shape[0]:
            raise ShapeError(f"bmm: batch sizes differ: {self.shape[0]} and {mat2.shape[0]}")
        return matmul(self, mat2)

    def mv(self, vec: Tensor) -> Tensor:
        """Compute the product of a matrix and a vector."""
        return product(self, vec)

    def dot(self, tensor: Tensor) -> Tensor:
        """Compute the inner product of two vectors."""
        _check_ranks("dot", self, tensor, 1)
        return product(self, tensor)

    @compiled_when_repeated
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """Compute ``beta * self + alpha * (mat1 @ mat2)``; with ``beta`` 0, NaN in this tensor does not propagate."""
        _check_ranks("addmm", mat1, mat2, 2)
        return scaled_sum("addmm", self, matmul(mat1, mat2), beta, alpha)

    @compiled_when_repeated
    def outer(self, vec2: Tensor) -> Tensor:
        """Compute all products of an element of this vector with one of ``vec2``."""
        _check_ranks("outer", self, vec2, 1)
        return ew.mul(shape.reshape(self, shape=(*self.shape, 1)), vec2)

    # ---- comparisons with one result, which need values

    def equal(self, other: Tensor) -> bool:
        """Return whether shapes and all elements are equal."""
        need_tensor("equal", other)
        return self.shape == other.shape and bool(ew.eq(self, other).all())

    @compiled_when_repeated
    def isclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Tensor:
        """Return whether elements differ by at most ``atol + rtol * |other|``."""
        if rtol < 0 or atol < 0:
            raise AttributeValueError(f"isclose: rtol is {rtol} and atol {atol}", remedy="pass tolerances of 0 or more")
        if self.dtype.kind == "b" and getattr(other, "dtype", self.dtype).kind == "b":
            return ew.eq(self, other)
        near = ew.le(ew.abs(ew.sub(self, other)), ew.add(ew.mul(ew.abs(other), rtol), atol))
        near = ew.logical_or(ew.logical_and(near, mathematics.isfinite(other)), ew.eq(self, other))
        if equal_nan:
            near = ew.logical_or(near, ew.logical_and(mathematics.isnan(self), mathematics.isnan(other)))
        return near

    def allclose(self, other: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
        """Return whether all elements are close, see ``isclose``.

        Example:
            >>> import graphc as gc
            >>> gc.allclose(gc.tensor([1.0]), gc.tensor([1.0 + 1e-7]))
            True
        """
        return bool(reduce_all(self.isclose(other, rtol, atol, equal_nan)))


def reduce_all(x: Any) -> Any:
    """Return whether every element of a boolean tensor is true."""
    return reduce.all(x, axes=tuple(range(len(x.shape))), keepdims=False)


def _logical(reduction: Any, x: Any, dim: Dims, keepdim: bool) -> Any:
    none = isinstance(dim, (tuple, list)) and not dim
    truth = x._truth()
    reduced = truth if none else reduction(truth, axes=dims_of(dim, len(x.shape)), keepdims=keepdim)
    return (
        ew.cast(reduced, dtype=x.dtype) if x.dtype.kind == "u" else ew.mul(reduced, True) if reduced is x else reduced
    )


def _spread_arguments(dim: Any, unbiased: bool | None, correction: float | None) -> tuple[Any, float]:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = 1 if correction is None else correction
    return dim, correction if unbiased is None else float(unbiased)


def _position(search: Any, x: Any, dim: int | None, keepdim: bool) -> Any:
    if dim is None or not x.shape:
        dim_of(0 if dim is None else dim, len(x.shape))
        flat = shape.reshape(x, shape=(x.numel(),))
        not_empty(flat, (0,), "argmax and argmin")
        index = search(flat, axis=0, keepdims=False)
        return shape.reshape(index, shape=(1,) * len(x.shape)) if keepdim else index
    at = dim_of(dim, len(x.shape))
    not_empty(x, (at,), "argmax and argmin")
    return search(x, axis=at, keepdims=keepdim)


def _extreme(x: Any, dim: Any, keepdim: bool, functions: tuple[Any, Any, Any]) -> Any:
    reduction, search, pairwise = functions
    if _is_tensor(dim):
        return pairwise(x, dim)
    if dim is None:
        return reduction(x, axes=tuple(range(len(x.shape))), keepdims=False)
    indices = _position(search, x, dim, bool(x.shape))
    if not x.shape:
        return Extreme(ew.mul(x, True), indices)
    at = dim_of(dim, len(x.shape))
    # Of equal elements, only the one at the index gets a gradient.
    picked = x.requires_grad and is_grad_enabled()
    values = take_along(x, indices, at) if picked else reduction(x, axes=(at,), keepdims=True)
    return Extreme(values, indices) if keepdim else Extreme(values.squeeze(at), indices.squeeze(at))


def _check_ranks(name: str, a: Any, b: Any, rank: int) -> None:
    need_tensor(name, a, b)
    if len(a.shape) != rank or len(b.shape) != rank:
        raise ShapeError(f"{name} takes tensors of {rank} dimensions, got {list(a.shape)} and {list(b.shape)}")
