"""The sections of a shared library, and where they lie in its file and in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag, SectionType, SegmentFlag
from graphc.codegen.link.reader import Section

_READ = SegmentFlag.READ


@dataclass(eq=False)
class Part:
    """A section of a library, of sections of object code or of one that the linker makes."""

    name: str
    kind: int
    flags: SectionFlag
    sections: list[Section]
    entry: int = 0
    """Bytes of an entry, where it is a table."""
    link: str = ""
    """Name of the section that it refers to."""
    info: int = 0
    offset: int = 0
    """Where it lies in the file."""
    address: int = 0
    nbytes: int = 0

    @property
    def alignment(self) -> int:
        """The largest of its sections'."""
        return max((s.alignment for s in self.sections), default=1)

    @property
    def is_zeros(self) -> bool:
        """Whether it takes memory, but no bytes of the file."""
        return self.kind == SectionType.ZEROS

    def place(self, offset: int, address: int) -> None:
        """Lays it, and its sections in order, at the next address that is aligned."""
        self.address = end = layout.align(address, self.alignment)
        self.offset = offset + self.address - address
        for section in self.sections:
            section.address = layout.align(end, section.alignment)
            end = section.end
        self.nbytes = end - self.address

    @property
    def contents(self) -> Iterable[bytes]:
        """Its bytes in the file, in pieces."""
        end = self.address
        for section in () if self.is_zeros else self.sections:
            yield bytes(section.address - end)
            yield section.data
            end = section.end


@dataclass(eq=False)
class Segment:
    """Parts with equal permissions, which the loader maps at once."""

    flags: SegmentFlag
    parts: list[Part]
    is_sealed: bool = False
    """Whether it may be written to only until the loader has completed it."""
    offset: int = 0
    address: int = 0
    file_bytes: int = 0
    memory_bytes: int = 0

    def place(self, offset: int, address: int, head: int, page: int) -> tuple[int, int]:
        """Lays its parts behind ``head`` bytes; returns where file and memory go on."""
        self.offset, self.address = offset, address
        offset, address = offset + head, address + head
        for part in self.parts:
            part.place(offset, address)
            address = part.address + part.nbytes
            offset = offset if part.is_zeros else part.offset + part.nbytes
        self.file_bytes = offset - self.offset
        end = layout.align(address, page) if self.is_sealed else address
        self.memory_bytes = end - self.address
        return offset, end


def place_all(segments: Sequence[Segment], head: int, page: int) -> int:
    """Lays segments behind the ``head`` bytes of the file's headers, each on pages of its own; returns where the file
    goes on."""
    offset = address = 0
    for segment in segments:
        offset = layout.align(offset, segment.parts[0].alignment) if offset else 0
        start = address if not offset else layout.align(address, page) + offset % page
        offset, address = segment.place(offset, start, 0 if offset else head, page)
    return offset


@dataclass
class Sorting:
    """Sections of object code by what may be done with them."""

    read: list[Part] = field(default_factory=list)
    execute: list[Part] = field(default_factory=list)
    sealed: list[Part] = field(default_factory=list)
    write: list[Part] = field(default_factory=list)


_GROUPS = (".rodata", ".text", ".data.rel.ro", ".data", ".bss")
"""Names of parts: sections whose names begin so, with a dot behind, are in the part of that name."""


_BOTH = SectionFlag.WRITE | SectionFlag.EXECUTE


def sort_sections(sections: Iterable[Section]) -> Sorting:
    """Parts of sections with equal names, zeros behind all else; raises CompileError for code that can be changed."""
    found: dict[tuple[str, SectionFlag, bool], Part] = {}
    for section in sections:
        if section.nbytes:
            if _BOTH in section.flags:
                raise CompileError(f"the section {section.name} may be written to and executed")
            name, zeros = _group(section.name), not section.data
            flags = section.flags & (SectionFlag.IN_MEMORY | SectionFlag.WRITE | SectionFlag.EXECUTE)
            kind = SectionType.ZEROS if zeros else SectionType.CONTENTS
            found.setdefault((name, flags, zeros), Part(name, kind, flags, [])).sections.append(section)
    sorting = Sorting()
    for part in sorted(found.values(), key=lambda part: part.is_zeros):
        if SectionFlag.EXECUTE in part.flags:
            sorting.execute.append(part)
        elif SectionFlag.WRITE not in part.flags:
            sorting.read.append(part)
        else:
            (sorting.sealed if part.name == ".data.rel.ro" else sorting.write).append(part)
    return sorting


def _group(name: str) -> str:
    return next((group for group in _GROUPS if name == group or name.startswith(f"{group}.")), name)


def segments_of(sorting: Sorting, data: Sequence[Part]) -> list[Segment]:
    """What is mapped, in order; what may be written to is never executed."""
    wanted = (
        Segment(_READ, sorting.read),
        Segment(_READ | SegmentFlag.EXECUTE, sorting.execute),
        Segment(_READ | SegmentFlag.WRITE, sorting.sealed, is_sealed=True),
        Segment(_READ | SegmentFlag.WRITE, sorting.write),
        Segment(_READ, list(data)),
    )
    return [segment for segment in wanted if segment.parts]
