"""Records and constants of 64-bit Mach-O files (Apple's mach-o/loader.h, nlist.h and reloc.h)."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct

HEADER = Struct("<IIIIIIII")
"""Magic, CPU type and subtype, type of file, count and bytes of load commands, flags, reserved."""
MAGIC = 0xFEEDFACF
COMMAND = Struct("<II")
"""Type and bytes of a load command."""
SEGMENT = Struct("<II16sQQQQIIII")
"""Command, name, address and bytes in memory, offset and bytes in the file, most and initial permissions, count of
sections, flags."""
SECTION = Struct("<16s16sQQIIIIIIII")
"""Name, name of its segment, address, bytes, offset, binary logarithm of the alignment, offset and count of
relocations, flags, reserved."""
SYMBOL = Struct("<IBBHQ")
"""Name, type, section, description, value."""
RELOCATION = Struct("<II")
"""Offset; symbol or section, and kind."""
SYMBOLS = Struct("<IIIIII")
"""Command, offset and count of symbols, offset and bytes of their names."""
DYNAMIC_SYMBOLS = Struct("<IIIIIIII48x")
"""Command; indices and counts of local, defined and undefined symbols; other tables, of which there are none."""
OBJECT, LIBRARY = 1, 6
"""Types of files."""
NAME_BYTES = 16
"""Maximum bytes of the name of a section."""
SUBTYPES = {0x1000007: 3}
"""Subtype of a CPU that stands for all processors of its type, if not 0."""


class Command(IntEnum):
    """Type of a load command."""

    SYMBOLS = 0x2
    DYNAMIC_SYMBOLS = 0xB
    LOAD_LIBRARY = 0xC
    NAME = 0xD
    SEGMENT = 0x19
    UUID = 0x1B
    SIGNATURE = 0x1D
    BUILD_VERSION = 0x32
    LOADER_TABLES = 0x80000022


class SectionKind(IntEnum):
    """Type of a section: the low byte of its flags."""

    REGULAR = 0
    ZEROS = 1
    STRINGS = 2
    LITERALS_4 = 3
    LITERALS_8 = 4
    LARGE_ZEROS = 12
    LITERALS_16 = 14


KIND_MASK = 0xFF


class SectionAttribute(IntFlag):
    """Attributes of a section: the other bits of its flags."""

    SOME_CODE = 0x400
    DEBUG = 0x2000000
    CODE = 0x80000000


class SymbolFlag(IntFlag):
    """Bits of a symbol's type."""

    EXTERNAL = 0x1
    SECTION = 0xE
    PRIVATE = 0x10
    """Not seen outside of the library."""
    DEBUG = 0xE0


WEAK_REFERENCE, WEAK_DEFINITION = 0x40, 0x80
"""Bits of a symbol's description."""
BY_SYMBOL = 0x08000000
"""Bit of a relocation that names a symbol, not a section."""
SCATTERED = 0x80000000
"""Bit of the offset of relocations in another form, which 64-bit files have not."""
NUMBER_MASK = 0xFFFFFF
"""Symbol or section of a relocation."""
_KIND_SHIFT = 24
LENGTH_MASK = 0x6
"""Length in the kind of a relocation."""


def kind_of(word: int) -> int:
    """Return the kind of a relocation, the key of ``Linkage.relocations``: type (4 bits), 0, binary logarithm of its
    bytes (2 bits), and whether it is relative to the location (1 bit)."""
    return (word & ~BY_SYMBOL) >> _KIND_SHIFT


def relocation_record(offset: int, number: int, kind: int) -> bytes:
    """Return a relocation that names a symbol."""
    return RELOCATION.pack(offset, number & NUMBER_MASK | BY_SYMBOL | kind << _KIND_SHIFT)


def to_c(name: str) -> str:
    """Return the name in C of a symbol: without its underscore. Others get a first byte 1, as in LLVM text."""
    return name[1:] if name.startswith("_") else f"\1{name}"


def from_c(name: str) -> str:
    """Return the symbol of a name in C."""
    return name[1:] if name.startswith("\1") else f"_{name}"


def section_names(name: str) -> tuple[bytes, bytes]:
    """Return section and segment of a name such as ``__TEXT,__text``, for a record."""
    segment, _, section = name.partition(",")
    return section.encode().ljust(NAME_BYTES, b"\0"), segment.encode().ljust(NAME_BYTES, b"\0")


def build_version() -> bytes:
    """Return the load command with the system that the code is for: macOS 11, the first on Apple's processors."""
    return _BUILD_VERSION.pack(Command.BUILD_VERSION, _BUILD_VERSION.size, _MACOS, _SYSTEM, _SYSTEM, 0)


_BUILD_VERSION = Struct("<IIIIII")
"""Command, platform, first system, system of the developer's tools, count of tools."""
_MACOS, _SYSTEM = 1, 11 << 16
