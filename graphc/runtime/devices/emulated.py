"""A device that executes CUDA text on the CPU, thread by thread, and refuses what a GPU would do silently wrong."""

from __future__ import annotations

import ctypes
import os
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from graphc.base import config
from graphc.base.errors import ArgumentError, CompileError, DeviceError, MemoryLimitError
from graphc.base.locks import Lock
from graphc.files.product_descriptor import ProductDescriptor, as_descriptor
from graphc.runtime.devices import emulated_build
from graphc.runtime.devices.emulated_build import EmulatedFunction, EmulatedModule
from graphc.runtime.devices.emulated_fault import Fault, message
from graphc.runtime.devices.interface import MemoryStats
from graphc.runtime.devices.product_reference import compute_product, product_spans

NAME = "cuda-emu"
FORWARDS, BACKWARDS = 0, 1
ORDERS = (FORWARDS, BACKWARDS, 2, 3)
"""Orders of blocks, warps and lanes; numbers from 2 on are seeds of permutations."""
TOTAL = 8 << 30
"""Bytes that the device has."""
UNKNOWN = 0xFF
"""The byte of memory that nothing has been written to: NaN, or -1."""
MAX_THREADS, MAX_GRID = 1024, (1 << 31) - 1
_WORD = (1 << 64) - 1
_lock = Lock()
"""Held while the launcher, which runs one kernel at a time, is asked for anything."""


class _Statistics(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_longlong)
        for name in (
            *("launches", "blocks", "threads", "barriers", "fewest_barriers", "most_barriers", "exchanges", "shared"),
        )
    ]


class Traffic(ctypes.Structure):
    """What the accesses of a launch cost a GPU (``gc_traffic`` of gc_traffic.h). A request is what the lanes of a warp
    read or write at once; a sector has 32 bytes."""

    load_requests: int
    load_bytes: int
    load_sectors: int
    """Of all requests: load_bytes / 32 where each one is used up."""
    loaded: int
    """Sectors that are read at all: what has to come from memory when caches hold the rest."""
    store_requests: int
    store_bytes: int
    store_sectors: int
    stored: int
    shared_requests: int
    shared_rounds: int
    """How often shared memory is asked: once per request, or once per word of the bank that is asked for most words."""
    shared_ideal: int
    """How often it would be without conflicts of banks."""
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
    """What the last launch did, in one order."""

    blocks: int
    threads: int
    """Of all blocks together."""
    barriers: int
    """At which threads of a block met, of all blocks together."""
    fewest_barriers: int
    """Of one block; -1 where there was no block."""
    most_barriers: int
    exchanges: int
    """How often the lanes of a warp read values of each other."""
    shared: int
    """Bytes of shared memory that a block has used."""


class EmulatedMemory:
    """Memory of the emulated device, with fences around it; unknown content is NaN, or -1."""

    __slots__ = ("__weakref__", "address", "nbytes")

    def __init__(self, address: int, nbytes: int):
        self.address = address
        self.nbytes = nbytes


class EmulatedEvent:
    """A point in the order of work, which is done by the time that it is made."""

    def __init__(self) -> None:
        self._time = time.perf_counter_ns()

    def synchronize(self) -> None:
        """Does nothing."""

    def is_done(self) -> bool:
        """True."""
        return True

    def milliseconds_since(self, earlier: Any) -> float:
        """Time of this CPU."""
        return (self._time - earlier._time) / 1e6


class EmulatedGraph:
    """Recorded work. Replaying it fails when a launch is given an address that no live memory has."""

    def __init__(self, steps: Sequence[Callable[[], None]]):
        self._steps = tuple(steps)

    def __len__(self) -> int:
        return len(self._steps)

    def launch(self) -> None:
        """Does all of it again."""
        for step in self._steps:
            step()


