"""Linking rules of a family of processors: relocations, stubs, and page size."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from importlib import import_module

from graphc.base.records import dataclass

PAGE = 4096
"""Bytes of a page, the unit of instructions that split an address in two."""
WORD = 8
"""Bytes of a slot of a program's table, and of an address in ELF files of 64 bits."""
ENTRY = "graphc_entry"
"""Symbol of ``void graphc_entry(ptr table)``. The table holds the address of each bound storage, that of the arena, the
size (i64) of each run-time dimension by name, and the last word of programs with polls or stamps. Each takes a slot of
WORD bytes, of which an address of 32 bits takes the first four."""


def _word(old: int, value: int) -> int:
    """Return the value: the location is a word."""
    return value


@dataclass(frozen=True)
class Relocation:
    """A linker's change to a location of object code, in the terms of the processor's ABI: S is the address of a
    symbol, A the addend, P the location, and G the address of the symbol's entry in the GOT."""

    name: str
    """Name in the ABI."""
    value: str
    """Kind of the written value, one of VALUES."""
    nbytes: int = 0
    """Bytes at the location that the linker reads and writes."""
    patch: Callable[[int, int], int] = _word
    """(old content, value) -> new content, both unsigned."""
    limits: tuple[int, int] = (0, 0)
    """Least value that fits, and the first one beyond; equal numbers mean no limit."""
    addend: int = 0
    """Added to the addend of each relocation of this type, in formats whose types say how far behind the location the
    instruction ends (COFF, Mach-O)."""

    @property
    def is_word(self) -> bool:
        """Whether the location holds the value itself, not an instruction with bits of it. Formats without addends in
        their relocations keep them there."""
        return self.patch is _word

    def fits(self, value: int) -> bool:
        """Return whether a value fits."""
        low, high = self.limits
        return low == high or low <= value < high


VALUES = {
    "nothing": "a hint",
    "address": "S + A as a whole word, which the loader completes",
    "absolute": "S + A, of which only what does not depend on where the library lies may be kept",
    "relative": "S + A - P",
    "page": "the page of S + A less the page of P",
    "got": "G + A - P",
    "got page": "the page of G + A less the page of P",
    "got absolute": "G + A, as with absolute",
    "pair": "the value of the relocation that stands at the address S, of which this holds the lower part",
    "image": "S + A less the address of the image (COFF)",
    "section": "S + A less the address of its section in the image (COFF)",
    "difference": "S + A - T: this relocation names T, the next one S (Mach-O)",
    "addend": "the A of the next relocation (Mach-O)",
}
"""Kinds of values. A symbol of another library has a stub; S is the stub's address."""


@dataclass(frozen=True, kw_only=True)
class Linkage:
    """Linking rules of one family, from its ABI for ELF files, for COFF files of Windows, or for Mach-O
    files of macOS."""

    machine: int
    """Number of the machine in the header of its files."""
    page_bytes: int
    """Bytes of the largest Linux pages there: sections with other permissions start on another page."""
    relocations: Mapping[int, Relocation]
    """Relocations by the number of their type."""
    relative: int
    """Type for words to which the loader adds the library's address."""
    absolute: int = 0
    """Type for words into which the loader writes a symbol's address; 0 in formats whose libraries import nothing."""
    slot: int = 0
    """Same as ``absolute``, for entries of the GOT."""
    stub_bytes: int = 0
    """Bytes of a stub."""
    stub: Callable[[int, int], bytes] = lambda address, word: b""
    """(address of the stub, address of its GOT entry) -> code that jumps to the address in that entry."""


def is_bare(triple: str) -> bool:
    """Check whether a triple is that of a machine without an operating system."""
    return "-none-" in triple


def is_wasm(triple: str) -> bool:
    """Check whether a triple is that of WebAssembly."""
    return triple.startswith("wasm")


def is_windows(triple: str) -> bool:
    """Check whether a triple is that of Windows."""
    return "windows" in triple


def is_macos(triple: str) -> bool:
    """Check whether a triple is that of macOS."""
    return "-apple-macosx" in triple


@cache
def _linkages() -> list[str]:
    """Return the names of the modules with linking rules, that of this machine's family first."""
    here = os.uname().machine if hasattr(os, "uname") else ""
    folder = os.path.dirname(__file__)
    packages = [name for name in sorted(os.listdir(folder)) if os.path.isfile(os.path.join(folder, name, "linkage.py"))]
    return [f"{__package__}.{name}.linkage" for name in sorted(packages, key=lambda name: name != here)]


def _linkage(form: str, machine: int) -> Linkage | None:
    """Return the linking rules of a format's object code by the machine of its header, without other facts of the
    family."""
    linkages = (getattr(import_module(name), form, None) for name in _linkages())
    return next((linkage for linkage in linkages if linkage is not None and linkage.machine == machine), None)


@cache
def linkage_of(machine: int) -> Linkage | None:
    """Return the linking rules of ELF object code by its ``e_machine``."""
    return _linkage("LINKAGE", machine)


@cache
def coff_linkage_of(machine: int) -> Linkage | None:
    """Return the linking rules of COFF object code for Windows by the machine of its header."""
    return _linkage("COFF", machine)


@cache
def macho_linkage_of(machine: int) -> Linkage | None:
    """Return the linking rules of Mach-O object code for macOS by its ``cputype``."""
    return _linkage("MACHO", machine)


def signed(bits: int) -> tuple[int, int]:
    """Return the limits of a signed value of ``bits`` bits."""
    return -(1 << bits - 1), 1 << bits - 1


def either(bits: int) -> tuple[int, int]:
    """Return the limits of a value of ``bits`` bits, signed or unsigned."""
    return -(1 << bits - 1), 1 << bits
