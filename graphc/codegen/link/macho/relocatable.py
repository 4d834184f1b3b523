"""Joining of Mach-O object files into one, with only chosen names visible from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.layout import Strings
from graphc.codegen.link.macho.image import section_record
from graphc.codegen.link.macho.layout import (
    DYNAMIC_SYMBOLS,
    HEADER,
    LENGTH_MASK,
    MAGIC,
    OBJECT,
    RELOCATION,
    SECTION,
    SEGMENT,
    SUBTYPES,
    SYMBOL,
    SYMBOLS,
    Command,
    SymbolFlag,
    build_version,
    from_c,
    relocation_record,
)
from graphc.codegen.link.macho.shared import output_sections, resolve_macho
from graphc.codegen.link.parts import OutputSection
from graphc.codegen.link.reader import RelocationEntry, Section, Symbol
from graphc.codegen.machine.linkage import WORD

_ALL_RIGHTS = 7
_FARTHEST = 1 << 23
"""Addends of instructions are less: they have 24 bits, one of them the sign."""


def merge_macho(
    objects: Sequence[bytes],
    exports: Mapping[str, str],
    supply: Callable[[str], bytes | None] = lambda name: None,
) -> bytes:
    """Return one object file with the content of all files, and of ``supply`` (see ``link_dylib``).

    ``exports`` maps visible names in the files to their new names. All other defined names become local. Undefined
    names may remain for the final link. Raises CompileError for an undefined export.
    """
    return _MachoWriter(objects, exports, supply).file()


class _MachoWriter:
    def __init__(self, objects: Sequence[bytes], exports: Mapping[str, str], supply: Callable[[str], bytes | None]):
        self.program = program = resolve_macho(objects, list(exports), {}, supply)
        self.linkage = program.linkage
        self.parts = output_sections(program.sections)
        self.sections = [section for part in self.parts for section in part.sections]
        self.head_bytes = self._place()
        self.anchors: dict[int, Symbol] = {}
        """Symbol at the start of a section from which relocations subtract, by the section's ``id``."""
        used = [self._definition(r) for s in self.sections for r in s.relocations]
        used += [self._anchor(s) for s in self.sections for r in s.relocations if self._is_difference(r)]
        outside = {id(program.defined[name]): other for name, other in exports.items()}
        placed = {id(section) for section in self.sections}
        named = [s for s in program.symbols if not s.name.startswith("\1") and id(s.section) in placed]
        local = {id(s): s for s in (*named, *used) if s.section is not None and id(s) not in outside}
        for symbol in (*local.values(), *map(program.defined.__getitem__, exports)):
            if id(symbol.section) not in placed:
                raise CompileError(f"the symbol {symbol.name} is in an empty section")
        defined = [(outside[id(s)], s) for s in map(program.defined.__getitem__, exports)]
        undefined = {s.name: s for s in used if s.section is None}
        self.symbols = [*((s.name, s) for s in local.values()), *sorted(defined), *sorted(undefined.items())]
        self.counts = len(local), len(defined), len(undefined)
        self.numbers = {id(s): number for number, (_, s) in enumerate(self.symbols)}

    def _place(self) -> int:
        """Place all sections after each other; return the bytes of the headers."""
        head = HEADER.size + sum(map(len, self._commands([(0, 0)] * len(self.parts), 0, 0, 0)))
        address = 0
        for part in self.parts:
            part.place(head + address, address)
            address = part.address + part.nbytes
        return head

    def _definition(self, relocation: RelocationEntry) -> Symbol:
        symbol = relocation.symbol
        return self.program.definition(symbol) or self.program.missing[symbol.name]

    def _anchor(self, section: Section) -> Symbol:
        new = Symbol(f"\1l_{section.name}", layout.LOCAL, layout.OF_SECTION, section, 0, 0)
        return self.anchors.setdefault(id(section), new)

    def _is_difference(self, relocation: RelocationEntry) -> bool:
        return self.linkage.relocations[relocation.kind].value == "difference"

    def file(self) -> bytes:
        """Return the bytes of the file."""
        tables = [b"".join(self._part_relocations(part)) for part in self.parts]
        contents = b"".join(self._contents())
        start = self.head_bytes + layout.align(len(contents), WORD)
        places, end = [], start
        for table in tables:
            places.append((end if table else 0, len(table) // RELOCATION.size))
            end += len(table)
        names = Strings()
        records = b"".join(self._records(names))
        commands = self._commands(places, end, end + len(records), len(names.data))
        kind = self.linkage.machine, SUBTYPES.get(self.linkage.machine, 0), OBJECT
        head = HEADER.pack(MAGIC, *kind, len(commands), sum(map(len, commands)), 0, 0)
        body = contents.ljust(start - self.head_bytes, b"\0")
        return b"".join([head, *commands, body, *tables, records, names.data])

    def _commands(
        self, relocations: Sequence[tuple[int, int]], symbols: int, names: int, name_bytes: int
    ) -> list[bytes]:
        files = [part for part in self.parts if not part.is_zeros]
        memory = max((part.address + part.nbytes for part in self.parts), default=0)
        file_bytes = max((part.address + part.nbytes for part in files), default=0)
        start = next((part.offset - part.address for part in files), 0)
        nbytes = SEGMENT.size + len(self.parts) * SECTION.size
        place = 0, memory, start, file_bytes, _ALL_RIGHTS, _ALL_RIGHTS
        local, defined, undefined = getattr(self, "counts", (0, 0, 0))
        count = local + defined
        return [
            SEGMENT.pack(Command.SEGMENT, nbytes, b"", *place, len(self.parts), 0)
            + b"".join(
                section_record(part, part.offset, *place) for part, place in zip(self.parts, relocations, strict=True)
            ),
            build_version(),
            SYMBOLS.pack(Command.SYMBOLS, SYMBOLS.size, symbols, count + undefined, names, name_bytes),
            DYNAMIC_SYMBOLS.pack(
                *(Command.DYNAMIC_SYMBOLS, DYNAMIC_SYMBOLS.size, 0, local, local, defined, count, undefined)
            ),
        ]

    def _contents(self) -> Iterator[bytes]:
        end = self.head_bytes
        for part in self.parts:
            if not part.is_zeros:
                yield bytes(part.offset - end)
                yield from part.contents
                end = part.offset + part.nbytes

    def _part_relocations(self, part: OutputSection) -> Iterator[bytes]:
        """Yield the relocations of a section; write the addends of words into its contents."""
        for section in part.sections:
            data = bytearray(section.data)
            for relocation in section.relocations:
                offset = section.address - part.address + relocation.offset
                yield from self._relocation(section, relocation, offset, data)
            section.data = bytes(data)

    def _relocation(
        self, section: Section, relocation: RelocationEntry, offset: int, data: bytearray
    ) -> Iterator[bytes]:
        rule, kind, addend = relocation.rule, relocation.kind, relocation.addend - relocation.rule.addend
        number = self.numbers[id(self._definition(relocation))]
        if self._is_difference(relocation):
            yield relocation_record(offset, self.numbers[id(self._anchor(section))], kind)
            kind, addend = kind & LENGTH_MASK, addend - relocation.offset
        if rule.is_word:
            where = slice(relocation.offset, relocation.offset + rule.nbytes)
            data[where] = (addend % (1 << 8 * rule.nbytes)).to_bytes(rule.nbytes, "little")
        elif addend:
            if not -_FARTHEST <= addend < _FARTHEST:
                raise CompileError(f"{rule.name} of {relocation.symbol.name} is too far away: {addend} bytes")
            extra = next(k for k, other in self.linkage.relocations.items() if other.value == "addend")
            yield RELOCATION.pack(offset, addend % (1 << 24) | extra << 24)
        yield relocation_record(offset, number, kind)

    def _records(self, names: Strings) -> Iterable[bytes]:
        numbers = {id(s): i for i, part in enumerate(self.parts, 1) for s in part.sections}
        for number, (name, s) in enumerate(self.symbols):
            where = 0 if s.section is None else numbers[id(s.section)]
            kind = SymbolFlag.SECTION if where else SymbolFlag(0)
            kind |= SymbolFlag(0) if number < self.counts[0] else SymbolFlag.EXTERNAL
            yield SYMBOL.pack(names.offset(from_c(name)), kind, where, 0, s.address)
