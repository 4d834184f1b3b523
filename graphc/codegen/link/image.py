"""File of a shared library: headers, sections, symbols for debuggers, and the build ID."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

from graphc.codegen.link import layout
from graphc.codegen.link.file import file_pieces, table_part
from graphc.codegen.link.layout import SectionType, Strings
from graphc.codegen.link.parts import OutputSection, Segment, place_all
from graphc.codegen.link.reader import Section, Symbol
from graphc.codegen.link.segments import SegmentFlag, SegmentType
from graphc.codegen.machine.linkage import WORD, Linkage

_ID_BYTES = 20
"""Bytes of the digest: as many as other linkers write."""
_NOTE = layout.NOTE_HEADER.pack(4, _ID_BYTES, layout.BUILD_ID, b"GNU\0")
BLANK_NOTE = _NOTE + bytes(_ID_BYTES)
"""The build-ID note before the digest is known."""
_STACK_ALIGNMENT = 16
_READ, _WRITE = SegmentFlag.READ, SegmentFlag.READ | SegmentFlag.WRITE


class Image:
    """A library of these segments. ``place`` assigns addresses, so that the sections can be filled in; ``data`` returns
    the file."""

    def __init__(self, linkage: Linkage, flags: int, segments: Sequence[Segment], note: Section, table: Section):
        self.linkage, self.flags, self.segments = linkage, flags, segments
        self.note, self.dynamic = note, table
        self.parts = [output for segment in segments for output in segment.parts]
        self.extra: list[OutputSection] = []
        """Sections of the file that are not mapped."""

    def place(self) -> None:
        """Assign all sections their offsets in the file and addresses in memory."""
        head = layout.HEADER.size + len(self._segments()) * layout.SEGMENT.size
        self.end = place_all(self.segments, head, self.linkage.page_bytes)

    def add_symbols(self, symbols: Iterable[Symbol], exports: Sequence[Symbol]) -> None:
        """Add the names of all loaded functions and objects, exported ones last."""
        names, numbers = Strings(), self.numbers
        exported = {id(s) for s in exports}
        visible = (s for s in symbols if s.kind in (layout.FUNCTION, layout.OBJECT) and id(s) not in exported)
        own = [s for s in visible if id(s.section) in numbers]
        records = [bytes(layout.SYMBOL.size)]
        for binding, symbols_of_binding in ((layout.LOCAL, own), (layout.GLOBAL, exports)):
            for s in symbols_of_binding:
                where = numbers[id(s.section)], s.address, s.nbytes
                records.append(layout.symbol_record(names.offset(s.name), s.kind, *where, binding))
        table, first = b"".join(records), 1 + len(own)
        self.extra = [
            table_part(".symtab", SectionType.SYMBOLS, table, layout.SYMBOL.size, ".strtab", first),
            table_part(".strtab", SectionType.STRINGS, names.data),
        ]

    @property
    def numbers(self) -> dict[int, int]:
        """Number of the library's section that holds a section of object code, by the latter's ``id``."""
        return {id(s): i + 1 for i, part in enumerate(self.parts) for s in part.sections}

    @property
    def data(self) -> bytes:
        """Bytes of the file, once all sections are filled in."""
        heads, outputs = list(self._segment_headers()), [*self.parts, *self.extra]
        pieces = file_pieces(layout.SHARED, self.linkage, self.flags, heads, outputs, self.end)
        return _identified(pieces)

    def _segments(self) -> list[tuple[int, int, Segment | OutputSection | None, int]]:
        """Return type, flags, content and alignment of each segment for the loader."""
        output_of = {id(part.sections[0]): part for part in self.parts}
        page = self.linkage.page_bytes
        return [
            *((SegmentType.LOAD, s.flags, s, page) for s in self.segments),
            (SegmentType.DYNAMIC, _WRITE, output_of[id(self.dynamic)], WORD),
            (SegmentType.NOTE, _READ, output_of[id(self.note)], self.note.alignment),
            (SegmentType.STACK, _WRITE, None, _STACK_ALIGNMENT),
            *((SegmentType.READ_ONLY_LATER, _READ, s, 1) for s in self.segments if s.is_sealed),
        ]

    def _segment_headers(self) -> Iterable[bytes]:
        for kind, flags, content, alignment in self._segments():
            offset = address = file = memory = 0
            if content is not None:
                offset, address = content.offset, content.address
                file, memory = (
                    (content.nbytes,) * 2
                    if isinstance(content, OutputSection)
                    else (content.file_bytes, content.memory_bytes)
                )
            yield layout.SEGMENT.pack(kind, flags, offset, address, address, file, memory, alignment)


def _identified(pieces: list[bytes]) -> bytes:
    """Return the file of these pieces with the digest of all of them in its note."""
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    pieces[pieces.index(BLANK_NOTE)] = _NOTE + digest.digest()[:_ID_BYTES]
    return b"".join(pieces)
