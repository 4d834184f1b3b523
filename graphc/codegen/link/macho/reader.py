"""Reader of Mach-O object files, as LLVM writes them for macOS: loaded sections, their symbols and relocations."""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.macho.layout import (
    BY_SYMBOL,
    COMMAND,
    HEADER,
    KIND_MASK,
    LENGTH_MASK,
    MAGIC,
    NUMBER_MASK,
    OBJECT,
    RELOCATION,
    SCATTERED,
    SECTION,
    SEGMENT,
    SYMBOL,
    SYMBOLS,
    WEAK_DEFINITION,
    WEAK_REFERENCE,
    Command,
    SectionAttribute,
    SectionKind,
    SymbolFlag,
    kind_of,
    to_c,
)
from graphc.codegen.link.reader import Object, RelocationEntry, Section, Symbol
from graphc.codegen.machine.linkage import Linkage, Relocation, macho_linkage_of

CONSTANTS = "__TEXT,__const"
_LITERALS = (SectionKind.STRINGS, SectionKind.LITERALS_4, SectionKind.LITERALS_8, SectionKind.LITERALS_16)
"""Sections whose contents other linkers join; here they are constants like others."""
_ZEROS = (SectionKind.ZEROS, SectionKind.LARGE_ZEROS)
_UNWINDING = "__TEXT,__eh_frame"
_LARGEST_SHIFT, _LARGEST = 14, 1 << 40
"""Largest alignment, of a page: 16384 bytes; maximum size of a section."""
_SIGN = 1 << 23
"""Highest bit of an addend in a relocation."""


def is_macho(data: bytes) -> bool:
    """Return whether data begins as a 64-bit Mach-O file."""
    return data.startswith(MAGIC.to_bytes(4, "little"))


def read_macho(data: bytes) -> Object:
    """Return the content of a Mach-O object file; see ``reader.read_object``.

    Names are those of C. Addends, which Mach-O keeps in the contents of sections and in relocations of their own, are
    in the relocation entries. A relocation to a section has a symbol at its start.
    """
    try:
        return _MachoReader(data).read()
    except (StructError, IndexError, UnicodeDecodeError) as error:
        raise ArtifactError(f"the object code is damaged: {error}") from error


def macho_headers(data: bytes) -> list[MachoHeader]:
    """Return the headers of all sections of a Mach-O object file."""
    return _MachoReader(data).headers


class MachoHeader:
    """Header of a section."""

    __slots__ = ("address", "alignment", "flags", "kind", "name", "nbytes", "offset", "relocations")

    def __init__(self, record: tuple):
        section, segment, self.address, self.nbytes, self.offset, shift, *relocations, flags, _, _, _ = record
        self.name = f"{_text(segment)},{_text(section)}"
        self.relocations: tuple[int, int] = (relocations[0], relocations[1])
        self.kind, self.flags = flags & KIND_MASK, SectionAttribute(flags & ~KIND_MASK)
        if shift > _LARGEST_SHIFT or self.nbytes > _LARGEST:
            raise ArtifactError(f"the section {self.name} has an impossible size or alignment")
        self.alignment = 1 << shift


def _text(name: bytes) -> str:
    return name.rstrip(b"\0").decode()


