"""Params and states of programs on devices: arrays there, copies of host arrays, and calls on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from graphc.base.errors import ArgumentError
from graphc.calls.bindings import Binding, Maker, Slot
from graphc.runtime.call_checks import title
from graphc.runtime.devices.array import DeviceArray, from_host
from graphc.runtime.devices.interface import Device
from graphc.runtime.devices.program import DeviceExecutable, state_of
from graphc.tensors.placement import is_on_device, on_host

_Synced = tuple[Any, int]
"""The data of a copy's tensor, and its version at the time of the copy."""


class DeviceBinding(Binding):
    """A binding that passes arrays of a device: arrays of tensors there, and copies of host tensors.

    A write to a tensor or its replacement refreshes the copy at its address. Where the memory was handed out, so that
    not all writes are counted, every call does. Writes of the program are copied back to the tensor.
    """

    def __init__(self, slots: Sequence[Slot], written: Sequence[bool], device: Device, makers: Mapping[int, Maker]):
        """``makers`` convert the elements of some slots to their stored form."""
        super().__init__(slots, written)
        self.device = device
        self._makers = makers
        self._copies: dict[int, DeviceArray] = {}
        self._synced: dict[int, _Synced] = {}
        self._arrays_now: tuple[Any, ...] = ()

    def arrays(self) -> tuple[Any, ...]:
        """Return the program's arrays for the present tensors. The tuple stays the same object while all device arrays
        do.
        """
        tensors, previous = self.tensors(), self._arrays_now
        # Where all tensors are on the device, only their identity matters.
        if len(tensors) == len(previous) and all(map(is_, [t._data for t in tensors], previous)):
            return previous
        arrays_now = tuple([self._array(i, t) for i, t in enumerate(tensors)])
        if len(arrays_now) != len(previous) or not all(map(is_, arrays_now, previous)):
            self._arrays_now = arrays_now
        return self._arrays_now

    def _array(self, number: int, tensor: Any) -> DeviceArray:
        data, make = tensor._data, self._makers.get(number)
        if make is None and is_on_device(data):
            return data
        synced, now = self._synced.get(number), _version(tensor)
        if synced is None or synced[0] is not data or synced[1] != now or now < 0:
            content = on_host(data) if make is None else np.ascontiguousarray(make(on_host(data)))
            copy = self._copies.get(number)
            if copy is None or copy.shape != content.shape or copy.dtype != content.dtype:
                self._copies[number] = from_host(self.device, content)
            else:
                copy.set(content)
            self._synced[number] = data, now
        return self._copies[number]

    def copy_of(self, data: Any) -> Any:
        """Return the copy of a tensor's data as it was at the last call, or the data itself without a copy."""
        for number, (source, version) in self._synced.items():
            if source is data and version >= 0 and number not in self._makers:
                return self._copies[number]
        return data

    def is_on_host(self) -> bool:
        """Return whether no tensor is on the device."""
        return not any([is_on_device(t._data) for t in self.tensors()])

    def note_writes(self) -> None:
        """Copy the program's writes back to the tensors, and count them."""
        super().note_writes()
        tensors = self.tensors()
        for number in self.written:
            data = tensors[number]._data
            if not is_on_device(data):
                np.copyto(data, self._copies[number].get())
                self._synced[number] = data, _version(tensors[number])

    def made(self) -> tuple[np.ndarray, ...]:
        """Return no arrays: none are in host memory."""
        return ()


def _version(tensor: Any) -> int:
    """Return the number of writes to a tensor; -1 where writes are not counted."""
    counter = tensor._counter
    return -1 if counter is None or len(counter) > 1 else counter[0]


class DeviceProgram:
    """A program on a device with its params and states; the counterpart of ``BoundProgram``."""

    def __init__(self, program: DeviceExecutable, binding: DeviceBinding, results: int):
        """The caller gets the first ``results`` outputs, in host memory where all tensors of the call are there."""
        self.program = program
        self.binding = binding
        self._results = results
        self._shared = state_of(program.device)
        self._checked: list[Any] = []
        """Data of the tensors in the previous call."""

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.program.nbytes

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        """Return the outputs for these inputs: arrays of the device or the host, and numbers."""
        with self._shared.lock:
            self._check()
            outputs = self.program.run(arguments, self.binding.arrays(), host=False)
            self.binding.note_writes()
            if self.binding.is_on_host() and not any([is_on_device(x) for x in arguments]):
                outputs[: self._results] = [array.get() for array in outputs[: self._results]]
            return outputs

    def _check(self) -> None:
        """Raise ArgumentError where a written host array is read-only or overlaps another one: copies would hide the
        writes.
        """
        now = [t._data for t in self.binding.tensors()]
        if len(now) == len(self._checked) and all(map(is_, now, self._checked)):
            return
        on_host_arrays = [(spec, a) for spec, a in zip(self.program.bound, now, strict=True) if not is_on_device(a)]
        for spec, array in on_host_arrays:
            if spec.written and not array.flags.writeable:
                name = self.program.manifest.name
                raise ArgumentError(f"{title(spec)} is written by {name}, but its array is read-only")
        spans = [(*byte_bounds(array), spec) for spec, array in on_host_arrays if array.size]
        self.program.check_spans(sorted(spans, key=lambda span: span[:2]))
        self._checked = now
