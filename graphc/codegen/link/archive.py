"""Static libraries: object files in a Unix archive with a symbol index."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from graphc.codegen.link import layout
from graphc.codegen.link.coff_reader import is_coff, read_coff
from graphc.codegen.link.elf32 import is_elf32, read_contents
from graphc.codegen.link.reader import read_object

MAGIC, _END = b"!<arch>\n", b"`\n"
MEMBER_HEADER_BYTES = 60
INDEX, LONG_NAMES = "/", "//"
"""Names of the members with the symbols, and with names that do not fit into a header."""
MAX_NAME_BYTES = 15
"""Maximum bytes of a name in a member's header."""


def write_archive(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of object files by name, in order, with an index of their global symbols. Equal members give
    equal bytes, because times, owners and permissions are constants. Raises ArtifactError for damaged object code."""
    index = [(symbol, name) for name, code in members.items() for symbol in _seen(code)]
    strings = b"".join(symbol.encode() + b"\0" for symbol, _ in index)
    table, name_offsets = bytearray(), dict[str, int]()
    for name in members:
        if len(name.encode()) > MAX_NAME_BYTES:
            name_offsets[name] = len(table)
            table += f"{name}/\n".encode()
    heads = {name: f"/{name_offsets[name]}" if name in name_offsets else f"{name}/" for name in members}
    names = archive_member(LONG_NAMES, bytes(table)) if table else b""
    start = len(MAGIC) + MEMBER_HEADER_BYTES + _even(4 * (1 + len(index)) + len(strings)) + len(names)
    written, starts = [], dict[str, int]()
    for name, code in members.items():
        starts[name] = start
        written.append(archive_member(heads[name], code))
        start += len(written[-1])
    offsets = struct.pack(f">{1 + len(index)}I", len(index), *(starts[name] for _, name in index))
    return b"".join((MAGIC, archive_member(INDEX, offsets + strings), names, *written))


def _seen(code: bytes) -> list[str]:
    """Return the names that other files see."""
    if is_elf32(code):
        return list(read_contents(code).defined)
    symbols = (read_coff if is_coff(code) else read_object)(code).symbols
    return [s.name for s in symbols if s.section is not None and s.binding != layout.LOCAL]


def _even(size: int) -> int:
    return size + size % 2


def archive_member(name: str, data: bytes) -> bytes:
    """Return a member with its header, padded to an even number of bytes. Time, owner and permissions are constants."""
    fields = name.ljust(16), "0".ljust(12), "0".ljust(6), "0".ljust(6), "644".ljust(8), str(len(data)).ljust(10)
    return "".join(fields).encode() + _END + data + b"\n" * (len(data) % 2)
