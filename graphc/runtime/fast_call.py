"""Calls without Python code: a native function checks the arguments, allocates the outputs and runs the program."""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from graphc.base.dtypes import BY_NAME
from graphc.base.errors import ArgumentError, CompileError, ShapeError
from graphc.base.sizes.assumptions import Assumption
from graphc.base.sizes.named_dims import size_of as dimension_size
from graphc.base.sizes.size import bounds, is_size
from graphc.base.sizes.size_limits import in_terms_of
from graphc.files.manifest import BufferSpec
from graphc.guards.watch_words import WatchTable
from graphc.runtime.arena import ALIGN_FROM, Arena
from graphc.runtime.call import OWN_ARENA, Executable, Frame
from graphc.runtime.call_sizes import CallSizes, table_slots
from graphc.runtime.interrupts import interruptible
from graphc.runtime.loader import host, link_forever
from graphc.runtime.size_steps import Move, Read, SizeStep, SizeSteps, Solver

SYMBOL, SAME = "graphc_call", "graphc_same"
"""Symbols of the native functions, of the kind METH_FASTCALL | METH_KEYWORDS. ``self`` is a Context for the first one
and a Watch for the second."""
RELEASE_FROM = 20_000
"""Predicted nanoseconds from which a call runs without the interpreter lock (releasing it costs about 60)."""
REUSE_FROM = 1 << 16
"""Bytes from which an unreachable output's memory is reused: new memory costs page faults."""
WAIT = 50e-6
"""Seconds between two checks of whether a native call has ended."""

_FASTCALL = 0x80 | 0x02
_POINTER, _INT, _FLAG = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32


# ---- records that native code reads


class Tensor(ctypes.Structure):
    """An input or output array of a call."""

    _fields_ = (
        ("dtype", _POINTER),  # numpy's one object for this element type
        ("extents", _POINTER),
        ("nbytes", _INT),
        ("slot", _INT),  # index in the table of addresses
        ("rank", _FLAG),  # -1 for an integer, whose value is the only extent
        ("block", _FLAG),  # index of the first of two reusable blocks of memory, or -1
    )


