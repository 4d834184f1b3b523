"""Object code linked into this process by graphc's own linker, without LLVM."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link.in_memory import MemoryImage
from graphc.codegen.link.layout import SectionFlag, align
from graphc.runtime.code.code_memory import CodeMemory

_MACHINE = 62
"""``e_machine`` of x86-64."""


class LinkedCode:
    """Object code in memory. It stays there as long as this object lives."""

    def __init__(self, memory: CodeMemory, addresses: Mapping[str, int]):
        self._memory = memory
        self.addresses = addresses
        """Address of each function."""

    def keep(self) -> None:
        """Keep the code until the process ends."""
        self._memory.keep()


def link(objects: Sequence[bytes], names: Sequence[str], imports: Mapping[str, int]) -> LinkedCode:
    """Link object files into this process, with ``imports`` and the symbols of the process. Raises CompileError."""
    try:
        image = MemoryImage(objects)
        if image.machine != _MACHINE:
            raise CompileError(f"the object code is for the machine {image.machine}")
        memory = CodeMemory(max(image.nbytes, 1) + image.alignment - mmap.PAGESIZE)
        base = align(memory.address, image.alignment)
        image.link(base, {**_symbols(name for name in image.imports if name not in imports), **imports})
        shift = base - memory.address
        for offset, data in image.contents():
            memory.write(shift + offset, data)
        for offset, nbytes, flags in image.ranges:
            write, execute = SectionFlag.WRITE in flags, SectionFlag.EXECUTE in flags
            memory.protect(shift + offset, nbytes, write=write, execute=execute)
        return LinkedCode(memory, {name: image.address(name) for name in names})
    except (ArtifactError, OSError, ValueError, OverflowError) as error:
        raise CompileError(error.what if isinstance(error, ArtifactError) else str(error)) from error


def _symbols(names: Iterable[str]) -> dict[str, int]:
    """Return the addresses of functions that the libraries of this process define."""
    addresses = {}
    for name in names:
        try:
            address = ctypes.cast(_process()[name], ctypes.c_void_p).value
        except AttributeError:
            address = None
        if not address:
            raise CompileError(f"the symbol {name} is not defined")
        addresses[name] = address
    return addresses


@cache
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None)
