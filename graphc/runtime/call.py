"""Calls of a native program: arguments are checked, outputs allocated, and one native function runs."""

from __future__ import annotations

import ctypes
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from operator import is_
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
from graphc.files.manifest import INTERRUPTIBLE_NS, BufferSpec, Manifest
from graphc.runtime.arena import POOL, Arena, address_of, aligned, empty, empty_together
from graphc.runtime.call_checks import Checks, scalar, title
from graphc.runtime.call_sizes import CallSizes, SizesOfCalls, numpy_type, table_slots
from graphc.runtime.interrupts import run_interruptibly
from graphc.runtime.loader import Library

OWN_ARENA = 1 << 18
"""Bytes up to which scratch memory belongs to the program; larger arenas are shared by all programs."""
Explain = Callable[[Sequence[Any], Mapping[str, np.ndarray]], GraphcError | None]
_NDARRAY = np.ndarray
_DENSE = 0x101
"""C-contiguous and aligned, in ``ndarray.flags.num``."""


class Frame:
    """Table of addresses of one call at a time, and the params and states that it points to."""

    __slots__ = (
        *("address", "arena", "bound", "copies", "last", "plain"),
        *("pointers", "sizes", "source", "starts", "status", "stops"),
    )

    def __init__(self, count: int):
        """The table has ``count`` words, and one more."""
        self.pointers = (ctypes.c_size_t * (count + 1))()
        self.address = ctypes.addressof(self.pointers)
        self.last = ctypes.c_size_t.from_buffer(self.pointers, count * ctypes.sizeof(ctypes.c_size_t))
        """The word behind all others, which programs with polls have."""
        self.status = (ctypes.c_uint8 * 1)()
        """Not 0 after a call that stopped because a check failed; who sees it sets it back."""
        self.arena: Arena | None = None
        """Scratch memory, when it is so small that each frame has its own."""
        self.plain = False
        """Whether a call is nothing but the native entry: no copies, no arena to take."""
        self.sizes: CallSizes | None = None
        """The sizes of the call before."""
        self.source: tuple[np.ndarray, ...] | None = None
        """The tuple that was bound last, None when it was no tuple."""
        self.bound: tuple[np.ndarray, ...] | None = None
        """Its arrays; they stay alive because their addresses are in use."""
        self.copies: list[tuple[np.ndarray, np.ndarray, bool]] = []
        """(array, dense copy, written) of each bound array that is not dense."""
        self.starts: list[int] = []
        """Where the memory of written params and states starts, in order."""
        self.stops: list[int] = []

    def writes(self, start: int, size: int) -> bool:
        """Whether the program writes to some of the ``size`` bytes from ``start`` on through a param or state."""
        at = bisect_right(self.starts, start + size - 1) - 1
        return size > 0 and at >= 0 and self.stops[at] > start


