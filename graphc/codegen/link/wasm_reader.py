"""Reader of WebAssembly object files: functions, data, their symbols and relocations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field

from graphc.base.errors import ArtifactError, CompileError
from graphc.base.records import dataclass
from graphc.codegen.link import wasm_format as form
from graphc.codegen.link.wasm_format import (
    ByteReader,
    External,
    Relocation,
    SectionId,
    Subsection,
    SymbolFlag,
    SymbolKind,
)

_MOST = 16
"""Binary logarithm of the largest alignment of data."""


@dataclass(eq=False)
class WasmRelocation:
    """Relocation at an offset of a function body or of data."""

    rule: Relocation
    offset: int
    symbol: WasmSymbol | None
    """Symbol that it refers to; None for a type."""
    addend: int = 0
    signature: bytes = b""
    """Encoded function type, of R_WASM_TYPE_INDEX_LEB."""


@dataclass(eq=False)
class WasmFunction:
    """Function of an object."""

    signature: bytes
    """Encoded type."""
    body: bytes
    """Locals and instructions."""
    relocations: list[WasmRelocation] = field(default_factory=list)
    name: str = ""


@dataclass(eq=False)
class WasmData:
    """Segment of data."""

    name: str
    alignment: int
    contents: bytes
    relocations: list[WasmRelocation] = field(default_factory=list)
    address: int = 0
    """Address in memory, once assigned."""


@dataclass(eq=False)
class WasmSymbol:
    """Name with its definition."""

    kind: SymbolKind
    name: str
    flags: SymbolFlag
    definition: WasmFunction | WasmData | None = None
    """None if it is undefined, and for globals and tables, which the linker defines."""
    offset: int = 0
    """Offset in its data."""
    signature: bytes = b""
    """Encoded type of a function."""
    imported: tuple[str, str] | None = None
    """Module and name of a function that the host defines."""

    @property
    def is_local(self) -> bool:
        """Whether only its own object sees it."""
        return SymbolFlag.LOCAL in self.flags


@dataclass(eq=False)
class WasmObject:
    """One object file."""

    functions: list[WasmFunction]
    data: list[WasmData]
    symbols: list[WasmSymbol]


def read_wasm_object(data: bytes) -> WasmObject:
    """Return the content of an object file. Raises ArtifactError for other or damaged files, and CompileError for
    features that this linker does not know."""
    return _ObjectReader(data).read()


class _ObjectReader:
    def __init__(self, data: bytes):
        if not data.startswith(form.MAGIC):
            raise ArtifactError("the object code is not a WebAssembly module of version 1")
        self.reader = ByteReader(data, start=len(form.MAGIC))
        self.types: list[bytes] = []
        self.imports: dict[External, list[tuple[str, str, bytes]]] = {kind: [] for kind in External}
        """Module, name and encoded type (of functions) of each import."""
        self.signatures: list[bytes] = []
        """Types of the functions that the object defines."""
        self.functions: list[WasmFunction] = []
        self.data: list[WasmData] = []
        self.symbols: list[WasmSymbol] = []
        self.starts: dict[int, list[tuple[int, int, WasmFunction | WasmData]]] = {}
        """For each section with contents: offset in the section, size, and owner of each piece."""
        self.section_ids: list[int] = []
        self.has_linking = False

    def read(self) -> WasmObject:
        read: dict[int, Callable[[ByteReader], None]] = {
            SectionId.TYPE: self._types,
            SectionId.IMPORT: self._imports,
            SectionId.FUNCTION: self._signatures,
            SectionId.CODE: self._code,
            SectionId.DATA: self._data,
            SectionId.CUSTOM: self._custom,
        }
        ignored = (SectionId.ELEMENT, SectionId.DATA_COUNT)  # relocations name all functions whose addresses are taken
        while not self.reader.is_done:
            number = self.reader.byte()
            known = number in SectionId._value2member_map_
            title = SectionId(number).name.lower().replace("_", " ") if known else str(number)
            section = self.reader.inner(f"the section {title} of the object code")
            self.section_ids.append(number)
            if number in read:
                read[number](section)
            elif number not in ignored:
                raise CompileError(f"the section {title} of WebAssembly object code cannot be linked")
        if not self.has_linking:
            raise ArtifactError("the WebAssembly module is not object code: it has no section linking")
        if len(self.functions) != len(self.signatures):
            raise ArtifactError(
                f"the object code has {len(self.signatures)} functions and {len(self.functions)} bodies"
            )
        return WasmObject(self.functions, self.data, self.symbols)

    # ---- sections of the core format

    def _types(self, section: ByteReader) -> None:
        for _ in range(section.unsigned()):
            start = section.position
            if section.byte() != 0x60:
                raise section.damage("a type is not that of a function")
            for _ in range(2):
                section.take(section.unsigned())
            self.types.append(section.data[start : section.position])

    def _type(self, section: ByteReader, number: int) -> bytes:
        if number >= len(self.types):
            raise section.damage(f"there is no type {number}")
        return self.types[number]

    def _imports(self, section: ByteReader) -> None:
        for _ in range(section.unsigned()):
            module, name, number = section.text(), section.text(), section.byte()
            if number not in External._value2member_map_:
                raise CompileError(f"the import {name} of kind {number} cannot be linked")
            kind, signature = External(number), b""
            if kind is External.FUNCTION:
                signature = self._type(section, section.unsigned())
            elif kind is External.GLOBAL:
                section.take(2)
            else:
                self._limits(section, is_table=kind is External.TABLE)
            self.imports[kind].append((module, name, signature))

    def _limits(self, section: ByteReader, is_table: bool) -> None:
        if is_table:
            section.byte()
        flags = section.byte()
        if flags > 1:
            raise CompileError("shared memory and memory of 64-bit addresses cannot be linked")
        for _ in range(1 + flags):
            section.unsigned()

    def _signatures(self, section: ByteReader) -> None:
        self.signatures = [self._type(section, section.unsigned()) for _ in range(section.unsigned())]

    def _code(self, section: ByteReader) -> None:
        base, pieces = section.position, self.starts.setdefault(len(self.section_ids) - 1, [])
        count = section.unsigned()
        if count != len(self.signatures):
            raise section.damage(f"{len(self.signatures)} functions have {count} bodies")
        for signature in self.signatures:
            size = section.unsigned()
            start = section.position - base
            function = WasmFunction(signature, section.take(size))
            self.functions.append(function)
            pieces.append((start, size, function))

    def _data(self, section: ByteReader) -> None:
        base, pieces = section.position, self.starts.setdefault(len(self.section_ids) - 1, [])
        for _ in range(section.unsigned()):
            kind = section.unsigned()
            if kind != 0 or section.byte() != 0x41:
                raise CompileError(f"data segments of kind {kind} cannot be linked")
            section.signed()
            if section.byte() != 0x0B:
                raise section.damage("the offset of a data segment is no constant")
            size = section.unsigned()
            start = section.position - base
            segment = WasmData("", 1, section.take(size))
            self.data.append(segment)
            pieces.append((start, size, segment))

    # ---- custom sections

    def _custom(self, section: ByteReader) -> None:
        name = section.text()
        if name == "linking":
            self._linking(section)
        elif name in ("reloc.CODE", "reloc.DATA"):
            self._relocations(section, name)

    def _linking(self, section: ByteReader) -> None:
        self.has_linking = True
        version = section.unsigned()
        if version != form.LINKING_VERSION:
            raise CompileError(f"object code of linking version {version} cannot be linked")
        while not section.is_done:
            number = section.byte()
            part = section.inner(f"the subsection {number} of the section linking")
            if number == Subsection.SEGMENTS:
                self._segments(part)
            elif number == Subsection.SYMBOLS:
                self.symbols = [self._symbol(part) for _ in range(part.unsigned())]
            elif number == Subsection.INITIALIZERS and part.unsigned():
                raise CompileError("object code with initializers cannot be linked")

    def _segments(self, part: ByteReader) -> None:
        count = part.unsigned()
        if count != len(self.data):
            raise part.damage(f"{len(self.data)} data segments have {count} names")
        for segment in self.data:
            segment.name, power, flags = part.text(), part.unsigned(), part.unsigned()
            if power > _MOST:
                raise part.damage(f"an alignment of 2^{power} is too large")
            if flags & 2:
                raise CompileError(f"the data {segment.name} of single threads cannot be linked")
            segment.alignment = 1 << power

    def _symbol(self, part: ByteReader) -> WasmSymbol:
        number, flags = part.byte(), SymbolFlag(part.unsigned())
        if number not in SymbolKind._value2member_map_:
            raise CompileError(f"symbols of kind {number} cannot be linked")
        kind = SymbolKind(number)
        if kind is SymbolKind.DATA:
            return self._data_symbol(part, flags)
        index = part.unsigned()
        if kind is SymbolKind.SECTION:
            return WasmSymbol(kind, "", flags)
        if SymbolFlag.UNDEFINED in flags:
            return self._undefined(part, kind, flags, index)
        name = part.text()
        if kind is not SymbolKind.FUNCTION:
            raise CompileError(f"object code that defines the {kind.name.lower()} {name} cannot be linked")
        own = index - len(self.imports[External.FUNCTION])
        if not 0 <= own < len(self.functions):
            raise part.damage(f"the symbol {name} is a function without a body")
        function = self.functions[own]
        function.name = name
        return WasmSymbol(kind, name, flags, function, signature=function.signature)

    def _undefined(self, part: ByteReader, kind: SymbolKind, flags: SymbolFlag, index: int) -> WasmSymbol:
        external = {SymbolKind.FUNCTION: External.FUNCTION, SymbolKind.GLOBAL: External.GLOBAL}.get(
            kind, External.TABLE
        )
        imports = self.imports[external]
        if index >= len(imports):
            raise part.damage(f"there is no import {index} of kind {kind.name.lower()}")
        module, name, signature = imports[index]
        imported = (module, name) if kind is SymbolKind.FUNCTION and module != form.LINKED else None
        own_name = part.text() if SymbolFlag.EXPLICIT_NAME in flags else name
        return WasmSymbol(kind, own_name, flags, signature=signature, imported=imported)

    def _data_symbol(self, part: ByteReader, flags: SymbolFlag) -> WasmSymbol:
        name = part.text()
        if SymbolFlag.UNDEFINED in flags:
            return WasmSymbol(SymbolKind.DATA, name, flags)
        if SymbolFlag.ABSOLUTE in flags or SymbolFlag.PER_THREAD in flags:
            raise CompileError(f"the symbol {name} with flags {int(flags):#x} cannot be linked")
        index, offset, size = part.unsigned(), part.unsigned(), part.unsigned()
        if index >= len(self.data) or offset + size > len(self.data[index].contents):
            raise part.damage(f"the symbol {name} lies beyond the end of its data")
        return WasmSymbol(SymbolKind.DATA, name, flags, self.data[index], offset)

    def _relocations(self, section: ByteReader, name: str) -> None:
        number = section.unsigned()
        if number not in self.starts:
            raise section.damage(f"{name} refers to section {number}, which has no contents")
        pieces = iter(self.starts[number])
        start, size, owner = next(pieces, (0, 0, None))
        for _ in range(section.unsigned()):
            relocation = self._relocation(section)
            nbytes = 4 if relocation.rule in form.WORDS else form.PADDED
            while owner is not None and relocation.offset >= start + size:
                start, size, owner = next(pieces, (0, 0, None))
            relocation.offset -= start
            before = owner.relocations[-1].offset if owner is not None and owner.relocations else -nbytes
            if owner is None or relocation.offset < before + nbytes or relocation.offset + nbytes > size:
                raise section.damage(f"a relocation of {name} lies outside of code and data, or is not in order")
            owner.relocations.append(relocation)

    def _relocation(self, section: ByteReader) -> WasmRelocation:
        number, offset, index = section.byte(), section.unsigned(), section.unsigned()
        if number not in Relocation._value2member_map_:
            raise CompileError(
                f"the relocation {number} of WebAssembly object code is unknown",
                remedy="pass static object code of 32-bit addresses, as graphc emits it",
            )
        rule = Relocation(number)
        addend = section.signed() if rule in form.WITH_ADDEND else 0
        if rule is Relocation.R_WASM_TYPE_INDEX_LEB:
            return WasmRelocation(rule, offset, None, signature=self._type(section, index))
        if index >= len(self.symbols) or self.symbols[index].kind is not form.OF_SYMBOL_KIND[rule]:
            raise section.damage(f"{rule.name} refers to symbol {index}, which is absent or of another kind")
        return WasmRelocation(rule, offset, self.symbols[index], addend)
