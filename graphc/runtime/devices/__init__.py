"""Devices besides the CPU: memory, code and launches on them."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from graphc.base import config
from graphc.base.errors import ArgumentError

_CUDA, _EMULATED = "graphc.runtime.devices.cuda", "graphc.runtime.devices.emulated"
"""Modules that are imported when one of their devices is requested."""
CUDA, EMULATED = "cuda", "cuda-emu"
"""A GPU, and the device that executes CUDA text on the CPU."""


def device_named(name: str) -> Any:
    """Return the device (see ``interface.Device``) of a name: ``cuda`` (the first GPU), ``cuda:1``, ``cuda-emu``. Each
    call returns the same object. Raises DeviceError, which names what is missing, if the device cannot be used, and
    ArgumentError for other names."""
    kind, colon, number = str(name).partition(":")
    if kind == EMULATED and number in ("", "0"):
        return _emulated(config.read().emulator)
    if kind != CUDA or (colon and not number.isdecimal()):
        raise ArgumentError(f"there is no device {name!r}", remedy="pass cuda, cuda:1, ..., or cuda-emu")
    return _cuda(int(number or 0))


def is_available(name: str = CUDA) -> bool:
    """Return whether a device of this name can be used here; never raises."""
    try:
        device_named(name)
    # NOTE: a partly installed library may raise anything.
    except Exception:
        return False
    return True


def count() -> int:
    """Return the number of usable GPUs; 0 if none can be used."""
    return import_module(_CUDA).count()


@cache
def _emulated(options: Any) -> Any:
    return import_module(_EMULATED).EmulatedDevice()


@cache
def _cuda(index: int) -> Any:
    return import_module(_CUDA).CudaDevice(index)
