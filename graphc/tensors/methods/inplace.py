"""Tensor methods that write to their own tensor; their names end with an underscore."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.dtypes import fitted, float32
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from graphc.ops.define import as_type
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import exact
from graphc.ops.pointwise import math as mathematics
from graphc.tape.grad_mode import is_grad_enabled
from graphc.tensors import composite, indexing
from graphc.tensors.methods.algebra import Algebra
from graphc.tensors.methods.arithmetic import Arithmetic, operand
from graphc.tensors.methods.elementary import Elementary
from graphc.tensors.methods.numbers import Numbers
from graphc.tensors.methods.ordering import Ordering
from graphc.tensors.methods.selection import Selection, filling
from graphc.tensors.methods.shaping import Shaping
from graphc.tensors.random import sampling
from graphc.tensors.tensor_base import TensorBase, converted, front
from graphc.tensors.views import change_shape

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor

_RANK = {"b": 0, "u": 1, "i": 1, "h": 2, "f": 2, "c": 3}


def write(tensor: Any, value: Any) -> Any:
    """Write ``value`` to ``tensor`` and return the tensor.

    Raises ShapeError if the value is larger than the tensor, DTypeError if its kind of type is higher.
    """
    if _RANK[value.dtype.kind] > _RANK[tensor.dtype.kind]:
        raise DTypeError(f"a result of type {value.dtype.name} cannot be written to a {tensor.dtype.name} tensor")
    return _store(tensor, value)


def _store(tensor: Any, value: Any) -> Any:
    if value.dtype is not tensor.dtype:
        value = ew.cast(value, dtype=tensor.dtype)
    if value.shape != tensor.shape:
        try:
            value = shape.broadcast_to(value, shape=tensor.shape)
        except ShapeError:
            raise ShapeError(
                f"a result of shape {list(value.shape)} cannot be written to a tensor of shape {list(tensor.shape)}"
            ) from None
    front().assign(tensor, value)
    return tensor


def _from(function: Any, reads: bool = True) -> Any:
    """Return the in-place form of ``function(tensor, *args)``; ``reads`` tells whether other gradients may need its
    content."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        others = (*args, *kwargs.values()) if reads else ()
        return write(self, function(front().before_write(self, *others), *args, **kwargs))

    method.__doc__ = f"In place: {(function.__doc__ or '').strip().splitlines()[0] if function.__doc__ else ''}"
    method.__wrapped__ = function  # type: ignore[attr-defined]  # inspect.signature shows that of the function
    return method


def _operator(function: Any, reads: bool = True) -> Any:
    def method(self: Any, other: Any) -> Any:
        other = operand(other)
        if other is NotImplemented:
            return NotImplemented
        return write(self, function(front().before_write(self, *((other,) if reads else ())), other))

    method.__doc__ = f"In place: {function.__doc__}"
    return method


def _reshaping(name: str) -> Any:
    """Return the in-place form of a method that returns a view."""
    function = getattr(Shaping, name)

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return change_shape(self, lambda before: function(before, *args, **kwargs))

    summary = " ".join((function.__doc__ or "").split())
    method.__doc__ = f"In place: {summary} Other views of the memory keep their shape."
    method.__wrapped__ = function  # type: ignore[attr-defined]  # inspect.signature shows that of the function
    return method


