"""Several files of object code as one, in which only chosen names can be seen from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.file import file_pieces, table_part
from graphc.codegen.link.layout import SectionFlag, SectionType, Strings
from graphc.codegen.link.parts import Part
from graphc.codegen.link.reader import Section, Symbol
from graphc.codegen.link.resolve import Program, resolve

_KEPT = SectionFlag.IN_MEMORY | SectionFlag.WRITE | SectionFlag.EXECUTE
_STACK = ".note.GNU-stack"
"""Section by whose flags a linker knows that the code runs no code on the stack."""


def merge_objects(
    objects: Sequence[bytes],
    exports: Mapping[str, str],
    *,
    data: Mapping[str, bytes] = {},
    supply: Callable[[str], bytes | None] = lambda name: None,
) -> bytes:
    """One file of object code with all that the files hold, and what ``data`` and ``supply`` add (see link_shared).

    ``exports`` gives the names in the files that are seen outside, each with what it is called there; all others that
    are defined become local, so that files made from equal names can be linked together. Raises CompileError for an
    export that is not defined; other names may be left for who links the file."""
    program = resolve(objects, data, supply)
    for name in exports:
        if name not in program.defined:
            raise CompileError(f"the export {name} is not defined")
    return _Writer(program, exports).write()


class _Writer:
    def __init__(self, program: Program, exports: Mapping[str, str]):
        self.program, self.sections = program, [*program.sections, *program.data]
        self.numbers = {id(s): i + 1 for i, s in enumerate(self.sections)}
        seen = {id(program.defined[name]): outside for name, outside in exports.items()}
        own = [(s.name, s) for s in program.symbols if id(s) not in seen]
        visible = [(outside, program.defined[name]) for name, outside in exports.items()]
        self.symbols = [*own, *visible, *program.missing.items()]
        self.first = 1 + len(own)
        """Number of the first symbol that is seen outside."""
        self.places = {id(s): i + 1 for i, (_, s) in enumerate(self.symbols)}

    def write(self) -> bytes:
        """The bytes of the file."""
        parts = [Part(s.name, self._kind(s), s.flags & _KEPT, [s]) for s in self.sections]
        parts.append(table_part(_STACK, SectionType.CONTENTS, b""))
        for number, section in enumerate(self.sections, 1):
            if section.relocations:
                table = b"".join(self._relocations(section))
                how = SectionType.RELOCATIONS, table, layout.RELOCATION.size, ".symtab", number, SectionFlag.INFO
                parts.append(table_part(f".rela{section.name}", *how))
        names = Strings()
        table = b"".join(self._records(names))
        parts.append(table_part(".symtab", SectionType.SYMBOLS, table, layout.SYMBOL.size, ".strtab", self.first))
        parts.append(table_part(".strtab", SectionType.STRINGS, names.data))
        program, end = self.program, layout.HEADER.size
        return b"".join(file_pieces(layout.RELOCATABLE, program.linkage, program.flags, (), parts, end))

    def _kind(self, section: Section) -> int:
        return SectionType.ZEROS if section.nbytes and not section.data else SectionType.CONTENTS

    def _relocations(self, section: Section) -> Iterable[bytes]:
        for place in section.relocations:
            symbol = self.program.definition(place.symbol) or self.program.missing[place.symbol.name]
            yield layout.relocation_record(place.offset, self._number(symbol), place.kind, place.addend)

    def _number(self, symbol: Symbol) -> int:
        return self.places[id(symbol)]

    def _records(self, names: Strings) -> Iterable[bytes]:
        yield bytes(layout.SYMBOL.size)
        for number, (name, s) in enumerate(self.symbols, 1):
            binding = layout.LOCAL if number < self.first else layout.GLOBAL
            place = self.numbers[id(s.section)] if s.section is not None else layout.NOWHERE
            yield layout.symbol_record(names.offset(name), s.kind, place, s.value, s.nbytes, binding)
