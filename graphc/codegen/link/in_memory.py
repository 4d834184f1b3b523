"""Linker of code that runs in this process: one region of memory with code, constants and variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from graphc.base.errors import CompileError
from graphc.codegen.link.layout import SectionFlag, align
from graphc.codegen.link.reader import Section
from graphc.codegen.link.relocate import Relocator, write_value
from graphc.codegen.link.resolve import resolve
from graphc.codegen.machine.linkage import WORD

_WRITE, _EXECUTE = SectionFlag.WRITE, SectionFlag.EXECUTE
_PERMISSIONS = (_EXECUTE, SectionFlag(0), _WRITE)
"""Permissions of the three ranges of an image besides reading, in order."""


class MemoryImage:
    """Object files to be linked at an address that the caller chooses.

    The caller takes ``nbytes`` of memory, calls ``link``, copies ``contents`` and protects ``ranges``.
    """

    def __init__(self, objects: Sequence[bytes]):
        """Raises CompileError for a duplicate definition, and for sections and relocations that are unknown;
        ArtifactError for damaged object code."""
        self._program = resolve(objects)
        self._relocator = Relocator(self._program)
        self.machine = self._program.linkage.machine
        """``e_machine`` of the processors that run the code."""
        self.imports = tuple(self._program.missing)
        """Names that the process must define."""
        self.alignment = self._relocator.linkage.page_bytes
        """Alignment of the address, in bytes."""
        self.ranges: list[tuple[int, int, SectionFlag]] = []
        """Offset, bytes and permissions (WRITE, EXECUTE or none) of ranges of whole pages."""
        self._sections = [*self._program.sections, self._relocator.plt, self._relocator.got]
        self.nbytes = self._place()
        self._base = 0

    def _place(self) -> int:
        """Assign each section its offset; return the end of the last one."""
        self.alignment = max(self.alignment, *(section.alignment for section in self._sections))
        end = 0
        for flag in _PERMISSIONS:
            start = end
            for section in self._sections:
                if self._permission(section) == flag:
                    section.address = align(end, section.alignment)
                    end = section.end
            end = align(end, self._relocator.linkage.page_bytes)
            if end > start:
                self.ranges.append((start, end - start, flag))
        return end

    def _permission(self, section: Section) -> SectionFlag:
        if section is self._relocator.got:  # complete once the image is linked
            return SectionFlag(0)
        flags = section.flags & (_WRITE | _EXECUTE)
        if flags == _WRITE | _EXECUTE:
            raise CompileError(f"the section {section.name} may be written to and executed")
        return flags

    def link(self, base: int, addresses: Mapping[str, int]) -> None:
        """Complete the image for the address ``base``, with the addresses of ``imports``. Call it once.

        Raises CompileError for a distance out of range.
        """
        self._base = base
        for section in self._sections:
            section.address += base
        relocator = self._relocator
        for section in self._program.sections:
            if section.relocations:
                section.data = self._relocated(section, addresses)
        relocator.plt.data = relocator.all_stubs()
        entries = (addresses[key] if isinstance(key, str) else key.address for key in relocator.table)
        relocator.got.data = b"".join(entry.to_bytes(WORD, "little") for entry in entries)

    def _relocated(self, section: Section, addresses: Mapping[str, int]) -> bytes:
        data = bytearray(self._relocator.applied(section))
        for relocation in section.relocations:
            if relocation.rule.value == "address":
                symbol = self._program.definition(relocation.symbol)
                value = addresses[relocation.symbol.name] if symbol is None else symbol.address
                write_value(data, section, relocation, value + relocation.addend)
        return bytes(data)

    def contents(self) -> Iterator[tuple[int, bytes]]:
        """Yield the offset and the bytes of each section that is not zeros, once the image is linked."""
        for section in self._sections:
            if section.data:
                yield section.address - self._base, section.data

    def address(self, name: str) -> int:
        """Return the address of a function. Raises CompileError if the object code does not define it."""
        symbol = self._program.defined.get(name)
        if symbol is None or symbol.section is None or _EXECUTE not in symbol.section.flags:
            raise CompileError(f"the object code defines no function {name}")
        return symbol.address
