"""Reader of object files: loaded sections, their symbols and relocations."""

from __future__ import annotations

from collections.abc import Iterator
from struct import error as StructError

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag, SectionType
from graphc.codegen.machine.linkage import Linkage, Relocation, linkage_of

_NOT_LINKED = (".eh_frame", ".note.", ".riscv.attributes")
"""Sections that a library omits: unwind tables, since no function unwinds, and notes."""

_MOST, _LARGEST = 1 << 16, 1 << 40
"""Maximum alignment and size of a section, in bytes."""


# NOTE: these are no data classes, whose methods Python compiles at first use. That takes a third of a millisecond for
# each class, and loading a program not much more.


class Section:
    """A section of loaded memory."""

    __slots__ = ("address", "alignment", "data", "flags", "name", "nbytes", "relocations")

    def __init__(self, name: str, flags: SectionFlag, alignment: int, nbytes: int, data: bytes):
        self.name, self.flags, self.alignment, self.nbytes = name, flags, alignment, nbytes
        self.data = data
        """Contents; empty for a section of zeros."""
        self.relocations: list[RelocationEntry] = []
        self.address = 0
        """Address in memory, once assigned."""

    @property
    def end(self) -> int:
        """Address after its last byte."""
        return self.address + self.nbytes


class Symbol:
    """A name with its definition."""

    __slots__ = ("binding", "hidden", "kind", "name", "nbytes", "section", "value")

    def __init__(
        self, name: str, binding: int, kind: int, section: Section | None, value: int, nbytes: int, hidden: bool = False
    ):
        self.name, self.binding, self.kind, self.nbytes = name, binding, kind, nbytes
        self.section = section
        """Section of the definition; None if it is undefined."""
        self.value = value
        """Offset in its section."""
        self.hidden = hidden
        """Whether other libraries cannot see it."""

    @property
    def address(self) -> int:
        """Address in memory; 0 if it is undefined."""
        return self.section.address + self.value if self.section else 0


class RelocationEntry:
    """A relocation at an offset of a section."""

    __slots__ = ("addend", "kind", "offset", "rule", "symbol")

    def __init__(self, offset: int, rule: Relocation, kind: int, symbol: Symbol, addend: int):
        self.offset, self.rule, self.symbol, self.addend = offset, rule, symbol, addend
        self.kind = kind
        """Type number of the relocation."""


class Object:
    """One object file."""

    def __init__(self, linkage: Linkage, flags: int, sections: list[Section], symbols: list[Symbol]):
        self.linkage, self.sections, self.symbols = linkage, sections, symbols
        self.flags = flags
        """Flags of the processor, such as how numbers are passed."""


class SectionHeader:
    """Header of a section."""

    __slots__ = ("alignment", "flags", "info", "kind", "link", "name", "nbytes", "offset")

    def __init__(
        self, name: str, kind: int, flags: int, offset: int, nbytes: int, link: int, info: int, alignment: int
    ):
        self.name, self.kind, self.flags, self.offset = name, kind, flags, offset
        self.nbytes, self.link, self.info, self.alignment = nbytes, link, info, alignment


def read_object(data: bytes) -> Object:
    """Return the content of an object file. Raises ArtifactError for other or damaged files, and CompileError for
    features that this linker does not know."""
    try:
        return _ObjectReader(data).read()
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise ArtifactError(f"the object code is damaged: {error}") from error


def elf_headers(data: bytes) -> list[SectionHeader]:
    """Return the headers of all sections of an ELF object file of 64 bits."""
    return _ObjectReader(data).headers


