"""Binary format of WebAssembly modules: numbers of sections, symbols and relocations, and LEB128 integers.

Sources: WebAssembly Core Specification 2.0, section 5 ("Binary Format"), and the tool conventions for object files
("Linking.md"), version 2.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag

from graphc.base.errors import ArtifactError

MAGIC = b"\0asm\1\0\0\0"
"""First bytes of a module: magic number, and version 1."""
PAGE = 1 << 16
"""Bytes of a page of memory."""
LINKING_VERSION = 2
PADDED = 5
"""Bytes of a relocated LEB128 integer of 32 bits in an object, whatever its value."""


class SectionId(IntEnum):
    """Number of a section."""

    CUSTOM = 0
    TYPE = 1
    IMPORT = 2
    FUNCTION = 3
    TABLE = 4
    MEMORY = 5
    GLOBAL = 6
    EXPORT = 7
    START = 8
    ELEMENT = 9
    CODE = 10
    DATA = 11
    DATA_COUNT = 12


class External(IntEnum):
    """Kind of an import or export."""

    FUNCTION = 0
    TABLE = 1
    MEMORY = 2
    GLOBAL = 3


class SymbolKind(IntEnum):
    """Kind of a symbol in the section ``linking``."""

    FUNCTION = 0
    DATA = 1
    GLOBAL = 2
    SECTION = 3
    TABLE = 5


class SymbolFlag(IntFlag):
    """Flags of a symbol."""

    WEAK = 1
    LOCAL = 2
    HIDDEN = 4
    UNDEFINED = 0x10
    EXPORTED = 0x20
    EXPLICIT_NAME = 0x40
    NO_STRIP = 0x80
    PER_THREAD = 0x100
    ABSOLUTE = 0x200


class Subsection(IntEnum):
    """Part of the section ``linking``."""

    SEGMENTS = 5
    INITIALIZERS = 6
    COMDATS = 7
    SYMBOLS = 8


class Relocation(IntEnum):
    """Change of the linker to code or data."""

    R_WASM_FUNCTION_INDEX_LEB = 0
    R_WASM_TABLE_INDEX_SLEB = 1
    R_WASM_TABLE_INDEX_I32 = 2
    R_WASM_MEMORY_ADDR_LEB = 3
    R_WASM_MEMORY_ADDR_SLEB = 4
    R_WASM_MEMORY_ADDR_I32 = 5
    R_WASM_TYPE_INDEX_LEB = 6
    R_WASM_GLOBAL_INDEX_LEB = 7
    R_WASM_TABLE_NUMBER_LEB = 20


OF_SYMBOL_KIND = {
    Relocation.R_WASM_FUNCTION_INDEX_LEB: SymbolKind.FUNCTION,
    Relocation.R_WASM_TABLE_INDEX_SLEB: SymbolKind.FUNCTION,
    Relocation.R_WASM_TABLE_INDEX_I32: SymbolKind.FUNCTION,
    Relocation.R_WASM_MEMORY_ADDR_LEB: SymbolKind.DATA,
    Relocation.R_WASM_MEMORY_ADDR_SLEB: SymbolKind.DATA,
    Relocation.R_WASM_MEMORY_ADDR_I32: SymbolKind.DATA,
    Relocation.R_WASM_GLOBAL_INDEX_LEB: SymbolKind.GLOBAL,
    Relocation.R_WASM_TABLE_NUMBER_LEB: SymbolKind.TABLE,
}
"""Kind of the symbol that each relocation refers to; R_WASM_TYPE_INDEX_LEB refers to a type."""
SIGNED = frozenset({Relocation.R_WASM_TABLE_INDEX_SLEB, Relocation.R_WASM_MEMORY_ADDR_SLEB})
"""Relocations that write a signed LEB128 integer."""
WORDS = frozenset({Relocation.R_WASM_TABLE_INDEX_I32, Relocation.R_WASM_MEMORY_ADDR_I32})
"""Relocations that write a word of four bytes."""
WITH_ADDEND = frozenset(
    {Relocation.R_WASM_MEMORY_ADDR_LEB, Relocation.R_WASM_MEMORY_ADDR_SLEB, Relocation.R_WASM_MEMORY_ADDR_I32}
)
"""Relocations with an addend."""


LINKED = "env"
"""Module of imports that the linker defines; functions of other modules come from the host."""
CALL = 0x10
"""Opcode of a call, before the index of its function."""
_VECTORS = b"\x60\x03\x7b\x7b\x7b\x01\x7b"
"""Type of a function of three vectors that returns one."""
INSTRUCTIONS = {
    "f32x4.relaxed_madd": (_VECTORS, b"\xfd\x85\x02"),
    "f64x2.relaxed_madd": (_VECTORS, b"\xfd\x87\x02"),
}
"""Type and code of each instruction that takes the place of calls of a function with its name."""


def unsigned_leb(value: int) -> bytes:
    """Encode an integer of at least 0 as LEB128, seven bits a byte, in as few bytes as possible."""
    encoded = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        encoded.append(low | (0x80 if value else 0))
        if not value:
            return bytes(encoded)


def signed_leb(value: int) -> bytes:
    """Encode an integer as signed LEB128, in as few bytes as possible."""
    encoded = bytearray()
    while True:
        low, value = value & 0x7F, value >> 7
        is_last = value == (-1 if low & 0x40 else 0)
        encoded.append(low if is_last else low | 0x80)
        if is_last:
            return bytes(encoded)


def counted(items: list[bytes]) -> bytes:
    """Encode a vector: the number of items, followed by the items."""
    return unsigned_leb(len(items)) + b"".join(items)


def with_size(content: bytes) -> bytes:
    """Encode the number of bytes, followed by the bytes."""
    return unsigned_leb(len(content)) + content


def text(name: str) -> bytes:
    """Encode a name."""
    return with_size(name.encode())


class ByteReader:
    """Cursor in bytes of an object. Every read beyond the end raises ArtifactError."""

    def __init__(self, data: bytes, what: str = "the object code", start: int = 0, end: int | None = None):
        self.data, self.what, self.position = data, what, start
        self.end = len(data) if end is None else end

    @property
    def is_done(self) -> bool:
        """Whether all bytes are read."""
        return self.position >= self.end

    def damage(self, fault: str) -> ArtifactError:
        """Return the error for a fault at the current position."""
        return ArtifactError(f"{self.what} is damaged: {fault} at byte {self.position}")

    def take(self, count: int) -> bytes:
        """Return the next ``count`` bytes."""
        if count > self.end - self.position:
            raise self.damage(f"{count} bytes are expected, {self.end - self.position} are left")
        self.position += count
        return self.data[self.position - count : self.position]

    def byte(self) -> int:
        """Return the next byte."""
        return self.take(1)[0]

    def unsigned(self, bits: int = 32) -> int:
        """Read an unsigned LEB128 integer of at most ``bits`` bits."""
        value, _ = self._groups(bits)
        if value >> bits:
            raise self.damage("an integer is too large")
        return value

    def signed(self, bits: int = 32) -> int:
        """Read a signed LEB128 integer of at most ``bits`` bits."""
        value, width = self._groups(bits)
        value -= (1 << width) if value >> width - 1 else 0
        if not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise self.damage("an integer is too large")
        return value

    def _groups(self, bits: int) -> tuple[int, int]:
        """Return the bits of a LEB128 integer as an unsigned one, and their number."""
        value = width = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << width
            width += 7
            if not byte & 0x80:
                return value, width
            if width >= bits:
                raise self.damage("an integer is too long")

    def text(self) -> str:
        """Read a name. Object code of one unit pads its name with zero bytes."""
        try:
            return self.take(self.unsigned()).rstrip(b"\0").decode()
        except UnicodeDecodeError as error:
            raise self.damage("a name is not UTF-8") from error

    def inner(self, what: str) -> ByteReader:
        """Return a reader of the next section or subsection, which begins with its size, and skip it here."""
        size = self.unsigned()
        start = self.position
        self.take(size)
        return ByteReader(self.data, what, start, start + size)
