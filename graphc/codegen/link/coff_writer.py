"""Writer of COFF object files: sections, symbols and relocations, added one after the other."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from graphc.codegen.link.coff_layout import (
    ALIGNMENT_SHIFT,
    FILE_HEADER,
    LONG_NAME,
    MANY,
    RELOCATION,
    SECTION,
    SYMBOL,
    CoffFlag,
    StorageClass,
)

_NAME_BYTES = 8


class CoffWriter:
    """Object file in the making. Equal calls give equal bytes."""

    def __init__(self, machine: int):
        self.machine = machine
        self._sections: list[tuple[str, CoffFlag, int, int, bytes, Sequence[tuple[int, int, int]]]] = []
        self._symbols: list[bytes] = []
        self._strings = bytearray(4)

    def add_symbol(self, name: str, section: int, storage: StorageClass, value: int = 0, kind: int = 0) -> int:
        """Add a symbol at an offset of a section, 0 for an undefined one; return its number."""
        text = name.encode()
        if len(text) > _NAME_BYTES:
            text = LONG_NAME.pack(0, len(self._strings))
            self._strings += name.encode() + b"\0"
        self._symbols.append(SYMBOL.pack(text.ljust(_NAME_BYTES, b"\0"), value, section, kind, storage, 0))
        return len(self._symbols) - 1

    def add_section(
        self,
        name: str,
        flags: CoffFlag,
        alignment: int,
        data: bytes,
        relocations: Sequence[tuple[int, int, int]] = (),
        zeros: int = 0,
    ) -> int:
        """Add a section with ``data`` or so many zeros, and relocations (offset, symbol, type); return its number.
        Names have at most eight bytes."""
        self._sections.append((name, flags, alignment, len(data) or zeros, data, relocations))
        return len(self._sections)

    def file(self) -> bytes:
        """Return the bytes of the file."""
        offset = FILE_HEADER.size + len(self._sections) * SECTION.size
        headers, contents = [], []
        for name, flags, alignment, nbytes, data, relocations in self._sections:
            records = [RELOCATION.pack(*relocation) for relocation in relocations]
            count = len(records)
            if count >= MANY:
                records.insert(0, RELOCATION.pack(count + 1, 0, 0))
                count, flags = MANY, flags | CoffFlag.MORE_RELOCATIONS
            flags |= alignment.bit_length() << ALIGNMENT_SHIFT
            places = offset if data else 0, offset + len(data) if records else 0
            headers.append(SECTION.pack(name.encode(), 0, 0, nbytes, *places, 0, count, 0, flags))
            contents += [data, *records]
            offset += len(data) + len(records) * RELOCATION.size
        struct.pack_into("<I", self._strings, 0, len(self._strings))
        head = FILE_HEADER.pack(self.machine, len(self._sections), 0, offset, len(self._symbols), 0, 0)
        return b"".join([head, *headers, *contents, *self._symbols, self._strings])
