"""Params and states of programs on devices: where they lie there, copies of those of the host, and calls on them."""

from __future__ import annotations

from collections.abc import Sequence
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

_Known = tuple[Any, int]
"""The data that a copy was made of, and the version that it had."""


class DeviceBinding(Binding):
    """A binding that gives arrays of a device: those of the tensors that lie there, and copies of others.

    A copy is made again, at its address, after its tensor was replaced or written to; with each call where the memory
    was given out, so that not all writes are counted. What the program writes goes back to the tensor."""

    def __init__(
        self, slots: Sequence[Slot], written: Sequence[bool], device: Device, makers: Sequence[Maker | None] = ()
    ):
        """``makers`` say what is stored for a slot in the place of its tensor's elements."""
        super().__init__(slots, written)
        self._device = device
        self._makers = tuple(makers) or (None,) * len(self.slots)
        self._copies: dict[int, DeviceArray] = {}
        self._known: dict[int, _Known] = {}
        self._given: tuple[Any, ...] = ()

    def arrays(self) -> tuple[Any, ...]:
        """What the program takes, as the tensors are now; the same tuple while none was replaced by another one that
        lies on the device."""
        tensors, given = self.tensors(), self._given
        # Of tensors that all lie on the device there is nothing to look at but whether they are the same.
        if len(tensors) == len(given) and all(map(is_, [t._data for t in tensors], given)):
            return given
        found = tuple([self._array(i, t) for i, t in enumerate(tensors)])
        if len(found) != len(given) or not all(map(is_, found, given)):
            self._given = found
        return self._given

    def _array(self, number: int, tensor: Any) -> DeviceArray:
        data, make = tensor._data, self._makers[number]
        if make is None and is_on_device(data):
            return data
        known, now = self._known.get(number), _version(tensor)
        if known is None or known[0] is not data or known[1] != now or now < 0:
            content = on_host(data) if make is None else np.ascontiguousarray(make(on_host(data)))
            copy = self._copies.get(number)
            if copy is None or copy.shape != content.shape or copy.dtype != content.dtype:
                self._copies[number] = from_host(self._device, content)
            else:
                copy.set(content)
            self._known[number] = data, now
        return self._copies[number]

    def copy_of(self, data: Any) -> Any:
        """The copy of a tensor's data as it was at the last call; the data itself where there is none."""
        for number, (known, version) in self._known.items():
            if known is data and version >= 0 and self._makers[number] is None:
                return self._copies[number]
        return data

    def is_on_host(self) -> bool:
        """Whether no tensor lies on the device."""
        return not any([is_on_device(t._data) for t in self.tensors()])

    def note_writes(self) -> None:
        """Takes what the program wrote back to the tensors, and counts it as a write."""
        super().note_writes()
        tensors = self.tensors()
        for number in self.written:
            data = tensors[number]._data
            if not is_on_device(data):
                np.copyto(data, self._copies[number].get())
                self._known[number] = data, _version(tensors[number])

    def made(self) -> tuple[np.ndarray, ...]:
        """Nothing in the memory of the host."""
        return ()


def _version(tensor: Any) -> int:
    """How often a tensor was written to; -1 where that is not known."""
    counter = tensor._counter
    return -1 if counter is None or len(counter) > 1 else counter[0]


class DeviceProgram:
    """A program on a device with its params and states: what variant.BoundProgram is for one of the CPU."""

    def __init__(self, program: DeviceExecutable, binding: DeviceBinding, results: int):
        """The first ``results`` outputs are given to the caller, on the host where all tensors of the call are."""
        self.program = program
        self.binding = binding
        self._results = results
        self._shared = state_of(program.device)
        self._checked: list[Any] = []
        """Data of the tensors in the call before."""

    @property
    def nbytes(self) -> int:
        """Bytes on the device."""
        return self.program.nbytes

    def run(self, given: Sequence[Any]) -> list[Any]:
        """The outputs for these inputs: arrays of the device or the host, and numbers."""
        with self._shared.lock:
            self._check()
            found = self.program.run(given, self.binding.arrays(), host=False)
            self.binding.note_writes()
            if self.binding.is_on_host() and not any([is_on_device(x) for x in given]):
                found[: self._results] = [array.get() for array in found[: self._results]]
            return found

    def _check(self) -> None:
        """Raises ArgumentError where something written shares memory of the host, or may not be written to: of the
        copies nobody would see it."""
        now = [t._data for t in self.binding.tensors()]
        if len(now) == len(self._checked) and all(map(is_, now, self._checked)):
            return
        known = [(spec, a) for spec, a in zip(self.program.bound, now, strict=True) if not is_on_device(a)]
        for spec, array in known:
            if spec.written and not array.flags.writeable:
                name = self.program.manifest.name
                raise ArgumentError(f"{title(spec)} is written by {name}, but its array is read-only")
        spans = [(*byte_bounds(array), spec) for spec, array in known if array.size]
        self.program.check_spans(sorted(spans, key=lambda span: span[:2]))
        self._checked = now
