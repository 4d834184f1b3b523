"""Symbols of WebAssembly objects: definitions by name, and the functions and data that exports reach."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field

from graphc.base.errors import CompileError
from graphc.base.records import dataclass
from graphc.codegen.link.wasm_format import INSTRUCTIONS, Relocation, SymbolFlag, SymbolKind
from graphc.codegen.link.wasm_reader import (
    WasmData,
    WasmFunction,
    WasmObject,
    WasmRelocation,
    WasmSymbol,
    read_wasm_object,
)

STACK_POINTER, TABLE = "__stack_pointer", "__indirect_function_table"
"""Symbols that the linker defines."""
BLOCK_ALIGNMENT = 64
"""Alignment of a block of data, in bytes."""
_IN_TABLE = (Relocation.R_WASM_TABLE_INDEX_SLEB, Relocation.R_WASM_TABLE_INDEX_I32)


@dataclass
class WasmProgram:
    """Functions and data of a module, in the order of the objects."""

    exports: Mapping[str, WasmFunction]
    functions: list[WasmFunction]
    data: list[WasmData]
    blocks: list[WasmData]
    """Blocks of data that the caller passes, which are used."""
    definitions: Mapping[str, WasmSymbol]
    has_stack: bool = False
    """Whether code uses the stack pointer."""
    table: list[WasmFunction] = field(default_factory=list)
    """Functions whose addresses are taken, by address from 1 on."""
    imports: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """Type of each function of the host, by its module and name."""
    has_table: bool = False
    """Whether code calls functions by address."""

    def target(self, relocation: WasmRelocation) -> WasmSymbol:
        """Return the symbol with the definition that a relocation refers to."""
        symbol = relocation.symbol
        assert symbol is not None
        return symbol if symbol.definition is not None else self.definitions[symbol.name]


def resolve_wasm(
    objects: Sequence[bytes],
    exports: Collection[str],
    data: Mapping[str, bytes],
    supply: Callable[[str], bytes | None],
) -> WasmProgram:
    """Read objects, define every symbol that exports reach, and drop everything else.

    ``data`` defines blocks by name, and ``supply`` returns object code for a function that no object defines. Raises
    CompileError for duplicate or missing definitions, and for calls with another type than the function has.
    """
    definitions = {
        name: WasmSymbol(SymbolKind.DATA, name, SymbolFlag(0), WasmData(name, BLOCK_ALIGNMENT, contents))
        for name, contents in data.items()
    }
    resolver = _Resolver(definitions, supply)
    for code in objects:
        resolver.add(read_wasm_object(code))
    roots = {name: resolver.exported(name) for name in exports}
    return resolver.reached(roots, [definitions[name].definition for name in data])


class _Resolver:
    def __init__(self, definitions: dict[str, WasmSymbol], supply: Callable[[str], bytes | None]):
        self.definitions, self.supply = definitions, supply
        self.objects: list[WasmObject] = []

    def add(self, added: WasmObject) -> None:
        """Add an object and its definitions."""
        self.objects.append(added)
        for symbol in added.symbols:
            if symbol.definition is None or symbol.is_local:
                continue
            known = self.definitions.get(symbol.name)
            if known is not None and SymbolFlag.WEAK not in known.flags | symbol.flags:
                raise CompileError(f"the symbol {symbol.name} is defined twice")
            if known is None or SymbolFlag.WEAK in known.flags:
                self.definitions[symbol.name] = symbol

    def exported(self, name: str) -> WasmFunction:
        """Return an exported function."""
        symbol = self.definitions.get(name)
        if symbol is None or not isinstance(symbol.definition, WasmFunction):
            raise CompileError(f"the export {name} is not a function of the object code")
        return symbol.definition

    def reached(self, exports: Mapping[str, WasmFunction], blocks: Sequence[object]) -> WasmProgram:
        """Follow relocations from the exports on."""
        seen: set[int] = set()
        in_table: set[int] = set()
        program = WasmProgram(exports, [], [], [], self.definitions)
        waiting: list[WasmFunction | WasmData] = list(exports.values())
        while waiting:
            piece = waiting.pop()
            if id(piece) in seen:
                continue
            seen.add(id(piece))
            for relocation in piece.relocations:
                definition = self._definition(relocation, program)
                if definition is not None:
                    waiting.append(definition)
                    if relocation.rule in _IN_TABLE:
                        in_table.add(id(definition))
        program.functions = [f for o in self.objects for f in o.functions if id(f) in seen]
        program.data = [d for o in self.objects for d in o.data if id(d) in seen]
        program.blocks = [block for block in blocks if isinstance(block, WasmData) and id(block) in seen]
        program.table = [f for f in program.functions if id(f) in in_table]
        program.has_table = program.has_table or bool(program.table)
        return program

    def _definition(self, relocation: WasmRelocation, program: WasmProgram) -> WasmFunction | WasmData | None:
        symbol = relocation.symbol
        if symbol is None:
            return None
        if symbol.kind is SymbolKind.GLOBAL or symbol.kind is SymbolKind.TABLE:
            if symbol.name not in (STACK_POINTER, TABLE):
                raise CompileError(f"the {symbol.kind.name.lower()} {symbol.name} is not defined")
            program.has_stack = program.has_stack or symbol.kind is SymbolKind.GLOBAL
            program.has_table = program.has_table or symbol.kind is SymbolKind.TABLE
            return None
        if symbol.definition is not None or symbol.name in INSTRUCTIONS:
            return symbol.definition
        is_call = relocation.rule is Relocation.R_WASM_FUNCTION_INDEX_LEB
        if symbol.imported is not None and is_call and symbol.name not in self.definitions:
            program.imports[symbol.imported] = symbol.signature
            return None
        definition = self._defined(symbol)
        if definition.kind is not symbol.kind or definition.signature != symbol.signature:
            raise CompileError(f"the symbol {symbol.name} is used as another type than it is defined")
        return definition.definition

    def _defined(self, symbol: WasmSymbol) -> WasmSymbol:
        if symbol.name not in self.definitions:
            code = self.supply(symbol.name) if symbol.kind is SymbolKind.FUNCTION else None
            if code is not None:
                self.add(read_wasm_object(code))
        if symbol.name not in self.definitions:
            raise CompileError(
                f"the symbol {symbol.name} is not defined", remedy="pass the object code or the data that defines it"
            )
        return self.definitions[symbol.name]
