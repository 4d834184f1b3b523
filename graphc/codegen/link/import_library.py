"""Import libraries for Windows: archives of records that say which functions and tables a DLL exports."""

from __future__ import annotations

import struct
from collections.abc import Collection

from graphc.codegen.link.archive import (
    INDEX,
    LONG_NAMES,
    MAGIC,
    MAX_NAME_BYTES,
    MEMBER_HEADER_BYTES,
    archive_member,
)
from graphc.codegen.link.coff_layout import BIG_OBJECT, CoffFlag, StorageClass
from graphc.codegen.link.coff_writer import CoffWriter

_IMPORT = struct.Struct("<4sHHIIHH")
"""Identification, version, machine, time, bytes of the names, hint, type."""
_CODE, _TABLE, _BY_NAME = 0, 1, 1 << 2
"""Types of imports, and the flag of those that the loader finds by their name."""
_DESCRIPTOR_BYTES, _WORD = 20, 8
_NAME_FIELD, _ADDRESSES_FIELD = 12, 16
"""Offsets in an import descriptor, whose first field is the address of the names to look up."""
_IMAGE_RELATIVE = 3
"""IMAGE_REL_AMD64_ADDR32NB."""
_DATA = CoffFlag.CONTENTS | CoffFlag.READ | CoffFlag.WRITE


def write_import_library(dll: str, exports: Collection[str], tables: Collection[str], machine: int) -> bytes:
    """Return the import library of a DLL's ``exports``, of which ``tables`` are data: linkers of Microsoft and of mingw
    read it. Equal arguments give equal bytes."""
    stem = dll.rpartition(".")[0] or dll
    last, descriptor, thunk = "__NULL_IMPORT_DESCRIPTOR", f"__IMPORT_DESCRIPTOR_{stem}", f"\x7f{stem}_NULL_THUNK_DATA"
    members: list[tuple[list[str], bytes]] = [
        ([descriptor], _descriptor(dll, machine, descriptor, (last, thunk))),
        ([last], _zeros(machine, last, {".idata$3": _DESCRIPTOR_BYTES})),
        ([thunk], _zeros(machine, thunk, {".idata$5": _WORD, ".idata$4": _WORD})),
    ]
    for name in sorted(exports):
        symbols = [f"__imp_{name}"] if name in tables else [f"__imp_{name}", name]
        members.append((symbols, _record(dll, name, _TABLE if name in tables else _CODE, machine)))
    return _archive(dll, members)


def _record(dll: str, name: str, kind: int, machine: int) -> bytes:
    """Return the short form of the object file that imports a name."""
    names = f"{name}\0{dll}\0".encode()
    return _IMPORT.pack(BIG_OBJECT, 0, machine, 0, len(names), 0, kind | _BY_NAME) + names


def _descriptor(dll: str, machine: int, name: str, needed: Collection[str]) -> bytes:
    """Return the object file with a DLL's import descriptor and its name; it requires the ends of both tables."""
    writer = CoffWriter(machine)
    writer.add_symbol(name, 1, StorageClass.EXTERNAL)
    text = writer.add_symbol(".idata$6", 2, StorageClass.STATIC)
    lookups, addresses = (writer.add_symbol(s, 0, StorageClass.SECTION) for s in (".idata$4", ".idata$5"))
    for other in needed:
        writer.add_symbol(other, 0, StorageClass.EXTERNAL)
    fields = ((0, lookups), (_NAME_FIELD, text), (_ADDRESSES_FIELD, addresses))
    relocations = [(offset, symbol, _IMAGE_RELATIVE) for offset, symbol in fields]
    writer.add_section(".idata$2", _DATA, 4, bytes(_DESCRIPTOR_BYTES), relocations)
    writer.add_section(".idata$6", _DATA, 2, dll.encode() + b"\0" * (2 - len(dll.encode()) % 2))
    return writer.file()


def _zeros(machine: int, name: str, sections: dict[str, int]) -> bytes:
    """Return the object file with the zeros at the end of a table, under a name."""
    writer = CoffWriter(machine)
    for section, nbytes in sections.items():
        writer.add_section(section, _DATA, 8 if nbytes == _WORD else 4, bytes(nbytes))
    writer.add_symbol(name, 1, StorageClass.EXTERNAL)
    return writer.file()


def _archive(dll: str, members: list[tuple[list[str], bytes]]) -> bytes:
    """Return the archive of members with their symbols, and both indices that Microsoft's format has."""
    long_name = dll.encode() + b"\0" if len(dll.encode()) > MAX_NAME_BYTES else b""
    head = "/0" if long_name else f"{dll}/"
    names = [archive_member(LONG_NAMES, long_name)] if long_name else []
    symbols = [(symbol, number) for number, (own, _) in enumerate(members) for symbol in own]
    texts = b"".join(symbol.encode() + b"\0" for symbol, _ in symbols)
    by_name = sorted(symbols, key=lambda item: item[0].encode())
    sorted_texts = b"".join(symbol.encode() + b"\0" for symbol, _ in by_name)
    bodies = [archive_member(head, data) for _, data in members]
    first_bytes = 4 + 4 * len(symbols) + len(texts)
    second_bytes = 8 + 4 * len(members) + 2 * len(symbols) + len(sorted_texts)
    start = len(MAGIC) + sum(MEMBER_HEADER_BYTES + size + size % 2 for size in (first_bytes, second_bytes))
    offsets, start = [], start + sum(map(len, names))
    for body in bodies:
        offsets.append(start)
        start += len(body)
    first = struct.pack(f">{1 + len(symbols)}I", len(symbols), *(offsets[number] for _, number in symbols))
    second = struct.pack(f"<{2 + len(members)}I", len(members), *offsets, len(symbols))
    second += struct.pack(f"<{len(symbols)}H", *(number + 1 for _, number in by_name))
    return b"".join(
        [MAGIC, archive_member(INDEX, first + texts), archive_member(INDEX, second + sorted_texts), *names, *bodies]
    )
