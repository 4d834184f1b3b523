"""Linker of shared libraries for macOS: layout of sections, relocations, tables for the loader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from graphc.base.errors import CompileError
from graphc.codegen.link.layout import SectionFlag, SectionType
from graphc.codegen.link.macho.image import MachoImage
from graphc.codegen.link.macho.reader import CONSTANTS, read_macho
from graphc.codegen.link.parts import OutputSection, Segment
from graphc.codegen.link.reader import Section, Symbol
from graphc.codegen.link.relocate import Relocator, write_value
from graphc.codegen.link.resolve import LinkUnit, resolve
from graphc.codegen.link.segments import SegmentFlag
from graphc.codegen.machine.linkage import WORD

_READ, _WRITE, _EXECUTE = SectionFlag.IN_MEMORY, SectionFlag.WRITE, SectionFlag.EXECUTE
_SEALED = "__DATA,__const"
"""Constants with addresses, which the loader completes and then protects."""


def link_dylib(
    objects: Sequence[bytes],
    exports: Collection[str],
    *,
    name: str,
    data: Mapping[str, bytes] = {},
    supply: Callable[[str], bytes | None] = lambda name: None,
) -> bytes:
    """Return a library for macOS of Mach-O object files, with equal bytes for equal arguments.

    ``exports`` are the names in C that programs find in the library, whose file is called ``name``. Code finds each
    block of ``data`` by its name. Undefined symbols come from ``supply`` (the object code of a function, or None): the
    library imports nothing.

    Raises CompileError for a duplicate or missing definition, for position-dependent code, for a distance out of range,
    and for unknown relocations; ArtifactError for damaged object code.
    """
    program = resolve_macho(objects, exports, data, supply)
    for missing in program.missing:
        raise CompileError(f"the symbol {missing} is not defined", remedy="pass the object code that defines it")
    return _DylibLinker(program, sorted(exports), name).link()


def resolve_macho(
    objects: Sequence[bytes],
    exports: Collection[str],
    data: Mapping[str, bytes],
    supply: Callable[[str], bytes | None],
) -> LinkUnit:
    """Return Mach-O object files with resolved symbols, of which some may be undefined. Raises the errors of
    ``link_dylib`` for definitions."""
    program = resolve(objects, data, supply, read_macho)
    for export in exports:
        if export not in program.defined:
            raise CompileError(f"the export {export} is not defined")
    for section in program.sections:
        if _WRITE in section.flags and _EXECUTE in section.flags:
            raise CompileError(f"the section {section.name} may be written to and executed")
    return program


def output_sections(sections: Iterable[Section]) -> list[OutputSection]:
    """Return the output sections of sections with equal names, code first and zeros last."""
    outputs: dict[tuple[str, bool, SectionFlag], OutputSection] = {}
    for section in sections:
        if section.nbytes:
            name, zeros = section.name if "," in section.name else CONSTANTS, not section.data
            kind = SectionType.ZEROS if zeros else SectionType.CONTENTS
            new = OutputSection(name, kind, section.flags, [])
            outputs.setdefault((name, zeros, section.flags), new).sections.append(section)
    return sorted(outputs.values(), key=lambda output: (output.is_zeros, _EXECUTE not in output.flags))


class _DylibLinker:
    def __init__(self, program: LinkUnit, exports: Sequence[str], name: str):
        self.program, self.exports = program, [program.defined[name] for name in exports]
        self.relocator = Relocator(program)
        for section, relocation in self.relocator.words:
            if _WRITE not in section.flags:
                raise CompileError(
                    f"{relocation.rule.name} in {section.name}, which is read-only, depends on its position"
                )
        self.relocator.got.name = "__DATA_CONST,__got"
        self.image = MachoImage(program.linkage, name, self._segments())

    def _segments(self) -> dict[str, Segment]:
        outputs = output_sections([*self.program.sections, *self.program.data, self.relocator.got])
        sealed = [part for part in outputs if part.name in (_SEALED, self.relocator.got.name)]
        for part in sealed:
            part.name = part.name.replace("__DATA,", "__DATA_CONST,")
        write = [part for part in outputs if _WRITE in part.flags and part not in sealed]
        segments = {
            "__TEXT": Segment(
                SegmentFlag.READ | SegmentFlag.EXECUTE, [part for part in outputs if _WRITE not in part.flags]
            ),
            "__DATA_CONST": Segment(SegmentFlag.READ | SegmentFlag.WRITE, sealed, is_sealed=True),
            "__DATA": Segment(SegmentFlag.READ | SegmentFlag.WRITE, write),
        }
        return {name: segment for name, segment in segments.items() if segment.parts or name == "__TEXT"}

    def link(self) -> bytes:
        """Return the bytes of the library."""
        self.image.place()
        for section in self.program.sections:
            if section.relocations:
                section.data = self._relocated(section)
        relocator = self.relocator
        entries = [self._symbol(key) for key in relocator.table]
        relocator.got.data = b"".join(symbol.address.to_bytes(WORD, "little") for symbol in entries)
        words = [section.address + relocation.offset for section, relocation in relocator.words]
        words += [relocator.word(key) for key in relocator.table]
        placed = {id(s) for part in self.image.parts for s in part.sections}
        for symbol in self.exports:
            if id(symbol.section) not in placed:
                raise CompileError(f"the export {symbol.name} is empty")
        exported = {id(symbol) for symbol in self.exports}
        named = (s for s in self.program.symbols if not s.name.startswith("\1") and id(s) not in exported)
        return self.image.data(words, self.exports, [s for s in named if id(s.section) in placed])

    def _symbol(self, key: str | Symbol) -> Symbol:
        assert not isinstance(key, str)  # nothing is imported
        return key

    def _relocated(self, section: Section) -> bytes:
        data = bytearray(self.relocator.applied(section))
        for relocation in section.relocations:
            if relocation.rule.value == "address":
                symbol = self.program.definition(relocation.symbol)
                assert symbol is not None
                write_value(data, section, relocation, symbol.address + relocation.addend)
        return bytes(data)
