"""Object files of 32-bit processors: symbols and sizes of sections, for static libraries."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import chain

from graphc.base.errors import ArtifactError
from graphc.base.records import dataclass
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag, SectionType

_IDENTIFICATION = b"\x7fELF\x01\x01"
"""Class of 32 bits, lower bytes first."""
_HEADER = struct.Struct("<16sHHIIIIIHHHHHH")
_SECTION = struct.Struct("<IIIIIIIIII")
"""Name, type, flags, address, offset, size, link, info, alignment, entry size."""
_SYMBOL = struct.Struct("<IIIBBH")


@dataclass(frozen=True)
class Contents:
    """Parts of an object file that a linker of static libraries reads."""

    defined: tuple[str, ...]
    """Symbols that other files see."""
    undefined: tuple[str, ...]
    code_bytes: int
    """Bytes of instructions."""


@dataclass(frozen=True)
class CodeFunction:
    """A function of an object file."""

    start: int
    """Offset in its section."""
    nbytes: int
    """Bytes of its instructions and constants."""
    instructions: tuple[bytes, ...]


@dataclass(frozen=True)
class _Symbol:
    name: str
    value: int
    nbytes: int
    kind: int
    is_local: bool
    section: int
    """Index of its section; 0 for symbols of other files."""


@dataclass(frozen=True)
class Elf32Header:
    """Header of a section."""

    name: str
    kind: int
    flags: int
    offset: int
    nbytes: int
    link: int


def is_elf32(code: bytes) -> bool:
    """Check for an object file of a 32-bit processor."""
    return code.startswith(_IDENTIFICATION)


def read_contents(code: bytes) -> Contents:
    """Return the symbols of an object file and the size of its code. Raises ArtifactError for a damaged file."""
    try:
        sections, symbols = _tables(code)
    except (struct.error, IndexError, ValueError) as error:
        raise ArtifactError(f"the object code is damaged: {error}") from error
    seen = [symbol for symbol in symbols if not symbol.is_local]
    return Contents(
        tuple(symbol.name for symbol in seen if symbol.section),
        tuple(symbol.name for symbol in seen if not symbol.section),
        sum(s.nbytes for s in sections if s.flags & SectionFlag.EXECUTE),
    )


def read_functions(code: bytes) -> dict[str, CodeFunction]:
    """Return the functions of Thumb or RISC-V code by name. Raises ArtifactError for a damaged file."""
    try:
        sections, symbols = _tables(code)
        return {
            symbol.name: _function(code, symbol, symbols, sections)
            for symbol in symbols
            if symbol.kind == layout.FUNCTION and symbol.section
        }
    except (struct.error, IndexError, ValueError) as error:
        raise ArtifactError(f"the object code is damaged: {error}") from error


def _function(code: bytes, symbol: _Symbol, symbols: list[_Symbol], sections: list[Elf32Header]) -> CodeFunction:
    """Return a function, whose instructions start at ``$t`` (Thumb) or ``$x`` (RISC-V) and whose constants start at
    ``$d`` (ELF for the Arm Architecture, and RISC-V ABIs, sections "Mapping symbols"). Addresses of Thumb functions are
    odd."""
    start, end = symbol.value & ~1, (symbol.value & ~1) + symbol.nbytes
    base = sections[symbol.section].offset
    kinds = {*_IS_LONG, "$d"}
    marks = sorted((s.value, s.name[:2]) for s in symbols if s.section == symbol.section and s.name[:2] in kinds)
    ends = [value for value, _ in marks[1:]] + [end]
    pieces = (
        _instructions(code[base + max(value, start) : base + min(following, end)], _IS_LONG[kind])
        for (value, kind), following in zip(marks, ends, strict=True)
        if kind in _IS_LONG and max(value, start) < min(following, end)
    )
    return CodeFunction(start, symbol.nbytes, tuple(chain.from_iterable(pieces)))


_IS_LONG: dict[str, Callable[[int], bool]] = {
    "$t": lambda first: first >> 11 in (0b11101, 0b11110, 0b11111),
    "$x": lambda first: first & 3 == 3,
}
"""Whether the first 16 bits are half an instruction, by the mapping symbol."""


def _instructions(code: bytes, is_long: Callable[[int], bool]) -> Iterator[bytes]:
    """Yield the instructions of code, each of two or four bytes."""
    start = 0
    while start < len(code):
        size = 4 if is_long(code[start] | code[start + 1] << 8) else 2
        yield code[start : start + size]
        start += size


def elf32_headers(code: bytes) -> Iterator[Elf32Header]:
    """Yield the headers of all sections of an object file."""
    if not is_elf32(code):
        raise ValueError("this is not a 32-bit ELF file")
    *_, start, _, _, _, _, _, count, names = _HEADER.unpack_from(code)
    headers = [_SECTION.unpack_from(code, start + number * _SECTION.size) for number in range(count)]
    for name, kind, flags, _, offset, nbytes, link, *_ in headers:
        if kind != SectionType.ZEROS and offset + nbytes > len(code):
            raise ValueError(f"a section of {nbytes} bytes ends after the file")
        yield Elf32Header(_text(code, headers[names][4] + name), kind, flags, offset, nbytes, link)


def _tables(code: bytes) -> tuple[list[Elf32Header], list[_Symbol]]:
    """Return all sections and symbols."""
    sections = list(elf32_headers(code))
    return sections, [x for s in sections if s.kind == SectionType.SYMBOLS for x in _symbols(code, s, sections)]


def _symbols(code: bytes, table: Elf32Header, sections: list[Elf32Header]) -> Iterator[_Symbol]:
    """Yield the named symbols of a table."""
    texts = sections[table.link].offset
    for at in range(table.offset, table.offset + table.nbytes, _SYMBOL.size):
        name, value, nbytes, info, _, section = _SYMBOL.unpack_from(code, at)
        if name:
            is_local = info >> 4 == layout.LOCAL
            yield _Symbol(_text(code, texts + name), value, nbytes, info & 15, is_local, section)


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()