class Executable(Checks):
    """A native program with its constants, callable from several threads at once.

    A program that writes to states must not run twice at a time on the same states; that is up to the caller.
    """

    def __init__(self, manifest: Manifest, library: Library, constants: np.ndarray):
        """``constants`` is the constant block as bytes. Raises ArtifactError when it does not fit the manifest."""
        if constants.nbytes != manifest.constants:
            raise ArtifactError(f"the constant block has {constants.nbytes} bytes, {manifest.constants} are declared")
        super().__init__(manifest)
        slots = table_slots(manifest)
        self._library = library
        self._entry = library.entry
        self.entry = library.address
        """Address of the entry."""
        self._constants = aligned(constants)
        self.sizes = SizesOfCalls(manifest)
        """The sizes that a call has."""
        self._fixed = self.sizes.fixed
        self._ends = tuple(slots[b.name] for b in (*self.inputs, *self.outputs))
        self.given_slots: tuple[int, ...] = ()
        """Of params and states that calls give the addresses of (``give_at``)."""
        self._places = tuple((slots[b.name], numpy_type(b), b.shape, b) for b in self.bound)
        self.arena_slot = next((slots[b.name] for b in manifest.of_class("arena")), -1)
        self.status_slot = next((slots[b.name] for b in manifest.of_class("status")), -1)
        self.explain: Explain | None = None
        """Says which check fails for inputs and bound arrays."""
        self._constant_slots = tuple((slots[b.name], b.offset) for b in manifest.of_class("constant"))
        self.interruptible = manifest.nanoseconds >= INTERRUPTIBLE_NS
        """Whether Ctrl-C ends a call early, see runtime.interrupts."""
        self._writes_bound = any(b.written for b in self.bound)
        self._paths = tuple(b.path for b in self.bound)
        self._frames: list[Frame] = []

    @property
    def code_bytes(self) -> int:
        """Bytes of the object file."""
        return self._library.nbytes

    @property
    def nbytes(self) -> int:
        """Bytes of code, constants, and scratch memory that is its own."""
        if self._fixed is None:
            own = sum(frame.arena.size for frame in self._frames if frame.arena is not None)
        else:
            own = (1 + len(self._frames)) * self._fixed.arena if self._fixed.arena <= OWN_ARENA else 0
        return self._library.nbytes + self._constants.nbytes + own

    def __call__(self, *inputs: Any) -> list[np.ndarray]:
        """Runs a program without params and states."""
        return self.run(inputs)

    def run(
        self,
        inputs: Sequence[Any],
        bound: Sequence[np.ndarray] = (),
        out: Sequence[np.ndarray] | None = None,
        given: Mapping[str, int] | None = None,
    ) -> list[np.ndarray]:
        """Runs the program and returns its outputs in order, freshly allocated or the arrays in ``out``.

        ``bound`` holds the arrays of ``self.bound``; states are written in place. The quickest way to pass them is the
        same tuple in each call. ``given`` holds the sizes of named dimensions where no input tells them. An input that
        is not dense, or of the other byte order, is copied. Raises ArgumentError (count, kind, overlap), DTypeError and
        ShapeError; nothing has been written then. Raises IndexRangeError for an index or label out of range; no param
        or state has been written then.
        """
        try:
            frame = self._frames.pop()
        except IndexError:
            frame = self._new_frame()
        try:
            if bound is not frame.source:
                self._bind(frame, bound)
            sizes = self._fixed or (self._sizes_of(inputs) if given is None else self.sizes.of_values(given))
            if sizes is not frame.sizes:
                self.fit(frame, sizes)
            kept = self._take_inputs(frame, sizes, inputs)
            results = self._allocate(frame, sizes) if out is None else self._take_out(frame, sizes, list(out))
            if frame.plain:
                self._entry(frame.address)
            else:
                self._execute(frame, sizes)
            if frame.status[0]:
                frame.status[0] = 0
                raise self._stopped(inputs, bound)
            del kept
        finally:
            self._frames.append(frame)
        return results

    def give_at(self, paths: Sequence[str]) -> None:
        """Has calls of ``run_at`` give the addresses of the params and states of these paths behind those of the
        inputs, and ``inputs`` their arrays; they are no bound arrays from now on. To be called before any other."""
        slots = dict(zip(self._paths, self._places, strict=True))
        self.given_slots = tuple([slots[path][0] for path in paths])
        count = len(self.inputs)
        self._ends = (*self._ends[:count], *self.given_slots, *self._ends[count:])
        kept = [i for i, path in enumerate(self._paths) if path not in paths]
        self.bound, self._places = tuple([self.bound[i] for i in kept]), tuple([self._places[i] for i in kept])
        self._paths = (*[self._paths[i] for i in kept], *paths)
        self._writes_bound = any(b.written for b in self.bound)

    def run_at(
        self,
        addresses: Sequence[int],
        sizes: CallSizes,
        bound: tuple[np.ndarray, ...],
        inputs: Callable[[], Sequence[Any]],
    ) -> None:
        """Runs the program on memory of others, for which the caller answers: addresses of the inputs and then of the
        outputs, dense, of the declared types and ``sizes``, apart from what is written. A number lies there as an i64.
        ``inputs`` makes what ``run`` takes, for the message of an error; raises what ``run`` does."""
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
                given, count = inputs(), len(self.inputs)
                raise self._stopped(given[:count], (*bound, *given[count:]))
        finally:
            self._frames.append(frame)

    def _sizes_of(self, inputs: Sequence[Any]) -> CallSizes:
        """The sizes of a call of a program with named dimensions."""
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
        """Makes a frame, in which no call is, fit for calls of these sizes."""
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
        """Points the frame to the inputs; returns the copies that must live until the call is over."""
        if len(inputs) != len(sizes.inputs):
            raise self.wrong_count("input", self.inputs, len(inputs))
        pointers = frame.pointers
        kept: list[np.ndarray] = []
        for array, (slot, dtype, shape, spec) in zip(inputs, sizes.inputs):  # noqa: B905 (strict costs 0.2 us)
            if (
                type(array) is not _NDARRAY
                or array.dtype is not dtype
                or array.shape != shape
                or array.flags.num & _DENSE != _DENSE
            ):
                array = self._convert(spec, array)
                kept.append(array)
            pointers[slot] = address_of(array)
        if self._writes_bound:
            self._separate(frame, sizes, kept)
        return kept

    def _allocate(self, frame: Frame, sizes: CallSizes) -> list[np.ndarray]:
        results = []
        pointers = frame.pointers
        for slot, dtype, shape, size in sizes.results:
            array = empty(shape, dtype, size)
            pointers[slot] = address_of(array)
            results.append(array)
        return results

    def outputs_together(self, apart: Sequence[bool]) -> list[np.ndarray]:
        """Arrays for ``out`` of a program without named dimensions: in one block of memory, but for those that are
        ``apart``."""
        assert self._fixed is not None
        kinds = [(shape, dtype, size) for _, dtype, shape, size in self._fixed.results]
        block = iter(empty_together([k for k, alone in zip(kinds, apart, strict=True) if not alone]))
        return [
            empty(shape, dtype, size) if alone else next(block)
            for (shape, dtype, size), alone in zip(kinds, apart, strict=True)
        ]

    def _execute(self, frame: Frame, sizes: CallSizes) -> None:
        """The call with all that a plain one does not need."""
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
        """The error of a call that a check has stopped."""
        found = None if self.explain is None else self.explain(inputs, dict(zip(self._paths, bound, strict=True)))
        return found or IndexRangeError(
            f"an index or label is out of range, or a condition false, in a call of {self.manifest.name}"
        )

    def _new_frame(self) -> Frame:
        frame = Frame(len(self.manifest.buffers) + len(self.manifest.dims))
        if self.status_slot >= 0:
            frame.pointers[self.status_slot] = ctypes.addressof(frame.status)
        for slot, offset in self._constant_slots:
            frame.pointers[slot] = address_of(self._constants) + offset
        if self._fixed is not None:
            self.fit(frame, self._fixed)
        return frame

    # ---- params and states

    def frame(self, bound: tuple[np.ndarray, ...]) -> Frame:
        """A frame for calls of the entry from native code, with the bound arrays checked and in their places."""
        frame = self._new_frame()
        self._bind(frame, bound)
        return frame

    def _bind(self, frame: Frame, bound: Sequence[np.ndarray]) -> None:
        """Points the frame to the bound arrays, which are checked when they are not those of the call before."""
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
        for (slot, dtype, shape, spec), array in zip(self._places, bound, strict=True):
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

    def _separate(self, frame: Frame, sizes: CallSizes, kept: list[np.ndarray]) -> None:
        """Copies inputs that share memory with what the program writes."""
        for slot, dtype, shape, spec in sizes.inputs:
            start = frame.pointers[slot]
            if frame.writes(start, spec.nbytes):
                copy = empty(shape, dtype, spec.nbytes)
                ctypes.memmove(address_of(copy), start, spec.nbytes)
                frame.pointers[slot] = address_of(copy)
                kept.append(copy)

    # ---- checks

    def _convert(self, spec: BufferSpec, value: Any) -> np.ndarray:
        """A dense array of the declared type with the value of an input; raises when it has another type."""
        if isinstance(value, bool | int | float) and not spec.shape:
            value = scalar(spec, value)
        elif spec.equals is not None:
            value = np.asarray(value, np.int64)
        self.check(spec, value)
        return np.require(value, numpy_type(spec), ["C", "A"])

    def _take_out(self, frame: Frame, sizes: CallSizes, out: list[np.ndarray]) -> list[np.ndarray]:
        """Points the frame to ``out``; raises unless each array can take its output and shares memory with nothing."""
        if len(out) != len(self.outputs):
            raise self.wrong_count("output", self.outputs, len(out))
        taken = [(spec, frame.pointers[slot]) for slot, _, _, spec in sizes.inputs]
        taken += [(spec, frame.pointers[slot]) for slot, _, _, spec in self._places]
        for array, (slot, _, _, spec) in zip(out, sizes.outputs, strict=True):
            self.check(spec, array)
            flags = array.flags
            if flags.num & _DENSE != _DENSE or not flags.writeable or not array.dtype.isnative:
                raise ArgumentError(f"the array for {title(spec)} is not dense and writeable", remedy="np.empty(...)")
            start = address_of(array)
            for other, place in taken:
                if start < place + other.nbytes and place < start + spec.nbytes:
                    raise ArgumentError(
                        f"the array for {title(spec)} shares memory with {title(other)}", remedy="another array"
                    )
            taken.append((spec, start))
            frame.pointers[slot] = start
        return out
