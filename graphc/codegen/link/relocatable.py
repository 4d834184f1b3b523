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
        self.program = program
        outputs: dict[tuple[str, int, int], OutputSection] = {}
        self.output_of: dict[int, OutputSection] = {}
        for s in (*program.sections, *program.data):
            how = s.name, self._kind(s), s.flags & _KEPT
            self.output_of[id(s)] = output = outputs.setdefault(how, OutputSection(*how, []))
            output.sections.append(s)
        self.outputs = [*outputs.values()]
        for output in self.outputs:
            output.place(0, 0)  # So that addresses are offsets in the output section.
        self.numbers = {id(output): i + 1 for i, output in enumerate(self.outputs)}
        exported_as = {id(program.defined[name]): outside for name, outside in exports.items()}
        # A section symbol stands for the beginning of its output section, which has one.
        first_of = {id(self.output_of[id(s.section)]): s for s in reversed(program.symbols) if _is_section(s)}
        firsts = {id(s) for s in first_of.values()}
        kept = [s for s in program.symbols if not _is_section(s) or id(s) in firsts]
        own = [(s.name, s) for s in kept if id(s) not in exported_as]
        visible = [(outside, program.defined[name]) for name, outside in exports.items()]
        self.symbols = [*own, *visible, *program.missing.items()]
        self.first = 1 + len(own)
        """Number of the first global symbol."""
        self.symbol_numbers = {id(s): i + 1 for i, (_, s) in enumerate(self.symbols)}
        for s in filter(_is_section, program.symbols):
            self.symbol_numbers[id(s)] = self.symbol_numbers[id(first_of[id(self.output_of[id(s.section)])])]
        self.offsets = {id(s): s.address for output in self.outputs for s in output.sections}
        """Offset of each section in its output section."""

    def write(self) -> bytes:
        """Return the bytes of the file."""
        outputs = [*self.outputs, table_part(_STACK, SectionType.CONTENTS, b"")]
        for number, output in enumerate(self.outputs, 1):
            table = b"".join(record for section in output.sections for record in self._relocations(section))
            if table:
                how = SectionType.RELOCATIONS, table, layout.RELOCATION.size, ".symtab", number, SectionFlag.INFO
                outputs.append(table_part(f".rela{output.name}", *how))
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
            offset = relocation.offset + self.offsets[id(section)]
            addend = relocation.addend + (self.offsets[id(symbol.section)] if _is_section(symbol) else 0)
            yield layout.relocation_record(offset, self.symbol_numbers[id(symbol)], relocation.kind, addend)

    def _records(self, names: Strings) -> Iterable[bytes]:
        yield bytes(layout.SYMBOL.size)
        for number, (name, s) in enumerate(self.symbols, 1):
            binding = layout.LOCAL if number < self.first else layout.GLOBAL
            number, value = layout.NOWHERE, s.value
            if s.section is not None:
                number = self.numbers[id(self.output_of[id(s.section)])]
                value += 0 if _is_section(s) else self.offsets[id(s.section)]
            yield layout.symbol_record(names.offset(name), s.kind, number, value, s.nbytes, binding)


def _is_section(symbol: Symbol) -> bool:
    return symbol.kind == layout.OF_SECTION and symbol.section is not None
