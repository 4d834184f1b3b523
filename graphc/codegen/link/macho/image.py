"""File of a macOS library: load commands, segments, tables for the loader, and the signature."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag, Strings
from graphc.codegen.link.macho.layout import (
    DYNAMIC_SYMBOLS,
    HEADER,
    LIBRARY,
    MAGIC,
    SECTION,
    SEGMENT,
    SUBTYPES,
    SYMBOL,
    SYMBOLS,
    Command,
    SectionAttribute,
    SectionKind,
    SymbolFlag,
    build_version,
    from_c,
    section_names,
)
from graphc.codegen.link.macho.tables import (
    SIGNATURE_ALIGNMENT,
    ad_hoc_signature,
    export_trie,
    rebase_opcodes,
    signature_bytes,
)
from graphc.codegen.link.parts import OutputSection, Segment
from graphc.codegen.link.reader import Symbol
from graphc.codegen.link.segments import SegmentFlag
from graphc.codegen.machine.linkage import WORD, Linkage

_FLAGS = 0x100085
"""NOUNDEFS, DYLDLINK, TWOLEVEL, NO_REEXPORTED_DYLIBS."""
_LINK_EDIT = "__LINKEDIT"
_SEALED = 0x10
"""SG_READ_ONLY: the loader protects the segment once its words are rebased."""
_LIBRARY = Struct("<IIIIII")
"""Command and its bytes, offset of the name, time, version, oldest compatible version."""
_VERSION = 1 << 16
_SYSTEM = "/usr/lib/libSystem.B.dylib"
"""Library that each one must load, although this one needs nothing of it."""
_LOADER_TABLES = Struct("<IIIIIIIIIIII")
"""Command; offsets and bytes of rebases, binds, weak and lazy binds, exports."""
_DATA = Struct("<IIII")
"""Command, offset and bytes of a table."""
_ROOM = 256
"""Free bytes after the load commands, for tools that change names of libraries."""
_MOST_SECTIONS = 255
"""Maximum number of sections, which symbols number in a byte."""
_LARGEST = (1 << 31) - (1 << 20)
"""Maximum bytes of an image: code for x86-64 addresses data within two gigabytes of itself."""


class MachoImage:
    """A library of these segments by name, the first of which has the headers. ``place`` assigns addresses, so that
    the sections can be filled in; ``data`` returns the file."""

    def __init__(self, linkage: Linkage, name: str, segments: Mapping[str, Segment]):
        self.linkage, self.name = linkage, name
        self.segments = dict(segments)
        self.edit = Segment(SegmentFlag.READ, [])
        """Segment of the tables that only the loader reads."""
        self.tables: dict[str, tuple[int, int]] = {}
        """Offset and bytes of each table in the file."""
        self.counts = 0, 0
        """Local and exported symbols."""
        self.parts = [part for segment in self.segments.values() for part in segment.parts]
        if len(self.parts) > _MOST_SECTIONS:
            raise CompileError(f"the library would have {len(self.parts)} sections, at most {_MOST_SECTIONS} fit")

    def place(self) -> None:
        """Assign all sections their offsets in the file and addresses in memory. Raises CompileError for an image that
        is too large."""
        page, offset, address = self.linkage.page_bytes, 0, 0
        head = HEADER.size + sum(map(len, self._commands(bytes(16)))) + _ROOM
        for segment in self.segments.values():
            offset, address = segment.place(offset, address, 0 if offset else head, page)
            offset, address = layout.align(offset, page), layout.align(address, page)
            segment.file_bytes, segment.memory_bytes = offset - segment.offset, address - segment.address
        self.edit.offset, self.edit.address = offset, address
        if address > _LARGEST:
            raise CompileError(
                f"the library would take {address} bytes of memory, at most {_LARGEST} are possible",
                remedy="link a smaller library: put constants into a separate file",
            )

    def data(self, words: Iterable[int], exports: Sequence[Symbol], own: Sequence[Symbol]) -> bytes:
        """Return the file, once all sections are filled in. ``words`` are the addresses of words that depend on the
        library's, ``own`` the symbols of the library that it does not export."""
        page, start = self.linkage.page_bytes, self.edit.offset
        tables, names = bytearray(), Strings()
        contents = {
            "rebases": self._rebases(words),
            "exports": export_trie({from_c(s.name): s.address for s in exports}),
            "symbols": b"".join([*self._records(names, own, 0), *self._records(names, exports, SymbolFlag.EXTERNAL)]),
            "names": names.data,
        }
        self.counts = len(own), len(exports)
        for name, table in contents.items():
            self.tables[name] = start + len(tables), len(table)
            tables += table.ljust(layout.align(len(table), WORD), b"\0")
        tables = tables.ljust(layout.align(len(tables), SIGNATURE_ALIGNMENT), b"\0")
        limit = start + len(tables)
        self.tables["signature"] = limit, signature_bytes(self.name, limit)
        self.edit.file_bytes = sum(self.tables["signature"]) - start
        self.edit.memory_bytes = layout.align(self.edit.file_bytes, page)
        body = b"".join(self._contents()) + tables
        code = self._head(hashlib.sha256(self._head(bytes(16)) + body).digest()[:16]) + body
        return code + ad_hoc_signature(self.name, code, next(iter(self.segments.values())).file_bytes)

    def _rebases(self, words: Iterable[int]) -> bytes:
        offsets = dict[int, list[int]]()
        for word in words:
            starts = ((i, word - s.address, s.memory_bytes) for i, s in enumerate(self.segments.values()))
            number, offset = next((i, offset) for i, offset, nbytes in starts if 0 <= offset < nbytes)
            offsets.setdefault(number, []).append(offset)
        return rebase_opcodes(offsets, self.linkage.relative)

    def _records(self, names: Strings, symbols: Sequence[Symbol], flag: int) -> Iterable[bytes]:
        numbers = {id(s): i for i, part in enumerate(self.parts, 1) for s in part.sections}
        for s in symbols:
            kind = SymbolFlag.SECTION | flag
            yield SYMBOL.pack(names.offset(from_c(s.name)), kind, numbers[id(s.section)], 0, s.address)

    def _head(self, uuid: bytes) -> bytes:
        commands = self._commands(uuid)
        nbytes = sum(map(len, commands))
        subtype = SUBTYPES.get(self.linkage.machine, 0)
        head = HEADER.pack(MAGIC, self.linkage.machine, subtype, LIBRARY, len(commands), nbytes, _FLAGS, 0)
        return b"".join([head, *commands]).ljust(HEADER.size + nbytes + _ROOM, b"\0")

    def _contents(self) -> Iterable[bytes]:
        """Yield the bytes of all segments after the head."""
        end = len(self._head(bytes(16)))
        for segment in self.segments.values():
            for part in segment.parts:
                if not part.is_zeros:
                    yield bytes(part.offset - end)
                    yield from part.contents
                    end = part.offset + part.nbytes
            yield bytes(segment.offset + segment.file_bytes - end)
            end = segment.offset + segment.file_bytes

    def _commands(self, uuid: bytes) -> list[bytes]:
        """Return the load commands; all of them have the same sizes before and after ``place``."""
        (rebase, rebases), (trie, tries) = self._table("rebases"), self._table("exports")
        symbols, (names, name_bytes) = self._table("symbols")[0], self._table("names")
        own, exported = self.counts
        return [
            *(self._segment(name, segment) for name, segment in self.segments.items()),
            self._segment(_LINK_EDIT, self.edit),
            _library(Command.NAME, f"@rpath/{self.name}"),
            _LOADER_TABLES.pack(
                *(Command.LOADER_TABLES, _LOADER_TABLES.size, rebase, rebases, 0, 0, 0, 0, 0, 0, trie, tries)
            ),
            SYMBOLS.pack(Command.SYMBOLS, SYMBOLS.size, symbols, own + exported, names, name_bytes),
            DYNAMIC_SYMBOLS.pack(
                *(Command.DYNAMIC_SYMBOLS, DYNAMIC_SYMBOLS.size, 0, own, own, exported, own + exported, 0)
            ),
            Struct("<II16s").pack(Command.UUID, 24, _marked(uuid)),
            build_version(),
            _library(Command.LOAD_LIBRARY, _SYSTEM),
            _DATA.pack(Command.SIGNATURE, _DATA.size, *self._table("signature")),
        ]

    def _table(self, name: str) -> tuple[int, int]:
        offset, nbytes = self.tables.get(name, (0, 0))
        return (offset, nbytes) if nbytes else (0, 0)

    def _segment(self, name: str, s: Segment) -> bytes:
        rights = sum(right for flag, right in _RIGHTS.items() if flag in s.flags)
        nbytes = SEGMENT.size + len(s.parts) * SECTION.size
        place = s.address, s.memory_bytes, s.offset, s.file_bytes
        flags = _SEALED if s.is_sealed else 0
        head = SEGMENT.pack(
            *(Command.SEGMENT, nbytes, name.encode().ljust(16, b"\0"), *place, rights, rights, len(s.parts), flags)
        )
        return b"".join([head, *(section_record(part, part.offset, 0, 0) for part in s.parts)])


