"""The bytes of an ELF file: its header, what stands behind that, its parts, and the table of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag, SectionType, Strings
from graphc.codegen.link.parts import Part
from graphc.codegen.link.reader import Section
from graphc.codegen.machine.linkage import WORD, Linkage

_NAMES = ".shstrtab"
_NO_FLAGS = SectionFlag(0)


def table_part(
    name: str,
    kind: int,
    data: bytes,
    entry: int = 0,
    link: str = "",
    info: int = 0,
    flags: SectionFlag = _NO_FLAGS,
) -> Part:
    """A part that is not in memory: a table of entries, or bytes."""
    section = Section(name, flags, WORD if entry else 1, len(data), data)
    return Part(name, kind, flags, [section], entry, link, info)


def file_pieces(
    kind: int, linkage: Linkage, flags: int, segments: Sequence[bytes], parts: Sequence[Part], end: int
) -> list[bytes]:
    """The file in pieces. Parts that are in memory have their places, which end there; others follow behind them."""
    names = Strings()
    offsets = [names.offset(name) for name in (*(part.name for part in parts), _NAMES)]
    parts = [*parts, table_part(_NAMES, SectionType.STRINGS, names.data)]
    for part in parts:
        if not part.offset:
            part.place(end, end)
            end = part.offset + (0 if part.is_zeros else part.nbytes)
    table = layout.align(end, WORD)
    head = layout.HEADER.pack(
        *(layout.IDENTIFICATION, kind, linkage.machine, layout.VERSION, 0),
        *(layout.HEADER.size if segments else 0, table, flags, layout.HEADER.size),
        *(layout.SEGMENT.size if segments else 0, len(segments)),
        *(layout.SECTION.size, len(parts) + 1, len(parts)),
    )
    pieces, end = [head, *segments], layout.HEADER.size + sum(map(len, segments))
    for part in parts:
        if not part.is_zeros:
            pieces += [bytes(part.offset - end), *part.contents]
            end = part.offset + part.nbytes
    return [*pieces, bytes(table - end), bytes(layout.SECTION.size), *_headers(parts, offsets, kind)]


def _headers(parts: Sequence[Part], names: Sequence[int], kind: int) -> Iterable[bytes]:
    numbers = {part.name: i + 1 for i, part in enumerate(parts)}
    for part, name in zip(parts, names, strict=True):
        mapped = kind == layout.SHARED and SectionFlag.IN_MEMORY in part.flags
        place = part.address if mapped else 0, part.offset, part.nbytes
        yield layout.SECTION.pack(
            *(name, part.kind, part.flags, *place),
            *(numbers.get(part.link, 0), part.info, part.alignment, part.entry),
        )
