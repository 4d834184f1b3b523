"""DLPack capsules of device memory, shared with other libraries."""

from __future__ import annotations

from typing import Any

from graphc.base import dlpack
from graphc.base.errors import ArgumentError
from graphc.runtime.devices.array import DeviceArray, shared
from graphc.runtime.devices.interface import Device

_NO_SYNCHRONISATION = -1


def kind_of(device: Device) -> tuple[int, int]:
    """Return kind and number of a device; memory of the emulated one is host memory."""
    kind, _, number = device.name.partition(":")
    return (dlpack.CUDA, int(number or 0)) if kind == "cuda" else (dlpack.CPU, 0)


def exported(array: DeviceArray, stream: Any, max_version: Any, dl_device: Any, copy: Any) -> Any:
    """Return the capsule of an array. Wait for earlier work on the device unless ``stream`` is its own stream."""
    if dl_device is not None and tuple(map(int, dl_device)) != kind_of(array.device):
        raise BufferError(f"the array is on {array.device.name}: copy it to the host with get()")
    if copy:
        array = array.copy()
    if stream != _NO_SYNCHRONISATION and stream != getattr(array.device, "stream", None):
        array.device.synchronize()
    address, where = array.address if array.size else 0, kind_of(array.device)
    memory = dlpack.CapsuleMemory(address, where, array.shape, array.strides, array.dtype, array.writeable, array)
    return dlpack.exported(memory, max_version)


def imported(other: Any, device: Device) -> DeviceArray:
    """Return an array over the memory of an object with ``__dlpack__``."""
    if not hasattr(other, "__dlpack__"):
        raise ArgumentError(f"{type(other).__name__} has no __dlpack__")
    kind, number = map(int, other.__dlpack_device__())
    if (kind, number) != kind_of(device):
        raise ArgumentError(f"the memory is on a device of kind {kind}, number {number}, not on {device.name}")
    stream = getattr(device, "stream", None)
    memory = dlpack.imported(other, **({} if stream is None else {"stream": stream}))
    return shared(device, memory.address, memory.shape, memory.dtype, memory.strides, memory.owner, memory.writeable)