class InPlace(TensorBase):
    """Methods that write to the tensor."""

    __iadd__, __isub__ = _operator(ew.add, reads=False), _operator(ew.sub, reads=False)
    __imul__, __itruediv__ = _operator(ew.mul), _operator(ew.div)
    __idiv__ = __itruediv__
    __ifloordiv__, __imod__ = _operator(ew.floor_div), _operator(ew.mod)
    __ipow__ = _operator(composite.power)
    __iand__, __ior__, __ixor__ = _operator(ew.bit_and), _operator(ew.bit_or), _operator(ew.bit_xor)

    add_, sub_ = _from(Arithmetic.add, reads=False), _from(Arithmetic.sub, reads=False)
    mul_, div_, pow_ = _from(ew.mul), _from(Arithmetic.div), _from(Arithmetic.pow)
    floor_divide_, remainder_ = _from(ew.floor_div), _from(ew.mod)
    addcmul_, addcdiv_ = _from(Arithmetic.addcmul), _from(Arithmetic.addcdiv)
    lerp_, addmm_ = _from(Arithmetic.lerp), _from(Arithmetic.addmm)
    clamp_ = clip_ = _from(Arithmetic.clamp)
    neg_, abs_, sign_, reciprocal_ = _from(ew.neg), _from(ew.abs), _from(Arithmetic.sign), _from(ew.reciprocal)
    exp_, log_, sqrt_, rsqrt_ = (_from(getattr(mathematics, n)) for n in ("exp", "log", "sqrt", "rsqrt"))
    sin_, cos_, tanh_, erf_ = (_from(getattr(mathematics, n)) for n in ("sin", "cos", "tanh", "erf"))
    atan_, asin_, acos_, atan2_ = (_from(getattr(mathematics, n)) for n in ("atan", "asin", "acos", "atan2"))
    arctan_, arcsin_, arccos_, arctan2_ = atan_, asin_, acos_, atan2_
    floor_, ceil_, trunc_ = (_from(getattr(mathematics, n)) for n in ("floor", "ceil", "trunc"))
    round_ = _from(Arithmetic.round)
    relu_, sigmoid_ = _from(composite.relu), _from(composite.sigmoid)
    square_, expm1_, log1p_ = _from(Arithmetic.square), _from(mathematics.expm1), _from(mathematics.log1p)
    negative_, absolute_, sgn_, fix_ = neg_, abs_, sign_, trunc_
    divide_, true_divide_, multiply_, subtract_ = div_, div_, mul_, sub_
    exp2_, log2_, log10_, logit_ = (_from(getattr(Elementary, n)) for n in ("exp2", "log2", "log10", "logit"))
    tan_, sinh_, cosh_, sinc_ = (_from(getattr(Elementary, n)) for n in ("tan", "sinh", "cosh", "sinc"))
    asinh_, acosh_, atanh_ = (_from(getattr(Elementary, n)) for n in ("asinh", "acosh", "atanh"))
    arcsinh_, arccosh_, arctanh_ = asinh_, acosh_, atanh_
    erfinv_, lgamma_, digamma_ = (_from(getattr(Elementary, n)) for n in ("erfinv", "lgamma", "digamma"))
    i0_, igamma_, igammac_ = (_from(getattr(Elementary, n)) for n in ("i0", "igamma", "igammac"))
    polygamma_, mvlgamma_ = _from(Elementary.polygamma), _from(Elementary.mvlgamma)
    erfc_, frac_, nan_to_num_ = (_from(getattr(Elementary, n)) for n in ("erfc", "frac", "nan_to_num"))
    deg2rad_, rad2deg_ = _from(Elementary.deg2rad), _from(Elementary.rad2deg)
    fmod_, hypot_, xlogy_ = (_from(getattr(Elementary, n)) for n in ("fmod", "hypot", "xlogy"))
    copysign_, heaviside_ = _from(Elementary.copysign), _from(Elementary.heaviside)
    bitwise_left_shift_, bitwise_right_shift_ = _from(ew.shift_left), _from(ew.shift_right)
    __ilshift__, __irshift__ = _operator(ew.shift_left), _operator(ew.shift_right)
    bitwise_not_ = _from(ew.bit_not)
    eq_, ne_, lt_, le_, gt_, ge_ = (_from(getattr(ew, n)) for n in ("eq", "ne", "lt", "le", "gt", "ge"))
    not_equal_, less_, less_equal_, greater_, greater_equal_ = ne_, lt_, le_, gt_, ge_
    logical_and_, logical_or_ = _from(ew.logical_and), _from(ew.logical_or)
    logical_xor_ = _from(ew.logical_xor)
    cumsum_, cumprod_ = _from(Ordering.cumsum), _from(Ordering.cumprod)
    addmv_, addr_ = _from(Algebra.addmv), _from(Algebra.addr)
    baddbmm_, addbmm_, renorm_ = _from(Algebra.baddbmm), _from(Algebra.addbmm), _from(Algebra.renorm)
    index_reduce_, put_ = _from(Selection.index_reduce), _from(Selection.put)
    gcd_, lcm_, nextafter_ = _from(Numbers.gcd), _from(Numbers.lcm), _from(Numbers.nextafter)
    ldexp_, float_power_ = _from(Numbers.ldexp), _from(Elementary.float_power)
    masked_scatter_, scatter_reduce_ = _from(Selection.masked_scatter), _from(Selection.scatter_reduce)
    bitwise_and_, bitwise_or_, bitwise_xor_ = _from(ew.bit_and), _from(ew.bit_or), _from(ew.bit_xor)
    logical_not_ = _from(ew.logical_not)

    squeeze_, unsqueeze_, t_ = _reshaping("squeeze"), _reshaping("unsqueeze"), _reshaping("t")
    transpose_ = swapaxes_ = swapdims_ = _reshaping("transpose")
    as_strided_ = _reshaping("as_strided")

    def clamp_min_(self, min: Any) -> Tensor:
        """In place: limit elements to at least ``min``."""
        return write(self, composite.clamp(front().before_write(self, min), min, None))

    def clamp_max_(self, max: Any) -> Tensor:
        """In place: limit elements to at most ``max``."""
        return write(self, composite.clamp(front().before_write(self, max), None, max))

    def copy_(self, source: Any) -> Tensor:
        """Copy the elements of ``source``, converted and broadcast, to this tensor."""
        if isinstance(source, (bool, int, float)):
            source = front().scalar(fitted(source, self.dtype), self.dtype)
        elif not isinstance(source, TensorBase):
            source = front().constant(converted(source, self.dtype))
        elif source._requires_grad and is_grad_enabled():
            # The copy gets a node of its own: gradients and hooks of the two tensors are separate.
            source = shape.reshape(source, shape=source.shape)
        return _store(self, source)

    def fill_(self, value: Any) -> Tensor:
        """Set every element to ``value``, a number or a tensor without dimensions."""
        if getattr(value, "shape", ()):
            raise ShapeError(f"fill_: the value is a tensor of shape {list(value.shape)}", remedy="call copy_(value)")
        return self.copy_(value)

    def zero_(self) -> Tensor:
        """Set every element to 0."""
        return self.copy_(0)

    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor:
        """Set elements to ``value`` where the mask is true."""
        value = filling("masked_fill_", mask, value, self.dtype)
        return _store(self, ew.where(mask, value, front().before_write(self)))

    def fill_diagonal_(self, fill_value: Any, wrap: bool = False) -> Tensor:
        """Set the diagonal of a matrix to ``fill_value``."""
        if self.ndim != 2 or wrap:
            raise ArgumentError("fill_diagonal_ takes a matrix, and does not wrap", remedy="assign to an index")
        diagonal = np.eye(*self.shape, dtype=bool)
        return _store(self, ew.where(front().constant(diagonal), fill_value, front().before_write(self)))

    def index_add_(self, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
        """Add the entries of ``source`` to the entries of a dimension that ``index`` selects."""
        at = indexing.need_entries("index_add_", self, dim, index, source)
        value = source if alpha == 1 else as_type(ew.mul(source, alpha), self.dtype)
        return self._put_entries(at, index, value, accumulate=True)

    def index_copy_(self, dim: int, index: Tensor, source: Tensor) -> Tensor:
        """Replace the entries of a dimension that ``index`` selects by the entries of ``source``."""
        # A single number counts as a vector of one element.
        if self.ndim < 2 and source.ndim != self.ndim and source.numel() == 1:
            source = source.reshape(tuple(index.shape) if self.shape else ())
            source = source if index.shape or not self.shape else source.reshape(1)
        at = indexing.need_entries("index_copy_", self, dim, index, source)
        return self._put_entries(at, index, source, accumulate=False)

    def _put_entries(self, at: int, index: Tensor, source: Tensor, accumulate: bool) -> Any:
        if not self.shape:
            self.reshape(1)._put_entries(0, index, source.reshape(1), accumulate)  # type: ignore[attr-defined]
            return self
        positions = indexing.entries(index, self.shape[at], "index")
        indexing.put_entries(self, at, positions, source, accumulate)
        return self

    def index_fill_(self, dim: int, index: Tensor, value: Any) -> Tensor:
        """Fill the entries of a dimension that ``index`` selects."""
        at = indexing.need_entries("index_fill_", self, dim, index)
        if getattr(value, "shape", ()):
            raise ShapeError(
                f"index_fill_: the value is a tensor of shape {list(value.shape)}", remedy="pass one number"
            )
        target = self if self.shape else self.reshape(1)  # type: ignore[attr-defined]
        indexing.fill(target, at, index if index.shape else index.reshape(1), value)
        return self  # type: ignore[return-value]

    def index_put_(self, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
        """Assign ``self[indices] = values``, or ``+=`` with repeated indices counted each time."""
        indexing.put(self, tuple(indices), values, accumulate)
        return self  # type: ignore[return-value]

    def scatter_(
        self, dim: int, index: Tensor, src: Any = None, *, value: float | None = None, reduce: str | None = None
    ) -> Tensor:
        """Put ``src[i, j]`` (or a number) at ``index[i, j], j`` (for ``dim`` 0)."""
        return write(self, front().before_write(self, src).scatter(dim, index, src, value=value, reduce=reduce))

    def scatter_add_(self, dim: int, index: Tensor, src: Tensor) -> Tensor:
        """Add ``src[i, j]`` at ``index[i, j], j`` (for ``dim`` 0)."""
        return write(self, front().before_write(self).scatter_add(dim, index, src))

    def tril_(self, diagonal: int = 0) -> Tensor:
        """Set elements above the diagonal to zero."""
        return write(self, front().before_write(self).tril(diagonal))

    def triu_(self, diagonal: int = 0) -> Tensor:
        """Set elements below the diagonal to zero."""
        return write(self, front().before_write(self).triu(diagonal))

    # ---- random numbers

    def uniform_(self, low: float = 0.0, high: float = 1.0, *, generator: Any = None) -> Tensor:
        """Draw uniform numbers in low..high."""
        if not (low <= high and math.isfinite(high - low)):
            raise AttributeValueError(
                f"uniform_: {low} to {high} is not a valid range", remedy="pass finite numbers with low <= high"
            )
        return self._draw(sampling.uniform(self.shape, self.dtype, generator), high - low, low)

    def normal_(self, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
        """Draw normally distributed numbers."""
        if not std >= 0:
            raise ArgumentError(f"normal_: std must be 0 or more, got {std}")
        return self._draw(sampling.normal(self.shape, self.dtype, generator), std, mean)

    def bernoulli_(self, p: Any = 0.5, *, generator: Any = None) -> Tensor:
        """Draw 1 with probability ``p``, else 0."""
        return _store(self, sampling.bernoulli(p, self.shape, generator))

    def exponential_(self, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
        """Draw exponentially distributed numbers with rate ``lambd``."""
        if not lambd > 0:
            raise AttributeValueError(f"exponential_: lambd is {lambd}", remedy="pass a positive rate")
        return self._draw(sampling.exponential(self.shape, self.dtype, generator), 1 / lambd, 0.0)

    def log_normal_(self, mean: float = 1.0, std: float = 2.0, *, generator: Any = None) -> Tensor:
        """Draw numbers whose logarithms are normally distributed."""
        if std <= 0:
            raise ArgumentError(f"log_normal_: std must be positive, got {std}")
        drawn = ew.add(ew.mul(sampling.normal(self.shape, self.dtype, generator), std), mean)
        return _store(self, exact.exact_exp(drawn))

    def geometric_(self, p: float, *, generator: Any = None) -> Tensor:
        """Draw the number of trials up to the first success of probability ``p``: 1, 2, 3, ..."""
        if not 0 < p < 1:
            raise ArgumentError(f"geometric_: p must be between 0 and 1, got {p}")
        u = sampling.uniform(self.shape, self.dtype if self.dtype.is_floating_point else float32, generator)
        tries = mathematics.ceil(ew.div(exact.exact_log(ew.sub(1.0, u)), math.log1p(-p)))
        return _store(self, ew.maximum(tries, 1.0))

    def cauchy_(self, median: float = 0.0, sigma: float = 1.0, *, generator: Any = None) -> Tensor:
        """Draw numbers of the Cauchy distribution."""
        if not sigma > 0:
            raise ArgumentError(f"cauchy_: sigma must be positive, got {sigma}")
        return self._draw(sampling.cauchy(self.shape, self.dtype, generator), sigma, median)

    def random_(self, low: int | None = None, high: int | None = None, *, generator: Any = None) -> Tensor:
        """Draw integers from ``low`` to ``high - 1``; with a single number, from 0 to it minus 1."""
        if high is None and low is not None and low < 1:
            raise AttributeValueError(
                f"random_: there are no integers from 0 to below {low}", remedy="pass a positive limit"
            )
        if high is None:
            limit = 2 ** (24 if self.dtype.is_floating_point else min(self.dtype.bits - 1, 31))
            return _store(self, sampling.integers(0, low or limit, self.shape, generator))
        return _store(self, sampling.integers(low or 0, high, self.shape, generator))

    def _draw(self, value: Any, scale: float, offset: float) -> Any:
        value = value if scale == 1 else ew.mul(value, scale)
        return _store(self, value if offset == 0 else ew.add(value, offset))
