"""Tensors in the memory of devices besides the CPU: what they ask of the package that knows devices."""

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

_KNOWS_DEVICES = "graphc.calls.placement"
"""The module that registers itself by ``use_placement`` when it is imported: at the first tensor on a device."""


class Placement(Protocol):
    """Memory of devices, and computing in it."""

    def check(self, place: device) -> None:
        """Raises DeviceError where the device cannot be used."""
        ...

    def put(self, array: Any, place: device) -> Any:
        """A copy of a host array, or of an array on some device, in the memory of a device (for the CPU a numpy array).
        Raises DeviceError where the device cannot be used."""
        ...

    def compute(self, op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
        """The result of an op, or a tuple of several, on the device where some of the arrays lie."""
        ...

    def write(self, target: Any, source: Any) -> None:
        """Copies an array of the same shape and type into another one, wherever they lie."""
        ...

    def share(self, first: Any, second: Any) -> bool:
        """Whether two arrays may share memory."""
        ...

    def imported(self, source: Any) -> Any:
        """An array over the memory of an object of another library that lies on a GPU; None for one that does not."""
        ...


class OnOneDevice:
    """What graphs say of places: all of a program is computed on one device, by what it will be compiled to."""

    mode = "trace"

    def moved(self, tensor: Any, place: device) -> Any:
        """The tensor itself."""
        return tensor


_found: list[Placement] = []


def use_placement(found: Placement) -> None:
    """Makes it the one that all tensors ask."""
    _found[:] = [found]


def placement() -> Placement:
    """What knows devices."""
    if not _found:
        import_module(_KNOWS_DEVICES)
    return _found[0]


def is_on_device(data: Any) -> bool:
    """Whether what a tensor holds lies on a device besides the CPU."""
    return data.__class__ is not np.ndarray and getattr(data, "is_on_device", False)


def place_of(data: Any) -> device:
    """Where what a tensor holds lies."""
    return device(data.device.name) if is_on_device(data) else CPU


def on_host(data: Any) -> np.ndarray:
    """An array itself, or a copy of one on a device."""
    return data.get() if is_on_device(data) else data


def is_elsewhere(data: Any, place: device) -> bool:
    """Whether what a tensor holds lies on another device; the memory of the host is one, whatever its index."""
    if place is CPU and data.__class__ is np.ndarray:
        return False
    here = place_of(data)
    return here.type != place.type or (here.type != "cpu" and here != place)


def beside(tensor: Any, like: Any) -> Any:
    """The tensor, which the caller has made of nothing, on the device of another one."""
    place = place_of(like._data)
    return front().moved(tensor, place) if is_elsewhere(tensor._data, place) else tensor


class _Rules(local):
    """Whether this thread computes what a rule of an op says."""

    running = False


_rules = _Rules()


@contextmanager
def following_rules() -> Iterator[None]:
    """Inside, operands may lie on several devices: what rules make of nothing is made on the host, and what the user
    gave has been looked at before."""
    before, _rules.running = _rules.running, True
    try:
        yield
    finally:
        _rules.running = before


def is_following_rules() -> bool:
    """Whether this thread is inside of ``following_rules``."""
    return _rules.running
