"""DLPack capsules: sharing device memory with other libraries."""

from __future__ import annotations

import ctypes
import itertools
from typing import Any

import numpy as np

from graphc.base.dtypes import bfloat16
from graphc.base.errors import ArgumentError, DTypeError
from graphc.runtime.devices.array import DeviceArray, shared
from graphc.runtime.devices.interface import Device

CPU, CUDA = 1, 2
"""Kinds of devices."""
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
"""Kinds of numbers by numpy's letter."""
_BFLOAT = 4
_NAME, _NEW_NAME = b"dltensor", b"dltensor_versioned"
_READ_ONLY = 1
"""Flag of versioned tensors."""
_NO_SYNCHRONISATION = -1


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


def kind_of(device: Device) -> tuple[int, int]:
    """Return kind and number of a device; memory of the emulated one is host memory."""
    kind, _, number = device.name.partition(":")
    return (CUDA, int(number or 0)) if kind == "cuda" else (CPU, 0)


def exported(array: DeviceArray, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """Return the capsule of an array. Wait for earlier work on the device unless ``stream`` is its own stream."""
    if dl_device is not None and tuple(map(int, dl_device)) != kind_of(array.device):
        raise BufferError(f"the array is on {array.device.name}: copy it to the host with get()")
    if copy:
        array = array.copy()
    versioned = max_version is not None and max_version[0] >= 1
    if not versioned and not array.writeable:
        raise BufferError("the array is read-only, which this version of DLPack cannot express")
    if stream != _NO_SYNCHRONISATION and stream != getattr(array.device, "stream", None):
        array.device.synchronize()
    number = next(_numbers)
    shape = (ctypes.c_int64 * array.ndim)(*array.shape)
    strides = (ctypes.c_int64 * array.ndim)(*[s // array.itemsize for s in array.strides])
    if array.dtype.kind not in _CODES or any(s % array.itemsize for s in array.strides):
        raise BufferError(f"DLPack cannot describe {array}")
    kind, where = kind_of(array.device)
    tensor = _Tensor(
        *(array.address if array.size else None, kind, where, array.ndim),
        *(_CODES[array.dtype.kind], 8 * array.itemsize, 1, shape, strides, 0),
    )
    managed: Any
    if versioned:
        flags = 0 if array.writeable else _READ_ONLY
        managed, name = _Versioned(1, 0, number, _delete_versioned, flags, tensor), _NEW_NAME
    else:
        managed, name = _Managed(tensor, number, _delete), _NAME
    _exported[number] = (managed, shape, strides, array)
    return _api.PyCapsule_New(ctypes.addressof(managed), name, ctypes.cast(_forget, ctypes.c_void_p))


class _Imported:
    """Memory of another library, released when this is collected."""

    def __init__(self, address: int, deleter: Any):
        self._address, self._deleter = address, deleter

    def __del__(self) -> None:
        if self._deleter:
            self._deleter(self._address)


def imported(other: Any, device: Device) -> DeviceArray:
    """Return an array over the memory of an object with ``__dlpack__``."""
    if not hasattr(other, "__dlpack__"):
        raise ArgumentError(f"{type(other).__name__} has no __dlpack__")
    kind, number = map(int, other.__dlpack_device__())
    if (kind, number) != kind_of(device):
        raise ArgumentError(f"the memory is on a device of kind {kind}, number {number}, not on {device.name}")
    stream = getattr(device, "stream", None)
    arguments = {} if stream is None else {"stream": stream}
    try:
        capsule = other.__dlpack__(**arguments, max_version=(1, 0))
    except TypeError:  # an exporter from before DLPack 1.0
        capsule = other.__dlpack__(**arguments)
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
    return _array_of(managed.tensor, device, _Imported(address, managed.deleter), writeable)


def _array_of(tensor: _Tensor, device: Device, owner: _Imported, writeable: bool) -> DeviceArray:
    dtype = _type_of(tensor)
    shape = tensor.shape[: tensor.ndim]
    strides = [s * dtype.itemsize for s in tensor.strides[: tensor.ndim]] if tensor.strides else None
    return shared(device, (tensor.data or 0) + tensor.byte_offset, shape, dtype, strides, owner, writeable)


def _type_of(tensor: _Tensor) -> np.dtype:
    if tensor.code == _BFLOAT and tensor.bits == 16 and tensor.lanes == 1:
        return bfloat16.numpy
    letters = {code: letter for letter, code in _CODES.items()}
    if tensor.lanes != 1 or tensor.code not in letters:
        raise DTypeError(f"unknown DLPack element type {tensor.code} with {tensor.bits} bits")
    return np.dtype(f"{letters[tensor.code]}{tensor.bits // 8}")
