"""Records and constants of COFF object files and PE images (Microsoft's PE format specification)."""

from __future__ import annotations

from enum import IntEnum, IntFlag
from struct import Struct

FILE_HEADER = Struct("<HHIIIHH")
"""Machine, count of sections, time, offset and count of symbols, bytes of the optional header, characteristics."""
SECTION = Struct("<8sIIIIIIHHI")
"""Name, bytes in memory, address, bytes and offset in the file, offsets of relocations and line numbers, their counts,
flags."""
SYMBOL = Struct("<8sIhHBB")
"""Name, value, section, type, storage class, count of auxiliary records."""
RELOCATION = Struct("<IIH")
"""Offset, symbol, type."""
LONG_NAME = Struct("<II")
"""A symbol name of more than eight bytes: zero, and its offset in the string table."""
BIG_OBJECT = b"\0\0\xff\xff"
"""First bytes of import records, and of object files with more than 65,279 sections."""


class CoffFlag(IntFlag):
    """Attributes of a section (Characteristics)."""

    CODE = 0x20
    CONTENTS = 0x40
    ZEROS = 0x80
    INFORMATION = 0x200
    REMOVED = 0x800
    COMDAT = 0x1000
    MORE_RELOCATIONS = 0x1000000
    DISCARDABLE = 0x2000000
    EXECUTE = 0x20000000
    READ = 0x40000000
    WRITE = 0x80000000


ALIGNMENT_SHIFT, ALIGNMENT_MASK = 20, 15
"""Position and mask of the alignment in the flags of a section: 1 plus its binary logarithm."""
MANY = 0xFFFF
"""Count of relocations that says, with MORE_RELOCATIONS, that the first record holds the count."""


class StorageClass(IntEnum):
    """Visibility of a symbol."""

    EXTERNAL = 2
    STATIC = 3
    LABEL = 6
    FILE = 103
    SECTION = 104
    WEAK_EXTERNAL = 105


FUNCTION = 0x20
"""Type of symbols of functions."""
