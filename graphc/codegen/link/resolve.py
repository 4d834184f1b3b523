"""Symbols of several files of object code brought together: who defines what the others use."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.reader import Object, Section, Symbol, read_object
from graphc.codegen.machine.linkage import PAGE, Linkage

DATA = ".rodata.data"
"""Section of the blocks of data that come from elsewhere than from object code."""


@dataclass(frozen=True, eq=False)
class Program:
    """What is linked together."""

    linkage: Linkage
    flags: int
    sections: list[Section]
    symbols: list[Symbol]
    """All that are defined, in order, those without a name included."""
    defined: dict[str, Symbol]
    """Those that other files see, by name."""
    data: list[Section]
    """Blocks of data, which are no part of the sections."""

    def definition(self, symbol: Symbol) -> Symbol | None:
        """The place that a symbol stands for; None where another library has it."""
        if symbol.binding == layout.LOCAL:
            return symbol
        return self.defined.get(symbol.name)

    @property
    def missing(self) -> dict[str, Symbol]:
        """The symbols that are used and that nobody defines, by name, in the order of their use."""
        used = (place.symbol for section in self.sections for place in section.relocations)
        return {s.name: s for s in used if s.name and self.definition(s) is None}


def resolve(
    objects: Sequence[bytes],
    data: Mapping[str, bytes] = {},
    supply: Callable[[str], bytes | None] = lambda name: None,
) -> Program:
    """Reads files of object code. ``data`` are blocks by the names under which code finds them, ``supply`` gives
    the object code of a function that nobody defines, or None. Raises CompileError where two files define one name or
    where they are for different machines."""
    parts = [read_object(code) for code in objects]
    if not parts:
        raise CompileError("there is no object code to link")
    blocks = [_block(name, contents) for name, contents in data.items()]
    program = _program(parts, blocks)
    asked = set[str]()
    while wanted := [name for name in program.missing if name not in asked]:
        asked.update(wanted)
        parts += [read_object(code) for code in map(supply, wanted) if code is not None]
        program = _program(parts, blocks)
    return program


def _block(name: str, contents: bytes) -> Symbol:
    """The symbol of a block, which starts on a page."""
    section = Section(f"{DATA}.{name}", SectionFlag.IN_MEMORY, PAGE, len(contents), contents)
    return Symbol(name, layout.GLOBAL, layout.OBJECT, section, 0, len(contents), hidden=True)


def _program(parts: Sequence[Object], blocks: Sequence[Symbol]) -> Program:
    flags = 0
    for part in parts:
        flags |= part.flags
        if part.linkage is not parts[0].linkage:
            raise CompileError("object code of several machines cannot be linked together")
    symbols = [s for part in parts for s in part.symbols if s.section is not None]
    defined = _defined([*symbols, *blocks])
    sections = [s for part in parts for s in part.sections]
    return Program(parts[0].linkage, flags, sections, [*symbols, *blocks], defined, _sections(blocks))


def _sections(blocks: Iterable[Symbol]) -> list[Section]:
    return [s.section for s in blocks if s.section is not None]


def _defined(symbols: Iterable[Symbol]) -> dict[str, Symbol]:
    """Symbols by name; one that is defined weakly gives way to another."""
    found: dict[str, Symbol] = {}
    for symbol in symbols:
        if symbol.binding == layout.LOCAL:
            continue
        other = found.get(symbol.name)
        if other is None or other.binding == layout.WEAK != symbol.binding:
            found[symbol.name] = symbol
        elif symbol.binding != layout.WEAK:
            raise CompileError(
                f"{symbol.name} is defined twice",
                remedy="join_objects for each part, which hides what is its own",
            )
    return found
