"""The file of a shared library: headers, parts, names for debuggers, and the digest by which builds are told apart."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from graphc.codegen.machine.linkage import WORD, Linkage
from graphc.codegen.native.elf import layout
from graphc.codegen.native.elf.layout import SectionFlag, SectionType, SegmentFlag, SegmentType, Strings
from graphc.codegen.native.elf.parts import Part, Segment, place_all
from graphc.codegen.native.elf.reader import Section, Symbol

_ID_BYTES = 20
"""Bytes of the digest: as many as other linkers write."""
_NOTE = layout.NOTE_HEADER.pack(4, _ID_BYTES, layout.BUILD_ID, b"GNU\0")
BLANK_NOTE = _NOTE + bytes(_ID_BYTES)
"""The note with the digest, before that is known."""
_STACK_ALIGNMENT = 16
_READ, _WRITE = SegmentFlag.READ, SegmentFlag.READ | SegmentFlag.WRITE


class Image:
    """A library of these segments. ``place`` says where all lies, so that the sections can be filled in; ``data``
    writes the file."""

    def __init__(self, linkage: Linkage, flags: int, segments: Sequence[Segment], note: Section, table: Section):
        self.linkage, self.flags, self.segments = linkage, flags, segments
        self.note, self.dynamic = note, table
        self.parts = [part for segment in segments for part in segment.parts]
        self.extra: list[Part] = []
        """Parts of the file that are not mapped."""

    def place(self) -> None:
        """Gives all sections their places in the file and in memory."""
        head = layout.HEADER.size + len(self._segments()) * layout.SEGMENT.size
        self.end = place_all(self.segments, head, self.linkage.page_bytes)

    def add_symbols(self, symbols: Iterable[Symbol], exports: Sequence[Symbol]) -> None:
        """The names of all functions and objects that are in memory, those that programs see last."""
        names, numbers = Strings(), self.numbers
        seen = {id(s) for s in exports}
        kept = (s for s in symbols if s.kind in (layout.FUNCTION, layout.OBJECT) and id(s) not in seen)
        own = [s for s in kept if id(s.section) in numbers]
        records = [bytes(layout.SYMBOL.size)]
        for binding, some in ((layout.LOCAL, own), (layout.GLOBAL, exports)):
            for s in some:
                where = numbers[id(s.section)], s.address, s.nbytes
                records.append(layout.symbol_record(names.offset(s.name), s.kind, *where, binding))
        self._add(".symtab", SectionType.SYMBOLS, b"".join(records), layout.SYMBOL.size, ".strtab", 1 + len(own))
        self._add(".strtab", SectionType.STRINGS, names.data)

    @property
    def numbers(self) -> dict[int, int]:
        """The number of the library's section that holds a section of object code, by its ``id``."""
        return {id(s): i + 1 for i, part in enumerate(self.parts) for s in part.sections}

    def _add(self, name: str, kind: int, data: bytes, entry: int = 0, link: str = "", info: int = 0) -> None:
        section = Section(name, SectionFlag(0), WORD if entry else 1, len(data), data)
        self.extra.append(Part(name, kind, section.flags, [section], entry, link, info))

    @property
    def data(self) -> bytes:
        """The file, when all sections are filled in."""
        names, start = Strings(), self.end
        parts = [*self.parts, *self.extra]
        offsets = [names.offset(part.name) for part in parts]
        offsets.append(names.offset(".shstrtab"))
        self._add(".shstrtab", SectionType.STRINGS, names.data)
        for part in self.extra:
            part.place(start, start)
            start = part.offset + part.nbytes
        parts = [*self.parts, *self.extra]
        table = layout.align(start, WORD)
        pieces, end = [self._header(table, len(parts) + 1), *self._segment_headers()], self.parts[0].offset
        for part in parts:
            if not part.is_zeros:
                pieces += [bytes(part.offset - end), *part.contents]
                end = part.offset + part.nbytes
        pieces += [bytes(table - end), bytes(layout.SECTION.size), *self._section_headers(parts, offsets)]
        return _identified(pieces)

    def _header(self, table: int, count: int) -> bytes:
        return layout.HEADER.pack(
            *(layout.IDENTIFICATION, layout.SHARED, self.linkage.machine, layout.VERSION, 0),
            *(layout.HEADER.size, table, self.flags),
            *(layout.HEADER.size, layout.SEGMENT.size, len(self._segments())),
            *(layout.SECTION.size, count, count - 1),
        )

    def _section_headers(self, parts: Sequence[Part], names: Sequence[int]) -> Iterable[bytes]:
        numbers = {part.name: i + 1 for i, part in enumerate(parts)}
        for part, name in zip(parts, names, strict=True):
            address = part.address if SectionFlag.IN_MEMORY in part.flags else 0
            place = address, part.offset, part.nbytes
            rest = numbers.get(part.link, 0), part.info, part.alignment, part.entry
            yield layout.SECTION.pack(name, part.kind, part.flags, *place, *rest)

    def _segments(self) -> list[tuple[int, int, Segment | Part | None, int]]:
        """Type, flags, place and alignment of what the loader is told of."""
        of = {id(part.sections[0]): part for part in self.parts}
        page = self.linkage.page_bytes
        return [
            *((SegmentType.LOAD, s.flags, s, page) for s in self.segments),
            (SegmentType.DYNAMIC, _WRITE, of[id(self.dynamic)], WORD),
            (SegmentType.NOTE, _READ, of[id(self.note)], self.note.alignment),
            (SegmentType.STACK, _WRITE, None, _STACK_ALIGNMENT),
            *((SegmentType.READ_ONLY_LATER, _READ, s, 1) for s in self.segments if s.is_sealed),
        ]

    def _segment_headers(self) -> Iterable[bytes]:
        for kind, flags, of, alignment in self._segments():
            offset = address = file = memory = 0
            if of is not None:
                offset, address = of.offset, of.address
                file, memory = (of.nbytes,) * 2 if isinstance(of, Part) else (of.file_bytes, of.memory_bytes)
            yield layout.SEGMENT.pack(kind, flags, offset, address, address, file, memory, alignment)


def _identified(pieces: list[bytes]) -> bytes:
    """The file of these pieces with the digest of all of them in its note."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    pieces[pieces.index(BLANK_NOTE)] = _NOTE + digest.digest()[:_ID_BYTES]
    return b"".join(pieces)