class _MachoReader:
    def __init__(self, data: bytes):
        self.data = data
        magic, machine, _, kind, count, _, _, _ = self._record(HEADER, 0)
        linkage = macho_linkage_of(machine)
        if magic != MAGIC or kind != OBJECT or linkage is None:
            raise ArtifactError(
                f"the object code is not Mach-O of a known machine, but begins with {data[:16].hex(' ', 4)}"
            )
        self.linkage: Linkage = linkage
        self.headers: list[MachoHeader] = []
        self.symbol_offset = self.symbol_count = self.string_offset = self.string_bytes = 0
        start = HEADER.size
        for _ in range(count):
            command, nbytes = self._record(COMMAND, start)
            if nbytes < COMMAND.size:
                raise ArtifactError(f"the object code has a load command of {nbytes} bytes")
            if command == Command.SEGMENT:
                sections = self._record(SEGMENT, start)[9]
                self.headers += [self._header(start + SEGMENT.size + i * SECTION.size) for i in range(sections)]
            elif command == Command.SYMBOLS:
                table = self._record(SYMBOLS, start)
                self.symbol_offset, self.symbol_count, self.string_offset, self.string_bytes = table[2:]
                if self.string_offset + self.string_bytes > len(data):
                    raise ArtifactError("the object code ends within the names of its symbols")
            start += nbytes

    def _record(self, record: Struct, offset: int) -> tuple:
        if offset + record.size > len(self.data):
            raise ArtifactError(f"the object code ends within a record at byte {offset}")
        return record.unpack_from(self.data, offset)

    def _header(self, offset: int) -> MachoHeader:
        return MachoHeader(self._record(SECTION, offset))

    def read(self) -> Object:
        sections = [self._section(header) for header in self.headers]
        anchors = [s and Symbol(f"\1l_{s.name}", layout.LOCAL, layout.OF_SECTION, s, 0, 0) for s in sections]
        symbols = [self._symbol(number, sections) for number in range(self.symbol_count)]
        for header, section in zip(self.headers, sections, strict=True):
            if section is not None:
                section.relocations = list(self._relocations(header, section, symbols, anchors))
        return Object(self.linkage, 0, [s for s in sections if s is not None], [s for s in symbols if s is not None])

    def _section(self, header: MachoHeader) -> Section | None:
        if SectionAttribute.DEBUG in header.flags or header.name == _UNWINDING:
            return None
        segment = header.name.partition(",")[0]
        known = (SectionKind.REGULAR, *_LITERALS, *_ZEROS)
        if header.kind not in known or segment not in ("__TEXT", "__DATA"):
            raise CompileError(f"the section {header.name} of type {header.kind} cannot be linked")
        flags = SectionFlag.IN_MEMORY
        flags |= SectionFlag.WRITE if segment == "__DATA" else 0
        flags |= SectionFlag.EXECUTE if header.flags & (SectionAttribute.CODE | SectionAttribute.SOME_CODE) else 0
        data, end = b"", header.offset + header.nbytes
        if header.kind not in _ZEROS and header.nbytes:
            if end > len(self.data):
                raise ArtifactError(f"the object code ends within its section {header.name}")
            data = self.data[header.offset : end]
        name = CONSTANTS if header.kind in _LITERALS and segment == "__TEXT" else header.name
        return Section(name, flags, header.alignment, header.nbytes, data)

    def _name(self, offset: int) -> str:
        start = self.string_offset + offset
        end = self.data.find(b"\0", start, self.string_offset + self.string_bytes)
        if end < 0:
            raise ArtifactError(f"the object code has no name at byte {start}")
        return to_c(self.data[start:end].decode())

    def _symbol(self, number: int, sections: list[Section | None]) -> Symbol | None:
        """Return the symbol of this number; None for those that are of no use to a linker."""
        start = self.symbol_offset + number * SYMBOL.size
        name, kind, section_number, description, value = self._record(SYMBOL, start)
        if kind & SymbolFlag.DEBUG:
            return None
        text, where = self._name(name), kind & SymbolFlag.SECTION
        if where == 0 and text and not value and not description & WEAK_REFERENCE:
            return Symbol(text, layout.GLOBAL, layout.NO_TYPE, None, 0, 0)
        if where != SymbolFlag.SECTION or not 0 < section_number <= len(sections):
            raise CompileError(f"the symbol {text} is weak, common, absolute or an alias, which cannot be linked")
        section, offset = sections[section_number - 1], value - self.headers[section_number - 1].address
        if section is None:
            return None
        if not 0 <= offset <= section.nbytes:
            raise ArtifactError(f"the symbol {text} lies beyond the end of {section.name}")
        binding = layout.LOCAL
        if kind & SymbolFlag.EXTERNAL:
            binding = layout.WEAK if description & WEAK_DEFINITION else layout.GLOBAL
        of = layout.FUNCTION if SectionFlag.EXECUTE in section.flags else layout.OBJECT
        return Symbol(text, binding, of, section, offset, 0, bool(kind & SymbolFlag.PRIVATE))

    def _relocations(
        self,
        header: MachoHeader,
        section: Section,
        symbols: list[Symbol | None],
        anchors: list[Symbol | None],
    ) -> Iterator[RelocationEntry]:
        start, count = header.relocations
        addend, minus = 0, None
        for index in range(count):
            offset, word = self._record(RELOCATION, start + index * RELOCATION.size)
            kind, number, named = kind_of(word), word & NUMBER_MASK, bool(word & BY_SYMBOL)
            rule = self.linkage.relocations.get(kind) if minus is None else minus.other_rule(offset, kind)
            if rule is None or offset & SCATTERED:
                raise CompileError(f"the relocation {kind:#x} in {section.name} is unknown")
            if rule.value == "addend":
                addend = (number ^ _SIGN) - _SIGN
                continue
            if offset + rule.nbytes > len(section.data):
                raise ArtifactError(f"the relocation {rule.name} lies beyond the end of {section.name}")
            symbol = symbols[number] if named else anchors[number - 1] if number else None
            if symbol is None:
                raise CompileError(f"the relocation {rule.name} in {section.name} needs a section outside of the link")
            if rule.value == "difference":
                minus = _Minus(section, offset, rule, kind, symbol)
                continue
            if rule.is_word:
                addend += int.from_bytes(section.data[offset : offset + rule.nbytes], "little", signed=True)
            if named:
                addend += rule.addend
            else:  # the contents are an address in this file, or the distance to one
                addend -= self.headers[number - 1].address
                addend += header.address + offset if rule.value == "relative" and minus is None else 0
            kind, addend = (kind, addend) if minus is None else (minus.kind, addend + minus.distance)
            yield RelocationEntry(offset, rule, kind, symbol, addend)
            addend, minus = 0, None
        if addend or minus is not None:
            raise ArtifactError(f"the relocations of {section.name} end within a pair")


class _Minus:
    """First relocation of a pair: the address that a difference subtracts, of a symbol of the same section."""

    def __init__(self, section: Section, offset: int, rule: Relocation, kind: int, symbol: Symbol):
        self.offset, self.rule, self.kind = offset, rule, kind
        if symbol.section is not section:
            raise CompileError(
                f"the relocation {rule.name} in {section.name} subtracts the address of {symbol.name}, which is in "
                "another section"
            )
        self.distance = offset - symbol.value
        """Bytes from the symbol to the location."""

    def other_rule(self, offset: int, kind: int) -> Relocation | None:
        """Return the rule of the second relocation, relative to the location; None if it does not fit the first."""
        if (offset, kind) != (self.offset, self.kind & LENGTH_MASK):
            return None
        return Relocation(self.rule.name, "relative", self.rule.nbytes, limits=self.rule.limits)
