"""Copies between strided arrays of a device: what their kernel is given, and the module that it is in."""

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
    """Writes the elements of an array to another one of the same shape, element type and device, whose elements lie
    apart from each other."""
    if not source.size:
        return
    if _touch(source, target):
        source = source.copy()
    itemsize = source.itemsize
    axes = _common_axes(source, target)
    if len(axes) > RANK or itemsize not in TYPES or any(s % itemsize or t % itemsize for _, s, t in axes):
        # NOTE: seven axes that interleave, and complex numbers: no program of graphc makes such arrays.
        target.set(source.get())
        return
    words = [*_ends(source, target), source.size, *_starts(source, target)]
    for extent, from_step, to_step in [(1, 0, 0)] * (RANK - len(axes)) + axes:
        words += [extent, from_step // itemsize, to_step // itemsize]
    device = source.device
    function = _module(device).function(symbol(itemsize))
    device.launch(function, -(-source.size // THREADS), THREADS, 0, words)


def _touch(source: DeviceArray, target: DeviceArray) -> bool:
    """Whether bytes between the first and the last element of both are the same."""
    (start, stop), (first, end) = source.byte_bounds(), target.byte_bounds()
    return start < end and first < stop


def _common_axes(source: DeviceArray, target: DeviceArray) -> list[tuple[int, int, int]]:
    """(size, bytes in the source, bytes in the target) of the fewest axes that reach all elements of both."""
    found: list[tuple[int, int, int]] = []
    for extent, s, t in zip(source.shape, source.strides, target.strides, strict=True):
        if extent == 1:
            continue
        if found and found[-1][1:] == (extent * s, extent * t):
            found[-1] = (found[-1][0] * extent, s, t)
        else:
            found.append((extent, s, t))
    return found


def _ends(source: DeviceArray, target: DeviceArray) -> list[int]:
    """Addresses of the lowest elements, and how many elements lie from there to the highest ones."""
    (start, stop), (first, end) = source.byte_bounds(), target.byte_bounds()
    return [start, first, (stop - start) // source.itemsize, (end - first) // source.itemsize]


def _starts(source: DeviceArray, target: DeviceArray) -> list[int]:
    """How far behind the lowest elements the first ones lie, in elements."""
    return [(a.address - a.byte_bounds()[0]) // a.itemsize for a in (source, target)]


def _module(device: Device) -> Any:
    """The kernels, loaded once for each device."""
    with _lock:
        if device not in _modules:
            text = strided_copies()
            code = text if device.takes == "text" else nvrtc.compile_cubin(text, device.target).image
            _modules[device] = device.load(code)
        return _modules[device]