class Gate(ctypes.Structure):
    """Mutual exclusion of calls that share a table and arena, or states."""

    _fields_ = (("busy", _INT), ("waiting", _INT))

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        _gates.add(self)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Send native calls through this gate to their Python fallback while the block runs. The fallback waits at this
        gate."""
        with self.lock:
            self.waiting = 1
            try:
                while self.busy:
                    time.sleep(WAIT)
                yield
            finally:
                self.waiting = 0

    @contextmanager
    def alone_if_free(self) -> Iterator[bool]:
        """Do the same as ``alone`` without waiting. Yield whether no call is running, so that none runs during the
        block."""
        if not self.lock.acquire(blocking=False):
            yield False
            return
        try:
            self.waiting = 1
            yield not self.busy
        finally:
            self.waiting = 0
            self.lock.release()

    def __hash__(self) -> int:
        return id(self)


_gates: weakref.WeakSet[Gate] = weakref.WeakSet()


class Shared(ctypes.Structure):
    """The one arena of the process for native calls whose scratch memory is large."""

    _fields_ = (("address", _POINTER), ("size", _INT), ("busy", _INT))


_shared = Shared()
_shared_arena: list[Arena] = []


def _after_fork() -> None:
    # NOTE: fork() does not copy the thread that was inside a call.
    _shared.busy = 0
    for gate in _gates:
        gate.busy = gate.waiting = 0
        gate.lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


class Api(ctypes.Structure):
    """Objects and functions of the interpreter and of NumPy that native code uses."""

    _fields_ = tuple(
        (name, _POINTER)
        for name in (
            *("ndarray", "int", "none", "out", "bytes_dtype"),  # objects
            *("new_array", "set_base"),  # functions of NumPy
            *("incref", "decref", "call", "release", "acquire", "replace", "get", "number"),  # and of the interpreter
            "shared",
        )
    )


class CallContext(ctypes.Structure):
    """Data of a native call: ``self`` of the callable, and owner of everything the call uses."""

    _fields_ = (
        *((name, _POINTER) for name in ("api", "entry", "table", "gate", "inputs", "outputs", "bound", "blocks")),
        *((name, _POINTER) for name in ("watch", "status", "solver")),
        *((name, _POINTER) for name in ("fallback", "kind", "new", "set", "get", "slice")),
        *((name, _INT) for name in ("input_count", "output_count", "bound_count", "written_count")),
        *((name, _INT) for name in ("arena", "arena_slot", "releases")),
    )

    owned: tuple[Any, ...]
    """Objects that keep the memory behind the fields alive."""
    frame: Frame
    watched: WatchTable
    memory: list[np.ndarray | None]
    """Two blocks of memory for each large output."""


# ---- memory layout of objects

_OBJECTS = {
    "Object.references": 0,
    "Object.type": 8,
    "Array.data": 16,
    "Array.rank": 24,
    "Array.extents": 32,
    "Array.dtype": 56,
    "Array.flags": 64,
    "Sized.size": 16,
    "Tuple.items": tuple.__basicsize__,
    "Owner.data": 16,
}
"""Offsets in CPython with a global lock, 64 bit, and in NumPy 1 and 2."""


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


def _half(address: int) -> int:
    return ctypes.c_int32.from_address(address).value


def _array_as_expected(array: np.ndarray) -> bool:
    at = {name.split(".")[1]: id(array) + offset for name, offset in _OBJECTS.items() if "Array" in name}
    return (
        _word(id(array) + _OBJECTS["Object.type"]) == id(type(array))
        and _word(at["data"]) == array.ctypes.data
        and _half(at["rank"]) == array.ndim
        and tuple(_word(_word(at["extents"]) + 8 * i) for i in range(array.ndim)) == array.shape
        and _word(at["dtype"]) == id(array.dtype)
        and _half(at["flags"]) == array.flags.num
    )


def _objects_as_expected() -> bool:
    block = np.zeros((4, 6), np.float32)
    arrays = (np.zeros(5, np.float64), block, block[1:, ::2], block.T, np.zeros((), np.int8), np.zeros((0, 3, 2), bool))
    pair, structure, fresh = (arrays, block), Gate(), object()
    return (
        all(map(_array_as_expected, arrays))
        and _word(id(pair) + _OBJECTS["Sized.size"]) == 2
        and _word(id(pair) + _OBJECTS["Tuple.items"] + 8) == id(block)
        and _word(id(structure) + _OBJECTS["Owner.data"]) == ctypes.addressof(structure)
        and _half(id(fresh) + _OBJECTS["Object.references"]) == sys.getrefcount(fresh) - 1 == 1
    )


def _numpy_functions() -> tuple[int, int] | None:
    """Return the addresses of PyArray_NewFromDescr and PyArray_SetBaseObject, or None for an unknown API table."""
    capsule = getattr(import_module("numpy._core._multiarray_umath"), "_ARRAY_API", None)
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    if capsule is None:
        return None
    table = pointer(capsule, None)
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(_word(table))() >> 24
    if version not in (1, 2) or _word(table + 8 * 2) != id(np.ndarray):
        return None
    return _word(table + 8 * 94), _word(table + 8 * 282)


def _supported() -> bool:
    return (
        sys.implementation.name == "cpython"
        and "t" not in sys.abiflags  # the flag of free-threaded builds
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and sys.byteorder == "little"
    )


def function(name: str) -> int:
    """Return the address of a C function of the interpreter."""
    return ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value or 0


@cache
def api() -> Api | None:
    """Return the record for native calls in this process. Return None where calls must go through Python: other
    interpreters, free threading, other object layouts."""
    functions = _numpy_functions() if _supported() and _objects_as_expected() else None
    if functions is None:
        return None
    record = Api(
        ndarray=id(np.ndarray),
        int=id(int),
        none=id(None),
        out=id(sys.intern("out")),
        bytes_dtype=id(np.dtype(np.uint8)),
        new_array=functions[0],
        set_base=functions[1],
        incref=function("Py_IncRef"),
        decref=function("Py_DecRef"),
        call=function("PyObject_Vectorcall"),
        release=function("PyEval_SaveThread"),
        acquire=function("PyEval_RestoreThread"),
        replace=function("PyList_SetItem"),
        get=function("PyList_GetItem"),
        number=function("PyLong_AsLongLongAndOverflow"),
        shared=ctypes.addressof(_shared),
    )
    record.owned = (sys.intern("out"), np.dtype(np.uint8))  # type: ignore[attr-defined]
    return record


def layout() -> Mapping[str, int] | None:
    """Return the offset of each field read by the native function, by ``Record.field``; None where it cannot be
    used."""
    if api() is None:
        return None
    arrays = (Tensor, Read, SizeStep, Move)
    records = (*arrays, Gate, Shared, WatchTable, Api, CallContext, Solver)
    fields = {f"{r.__name__}.{f[0]}": getattr(r, f[0]).offset for r in records for f in r._fields_}
    sizes = {f"{r.__name__}.size": ctypes.sizeof(r) for r in arrays}
    sizes |= {"align_from": ALIGN_FROM, "reuse_from": REUSE_FROM}
    return {**_OBJECTS, **fields, **sizes}


# ---- callables


class Caller:
    """Native call function, loaded once for all programs."""

    def __init__(self, code: bytes):
        """``code`` is object code that defines ``graphc_call`` for the ``layout`` of this process."""
        interpreter = api()
        if interpreter is None:
            raise CompileError("native calls cannot be used in this interpreter")
        self._api = interpreter
        addresses = link_forever(code, (SYMBOL, SAME), host())
        self._record = Method(b"call", addresses[SYMBOL], _FASTCALL, inspect.cleandoc(_DOC).encode())
        self._same = Method(b"same", addresses[SAME], _FASTCALL, b"Return whether no watched word differs.")
        keep(self._record, self._same)

    def bind(
        self,
        program: Executable,
        bound: Sequence[np.ndarray],
        fallback: Callable[..., Any],
        kind: type | None = list,
        gate: Gate | None = None,
        watch: WatchTable | None = None,
        apart: bool = False,
        assumptions: Sequence[Assumption] = (),
    ) -> Callable[..., Any]:
        """Return a callable that runs a program on one array per input, with ``bound`` for its params and states.

        It takes the inputs by position and ``out=`` by name. It returns the outputs as a ``kind`` (list or tuple), or
        the only output itself if ``kind`` is None; ``out`` has that form too. A call goes to ``fallback`` with the same
        arguments if anything is not exactly as declared (count, type, layout, overlap), or while another call runs.
        ``fallback`` must not refer to the callable. A program that writes states shares its ``gate`` with its fallback.
        A call also goes to ``fallback`` if a word in ``watch`` has changed, if its sizes break one of ``assumptions``,
        or, with ``apart``, if a named dimension has one of its common sizes. Raises ArgumentError, ShapeError and
        DTypeError when ``bound`` does not fit.
        """
        sizes = program.sizes
        context = None
        if not sizes.are_given:
            context = _make_context(program, tuple(bound), kind, apart, assumptions)
        if context is None:
            return fallback
        own = gate or Gate()
        if program.sizes.fixed is None:
            fallback = _Reserving(program, fallback)
        context.api, context.gate = ctypes.addressof(self._api), ctypes.addressof(own)
        context.fallback = id(fallback)
        watch = watch or WatchTable()
        context.watch = ctypes.addressof(watch)
        context.owned = (*context.owned, self, own, fallback, watch)
        call = callable_of(self._record, context)
        return interruptible(call, fallback, context.frame.last) if program.interruptible else call

    def same(self, watch: WatchTable) -> Callable[[], bool]:
        """Return a callable that returns whether all watched words are unchanged."""
        watch.yes, watch.no, watch.incref = id(True), id(False), self._api.incref
        return callable_of(self._same, watch)


def callable_of(record: Method, owner: Any) -> Callable[..., Any]:
    """Return a Python callable of a native function, with ``owner`` as ``self``."""
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return make(ctypes.addressof(record), owner, None)


_DOC = """
    call(*arrays, out=None)
    --

    Run the compiled program on one array per input; write the outputs to ``out``.
