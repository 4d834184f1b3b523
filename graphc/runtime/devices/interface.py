"""What graphc asks of a device: memory, transfers, code, launches, library products, recorded graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

ALIGNMENT = 256
"""Bytes to which every allocation is aligned at least."""


@runtime_checkable
class Memory(Protocol):
    """An allocation on a device, which is given back when this object is collected."""

    @property
    def address(self) -> int:
        """Where it starts, as an integer: what kernels are given. A multiple of ALIGNMENT."""
        ...

    @property
    def nbytes(self) -> int:
        """Its size as it was asked for; 0 is allowed, its address must not be used then."""
        ...


class Module(Protocol):
    """Code that a device has loaded. Functions of it hold it."""

    def function(self, symbol: str) -> Any:
        """What ``launch`` takes to run the kernel of that symbol; raises ArtifactError where there is none."""
        ...


class Graph(Protocol):
    """Recorded launches, copies, fills and products, with the addresses that they were given.

    It holds the functions, but no memory: who launches it keeps what it works on alive."""

    def launch(self) -> None:
        """Does all of it again, in order, on the current stream."""
        ...


class Event(Protocol):
    """A point in the current stream's order of work."""

    def synchronize(self) -> None:
        """Waits until all work before it is done."""
        ...

    def is_done(self) -> bool:
        """Whether all work before it is done."""
        ...

    def milliseconds_since(self, earlier: Event) -> float:
        """Time of the device between an earlier event and this one, both of which are done."""
        ...


@dataclass(frozen=True)
class MemoryStats:
    """What the allocations of a device take."""

    allocated: int
    """Bytes of allocations that are alive."""
    allocations: int
    """How many are alive."""
    peak: int
    """The most bytes that were alive at one time, since the device was opened or ``reset_peak``."""
    reserved: int
    """Bytes taken from the system, those that the next allocations are served from included."""
    total: int
    """Bytes that the device has."""


class Device(Protocol):
    """A device. Work is done in the order in which it is asked for, on the current stream, and errors of work that the
    device does later are raised by whatever method is called next. Methods may be called by any thread."""

    @property
    def name(self) -> str:
        """How users name it: ``cuda:0``, ``cuda-emu``."""
        ...

    @property
    def target(self) -> str:
        """Name of the machine in codegen.machine.cuda that code is made for: ``sm_90a``."""
        ...

    @property
    def takes(self) -> str:
        """What ``load`` takes: ``cubin`` (bytes of one) or ``text`` (CUDA C as str)."""
        ...

    def allocate(self, nbytes: int) -> Memory:
        """New memory with unknown content; raises MemoryLimitError where there is none left."""
        ...

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """Writes the elements of a host array, in C order, from an address on; the array may be changed afterwards."""
        ...

    def copy_out(self, address: int, array: np.ndarray) -> None:
        """Fills a C-contiguous host array with what lies from an address on, once all work asked for is done."""
        ...

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copies within the device; the two ranges do not overlap."""
        ...

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Sets every byte of a range."""
        ...

    def discard(self, address: int, nbytes: int) -> None:
        """Says that nobody needs what lies in a range. A device that looks for mistakes makes it unknown."""
        ...

    def load(self, code: str | bytes) -> Module:
        """Makes code ready, of the kind that ``takes`` says; raises CompileError or ArtifactError."""
        ...

    def launch(self, function: Any, grid: int, threads: int, shared: int, arguments: Sequence[int]) -> None:
        """Runs a function of a module in ``grid`` blocks of ``threads`` threads with ``shared`` bytes of dynamic shared
        memory. Each argument is one word of 64 bits, in the order of the parameters: an address or a signed integer.
        An empty grid is allowed and does nothing."""
        ...

    def product(self, descriptor: Any, addresses: Sequence[int]) -> None:
        """Computes a product of matrices by the library: ``descriptor`` says which, ``addresses`` where its operands
        and results start, in the descriptor's order."""
        ...

    def synchronize(self) -> None:
        """Waits until all work is done."""
        ...

    def wait_for(self, stream: int) -> None:
        """Waits until work on a stream of another library is done, whose handle is that of the platform."""
        ...

    def begin_capture(self) -> None:
        """From here on, work of this thread is recorded and not done, until ``end_capture``; no host transfers and no
        allocations in between."""
        ...

    def end_capture(self) -> Graph:
        """What was recorded."""
        ...

    def event(self) -> Event:
        """An event after all work asked for so far."""
        ...

    def memory_stats(self) -> MemoryStats:
        """What is allocated now."""
        ...

    def reset_peak(self) -> None:
        """Lets the peak of memory_stats start at what is allocated now."""
        ...

    def properties(self) -> dict[str, Any]:
        """Facts for people: ``name`` of the model, ``capability``, ``driver``, whatever else is known."""
        ...