class _ObjectReader:
    def __init__(self, data: bytes):
        self.data = data
        if not data.startswith(layout.IDENTIFICATION[:6]):
            raise ArtifactError("the object code is not a 64-bit little-endian ELF file")
        _, kind, machine, *_, table, self.flags, _, _, _, entry, count, names = layout.HEADER.unpack_from(data)
        if kind != layout.RELOCATABLE or entry != layout.SECTION.size:
            raise ArtifactError(f"an ELF file of type {kind} is not object code")
        linkage = linkage_of(machine)
        if linkage is None:
            raise CompileError(f"object code of the machine {machine} cannot be linked")
        self.linkage = linkage
        rows = [self._record(layout.SECTION, table + i * entry) for i in range(count)]
        self._headers = [SectionHeader("", *row[1:3], *row[4:9]) for row in rows]
        self.headers = [SectionHeader(self._name(names, row[0]), *row[1:3], *row[4:9]) for row in rows]

    def _record(self, record: layout.Struct, offset: int) -> tuple:
        if offset + record.size > len(self.data):
            raise ArtifactError(f"the object code ends within a record at byte {offset}")
        return record.unpack_from(self.data, offset)

    def _bytes(self, header: SectionHeader) -> bytes:
        if header.offset + header.nbytes > len(self.data):
            raise ArtifactError(f"the object code ends within its section {header.name}")
        return self.data[header.offset : header.offset + header.nbytes]

    def _name(self, table: int, offset: int) -> str:
        header = self._headers[table]
        start = header.offset + offset
        end = self.data.find(b"\0", start, header.offset + header.nbytes)
        if end < 0:
            raise ArtifactError(f"the object code has no name at byte {start}")
        return self.data[start:end].decode()

    def read(self) -> Object:
        sections = [self._section(header) for header in self.headers]
        symbols: list[Symbol] = []
        for header in self.headers:
            if header.kind == SectionType.SYMBOLS:
                records = layout.SYMBOL.iter_unpack(self._bytes(header))
                symbols = [self._symbol(record, sections, header.link) for record in records]
        for header in self.headers:
            target = sections[header.info] if header.kind == SectionType.RELOCATIONS else None
            if target is not None:
                target.relocations = list(self._relocations(header, target, symbols))
        return Object(self.linkage, self.flags, [s for s in sections if s is not None], symbols)

    def _section(self, header: SectionHeader) -> Section | None:
        flags = SectionFlag(header.flags)
        if SectionFlag.IN_MEMORY not in flags or header.name.startswith(_NOT_LINKED):
            return None
        if header.kind not in (SectionType.CONTENTS, SectionType.ZEROS) or SectionFlag.PER_THREAD in flags:
            raise CompileError(f"the section {header.name} of type {header.kind:#x} cannot be linked")
        if header.alignment & (header.alignment - 1) or header.alignment > _MOST or header.nbytes > _LARGEST:
            raise ArtifactError(f"the section {header.name} has an impossible size or alignment")
        data = b"" if header.kind == SectionType.ZEROS else self._bytes(header)
        return Section(header.name, flags, max(1, header.alignment), header.nbytes, data)

    def _symbol(self, record: tuple, sections: list[Section | None], names: int) -> Symbol:
        name, info, other, section_number, value, nbytes = record
        text, kind = self._name(names, name), info & 15
        if kind == layout.PER_THREAD_OBJECT or (kind != layout.OF_FILE and section_number >= layout.RESERVED):
            raise CompileError(f"the symbol {text} of type {kind} in section {section_number:#x} cannot be linked")
        section = sections[section_number] if 0 < section_number < layout.RESERVED else None
        if section is not None and value > section.nbytes:
            raise ArtifactError(f"the symbol {text} lies beyond the end of {section.name}")
        return Symbol(text, info >> 4, kind, section, value, nbytes, bool(other & 3))

    def _relocations(self, header: SectionHeader, section: Section, symbols: list[Symbol]) -> Iterator[RelocationEntry]:
        for offset, info, addend in layout.RELOCATION.iter_unpack(self._bytes(header)):
            kind = info & layout.TYPE_MASK
            rule = self.linkage.relocations.get(kind)
            symbol = symbols[info >> layout.SYMBOL_SHIFT]
            if rule is None:
                raise CompileError(
                    f"the relocation {kind} of {symbol.name or section.name} in {section.name} is unknown",
                    remedy="pass position-independent object code, as graphc emits it",
                )
            if offset + rule.nbytes > len(section.data):
                raise ArtifactError(f"the relocation {rule.name} lies beyond the end of {section.name}")
            nowhere = symbol.section is None and (symbol.binding == layout.LOCAL or not symbol.name)
            if nowhere and rule.value != "nothing":
                raise CompileError(f"the relocation {rule.name} in {section.name} needs a section outside of the link")
            yield RelocationEntry(offset, rule, kind, symbol, addend)
