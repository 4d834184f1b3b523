"""Output sections of a shared library, and their layout in its file and in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from graphc.base.errors import CompileError
from graphc.base.records import dataclass
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag, SectionType
from graphc.codegen.link.reader import Section
from graphc.codegen.link.segments import SegmentFlag

_READ = SegmentFlag.READ


@dataclass(eq=False)
class OutputSection:
    """Output section of a library, made of sections of object code or of one created by the linker."""

    name: str
    kind: int
    flags: SectionFlag
    sections: list[Section]
    entry: int = 0
    """Bytes of an entry, if it is a table."""
    link: str = ""
    """Name of the section that it refers to."""
    info: int = 0
    offset: int = 0
    """Offset in the file."""
    address: int = 0
    nbytes: int = 0

    @property
    def alignment(self) -> int:
        """Largest alignment of its sections."""
        return max((s.alignment for s in self.sections), default=1)

    @property
    def is_zeros(self) -> bool:
        """Whether it takes memory, but no bytes of the file."""
        return self.kind == SectionType.ZEROS

    def place(self, offset: int, address: int) -> None:
        """Place it, and its sections in order, at the next aligned address."""
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
    """Output sections with equal permissions, which the loader maps together."""

    flags: SegmentFlag
    parts: list[OutputSection]
    is_sealed: bool = False
    """Whether it becomes read-only after the loader has applied relocations (RELRO)."""
    offset: int = 0
    address: int = 0
    file_bytes: int = 0
    memory_bytes: int = 0

    def place(self, offset: int, address: int, head: int, page: int) -> tuple[int, int]:
        """Place its sections after ``head`` bytes; return where file and memory continue."""
        self.offset, self.address = offset, address
        offset, address = offset + head, address + head
        for output in self.parts:
            output.place(offset, address)
            address = output.address + output.nbytes
            offset = offset if output.is_zeros else output.offset + output.nbytes
        self.file_bytes = offset - self.offset
        end = layout.align(address, page) if self.is_sealed else address
        self.memory_bytes = end - self.address
        return offset, end


def place_all(segments: Sequence[Segment], head: int, page: int) -> int:
    """Place segments after the ``head`` bytes of the file's headers, each on separate pages. Return where the file
    continues."""
    offset = address = 0
    for segment in segments:
        offset = layout.align(offset, segment.parts[0].alignment) if offset else 0
        start = address if not offset else layout.align(address, page) + offset % page
        offset, address = segment.place(offset, start, 0 if offset else head, page)
    return offset


@dataclass
class Sorting:
    """Output sections by permissions."""

    read: list[OutputSection] = field(default_factory=list)
    execute: list[OutputSection] = field(default_factory=list)
    sealed: list[OutputSection] = field(default_factory=list)
    write: list[OutputSection] = field(default_factory=list)


_GROUPS = (".rodata", ".text", ".data.rel.ro", ".data", ".bss")
"""Names of output sections. An input section belongs to the one whose name is a prefix of its own, up to a dot."""


_BOTH = SectionFlag.WRITE | SectionFlag.EXECUTE


def sort_sections(sections: Iterable[Section]) -> Sorting:
    """Return output sections of input sections with equal names, zeros last; raises CompileError for writeable code."""
    outputs: dict[tuple[str, SectionFlag, bool], OutputSection] = {}
    for section in sections:
        if section.nbytes:
            if _BOTH in section.flags:
                raise CompileError(f"the section {section.name} may be written to and executed")
            name, zeros = _group(section.name), not section.data
            flags = section.flags & (SectionFlag.IN_MEMORY | SectionFlag.WRITE | SectionFlag.EXECUTE)
            kind = SectionType.ZEROS if zeros else SectionType.CONTENTS
            outputs.setdefault((name, flags, zeros), OutputSection(name, kind, flags, [])).sections.append(section)
    sorting = Sorting()
    for output in sorted(outputs.values(), key=lambda output: output.is_zeros):
        if SectionFlag.EXECUTE in output.flags:
            sorting.execute.append(output)
        elif SectionFlag.WRITE not in output.flags:
            sorting.read.append(output)
        else:
            (sorting.sealed if output.name == ".data.rel.ro" else sorting.write).append(output)
    return sorting


def _group(name: str) -> str:
    return next((group for group in _GROUPS if name == group or name.startswith(f"{group}.")), name)


def segments_of(sorting: Sorting, data: Sequence[OutputSection]) -> list[Segment]:
    """Return the mapped segments, in order; none is both writeable and executable."""
    segments = (
        Segment(_READ, sorting.read),
        Segment(_READ | SegmentFlag.EXECUTE, sorting.execute),
        Segment(_READ | SegmentFlag.WRITE, sorting.sealed, is_sealed=True),
        Segment(_READ | SegmentFlag.WRITE, sorting.write),
        Segment(_READ, list(data)),
    )
    return [segment for segment in segments if segment.parts]
