"""Calls of a native program: arguments are checked, outputs allocated, and one native function runs."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import is_
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from graphc.base.errors import (
    ArgumentError,
    ArtifactError,
    GraphcError,
    IndexRangeError,
    ShapeError,
)
from graphc.base.location import capture
from graphc.files.manifest import INTERRUPTIBLE_NS, BufferSpec, Manifest
from graphc.runtime.arena import POOL, Arena, address_of, aligned, empty, empty_together
from graphc.runtime.call_checks import Checks, scalar, title
from graphc.runtime.call_sizes import CallSizes, SizesOfCalls, numpy_type, table_slots
from graphc.runtime.interrupts import run_interruptibly
from graphc.runtime.loader import Library

OWN_ARENA = 1 << 18
"""Maximum bytes of scratch memory that a program owns. All programs share the larger arenas."""
TIMING: list[Callable[..., list[np.ndarray] | None]] = []
"""Timers of kernels, the last of which makes the calls of ``Executable.run`` while there is one; it returns None for
programs that it cannot time. Native calls decline as long."""


@contextmanager
def timing(timer: Callable[..., list[np.ndarray] | None]) -> Iterator[None]:
    """Let a timer make the calls of all programs while the block runs."""
    TIMING.append(timer)
    try:
        yield
    finally:
        TIMING.remove(timer)


Explain = Callable[[Sequence[Any], Mapping[str, np.ndarray]], GraphcError | None]
_NDARRAY = np.ndarray
_DENSE = 0x101
"""C-contiguous and aligned, in ``ndarray.flags.num``."""


class Frame:
    """Address table of one call at a time, with the params and states it points to."""

    __slots__ = (
        *("address", "arena", "bound", "copies", "last", "plain"),
        *("pointers", "sizes", "source", "starts", "status", "stops"),
    )

    def __init__(self, count: int):
        """The table has ``count`` words and one more at its end."""
        self.pointers = (ctypes.c_size_t * (count + 1))()
        self.address = ctypes.addressof(self.pointers)
        self.last = ctypes.c_size_t.from_buffer(self.pointers, count * ctypes.sizeof(ctypes.c_size_t))
        """The extra word, which programs with polls use."""
        self.status = (ctypes.c_uint8 * 1)()
        """Not 0 after a call that a failed check stopped; the reader resets it."""
        self.arena: Arena | None = None
        """Scratch memory of this frame, if it is small enough."""
        self.plain = False
        """Whether a call only runs the native entry: no copies, no shared arena."""
        self.sizes: CallSizes | None = None
        """Sizes of the previous call."""
        self.source: tuple[np.ndarray, ...] | None = None
        """The tuple that was bound last; None if it was not a tuple."""
        self.bound: tuple[np.ndarray, ...] | None = None
        """Arrays of the last binding, kept alive because the table holds their addresses."""
        self.copies: list[tuple[np.ndarray, np.ndarray, bool]] = []
        """(array, dense copy, written) of each bound array that is not dense."""
        self.starts: list[int] = []
        """Start addresses of written params and states, in ascending order."""
        self.stops: list[int] = []

    def writes(self, start: int, size: int) -> bool:
        """Return whether the program writes to some of the ``size`` bytes from ``start`` on through a param or
        state."""
        at = bisect_right(self.starts, start + size - 1) - 1
        return size > 0 and at >= 0 and self.stops[at] > start


class Executable(Checks):
    """Native program with its constants, callable from several threads at once.

    Two calls at a time must not write to the same states; the caller ensures that.
    """

    device: Any = None
    """The device of the program's arrays; None for the host."""

    def __init__(
        self,
        manifest: Manifest,
        library: Library,
        constants: np.ndarray,
        weights: Mapping[str, np.ndarray] = MappingProxyType({}),
    ):
        """``constants`` is the constant block as bytes; ``weights`` have those constants that it does not hold. Raises
        ArtifactError when they do not fit the manifest."""
        if constants.nbytes != manifest.constants:
            raise ArtifactError(f"the constant block has {constants.nbytes} bytes, {manifest.constants} are declared")
        super().__init__(manifest)
        slots = table_slots(manifest)
        self._library = library
        self._entry = library.entry
        self.entry = library.address
        """Address of the entry."""
        self._constants = aligned(constants)
        self._weights = {name: aligned(array) for name, array in weights.items()}
        self.sizes = SizesOfCalls(manifest)
        """Computes the sizes of each call."""
        self._fixed = self.sizes.fixed
        self._ends = tuple(slots[b.name] for b in (*self.inputs, *self.outputs))
        self.given_slots: tuple[int, ...] = ()
        """Table words of the params and states whose addresses calls pass (``give_at``)."""
        self._bound_layouts = tuple((slots[b.name], numpy_type(b), b.shape, b) for b in self.bound)
        self.arena_slot = next((slots[b.name] for b in manifest.of_class("arena")), -1)
        self.status_slot = next((slots[b.name] for b in manifest.of_class("status")), -1)
        self.explain: Explain | None = None
        """Returns the error for the check that fails on these inputs and bound arrays."""
        self.stages: Callable[[], Any] | None = None
        """Returns the stages of the program, where they can be computed again, to time its kernels."""
        self._constant_slots = tuple((slots[b.name], self._address(b)) for b in manifest.of_class("constant"))
        self.interruptible = manifest.nanoseconds >= INTERRUPTIBLE_NS
        """Whether Ctrl-C ends a call early; see runtime.interrupts."""
        self._writes_bound = any(b.written for b in self.bound)
        self._paths = tuple(b.path for b in self.bound)
        self._frames: list[Frame] = []

    def _address(self, constant: BufferSpec) -> int:
        if constant.offset >= 0:
            return address_of(self._constants) + constant.offset
        weight = self._weights.get(constant.path)
        if weight is None or weight.nbytes != constant.nbytes:
            raise ArtifactError(f"the constant {constant.name!r} is the weight {constant.path!r}, which does not fit")
        return address_of(weight)

    @property
    def code_bytes(self) -> int:
        """Bytes of the object file."""
        return self._library.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, and the program's own scratch memory."""
        if self._fixed is None:
            own = sum(frame.arena.size for frame in self._frames if frame.arena is not None)
        else:
            own = (1 + len(self._frames)) * self._fixed.arena if self._fixed.arena <= OWN_ARENA else 0
        return self._library.nbytes + self._constants.nbytes + own

    def __call__(self, *inputs: Any) -> list[np.ndarray]:
        """Run a program without params and states."""
        return self.run(inputs)

    def run(
        self,
        inputs: Sequence[Any],
        bound: Sequence[np.ndarray] = (),
        out: Sequence[np.ndarray] | None = None,
        dim_sizes: Mapping[str, int] | None = None,
    ) -> list[np.ndarray]:
        """Run the program and return its outputs in order: newly allocated arrays, or those in ``out``.

        ``bound`` holds the arrays of ``self.bound``; states are written in place. Passing the same tuple in each call
        is fastest. ``dim_sizes`` holds the sizes of named dimensions that no input determines. Inputs that are not
        dense, or of the other byte order, are copied. Raises ArgumentError (count, kind, overlap), DTypeError and
        ShapeError before anything is written. Raises IndexRangeError for an index or label out of range, before any
        param or state is written.
        """
        if TIMING and (timed := TIMING[-1](self, inputs, bound, out, dim_sizes)) is not None:
            return timed
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._new_frame()
        try:
            if bound is not frame.source:
                self._bind(frame, bound)
            sizes = self._fixed or (self._sizes_of(inputs) if dim_sizes is None else self.sizes.of_values(dim_sizes))
            if sizes is not frame.sizes:
                self.fit(frame, sizes)
            copies = self._take_inputs(frame, sizes, inputs)
            results = self._allocate(frame, sizes) if out is None else self._take_out(frame, sizes, list(out))
            if frame.plain:
                self._entry(frame.address)
            else:
                self._execute(frame, sizes)
            if frame.status[0]:
                frame.status[0] = 0
                raise self._stopped(inputs, bound)
            del copies
        finally:
            self._frames.append(frame)
        return results

    def give_at(self, paths: Sequence[str]) -> None:
        """Make callers of ``run_at`` pass the addresses of these params and states after those of the inputs, and their
        arrays at the end of ``inputs``. They stop being bound arrays. Call this before any other method."""
        slots = dict(zip(self._paths, self._bound_layouts, strict=True))
        self.given_slots = tuple([slots[path][0] for path in paths])
        count = len(self.inputs)
        self._ends = (*self._ends[:count], *self.given_slots, *self._ends[count:])
        remaining = [i for i, path in enumerate(self._paths) if path not in paths]
        self.bound, self._bound_layouts = (
            tuple([self.bound[i] for i in remaining]),
            tuple([self._bound_layouts[i] for i in remaining]),
        )
        self._paths = (*[self._paths[i] for i in remaining], *paths)
        self._writes_bound = any(b.written for b in self.bound)

    def run_at(
        self,
        addresses: Sequence[int],
        sizes: CallSizes,
        bound: tuple[np.ndarray, ...],
        inputs: Callable[[], Sequence[Any]],
    ) -> None:
        """Run the program on unchecked memory of the caller.

        ``addresses`` holds the inputs' addresses, then the outputs'. The arrays are dense, of the declared types and
        ``sizes``, and do not overlap outputs and written states. An integer input is an i64 in memory. ``inputs``
        returns the arguments of ``run`` for an error message. Raises what ``run`` does.
        """
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._new_frame()
        try:
            if bound is not frame.source:
                self._bind(frame, bound)
            if sizes is not frame.sizes:
                self.fit(frame, sizes)
            pointers = frame.pointers
            for slot, address in zip(self._ends, addresses):  # noqa: B905 (as above)
                pointers[slot] = address
            if frame.plain:
                self._entry(frame.address)
            else:
                self._execute(frame, sizes)
            if frame.status[0]:
                frame.status[0] = 0
                arguments, count = inputs(), len(self.inputs)
                raise self._stopped(arguments[:count], (*bound, *arguments[count:]))
        finally:
            self._frames.append(frame)

    def _sizes_of(self, inputs: Sequence[Any]) -> CallSizes:
        """Return the sizes of a call of a program with named dimensions."""
        if len(inputs) != len(self.inputs):
            raise self.wrong_count("input", self.inputs, len(inputs))
        for array, spec in zip(inputs, self.inputs, strict=True):
            if spec.shape and not isinstance(array, np.ndarray):
                self.check(spec, array)
        try:
            return self.sizes.of_inputs(inputs)
        except (ArgumentError, ShapeError) as error:
            error.where = error.where or self.signature
            raise

    def fit(self, frame: Frame, sizes: CallSizes) -> None:
        """Fit an idle frame to calls of these sizes."""
        for word, size in sizes.words:
            frame.pointers[word] = size
        if (
            self.arena_slot >= 0
            and sizes.arena <= OWN_ARENA
            and (frame.arena is None or frame.arena.size < sizes.arena)
        ):
            frame.arena = Arena(sizes.arena)
        own = sizes.arena <= OWN_ARENA and frame.arena is not None
        if own and frame.arena is not None:
            frame.pointers[self.arena_slot] = frame.arena.address
        frame.sizes = sizes
        frame.plain = (own or self.arena_slot < 0) and not frame.copies and not self.interruptible

    def _take_inputs(self, frame: Frame, sizes: CallSizes, inputs: Sequence[Any]) -> list[np.ndarray]:
        """Point the frame to the inputs. Return the copies that must live until the call ends."""
        if len(inputs) != len(sizes.inputs):
            raise self.wrong_count("input", self.inputs, len(inputs))
        pointers = frame.pointers
        copies: list[np.ndarray] = []
        for array, (slot, dtype, shape, spec) in zip(inputs, sizes.inputs):  # noqa: B905 (strict costs 0.2 us)
            if (
                type(array) is not _NDARRAY
                or array.dtype is not dtype
                or array.shape != shape
                or array.flags.num & _DENSE != _DENSE
            ):
                array = self._convert(spec, array)
                copies.append(array)
            pointers[slot] = address_of(array)
        if self._writes_bound:
            self._separate(frame, sizes, copies)
        return copies

    def _allocate(self, frame: Frame, sizes: CallSizes) -> list[np.ndarray]:
        results = []
        pointers = frame.pointers
        for slot, dtype, shape, size in sizes.results:
            array = empty(shape, dtype, size)
            pointers[slot] = address_of(array)
            results.append(array)
        return results

    def outputs_together(self, apart: Sequence[bool]) -> list[np.ndarray]:
        """Return arrays for ``out`` of a program without named dimensions: in one block of memory, except those marked
        in ``apart``."""
        assert self._fixed is not None
        kinds = [(shape, dtype, size) for _, dtype, shape, size in self._fixed.results]
        block = iter(empty_together([k for k, alone in zip(kinds, apart, strict=True) if not alone]))
        return [
            empty(shape, dtype, size) if alone else next(block)
            for (shape, dtype, size), alone in zip(kinds, apart, strict=True)
        ]

    def _execute(self, frame: Frame, sizes: CallSizes) -> None:
        """Make a call with copies, the shared arena, or interrupts."""
        frame.status[0] = 0  # a call that was interrupted may have left it set
        for array, copy, _ in frame.copies:
            np.copyto(copy, array)
        arena = POOL.take(sizes.arena)
        if self.arena_slot >= 0:
            frame.pointers[self.arena_slot] = arena.address
        try:
            if self.interruptible:
                run_interruptibly(self._entry, frame.last, frame.address)
            else:
                self._entry(frame.address)
        finally:
            POOL.give(arena)
        for array, copy, written in frame.copies:
            if written:
                np.copyto(array, copy)

    def _stopped(self, inputs: Sequence[Any], bound: Sequence[np.ndarray]) -> GraphcError:
        """Return the error of a call stopped by a check."""
        error = None if self.explain is None else self.explain(inputs, dict(zip(self._paths, bound, strict=True)))
        error = error or IndexRangeError(
            f"an index or label is out of range, or a condition false, in a call of {self.manifest.name}"
        )
        error.called = capture().describe() or None
        return error

    def _new_frame(self) -> Frame:
        frame = Frame(len(self.manifest.buffers) + len(self.manifest.dims))
        if self.status_slot >= 0:
            frame.pointers[self.status_slot] = ctypes.addressof(frame.status)
        for slot, address in self._constant_slots:
            frame.pointers[slot] = address
        if self._fixed is not None:
            self.fit(frame, self._fixed)
        return frame

    # ---- params and states

    def frame(self, bound: tuple[np.ndarray, ...]) -> Frame:
        """Return a frame for native calls of the entry, bound to these arrays after checking them."""
        frame = self._new_frame()
        self._bind(frame, bound)
        return frame

    def _bind(self, frame: Frame, bound: Sequence[np.ndarray]) -> None:
        """Point the frame to the bound arrays. Check them unless the previous call had the same ones."""
        old = frame.bound
        if old is None or len(old) != len(bound) or not all(map(is_, bound, old)):
            frame.source = frame.bound = None
            self._point(frame, tuple(bound))
            frame.bound = tuple(bound)
        frame.source = bound if type(bound) is tuple else None
        if frame.sizes is not None:
            self.fit(frame, frame.sizes)

    def _point(self, frame: Frame, bound: tuple[np.ndarray, ...]) -> None:
        if len(bound) != len(self.bound):
            raise self.wrong_count("param or state", self.bound, len(bound))
        frame.copies = []
        for (slot, dtype, shape, spec), array in zip(self._bound_layouts, bound, strict=True):
            if type(array) is not _NDARRAY or array.dtype is not dtype or array.shape != shape:
                self.check(spec, array)
            if spec.written and not array.flags.writeable:
                raise ArgumentError(f"{title(spec)} is written by {self.manifest.name}, but its array is read-only")
            dense = array
            if array.flags.num & _DENSE != _DENSE or not array.dtype.isnative:
                dense = empty(shape, dtype, spec.nbytes)
                frame.copies.append((array, dense, spec.written))
            frame.pointers[slot] = address_of(dense)
        if self._writes_bound:
            pairs = zip(self.bound, bound, strict=True)
            spans = sorted(((*byte_bounds(a), b) for b, a in pairs if a.size), key=lambda span: span[:2])
            self.check_spans(spans)
            frame.starts = [start for start, _, spec in spans if spec.written]
            frame.stops = [stop for _, stop, spec in spans if spec.written]

    def _separate(self, frame: Frame, sizes: CallSizes, copies: list[np.ndarray]) -> None:
        """Copy inputs that share memory with written params or states."""
        for slot, dtype, shape, spec in sizes.inputs:
            start = frame.pointers[slot]
            if frame.writes(start, spec.nbytes):
                copy = empty(shape, dtype, spec.nbytes)
                ctypes.memmove(address_of(copy), start, spec.nbytes)
                frame.pointers[slot] = address_of(copy)
                copies.append(copy)

    # ---- checks

    def _convert(self, spec: BufferSpec, value: Any) -> np.ndarray:
        """Return a dense array of the declared type with the value of an input; raises if it has another type."""
        if isinstance(value, bool | int | float) and not spec.shape:
            value = scalar(spec, value)
        elif spec.equals is not None:
            value = np.asarray(value, np.int64)
        self.check(spec, value)
        return np.require(value, numpy_type(spec), ["C", "A"])

    def _take_out(self, frame: Frame, sizes: CallSizes, out: list[np.ndarray]) -> list[np.ndarray]:
        """Point the frame to ``out``. Raise unless each array can hold its output and shares no memory."""
        if len(out) != len(self.outputs):
            raise self.wrong_count("output", self.outputs, len(out))
        ends = [(spec, frame.pointers[slot]) for slot, _, _, spec in (*sizes.inputs, *self._bound_layouts)]
        used = [(spec, start, start + spec.nbytes) for spec, start in ends]
        for array, (slot, _, _, spec) in zip(out, sizes.outputs, strict=True):
            self.check(spec, array)
            flags = array.flags
            if flags.num & _DENSE != _DENSE or not flags.writeable or not array.dtype.isnative:
                raise ArgumentError(
                    f"the array for {title(spec)} is not dense and writeable", remedy="allocate it with np.empty(...)"
                )
            start = address_of(array)
            end = start + spec.nbytes
            for other, first, last in used:
                if start < last and first < end:
                    raise ArgumentError(
                        f"the array for {title(spec)} shares memory with {title(other)}", remedy="pass another array"
                    )
            used.append((spec, start, end))
            frame.pointers[slot] = start
        return out
