"""Records and constants of 64-bit little-endian ELF files (System V ABI, chapters 4 and 5)."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct

HEADER = Struct("<16sHHIQQQIHHHHHH")
"""Identification, type, machine, version, entry, offsets of program and section headers, flags, bytes of this header,
bytes and count of program headers, of section headers, and the index of the section-name table."""
SEGMENT = Struct("<IIQQQQQQ")
"""Type, flags, offset, address, physical address, bytes in the file, bytes in memory, alignment."""
SECTION = Struct("<IIQQQQIIQQ")
"""Name, type, flags, address, offset, bytes, link, info, alignment, bytes of an entry."""
SYMBOL = Struct("<IBBHQQ")
"""Name, binding and type, visibility, section, value, bytes."""
RELOCATION = Struct("<QQq")
"""Offset, symbol and type, addend."""
DYNAMIC = Struct("<qQ")
"""Tag and value."""
IDENTIFICATION = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
"""64 bits, little-endian, version 1, System V."""
RELOCATABLE, SHARED = 1, 3
"""Types of files: object code, and a shared library."""
VERSION = 1
SYMBOL_SHIFT, TYPE_MASK = 32, 0xFFFFFFFF
"""Position of the symbol, and mask of the type, in the second word of a relocation."""


class SectionType(IntEnum):
    """Content of a section (sh_type)."""

    CONTENTS = 1
    SYMBOLS = 2
    STRINGS = 3
    RELOCATIONS = 4
    HASH = 5
    DYNAMIC = 6
    NOTE = 7
    ZEROS = 8
    DYNAMIC_SYMBOLS = 11
    GNU_HASH = 0x6FFFFFF6


class SectionFlag(IntFlag):
    """Attributes of a section (sh_flags)."""

    WRITE = 1
    IN_MEMORY = 2
    EXECUTE = 4
    INFO = 0x40
    PER_THREAD = 0x400


LOCAL, GLOBAL, WEAK = 0, 1, 2
"""Bindings of symbols."""
NO_TYPE, OBJECT, FUNCTION, OF_SECTION, OF_FILE, PER_THREAD_OBJECT = 0, 1, 2, 3, 4, 6
"""Types of symbols."""
VISIBLE, HIDDEN = 0, 2
"""Visibilities of symbols."""
NOWHERE, ABSOLUTE, COMMON = 0, 0xFFF1, 0xFFF2
"""Section numbers of symbols without a section; numbers from RESERVED on are special."""
RESERVED = 0xFF00
NOTE_HEADER = Struct("<III4s")
"""Bytes of the name, bytes of the content, type, name."""
BUILD_ID = 3
"""Type of the build-ID note."""


def align(offset: int, alignment: int) -> int:
    """Return the next multiple of ``alignment`` from ``offset`` on."""
    return -(-offset // alignment) * alignment


class Strings:
    """String table in which each name occurs once."""

    def __init__(self) -> None:
        self._offsets = {"": 0}
        self._data = bytearray(1)

    def offset(self, name: str) -> int:
        """Return the offset of a name; add it if it is new."""
        if name not in self._offsets:
            self._offsets[name] = len(self._data)
            self._data += name.encode() + b"\0"
        return self._offsets[name]

    @property
    def data(self) -> bytes:
        """Bytes of the table."""
        return bytes(self._data)


def symbol_record(
    name: int, kind: int, section: int, value: int, nbytes: int, binding: int = GLOBAL, visibility: int = VISIBLE
) -> bytes:
    """Return an entry of a symbol table."""
    return SYMBOL.pack(name, binding << 4 | kind, visibility, section, value, nbytes)


def relocation_record(offset: int, symbol: int, kind: int, addend: int) -> bytes:
    """Return an entry of a relocation table."""
    return RELOCATION.pack(offset, symbol << SYMBOL_SHIFT | kind, addend)
