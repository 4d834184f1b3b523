"""Calls of a program on a device: copy the arguments there, launch the kernels, or replay a recording."""

from __future__ import annotations

import threading
import warnings
import weakref
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
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
from graphc.base.records import dataclass
from graphc.files.device_plan import DevicePlan, PlannedLaunch
from graphc.files.manifest import BufferSpec
from graphc.runtime.call_checks import Checks, scalar, title
from graphc.runtime.call_sizes import CallSizes, SizesOfCalls, numpy_type
from graphc.runtime.devices.array import DeviceArray, empty, from_host, zeros
from graphc.runtime.devices.interface import Device, Graph, Memory, Module

Explain = Callable[[Sequence[Any], Mapping[str, np.ndarray]], GraphcError | None]
RECORD_AT = 3
"""Number of the call on the same sizes, params and states that records its launches. Earlier calls load and tune."""
RECORD_FROM = 2
"""Minimum number of launches for a recording: a replay takes about as long as one launch."""
COPY_PER_LAUNCH = 4 << 20
"""Bytes that a replay may copy into and out of its slots for each saved launch. An estimate: a launch takes 4 us, in
which a GPU of 4 TB/s moves 16 MB."""
MAX_SIZES = 64
"""Maximum number of sizes whose launches are cached."""
MAX_RECORDINGS = 8
"""Maximum number of sizes with recordings, which hold memory."""


class OnDevice:
    """State shared by all programs of a device: a lock, since one call at a time gives it work, and one arena."""

    def __init__(self, device: Device):
        self.lock = threading.RLock()
        self.programs: weakref.WeakSet[DeviceExecutable] = weakref.WeakSet()
        self._device = weakref.ref(device)
        self._arena: Memory | None = None

    def arena(self, nbytes: int) -> Memory | None:
        """Return memory of at least ``nbytes`` bytes; None for 0 bytes. Growing it drops recordings on the smaller
        one."""
        if nbytes and (self._arena is None or self._arena.nbytes < nbytes):
            device = self._device()
            assert device is not None
            self.give_back()
            self._arena = device.allocate(nbytes)
        return self._arena

    def give_back(self) -> None:
        """Free the arena, and the recordings that use it. The next call allocates an arena again."""
        with self.lock:
            for program in self.programs:
                program.forget_recordings()
            self._arena = None


_states: weakref.WeakKeyDictionary[Any, OnDevice] = weakref.WeakKeyDictionary()
_states_lock = threading.Lock()


def state_of(device: Device) -> OnDevice:
    """Return the state shared by all programs of a device."""
    with _states_lock:
        return _states.setdefault(device, OnDevice(device))


@dataclass
class Recording:
    """Launches of a program on slots of its own."""

    key: tuple[int, ...]
    """Addresses of arena, params and states."""
    slots: list[DeviceArray]
    """Slots of the inputs, then of the outputs."""
    parts: tuple[Graph, ...]
    """The graph up to the check of the status, if any, and the graph after it."""
    arena: Memory | None

    @property
    def nbytes(self) -> int:
        """Bytes of the slots."""
        return sum(slot.nbytes for slot in self.slots)


@dataclass
class Sized:
    """A program specialized to the sizes of one kind of call."""

    sizes: CallSizes
    parts: tuple[tuple[PlannedLaunch, ...], ...]
    """The launches up to the check of the status, if any, and those after it."""
    key: tuple[int, ...] = ()
    """Addresses of arena, params and states in the previous call."""
    calls: int = 0
    """Number of calls in a row with these addresses."""
    recording: Recording | None = None

    @property
    def is_worth_recording(self) -> bool:
        """Return whether the saved launches take longer than the extra copies."""
        launches = sum(map(len, self.parts))
        copied = sum(spec.nbytes for *_, spec in (*self.sizes.inputs, *self.sizes.outputs))
        return launches >= RECORD_FROM and copied <= COPY_PER_LAUNCH * launches


@dataclass
class BoundState:
    """The params and states of a call."""

    arguments: tuple[Any, ...] = ()
    arrays: list[DeviceArray] = field(default_factory=list)
    """The arrays on the device."""
    copies: list[tuple[Any, DeviceArray, bool]] = field(default_factory=list)
    """(array, dense copy on the device, whether the program writes it) of each array that is not dense on the
    device."""
    written: list[tuple[int, int]] = field(default_factory=list)
    """(start, end) addresses of written arrays."""


