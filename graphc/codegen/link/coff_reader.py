"""Reader of COFF object files, as LLVM writes them for Windows: loaded sections, their symbols and relocations."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.coff_layout import (
    ALIGNMENT_MASK,
    ALIGNMENT_SHIFT,
    BIG_OBJECT,
    FILE_HEADER,
    FUNCTION,
    LONG_NAME,
    MANY,
    RELOCATION,
    SECTION,
    SYMBOL,
    CoffFlag,
    StorageClass,
)
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.reader import Object, RelocationEntry, Section, Symbol
from graphc.codegen.machine.linkage import Linkage, coff_linkage_of

_OMITTED = CoffFlag.INFORMATION | CoffFlag.REMOVED | CoffFlag.DISCARDABLE
"""Sections with one of these flags are for linkers and debuggers."""
_DEFAULT_ALIGNMENT, _LARGEST_SHIFT = 16, 14
"""Alignment of a section whose flags name none, and the largest number for one: 8192 bytes."""
_LARGEST = 1 << 31
"""Maximum size of a section of zeros, in bytes."""


def is_coff(data: bytes) -> bool:
    """Return whether data begins as a COFF object file of a known machine."""
    return coff_linkage_of(int.from_bytes(data[:2], "little")) is not None


def read_coff(data: bytes) -> Object:
    """Return the content of a COFF object file; see ``reader.read_object``. Addends, which COFF keeps in the contents
    of sections, are in the relocation entries."""
    try:
        return _CoffReader(data).read()
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise ArtifactError(f"the object code is damaged: {error}") from error


def coff_headers(data: bytes) -> list[CoffHeader]:
    """Return the headers of all sections of a COFF object file."""
    return _CoffReader(data).headers


class CoffHeader:
    """Header of a section."""

    __slots__ = ("flags", "name", "nbytes", "offset", "relocation_count", "relocation_offset")

    def __init__(self, name: str, nbytes: int, offset: int, relocation_offset: int, count: int, flags: int):
        self.name, self.nbytes, self.offset, self.flags = name, nbytes, offset, CoffFlag(flags)
        self.relocation_offset, self.relocation_count = relocation_offset, count


class _CoffReader:
    def __init__(self, data: bytes):
        self.data = data
        if data.startswith(BIG_OBJECT):
            raise CompileError("an import record or an object file with more than 65,279 sections cannot be linked")
        machine, count, _, self.symbol_offset, self.symbol_count, skipped, _ = self._record(FILE_HEADER, 0)
        linkage = coff_linkage_of(machine)
        if linkage is None:
            raise ArtifactError(f"the object code is not COFF of a known machine, but begins with {data[:2].hex(' ')}")
        self.linkage: Linkage = linkage
        self.string_offset = self.symbol_offset + self.symbol_count * SYMBOL.size
        start = FILE_HEADER.size + skipped
        self.headers = [self._header(start + i * SECTION.size) for i in range(count)]

    def _record(self, record: Struct, offset: int) -> tuple:
        if offset + record.size > len(self.data):
            raise ArtifactError(f"the object code ends within a record at byte {offset}")
        return record.unpack_from(self.data, offset)

    def _header(self, offset: int) -> CoffHeader:
        name, _, _, nbytes, start, relocations, _, count, _, flags = self._record(SECTION, offset)
        text = name.rstrip(b"\0").decode()
        if text.startswith("/"):
            if not text[1:].isdecimal():
                raise ArtifactError(f"the object code has a section of the name {text}")
            text = self._string(int(text[1:]))
        return CoffHeader(text, nbytes, start, relocations, count, flags)

    def _string(self, offset: int) -> str:
        start = self.string_offset + offset
        end = self.data.find(b"\0", start)
        if end < 0 or offset < 4:
            raise ArtifactError(f"the object code has no name at byte {start}")
        return self.data[start:end].decode()

    def read(self) -> Object:
        sections = [self._section(header) for header in self.headers]
        symbols = self._symbols(sections)
        for header, section in zip(self.headers, sections, strict=True):
            if section is not None:
                section.relocations = list(self._relocations(header, section, symbols))
        kept = [s for s in sections if s is not None]
        return Object(self.linkage, 0, kept, [s for s in symbols if s is not None])

    def _section(self, header: CoffHeader) -> Section | None:
        if header.flags & _OMITTED:
            return None
        number = header.flags >> ALIGNMENT_SHIFT & ALIGNMENT_MASK
        if number > _LARGEST_SHIFT or header.nbytes > _LARGEST:
            raise ArtifactError(f"the section {header.name} has an impossible size or alignment")
        flags = SectionFlag.IN_MEMORY
        flags |= SectionFlag.WRITE if CoffFlag.WRITE in header.flags else 0
        flags |= SectionFlag.EXECUTE if CoffFlag.EXECUTE in header.flags else 0
        data, end = b"", header.offset + header.nbytes
        if CoffFlag.ZEROS not in header.flags and header.nbytes:
            if end > len(self.data):
                raise ArtifactError(f"the object code ends within its section {header.name}")
            data = self.data[header.offset : end]
        alignment = 1 << number - 1 if number else _DEFAULT_ALIGNMENT
        return Section(header.name, flags, alignment, header.nbytes, data)

    def _symbols(self, sections: list[Section | None]) -> list[Symbol | None]:
        """Return the symbols by their number; None for auxiliary records and those that are of no use to a linker."""
        symbols: list[Symbol | None] = []
        while len(symbols) < self.symbol_count:
            offset = self.symbol_offset + len(symbols) * SYMBOL.size
            *record, auxiliary = self._record(SYMBOL, offset)
            symbols += [self._symbol(record, sections), *[None] * auxiliary]
        return symbols

    def _symbol(self, record: list, sections: list[Section | None]) -> Symbol | None:
        raw, value, number, kind, storage = record
        zero, offset = LONG_NAME.unpack(raw)
        name = raw.rstrip(b"\0").decode() if zero else self._string(offset)
        if number < 0 or storage in (StorageClass.FILE, StorageClass.SECTION):
            return None
        if storage == StorageClass.WEAK_EXTERNAL or (number == 0 and value):
            raise CompileError(f"the symbol {name} is weak or common, which cannot be linked")
        section = sections[number - 1] if number else None
        if number and section is None:
            return None
        if section is not None and value > section.nbytes:
            raise ArtifactError(f"the symbol {name} lies beyond the end of {section.name}")
        binding = layout.LOCAL
        if storage == StorageClass.EXTERNAL:
            shared = number and CoffFlag.COMDAT in self.headers[number - 1].flags
            binding = layout.WEAK if shared else layout.GLOBAL
        return Symbol(name, binding, layout.FUNCTION if kind == FUNCTION else layout.OBJECT, section, value, 0)

    def _relocations(
        self, header: CoffHeader, section: Section, symbols: list[Symbol | None]
    ) -> Iterator[RelocationEntry]:
        first, count = 0, header.relocation_count
        if count == MANY and CoffFlag.MORE_RELOCATIONS in header.flags:
            first, (count, _, _) = 1, self._record(RELOCATION, header.relocation_offset)
        for index in range(first, count):
            offset, number, kind = self._record(RELOCATION, header.relocation_offset + index * RELOCATION.size)
            rule, symbol = self.linkage.relocations.get(kind), symbols[number]
            if symbol is None:
                raise CompileError(f"the relocation {kind} in {section.name} needs a section outside of the link")
            if rule is None:
                raise CompileError(f"the relocation {kind} of {symbol.name} in {section.name} is unknown")
            if offset + rule.nbytes > len(section.data):
                raise ArtifactError(f"the relocation {rule.name} lies beyond the end of {section.name}")
            stored = int.from_bytes(section.data[offset : offset + rule.nbytes], "little", signed=True)
            yield RelocationEntry(offset, rule, kind, symbol, stored + rule.addend)
