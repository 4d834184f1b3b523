"""Placement: interface of tensors to the package that manages memory of devices other than the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import local
from typing import Any, Protocol

import numpy as np

from graphc.base.device import CPU, device
from graphc.ir.op import OpDef
from graphc.tensors.tensor_base import front

_IMPLEMENTATION = "graphc.calls.placement"
"""The module that calls ``use_placement`` when it is imported, for the first tensor on a device."""


class Placement(Protocol):
    """Memory of devices, and computation in it."""

    def check(self, target: device) -> None:
        """Raise DeviceError if the device cannot be used."""
        ...

    def put(self, array: Any, target: device) -> Any:
        """Copy a host array, or an array on any device, to a device (as a numpy array for the CPU). Raise DeviceError
        if the device cannot be used."""
        ...

    def compute(self, op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
        """Compute an op on the device of its operands; return the result, or a tuple of several."""
        ...

    def write(self, target: Any, source: Any) -> None:
        """Copy an array to another one of the same shape and type, on any devices."""
        ...

    def share(self, first: Any, second: Any) -> bool:
        """Return whether two arrays may share memory."""
        ...

    def imported(self, source: Any) -> Any:
        """Wrap the memory of another library's object on a GPU in an array; return None for an object elsewhere."""
        ...


class OnOneDevice:
    """Mixin for graph-building dispatchers: a whole program runs on one device, which compilation chooses."""

    mode = "trace"

    def moved(self, tensor: Any, target: device) -> Any:
        """Return the tensor itself."""
        return tensor


_placements: list[Placement] = []


def use_placement(implementation: Placement) -> None:
    """Register the implementation."""
    _placements[:] = [implementation]


def placement() -> Placement:
    """Return the registered implementation, importing it if needed."""
    if not _placements:
        import_module(_IMPLEMENTATION)
    return _placements[0]


def is_on_device(data: Any) -> bool:
    """Return whether a tensor's data is on a device other than the CPU."""
    return data.__class__ is not np.ndarray and getattr(data, "is_on_device", False)


def place_of(data: Any) -> device:
    """Return the device of a tensor's data."""
    return device(data.device.name) if is_on_device(data) else CPU


def on_host(data: Any) -> np.ndarray:
    """Return an array, copied to the host if it is on a device."""
    return data.get() if is_on_device(data) else data


def is_elsewhere(data: Any, target: device) -> bool:
    """Return whether a tensor's data is on another device; the host's memory is one device, whatever its index."""
    if target is CPU and data.__class__ is np.ndarray:
        return False
    here = place_of(data)
    return here.type != target.type or (here.type != "cpu" and here != target)


def beside(tensor: Any, like: Any) -> Any:
    """Move a tensor, created without operands, to the device of another one."""
    target = place_of(like._data)
    return front().moved(tensor, target) if is_elsewhere(tensor._data, target) else tensor


class _Rules(local):
    """Whether this thread runs a rule of an op."""

    running = False


_rules = _Rules()


@contextmanager
def following_rules() -> Iterator[None]:
    """Allow operands on several devices inside of the block: rules create tensors on the host, and the user's operands
    were checked before."""
    before, _rules.running = _rules.running, True
    try:
        yield
    finally:
        _rules.running = before


def is_following_rules() -> bool:
    """Return whether this thread is inside of ``following_rules``."""
    return _rules.running
