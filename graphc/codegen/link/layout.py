"""The records and numbers of ELF files with 64 bits and the lowest byte first (System V ABI, chapters 4 and 5)."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct

HEADER = Struct("<16sHHIQQQIHHHHHH")
"""Identification, type, machine, version, entry, offsets of program and section headers, flags, bytes of this header,
bytes and count of program headers, of section headers, and the section with their names."""
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
"""64 bits, lowest byte first, version 1, System V."""
RELOCATABLE, SHARED = 1, 3
"""Types of files: object code, and a shared library."""
VERSION = 1
SYMBOL_SHIFT, TYPE_MASK = 32, 0xFFFFFFFF
"""Where the second word of a relocation has its symbol, and its type."""


class SectionType(IntEnum):
    """What a section holds."""

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
    """What a section is for."""

    WRITE = 1
    IN_MEMORY = 2
    EXECUTE = 4
    INFO = 0x40
    PER_THREAD = 0x400


class SegmentType(IntEnum):
    """What the loader does with a part of a file."""

    LOAD = 1
    DYNAMIC = 2
    NOTE = 4
    STACK = 0x6474E551
    READ_ONLY_LATER = 0x6474E552


class SegmentFlag(IntFlag):
    """What a program may do with memory."""

    EXECUTE = 1
    WRITE = 2
    READ = 4


class Tag(IntEnum):
    """Entries of the dynamic section."""

    END = 0
    NEEDED = 1
    HASH = 4
    STRINGS = 5
    SYMBOLS = 6
    RELOCATIONS = 7
    RELOCATION_BYTES = 8
    RELOCATION_ENTRY = 9
    STRING_BYTES = 10
    SYMBOL_ENTRY = 11
    NAME = 14
    FLAGS = 30
    RELATIVE_COUNT = 0x6FFFFFF9
    FLAGS_1 = 0x6FFFFFFB
    GNU_HASH = 0x6FFFFEF5


BIND_NOW, NOW = 8, 1
"""Of FLAGS and FLAGS_1: the loader binds all symbols when it loads."""
LOCAL, GLOBAL, WEAK = 0, 1, 2
"""Bindings of symbols."""
NO_TYPE, OBJECT, FUNCTION, OF_SECTION, OF_FILE, PER_THREAD_OBJECT = 0, 1, 2, 3, 4, 6
"""Types of symbols."""
VISIBLE, HIDDEN = 0, 2
"""Visibilities of symbols."""
NOWHERE, ABSOLUTE, COMMON = 0, 0xFFF1, 0xFFF2
"""Sections of symbols that lie in none; from RESERVED on the numbers have a meaning of their own."""
RESERVED = 0xFF00
NOTE_HEADER = Struct("<III4s")
"""Bytes of the name, bytes of what follows, type, name."""
BUILD_ID = 3
"""Type of the note that tells builds apart."""


def align(offset: int, alignment: int) -> int:
    """The next offset from here on that is a multiple."""
    return -(-offset // alignment) * alignment


class Strings:
    """A table of names, each of which stands there once."""

    def __init__(self) -> None:
        self._offsets = {"": 0}
        self._data = bytearray(1)

    def offset(self, name: str) -> int:
        """Where a name stands; it is added where it is new."""
        if name not in self._offsets:
            self._offsets[name] = len(self._data)
            self._data += name.encode() + b"\0"
        return self._offsets[name]

    @property
    def data(self) -> bytes:
        """The table."""
        return bytes(self._data)


def symbol_record(
    name: int, kind: int, section: int, value: int, nbytes: int, binding: int = GLOBAL, visibility: int = VISIBLE
) -> bytes:
    """An entry of a table of symbols."""
    return SYMBOL.pack(name, binding << 4 | kind, visibility, section, value, nbytes)


def relocation_record(offset: int, symbol: int, kind: int, addend: int) -> bytes:
    """An entry of a table of relocations."""
    return RELOCATION.pack(offset, symbol << SYMBOL_SHIFT | kind, addend)
