"""Copies between strided arrays of a device: arguments of their kernel, and the module with it."""

from __future__ import annotations

import weakref
from typing import Any

from graphc.base.locks import Lock
from graphc.codegen.cuda import nvrtc
from graphc.codegen.cuda.strided_copy import RANK, THREADS, TYPES, strided_copies, symbol
from graphc.runtime.devices.array import DeviceArray
from graphc.runtime.devices.interface import Device

_modules: weakref.WeakKeyDictionary[Any, Any] = weakref.WeakKeyDictionary()
_lock = Lock()


def copy_strided(source: DeviceArray, target: DeviceArray) -> None:
    """Copy the elements of an array to another one of the same shape, element type and device, with any strides."""
    if not source.size:
        return
    if _touch(source, target):
        source = source.copy()
    itemsize = source.itemsize
    axes = _common_axes(source, target)
    if len(axes) > RANK or itemsize not in TYPES or any(s % itemsize or t % itemsize for _, s, t in axes):
        # NOTE: a slow path for seven interleaved axes and complex numbers. No program of graphc makes such arrays.
        target.set(source.get())
        return
    words = [*_ends(source, target), source.size, *_starts(source, target)]
    for extent, from_step, to_step in [(1, 0, 0)] * (RANK - len(axes)) + axes:
        words += [extent, from_step // itemsize, to_step // itemsize]
    device = source.device
    function = _module(device).function(symbol(itemsize))
    device.launch(function, -(-source.size // THREADS), THREADS, 0, words)


def _touch(source: DeviceArray, target: DeviceArray) -> bool:
    """Return whether the byte ranges from first to last element overlap."""
    (start, stop), (first, end) = source.byte_bounds(), target.byte_bounds()
    return start < end and first < stop


def _common_axes(source: DeviceArray, target: DeviceArray) -> list[tuple[int, int, int]]:
    """Return (size, bytes in the source, bytes in the target) of the fewest axes that reach all elements of both."""
    axes: list[tuple[int, int, int]] = []
    for extent, s, t in zip(source.shape, source.strides, target.strides, strict=True):
        if extent == 1:
            continue
        if axes and axes[-1][1:] == (extent * s, extent * t):
            axes[-1] = (axes[-1][0] * extent, s, t)
        else:
            axes.append((extent, s, t))
    return axes


def _ends(source: DeviceArray, target: DeviceArray) -> list[int]:
    """Return the addresses of the lowest elements, and the numbers of elements from there to the highest ones."""
    (start, stop), (first, end) = source.byte_bounds(), target.byte_bounds()
    return [start, first, (stop - start) // source.itemsize, (end - first) // source.itemsize]


def _starts(source: DeviceArray, target: DeviceArray) -> list[int]:
    """Return the offsets of the first elements from the lowest ones, in elements."""
    return [(a.address - a.byte_bounds()[0]) // a.itemsize for a in (source, target)]


def _module(device: Device) -> Any:
    """Return the kernels, loaded once for each device."""
    with _lock:
        if device not in _modules:
            text = strided_copies()
            code = text if device.takes == "text" else nvrtc.compile_cubin(text, device.target).image
            _modules[device] = device.load(code)
        return _modules[device]
