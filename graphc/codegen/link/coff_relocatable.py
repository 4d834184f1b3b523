"""Joining of COFF object files into one, with only chosen names visible from outside."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from graphc.codegen.link import layout
from graphc.codegen.link.coff_layout import FUNCTION, CoffFlag, StorageClass
from graphc.codegen.link.coff_writer import CoffWriter
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.pe_shared import resolve_dll
from graphc.codegen.link.reader import Section, Symbol
from graphc.codegen.link.resolve import LinkUnit

_NAMES = (".text", ".rdata", ".data", ".bss", ".pdata", ".xdata")
"""Names that sections keep. Others, such as that of weights, become ``.rdata``."""


def merge_coff(
    objects: Sequence[bytes],
    exports: Collection[str],
    supply: Callable[[str], bytes | None] = lambda name: None,
) -> bytes:
    """Return one object file with everything that ``exports`` need, and only these names visible, see ``link_dll``."""
    program, live = resolve_dll(objects, exports, {}, supply)
    symbols = _SymbolTable(program, live)
    for name in sorted(exports):
        symbols.add(program.defined[name], StorageClass.EXTERNAL)
    for section in live:
        relocations = [(r.offset, symbols.number(r.symbol), r.kind) for r in section.relocations]
        how = _name(section), _flags(section), section.alignment
        symbols.writer.add_section(*how, section.data, relocations, section.nbytes)
    return symbols.writer.file()


class _SymbolTable:
    """Symbols of the joined file, each at its first use."""

    def __init__(self, program: LinkUnit, live: Sequence[Section]):
        self.program, self.writer = program, CoffWriter(program.linkage.machine)
        self.sections = {id(section): number for number, section in enumerate(live, 1)}
        self.numbers: dict[int, int] = {}

    def add(self, symbol: Symbol, storage: StorageClass) -> int:
        """Add a defined symbol and return its number."""
        kind = FUNCTION if symbol.kind == layout.FUNCTION else 0
        section = self.sections[id(symbol.section)]
        self.numbers[id(symbol)] = number = self.writer.add_symbol(symbol.name, section, storage, symbol.value, kind)
        return number

    def number(self, symbol: Symbol) -> int:
        """Return the number of a symbol's definition; add it if it is new."""
        definition = self.program.definition(symbol)
        assert definition is not None
        number = self.numbers.get(id(definition))
        return self.add(definition, StorageClass.STATIC) if number is None else number


def _name(section: Section) -> str:
    return section.name if section.name in _NAMES else ".rdata"


def _flags(section: Section) -> CoffFlag:
    if SectionFlag.EXECUTE in section.flags:
        return CoffFlag.CODE | CoffFlag.EXECUTE | CoffFlag.READ
    content = CoffFlag.CONTENTS if section.data else CoffFlag.ZEROS
    return content | CoffFlag.READ | (CoffFlag.WRITE if SectionFlag.WRITE in section.flags else CoffFlag(0))
