"""Constants of loaded files: types and permissions of segments, and tags of the dynamic section (System V ABI, 5)."""

from __future__ import annotations

from enum import IntEnum, IntFlag


class SegmentType(IntEnum):
    """Use of a segment by the loader (p_type)."""

    LOAD = 1
    DYNAMIC = 2
    NOTE = 4
    STACK = 0x6474E551
    READ_ONLY_LATER = 0x6474E552


class SegmentFlag(IntFlag):
    """Permissions of a segment (p_flags)."""

    EXECUTE = 1
    WRITE = 2
    READ = 4


class Tag(IntEnum):
    """Tags of the dynamic section."""

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
"""Values of FLAGS and FLAGS_1: the loader binds all symbols at load time."""