_RIGHTS = {SegmentFlag.READ: 1, SegmentFlag.WRITE: 2, SegmentFlag.EXECUTE: 4}
"""Permissions of segments in Mach-O (mach/vm_prot.h)."""


def section_record(part: OutputSection, offset: int, relocations: int, count: int) -> bytes:
    """Return the record of a section at an offset of the file, with ``count`` relocations at another."""
    flags = SectionKind.ZEROS if part.is_zeros else SectionKind.REGULAR
    if SectionFlag.EXECUTE in part.flags:
        flags |= SectionAttribute.CODE | SectionAttribute.SOME_CODE
    place = part.address, part.nbytes, 0 if part.is_zeros else offset, part.alignment.bit_length() - 1
    return SECTION.pack(*section_names(part.name), *place, relocations, count, flags, 0, 0, 0)


def _library(command: Command, name: str) -> bytes:
    text = name.encode() + b"\0"
    nbytes = layout.align(_LIBRARY.size + len(text), WORD)
    return _LIBRARY.pack(command, nbytes, _LIBRARY.size, 1, _VERSION, _VERSION) + text.ljust(
        nbytes - _LIBRARY.size, b"\0"
    )


def _marked(digest: bytes) -> bytes:
    """Return a digest as a UUID: version 8, of the form that its author chooses (RFC 9562)."""
    return digest[:6] + bytes([digest[6] & 0x0F | 0x80, digest[7], digest[8] & 0x3F | 0x80]) + digest[9:]
