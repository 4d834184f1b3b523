"""Tensors on devices: their memory, and operations on them as small programs, one for each kind of operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.device import CPU, device
from graphc.base.dtypes import dtype_of
from graphc.base.errors import DeviceError
from graphc.base.locks import Lock
from graphc.compiler.device import compile_for_device
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.op import OpDef, Trait
from graphc.ir.types import TensorType
from graphc.runtime.devices import device_named
from graphc.runtime.devices.array import DeviceArray, from_cuda_array_interface, from_dlpack, from_host
from graphc.tensors.placement import is_following_rules, is_on_device, on_host, use_placement

KEPT = 4096
"""Programs of operations that are kept in memory."""


class DevicePlacement:
    """See tensors.placement.Placement."""

    def __init__(self) -> None:
        self._programs: dict[Any, Any] = {}
        self._lock = Lock()

    def check(self, place: device) -> None:
        """Raises DeviceError where the device cannot be used."""
        if place != CPU:
            device_named(str(place))

    def put(self, array: Any, place: device) -> Any:
        """A copy on a device."""
        # NOTE: between two devices through the host: what one GPU may read of another is not asked.
        return on_host(array) if place.type == "cpu" else from_host(device_named(str(place)), on_host(array))

    def compute(self, op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
        """A view where the op makes one, else what its program gives."""
        where = _common_device(op, arrays)
        if op.alias is not None or op.has(Trait.VIEW):
            found = _view(op, attrs, arrays)
            if found is not None:
                return found
        results = self._program(op, attrs, arrays, where).run([_taken(a, where) for a in arrays])
        return results[0] if len(results) == 1 else tuple(results)

    def _program(self, op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any], where: Any) -> Any:
        key = (op, repr(sorted(attrs.items())), where.name, *[(a.dtype, a.shape) for a in arrays])
        found = self._programs.get(key)
        if found is None:
            with self._lock:
                found = self._programs.get(key) or compile_for_device(_graph(op, attrs, arrays), where, records=False)
                if len(self._programs) >= KEPT:
                    self._programs.pop(next(iter(self._programs)))
                self._programs[key] = found
        return found

    def write(self, target: Any, source: Any) -> None:
        """Copies on the device where both lie on it and have one element type, else through the host."""
        if not is_on_device(target):
            np.copyto(target, on_host(source))
        elif is_on_device(source) and source.device is target.device and source.dtype == target.dtype:
            target.assign(source if source.shape == target.shape else source.broadcast_to(target.shape))
        else:
            target.set(on_host(source))

    def share(self, first: Any, second: Any) -> bool:
        """Whether the bytes between first and last element overlap."""
        if not (is_on_device(first) and is_on_device(second)) or first.device is not second.device:
            return False
        (a, b), (c, d) = first.byte_bounds(), second.byte_bounds()
        return a < d and c < b

    def imported(self, source: Any) -> Any:
        """An array over memory of a GPU."""
        where = getattr(source, "__dlpack_device__", None)
        if where is not None:
            kind, number = where()
            return from_dlpack(source, device_named(f"cuda:{number}")) if int(kind) == 2 else None
        if hasattr(source, "__cuda_array_interface__"):
            return from_cuda_array_interface(source, device_named("cuda"))
        return None


def _stays(array: np.ndarray) -> bool:
    """Whether an array of the host does not go along with a device: one number repeated does."""
    return array.dtype.kind == "f" and any(array.strides) and not is_following_rules()


def _common_device(op: OpDef, arrays: Sequence[Any]) -> Any:
    """The device that computes an op; raises DeviceError for operands that lie on several.

    Numbers without dimensions, also repeated ones, whole numbers (indices, labels, random state) and masks of the host
    go along with any device. NOTE: PyTorch takes indices of the host for indexing only."""
    where = next(a.device for a in arrays if is_on_device(a))
    for array in arrays:
        there = is_on_device(array)
        if array.device is not where if there else _stays(array):
            other = array.device.name if there else CPU
            raise DeviceError(
                f"{op.name}: one operand is on {where.name}, another one on {other}", remedy=f".to({where.name!r})"
            )
    return where


def _taken(array: Any, where: Any) -> DeviceArray:
    """An operand as a program takes it: dense, on its device."""
    if is_on_device(array) and array.device is where:
        return array.contiguous()
    return from_host(where, on_host(array))


def _view(op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any]) -> DeviceArray | None:
    """The view that the op makes of its first operand, found on memory of the host that nobody touches; None where it
    makes a copy."""
    array = arrays[0]
    if not is_on_device(array) or op.reference is None:
        return None
    low, high = array.byte_bounds()
    block = np.empty(max(1, high - low), np.uint8)
    first = np.ndarray(array.shape, array.dtype, block, array.address - low if array.size else 0, array.strides)
    others = [np.zeros(a.shape, a.dtype) for a in arrays[1:]]
    found = op.reference(first, *others, **attrs)
    if not isinstance(found, np.ndarray) or found.dtype != array.dtype:
        return None
    if not found.size or not np.may_share_memory(found, block):
        return None
    moved = found.__array_interface__["data"][0] - first.__array_interface__["data"][0]
    writeable = array.writeable and bool(found.flags.writeable)
    return DeviceArray(
        array.device, array.memory, found.shape, array.dtype, found.strides, array.offset + moved, writeable
    )


def _graph(op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any]) -> Graph:
    graph = Graph(op.name)
    for i, array in enumerate(arrays):
        name = op.operands[min(i, len(op.operands) - 1)].lstrip("*")
        graph.add_input(TensorType(dtype_of(array.dtype), tuple(array.shape)), name)
    graph.set_outputs(emit(graph, op, graph.inputs, dict(attrs)))
    return graph


use_placement(DevicePlacement())
