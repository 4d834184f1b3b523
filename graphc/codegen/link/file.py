"""Writer of ELF files: header, segments, sections, and the section table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag, SectionType, Strings
from graphc.codegen.link.parts import OutputSection
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
) -> OutputSection:
    """Return a section that is not loaded: a table of entries, or bytes."""
    section = Section(name, flags, WORD if entry else 1, len(data), data)
    return OutputSection(name, kind, flags, [section], entry, link, info)


def file_pieces(
    kind: int, linkage: Linkage, flags: int, segments: Sequence[bytes], outputs: Sequence[OutputSection], end: int
) -> list[bytes]:
    """Return the file as a list of byte strings. Loaded sections have their offsets, up to ``end``; the others follow
    them."""
    names = Strings()
    offsets = [names.offset(name) for name in (*(output.name for output in outputs), _NAMES)]
    outputs = [*outputs, table_part(_NAMES, SectionType.STRINGS, names.data)]
    for output in outputs:
        if not output.offset:
            output.place(end, end)
            end = output.offset + (0 if output.is_zeros else output.nbytes)
    table = layout.align(end, WORD)
    head = layout.HEADER.pack(
        *(layout.IDENTIFICATION, kind, linkage.machine, layout.VERSION, 0),
        *(layout.HEADER.size if segments else 0, table, flags, layout.HEADER.size),
        *(layout.SEGMENT.size if segments else 0, len(segments)),
        *(layout.SECTION.size, len(outputs) + 1, len(outputs)),
    )
    pieces, end = [head, *segments], layout.HEADER.size + sum(map(len, segments))
    for output in outputs:
        if not output.is_zeros:
            pieces += [bytes(output.offset - end), *output.contents]
            end = output.offset + output.nbytes
    return [*pieces, bytes(table - end), bytes(layout.SECTION.size), *_headers(outputs, offsets, kind)]


def _headers(outputs: Sequence[OutputSection], names: Sequence[int], kind: int) -> Iterable[bytes]:
    numbers = {output.name: i + 1 for i, output in enumerate(outputs)}
    for output, name in zip(outputs, names, strict=True):
        mapped = kind == layout.SHARED and SectionFlag.IN_MEMORY in output.flags
        location = output.address if mapped else 0, output.offset, output.nbytes
        yield layout.SECTION.pack(
            *(name, output.kind, output.flags, *location),
            *(numbers.get(output.link, 0), output.info, output.alignment, output.entry),
        )
