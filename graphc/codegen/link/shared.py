"""Linker of shared libraries for Linux: layout of sections, relocations, tables for the loader."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.image import BLANK_NOTE, Image
from graphc.codegen.link.layout import SectionFlag, SectionType, Strings
from graphc.codegen.link.parts import OutputSection, Segment, segments_of, sort_sections
from graphc.codegen.link.reader import Section, Symbol
from graphc.codegen.link.relocate import Relocator
from graphc.codegen.link.resolve import LinkUnit, resolve
from graphc.codegen.link.segments import BIND_NOW, NOW, Tag
from graphc.codegen.machine.linkage import WORD

_BLOOM_SHIFT, _BLOOM_BITS = 26, 64
"""Shift and bits of the Bloom filter, which rejects most absent names at once: one word, two of its bits for each
name."""


def gnu_hash(name: str) -> int:
    """Return the hash of a name in the GNU hash table: h = 33 h + c from 5381 on, 32 bits."""
    return reduce(lambda h, c: h * 33 + c & 0xFFFFFFFF, name.encode(), 5381)


def system_v_hash(name: str) -> int:
    """Return the hash of a name in the table that all loaders know (System V ABI, chapter 5)."""
    h = 0
    for c in name.encode():
        h = (h << 4) + c
        high = h & 0xF0000000
        h = (h ^ high >> 24) & ~high
    return h & 0xFFFFFFFF


def _buckets(count: int) -> int:
    return max(1, count // 2)


def by_bucket(names: Sequence[str]) -> list[str]:
    """Return names in the order required by the GNU table."""
    return sorted(names, key=lambda name: (gnu_hash(name) % _buckets(len(names)), name))


def gnu_table(names: Sequence[str], first: int) -> bytes:
    """Return the GNU hash table of names in the order of ``by_bucket``. The first one is entry ``first`` of the symbol
    table."""
    count, hashes = _buckets(len(names)), [gnu_hash(name) for name in names]
    bloom = reduce(lambda bits, h: bits | 1 << h % _BLOOM_BITS | 1 << (h >> _BLOOM_SHIFT) % _BLOOM_BITS, hashes, 0)
    starts, chain = [0] * count, []
    for i, h in enumerate(hashes):
        bucket = h % count
        starts[bucket] = starts[bucket] or first + i
        last = i + 1 == len(hashes) or hashes[i + 1] % count != bucket
        chain.append(h & ~1 | last)
    head = struct.pack("<IIIIQ", count, first, 1, _BLOOM_SHIFT, bloom)
    return head + struct.pack(f"<{count + len(chain)}I", *starts, *chain)


def system_v_table(names: Sequence[str]) -> bytes:
    """Return the hash table of all symbols, the first of which has no name."""
    count, chain = _buckets(len(names)), [0] * len(names)
    starts = [0] * count
    for i, name in enumerate(names):
        if name:
            bucket = system_v_hash(name) % count
            chain[i], starts[bucket] = starts[bucket], i
    return struct.pack(f"<{2 + count + len(chain)}I", count, len(chain), *starts, *chain)


LIBC = frozenset(
    (
        *("memcpy", "memmove", "memset", "memcmp", "strcmp", "strlen"),
        *("syscall", "clock_gettime", "sched_yield", "aligned_alloc", "malloc", "calloc", "free"),
        *("pthread_create", "pthread_join", "pthread_detach", "pthread_sigmask"),
        *("open", "close", "read", "pread", "fstat", "lseek", "mmap", "munmap", "getenv", "__errno_location"),
    )
)
"""Functions that a library may import from libc.so.6: memory, files and threads. Math functions are in another
library."""
_IN_MEMORY, _WRITE = SectionFlag.IN_MEMORY, SectionFlag.WRITE


def link_shared(
    objects: Sequence[bytes],
    exports: Collection[str],
    *,
    data: Mapping[str, bytes] = {},
    soname: str = "",
    needed: Sequence[str] = ("libc.so.6",),
    supply: Callable[[str], bytes | None] = lambda name: None,
    allowed: Collection[str] = LIBC,
    symbols: bool = True,
) -> bytes:
    """Return a shared library of object files, with equal bytes for equal arguments.

    ``exports`` are the visible names. Code finds each block of ``data`` by its name, at the start of a read-only page.
    Undefined symbols come from ``supply`` (the object code of a function, or None), else from the libraries ``needed``,
    of which ``allowed`` lists the permitted names; a library without undefined symbols needs none of them. ``symbols``
    keeps the names of functions for debuggers and profilers.

    Raises CompileError for a duplicate or missing definition, for position-dependent code, for a distance out of range,
    and for unknown relocations; ArtifactError for damaged object code.
    """
    program = resolve(objects, data, supply)
    for name in program.missing:
        if name not in allowed:
            raise CompileError(
                f"the symbol {name} is not defined",
                remedy="pass the object code that defines it, or list it in allowed= for a needed library",
            )
    for name in exports:
        if name not in program.defined:
            raise CompileError(f"the export {name} is not defined")
    return _Linker(program, exports, needed if program.missing else (), soname).link(symbols)


class _Linker:
    def __init__(self, program: LinkUnit, exports: Collection[str], needed: Sequence[str], soname: str):
        self.program, self.linkage = program, program.linkage
        self.imports = list(program.missing)
        self.exports = by_bucket(sorted(set(exports)))
        self.names = Strings()
        """String table of the dynamic symbols."""
        self.tags = [(Tag.NEEDED, self.names.offset(name)) for name in needed]
        if soname:
            self.tags.append((Tag.NAME, self.names.offset(soname)))
        self.relocator = Relocator(program)
        self.got, self.plt = self.relocator.got, self.relocator.plt
        self.table = self.relocator.table
        for section, relocation in self.relocator.words:
            if _WRITE not in section.flags:
                raise CompileError(
                    f"{relocation.rule.name} in {section.name}, which is read-only, depends on its position"
                )
        self._make_sections()

    def _reserved(self, name: str, nbytes: int, alignment: int = WORD, flags: SectionFlag = _IN_MEMORY) -> Section:
        return Section(name, flags, alignment, nbytes, bytes(nbytes))

    def _make_sections(self) -> None:
        """Create the linker's own sections with their final sizes; contents that depend on addresses follow later."""
        count = 1 + len(self.imports) + len(self.exports)
        for name in (*self.imports, *self.exports):
            self.names.offset(name)
        self.note = self._filled(".note.gnu.build-id", BLANK_NOTE, 4)
        self.hash = self._filled(".hash", system_v_table(["", *self.imports, *self.exports]))
        self.gnu_hash = self._filled(".gnu.hash", gnu_table(self.exports, 1 + len(self.imports)))
        self.symbols = self._reserved(".dynsym", count * layout.SYMBOL.size)
        self.strings = self._filled(".dynstr", self.names.data, 1)
        self.relocations = self._reserved(
            ".rela.dyn", (len(self.relocator.words) + len(self.table)) * layout.RELOCATION.size
        )
        self.dynamic = self._reserved(
            ".dynamic", (len(self._tags()) + 1) * layout.DYNAMIC.size, WORD, _IN_MEMORY | _WRITE
        )

    def _filled(self, name: str, data: bytes, alignment: int = WORD) -> Section:
        return Section(name, _IN_MEMORY, alignment, len(data), data)

    def _tags(self) -> list[tuple[int, int]]:
        tags: list[tuple[int, int]] = [
            *self.tags,
            (Tag.HASH, self.hash.address),
            (Tag.GNU_HASH, self.gnu_hash.address),
            (Tag.STRINGS, self.strings.address),
            (Tag.SYMBOLS, self.symbols.address),
            (Tag.STRING_BYTES, self.strings.nbytes),
            (Tag.SYMBOL_ENTRY, layout.SYMBOL.size),
            (Tag.FLAGS, BIND_NOW),
            (Tag.FLAGS_1, NOW),
        ]
        if self.relocations.nbytes:
            relative = sum(self._is_own(key) for key in self.table) + self._own_words()
            tags += [
                (Tag.RELOCATIONS, self.relocations.address),
                (Tag.RELOCATION_BYTES, self.relocations.nbytes),
                (Tag.RELOCATION_ENTRY, layout.RELOCATION.size),
                (Tag.RELATIVE_COUNT, relative),
            ]
        return tags

    def _is_own(self, key: str | Symbol) -> bool:
        return not isinstance(key, str)

    def _own_words(self) -> int:
        relocations = (relocation for _, relocation in self.relocator.words)
        return sum(self.program.definition(relocation.symbol) is not None for relocation in relocations)

    # ---- layout

    def _arrange(self) -> list[Segment]:
        sorting = sort_sections(self.program.sections)
        hashed = [self._part(s, kind, link=".dynsym") for s, kind in self._hashes()]
        sorting.read[:0] = [
            self._part(self.note, SectionType.NOTE),
            *hashed,
            self._part(self.symbols, SectionType.DYNAMIC_SYMBOLS, layout.SYMBOL.size, ".dynstr", 1),
            self._part(self.strings, SectionType.STRINGS),
            *self._unless_empty(self.relocations, SectionType.RELOCATIONS, layout.RELOCATION.size, ".dynsym"),
        ]
        sorting.execute += self._unless_empty(self.plt, SectionType.CONTENTS, self.linkage.stub_bytes)
        sorting.sealed += [
            self._part(self.dynamic, SectionType.DYNAMIC, layout.DYNAMIC.size, ".dynstr"),
            *self._unless_empty(self.got, SectionType.CONTENTS, WORD),
        ]
        return segments_of(sorting, [self._part(s, SectionType.CONTENTS) for s in self.program.data])

    def _hashes(self) -> tuple[tuple[Section, int], ...]:
        return (self.gnu_hash, SectionType.GNU_HASH), (self.hash, SectionType.HASH)

    def _part(self, section: Section, kind: int, entry: int = 0, link: str = "", info: int = 0) -> OutputSection:
        return OutputSection(section.name, kind, section.flags, [section], entry, link, info)

    def _unless_empty(self, section: Section, kind: int, entry: int, link: str = "") -> list[OutputSection]:
        return [self._part(section, kind, entry, link)] if section.nbytes else []

    # ---- contents

    def link(self, with_symbols: bool) -> bytes:
        """Return the bytes of the library."""
        segments = self._arrange()
        image = Image(self.linkage, self.program.flags, segments, self.note, self.dynamic)
        image.place()
        self._fill(image.parts)
        if with_symbols:
            image.add_symbols(self.program.symbols, [self.program.defined[name] for name in self.exports])
        return image.data

    def _fill(self, outputs: Sequence[OutputSection]) -> None:
        for section in self.program.sections:
            if section.relocations:
                section.data = self.relocator.applied(section)
        self.plt.data = self.relocator.all_stubs()
        tags = [*self._tags(), (Tag.END, 0)]
        self.dynamic.data = b"".join(layout.DYNAMIC.pack(*tag) for tag in tags)
        self.relocations.data = self._dynamic_relocations()
        self.symbols.data = self._dynamic_symbols(outputs)

    def _dynamic_relocations(self) -> bytes:
        numbers = {name: 1 + i for i, name in enumerate(self.imports)}
        records: list[tuple[int, int, int, int]] = []
        for section, relocation in self.relocator.words:
            symbol, at = self.program.definition(relocation.symbol), section.address + relocation.offset
            if symbol is None:
                records.append((numbers[relocation.symbol.name], at, self.linkage.absolute, relocation.addend))
            else:
                records.append((0, at, self.linkage.relative, symbol.address + relocation.addend))
        for key in self.table:
            if isinstance(key, str):
                records.append((numbers[key], self.relocator.word(key), self.linkage.slot, 0))
            else:
                records.append((0, self.relocator.word(key), self.linkage.relative, key.address))
        return b"".join(layout.relocation_record(at, number, *rest) for number, at, *rest in sorted(records))

    def _dynamic_symbols(self, outputs: Sequence[OutputSection]) -> bytes:
        sections = {id(s): i + 1 for i, output in enumerate(outputs) for s in output.sections}
        records = [bytes(layout.SYMBOL.size)]
        for name in self.imports:
            records.append(layout.symbol_record(self.names.offset(name), layout.NO_TYPE, layout.NOWHERE, 0, 0))
        for name in self.exports:
            s = self.program.defined[name]
            section_number = sections[id(s.section)]
            records.append(layout.symbol_record(self.names.offset(name), s.kind, section_number, s.address, s.nbytes))
        return b"".join(records)
