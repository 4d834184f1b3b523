"""Functions that create tensors: from data, of one value, ranges, and random ones."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base import mutation_epoch
from graphc.base.device import CPU, OF_PROCESS, default_device, device_of
from graphc.base.device import device as device_type
from graphc.base.dlpack import host_array
from graphc.base.dtypes import (
    DType,
    bfloat16,
    dtype_of,
    element,
    elements,
    fitted,
    float32,
    float64,
    int64,
    python_scalar_type,
)
from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.dims import common_shape, has_sizes, new_shape
from graphc.base.sizes.size import is_size
from graphc.ops import dispatch
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.math import pow as power
from graphc.ops.selection.index import iota
from graphc.ops.size_numbers import depends_on_sizes
from graphc.tensors.methods.conversion import type_named
from graphc.tensors.open_numbers import counted, filled_with, is_given, plain_number, spaced_between, tensor_of
from graphc.tensors.out import with_hints
from graphc.tensors.placement import is_elsewhere, is_on_device, on_host, placement
from graphc.tensors.random import sampling
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import BY_NUMPY, converted, expose, front, need_tensor, too_large

_default: list[DType] = [float32]
_SCALARS = (bool, int, float, complex)
_PLAIN = (*_SCALARS, list, tuple, np.ndarray, np.generic)


def set_default_dtype(dtype: Any) -> None:
    """Set the floating-point type of new tensors without a ``dtype`` (f32 at first)."""
    new_default = dtype_of(dtype)
    if not new_default.is_floating_point:
        raise DTypeError(f"the default element type must be floating point, got {new_default.name}")
    if new_default is not _default[0]:
        mutation_epoch.note()
    _default[0] = new_default


def get_default_dtype() -> DType:
    """Return the floating-point type of new tensors without a ``dtype``."""
    return _default[0]


def set_default_device(device: Any) -> None:
    """Set the device of new tensors without ``device=`` (None: the CPU, as at first). ``with device("cuda"):`` sets it
    for a block."""
    OF_PROCESS[0] = CPU if device is None else device_type(device)
    mutation_epoch.note()


def get_default_device() -> device_type:
    """Return the device of new tensors without ``device=``."""
    return default_device()


def set_default_tensor_type(t: Any) -> None:
    """Set the default element type by a tensor type, such as ``graphc.DoubleTensor``, or its name."""
    set_default_dtype(type_named(t))


def _finish(array: np.ndarray, requires_grad: bool = False, device: Any = None) -> Tensor:
    return _placed(front().constant(array), requires_grad, device)


def _placed(tensor: Tensor, requires_grad: bool, device: Any) -> Tensor:
    target = default_device() if device is None else device_of(device)
    if is_elsewhere(tensor._data, target) and (device is not None or target is not CPU):
        tensor = front().moved(tensor, target)
    return tensor.requires_grad_() if requires_grad else tensor


def _device_like(input: Tensor, device: Any) -> Any:
    """Return the requested device, or the device of a tensor."""
    return input.device if device is None else device


def _dtype(dtype: Any) -> np.dtype:
    return (_default[0] if dtype is None else dtype_of(dtype)).numpy


def array_of(data: Any, dtype: Any = None) -> np.ndarray:
    """Return a new array of numbers, nested sequences, arrays or tensors. Python floats become the default type."""
    if isinstance(data, Tensor):
        data = on_host(data._data) if is_on_device(data._data) else data._values(force=True)
    elif isinstance(data, (list, tuple)) and any(issubclass(t, Tensor) or _exports(t) for t in set(map(type, data))):
        data = [array_of(item) for item in data]
    elif _exports(type(data)):
        data = on_host(_memory_of(data))
    if dtype is not None:
        requested = dtype_of(dtype)
        return converted(fitted(data, requested) if isinstance(data, _SCALARS) else data, requested)
    if isinstance(data, (np.ndarray, np.generic)):
        return np.array(data)
    if isinstance(data, (bool, int, float, complex)):
        scalar_type = python_scalar_type(data)
        return (
            elements(data, _floating(scalar_type))
            if scalar_type.is_differentiable
            else np.array(data, scalar_type.numpy)
        )
    try:
        array = np.array(data)
    except ValueError as error:
        raise ShapeError(f"the data is not a rectangular array: {error}") from None
    if array.dtype.kind in "fc" and not _has_numpy(data):
        array = elements(array, _floating(dtype_of(array.dtype)))
    return elements(array, _default[0]) if not array.size and not _has_numpy(data) else array


def _floating(dtype: DType) -> DType:
    """Return the default type for Python floats and complex numbers."""
    return _default[0].complex if dtype.is_complex else _default[0]


def _has_numpy(data: Any) -> bool:
    """Return whether nested sequences hold numpy arrays or scalars, whose element type applies."""
    while isinstance(data, (list, tuple)):
        if not data:
            return False
        data = data[0]
    return isinstance(data, (np.ndarray, np.generic))


def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor with a copy of the data.

    Args:
        data: a number, nested sequences of numbers or tensors, a numpy array or a tensor.
        dtype: element type (default: of the data; f32, or ``set_default_dtype``, for Python floats).
        device: where to put it (default: host memory, or ``set_default_device``).
        requires_grad: record operations on it for gradients.

    Returns:
        A new leaf tensor with the shape of the data.

    Raises:
        ShapeError: nested sequences of different lengths.

    Example:
        >>> import graphc as gc
        >>> gc.tensor([[1, 2], [3, 4]])
        tensor([[1, 2],
                [3, 4]])
        >>> gc.tensor([0.5, 1], dtype=gc.float64)
        tensor([0.5000, 1.0000], dtype=graphc.float64)
    """
    if not requires_grad and (symbolic := tensor_of(data, dtype, _default[0])) is not None:
        return symbolic
    array = array_of(data, dtype)
    if array.dtype not in BY_NUMPY:
        raise DTypeError(f"data of type {array.dtype} is not supported", remedy="pass dtype=, or array.astype(...)")
    return _finish(array, requires_grad, device)


