"""Linker of shared libraries for Windows: layout of sections, relocations, tables for the loader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from graphc.base.errors import ArtifactError, CompileError
from graphc.codegen.link.coff_layout import CoffFlag
from graphc.codegen.link.coff_reader import read_coff
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.pe_image import IMAGE_BASE, Directory, ImageSection, image_bytes, place_sections
from graphc.codegen.link.pe_tables import (
    FUNCTION_BYTES,
    base_relocations,
    export_bytes,
    export_directory,
    sorted_functions,
)
from graphc.codegen.link.reader import RelocationEntry, Section, Symbol
from graphc.codegen.link.relocate import write_value
from graphc.codegen.link.resolve import LinkUnit, resolve
from graphc.codegen.machine.linkage import WORD

_FUNCTIONS = ".pdata"
_READ = CoffFlag.CONTENTS | CoffFlag.READ
_CODE = CoffFlag.CODE | CoffFlag.READ | CoffFlag.EXECUTE


def link_dll(
    objects: Sequence[bytes],
    exports: Collection[str],
    *,
    name: str,
    data: Mapping[str, bytes] = {},
    supply: Callable[[str], bytes | None] = lambda name: None,
) -> bytes:
    """Return a DLL of COFF object files, with equal bytes for equal arguments.

    ``exports`` are the names that programs find in the library ``name``. Code finds each block of ``data`` by its name.
    Undefined symbols come from ``supply`` (the object code of a function, or None): the library imports nothing.
    Sections that no export needs are left out, such as second definitions of a constant.

    Raises CompileError for a duplicate or missing definition, for a distance out of range, and for unknown relocations;
    ArtifactError for damaged object code.
    """
    program, live = resolve_dll(objects, exports, data, supply)
    return _DllLinker(program, live, sorted(exports), name).link()


def resolve_dll(
    objects: Sequence[bytes],
    exports: Collection[str],
    data: Mapping[str, bytes],
    supply: Callable[[str], bytes | None],
) -> tuple[LinkUnit, list[Section]]:
    """Return COFF object files with resolved symbols, and the sections that exports need. Raises the errors of
    ``link_dll``."""
    program = resolve(objects, data, supply, read_coff)
    for export in exports:
        if export not in program.defined:
            raise CompileError(f"the export {export} is not defined")
    live = live_sections(program, exports)
    used = (relocation.symbol for section in live for relocation in section.relocations)
    for symbol in used:
        if program.definition(symbol) is None:
            raise CompileError(
                f"the symbol {symbol.name} is not defined", remedy="pass the object code that defines it"
            )
    return program, live


def live_sections(program: LinkUnit, exports: Collection[str]) -> list[Section]:
    """Return the sections that exports reach by relocations, in order, with the unwind tables of their functions."""
    live, pending = set[int](), [program.defined[name].section for name in exports]
    tables = [s for s in program.sections if _is_functions(s)]
    while pending:
        while pending:
            section = pending.pop()
            if section is not None and id(section) not in live:
                live.add(id(section))
                pending += [_section_of(program, relocation) for relocation in section.relocations]
        pending = [t for t in tables if id(t) not in live and _describes(program, t, live)]
    return [s for s in (*program.sections, *program.data) if id(s) in live]


def _is_functions(section: Section) -> bool:
    return section.name == _FUNCTIONS or section.name.startswith(f"{_FUNCTIONS}$")


def _section_of(program: LinkUnit, relocation: RelocationEntry) -> Section | None:
    symbol = program.definition(relocation.symbol)
    return symbol.section if symbol is not None else None


def _describes(program: LinkUnit, table: Section, live: Collection[int]) -> bool:
    """Return whether a table describes functions in a live section. LLVM writes one table for each code section."""
    return bool(table.relocations) and id(_section_of(program, table.relocations[0])) in live


def _check_functions(table: Section) -> None:
    """Raise ArtifactError for a section that cannot be a table of functions."""
    if len(table.data) % FUNCTION_BYTES or len(table.data) != table.nbytes:
        raise ArtifactError(f"the section {table.name} has a partial record")
    if (SectionFlag.WRITE | SectionFlag.EXECUTE) & table.flags:
        raise ArtifactError(f"the section {table.name} may be written to or executed")


class _DllLinker:
    def __init__(self, program: LinkUnit, live: Sequence[Section], exports: Sequence[str], name: str):
        self.program, self.linkage, self.name, self.exports = program, program.linkage, name, exports
        self.inputs = live
        for section in live:
            if SectionFlag.WRITE in section.flags and SectionFlag.EXECUTE in section.flags:
                raise CompileError(f"the section {section.name} may be written to and executed")
            if _is_functions(section):
                _check_functions(section)
        self.directory = self._reserved(".edata", export_bytes(name, exports))
        functions = b"".join(s.data for s in live if _is_functions(s))
        self.functions = self._reserved(_FUNCTIONS, len(functions))
        self.reloc = self._reserved(".reloc", len(base_relocations(self._word_addresses(), self.linkage.relative)))
        self._arrange()

    def _reserved(self, name: str, nbytes: int) -> Section:
        return Section(name, SectionFlag.IN_MEMORY, WORD, nbytes, bytes(nbytes))

    def _word_addresses(self) -> list[int]:
        """Return the addresses of all words that hold a whole address."""
        return [
            section.address + relocation.offset
            for section in self.inputs
            for relocation in section.relocations
            if relocation.rule.value == "address"
        ]

    def _arrange(self) -> None:
        """Place all sections. The size of the base relocations depends on the pages of words, so they come last."""
        code = [s for s in self.inputs if SectionFlag.EXECUTE in s.flags]
        write = [s for s in self.inputs if SectionFlag.WRITE in s.flags]
        moved = {id(s) for s in (*code, *write)}
        read = [s for s in self.inputs if id(s) not in moved and not _is_functions(s)]
        tables = [s for s in self.inputs if _is_functions(s)]
        self.sections = [
            ImageSection(".text", _CODE, code),
            ImageSection(".rdata", _READ, [self.directory, *read]),
            ImageSection(".data", _READ | CoffFlag.WRITE, write),
            ImageSection(_FUNCTIONS, _READ, tables),
            ImageSection(".reloc", _READ | CoffFlag.DISCARDABLE, [self.reloc]),
        ]
        self.sections = [s for s in self.sections if any(part.nbytes for part in s.sections)]
        place_sections(self.sections)
        table = base_relocations(self._word_addresses(), self.linkage.relative)
        self.reloc.data, self.reloc.nbytes = table, len(table)
        place_sections(self.sections)

    def link(self) -> bytes:
        """Return the bytes of the library."""
        starts = {id(part): section.address for section in self.sections for part in section.sections}
        for section in self.inputs:
            if section.relocations:
                section.data = self._applied(section, starts)
        addresses = [self.program.defined[name].address for name in self.exports]
        self.directory.data = export_directory(self.name, self.exports, addresses, self.directory.address)
        directories = {Directory.EXPORT: self.directory, Directory.BASE_RELOCATION: self.reloc}
        if self.functions.nbytes:
            self._sort_functions()
            directories[Directory.EXCEPTION] = self.functions
        return image_bytes(self.linkage.machine, self.sections, directories)

    def _sort_functions(self) -> None:
        """Replace the tables of functions by one that is sorted."""
        output = next(s for s in self.sections if s.name == _FUNCTIONS)
        self.functions.data = sorted_functions(b"".join(s.data for s in output.sections))
        self.functions.address, output.sections = output.address, [self.functions]

    def _applied(self, section: Section, starts: Mapping[int, int]) -> bytes:
        """Return the contents of a section with all relocations; ``starts`` are the addresses of the output sections,
        by the identity of their parts."""
        data = bytearray(section.data)
        for relocation in section.relocations:
            if relocation.rule.value != "nothing":
                symbol = self.program.definition(relocation.symbol)
                assert symbol is not None
                value = symbol.address + relocation.addend + self._bias(section, relocation, symbol, starts)
                write_value(data, section, relocation, value)
        return bytes(data)

    def _bias(self, section: Section, relocation: RelocationEntry, symbol: Symbol, starts: Mapping[int, int]) -> int:
        """Return the difference of a relocation's value and the address in the image."""
        kind = relocation.rule.value
        if kind == "address":
            return IMAGE_BASE
        if kind == "relative":
            return -section.address - relocation.offset
        return -starts[id(symbol.section)] if kind == "section" else 0
