"""DLPack capsules: memory of arrays that libraries share, without numpy, which lacks bf16.

The structures are those of dlpack.h 1.0.
"""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np

from graphc.base.dtypes import bfloat16
from graphc.base.errors import ArgumentError, DTypeError
from graphc.base.records import NamedTuple

CPU, CUDA = 1, 2
"""Kinds of devices."""
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""Kinds of numbers by numpy's letter."""
_BFLOAT = 4
_NAME, _NEW_NAME = b"dltensor", b"dltensor_versioned"
_READ_ONLY = 1
"""Flag of versioned tensors."""


class CapsuleMemory(NamedTuple):
    """Elements of an array in the memory of a library."""

    address: int
    """Address of the first element."""
    device: tuple[int, int]
    """Kind and number of the device."""
    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    """Distance of neighbours along each dimension, in bytes; None where the elements are dense and row-major."""
    dtype: np.dtype
    writeable: bool
    owner: Any
    """Object that keeps the memory alive."""


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", _Deleter)]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", _Deleter),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


_api = ctypes.PyDLL(None)
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_IsValid.restype = ctypes.c_int
_api.PyCapsule_IsValid.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
_api.PyCapsule_SetName.restype = ctypes.c_int
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_exported: dict[int, tuple[Any, ...]] = {}
"""Exported capsules, by the number in their context: the structure, the memory that it points to, and the array."""
_numbers = itertools.count(1)


@_Deleter
def _delete(address: int) -> None:
    _exported.pop(int(_Managed.from_address(address).context or 0), None)


@_Deleter
def _delete_versioned(address: int) -> None:
    _exported.pop(int(_Versioned.from_address(address).context or 0), None)


@ctypes.CFUNCTYPE(None, ctypes.c_void_p)
def _forget(capsule: int) -> None:
    """Release the array of a collected capsule that nobody has consumed; a consumer would have changed its name."""
    for name, kind in ((_NAME, _Managed), (_NEW_NAME, _Versioned)):
        if _api.PyCapsule_IsValid(capsule, name):
            address = _api.PyCapsule_GetPointer(capsule, name)
            _exported.pop(int(kind.from_address(address).context or 0), None)


def is_expressible(dtype: np.dtype) -> bool:
    """Return whether DLPack has the element type."""
    return dtype == bfloat16.numpy or dtype.kind in _CODES