class DeviceExecutable(Checks):
    """Program on a device with its constants. Several threads may call it; they take turns."""

    code_bytes = 0
    """Bytes of its code, where known."""
    takes = (DeviceArray, np.ndarray, np.generic)
    takes_text = "an array of its device or a NumPy array"

    def __init__(self, plan: DevicePlan, device: Device, module: Module, constants: np.ndarray, records: bool = True):
        """``constants`` is the constant block as bytes. With ``records``, calls on the same memory are recorded, which
        takes memory for inputs and outputs. Raises ArtifactError when the constants do not fit the plan."""
        super().__init__(plan.manifest)
        if constants.nbytes != self.manifest.constants:
            raise ArtifactError(
                f"the constant block has {constants.nbytes} bytes, {self.manifest.constants} are declared"
            )
        self.plan = plan
        self.device = device
        self.sizes = SizesOfCalls(self.manifest)
        """Computes the sizes of each call."""
        self.explain: Explain | None = None
        """Returns the error for the check that fails on these inputs and bound arrays."""
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
        self._bound = BoundState()
        self._mirrors: dict[int, DeviceArray] = {}
        """Device memory for params and states on the host, by position."""
        self._records = records
        self._marks: list[tuple[str, Any]] | None = None
        """(kernel, event after its launch) of a call that is timed, after an event at its start."""
        self.replays = 0
        """Number of calls that replayed a recording."""

    @property
    def nbytes(self) -> int:
        """Bytes of the program on the device: constants, copies of params and states, slots of recordings."""
        recordings = [s.recording.nbytes for s in self._sized.values() if s.recording is not None]
        return self.manifest.constants + sum(m.nbytes for m in self._mirrors.values()) + sum(recordings)

    def __call__(self, *inputs: Any) -> list[Any]:
        """Run a program without params and states."""
        return self.run(inputs)

    def run(
        self,
        inputs: Sequence[Any],
        bound: Sequence[Any] = (),
        out: Sequence[Any] | None = None,
        dim_sizes: Mapping[str, int] | None = None,
        host: bool | None = None,
    ) -> list[Any]:
        """Run the program and return its outputs in order: the arrays in ``out`` (on device or host), or new arrays.

        New arrays are on the host if ``host``, else on the device; the default is the host if all arguments are there.
        ``bound`` holds the arrays of ``self.bound``. Dense device arrays are used in place. Host arrays are copied to
        the device in each call, and written states back. ``dim_sizes`` is as in ``call.Executable.run``. Raises
        ArgumentError (count, kind, device, overlap), DTypeError and ShapeError before anything is written. Raises
        IndexRangeError for an index or label out of range, before any param or state is written.
        """
        if host is None:
            host = not any(isinstance(array, DeviceArray) for array in (*inputs, *bound))
        with self._shared.lock:
            sizes = self._sizes_of(inputs, dim_sizes)
            if len(inputs) != len(sizes.inputs):
                raise self.wrong_count("input", self.inputs, len(inputs))
            self._bind(bound)
            arrays = [self._converted(spec, x) for x, (*_, spec) in zip(inputs, sizes.inputs, strict=True)]
            results = None if out is None else self._results(sizes, arrays, list(out))
            for array, copy, _ in self._bound.copies:
                _fill(copy, array)
            outputs = self._execute(self._for_sizes(sizes), arrays, results, inputs)
            for array, copy, written in self._bound.copies:
                if written:
                    _fill(array, copy)
            if out is not None:
                for target, array in zip(out, outputs, strict=True):
                    _fill(target, array)
                return list(out)
            return [array.get() for array in outputs] if host else list(outputs)

    def timed(self, inputs: Sequence[Any], bound: Sequence[Any] = ()) -> list[tuple[str, float]]:
        """Run the program as ``run`` does, launch by launch. Return (kernel, milliseconds) of each launch in order: the
        device time since the launch before it, including the host's time to launch."""
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
        """Free the memory of recordings and of copies of params and states; later calls take it again."""
        with self._shared.lock:
            self._mirrors.clear()
            self._bound = BoundState()
            self.forget_recordings()

    def forget_recordings(self) -> None:
        """Free the memory of recordings; later calls record again if that pays off."""
        for sized in self._sized.values():
            sized.recording, sized.calls = None, 0

    # ---- a call

    def _execute(
        self, sized: Sized, arrays: Sequence[Any], results: list[DeviceArray | None] | None, inputs: Sequence[Any]
    ) -> list[DeviceArray]:
        """Run the program on checked arguments; return the outputs on the device."""
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
        """Make a call that launches each kernel."""
        inputs_on_device = [
            self._apart(array if isinstance(array, DeviceArray) else from_host(self.device, array)) for array in arrays
        ]
        output_arrays = list(results) if results is not None else [None] * len(sized.sizes.outputs)
        for (slot, *_), array in zip(sized.sizes.inputs, inputs_on_device, strict=True):
            addresses[slot] = array.address
        outputs = []
        for (slot, dtype, shape, _), array in zip(sized.sizes.outputs, output_arrays, strict=True):
            outputs.append(empty(self.device, shape, dtype) if array is None else array)
            addresses[slot] = outputs[-1].address
        for number, steps in enumerate(sized.parts):
            self._launch(steps, addresses)
            if number + 1 < len(sized.parts):
                self._look(inputs)
        return outputs

    def _place(self, sized: Sized, addresses: list[int]) -> Memory | None:
        """Fill in the addresses of all buffers except inputs and outputs; return the arena."""
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

    def _launch(self, steps: Sequence[PlannedLaunch], addresses: Sequence[int]) -> None:
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
        """Raise when a check has failed."""
        if self._status is not None and self._status.get()[0]:
            self._status.set(np.zeros(1, np.bool_))
            raise self._stopped(inputs)

    def _stopped(self, inputs: Sequence[Any]) -> GraphcError:
        """Return the error of a call stopped by a check."""
        paths = [b.path for b in self.bound]
        if self.explain is not None:
            bound = dict(zip(paths, map(_on_host, self._bound.arguments), strict=True))
            error = self.explain([_on_host(x) for x in inputs], bound)
            if error is not None:
                return error
        return IndexRangeError(
            f"an index or label is out of range, or a condition false, in a call of {self.manifest.name}"
        )

    # ---- recordings

    def _recorded(self, sized: Sized, addresses: Sequence[int], arena: Memory | None) -> Recording | None:
        """Return a new recording; drop the least recently used ones if there are too many. If the device refuses to
        record, warn, and record nothing from now on."""
        others = [s for s in self._sized.values() if s.recording is not None]
        for other in others[: len(others) - MAX_RECORDINGS + 1]:
            other.recording, other.calls = None, 0
        try:
            return self._record(sized, addresses, arena)
        except (DeviceError, MemoryLimitError) as error:
            what = f"{self.manifest.name} is launched kernel by kernel, because it could not be recorded: {error.what}"
            warnings.warn(what, RuntimeWarning, stacklevel=2)
            self._records = False
            return None

    def _record(self, sized: Sized, addresses: Sequence[int], arena: Memory | None) -> Recording:
        """Record the launches on new slots without running them."""
        buffers = (*sized.sizes.inputs, *sized.sizes.outputs)
        slots = [empty(self.device, shape, dtype) for _, dtype, shape, _ in buffers]
        words = list(addresses)
        for (slot, *_), array in zip(buffers, slots, strict=True):
            words[slot] = array.address
        graphs = []
        for steps in sized.parts:
            self.device.begin_capture()
            try:
                self._launch(steps, words)
            # NOTE: also Ctrl-C: an unfinished capture would record later launches. The exception is raised again.
            except BaseException:
                with suppress(DeviceError):  # the first error says more
                    self.device.end_capture()
                raise
            graphs.append(self.device.end_capture())
        return Recording(sized.key, slots, tuple(graphs), arena)

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
        for number, graph in enumerate(recording.parts):
            graph.launch()
            if number + 1 < len(recording.parts):
                self._look(inputs)
        # New outputs are copies, because the next replay writes to the slots again.
        slots = recording.slots[count:]
        return slots if results is not None else [slot.copy() for slot in slots]

    # ---- arguments

    def _sizes_of(self, inputs: Sequence[Any], dim_sizes: Mapping[str, int] | None) -> CallSizes:
        if self.sizes.fixed is not None:
            return self.sizes.fixed
        if dim_sizes is not None:
            return self.sizes.of_values(dim_sizes)
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
        """Return the launches for these sizes, from an LRU cache."""
        sized = self._sized.get(sizes)
        if sized is None:
            first = len(self.manifest.buffers)
            words = dict(sizes.words)
            steps, checked = self.plan.steps({d: words[first + i] for i, d in enumerate(self.manifest.dims)})
            launches = (tuple(steps[:checked]), tuple(steps[checked:])) if checked else (tuple(steps),)
            sized = self._sized[sizes] = Sized(sizes, launches)
            if len(self._sized) > MAX_SIZES:
                self._sized.popitem(last=False)
        self._sized.move_to_end(sizes)
        return sized

    def _converted(self, spec: BufferSpec, value: Any) -> Any:
        """Return an input as a dense array of the declared type, on the device or the host; raises if it has another
        type."""
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
        """Copy a checked input into its slot."""
        if not isinstance(array, DeviceArray):
            slot.set(array)
        elif slot.nbytes:
            self.device.copy(slot.address, array.address, slot.nbytes)

    def _apart(self, array: DeviceArray) -> DeviceArray:
        """Return the array, or a copy if it shares memory with a written param or state."""
        start, stop = array.byte_bounds()
        overlaps = any(start < end and first < stop for first, end in self._bound.written)
        return array.copy() if overlaps and array.size else array

    def _bind(self, bound: Sequence[Any]) -> None:
        """Check the params and states unless the previous call had the same ones, and assign device memory to them."""
        old = self._bound.arguments
        if len(bound) != len(self.bound):
            raise self.wrong_count("param or state", self.bound, len(bound))
        if len(old) == len(bound) and all(a is b for a, b in zip(old, bound, strict=True)):
            return
        binding = BoundState(tuple(bound))
        spans: dict[bool, list[tuple[int, int, BufferSpec]]] = {True: [], False: []}
        for number, (spec, value) in enumerate(zip(self.bound, bound, strict=True)):
            array = self._placed(binding, number, spec, value)
            binding.arrays.append(array)
            if array.size:
                spans[isinstance(value, DeviceArray)].append((*_bounds(value), spec))
            if spec.written and array.size:
                binding.written.append(array.byte_bounds())
        for group in spans.values():
            self.check_spans(sorted(group, key=lambda span: span[:2]))
        self._bound = binding

    def _placed(self, binding: BoundState, number: int, spec: BufferSpec, value: Any) -> DeviceArray:
        """Return the device array of a param or state."""
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
        binding.copies.append((value, self._mirrors[number], spec.written))
        return self._mirrors[number]

    def _results(self, sizes: CallSizes, arrays: Sequence[Any], out: list[Any]) -> list[DeviceArray | None]:
        """Return the arrays in ``out`` on the device, None for host arrays. Raise unless each can hold
        its output and shares no memory."""
        if len(out) != len(self.outputs):
            raise self.wrong_count("output", self.outputs, len(out))
        in_use = [(spec, a) for a, (*_, spec) in zip(arrays, sizes.inputs, strict=True)]
        in_use += list(zip(self.bound, self._bound.arguments, strict=True))
        targets: list[DeviceArray | None] = []
        for array, (*_, spec) in zip(out, sizes.outputs, strict=True):
            self.check(spec, array)
            on_device = isinstance(array, DeviceArray)
            if on_device:
                self._check_device(spec, array)
            if not array.flags.c_contiguous or not array.flags.writeable:
                raise ArgumentError(
                    f"the array for {title(spec)} is not dense and writeable", remedy="allocate it with np.empty(...)"
                )
            for other, used in in_use:
                if isinstance(used, DeviceArray) == on_device and _overlap(used, array):
                    raise ArgumentError(
                        f"the array for {title(spec)} shares memory with {title(other)}", remedy="pass another array"
                    )
            in_use.append((spec, array))
            targets.append(array if on_device else None)
        return targets


def _bounds(array: Any) -> tuple[int, int]:
    """Return the addresses of the first byte of an array and of the byte after its last."""
    return array.byte_bounds() if isinstance(array, DeviceArray) else np.lib.array_utils.byte_bounds(array)


def _overlap(a: Any, b: Any) -> bool:
    (start, stop), (first, end) = _bounds(a), _bounds(b)
    return bool(a.size and b.size) and start < end and first < stop


def _on_host(value: Any) -> Any:
    return value.get() if isinstance(value, DeviceArray) else value


def _fill(target: Any, source: Any) -> None:
    """Copy elements between arrays of one shape and type, on the device or the host."""
    if target is source:
        return
    if not isinstance(target, DeviceArray):
        np.copyto(target, _on_host(source))
    elif isinstance(source, DeviceArray):
        target.assign(source)
    else:
        target.set(source)