"""
_records: list[Any] = []


def keep(*records: Method) -> None:
    """Keep records alive forever: the interpreter reads them when it frees a callable."""
    _records.extend(records)


class Method(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (("name", ctypes.c_char_p), ("function", _POINTER), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


def _make_context(
    program: Executable,
    bound: tuple[np.ndarray, ...],
    kind: type | None,
    apart: bool,
    assumptions: Sequence[Assumption],
) -> CallContext | None:
    """Return a context without gate and fallback, for the expected sizes of named dimensions. Return None if some bound
    array is not dense, so that each call must copy it."""
    frame = program.frame(bound)
    if frame.copies:
        return None
    manifest = program.manifest
    slots = table_slots(manifest)
    order = sorted(range(len(program.bound)), key=lambda i: not program.bound[i].written)
    bound_specs = [program.bound[i] for i in order]
    inputs, outputs, owned = (_tensors(specs, slots) for specs in (program.inputs, program.outputs, bound_specs))
    _fit_tensors(owned, [spec.shape for spec in bound_specs], bound_specs)
    context = CallContext(
        entry=program.entry,
        table=frame.address,
        status=ctypes.addressof(frame.status),
        inputs=ctypes.addressof(inputs[0]),
        outputs=ctypes.addressof(outputs[0]),
        bound=ctypes.addressof(owned[0]),
        input_count=len(program.inputs),
        output_count=len(program.outputs),
        bound_count=len(bound_specs),
        written_count=sum(spec.written for spec in bound_specs),
        releases=not 0 < manifest.nanoseconds < RELEASE_FROM,
    )
    if kind is not None:
        name = {list: "List", tuple: "Tuple"}[kind]
        context.kind, context.new = id(kind), function(f"Py{name}_New")
        context.get, context.set = function(f"Py{name}_GetItem"), function(f"Py{name}_SetItem")
        context.slice = function(f"Py{name}_GetSlice")
    for record, spec in zip(inputs[0], program.inputs, strict=True):
        if spec.equals is not None:
            frame.pointers[record.slot] = record.extents
    context.owned = (program, bound, owned, inputs, outputs)
    context.frame = frame
    _fit_outputs(context, program, outputs)
    sizes, solver = program.sizes.fixed, None
    if sizes is None:
        assumed = in_terms_of(assumptions, {d.name: d for d in program.manifest.dims})
        solver = _solver(program, frame, inputs, outputs, (apart, assumed))
        context.solver, context.owned = ctypes.addressof(solver), (*context.owned, solver)
        sizes = program.sizes.of_dimensions({})
    program.fit(frame, sizes)
    _share_arena(context, program, sizes)
    _fit_tensors(inputs, [spec.pattern for *_, spec in sizes.inputs], [spec for *_, spec in sizes.inputs])
    _fit_tensors(outputs, [shape for _, _, shape, _ in sizes.outputs], [spec for *_, spec in sizes.outputs])
    if solver is not None and assumptions:
        # NOTE: expected sizes may break an assumption. No call has a size of -1, so the first one solves its sizes.
        for extents, spec in zip(inputs[1], program.inputs, strict=True):
            extents[:] = [-1 if is_size(n) else n for n in spec.pattern]
    return context


def running_context(program: Executable, bound: tuple[np.ndarray, ...], sizes: CallSizes) -> CallContext | None:
    """Return a context for calls of these sizes whose arguments the caller checks. Return None as ``_make_context``
    does."""
    frame = program.frame(bound)
    if frame.copies:
        return None
    program.fit(frame, sizes)
    gate, watch = Gate(), WatchTable()
    context = CallContext(
        entry=program.entry,
        table=frame.address,
        status=ctypes.addressof(frame.status),
        gate=ctypes.addressof(gate),
        watch=ctypes.addressof(watch),
        releases=not 0 < program.manifest.nanoseconds < RELEASE_FROM,
    )
    context.owned = (program, bound, gate, watch)
    context.frame, context.watched = frame, watch
    _share_arena(context, program, sizes)
    return context


def _share_arena(context: CallContext, program: Executable, sizes: CallSizes) -> None:
    """Let the context use the shared arena if its scratch memory is large."""
    context.arena_slot = max(0, program.arena_slot)
    if program.arena_slot >= 0 and sizes.arena > OWN_ARENA:
        context.arena = sizes.arena
        reserve(sizes.arena)


def _fit_outputs(context: CallContext, program: Executable, outputs: _Tensors) -> None:
    """Give large outputs (or possibly large ones) reusable blocks of memory."""
    memory: list[np.ndarray | None] = []
    for record, spec in zip(outputs[0], program.outputs, strict=True):
        if bounds(spec.nbytes)[1] >= REUSE_FROM:
            record.block = len(memory)
            memory += [None, None]
    context.blocks = id(memory)
    context.memory = memory


def _solver(
    program: Executable,
    frame: Frame,
    inputs: _Tensors,
    outputs: _Tensors,
    refused: tuple[bool, Sequence[Assumption]],
) -> Solver:
    """Return the steps that fit a context to the sizes of a call: words of the table, shapes, bytes, arena. For
    ``refused``, ``apart`` and ``assumptions``, see ``Caller.bind``."""
    sizes, arena = program.sizes, program.manifest.arena
    steps = SizeSteps()
    assert sizes.patterns is not None
    apart, assumptions = refused
    steps.solve(sizes.patterns, apart)
    for assumption in assumptions:
        steps.assume(assumption)
    expected = sizes.of_dimensions({})
    word = ctypes.sizeof(_INT)
    for dimension, (number, _) in zip(program.manifest.dims, expected.words, strict=True):
        steps.move(dimension_size(dimension), frame.address + word * number)
    for (records, shapes, _), specs in ((inputs, program.inputs), (outputs, program.outputs)):
        for record, extents, spec in zip(records, shapes, specs, strict=True):
            for dim, extent in enumerate(spec.pattern):
                if is_size(extent):
                    steps.move(extent, ctypes.addressof(extents) + word * dim)
            if is_size(spec.nbytes):
                steps.move(spec.nbytes, ctypes.addressof(record) + Tensor.nbytes.offset)
    frame.arena = Arena(min(OWN_ARENA, bounds(arena)[1]))
    return steps.build(arena, frame.address + word * program.arena_slot, frame.arena.address, frame.arena.size)


class _Reserving:
    """Fallback of a callable whose program has named dimensions. A call that needs a larger shared arena runs in Python
    and enlarges it, and the next call of that size stays native."""

    def __init__(self, program: Executable, fallback: Callable[..., Any]):
        self._program, self._fallback = program, fallback

    def __call__(self, *arrays: Any, **options: Any) -> Any:
        """Call the fallback after enlarging the shared arena if needed."""
        arena = self._arena(arrays)
        if arena > OWN_ARENA:
            reserve(arena)
        return self._fallback(*arrays, **options)

    def _arena(self, arrays: tuple[Any, ...]) -> int:
        """Return the bytes of scratch memory of a call; 0 for invalid arguments."""
        inputs = self._program.inputs
        if len(arrays) != len(inputs):
            return 0
        if not all(type(x) is np.ndarray or s.equals is not None for x, s in zip(arrays, inputs, strict=True)):
            return 0
        try:
            return self._program.sizes.of_inputs(arrays).arena
        except (ArgumentError, ShapeError):
            return 0


_Tensors = tuple[Any, list[Any], list[Any]]
"""Records, the extents that they point to, and objects to keep alive."""


def _tensors(specs: Sequence[BufferSpec], slots: Mapping[str, int]) -> _Tensors:
    """Return the records of buffers, with shapes still to be filled in."""
    records = (Tensor * len(specs))()
    shapes, types = [], []
    for record, spec in zip(records, specs, strict=True):
        dtype = BY_NAME[spec.dtype].numpy
        extents = (ctypes.c_int64 * len(spec.pattern))()
        shapes.append(extents)
        types.append(dtype)
        record.dtype, record.extents = id(dtype), ctypes.addressof(extents)
        rank = len(spec.shape) if spec.equals is None else -1
        record.slot, record.rank, record.block = slots[spec.name], rank, -1
    return records, shapes, types


def _fit_tensors(tensors: _Tensors, shapes: Sequence[tuple[int, ...]], specs: Sequence[BufferSpec]) -> None:
    """Fill in shapes and byte counts."""
    for record, extents, shape, spec in zip(tensors[0], tensors[1], shapes, specs, strict=True):
        extents[:] = shape
        record.nbytes = spec.nbytes


def reserve(size: int) -> None:
    """Enlarge the shared arena to at least ``size`` bytes, unless a call uses it (then calls go through Python)."""
    if _shared.size < size and not _shared.busy:
        _shared_arena[:] = [Arena(size)]
        _shared.address, _shared.size = _shared_arena[0].address, size
