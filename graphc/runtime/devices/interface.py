"""Interface of a device: memory, transfers, code, launches, library products, recorded graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from graphc.base.records import dataclass

ALIGNMENT = 256
"""Minimum alignment of allocations in bytes."""


@runtime_checkable
class Memory(Protocol):
    """Device allocation, freed when this object is collected."""

    @property
    def address(self) -> int:
        """Start address as an integer, which kernels get: a multiple of ALIGNMENT."""
        ...

    @property
    def nbytes(self) -> int:
        """Requested size. It may be 0; the address must not be used then."""
        ...


class Module(Protocol):
    """Code loaded by a device. Its functions keep it alive."""

    def function(self, symbol: str) -> Any:
        """Return the kernel of that symbol for ``launch``; raises ArtifactError if the module has none."""
        ...


class Graph(Protocol):
    """Recorded launches, copies, fills and products, with their addresses.

    It keeps the functions alive, but no memory: the caller of ``launch`` keeps the memory alive.
    """

    def launch(self) -> None:
        """Repeat the recorded work, in order, on the current stream."""
        ...


class Event(Protocol):
    """A position in the current stream's order of work."""

    def synchronize(self) -> None:
        """Wait until all earlier work is done."""
        ...

    def is_done(self) -> bool:
        """Return whether all earlier work is done."""
        ...

    def milliseconds_since(self, earlier: Event) -> float:
        """Return the device time between an earlier event and this one, both of which are done."""
        ...


@dataclass(frozen=True)
class MemoryStats:
    """Memory use of a device."""

    allocated: int
    """Bytes of live allocations."""
    allocations: int
    """Number of live allocations."""
    peak: int
    """The most bytes alive at one time, since the device was opened or ``reset_peak``."""
    reserved: int
    """Bytes taken from the system, including the pool for later allocations."""
    total: int
    """Bytes of device memory."""


class Device(Protocol):
    """A device. It does work in the order of the calls, on the current stream. Errors of asynchronous work come from a
    later method call. Any thread may call the methods."""

    @property
    def name(self) -> str:
        """Name for users: ``cuda:0``, ``cuda-emu``."""
        ...

    @property
    def target(self) -> str:
        """Name of the target machine in codegen.machine.cuda: ``sm_90a``."""
        ...

    @property
    def takes(self) -> str:
        """Kind of code that ``load`` takes: ``cubin`` (bytes of one) or ``text`` (CUDA C as str)."""
        ...

    def allocate(self, nbytes: int) -> Memory:
        """Return new memory with unknown content; raises MemoryLimitError if there is not enough."""
        ...

    def copy_in(self, address: int, array: np.ndarray) -> None:
        """Write the elements of a host array, in C order, to an address. The caller may change the array afterwards."""
        ...

    def copy_out(self, address: int, array: np.ndarray) -> None:
        """Fill a C-contiguous host array from an address, after all earlier work."""
        ...

    def copy(self, destination: int, source: int, nbytes: int) -> None:
        """Copy within the device; the two ranges do not overlap."""
        ...

    def fill(self, address: int, byte: int, nbytes: int) -> None:
        """Set every byte of a range."""
        ...

    def discard(self, address: int, nbytes: int) -> None:
        """Declare the content of a range unused. A device that checks for errors makes it unknown."""
        ...

    def load(self, code: str | bytes) -> Module:
        """Load code of the kind in ``takes``; raises CompileError or ArtifactError."""
        ...

    def launch(self, function: Any, grid: int, threads: int, shared: int, arguments: Sequence[int]) -> None:
        """Run a function of a module in ``grid`` blocks of ``threads`` threads with ``shared`` bytes of dynamic shared
        memory. Each argument is one 64-bit word, in the order of the parameters: an address or a signed integer. An
        empty grid does nothing."""
        ...

    def product(self, descriptor: Any, addresses: Sequence[int]) -> None:
        """Compute a matrix product with the library. ``descriptor`` defines it; ``addresses`` are the addresses of its
        operands and results, in the descriptor's order."""
        ...

    def synchronize(self) -> None:
        """Wait until all work is done."""
        ...

    def wait_for(self, stream: int) -> None:
        """Wait until the work on another library's stream is done. ``stream`` is the platform's handle."""
        ...

    def begin_capture(self) -> None:
        """Record this thread's work instead of doing it, until ``end_capture``. Host transfers and allocations are not
        allowed meanwhile."""
        ...

    def end_capture(self) -> Graph:
        """Return the recorded work."""
        ...

    def event(self) -> Event:
        """Return an event after all work so far."""
        ...

    def memory_stats(self) -> MemoryStats:
        """Return the current memory use."""
        ...

    def reset_peak(self) -> None:
        """Reset the peak of memory_stats to the bytes allocated now."""
        ...

    def properties(self) -> dict[str, Any]:
        """Return facts for people: ``name`` of the model, ``capability``, ``driver``, and others."""
        ...
