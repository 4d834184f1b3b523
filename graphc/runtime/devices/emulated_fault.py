"""Faults detected by the launcher of emulated kernels, as errors for the user."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from graphc.base.errors import DeviceError
from graphc.runtime.devices.emulated_text import KernelText

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