def as_tensor(data: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Return a tensor of the data that shares memory with it if possible."""
    if isinstance(data, Tensor):
        return _placed(data if dtype is None else data.to_dtype(dtype), False, _device_like(data, device))
    if isinstance(data, np.ndarray) and (dtype is None or dtype_of(dtype).numpy == data.dtype):
        return _placed(from_numpy(data), False, device)
    if not isinstance(data, _PLAIN) and (_exports(type(data)) or _is_elsewhere(data)):
        return as_tensor(from_dlpack(data), dtype, device)
    return tensor(data, dtype=dtype, device=device)


def from_numpy(array: np.ndarray) -> Tensor:
    """Return a tensor that shares memory with a numpy array.

    Example:
        >>> import graphc as gc
        >>> import numpy as np
        >>> array = np.zeros(2)
        >>> tensor = gc.from_numpy(array)
        >>> array[0] = 1
        >>> tensor
        tensor([1., 0.], dtype=graphc.float64)
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentError(
            f"from_numpy takes a numpy array, got {type(array).__name__}", remedy="call graphc.tensor(...)"
        )
    dtype_of(array.dtype)
    result = front().constant(array.view(np.ndarray))
    expose(result)
    return result


def from_dlpack(source: Any) -> Tensor:
    """Return a tensor that shares the memory of an array or tensor of another library, of any object with
    ``__dlpack__`` or ``__cuda_array_interface__``."""
    array = _memory_of(source)
    if isinstance(array, np.ndarray):
        return from_numpy(array)
    imported = Tensor._wrap(array)
    expose(imported)
    return imported


def _memory_of(source: Any) -> Any:
    """Return the array over an object's memory: of numpy, or on a device."""
    if (array := placement().imported(source) if _is_elsewhere(source) else None) is not None:
        return array
    try:
        return np.from_dlpack(source)
    except (BufferError, RuntimeError) as error:
        remedy = "pass an array of a supported type; detach a tensor with gradients"
        failure = DTypeError(f"from_dlpack: {error}", remedy=remedy)
    try:
        return host_array(source)  # numpy lacks bf16
    except (BufferError, RuntimeError):
        raise failure from None


def _exports(kind: type) -> bool:
    """Return whether objects of a class are tensors of another library."""
    return hasattr(kind, "__dlpack__") and not issubclass(kind, (Tensor, np.ndarray))


def _is_elsewhere(source: Any) -> bool:
    """Return whether an object of another library has its memory outside of the host's."""
    where = getattr(source, "__dlpack_device__", None)
    return hasattr(source, "__cuda_array_interface__") if where is None else where()[0] != 1


def _allocated(make: Any, *args: Any) -> np.ndarray:
    """Return the array from ``make``; raise MemoryLimitError if it does not fit into memory."""
    try:
        return make(*args)
    except MemoryError as error:
        raise too_large("a new tensor", error) from None


def _sequence(size: Any) -> Any:
    if not isinstance(size, (tuple, list)):
        raise ArgumentError(f"size must be a sequence of ints, got {size!r}", remedy="pass a tuple such as (2, 3)")
    return size


def _shape(sizes: Sequence[Any], size: Any) -> tuple[int, ...]:
    """Return the shape from single ints, a sequence, or the keyword ``size``."""
    if size is not None and sizes:
        raise ArgumentError("the shape is passed twice", remedy="pass it once, as in graphc.zeros(2, 3)")
    return new_shape(sizes if size is None else (size,))


def zeros(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor of zeros of a shape, from ints or one sequence.

    Example:
        >>> import graphc as gc
        >>> gc.zeros(2, 3, dtype=gc.int64)
        tensor([[0, 0, 0],
                [0, 0, 0]])
    """
    return _uniform(np.zeros, 0.0, _shape(sizes, size), dtype, requires_grad, device)


def ones(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor of ones of a shape, from ints or one sequence."""
    return _uniform(_ones, 1.0, _shape(sizes, size), dtype, requires_grad, device)


def empty(*sizes: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor of a shape with arbitrary elements."""
    return _uniform(np.empty, 0.0, _shape(sizes, size), dtype, requires_grad, device)


def _uniform(make: Any, value: float, shape: tuple[int, ...], dtype: Any, requires_grad: bool, device: Any) -> Tensor:
    """Create a tensor from ``make``, all of whose elements are ``value``; with symbolic sizes, by an op."""
    if has_sizes(shape):
        kind = _default[0] if dtype is None else dtype_of(dtype)
        return _placed(filled_with(value, shape, kind, kind), requires_grad, device)
    return _finish(_allocated(make, shape, _dtype(dtype)), requires_grad, device)


def _ones(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    return _full(shape, element(1, bfloat16) if dtype == bfloat16.numpy else 1, dtype)


def _full(shape: tuple[int, ...], value: Any, dtype: np.dtype) -> np.ndarray:
    """Return ``numpy.full``, in half the time."""
    array = np.empty(shape, dtype)
    array[...] = value
    return array


def full(
    size: Sequence[int], fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Create a tensor filled with one value, whose type it has unless ``dtype`` is set."""
    return _filled(new_shape((_sequence(size),)), fill_value, dtype, requires_grad, device)


def _filled(shape: tuple[int, ...], fill_value: Any, dtype: Any, requires_grad: bool, device: Any) -> Tensor:
    is_number = type(fill_value) in _SCALARS
    if (is_given(fill_value) and not requires_grad) or (is_number and has_sizes(shape)):
        return _placed(filled_with(fill_value, shape, dtype, _default[0]), requires_grad, device)
    if not is_number and np.ndim(fill_value._data if isinstance(fill_value, Tensor) else fill_value):
        raise ArgumentError("full takes one number as fill_value", remedy="pass a number, or call tensor.expand(...)")
    value = array_of(fill_value, dtype)
    if value.dtype not in BY_NUMPY:
        raise DTypeError(f"full: {fill_value!r} is not a number", remedy="pass an int, a float or a bool")
    return _finish(_allocated(_full, shape, value, value.dtype), requires_grad, device)


def _like(x: Tensor, dtype: Any) -> DType:
    need_tensor("a function that creates a tensor like another", x)
    return x.dtype if dtype is None else dtype_of(dtype)


def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create zeros with the shape and type of a tensor."""
    kind = _like(input, dtype)
    return _uniform(np.zeros, 0.0, input.shape, kind, requires_grad, _device_like(input, device))


def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create ones with the shape and type of a tensor."""
    kind = _like(input, dtype)
    return _uniform(_ones, 1.0, input.shape, kind, requires_grad, _device_like(input, device))


def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a tensor with the shape and type of another one and arbitrary elements."""
    kind = _like(input, dtype)
    return _uniform(np.empty, 0.0, input.shape, kind, requires_grad, _device_like(input, device))


def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Create a tensor filled with one value, with the shape and type of another one."""
    kind = _like(input, dtype)
    return _filled(input.shape, fill_value, kind, requires_grad, _device_like(input, device))


_MOST_AT_ONCE = 1 << 20
"""Number of elements that surely fits into memory."""


def arange(
    *bounds: Any,
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create the numbers before ``end``: ``arange(end)``, ``arange(start, end)`` or ``arange(start, end, step)``.

    Example:
        >>> import graphc as gc
        >>> gc.arange(3), gc.arange(1.0, 2.0, 0.25)
        (tensor([0, 1, 2]), tensor([1.0000, 1.2500, 1.5000, 1.7500]))
    """
    is_count = len(bounds) == 1 and type(bounds[0]) is int and 0 <= bounds[0] < _MOST_AT_ONCE
    if is_count and dispatch.active() is None and (start, end, step, dtype) == (0, None, 1, None):
        return _finish(np.arange(bounds[0]), requires_grad, device)
    if end is not None:
        bounds = (bounds[0] if bounds else start, end, step)
    elif step != 1 and len(bounds) < 3:
        bounds = (*((0,) if len(bounds) == 1 else ()), *bounds, step)
    numbers = [plain_number("arange", b) for b in bounds]
    if not 1 <= len(numbers) <= 3:
        raise ArgumentError(f"arange takes 1 to 3 numbers, got {len(numbers)}")
    low, high = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) == 3 else 1
    if dtype is None:
        dtype = int64 if all(isinstance(n, (int, np.integer)) for n in numbers) else _default[0]
    kind = _counting("arange", dtype)
    if not all([depends_on_sizes(n) or math.isfinite(n) for n in (low, high, step)]):
        raise AttributeValueError(
            f"arange: {low} to {high} in steps of {step} does not end", remedy="pass finite numbers"
        )
    # As in PyTorch: i64 ranges count in integers; other ranges count first and truncate afterwards.
    low, high, step = map(math.trunc, (low, high, step)) if kind is int64 else (low, high, step)
    if step == 0 or (high - low if step > 0 else low - high) < 0:
        raise AttributeValueError(
            f"arange: steps of {step} do not lead from {low} to {high}", remedy="choose a step towards the end"
        )
    exact = kind is int64 or (is_size(high - low) and type(step) is int)
    (count,) = new_shape((-((low - high) // step) if exact else math.ceil((high - low) / step),))
    if any(map(depends_on_sizes, (count, low, step))):
        return _placed(counted(count, low, step, kind), requires_grad, device)
    first, each = (low, step) if kind.is_floating_point else (fitted(low, int64), int(step))
    values = _allocated(lambda: elements(first + each * np.arange(count), kind))
    return _finish(values, requires_grad, device)


def _counting(name: str, dtype: Any) -> DType:
    kind = _default[0] if dtype is None else dtype_of(dtype)
    if kind.kind == "b":
        raise DTypeError(f"{name}: cannot count in bool", remedy="use an integer type, then compare")
    return kind


def linspace(
    start: Any, end: Any, steps: int, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Create ``steps`` equally spaced numbers from ``start`` to ``end``, both included."""
    kind = _counting("linspace", dtype)
    values = spaced_between("linspace", start, end, steps, kind)
    if isinstance(values, Tensor):
        return _placed(values, requires_grad, device)
    return _finish(elements(values, kind), requires_grad, device)


def logspace(
    start: Any,
    end: Any,
    steps: int,
    base: float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Create powers of ``base`` with equally spaced exponents."""
    kind = _counting("logspace", dtype)
    exponents = spaced_between("logspace", start, end, steps, kind, float64)
    if isinstance(exponents, Tensor):
        powers = power(front().scalar(float(base), float64), exponents)
        return _placed(front().own(ew.cast(powers, dtype=kind)), requires_grad, device)
    with np.errstate(all="ignore"):
        return _finish(elements(np.power(float(base), exponents.astype(np.float64)), kind), requires_grad, device)


def eye(n: int, m: int | None = None, *, dtype: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:
    """Create a matrix with ones on the diagonal and zeros elsewhere."""
    extents = new_shape((n, n if m is None else m))
    if has_sizes(extents):
        kind = _default[0] if dtype is None else dtype_of(dtype)
        same = ew.eq(iota(shape=extents, axis=0), iota(shape=extents, axis=1))
        return _placed(front().own(ew.cast(same, dtype=kind)), requires_grad, device)
    return _finish(_allocated(np.eye, *extents, 0, _dtype(dtype)), requires_grad, device)


# ---- random numbers


def _float(dtype: Any) -> DType:
    return _default[0] if dtype is None else dtype_of(dtype)


def rand(
    *sizes: Any,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw uniform numbers in [0, 1)."""
    return _placed(sampling.uniform(_shape(sizes, size), _float(dtype), generator), requires_grad, device)


def randn(
    *sizes: Any,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw normally distributed numbers with mean 0 and standard deviation 1."""
    return _placed(sampling.normal(_shape(sizes, size), _float(dtype), generator), requires_grad, device)


def rand_like(
    input: Tensor, *, dtype: Any = None, generator: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Draw uniform numbers with the shape and type of a tensor."""
    options = {"generator": generator, "device": _device_like(input, device), "requires_grad": requires_grad}
    return rand(input.shape, dtype=_like(input, dtype), **options)


def randn_like(
    input: Tensor, *, dtype: Any = None, generator: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Draw normally distributed numbers with the shape and type of a tensor."""
    options = {"generator": generator, "device": _device_like(input, device), "requires_grad": requires_grad}
    return randn(input.shape, dtype=_like(input, dtype), **options)


def randint(
    *arguments: Any,
    low: Any = 0,
    high: Any = None,
    size: Any = None,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw integers from ``low`` (0) to ``high - 1``: ``randint(high, size)`` or ``randint(low, high, size)``."""
    remaining = list(arguments)
    size = remaining.pop() if size is None and remaining else size
    high = remaining.pop() if high is None and remaining else high
    low = remaining.pop() if remaining else low
    if remaining or size is None or high is None:
        raise ArgumentError("randint takes (high, size) or (low, high, size)")
    result = sampling.integers(low, high, new_shape((size,)), generator)
    return _placed(result if dtype is None else result.to_dtype(dtype), requires_grad, device)


def randint_like(input: Tensor, *arguments: Any, dtype: Any = None, **options: Any) -> Tensor:
    """Draw integers in the shape of a tensor: ``randint_like(input, high)`` or ``randint_like(input, low, high)``."""
    return randint(*arguments, size=tuple(input.shape), dtype=_like(input, dtype), **options)


def randperm(
    n: int, *, generator: Any = None, dtype: Any = int64, device: Any = None, requires_grad: bool = False
) -> Tensor:
    """Return the numbers 0 to n - 1 in random order."""
    permutation = sampling.uniform(new_shape((n,)), float64, generator).argsort().to_dtype(dtype)
    return _placed(permutation, requires_grad, device)


def bernoulli(input: Tensor, *, generator: Any = None) -> Tensor:
    """Draw 1 with the probability in each element of ``input``, else 0.

    Raises AttributeValueError for values outside of 0..1; compiled code does not check them.
    """
    data = input._data
    if not input.dtype.is_floating_point:
        raise DTypeError(f"bernoulli takes probabilities, got {input.dtype.name}", remedy="call input.float()")
    if isinstance(data, np.ndarray) and not np.all((data >= 0) & (data <= 1)):
        raise AttributeValueError("bernoulli: a probability is outside of 0..1", remedy="call input.clamp(0, 1)")
    return sampling.bernoulli(input, input.shape, generator).to_dtype(input.dtype)


def poisson(input: Tensor, generator: Any = None) -> Tensor:
    """Draw Poisson-distributed counts with the rates in ``input``; not possible in compiled code."""
    wide = input.to_dtype(float32) if input.dtype.kind == "h" else input
    rates = front().values(wide, "poisson(), whose number of draws depends on the rates,")
    if not input.dtype.is_floating_point or not np.all(rates >= 0):
        raise ArgumentError("poisson takes floating-point rates of 0 or more")
    seed = front().values(sampling.integers(0, 1 << 31, (4,), generator), "poisson()")
    counts = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed.tolist()))).poisson(rates)
    return front().constant(np.asarray(counts, rates.dtype)).to_dtype(input.dtype)


def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Any = None,
    *,
    generator: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: bool = False,
) -> Tensor:
    """Draw normally distributed numbers; mean and deviation are numbers (with ``size``) or tensors."""
    shapes = [v.shape for v in (mean, std) if isinstance(v, Tensor)]
    if size is None and not shapes:
        raise ArgumentError("normal needs a size when mean and std are numbers")
    deviations = std._data if isinstance(std, Tensor) else np.asarray(std)
    if isinstance(deviations, np.ndarray) and not np.all(deviations >= 0):
        raise AttributeValueError(f"normal: std is {std}", remedy="pass a std of 0 or more")
    extents = new_shape((size,)) if size is not None else common_shape(*shapes)
    draws = sampling.normal(extents, _default[0] if dtype is None else dtype_of(dtype), generator) * std + mean
    return _placed(draws, requires_grad, device)


__all__ = ["arange", "as_tensor", "bernoulli", "empty", "empty_like", "eye", "from_dlpack", "from_numpy", "full"]
__all__ += ["full_like", "get_default_device", "get_default_dtype", "linspace", "logspace", "normal", "ones"]
__all__ += ["ones_like", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm"]
__all__ += ["set_default_device", "set_default_dtype", "set_default_tensor_type", "tensor", "zeros", "zeros_like"]

globals().update({_name: with_hints(globals()[_name]) for _name in __all__ if "default" not in _name})
