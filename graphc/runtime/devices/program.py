"""Calls of a program on a device: arguments are brought there, kernels launched, or a recording replayed."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from graphc.base.errors import (
    ArgumentError,
    ArtifactError,
    DeviceError,
    GraphcError,
    IndexRangeError,
    MemoryLimitError,
    ShapeError,
)
from graphc.files.device_plan import DevicePlan, Step
from graphc.files.manifest import BufferSpec
from graphc.runtime.call_checks import Checks, scalar, title
from graphc.runtime.call_sizes import CallSizes, SizesOfCalls, numpy_type
from graphc.runtime.devices.array import DeviceArray, empty, from_host, zeros
from graphc.runtime.devices.interface import Device, Graph, Memory, Module

Explain = Callable[[Sequence[Any], Mapping[str, np.ndarray]], GraphcError | None]
RECORD_AT = 3
"""The call on the same sizes, params and states at which its launches are recorded; the ones before load and tune."""
RECORD_FROM = 2
"""Launches from which on a recording is replayed: a replay takes about as long as a launch."""
COPY_PER_LAUNCH = 4 << 20
"""Bytes that a replay may copy into and out of its slots for each launch that it saves. An estimate: a launch takes 4
us, in which 16 MB move on a GPU of 4 TB/s."""
REMEMBERED = 64
"""Of so many different sizes the launches are remembered."""
RECORDINGS = 8
"""Of so many different sizes there are recordings, which hold memory."""


class OnDevice:
    """What all programs of a device share: one call at a time gives it work, and their temporaries lie in one arena."""

    def __init__(self, device: Device):
        self.lock = threading.RLock()
        self.programs: weakref.WeakSet[DeviceExecutable] = weakref.WeakSet()
        self._device = weakref.ref(device)
        self._arena: Memory | None = None

    def arena(self, nbytes: int) -> Memory | None:
        """Memory of at least so many bytes; None for none. What was recorded on a smaller one goes with it."""
        if nbytes and (self._arena is None or self._arena.nbytes < nbytes):
            device = self._device()
            assert device is not None
            self.give_back()
            self._arena = device.allocate(nbytes)
        return self._arena

    def give_back(self) -> None:
        """Frees the arena, and what was recorded on it; the next call takes one again."""
        with self.lock:
            for program in self.programs:
                program.forget_recordings()
            self._arena = None


_states: weakref.WeakKeyDictionary[Any, OnDevice] = weakref.WeakKeyDictionary()
_states_lock = threading.Lock()


def state_of(device: Device) -> OnDevice:
    """What the programs of a device share."""
    with _states_lock:
        return _states.setdefault(device, OnDevice(device))


@dataclass
class Recording:
    """The launches of a program on slots of its own."""

    key: tuple[int, ...]
    """Addresses besides the slots."""
    slots: list[DeviceArray]
    """Of the inputs, then of the outputs."""
    parts: tuple[Graph, ...]
    """What comes before the status is looked at, if anything does, and what comes behind."""
    arena: Memory | None

    @property
    def nbytes(self) -> int:
        """Bytes of the slots."""
        return sum(slot.nbytes for slot in self.slots)


@dataclass
class Sized:
    """The program for the sizes of one kind of call."""

    sizes: CallSizes
    parts: tuple[tuple[Step, ...], ...]
    """What comes before the status is looked at, if anything does, and what comes behind."""
    key: tuple[int, ...] = ()
    """Addresses of params, states and arena in the call before."""
    calls: int = 0
    """How many calls in a row had the same."""
    recording: Recording | None = None

    @property
    def is_worth_recording(self) -> bool:
        """Whether launches that are saved take longer than what is copied instead."""
        launches = sum(map(len, self.parts))
        copied = sum(spec.nbytes for *_, spec in (*self.sizes.inputs, *self.sizes.outputs))
        return launches >= RECORD_FROM and copied <= COPY_PER_LAUNCH * launches


@dataclass
class Bound:
    """The params and states of a call."""

    given: tuple[Any, ...] = ()
    arrays: list[DeviceArray] = field(default_factory=list)
    """Where they lie on the device."""
    copies: list[tuple[Any, DeviceArray, bool]] = field(default_factory=list)
    """(array, dense copy on the device, whether it is written) of each that does not lie there."""
    written: list[tuple[int, int]] = field(default_factory=list)
    """Where the memory of written ones starts and ends."""


class DeviceExecutable(Checks):
    """A program on a device with its constants, callable from several threads: they take turns."""

    code_bytes = 0
    """Bytes of its code, where that is known."""
    takes = (DeviceArray, np.ndarray, np.generic)
    taken = "an array of its device or a NumPy array"

    def __init__(self, plan: DevicePlan, device: Device, module: Module, constants: np.ndarray, records: bool = True):
        """``constants`` is the constant block as bytes. With ``records`` calls on the same memory are recorded, which
        takes memory for inputs and outputs. Raises ArtifactError when the constants do not fit the plan."""
        super().__init__(plan.manifest)
        if constants.nbytes != self.manifest.constants:
            raise ArtifactError(
                f"the constant block has {constants.nbytes} bytes, {self.manifest.constants} are declared"
            )
        self.plan = plan
        self.device = device
        self.sizes = SizesOfCalls(self.manifest)
        """The sizes that a call has."""
        self.explain: Explain | None = None
        """Says which check fails for inputs and bound arrays."""
        buffers = list(enumerate(self.manifest.buffers))
        self.status_slot = next((i for i, b in buffers if b.cls == "status"), -1)
        self._status = zeros(device, (1,), "bool") if self.status_slot >= 0 else None
        self._constants = from_host(device, constants) if constants.size else None
        self._constant_slots = [(i, b.offset) for i, b in buffers if b.cls == "constant"]
        self._arena_slot = next((i for i, b in buffers if b.cls == "arena"), -1)
        self._bound_slots = [i for i, b in buffers if b.cls in ("param", "state")]
        self._functions = {s.symbol: module.function(s.symbol) for s in plan.launches if s.product is None}
        self._shared = state_of(device)
        self._shared.programs.add(self)
        self._sized: OrderedDict[CallSizes, Sized] = OrderedDict()
        self._bound = Bound()
        self._mirrors: dict[int, DeviceArray] = {}
        """Memory for params and states that lie on the host, by position."""
        self._records = records
        self._marks: list[tuple[str, Any]] | None = None
        """(kernel, event behind its launch) of a call that is timed, behind an event at its start."""
        self.replays = 0
        """How many calls have replayed a recording."""

    @property
    def nbytes(self) -> int:
        """Bytes on the device that are its own: constants, copies of params and states, slots of recordings."""
        recordings = [s.recording.nbytes for s in self._sized.values() if s.recording is not None]
        return self.manifest.constants + sum(m.nbytes for m in self._mirrors.values()) + sum(recordings)

    def __call__(self, *inputs: Any) -> list[Any]:
        """Runs a program without params and states."""
        return self.run(inputs)

    def run(
        self,
        inputs: Sequence[Any],
        bound: Sequence[Any] = (),
        out: Sequence[Any] | None = None,
        given: Mapping[str, int] | None = None,
        host: bool | None = None,
    ) -> list[Any]:
        """Runs the program and returns its outputs in order: new arrays on the device, those in ``out`` (of the device
        or the host), or new arrays on the host where ``host`` says so; it does unless given where all arguments are
        arrays of the host.

        ``bound`` holds the arrays of ``self.bound``: those of the device are used where they lie, those of the host are
        copied there in each call, and written states back. ``given`` as ``call.Executable.run`` takes it. Raises
        ArgumentError (count, kind, device, overlap), DTypeError and ShapeError; nothing has been written then. Raises
        IndexRangeError for an index or label out of range; no param or state has been written then."""
        if host is None:
            host = not any(isinstance(array, DeviceArray) for array in (*inputs, *bound))
        with self._shared.lock:
            sizes = self._sizes_of(inputs, given)
            if len(inputs) != len(sizes.inputs):
                raise self.wrong_count("input", self.inputs, len(inputs))
            self._bind(bound)
            arrays = [self._converted(spec, x) for x, (*_, spec) in zip(inputs, sizes.inputs, strict=True)]
            results = None if out is None else self._results(sizes, arrays, list(out))
            for array, copy, _ in self._bound.copies:
                _fill(copy, array)
            made = self._execute(self._for_sizes(sizes), arrays, results, inputs)
            for array, copy, written in self._bound.copies:
                if written:
                    _fill(array, copy)
            if out is not None:
                for target, array in zip(out, made, strict=True):
                    _fill(target, array)
                return list(out)
            return [array.get() for array in made] if host else list(made)

    def timed(self, inputs: Sequence[Any], bound: Sequence[Any] = ()) -> list[tuple[str, float]]:
        """Runs the program as ``run`` does, launch by launch; the kernel of each launch in order, and the milliseconds
        between it and the one before on the device's clock, what the host takes to launch included."""
        marks: list[tuple[str, Any]] = []
        with self._shared.lock:
            self._marks = marks
            try:
                self.run(inputs, bound)
            finally:
                self._marks = None
        for _, event in marks[-1:]:
            event.synchronize()
        return [(kernel, event.milliseconds_since(before)) for (_, before), (kernel, event) in pairwise(marks)]

    def give_back(self) -> None:
        """Frees the memory of recordings and of copies of params and states; later calls take it again."""
        with self._shared.lock:
            self._mirrors.clear()
            self._bound = Bound()
            self.forget_recordings()

    def forget_recordings(self) -> None:
        """Frees the memory of recordings, which are made anew when calls show that they are worth it."""
        for sized in self._sized.values():
            sized.recording, sized.calls = None, 0

    # ---- a call

    def _execute(
        self, sized: Sized, arrays: Sequence[Any], results: list[DeviceArray | None] | None, inputs: Sequence[Any]
    ) -> list[DeviceArray]:
        """Runs the program on checked arguments; returns the outputs on the device."""
        addresses = [0] * len(self.manifest.buffers)
        arena = self._place(sized, addresses)
        key = (addresses[self._arena_slot] if self._arena_slot >= 0 else 0, *(a.address for a in self._bound.arrays))
        if key != sized.key:
            sized.key, sized.calls, sized.recording = key, 0, None
        sized.calls += 1
        if self._marks is not None:
            return self._launched(sized, addresses, arrays, results, inputs)
        if self._records and sized.recording is None and sized.calls >= RECORD_AT and sized.is_worth_recording:
            sized.recording = self._recorded(sized, addresses, arena)
        if sized.recording is not None:
            return self._replay(sized.recording, arrays, results, inputs)
        return self._launched(sized, addresses, arrays, results, inputs)

    def _launched(
        self,
        sized: Sized,
        addresses: list[int],
        arrays: Sequence[Any],
        results: list[DeviceArray | None] | None,
        inputs: Sequence[Any],
    ) -> list[DeviceArray]:
        """A call in which each kernel is launched."""
        kept = [
            self._apart(array if isinstance(array, DeviceArray) else from_host(self.device, array)) for array in arrays
        ]
        made = list(results) if results is not None else [None] * len(sized.sizes.outputs)
        for (slot, *_), array in zip(sized.sizes.inputs, kept, strict=True):
            addresses[slot] = array.address
        outputs = []
        for (slot, dtype, shape, _), array in zip(sized.sizes.outputs, made, strict=True):
            outputs.append(empty(self.device, shape, dtype) if array is None else array)
            addresses[slot] = outputs[-1].address
        for number, part in enumerate(sized.parts):
            self._launch(part, addresses)
            if number + 1 < len(sized.parts):
                self._look(inputs)
        return outputs

    def _place(self, sized: Sized, addresses: list[int]) -> Memory | None:
        """Fills in where all but inputs and outputs lie; returns the arena."""
        if self._status is not None:
            addresses[self.status_slot] = self._status.address
        if self._constants is not None:
            for slot, offset in self._constant_slots:
                addresses[slot] = self._constants.address + offset
        for slot, array in zip(self._bound_slots, self._bound.arrays, strict=True):
            addresses[slot] = array.address
        arena = self._shared.arena(sized.sizes.arena) if self._arena_slot >= 0 else None
        if arena is not None:
            addresses[self._arena_slot] = arena.address
            self.device.discard(arena.address, sized.sizes.arena)
        return arena

    def _launch(self, steps: Sequence[Step], addresses: Sequence[int]) -> None:
        device, functions, marks = self.device, self._functions, self._marks
        if marks is not None and not marks:
            marks.append(("", device.event()))
        for step in steps:
            words = step.arguments(addresses)
            if step.product is not None:
                device.product(step.product, words)
            else:
                device.launch(functions[step.symbol], step.grid, step.threads, step.shared, words)
            if marks is not None:
                marks.append((step.kernel, device.event()))

    def _look(self, inputs: Sequence[Any]) -> None:
        """Raises when a check has failed."""
        if self._status is not None and self._status.get()[0]:
            self._status.set(np.zeros(1, np.bool_))
            raise self._stopped(inputs)

    def _stopped(self, inputs: Sequence[Any]) -> GraphcError:
        """The error of a call that a check has stopped."""
        paths = [b.path for b in self.bound]
        if self.explain is not None:
            bound = dict(zip(paths, map(_on_host, self._bound.given), strict=True))
            found = self.explain([_on_host(x) for x in inputs], bound)
            if found is not None:
                return found
        return IndexRangeError(
            f"an index or label is out of range, or a condition false, in a call of {self.manifest.name}"
        )

    # ---- recordings

    def _recorded(self, sized: Sized, addresses: Sequence[int], arena: Memory | None) -> Recording | None:
        """A recording, for which that of the sizes that were not used for the longest time goes where there are many.
        Where the device refuses, a warning says so, and this program records no more."""
        others = [s for s in self._sized.values() if s.recording is not None]
        for other in others[: len(others) - RECORDINGS + 1]:
            other.recording, other.calls = None, 0
        try:
            return self._record(sized, addresses, arena)
        except (DeviceError, MemoryLimitError) as error:
            what = f"{self.manifest.name} is launched kernel by kernel, for it could not be recorded: {error.what}"
            warnings.warn(what, RuntimeWarning, stacklevel=2)
            self._records = False
            return None

    def _record(self, sized: Sized, addresses: Sequence[int], arena: Memory | None) -> Recording:
        """Records the launches on new slots; does none of them."""
        places = (*sized.sizes.inputs, *sized.sizes.outputs)
        slots = [empty(self.device, shape, dtype) for _, dtype, shape, _ in places]
        words = list(addresses)
        for (slot, *_), array in zip(places, slots, strict=True):
            words[slot] = array.address
        parts = []
        for part in sized.parts:
            self.device.begin_capture()
            try:
                self._launch(part, words)
            # NOTE: also Ctrl-C, for a capture that is not ended takes in what is launched next; it is raised again.
            except BaseException:
                with suppress(DeviceError):  # the first error says more
                    self.device.end_capture()
                raise
            parts.append(self.device.end_capture())
        return Recording(sized.key, slots, tuple(parts), arena)

    def _replay(
        self,
        recording: Recording,
        arrays: Sequence[Any],
        results: list[DeviceArray | None] | None,
        inputs: Sequence[Any],
    ) -> list[DeviceArray]:
        self.replays += 1
        count = len(arrays)
        for slot, array in zip(recording.slots, arrays, strict=False):
            self._bring(array, slot)
        for slot in recording.slots[count:]:
            self.device.discard(slot.address, slot.nbytes)
        for number, part in enumerate(recording.parts):
            part.launch()
            if number + 1 < len(recording.parts):
                self._look(inputs)
        # What the caller does not bring gets memory of its own, for the next replay writes to the slots again.
        slots = recording.slots[count:]
        return slots if results is not None else [slot.copy() for slot in slots]

    # ---- arguments

    def _sizes_of(self, inputs: Sequence[Any], given: Mapping[str, int] | None) -> CallSizes:
        if self.sizes.fixed is not None:
            return self.sizes.fixed
        if given is not None:
            return self.sizes.of_values(given)
        if len(inputs) != len(self.inputs):
            raise self.wrong_count("input", self.inputs, len(inputs))
        for array, spec in zip(inputs, self.inputs, strict=True):
            if spec.shape and not isinstance(array, self.takes):
                self.check(spec, array)
        try:
            pairs = zip(inputs, self.inputs, strict=True)
            return self.sizes.of_inputs([x if s.equals is None else _on_host(x) for x, s in pairs])
        except (ArgumentError, ShapeError) as error:
            error.where = error.where or self.signature
            raise

    def _for_sizes(self, sizes: CallSizes) -> Sized:
        """The launches for these sizes; those of the sizes that were used last are remembered."""
        found = self._sized.get(sizes)
        if found is None:
            first = len(self.manifest.buffers)
            words = dict(sizes.words)
            steps, checked = self.plan.steps({d: words[first + i] for i, d in enumerate(self.manifest.dims)})
            parts = (tuple(steps[:checked]), tuple(steps[checked:])) if checked else (tuple(steps),)
            found = self._sized[sizes] = Sized(sizes, parts)
            if len(self._sized) > REMEMBERED:
                self._sized.popitem(last=False)
        self._sized.move_to_end(sizes)
        return found

    def _converted(self, spec: BufferSpec, value: Any) -> Any:
        """An input as a dense array, of the device or of the host, that is of the declared type; raises when it has
        another one."""
        if isinstance(value, DeviceArray):
            self._check_device(spec, value)
            return value.contiguous()
        if isinstance(value, bool | int | float) and not spec.shape:
            value = scalar(spec, value)
        elif spec.equals is not None:
            value = np.asarray(value, np.int64)
        self.check(spec, value)
        return np.require(value, numpy_type(spec), ["C", "A"])

    def _check_device(self, spec: BufferSpec, value: DeviceArray) -> None:
        self.check(spec, value)
        if value.device is not self.device:
            raise ArgumentError(
                f"{title(spec)} lies on {value.device.name}, {self.manifest.name} runs on {self.device.name}",
                where=self.signature,
            )

    def _bring(self, array: Any, slot: DeviceArray) -> None:
        """Copies a checked input into its slot."""
        if not isinstance(array, DeviceArray):
            slot.set(array)
        elif slot.nbytes:
            self.device.copy(slot.address, array.address, slot.nbytes)

    def _apart(self, array: DeviceArray) -> DeviceArray:
        """The array, or a copy where it shares memory with what the program writes."""
        start, stop = array.byte_bounds()
        overlaps = any(start < end and first < stop for first, end in self._bound.written)
        return array.copy() if overlaps and array.size else array

    def _bind(self, bound: Sequence[Any]) -> None:
        """Checks the params and states when they are not those of the call before, and finds places for them."""
        old = self._bound.given
        if len(bound) != len(self.bound):
            raise self.wrong_count("param or state", self.bound, len(bound))
        if len(old) == len(bound) and all(a is b for a, b in zip(old, bound, strict=True)):
            return
        made = Bound(tuple(bound))
        spans: dict[bool, list[tuple[int, int, BufferSpec]]] = {True: [], False: []}
        for number, (spec, value) in enumerate(zip(self.bound, bound, strict=True)):
            array = self._placed(made, number, spec, value)
            made.arrays.append(array)
            if array.size:
                spans[isinstance(value, DeviceArray)].append((*_bounds(value), spec))
            if spec.written and array.size:
                made.written.append(array.byte_bounds())
        for found in spans.values():
            self.check_spans(sorted(found, key=lambda span: span[:2]))
        self._bound = made

    def _placed(self, made: Bound, number: int, spec: BufferSpec, value: Any) -> DeviceArray:
        """Where a param or state lies on the device."""
        if isinstance(value, DeviceArray):
            self._check_device(spec, value)
        else:
            self.check(spec, value)
        if spec.written and not value.flags.writeable:
            raise ArgumentError(f"{title(spec)} is written by {self.manifest.name}, but its array is read-only")
        if isinstance(value, DeviceArray) and value.is_contiguous:
            self._mirrors.pop(number, None)
            return value
        if number not in self._mirrors:
            self._mirrors[number] = empty(self.device, spec.shape, numpy_type(spec))
        made.copies.append((value, self._mirrors[number], spec.written))
        return self._mirrors[number]

    def _results(self, sizes: CallSizes, arrays: Sequence[Any], out: list[Any]) -> list[DeviceArray | None]:
        """The arrays in ``out`` that the program can write to, None for those of the host; raises unless each can take
        its output and shares memory with nothing."""
        if len(out) != len(self.outputs):
            raise self.wrong_count("output", self.outputs, len(out))
        taken = [(spec, a) for a, (*_, spec) in zip(arrays, sizes.inputs, strict=True)]
        taken += list(zip(self.bound, self._bound.given, strict=True))
        found: list[DeviceArray | None] = []
        for array, (*_, spec) in zip(out, sizes.outputs, strict=True):
            self.check(spec, array)
            on_device = isinstance(array, DeviceArray)
            if on_device:
                self._check_device(spec, array)
            if not array.flags.c_contiguous or not array.flags.writeable:
                raise ArgumentError(f"the array for {title(spec)} is not dense and writeable", remedy="np.empty(...)")
            for other, place in taken:
                if isinstance(place, DeviceArray) == on_device and _overlap(place, array):
                    raise ArgumentError(
                        f"the array for {title(spec)} shares memory with {title(other)}", remedy="another array"
                    )
            taken.append((spec, array))
            found.append(array if on_device else None)
        return found


def _bounds(array: Any) -> tuple[int, int]:
    """Addresses of the first byte of an array and of the one behind its last."""
    return array.byte_bounds() if isinstance(array, DeviceArray) else np.lib.array_utils.byte_bounds(array)


def _overlap(a: Any, b: Any) -> bool:
    (start, stop), (first, end) = _bounds(a), _bounds(b)
    return bool(a.size and b.size) and start < end and first < stop


def _on_host(value: Any) -> Any:
    return value.get() if isinstance(value, DeviceArray) else value


def _fill(target: Any, source: Any) -> None:
    """Copies elements between arrays of one shape and type, wherever they lie."""
    if target is source:
        return
    if not isinstance(target, DeviceArray):
        np.copyto(target, _on_host(source))
    elif isinstance(source, DeviceArray):
        target.assign(source)
    else:
        target.set(source)
