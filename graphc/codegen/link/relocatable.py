"""Joining of object files into one, with only chosen names visible from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.file import file_pieces, table_part
from graphc.codegen.link.layout import SectionFlag, SectionType, Strings
from graphc.codegen.link.parts import OutputSection
from graphc.codegen.link.reader import Section, Symbol
from graphc.codegen.link.resolve import LinkUnit, resolve

_KEPT = SectionFlag.IN_MEMORY | SectionFlag.WRITE | SectionFlag.EXECUTE
_STACK = ".note.GNU-stack"
"""Section whose flags tell a linker that the code needs no executable stack."""


def merge_objects(
    objects: Sequence[bytes],
    exports: Mapping[str, str],
    *,
    data: Mapping[str, bytes] = {},
    supply: Callable[[str], bytes | None] = lambda name: None,
) -> bytes:
    """Return one object file with the content of all files, of ``data`` and of ``supply`` (see link_shared).

    ``exports`` maps visible names in the files to their new names. All other defined names become local, so that files
    with equal names can be linked together. Undefined names may remain for the final link. Raises CompileError for an
    undefined export.
    """
    program = resolve(objects, data, supply)
    for name in exports:
        if name not in program.defined:
            raise CompileError(f"the export {name} is not defined")
    return _Writer(program, exports).write()


class _Writer:
    def __init__(self, program: LinkUnit, exports: Mapping[str, str]):
        self.program, self.sections = program, [*program.sections, *program.data]
        self.numbers = {id(s): i + 1 for i, s in enumerate(self.sections)}
        exported_as = {id(program.defined[name]): outside for name, outside in exports.items()}
        own = [(s.name, s) for s in program.symbols if id(s) not in exported_as]
        visible = [(outside, program.defined[name]) for name, outside in exports.items()]
        self.symbols = [*own, *visible, *program.missing.items()]
        self.first = 1 + len(own)
        """Number of the first global symbol."""
        self.symbol_numbers = {id(s): i + 1 for i, (_, s) in enumerate(self.symbols)}

    def write(self) -> bytes:
        """Return the bytes of the file."""
        outputs = [OutputSection(s.name, self._kind(s), s.flags & _KEPT, [s]) for s in self.sections]
        outputs.append(table_part(_STACK, SectionType.CONTENTS, b""))
        for number, section in enumerate(self.sections, 1):
            if section.relocations:
                table = b"".join(self._relocations(section))
                how = SectionType.RELOCATIONS, table, layout.RELOCATION.size, ".symtab", number, SectionFlag.INFO
                outputs.append(table_part(f".rela{section.name}", *how))
        names = Strings()
        table = b"".join(self._records(names))
        outputs.append(table_part(".symtab", SectionType.SYMBOLS, table, layout.SYMBOL.size, ".strtab", self.first))
        outputs.append(table_part(".strtab", SectionType.STRINGS, names.data))
        program, end = self.program, layout.HEADER.size
        return b"".join(file_pieces(layout.RELOCATABLE, program.linkage, program.flags, (), outputs, end))

    def _kind(self, section: Section) -> int:
        return SectionType.ZEROS if section.nbytes and not section.data else SectionType.CONTENTS

    def _relocations(self, section: Section) -> Iterable[bytes]:
        for relocation in section.relocations:
            symbol = self.program.definition(relocation.symbol) or self.program.missing[relocation.symbol.name]
            yield layout.relocation_record(relocation.offset, self._number(symbol), relocation.kind, relocation.addend)

    def _number(self, symbol: Symbol) -> int:
        return self.symbol_numbers[id(symbol)]

    def _records(self, names: Strings) -> Iterable[bytes]:
        yield bytes(layout.SYMBOL.size)
        for number, (name, s) in enumerate(self.symbols, 1):
            binding = layout.LOCAL if number < self.first else layout.GLOBAL
            section_number = self.numbers[id(s.section)] if s.section is not None else layout.NOWHERE
            yield layout.symbol_record(names.offset(name), s.kind, section_number, s.value, s.nbytes, binding)
