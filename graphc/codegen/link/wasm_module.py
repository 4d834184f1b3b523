"""Linker of WebAssembly modules: one module with its memory, from the object code of several."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link import wasm_format as form
from graphc.codegen.link.wasm_format import (
    External,
    Relocation,
    SectionId,
    counted,
    signed_leb,
    unsigned_leb,
    with_size,
)
from graphc.codegen.link.wasm_reader import WasmData, WasmFunction, WasmRelocation
from graphc.codegen.link.wasm_resolve import BLOCK_ALIGNMENT, WasmProgram, resolve_wasm

STACK_BYTES = 1 << 16
"""Bytes of the stack of calls, which lies at the start of memory: an overflow leaves the memory, and traps."""
MEMORY, HEAP = "memory", "heap"
"""Exports of a module besides its functions: its memory, and a global with the first address after its data."""
_LARGEST = 1 << 32
_GAP = 16
"""Zero bytes within data that are cheaper to store than another segment."""
_I32, _FUNCTION_REFERENCE = b"\x7f", b"\x70"
_I32_CONST, _END = b"\x41", b"\x0b"


def link_wasm(
    objects: Sequence[bytes],
    exports: Collection[str],
    *,
    data: Mapping[str, bytes] = {},
    supply: Callable[[str], bytes | None] = lambda name: None,
    stack_bytes: int = STACK_BYTES,
) -> bytes:
    """Return a WebAssembly module of object files, with equal bytes for equal arguments.

    It imports the functions that objects import from other modules than LINKED, and nothing else.

    ``exports`` are the names of its functions; it also exports MEMORY and HEAP. Functions and data that these do not
    reach are dropped. Code finds each block of ``data`` by its name. Undefined functions come from ``supply`` (the
    object code of a function, or None).

    Raises CompileError for a duplicate or missing definition and for unknown relocations; ArtifactError for damaged
    object code.
    """
    program = resolve_wasm(objects, exports, data, supply)
    return _ModuleLinker(program, stack_bytes).link()


class _ModuleLinker:
    def __init__(self, program: WasmProgram, stack_bytes: int):
        self.program, self.stack_bytes = program, layout.align(stack_bytes, BLOCK_ALIGNMENT)
        self.imports = {name: index for index, name in enumerate(program.imports)}
        self.indices = {id(function): index for index, function in enumerate(program.functions, len(self.imports))}
        self.addresses = {id(function): index for index, function in enumerate(program.table, 1)}
        self.types: dict[bytes, int] = {}
        for signature in (*program.imports.values(), *(function.signature for function in program.functions)):
            self._type(signature)
        self.heap = self._place()

    def _type(self, signature: bytes) -> int:
        return self.types.setdefault(signature, len(self.types))

    def _place(self) -> int:
        """Assign addresses to all data, and return the first one after it."""
        end = self.stack_bytes
        for segment in (*self.program.data, *self.program.blocks):
            segment.address = layout.align(end, segment.alignment)
            end = segment.address + len(segment.contents)
        end = layout.align(end, BLOCK_ALIGNMENT)
        if end >= _LARGEST:
            raise CompileError(
                f"the data takes {end} bytes, and WebAssembly memory has at most {_LARGEST}",
                remedy="build a smaller model, or one with narrow weights",
            )
        return end

    # ---- relocations

    def _value(self, relocation: WasmRelocation) -> int:
        rule = relocation.rule
        if rule is Relocation.R_WASM_TYPE_INDEX_LEB:
            return self._type(relocation.signature)
        if rule in (Relocation.R_WASM_GLOBAL_INDEX_LEB, Relocation.R_WASM_TABLE_NUMBER_LEB):
            return 0
        if relocation.symbol is not None and relocation.symbol.imported in self.imports:
            return self.imports[relocation.symbol.imported]
        symbol = self.program.target(relocation)
        if isinstance(symbol.definition, WasmData):
            return symbol.definition.address + symbol.offset + relocation.addend
        numbers = self.indices if rule is Relocation.R_WASM_FUNCTION_INDEX_LEB else self.addresses
        return numbers[id(symbol.definition)]

    def _word(self, relocation: WasmRelocation) -> int:
        value = self._value(relocation)
        if not 0 <= value < _LARGEST:
            raise CompileError(f"{relocation.rule.name}: the address {value} lies outside of memory")
        return value

    def _body(self, function: WasmFunction) -> bytes:
        """Return the body with indices and addresses in as few bytes as possible."""
        pieces, end = [], 0
        for relocation in function.relocations:
            instruction = _instruction(function, relocation)
            if instruction:
                pieces += [function.body[end : relocation.offset - 1], instruction]
                end = relocation.offset + form.PADDED
                continue
            pieces.append(function.body[end : relocation.offset])
            value = self._word(relocation)
            if relocation.rule in form.SIGNED:
                pieces.append(_address_leb(value))
            else:
                pieces.append(unsigned_leb(value))
            end = relocation.offset + form.PADDED
        return with_size(b"".join([*pieces, function.body[end:]]))

    def _contents(self, segment: WasmData) -> bytes:
        contents = bytearray(segment.contents)
        for relocation in segment.relocations:
            contents[relocation.offset : relocation.offset + 4] = self._word(relocation).to_bytes(4, "little")
        return bytes(contents)

    # ---- sections

    def link(self) -> bytes:
        """Return the bytes of the module."""
        program = self.program
        bodies = [self._body(function) for function in program.functions]  # may add types
        sections = {
            SectionId.TYPE: counted(list(self.types)),
            SectionId.IMPORT: counted(self._imports()) if program.imports else b"",
            SectionId.FUNCTION: counted([unsigned_leb(self._type(f.signature)) for f in program.functions]),
            SectionId.TABLE: self._table() if program.has_table else b"",
            SectionId.MEMORY: counted([b"\0" + unsigned_leb(-(-self.heap // form.PAGE))]),
            SectionId.GLOBAL: counted(self._globals()),
            SectionId.EXPORT: counted(self._exports()),
            SectionId.ELEMENT: self._elements() if program.table else b"",
            SectionId.CODE: counted(bodies),
            SectionId.DATA: counted(self._segments()),
        }
        encoded = [bytes([number]) + with_size(content) for number, content in sections.items() if content]
        return b"".join([form.MAGIC, *encoded])

    def _imports(self) -> list[bytes]:
        return [
            form.text(module) + form.text(name) + bytes([External.FUNCTION]) + unsigned_leb(self._type(signature))
            for (module, name), signature in self.program.imports.items()
        ]

    def _table(self) -> bytes:
        size = unsigned_leb(len(self.program.table) + 1)
        return counted([_FUNCTION_REFERENCE + b"\1" + size + size])

    def _elements(self) -> bytes:
        functions = [unsigned_leb(self.indices[id(function)]) for function in self.program.table]
        return counted([b"\0" + _constant(1) + counted(functions)])

    def _globals(self) -> list[bytes]:
        stack = [_I32 + b"\1" + _constant(self.stack_bytes)] if self.program.has_stack else []
        return [*stack, _I32 + b"\0" + _constant(self.heap)]

    def _exports(self) -> list[bytes]:
        functions = [
            form.text(name) + bytes([External.FUNCTION]) + unsigned_leb(self.indices[id(function)])
            for name, function in self.program.exports.items()
        ]
        memory = form.text(MEMORY) + bytes([External.MEMORY, 0])
        heap = form.text(HEAP) + bytes([External.GLOBAL]) + unsigned_leb(int(self.program.has_stack))
        return [memory, heap, *functions]

    def _segments(self) -> list[bytes]:
        """Return all data that is not zero, neighbours in one segment."""
        runs: list[tuple[int, list[bytes]]] = []
        end = 0
        for segment in (*self.program.data, *self.program.blocks):
            contents = self._contents(segment).rstrip(b"\0")
            if not contents:
                continue
            gap = segment.address - end
            if runs and gap <= _GAP:
                runs[-1][1].extend([bytes(gap), contents])
            else:
                runs.append((segment.address, [contents]))
            end = segment.address + len(contents)
        return [b"\0" + _constant(start) + with_size(b"".join(chunks)) for start, chunks in runs]


def _instruction(function: WasmFunction, relocation: WasmRelocation) -> bytes:
    """Return the instruction that replaces a call; empty for other relocations."""
    symbol = relocation.symbol
    if symbol is None or symbol.definition is not None or symbol.name not in form.INSTRUCTIONS:
        return b""
    signature, code = form.INSTRUCTIONS[symbol.name]
    if function.body[relocation.offset - 1] != form.CALL or symbol.signature != signature:
        raise CompileError(f"the instruction {symbol.name} is not called as a function of its operands")
    return code


def _address_leb(value: int) -> bytes:
    """Encode an unsigned word of 32 bits as the signed LEB128 integer with the same bits."""
    return signed_leb(value - _LARGEST if value >= _LARGEST // 2 else value)


def _constant(value: int) -> bytes:
    """Encode the constant expression of an unsigned word of 32 bits."""
    return _I32_CONST + _address_leb(value) + _END
