"""Arrays in device memory: shapes, strides and views as in numpy, without arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from graphc.base.dtypes import BY_NAME, DType, bfloat16, bfloat16x2
from graphc.base.errors import ArgumentError, DeviceError, DTypeError, IndexRangeError, ShapeError
from graphc.base.records import dataclass
from graphc.runtime.devices.interface import Device, Memory

MOSTLY_READ = 4
"""A strided array is copied to the host as one block, gaps included, up to this multiple of its own bytes."""
Copier = Callable[["DeviceArray", "DeviceArray"], None]
"""Copies from the first array into the second one, of the same shape, element type and device, with any strides."""
_copiers: list[Copier] = []

_DLPACK = "graphc.runtime.devices.dlpack"
"""Module of DLPack capsules. It imports this one, so it is imported lazily."""


def use_copier(copier: Copier) -> None:
    """Let ``copier``, which the compiler provides, make strided arrays dense from now on."""
    _copiers[:] = [copier]


@dataclass(frozen=True, slots=True)
class Flags:
    """Array flags as in numpy."""

    c_contiguous: bool
    f_contiguous: bool
    writeable: bool
    owndata: bool
    aligned: bool = True

    @property
    def contiguous(self) -> bool:
        """Same as ``c_contiguous``."""
        return self.c_contiguous


class DeviceArray:
    """Array in device memory. Views share the memory, which lives as long as one of them."""

    __slots__ = (
        *("__weakref__", "device", "dtype", "is_contiguous", "memory", "nbytes", "offset", "shape", "size", "strides"),
        "writeable",
    )
    __hash__ = object.__hash__
    is_on_device = True
    """Lets tensors tell device arrays from host arrays."""

    def __init__(
        self,
        device: Device,
        memory: Memory,
        shape: Sequence[int],
        dtype: Any,
        strides: Sequence[int] | None = None,
        offset: int = 0,
        writeable: bool = True,
    ):
        """Starts ``offset`` bytes after the start of ``memory``, in C order unless ``strides`` (in bytes) are given.
        bfloat16 is stored as a record of its bits."""
        self.device = device
        self.memory = memory
        self.shape = tuple(map(int, shape))
        self.dtype = numpy_type(dtype)
        self.size = prod(self.shape)
        """Number of elements."""
        self.nbytes = self.size * self.dtype.itemsize
        """Bytes of the elements."""
        self.offset = offset
        self.writeable = writeable
        if strides is None:
            self.strides, self.is_contiguous = dense_strides(self.shape, self.dtype.itemsize), True
            low, high = offset, offset + self.nbytes
        else:
            self.strides = tuple(map(int, strides))
            self.is_contiguous = _is_dense(self.shape, self.strides, self.dtype.itemsize)
            """Whether it is dense and in C order."""
            low, high = self._span()
        if self.size and not 0 <= low <= high <= memory.nbytes:
            raise ArgumentError(
                f"an array of shape {list(self.shape)} takes the bytes {low} to {high} of {memory.nbytes}"
            )

    # ---- attributes

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    @property
    def address(self) -> int:
        """Address of the first element."""
        return self.memory.address + self.offset

    @property
    def flags(self) -> Flags:
        """Memory order, ownership, and whether the array is writeable."""
        reverse = _is_dense(self.shape[::-1], self.strides[::-1], self.dtype.itemsize)
        owns_memory = self.offset == 0 and self.nbytes == self.memory.nbytes
        return Flags(self.is_contiguous, reverse, self.writeable, owns_memory)

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"DeviceArray({self.device.name}, {self.dtype.name}{list(self.shape)})"

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise ArgumentError(f"an array on {self.device.name} is not a host array", remedy="copy it to the host: .get()")

    # ---- views

    @property
    def T(self) -> DeviceArray:
        """View with its axes in reverse order; shares memory."""
        return self.transpose()

    def transpose(self, *axes: Any) -> DeviceArray:
        """Return a view with the axes in another order, by default reversed; shares memory."""
        order = axes[0] if len(axes) == 1 and not isinstance(axes[0], int | np.integer) else axes
        return self._as(np.transpose, order or None)

    def reshape(self, *shape: Any) -> DeviceArray:
        """Return a view of another shape, in which one size may be -1; shares memory. Raises ShapeError if no strides
        fit; ``contiguous().reshape(...)`` then copies."""
        new_shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int | np.integer) else shape
        sizes = self._resolved_shape(tuple(int(n) for n in new_shape))
        strides = reshaped_strides(self.shape, self.strides, sizes, self.itemsize)
        if strides is None:
            raise ShapeError(
                f"an array of shape {list(self.shape)} with strides {list(self.strides)} has no view of shape"
                f" {list(sizes)}",
                remedy="call contiguous() first",
            )
        return DeviceArray(self.device, self.memory, sizes, self.dtype, strides, self.offset, self.writeable)

    def _resolved_shape(self, sizes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes with -1 replaced; raises ShapeError for another number of elements."""
        if sizes.count(-1) == 1:
            product = prod(n for n in sizes if n != -1)
            if product:
                sizes = tuple([self.size // product if n == -1 else n for n in sizes])
        if min(sizes, default=0) < 0 or prod(sizes) != self.size:
            raise ShapeError(f"{self.size} elements of shape {list(self.shape)} do not fit the shape {list(sizes)}")
        return sizes

    def expand_dims(self, axis: int | Sequence[int]) -> DeviceArray:
        """Return a view with axes of size 1 inserted; shares memory."""
        return self._as(np.expand_dims, axis if isinstance(axis, int) else tuple(axis))

    def squeeze(self, axis: int | Sequence[int] | None = None) -> DeviceArray:
        """Return a view without these axes of size 1, by default without all of them; shares memory."""
        return self._as(np.squeeze, axis if axis is None or isinstance(axis, int) else tuple(axis))

    def broadcast_to(self, shape: Sequence[int]) -> DeviceArray:
        """Return a read-only view broadcast to a shape; shares memory."""
        return self._as(np.broadcast_to, tuple(shape), writeable=False)

    def __getitem__(self, key: Any) -> DeviceArray:
        """Return a view by integers, slices, None and Ellipsis; other indices need a computation and raise
        ArgumentError."""
        parts = key if isinstance(key, tuple) else (key,)
        for index in parts:
            plain = index is None or index is Ellipsis or isinstance(index, slice | int | np.integer)
            if not plain or isinstance(index, bool):
                raise ArgumentError(f"an array on {self.device.name} has no view at {index!r}")
        return self._as(lambda dummy: dummy[(*parts, Ellipsis)] if Ellipsis not in parts else dummy[parts])

    def view(self, dtype: Any) -> DeviceArray:
        """Return a view of the same bytes as elements of another type of the same size."""
        new_dtype = numpy_type(dtype)
        if new_dtype.itemsize != self.itemsize:
            raise DTypeError(f"elements of {self.dtype.name} have another size than {new_dtype.name}")
        return DeviceArray(self.device, self.memory, self.shape, new_dtype, self.strides, self.offset, self.writeable)

    def _as(self, change: Callable[..., np.ndarray], *arguments: Any, writeable: bool = True) -> DeviceArray:
        """Return the view that numpy makes of a dummy array with this shape and these strides. The dummy's elements are
        never read."""
        base = np.empty(1, self.dtype)
        dummy = as_strided(base, self.shape, self.strides)
        try:
            result = change(dummy, *arguments)
        except IndexError as error:
            raise IndexRangeError(str(error)) from None
        except ValueError as error:
            raise ShapeError(str(error)) from None
        moved = result.__array_interface__["data"][0] - dummy.__array_interface__["data"][0] if result.size else 0
        writeable = writeable and self.writeable
        return DeviceArray(
            self.device, self.memory, result.shape, self.dtype, result.strides, self.offset + moved, writeable
        )

    # ---- elements

    def get(self, out: np.ndarray | None = None) -> np.ndarray:
        """Return a copy on the host in C order, or fill ``out`` and return it."""
        array = self._on_host()
        if out is None:
            return array
        if out.shape != self.shape or out.dtype != self.dtype:
            raise ShapeError(f"{self} does not fit an array {out.dtype.name}{list(out.shape)}")
        out[...] = array
        return out

    def _on_host(self) -> np.ndarray:
        if self.is_contiguous:
            array = np.empty(self.shape, self.dtype)
            self.device.copy_out(self.address, array)
            return array
        low, high = self._span()
        if high - low > MOSTLY_READ * self.nbytes and _copiers:
            return self.contiguous()._on_host()
        block = np.empty(high - low, np.uint8)
        self.device.copy_out(self.memory.address + low, block)
        return np.ndarray(self.shape, self.dtype, block, self.offset - low, self.strides).copy(order="C")

    def set(self, array: Any) -> None:
        """Write the elements of a host array of this shape, or one broadcast to it."""
        if not self.writeable:
            raise ArgumentError("the array is not to be written to")
        source = np.asarray(array)
        if source.dtype.newbyteorder("=") != self.dtype:
            raise DTypeError(f"elements of type {source.dtype.name} are not {self.dtype.name}")
        try:
            source = np.broadcast_to(source, self.shape)
        except ValueError:
            raise ShapeError(f"an array of shape {list(source.shape)} does not fit {list(self.shape)}") from None
        if not self.size:
            return
        if self.is_contiguous:
            self.device.copy_in(self.address, np.ascontiguousarray(source, self.dtype))
            return
        # Bytes between the elements must not change: read the block, write the elements, copy it back.
        low, high = self._span()
        block = np.empty(high - low, np.uint8)
        self.device.copy_out(self.memory.address + low, block)
        np.ndarray(self.shape, self.dtype, block, self.offset - low, self.strides)[...] = source
        self.device.copy_in(self.memory.address + low, block)

    def assign(self, source: DeviceArray) -> None:
        """Write the elements of another array of the same shape and element type on this device."""
        if not self.writeable:
            raise ArgumentError("the array is not to be written to")
        if source.shape != self.shape or source.dtype != self.dtype or source.device is not self.device:
            raise ShapeError(f"{source} does not fit {self}")
        if source.address == self.address and source.strides == self.strides:
            return
        if self.is_contiguous and source.is_contiguous and _apart(self, source):
            if self.nbytes:
                self.device.copy(self.address, source.address, self.nbytes)
        elif _copiers:
            _copiers[0](source, self)
        else:
            self.set(source._on_host())

    def __copy__(self) -> DeviceArray:
        return self.copy()

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return self.copy()

    def __reduce_ex__(self, protocol: Any) -> Any:
        raise ArgumentError(f"an array on {self.device.name} cannot be pickled", remedy="copy it to the host: .get()")

    def copy(self) -> DeviceArray:
        """Return a new dense array with the same elements, on the same device."""
        if not self.is_contiguous:
            return self.contiguous()
        duplicate = empty(self.device, self.shape, self.dtype)
        if self.nbytes:
            self.device.copy(duplicate.address, self.address, self.nbytes)
        return duplicate

    def contiguous(self) -> DeviceArray:
        """Return the array itself if it is dense and in C order, else a dense copy.

        NOTE: without the compiler's copier (``use_copier``), a strided array is copied by way of the host.
        """
        if self.is_contiguous:
            return self
        if not _copiers:
            return from_host(self.device, self._on_host())
        copy = empty(self.device, self.shape, self.dtype)
        copy.assign(self)
        return copy

    def _span(self) -> tuple[int, int]:
        """Return the offsets of the first byte and of the byte after the last one, from the start of the memory."""
        if self.is_contiguous or not self.size:
            return self.offset, self.offset + self.nbytes
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        low = self.offset + sum(s for s in steps if s < 0)
        return low, self.offset + sum(s for s in steps if s > 0) + self.itemsize

    def byte_bounds(self) -> tuple[int, int]:
        """Return the addresses of the first byte and of the byte after the last one."""
        low, high = self._span()
        return self.memory.address + low, self.memory.address + high

    # ---- other libraries

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """CUDA array interface, version 3. Addresses of the emulated device are host addresses; other libraries do not
        mistake them for GPU addresses."""
        stream = getattr(self.device, "stream", 0)
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address if self.size else 0, not self.writeable),
            "strides": None if self.is_contiguous else self.strides,
            "stream": stream or None,
            "version": 3,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return kind and number of the device."""
        return import_module(_DLPACK).kind_of(self.device)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        """Return a capsule of the DLPack protocol that shares the memory."""
        return import_module(_DLPACK).exported(self, stream, max_version, dl_device, copy)


# ---- creation


def numpy_type(dtype: Any) -> np.dtype:
    """Return numpy's element type for a name or type; bfloat16 is a record of its bits."""
    if isinstance(dtype, DType):
        return dtype.numpy
    if isinstance(dtype, str) and dtype in BY_NAME:
        return BY_NAME[dtype].numpy
    array_type = np.dtype(dtype)
    if array_type.hasobject or (
        array_type.kind not in "biufc" and array_type not in (bfloat16.numpy, bfloat16x2.numpy)
    ):
        raise DTypeError(f"arrays on devices do not hold {array_type}")
    return array_type.newbyteorder("=")


def empty(device: Device, shape: Sequence[int], dtype: Any) -> DeviceArray:
    """Return a dense array with unknown content."""
    kind, sizes = numpy_type(dtype), tuple(map(int, shape))
    return DeviceArray(device, device.allocate(prod(sizes) * kind.itemsize), sizes, kind)


def zeros(device: Device, shape: Sequence[int], dtype: Any) -> DeviceArray:
    """Return a dense array of zeros."""
    array = empty(device, shape, dtype)
    if array.nbytes:
        device.fill(array.address, 0, array.nbytes)
    return array


def from_host(device: Device, array: Any) -> DeviceArray:
    """Return a dense array with the elements of a host array."""
    source = np.asarray(array)
    device_array = empty(device, source.shape, source.dtype)
    device_array.set(source)
    return device_array


class SharedMemory:
    """Memory of another library. That library does not know of work here, so the memory is released after all of it."""

    __slots__ = ("__weakref__", "_device", "address", "nbytes", "owner")

    def __init__(self, device: Device, address: int, nbytes: int, owner: Any):
        self._device = device
        self.address = address
        self.nbytes = nbytes
        self.owner = owner
        """Object that keeps the memory alive."""

    def __del__(self) -> None:
        if hasattr(self._device, "stream"):
            with suppress(DeviceError):  # the next call of the device reports it
                self._device.synchronize()


def from_cuda_array_interface(other: Any, device: Device) -> DeviceArray:
    """Return an array on ``device`` that shares the memory of an object with ``__cuda_array_interface__``.

    The other library's earlier work on the device is done when this returns. Raises ArgumentError for masked arrays and
    for objects without that interface.
    """
    interface = getattr(other, "__cuda_array_interface__", None)
    if interface is None:
        raise ArgumentError(f"{type(other).__name__} has no __cuda_array_interface__")
    if interface.get("mask") is not None:
        raise ArgumentError("masked arrays cannot be shared")
    stream = interface.get("stream")
    if stream is not None and stream != getattr(device, "stream", None):
        device.wait_for(stream)
    address, read_only = interface["data"]
    element_type, strides = np.dtype(interface["typestr"]), interface.get("strides")
    return shared(device, int(address or 0), interface["shape"], element_type, strides, other, not read_only)


def from_dlpack(other: Any, device: Device) -> DeviceArray:
    """Return an array on ``device`` that shares the memory of an object with ``__dlpack__``; raises ArgumentError for
    memory of another device."""
    return import_module(_DLPACK).imported(other, device)


def shared(
    device: Device,
    address: int,
    shape: Sequence[int],
    dtype: np.dtype,
    strides: Sequence[int] | None,
    owner: Any,
    writeable: bool,
) -> DeviceArray:
    """Return an array over memory of another library, with the first element at ``address``; ``owner`` is kept
    alive."""
    if not dtype.isnative:
        raise DTypeError(f"elements of type {dtype} are of the other byte order")
    sizes = tuple(map(int, shape))
    steps = dense_strides(sizes, dtype.itemsize) if strides is None else tuple(map(int, strides))
    low = sum((n - 1) * s for n, s in zip(sizes, steps, strict=True) if s < 0) if prod(sizes) else 0
    high = sum((n - 1) * s for n, s in zip(sizes, steps, strict=True) if s > 0) + dtype.itemsize if prod(sizes) else 0
    if prod(sizes) and not address:
        raise DeviceError("the memory of the array has no address")
    memory = SharedMemory(device, address + low, high - low, owner)
    return DeviceArray(device, memory, sizes, dtype, steps, -low, writeable)


def _apart(a: DeviceArray, b: DeviceArray) -> bool:
    (start, stop), (first, end) = a.byte_bounds(), b.byte_bounds()
    return stop <= first or end <= start


# ---- strides


def dense_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the bytes between neighbours along each axis of a dense array in C order."""
    strides: list[int] = []
    step = itemsize
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _is_dense(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    step = itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent == 0:
            return True
        if extent != 1 and stride != step:
            return 0 in shape
        step *= extent
    return True


def collapsed(shape: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Return (size, stride) of the fewest axes that reach the same elements in the same order."""
    axes: list[tuple[int, int]] = []
    for extent, stride in zip(shape, strides, strict=True):
        if extent == 1:
            continue
        if axes and axes[-1][1] == extent * stride:
            axes[-1] = (axes[-1][0] * extent, stride)
        else:
            axes.append((extent, stride))
    return axes


def reshaped_strides(
    shape: Sequence[int], strides: Sequence[int], new_shape: Sequence[int], itemsize: int
) -> tuple[int, ...] | None:
    """Return the strides with which an array of the shape ``new_shape`` has the same elements; None if none fit.

    Contiguous axes are merged, then split into the new ones from the last on.
    """
    if prod(shape) == 0:
        return dense_strides(new_shape, itemsize)
    axes = collapsed(shape, strides)
    new_strides: list[int] = []
    extent, stride = axes.pop() if axes else (1, itemsize)
    for size in reversed(new_shape):
        if size == 1:
            new_strides.append(stride)
            continue
        if extent == 1 and axes:
            extent, stride = axes.pop()
        if extent % size:
            return None
        new_strides.append(stride)
        extent, stride = extent // size, stride * size
    return tuple(reversed(new_strides))
