"""Tensors on devices: their memory, and operations as small cached programs, one for each op and operand types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.device import CPU, device
from graphc.base.dtypes import dtype_of
from graphc.base.errors import DeviceError
from graphc.calls.program_store import ProgramStore
from graphc.compiler.device import compile_for_device
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph
from graphc.ir.op import OpDef, Trait
from graphc.ir.types import TensorType
from graphc.runtime.devices import device_named
from graphc.runtime.devices.array import DeviceArray, from_cuda_array_interface, from_dlpack, from_host
from graphc.tensors.placement import is_following_rules, is_on_device, on_host, use_placement

PROGRAM_LIMIT = 4096
"""Limit on cached programs of operations."""


class DevicePlacement:
    """Implementation of tensors.placement.Placement."""

    def __init__(self) -> None:
        self._programs: ProgramStore[Any] = ProgramStore(limit=PROGRAM_LIMIT)

    def check(self, target: device) -> None:
        """Raise DeviceError where the device cannot be used."""
        if target != CPU:
            device_named(str(target))

    def put(self, array: Any, target: device) -> Any:
        """Return a copy on a device."""
        # NOTE: copy between two devices through the host, since peer access between GPUs is not checked.
        return on_host(array) if target.type == "cpu" else from_host(device_named(str(target)), on_host(array))

    def compute(self, op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any]) -> Any:
        """Return a view where the op makes one, else the results of its program."""
        where = _common_device(op, arrays)
        if op.alias is not None or op.has(Trait.VIEW):
            view = _view(op, attrs, arrays)
            if view is not None:
                return view
        results = self._program(op, attrs, arrays, where).run([_dense_on(a, where) for a in arrays])
        return results[0] if len(results) == 1 else tuple(results)

    def _program(self, op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any], where: Any) -> Any:
        key = (op, repr(sorted(attrs.items())), where.name, *[(a.dtype, a.shape) for a in arrays])
        return self._programs.find_or_make(
            key, lambda: compile_for_device(_graph(op, attrs, arrays), where, records=False)
        )

    def write(self, target: Any, source: Any) -> None:
        """Copy on the device where both arrays are on it with one element type, else through the host."""
        if not is_on_device(target):
            np.copyto(target, on_host(source))
        elif is_on_device(source) and source.device is target.device and source.dtype == target.dtype:
            target.assign(source if source.shape == target.shape else source.broadcast_to(target.shape))
        else:
            target.set(on_host(source))

    def share(self, first: Any, second: Any) -> bool:
        """Return whether the byte ranges from first to last element overlap."""
        if not (is_on_device(first) and is_on_device(second)) or first.device is not second.device:
            return False
        (a, b), (c, d) = first.byte_bounds(), second.byte_bounds()
        return a < d and c < b

    def imported(self, source: Any) -> Any:
        """Return an array over memory of a GPU; None for other sources."""
        where = getattr(source, "__dlpack_device__", None)
        if where is not None:
            kind, number = where()
            return from_dlpack(source, device_named(f"cuda:{number}")) if int(kind) == 2 else None
        if hasattr(source, "__cuda_array_interface__"):
            return from_cuda_array_interface(source, device_named("cuda"))
        return None


def _stays(array: np.ndarray) -> bool:
    """Return whether a host array does not follow the other operands to their device. A repeated number does."""
    return array.dtype.kind == "f" and any(array.strides) and not is_following_rules()


def _common_device(op: OpDef, arrays: Sequence[Any]) -> Any:
    """Return the device that computes an op. Raise DeviceError for operands on several devices.

    Scalars, also repeated ones, whole numbers (indices, labels, random state) and masks of the host follow to any
    device. NOTE: PyTorch accepts host indices for indexing only.
    """
    where = next(a.device for a in arrays if is_on_device(a))
    for array in arrays:
        there = is_on_device(array)
        if array.device is not where if there else _stays(array):
            other = array.device.name if there else CPU
            raise DeviceError(
                f"{op.name}: one operand is on {where.name}, another one on {other}", remedy=f"call .to({where.name!r})"
            )
    return where


def _dense_on(array: Any, where: Any) -> DeviceArray:
    """Return an operand in the form for a program: dense, on its device."""
    if is_on_device(array) and array.device is where:
        return array.contiguous()
    return from_host(where, on_host(array))


def _view(op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any]) -> DeviceArray | None:
    """Return the op's view of its first operand, derived from a run on dummy host memory; None where the op makes a
    copy.
    """
    array = arrays[0]
    if not is_on_device(array) or op.reference is None:
        return None
    low, high = array.byte_bounds()
    block = np.empty(max(1, high - low), np.uint8)
    first = np.ndarray(array.shape, array.dtype, block, array.address - low if array.size else 0, array.strides)
    others = [np.zeros(a.shape, a.dtype) for a in arrays[1:]]
    result = op.reference(first, *others, **attrs)
    if not isinstance(result, np.ndarray) or result.dtype != array.dtype:
        return None
    if not result.size or not np.may_share_memory(result, block):
        return None
    moved = result.__array_interface__["data"][0] - first.__array_interface__["data"][0]
    writeable = array.writeable and bool(result.flags.writeable)
    return DeviceArray(
        array.device, array.memory, result.shape, array.dtype, result.strides, array.offset + moved, writeable
    )


def _graph(op: OpDef, attrs: Mapping[str, Any], arrays: Sequence[Any]) -> Graph:
    graph = Graph(op.name)
    for i, array in enumerate(arrays):
        name = op.operands[min(i, len(op.operands) - 1)].lstrip("*")
        graph.add_input(TensorType(dtype_of(array.dtype), tuple(array.shape)), name)
    graph.set_outputs(emit(graph, op, graph.inputs, dict(attrs)))
    return graph


use_placement(DevicePlacement())
