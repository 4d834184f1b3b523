"""Array: a tensor with the array API standard's behaviour where PyTorch's tensors differ from it."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

from graphc.array_api import promotion
from graphc.base.errors import AttributeValueError, IndexRangeError
from graphc.base.sizes.dims import common_shape
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementary
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.tensors import indexing
from graphc.tensors.methods.arithmetic import operand, product
from graphc.tensors.methods.inplace import write
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


def standard(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``function`` to return arrays in place of tensors, also inside of a tuple of results."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        if isinstance(result, Tensor):
            return _as_array(result, args)
        if isinstance(result, tuple) and any([isinstance(element, Tensor) for element in result]):
            elements = [_as_array(element, args) for element in result]
            return type(result)(*elements) if hasattr(result, "_fields") else tuple(elements)
        return result

    return call


def _as_array(tensor: Tensor, arguments: tuple[Any, ...]) -> Any:
    """Return the tensor as an array: itself if it is a fresh result, a view if the caller has it, too."""
    if isinstance(tensor, Array):
        return tensor
    if type(tensor) is not Tensor or any(tensor is value for value in _flat(arguments)):
        tensor = shape.reshape(tensor, shape=tensor.shape)
    tensor.__class__ = Array
    return tensor


def _flat(arguments: tuple[Any, ...]) -> Iterator[Any]:
    for value in arguments:
        yield from value if isinstance(value, (tuple, list)) else (value,)


def _operator(name: str, function: Any, reflected: bool = False) -> Any:
    def method(self: Any, other: Any, /) -> Any:
        other = operand(other)
        if other is NotImplemented:
            return NotImplemented
        return promotion.apply(name, function, *((other, self) if reflected else (self, other)))

    method.__doc__ = f"Apply ``{name}`` of the namespace."
    return standard(method)


def _in_place(name: str, function: Any) -> Any:
    def method(self: Any, other: Any, /) -> Any:
        other = operand(other)
        if other is NotImplemented:
            return NotImplemented
        return write(self, promotion.apply(name, function, front().before_write(self, other), other))

    method.__doc__ = f"Apply ``{name}`` of the namespace in place."
    return method


def floor_divided(x: Any, y: Any) -> Any:
    """Divide two arrays of one type and round down.

    With an infinite operand, the floor of the quotient is returned, where Python's rules give NaN and -1.
    """
    exact = ew.floor_div(x, y)
    if not x.dtype.is_floating_point:
        return exact
    infinite = ew.logical_or(ew.eq(ew.abs(x), math.inf), ew.eq(ew.abs(y), math.inf))
    return ew.where(infinite, mathematics.floor(ew.div(x, y)), exact)


def remainder_of(x: Any, y: Any) -> Any:
    """Return the remainder of two arrays of one type. A remainder of zero also has the sign of ``y``."""
    remainder = ew.mod(x, y)
    return (
        remainder
        if not x.dtype.is_floating_point
        else ew.where(ew.eq(remainder, 0), elementary.copysign(0.0, y), remainder)
    )


def _own(function: Any) -> Any:
    def method(self: Any, /) -> Any:
        return function(self)

    method.__doc__ = function.__doc__
    return standard(method)


class Array(Tensor):
    """Result of functions of ``graphc.array_api``: a tensor that follows the array API standard.

    ``graphc.array_api.asarray(tensor)`` makes an array of a tensor, with which it shares memory and gradients. It has
    all methods of tensors, but ``size`` is the number of elements, operators promote by the standard's rules, and
    slices may have negative steps. Operators and indexing return arrays, methods of tensors return tensors.
    """

    size: Any = property(Tensor.numel)

    __add__, __radd__ = _operator("add", ew.add), _operator("add", ew.add, True)
    __sub__, __rsub__ = _operator("subtract", ew.sub), _operator("subtract", ew.sub, True)
    __mul__, __rmul__ = _operator("multiply", ew.mul), _operator("multiply", ew.mul, True)
    __truediv__, __rtruediv__ = _operator("divide", ew.div), _operator("divide", ew.div, True)
    __floordiv__ = _operator("floor_divide", floor_divided)
    __rfloordiv__ = _operator("floor_divide", floor_divided, True)
    __ifloordiv__, __imod__ = _in_place("floor_divide", floor_divided), _in_place("remainder", remainder_of)
    __mod__, __rmod__ = _operator("remainder", remainder_of), _operator("remainder", remainder_of, True)
    __pow__, __rpow__ = _operator("pow", mathematics.pow), _operator("pow", mathematics.pow, True)
    __matmul__, __rmatmul__ = _operator("matmul", product), _operator("matmul", product, True)
    __and__, __rand__ = _operator("bitwise_and", ew.bit_and), _operator("bitwise_and", ew.bit_and, True)
    __or__, __ror__ = _operator("bitwise_or", ew.bit_or), _operator("bitwise_or", ew.bit_or, True)
    __xor__, __rxor__ = _operator("bitwise_xor", ew.bit_xor), _operator("bitwise_xor", ew.bit_xor, True)
    __lshift__ = _operator("bitwise_left_shift", ew.shift_left)
    __rlshift__ = _operator("bitwise_left_shift", ew.shift_left, True)
    __rshift__ = _operator("bitwise_right_shift", ew.shift_right)
    __rrshift__ = _operator("bitwise_right_shift", ew.shift_right, True)
    __eq__, __ne__ = _operator("equal", ew.eq), _operator("not_equal", ew.ne)
    __lt__, __le__ = _operator("less", ew.lt), _operator("less_equal", ew.le)
    __gt__, __ge__ = _operator("greater", ew.gt), _operator("greater_equal", ew.ge)
    __neg__, __abs__, __invert__ = _own(Tensor.__neg__), _own(Tensor.__abs__), _own(Tensor.__invert__)
    __hash__ = Tensor.__hash__
    T: Any = property(_own(Tensor.T.fget))
    mT: Any = property(_own(Tensor.mT.fget))

    @standard
    def __getitem__(self, key: Any, /) -> Any:
        key, backwards = _forwards(key, self.shape)
        if not isinstance(key, Tensor) or key.dtype.kind != "b":
            selected = indexing.take(self, key)
            return shape.flip(selected, axes=backwards) if backwards else selected
        if not key.shape:
            return indexing.take(shape.reshape(self, shape=(1, *self.shape)), key.reshape(1))
        return indexing.take(*_masked(self, key))

    def __setitem__(self, index: Any, value: Any) -> None:
        key, backwards = _forwards(index, self.shape)
        if backwards and getattr(value, "shape", ()):
            value = shape.broadcast_to(value, shape=indexing.plan(key, self.shape).shape)
            value = shape.flip(value, axes=backwards)
        if not isinstance(key, Tensor) or key.dtype.kind != "b" or key.numel():
            indexing.put(self, key, value)

    def __iter__(self) -> Iterator[Any]:
        return iter([self[i] for i in range(len(self))])

    def __complex__(self) -> complex:
        return complex(self.item())

    @standard
    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """Copy to another device, or return this array if it is there. Raises AttributeValueError for a stream."""
        if stream is not None:
            raise AttributeValueError("to_device: streams of a device cannot be chosen", remedy="pass stream=None")
        return self.to(device)


def _masked(x: Array, mask: Tensor) -> tuple[Any, Any]:
    """Return the array and a mask of its shape.

    A mask without elements may have sizes of 0 where the array has others, and selects nothing. Raises IndexRangeError.
    """
    covered, rank = x.shape[: mask.ndim], mask.ndim
    if rank > x.ndim or any(m not in (s, 0) for m, s in zip(mask.shape, covered, strict=True)):
        raise IndexRangeError(f"a mask of shape {list(mask.shape)} does not fit an array of shape {list(x.shape)}")
    if mask.shape == covered:
        return x, mask
    flat = shape.reshape(x, shape=(math.prod(covered), *x.shape[rank:]))
    return flat, slice(0, 0)


def _forwards(key: Any, extents: tuple[int, ...]) -> tuple[Any, tuple[int, ...]]:
    """Return a key whose slices all go forwards, and the axes of the result to flip."""
    items = key if isinstance(key, tuple) else (key,)
    if not any(isinstance(i, slice) and _is_negative(i.step) for i in items):
        return key, ()
    consumed = sum(i is not None and i is not Ellipsis for i in items)
    forward_items, axes, dim, axis = [], [], 0, 0
    for item in items:
        if item is Ellipsis:
            dim, axis = dim + len(extents) - consumed, axis + len(extents) - consumed
        elif isinstance(item, slice):
            if _is_negative(item.step):
                item, _ = _turned(item, extents[dim]), axes.append(axis)
            dim, axis = dim + 1, axis + 1
        else:
            dim, axis = dim + (item is not None), axis + (item is None)
        forward_items.append(item)
    return tuple(forward_items), tuple(axes)


def _is_negative(step: Any) -> bool:
    return step is not None and step < 0


def _turned(item: slice, extent: int) -> slice:
    """Return the slice of the same elements in reverse order."""
    positions = range(*item.indices(extent))
    return slice(positions[-1], positions[0] + 1, -positions.step) if positions else slice(0, 0)


def broadcast_together(*arrays: Any) -> list[Any]:
    """Broadcast arrays to their common shape. Raises ShapeError."""
    common = common_shape(*(a.shape for a in arrays))
    return [a if tuple(a.shape) == common else shape.broadcast_to(a, shape=common) for a in arrays]
