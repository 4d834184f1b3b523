"""Tensor: a multidimensional array that takes part in autograd, computed at once or traced into a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base import mutation_epoch
from graphc.base.absent import TENSOR, missing
from graphc.base.device import CPU, device
from graphc.base.device import device as device_of
from graphc.base.dtypes import (
    BY_NAME,
    bfloat16,
    bool_,
    complex64,
    dtype_of,
    element,
    fitted,
    float32,
    int64,
    number_of,
    numbers,
)
from graphc.base.errors import ArgumentError, DTypeError, GradientError
from graphc.base.memory_format import channels_last, channels_last_3d, check_format, layout, strided
from graphc.base.progress import PYTHON, shown
from graphc.base.public import call, path_of, resolve
from graphc.base.sizes.dims import has_sizes, new_shape, numpy_names
from graphc.ops.effects.state import stop_gradient
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.methods.arithmetic import Arithmetic
from graphc.tensors.methods.calculus import Calculus
from graphc.tensors.methods.conversion import Conversion
from graphc.tensors.methods.inplace import InPlace
from graphc.tensors.methods.matrices import Matrices
from graphc.tensors.methods.numbers import Numbers
from graphc.tensors.methods.parts import Parts
from graphc.tensors.methods.questions import Questions
from graphc.tensors.methods.shaping import Shaping
from graphc.tensors.methods.statistics import Statistics
from graphc.tensors.placement import is_elsewhere, is_on_device, on_host, place_of
from graphc.tensors.printing import text_of, with_suffixes
from graphc.tensors.repeated import PLAIN
from graphc.tensors.routes import rearranging
from graphc.tensors.tensor_base import BY_NUMPY, converted, edge_of, expose, front, refresh


class Tensor(Arithmetic, Numbers, Shaping, InPlace, Conversion, Calculus, Statistics, Questions, Matrices, Parts):
    """A multidimensional array. Create one with ``graphc.tensor``, ``graphc.zeros`` and the like."""

    __array_priority__ = 1000

    def __new__(cls, *args: Any) -> Any:
        if len(args) == 1 and not isinstance(args[0], int):
            array = np.array(args[0]._data if isinstance(args[0], Tensor) else args[0], np.float32)
        else:
            array = np.empty(args, np.float32)
        return cls._wrap(array)

    @classmethod
    def _wrap(cls, data: Any) -> Any:
        """Wrap ``data``, a numpy array or a graph value, in a new tensor without history."""
        tensor = object.__new__(cls)
        tensor._data = data
        tensor.dtype = BY_NUMPY[data.dtype] if isinstance(data.dtype, np.dtype) else data.dtype
        tensor._counter = [0]
        return tensor

    @staticmethod
    def _make_subclass(kind: type, data: Tensor, requires_grad: bool = False) -> Any:
        """Create a leaf of class ``kind`` that shares the memory of ``data``."""
        tensor = object.__new__(kind)
        tensor._data, tensor.dtype, tensor._counter = data._data, data.dtype, data._counter
        tensor._requires_grad = requires_grad
        return tensor

    def __getattr__(self, name: str) -> Any:
        raise missing("'Tensor' object", name, TENSOR, self)

    # ---- values

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the data as a numpy array that shares memory with this tensor.

        Raises GradientError for a tensor that requires gradients, unless ``force`` detaches it and copies it from
        another device. Raises DTypeError for bf16, which numpy lacks.

        Example:
            >>> import graphc as gc
            >>> x = gc.zeros(2)
            >>> x.numpy()[0] = 1
            >>> x
            tensor([1., 0.])
        """
        if self.dtype is bfloat16:
            raise DTypeError("numpy() does not support bf16", remedy="call tensor.float().numpy()")
        values = self._values(force)
        expose(self)
        return values

    def _values(self, force: bool = False) -> np.ndarray:
        """Return the data like ``numpy``, for callers that only read."""
        if force and is_on_device(self._data):
            return on_host(self._data)
        values = front().values(self, "numpy()")
        if self._requires_grad and not force:
            raise GradientError(
                "numpy() of a tensor that requires gradients would lose its history",
                remedy="call tensor.detach().numpy()",
            )
        return values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = np.array(self._values(), dtype=dtype, copy=copy)
        if isinstance(self._data, np.ndarray) and np.may_share_memory(array, self._data):
            expose(self)
        return array

    def item(self) -> bool | int | float:
        """Return the only element as a Python number.

        Example:
            >>> import graphc as gc
            >>> gc.tensor([2.5]).item()
            2.5
        """
        values = front().values(self, "item()")
        if values.size != 1:
            raise ArgumentError(f"item() needs a tensor of one element, this one has {values.size}")
        return number_of(values)

    def tolist(self) -> Any:
        """Return nested lists of Python numbers."""
        return numbers(front().values(self, "tolist()")).tolist()

    def __bool__(self) -> bool:
        values = front().values(self, "bool(), as in `if` and `while`,")
        if values.size != 1:
            raise ArgumentError(
                f"the truth of a tensor with {values.size} elements is ambiguous",
                remedy="call tensor.any() or tensor.all()",
            )
        return bool(values)

    def _number(self, purpose: str) -> Any:
        values = front().values(self, purpose)
        if values.size != 1:
            raise ArgumentError(f"{purpose} needs a tensor of one element, this one has {values.size}")
        return number_of(values)

    def __float__(self) -> float:
        return float(self._number("float()"))

    def __int__(self) -> int:
        return int(self._number("int()"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iub":
            raise ArgumentError(f"only integer tensors can be used as an index, this one is {self.dtype.name}")
        return int(self._number("use as a Python int"))

    def __contains__(self, item: Any) -> bool:
        return bool(ew.eq(self, item).any())

    def __repr__(self) -> str:
        return describe(self)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self.shape else repr(self)

    # ---- autograd

    @shown(PYTHON, lambda call: "backward")
    def backward(
        self,
        gradient: Any = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Compute gradients and add them to ``grad`` of every leaf tensor that this tensor depends on.

        Args:
            gradient: gradient of this tensor, of its shape (default: 1, for a tensor of one element).
            retain_graph: keep saved values for another backward pass (default: ``create_graph``).
            create_graph: record the pass, so that the gradients can be differentiated again.
            inputs: tensor or tensors whose ``grad`` to compute (default: all leaves).

        Returns:
            None.

        Raises:
            GradientError: the graph was freed, a saved tensor was changed in place, or ``gradient`` is needed.

        Example:
            >>> import graphc as gc
            >>> x = gc.tensor([1.0, 2.0], requires_grad=True)
            >>> (x**3).sum().backward()
            >>> x.grad
            tensor([ 3., 12.])
        """
        front().backward((self,), (gradient,), retain_graph, create_graph, inputs)

    @rearranging
    def detach(self) -> Tensor:
        """Return a tensor that shares memory with this one and has no history.

        Example:
            >>> import graphc as gc
            >>> x = gc.tensor([1.0], requires_grad=True)
            >>> (x * 2).detach().requires_grad
            False
        """
        return stop_gradient(self)

    def detach_(self) -> Tensor:
        """Remove the history of this tensor, and return it."""
        if self._view is not None:
            raise GradientError("detach_() does not work on a view", remedy="call tensor.detach()")
        mutation_epoch.note()
        self._node, self._index, self._requires_grad = None, 0, False
        return self

    @property
    @rearranging
    def data(self) -> Tensor:
        """The same memory without history, like detach(); an assigned tensor replaces the memory."""
        return stop_gradient(self)

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise ArgumentError(f"data must be a tensor, got {type(value).__name__}")
        front().rebind(self, value)

    def clone(self, *, memory_format: Any = None) -> Tensor:
        """Return a differentiable copy."""
        check_format("clone", memory_format)
        return front().own(self._copied())

    @rearranging
    def _copied(self) -> Tensor:
        return shape.reshape(self, shape=self.shape)

    def __copy__(self) -> Tensor:
        return type(self)._make_subclass(type(self), self, self._requires_grad)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        if self._node is not None:
            raise GradientError("only leaf tensors can be deep-copied", remedy="call tensor.detach().clone()")
        values = self._data if is_on_device(self._data) else front().values(self, "deepcopy")
        copied = Tensor._make_subclass(type(self), Tensor._wrap(values.copy()), self._requires_grad)
        memo[id(self)] = copied
        if self._grad is not None:
            copied._grad = self._grad.__deepcopy__(memo)
        return copied

    def __reduce__(self) -> Any:
        return call, (
            "tensor",
            path_of(type(self)) or type(self),
            on_host(self._data) if is_on_device(self._data) else front().values(self, "pickling"),
            self._requires_grad,
            *([str(self.device)] if is_on_device(self._data) else []),
        )

    def __reduce_ex__(self, protocol: Any) -> Any:
        if protocol >= 5:  # out-of-band buffers may share the memory
            expose(self)
        return self.__reduce__()

    def register_gradient_edge(self) -> Any:
        """Return the (node, output number) that receives this tensor's gradient."""
        return edge_of(refresh(front().local(self)))

    # ---- memory and element types

    @property
    def device(self) -> device:
        """The device of the tensor's memory."""
        return place_of(self._data)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Return whether the elements are in row-major order without gaps. For ``channels_last`` (4 dimensions) and
        ``channels_last_3d`` (5), the channel dimension counts as the last one."""
        check_format("is_contiguous", memory_format)
        strided_array = front().layout(self)
        if memory_format in (channels_last, channels_last_3d):
            if strided_array.ndim != (4 if memory_format is channels_last else 5):
                return False
            strided_array = np.moveaxis(strided_array, 1, -1)
        return strided_array.flags.c_contiguous

    def stride(self, dim: int | None = None) -> Any:
        """Return the distance in memory between neighbours along each dimension, in elements."""
        layout = front().layout(self)
        steps = tuple(s // layout.itemsize for s in layout.strides)
        return steps if dim is None else steps[dim]

    def contiguous(self, memory_format: Any = None) -> Tensor:
        """Return this tensor, or a row-major copy. ``memory_format`` is only a hint."""
        check_format("contiguous", memory_format)
        return self if self.is_contiguous() else self.clone()

    def data_ptr(self) -> int:
        """Return the address of the first element."""
        expose(self)
        return front().values(self, "data_ptr()").__array_interface__["data"][0]

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """Convert to another element type or device: ``to(dtype)``, ``to(device)``, ``to(device, dtype)``,
        ``to(tensor)``; ``memory_format`` and ``non_blocking`` are hints.

        Example:
            >>> import graphc as gc
            >>> gc.tensor([1.5, 2.5]).to(gc.int64)
            tensor([1, 2])
        """
        copy = kwargs.pop("copy", False)
        kwargs.pop("non_blocking", None)
        check_format("to", kwargs.pop("memory_format", None))
        dtype = kwargs.pop("dtype", None)
        target_device = kwargs.pop("device", None)
        if kwargs:
            raise ArgumentError(f"to() has no argument {next(iter(kwargs))!r}")
        for argument in args:
            if isinstance(argument, Tensor):
                dtype, target_device = argument.dtype, argument.device
            elif isinstance(argument, (str, device)) and str(argument) not in BY_NAME:
                target_device = argument
            elif not isinstance(argument, bool) and argument is not None:
                dtype = argument
        result = self if dtype is None else self.to_dtype(dtype)
        if target_device is not None and is_elsewhere(result._data, device(target_device)):
            result = front().moved(result, device(target_device))
        return result.clone() if copy and result is self else result

    def cpu(self) -> Tensor:
        """Return this tensor, or a copy on the CPU if it is elsewhere."""
        return self.to(CPU)

    @property
    def layout(self) -> layout:
        """``graphc.strided``: tensors are dense."""
        return strided

    def pin_memory(self) -> Tensor:
        """Return this tensor: copies to a GPU need no pinned memory."""
        return self

    def is_pinned(self) -> bool:
        """Return False: no memory is pinned."""
        return False

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Tensor:
        """Return a copy on a GPU (the first one, or by number or name); the tensor itself if it is already there."""
        return self.to("cuda" if device is None else f"cuda:{device}" if isinstance(device, int) else device)

    # ---- new tensors like this one

    def new_tensor(self, data: Any, dtype: Any = None, *, device: Any = None, requires_grad: bool = False) -> Tensor:
        """Create a tensor of data with this element type."""
        data = on_host(data._data) if isinstance(data, Tensor) else data
        return self._new(converted(data, dtype_of(dtype) if dtype else self.dtype), device, requires_grad)

    def new_full(
        self,
        size: Sequence[Any],
        fill_value: Any,
        dtype: Any = None,
        *,
        device: Any = None,
        requires_grad: bool = False,
    ) -> Tensor:
        """Create a tensor filled with one value."""
        kind = dtype_of(dtype) if dtype else self.dtype
        extents, value = new_shape((tuple(size),)), fitted(fill_value, kind)
        if has_sizes(extents):
            return self._placed(front().own(shape.filled(value, kind, extents)), device, requires_grad)
        return self._new(np.full(extents, element(value, kind)), device, requires_grad)

    def new_zeros(self, *sizes: Any, size: Any = None, dtype: Any = None, **options: Any) -> Tensor:
        """Create zeros of this element type."""
        return self.new_full(_sizes(sizes, size), 0, dtype, **options)

    def new_ones(self, *sizes: Any, size: Any = None, dtype: Any = None, **options: Any) -> Tensor:
        """Create ones of this element type."""
        return self.new_full(_sizes(sizes, size), 1, dtype, **options)

    def new_empty(self, *sizes: Any, size: Any = None, dtype: Any = None, **options: Any) -> Tensor:
        """Create a tensor of this element type with arbitrary elements."""
        return self.new_full(_sizes(sizes, size), 0, dtype, **options)

    def _new(self, array: np.ndarray, device: Any, requires_grad: bool) -> Tensor:
        return self._placed(front().constant(array), device, requires_grad)

    def _placed(self, tensor: Tensor, device: Any, requires_grad: bool) -> Tensor:
        target = self.device if device is None else device_of(device)
        if is_elsewhere(tensor._data, target):
            tensor = front().moved(tensor, target)
        return tensor.requires_grad_() if requires_grad else tensor


def _accept_numpy_names() -> None:
    """Let methods with ``dim`` and ``keepdim`` also accept ``axis`` and ``keepdims``."""
    for name in dir(Tensor):
        function = getattr(Tensor, name)
        while hasattr(function, "__wrapped__"):  # as inspect.unwrap, which takes a millisecond more for all names
            function = function.__wrapped__
        code = getattr(function, "__code__", None)
        if code is not None and "dim" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
            setattr(Tensor, name, numpy_names(getattr(Tensor, name)))


_accept_numpy_names()


def _sizes(size: tuple[Any, ...], named: Any = None) -> Any:
    size = (named,) if named is not None else size
    return size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def restored(cls: Any, array: np.ndarray, requires_grad: bool, device_name: str = "cpu") -> Tensor:
    """Restore a tensor from a pickle; ``cls`` is its class or its path. Raise DeviceError if its device is missing."""
    return Tensor._make_subclass(resolve(cls), Tensor._wrap(array).to(device_name), requires_grad)


def is_tensor(value: Any) -> bool:
    """Return whether ``value`` is a tensor."""
    return isinstance(value, Tensor)


_IMPLICIT = (float32, complex64, int64, bool_)
"""Element types of literals, which are not printed."""


PLAIN.add(Tensor)


def describe(tensor: Tensor) -> str:
    """Format a tensor: values, or the graph value of a traced one; element type; autograd state."""
    head = "Parameter containing:\n" if type(tensor).__name__ == "Parameter" else ""
    data = tensor._data
    suffixes = []
    if isinstance(data, np.ndarray) or is_on_device(data):
        text = text_of(numbers(on_host(data)), len("tensor("))
        if is_on_device(data):
            suffixes.append(f"device='{tensor.device}'")
        if not data.size and len(data.shape) != 1:
            suffixes.append(f"size={tuple(data.shape)}")
        if tensor.dtype not in _IMPLICIT or (not data.size and tensor.dtype is not float32):
            suffixes.append(f"dtype={tensor.dtype!r}")
    else:
        text = f"%{data.name}: {tensor.dtype.name}[{','.join(map(str, data.shape))}]"
    if tensor._node is not None:
        suffixes.append(f"grad_fn={refresh(tensor)._node!r}")
    elif tensor._requires_grad:
        suffixes.append("requires_grad=True")
    return f"{head}{with_suffixes(f'tensor({text}', suffixes, len('tensor('))})"
