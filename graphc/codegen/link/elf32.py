"""Object files of 32-bit processors: symbols and sizes of sections, for static libraries."""

from __future__ import annotations

import struct
from collections.abc import Iterator

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
    """What a linker of static libraries reads of an object file."""

    defined: tuple[str, ...]
    """Symbols that other files see."""
    undefined: tuple[str, ...]
    code_bytes: int
    """Bytes of instructions."""


@dataclass(frozen=True)
class _Section:
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
        sections = list(_sections(code))
        symbols = [symbol for s in sections if s.kind == SectionType.SYMBOLS for symbol in _symbols(code, s, sections)]
    except (struct.error, IndexError, ValueError) as error:
        raise ArtifactError(f"the object code is damaged: {error}") from error
    return Contents(
        tuple(name for name, is_defined in symbols if is_defined),
        tuple(name for name, is_defined in symbols if not is_defined),
        sum(s.nbytes for s in sections if s.flags & SectionFlag.EXECUTE),
    )


def section_start(code: bytes, name: str, nbytes: int) -> int | None:
    """Return where the section of a name and a size starts in the file, or None."""
    return next((s.offset for s in _sections(code) if (s.name, s.nbytes) == (name, nbytes)), None)


def _sections(code: bytes) -> Iterator[_Section]:
    if not is_elf32(code):
        raise ValueError("this is not a 32-bit ELF file")
    *_, start, _, _, _, _, _, count, names = _HEADER.unpack_from(code)
    headers = [_SECTION.unpack_from(code, start + number * _SECTION.size) for number in range(count)]
    for name, kind, flags, _, offset, nbytes, link, *_ in headers:
        if kind != SectionType.ZEROS and offset + nbytes > len(code):
            raise ValueError(f"a section of {nbytes} bytes ends after the file")
        yield _Section(_text(code, headers[names][4] + name), kind, flags, offset, nbytes, link)


def _symbols(code: bytes, table: _Section, sections: list[_Section]) -> Iterator[tuple[str, bool]]:
    """Yield the symbols of a table that are not local, each with whether it is defined."""
    texts = sections[table.link].offset
    for at in range(table.offset, table.offset + table.nbytes, _SYMBOL.size):
        name, _, _, info, _, section = _SYMBOL.unpack_from(code, at)
        if info >> 4 != layout.LOCAL:
            yield _text(code, texts + name), section != 0


def _text(code: bytes, at: int) -> str:
    return code[at : code.index(b"\0", at)].decode()
