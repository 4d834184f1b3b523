"""Device that executes CUDA text on the CPU, thread by thread, and reports errors a GPU would not detect."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.errors import ArgumentError, CompileError, DeviceError, MemoryLimitError
from graphc.base.locks import Lock
from graphc.base.records import dataclass
from graphc.files.product_descriptor import ProductDescriptor, as_descriptor
from graphc.runtime.devices import emulated_build
from graphc.runtime.devices.emulated_build import EmulatedFunction, EmulatedModule
from graphc.runtime.devices.emulated_text import KernelText
from graphc.runtime.devices.interface import MemoryStats
from graphc.runtime.devices.product_reference import compute_product, product_spans

CODES = (
    *("fine", "outside", "misaligned", "extent", "no_memory", "diverged", "no_lane", "race", "unshared"),
    *("shared_too_large", "bad_launch", "fence", "order", "aliased"),
)
"""Fault kinds by code, as in gc_emulate.cpp."""


_PRIVATE = -2
"""Parameter number of an array that belongs to one thread."""


_NOWHERE = frozenset({"no_memory", "extent", "bad_launch", "order"})
"""Faults of a launch as a whole, without a line."""


class EmulatorFault(ctypes.Structure):
    """``gc_fault`` of gc_emulate.cpp."""

    _fields_ = [
        ("code", ctypes.c_int),
        ("parameter", ctypes.c_int),
        ("writes", ctypes.c_int),
        ("other_writes", ctypes.c_int),
        ("index", ctypes.c_longlong),
        ("count", ctypes.c_longlong),
        ("width", ctypes.c_int),
        ("block", ctypes.c_uint),
        ("thread", ctypes.c_uint),
        ("other_block", ctypes.c_uint),
        ("other_thread", ctypes.c_uint),
        ("line", ctypes.c_int),
        ("other_line", ctypes.c_int),
        ("name", ctypes.c_char_p),
    ]

    @property
    def kind(self) -> str:
        """One of CODES."""
        return CODES[self.code]


def message(fault: EmulatorFault, kernel: KernelText) -> DeviceError:
    """Return the error for a fault of a kernel, with the source lines where it happened."""
    symbol, parameters = kernel.symbol, kernel.parameters
    named = _named(fault, parameters)
    what = _aliased(fault, named, parameters) if fault.kind == "aliased" else _WHAT[fault.kind](fault, named)
    if fault.kind in _NOWHERE:
        return DeviceError(f"kernel {symbol} {what}")
    lines = kernel.text.splitlines()
    shown = [
        f"{n + kernel.line - 1}: {lines[n - 1].strip()}" for n in (fault.line, fault.other_line) if 0 < n <= len(lines)
    ]
    where = " | ".join([f"block {fault.block}, thread {fault.thread}", *dict.fromkeys(shown)])
    return DeviceError(f"kernel {symbol} {what}", where=where)


def _aliased(fault: EmulatorFault, name: str, parameters: Sequence[str]) -> str:
    writer = parameters[fault.count] if 0 <= fault.count < len(parameters) else "another"
    return f"reads element {fault.index} of {name}, which it has written through {writer}: they must not overlap"


def _named(fault: EmulatorFault, parameters: Sequence[str]) -> str:
    if 0 <= fault.parameter < len(parameters):
        return f"parameter {fault.parameter} ({parameters[fault.parameter]})"
    kind = "private" if fault.parameter == _PRIVATE else "shared"
    return f"{kind} array {fault.name.decode() if fault.name else ''}"


def _elements(fault: EmulatorFault) -> str:
    verb = "writes" if fault.writes else "reads"
    if fault.width == 1:
        return f"{verb} element {fault.index}"
    return f"{verb} elements {fault.index} to {fault.index + fault.width - 1}"


def _outside(fault: EmulatorFault, name: str) -> str:
    doing = f"uses element {fault.index}" if fault.parameter == _PRIVATE else _elements(fault)
    return f"{doing} of {name}, which has {fault.count}"


def _misaligned(fault: EmulatorFault, name: str) -> str:
    if not fault.width or fault.width == 1:
        return f"gets the address {fault.index:#x} for {name}, which is not a multiple of the element size"
    return f"{_elements(fault)} of {name} at once, which do not start at a multiple of their size"


def _diverged(fault: EmulatorFault, _: str) -> str:
    other = f"waits at line {fault.other_line}" if fault.other_line else "has ended"
    return f"has a barrier that not all threads reach: this one waits there, thread {fault.other_thread} {other}"


def _race(fault: EmulatorFault, name: str) -> str:
    other = f"thread {fault.other_thread}" if fault.other_thread < 1024 else "threads"
    if fault.other_block != fault.block:
        other += f" of block {fault.other_block}"
    does = "write it" if fault.other_writes else "read it"
    return f"{_elements(fault)} of {name} while {other} may {does}: no barrier in between"


def _order(fault: EmulatorFault, name: str) -> str:
    kind = "backwards" if fault.line == 1 else f"in order {fault.line}"
    return f"leaves other values in {name}, from byte {fault.index} on, when its threads run {kind}"


_WHAT = {
    "outside": _outside,
    "misaligned": _misaligned,
    "extent": lambda fault, name: f"declares {fault.index} elements for {name}, whose memory holds {fault.count}",
    "no_memory": lambda fault, name: f"gets the address {fault.index:#x} for {name}, where no live memory is",
    "diverged": _diverged,
    "no_lane": lambda fault, _: f"reads the value of lane {fault.index} in a warp of {fault.count}",
    "race": _race,
    "unshared": lambda fault, name: f"reads element {fault.index} of {name}, which no thread of the block has written",
    "shared_too_large": lambda fault, name: f"uses {fault.count} bytes of shared memory with {name}",
    "bad_launch": lambda *_: "cannot be launched like this",
    "fence": lambda *_: "has written around memory",
    "order": _order,
}


NAME = "cuda-emu"
FORWARDS, BACKWARDS = 0, 1
ORDERS = (FORWARDS, BACKWARDS, 2, 3)
"""Orders of blocks, warps and lanes; numbers from 2 on are seeds of permutations."""
TOTAL = 8 << 30
"""Bytes of device memory."""
UNKNOWN = 0xFF
"""Byte value of unwritten memory: NaN, or -1."""
MAX_THREADS, MAX_GRID = 1024, (1 << 31) - 1
_WORD = (1 << 64) - 1
_lock = Lock()
"""Held during every call of the launcher, which runs one kernel at a time."""


class _Statistics(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_longlong)
        for name in (
            *("launches", "blocks", "threads", "barriers", "fewest_barriers", "most_barriers", "exchanges", "shared"),
        )
    ]


class Traffic(ctypes.Structure):
    """Costs of the memory accesses of a launch on a GPU (``gc_traffic`` of gc_traffic.h). A request is one read or
    write by the lanes of a warp together; a sector has 32 bytes."""

    load_requests: int
    load_bytes: int
    load_sectors: int
    """Sectors of all requests: load_bytes / 32 if every sector is used completely."""
    loaded: int
    """Distinct sectors that are read: what comes from memory if caches hold the rest."""
    store_requests: int
    store_bytes: int
    store_sectors: int
    stored: int
    shared_requests: int
    shared_rounds: int
    """Accesses to shared memory: one per request, more if lanes need several words of one bank."""
    shared_ideal: int
    """Accesses to shared memory if there were no bank conflicts."""
    _fields_ = [
        (name, ctypes.c_longlong)
        for name in (
            *("load_requests", "load_bytes", "load_sectors", "loaded"),
            *("store_requests", "store_bytes", "store_sectors", "stored"),
            *("shared_requests", "shared_rounds", "shared_ideal"),
        )
    ]

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*(getattr(self, field[0]) + getattr(other, field[0]) for field in self._fields_))


@dataclass(frozen=True)
class LaunchStatistics:
    """Statistics of the last launch, in one order."""

    blocks: int
    threads: int
    """Threads of all blocks together."""
    barriers: int
    """Barriers of all blocks together."""
    fewest_barriers: int
    """Fewest barriers of a block; -1 without blocks."""
    most_barriers: int
    exchanges: int
    """Number of reads of other lanes' values within a warp."""
    shared: int
    """Bytes of shared memory that a block used."""