def exported(memory: CapsuleMemory, max_version: Any) -> Any:
    """Return a capsule for a consumer that knows versions up to ``max_version``. Raise BufferError for strides or an
    element type that DLPack cannot express, and for read-only memory before version 1."""
    size, strides = memory.dtype.itemsize, memory.strides or ()
    versioned = max_version is not None and max_version[0] >= 1
    if not versioned and not memory.writeable:
        raise BufferError("the array is read-only, which this version of DLPack cannot express")
    if not is_expressible(memory.dtype) or any(s % size for s in strides):
        raise BufferError(f"DLPack cannot describe elements of {memory.dtype} with strides of {list(strides)} bytes")
    number, ndim = next(_numbers), len(memory.shape)
    shape = (ctypes.c_int64 * ndim)(*memory.shape)
    steps = None if memory.strides is None else (ctypes.c_int64 * ndim)(*[s // size for s in strides])
    code = _BFLOAT if memory.dtype == bfloat16.numpy else _CODES[memory.dtype.kind]
    tensor = _Tensor(memory.address or None, *memory.device, ndim, code, 8 * size, 1, shape, steps, 0)
    managed: Any
    if versioned:
        flags = 0 if memory.writeable else _READ_ONLY
        managed, name = _Versioned(1, 0, number, _delete_versioned, flags, tensor), _NEW_NAME
    else:
        managed, name = _Managed(tensor, number, _delete), _NAME
    _exported[number] = (managed, shape, steps, memory.owner)
    return _api.PyCapsule_New(ctypes.addressof(managed), name, ctypes.cast(_forget, ctypes.c_void_p))


class _Imported:
    """Memory of another library, released when this is collected."""

    def __init__(self, address: int, deleter: Any):
        self._address, self._deleter = address, deleter

    def __del__(self) -> None:
        if self._deleter:
            self._deleter(self._address)


def imported(source: Any, **arguments: Any) -> CapsuleMemory:
    """Return the memory of an object with ``__dlpack__``, which gets the arguments. Raise ArgumentError for another
    object, DTypeError for an element type that graphc lacks."""
    if not hasattr(source, "__dlpack__"):
        raise ArgumentError(f"{type(source).__name__} has no __dlpack__")
    try:
        capsule = source.__dlpack__(**arguments, max_version=(1, 0))
    except TypeError:  # an exporter from before DLPack 1.0
        capsule = source.__dlpack__(**arguments)
    if _api.PyCapsule_IsValid(id(capsule), _NEW_NAME):
        address = _api.PyCapsule_GetPointer(id(capsule), _NEW_NAME)
        managed: Any = _Versioned.from_address(address)
        writeable = not managed.flags & _READ_ONLY
        _api.PyCapsule_SetName(capsule, b"used_dltensor_versioned")
    elif _api.PyCapsule_IsValid(id(capsule), _NAME):
        address = _api.PyCapsule_GetPointer(id(capsule), _NAME)
        managed, writeable = _Managed.from_address(address), True
        _api.PyCapsule_SetName(capsule, b"used_dltensor")
    else:
        raise ArgumentError("the capsule was consumed before, or does not come from DLPack")
    return _memory_of(managed.tensor, _Imported(address, managed.deleter), writeable)


def _memory_of(tensor: _Tensor, owner: _Imported, writeable: bool) -> CapsuleMemory:
    dtype = _type_of(tensor)
    strides = tuple([s * dtype.itemsize for s in tensor.strides[: tensor.ndim]]) if tensor.strides else None
    address, device = (tensor.data or 0) + tensor.byte_offset, (tensor.device_type, tensor.device_id)
    return CapsuleMemory(address, device, tuple(tensor.shape[: tensor.ndim]), strides, dtype, bool(writeable), owner)


def _type_of(tensor: _Tensor) -> np.dtype:
    if tensor.code == _BFLOAT and tensor.bits == 16 and tensor.lanes == 1:
        return bfloat16.numpy
    letters = {code: letter for letter, code in _CODES.items()}
    try:
        return np.dtype(f"{letters[tensor.code if tensor.lanes == 1 else -1]}{tensor.bits // 8}")
    except (KeyError, TypeError):
        raise DTypeError(
            f"elements of DLPack type {tensor.code} with {tensor.bits} bits are not supported",
            remedy="convert the tensor to a type of graphc first, such as f32",
        ) from None


class HostArray:
    """Array of numpy in host memory, exported with an element type that numpy does not export."""

    def __init__(self, array: np.ndarray):
        self._array = array

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: bool | None = None
    ) -> Any:
        """Return a capsule that shares the memory, or that of a copy."""
        if stream is not None or (dl_device is not None and tuple(map(int, dl_device)) != (CPU, 0)):
            raise BufferError("the array is in host memory")
        array = self._array.copy() if copy else self._array
        flags = array.flags.writeable
        return exported(
            CapsuleMemory(array.ctypes.data, (CPU, 0), array.shape, array.strides, array.dtype, flags, array),
            max_version,
        )


class _Exposed:
    """Memory in numpy's array interface."""

    def __init__(self, memory: CapsuleMemory):
        self._owner = memory.owner
        bits = np.dtype(f"u{memory.dtype.itemsize}")
        self.__array_interface__ = {
            **{"data": (memory.address, not memory.writeable), "shape": memory.shape, "strides": memory.strides},
            **{"typestr": bits.str, "version": 3},
        }


def host_array(source: Any) -> np.ndarray:
    """Return the array of a bf16 tensor of another library in host memory, over the same memory."""
    memory = imported(source)
    if 0 in memory.shape:
        return np.empty(memory.shape, memory.dtype)
    return np.asarray(_Exposed(memory)).view(memory.dtype)