class EmulatedDevice:
    """The device ``cuda-emu``: see interface.Device. Work is done at once, and errors come from the call that asks."""

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
        """``orders`` in which every launch runs, and whether ``races`` are looked for: as GRAPHC_EMULATOR says unless
        given. ``traffic``: whether accesses are counted, by the symbols of kernels."""
        wanted = config.read().emulator
        self.orders = tuple(orders if orders is not None else ORDERS if "orders" in wanted else (FORWARDS,))
        self.races = "races" in wanted if races is None else races
        self.traffic: dict[str, Traffic] | None = {} if traffic else None
        """Of each kernel, of all its launches together; None when it is not counted."""
        self.target = target
        self.total = total
        self.launches = 0
        """How many there were, counted once whatever the number of orders."""
        self.last: LaunchStatistics | None = None
        """What the last launch did."""
        self._damage: list[str] = []
        """What was found to be written to around memory when it was given back."""
        self._recorded: dict[int, list[Callable[[], None]]] = {}
        """Work of threads that record."""
        if not self.orders:
            raise ArgumentError("a kernel has to run in one order at least")

    # ---- memory

    def allocate(self, nbytes: int) -> EmulatedMemory:
        """New memory."""
        if nbytes < 0:
            raise ArgumentError(f"memory cannot have {nbytes} bytes")
        self._refuse_recording("allocations")
        with _lock:
            core = _core()
            taken = self.memory_stats().allocated
            address = core.gc_emu_allocate(nbytes) if taken + nbytes <= self.total else 0
        if not address:
            raise MemoryLimitError(
                f"{self.name} has {self.total} bytes, of which {taken} are allocated; {nbytes} more were asked for"
            )
        memory = EmulatedMemory(address, nbytes)
        weakref.finalize(memory, _free, address, nbytes, self._damage, os.getpid()).atexit = False
        return memory

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """Writes a host array."""
        self._refuse_recording("transfers")
        array = np.ascontiguousarray(array)
        self._check("a copy from the host", address, array.nbytes)
        if array.nbytes:
            ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def copy_out(self, address: int, array: np.ndarray) -> None:
        """Fills a host array."""
        self._refuse_recording("transfers")
        if not array.flags.c_contiguous or not array.flags.writeable:
            raise ArgumentError("a copy to the host fills arrays that are C-contiguous and can be written to")
        self._check("a copy to the host", address, array.nbytes)
        if array.nbytes:
            ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copies within the device."""
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
        """Sets bytes."""
        self._do(lambda: self._fill(address, byte, nbytes))

    def _fill(self, address: int, byte: int, nbytes: int) -> None:
        self._check("a fill", address, nbytes)
        ctypes.memset(address, byte, nbytes)

    def discard(self, address: int, nbytes: int) -> None:
        """Makes a range unknown, now: it is no work of the device."""
        self._fill(address, UNKNOWN, nbytes)

    def _check(self, what: str, address: int, nbytes: int) -> None:
        """Raises DeviceError unless a range lies in live memory."""
        self.synchronize()
        if nbytes == 0:
            return
        with _lock:
            room = _core().gc_emu_room(address)
        if room < nbytes:
            found = f"only {room} are left of the memory there" if room >= 0 else "there is no live memory"
            raise DeviceError(f"{what} of {nbytes} bytes at {address:#x}: {found}")

    def memory_stats(self) -> MemoryStats:
        """What is allocated now."""
        found = (ctypes.c_longlong * 4)()
        with _lock:
            _core().gc_emu_memory(found)
        allocated, peak, allocations, reserved = found
        return MemoryStats(allocated, allocations, peak, reserved, self.total)

    def reset_peak(self) -> None:
        """Lets the peak start at what is allocated."""
        with _lock:
            _core().gc_emu_reset_peak()

    # ---- code

    def load(self, code: str | bytes) -> EmulatedModule:
        """A module of CUDA text, built when one of its kernels is launched."""
        if not isinstance(code, str):
            raise CompileError(f"{self.name} executes CUDA text, and was given {type(code).__name__}")
        return emulated_build.load(code)

    def launch(
        self, function: EmulatedFunction, grid: int, threads: int, shared: int, arguments: Sequence[int]
    ) -> None:
        """Runs a kernel in all orders."""
        if len(arguments) != len(function.parameters):
            raise DeviceError(
                f"kernel {function.symbol} has {len(function.parameters)} parameters and is given {len(arguments)}",
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
            seen = _Statistics.in_dll(core, "gc_emu_statistics")
            self.last = LaunchStatistics(*(getattr(seen, field.name) for field in fields(LaunchStatistics)))
            if code:
                fault = Fault.from_buffer_copy(Fault.in_dll(core, "gc_emu_fault"))
                raise message(fault, function.kernel)

    def product(self, descriptor: Any, addresses: Sequence[int]) -> None:
        """Computes a product by numpy, as the descriptor says."""
        given, at = as_descriptor(descriptor), tuple(addresses)
        self._do(lambda: self._product(given, at))

    def _product(self, given: ProductDescriptor, addresses: tuple[int, ...]) -> None:
        for (name, nbytes), address in zip(product_spans(given), addresses, strict=False):
            self._check(f"{name} of a product", address, nbytes)
        compute_product(given, addresses)

    def synchronize(self) -> None:
        """Raises what was found since."""
        if self._damage:
            raise DeviceError(self._damage.pop())

    def wait_for(self, stream: int) -> None:
        """Does nothing: there are no streams."""

    # ---- recording

    def begin_capture(self) -> None:
        """Records work of this thread."""
        if threading.get_ident() in self._recorded:
            raise DeviceError("this thread records a graph already")
        self._recorded[threading.get_ident()] = []

    def end_capture(self) -> EmulatedGraph:
        """What was recorded."""
        if threading.get_ident() not in self._recorded:
            raise DeviceError("this thread records no graph")
        return EmulatedGraph(self._recorded.pop(threading.get_ident()))

    def _do(self, step: Callable[[], None]) -> None:
        """Does it, or records it."""
        recorded = self._recorded.get(threading.get_ident())
        if recorded is None:
            step()
        else:
            recorded.append(step)

    def _refuse_recording(self, what: str) -> None:
        if threading.get_ident() in self._recorded:
            raise DeviceError(f"{what} cannot be recorded in a graph")

    def event(self) -> EmulatedEvent:
        """The time now."""
        return EmulatedEvent()

    def properties(self) -> dict[str, Any]:
        """Facts for people."""
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
            damage.append(f"something has written around the {nbytes} bytes of memory at {address:#x}")