class EmulatedMemory:
    """Memory of the emulated device, with fences around it; unknown content is NaN, or -1."""

    __slots__ = ("__weakref__", "address", "nbytes")

    def __init__(self, address: int, nbytes: int):
        self.address = address
        self.nbytes = nbytes


class EmulatedEvent:
    """A position in the order of work, already done when the event is created."""

    def __init__(self) -> None:
        self._time = time.perf_counter_ns()

    def synchronize(self) -> None:
        """Do nothing."""

    def is_done(self) -> bool:
        """Return True: all work is done at once."""
        return True

    def milliseconds_since(self, earlier: Any) -> float:
        """Return the CPU's time between an earlier event and this one."""
        return (self._time - earlier._time) / 1e6


class EmulatedGraph:
    """Recorded work. Replaying it fails if a launch gets an address outside of live memory."""

    def __init__(self, steps: Sequence[Callable[[], None]]):
        self._steps = tuple(steps)

    def __len__(self) -> int:
        return len(self._steps)

    def launch(self) -> None:
        """Repeat the recorded work."""
        for step in self._steps:
            step()


class EmulatedDevice:
    """The device ``cuda-emu``: see interface.Device. It does work at once, so errors come from the call that causes
    them."""

    name = NAME
    takes = "text"

    def __init__(
        self,
        orders: Sequence[int] | None = None,
        races: bool | None = None,
        traffic: bool = False,
        target: str = "sm_90",
        total: int = TOTAL,
    ):
        """``orders`` in which every launch runs, and whether to check for ``races``: by default as GRAPHC_EMULATOR
        says. ``traffic``: whether to count accesses per kernel symbol."""
        options = config.read().emulator
        self.orders = tuple(orders if orders is not None else ORDERS if "orders" in options else (FORWARDS,))
        self.races = "races" in options if races is None else races
        self.traffic: dict[str, Traffic] | None = {} if traffic else None
        """Traffic of all launches of each kernel; None when it is not counted."""
        self.target = target
        self.total = total
        self.launches = 0
        """Number of launches, each counted once whatever the number of orders."""
        self.last: LaunchStatistics | None = None
        """Statistics of the last launch."""
        self._damage: list[str] = []
        """Writes outside of memory that were detected when it was freed."""
        self._recorded: dict[int, list[Callable[[], None]]] = {}
        """Recorded work by thread."""
        if not self.orders:
            raise ArgumentError("a kernel must run in at least one order")

    # ---- memory

    def allocate(self, nbytes: int) -> EmulatedMemory:
        """Return new memory; raises MemoryLimitError if there is not enough."""
        if nbytes < 0:
            raise ArgumentError(f"memory cannot have {nbytes} bytes")
        self._refuse_recording("allocations")
        with _lock:
            core = _core()
            occupied = self.memory_stats().allocated
            address = core.gc_emu_allocate(nbytes) if occupied + nbytes <= self.total else 0
        if not address:
            raise MemoryLimitError(
                f"{self.name} has {self.total} bytes, of which {occupied} are allocated; {nbytes} more were requested"
            )
        memory = EmulatedMemory(address, nbytes)
        weakref.finalize(memory, _free, address, nbytes, self._damage, os.getpid()).atexit = False
        return memory

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """Write a host array."""
        self._refuse_recording("transfers")
        array = np.ascontiguousarray(array)
        self._check("a copy from the host", address, array.nbytes)
        if array.nbytes:
            ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def copy_out(self, address: int, array: np.ndarray) -> None:
        """Fill a host array."""
        self._refuse_recording("transfers")
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ArgumentError("a copy to the host fills arrays that are C-contiguous and can be written to")
        self._check("a copy to the host", address, array.nbytes)
        if array.nbytes:
            ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copy within the device."""
        self._do(lambda: self._copy(destination, source, nbytes))

    def _copy(self, destination: int, source: int, nbytes: int) -> None:
        self._check("the source of a copy", source, nbytes)
        self._check("the destination of a copy", destination, nbytes)
        if abs(destination - source) < nbytes:
            raise DeviceError(
                f"a copy of {nbytes} bytes overlaps what it reads, {abs(destination - source)} bytes away"
            )
        ctypes.memmove(destination, source, nbytes)

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Set every byte of a range."""
        self._do(lambda: self._fill(address, byte, nbytes))

    def _fill(self, address: int, byte: int, nbytes: int) -> None:
        self._check("a fill", address, nbytes)
        ctypes.memset(address, byte, nbytes)

    def discard(self, address: int, nbytes: int) -> None:
        """Make a range unknown at once, also during a recording: it is not work of the device."""
        self._fill(address, UNKNOWN, nbytes)

    def _check(self, what: str, address: int, nbytes: int) -> None:
        """Raise DeviceError unless a range is inside live memory."""
        self.synchronize()
        if nbytes == 0:
            return
        with _lock:
            room = _core().gc_emu_room(address)
        if room < nbytes:
            reason = f"only {room} bytes are left in that allocation" if room >= 0 else "no live memory there"
            raise DeviceError(f"{what} of {nbytes} bytes at {address:#x}: {reason}")

    def memory_stats(self) -> MemoryStats:
        """Return the current memory use."""
        counts = (ctypes.c_longlong * 4)()
        with _lock:
            _core().gc_emu_memory(counts)
        allocated, peak, allocations, reserved = counts
        return MemoryStats(allocated, allocations, peak, reserved, self.total)

    def reset_peak(self) -> None:
        """Reset the peak to the bytes allocated now."""
        with _lock:
            _core().gc_emu_reset_peak()

    # ---- code

    def load(self, code: str | bytes) -> EmulatedModule:
        """Return a module of CUDA text, built at the first launch of one of its kernels."""
        if not isinstance(code, str):
            raise CompileError(f"{self.name} executes CUDA text, got {type(code).__name__}")
        return emulated_build.load(code)

    def launch(
        self, function: EmulatedFunction, grid: int, threads: int, shared: int, arguments: Sequence[int]
    ) -> None:
        """Run a kernel in all orders; raises DeviceError for a fault."""
        if len(arguments) != len(function.parameters):
            raise DeviceError(
                f"kernel {function.symbol} has {len(function.parameters)} parameters, got {len(arguments)}",
                where=", ".join(function.parameters),
            )
        if not 0 <= grid <= MAX_GRID or not 0 < threads <= MAX_THREADS:
            raise DeviceError(f"kernel {function.symbol} cannot be launched with {grid} blocks of {threads} threads")
        words = (ctypes.c_uint64 * len(arguments))(*[word & _WORD for word in arguments])
        extents = (ctypes.c_longlong * len(arguments))(*function.kernel.extents_for(arguments))
        self._do(lambda: self._launch(function, grid, threads, shared, words, extents))

    def _launch(
        self, function: EmulatedFunction, grid: int, threads: int, shared: int, words: Any, extents: Any
    ) -> None:
        self.synchronize()
        address = function.address
        orders = (ctypes.c_int * len(self.orders))(*self.orders)
        with _lock:
            core = _core()
            watched = int(self.races) + 2 * int(self.traffic is not None)
            code = core.gc_emu_launch(address, grid, threads, shared, words, extents, orders, len(orders), watched)
            self.launches += 1
            if self.traffic is not None:
                before = self.traffic.get(function.symbol, Traffic())
                self.traffic[function.symbol] = before + Traffic.in_dll(core, "gc_emu_traffic")
            statistics = _Statistics.in_dll(core, "gc_emu_statistics")
            self.last = LaunchStatistics(*(getattr(statistics, field.name) for field in fields(LaunchStatistics)))
            if code:
                fault = EmulatorFault.from_buffer_copy(EmulatorFault.in_dll(core, "gc_emu_fault"))
                raise message(fault, function.kernel)

    def product(self, descriptor: Any, addresses: Sequence[int]) -> None:
        """Compute a product with numpy, as the descriptor defines it."""
        checked, operands = as_descriptor(descriptor), tuple(addresses)
        self._do(lambda: self._product(checked, operands))

    def _product(self, product: ProductDescriptor, addresses: tuple[int, ...]) -> None:
        for (name, nbytes), address in zip(product_spans(product), addresses, strict=False):
            self._check(f"{name} of a product", address, nbytes)
        compute_product(product, addresses)

    def synchronize(self) -> None:
        """Raise DeviceError for writes outside of memory detected meanwhile."""
        if self._damage:
            raise DeviceError(self._damage.pop())

    def wait_for(self, stream: int) -> None:
        """Do nothing: there are no streams."""

    # ---- recording

    def begin_capture(self) -> None:
        """Record this thread's work."""
        if threading.get_ident() in self._recorded:
            raise DeviceError("this thread records a graph already")
        self._recorded[threading.get_ident()] = []

    def end_capture(self) -> EmulatedGraph:
        """Return the recorded work."""
        if threading.get_ident() not in self._recorded:
            raise DeviceError("this thread records no graph")
        return EmulatedGraph(self._recorded.pop(threading.get_ident()))

    def _do(self, step: Callable[[], None]) -> None:
        """Run a step, or record it."""
        recorded = self._recorded.get(threading.get_ident())
        if recorded is None:
            step()
        else:
            recorded.append(step)

    def _refuse_recording(self, what: str) -> None:
        if threading.get_ident() in self._recorded:
            raise DeviceError(f"{what} cannot be recorded in a graph")

    def event(self) -> EmulatedEvent:
        """Return an event with the time now."""
        return EmulatedEvent()

    def properties(self) -> dict[str, Any]:
        """Return facts for people."""
        return {
            "name": "CPU that executes CUDA text",
            "capability": self.target,
            "compiler": emulated_build.compiler(),
            "orders": self.orders,
            "races": self.races,
        }


def _core() -> Any:
    core = emulated_build.launcher()
    if core.gc_emu_allocate.argtypes is None:
        word, number = ctypes.c_uint64, ctypes.c_longlong
        core.gc_emu_launch.argtypes = [
            *(ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint, number, ctypes.POINTER(word), ctypes.POINTER(number)),
            *(ctypes.POINTER(ctypes.c_int), ctypes.c_int, ctypes.c_int),
        ]
        core.gc_emu_free.argtypes = [word]
        core.gc_emu_room.argtypes, core.gc_emu_room.restype = [word], number
        core.gc_emu_memory.argtypes, core.gc_emu_memory.restype = [ctypes.POINTER(number)], None
        core.gc_emu_reset_peak.argtypes, core.gc_emu_reset_peak.restype = [], None
        core.gc_emu_allocate.argtypes, core.gc_emu_allocate.restype = [word], word
    return core


def _free(address: int, nbytes: int, damage: list[str], process: int) -> None:
    if os.getpid() != process:
        return
    with _lock:
        if _core().gc_emu_free(address):
            damage.append(f"a kernel wrote outside of the {nbytes} bytes of memory at {address:#x}")
