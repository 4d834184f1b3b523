"""Symbol resolution between object files: the definition of each used symbol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.layout import SectionFlag
from graphc.codegen.link.reader import Object, Section, Symbol, read_object
from graphc.codegen.machine.linkage import PAGE, Linkage

DATA = ".rodata.data"
"""Section of the blocks of data that do not come from object code."""


class LinkUnit:
    """Sections and symbols to be linked together."""

    def __init__(
        self,
        linkage: Linkage,
        flags: int,
        sections: list[Section],
        symbols: list[Symbol],
        defined: dict[str, Symbol],
        data: list[Section],
    ):
        self.linkage, self.flags, self.sections = linkage, flags, sections
        self.symbols = symbols
        """All defined symbols, in order, including unnamed ones."""
        self.defined = defined
        """Globally visible symbols by name."""
        self.data = data
        """Blocks of data, which are not among the sections."""

    def definition(self, symbol: Symbol) -> Symbol | None:
        """Return the definition of a symbol; None if another library has it."""
        if symbol.binding == layout.LOCAL:
            return symbol
        return self.defined.get(symbol.name)

    @property
    def missing(self) -> dict[str, Symbol]:
        """Undefined symbols by name, in the order of their use."""
        used = (relocation.symbol for section in self.sections for relocation in section.relocations)
        return {s.name: s for s in used if s.name and self.definition(s) is None}


def resolve(
    objects: Sequence[bytes],
    data: Mapping[str, bytes] = {},
    supply: Callable[[str], bytes | None] = lambda name: None,
    read: Callable[[bytes], Object] = read_object,
) -> LinkUnit:
    """Read object files and resolve their symbols. ``data`` holds blocks by symbol name. ``supply`` returns the object
    code of an undefined function, or None. ``read`` reads an object file of their format. Raises CompileError for a
    duplicate definition, and for files of different machines."""
    objects_read = [read(code) for code in objects]
    if not objects_read:
        raise CompileError("there is no object code to link")
    blocks = [_block(name, contents) for name, contents in data.items()]
    program = _program(objects_read, blocks)
    requested = set[str]()
    while undefined := [name for name in program.missing if name not in requested]:
        requested.update(undefined)
        objects_read += [read(code) for code in map(supply, undefined) if code is not None]
        program = _program(objects_read, blocks)
    return program


def _block(name: str, contents: bytes) -> Symbol:
    """Return the symbol of a block, which starts on a page."""
    section = Section(f"{DATA}.{name}", SectionFlag.IN_MEMORY, PAGE, len(contents), contents)
    return Symbol(name, layout.GLOBAL, layout.OBJECT, section, 0, len(contents), hidden=True)


def _program(files: Sequence[Object], blocks: Sequence[Symbol]) -> LinkUnit:
    flags = 0
    for file in files:
        flags |= file.flags
        if file.linkage is not files[0].linkage:
            raise CompileError("object code of several machines cannot be linked together")
    symbols = [s for file in files for s in file.symbols if s.section is not None]
    defined = _defined([*symbols, *blocks])
    sections = [s for file in files for s in file.sections]
    return LinkUnit(files[0].linkage, flags, sections, [*symbols, *blocks], defined, _sections(blocks))


def _sections(blocks: Iterable[Symbol]) -> list[Section]:
    return [s.section for s in blocks if s.section is not None]


def _defined(symbols: Iterable[Symbol]) -> dict[str, Symbol]:
    """Return symbols by name; a strong definition replaces a weak one."""
    symbols_by_name: dict[str, Symbol] = {}
    for symbol in symbols:
        if symbol.binding == layout.LOCAL:
            continue
        other = symbols_by_name.get(symbol.name)
        if other is None or other.binding == layout.WEAK != symbol.binding:
            symbols_by_name[symbol.name] = symbol
        elif symbol.binding != layout.WEAK:
            raise CompileError(
                f"{symbol.name} is defined twice",
                remedy="call merge_objects for each library first, which makes its own names local",
            )
    return symbols_by_name
