"""Static libraries: object files in a Unix archive with a symbol index."""

from __future__ import annotations

import struct
from collections.abc import Mapping

from graphc.codegen.link import layout
from graphc.codegen.link.coff_reader import is_coff, read_coff
from graphc.codegen.link.elf32 import is_elf32, read_contents
from graphc.codegen.link.layout import Strings
from graphc.codegen.link.macho.layout import from_c
from graphc.codegen.link.macho.reader import is_macho, read_macho
from graphc.codegen.link.reader import read_object

MAGIC, _END = b"!<arch>\n", b"`\n"
MEMBER_HEADER_BYTES = 60
INDEX, LONG_NAMES = "/", "//"
"""Names of the members with the symbols, and with names that do not fit into a header."""
MAX_NAME_BYTES = 15
"""Maximum bytes of a name in a member's header."""
_DARWIN_INDEX, _DARWIN_ALIGNMENT = "__.SYMDEF", 8
"""Name of the member with the symbols in archives for macOS; their members start at multiples of so many bytes."""


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


def write_darwin_archive(members: Mapping[str, bytes]) -> bytes:
    """Return the archive of Mach-O object files by name, in the form of macOS: names before the contents of members,
    and an index of global symbols. Raises ArtifactError for damaged object code."""
    index = [(from_c(symbol), name) for name, code in members.items() for symbol in _seen(code)]
    strings = Strings()
    offsets = [strings.offset(symbol) for symbol, _ in index]
    text = strings.data.ljust(layout.align(len(strings.data), _DARWIN_ALIGNMENT), b"\0")
    start = len(MAGIC) + len(_darwin_member(_DARWIN_INDEX, bytes(8 + 8 * len(index) + len(text)), len(MAGIC)))
    written, starts = [], dict[str, int]()
    for name, code in members.items():
        starts[name] = start
        written.append(_darwin_member(name, code, start))
        start += len(written[-1])
    pairs = (number for offset, (_, name) in zip(offsets, index, strict=True) for number in (offset, starts[name]))
    table = struct.pack(f"<I{2 * len(index)}I", 8 * len(index), *pairs)
    symbols = _darwin_member(_DARWIN_INDEX, table + struct.pack("<I", len(text)) + text, len(MAGIC))
    return b"".join([MAGIC, symbols, *written])


def _darwin_member(name: str, data: bytes, start: int) -> bytes:
    """Return a member at this offset of the file, whose contents begin and end at multiples of eight bytes."""
    begin = start + MEMBER_HEADER_BYTES + len(name.encode()) + 1
    text = name.encode() + bytes(1 + layout.align(begin, _DARWIN_ALIGNMENT) - begin)
    padding = b"\n" * (layout.align(len(data), _DARWIN_ALIGNMENT) - len(data))
    return archive_member(f"#1/{len(text)}", text + data + padding)


def _seen(code: bytes) -> list[str]:
    """Return the names that other files see."""
    if is_elf32(code):
        return list(read_contents(code).defined)
    read = read_coff if is_coff(code) else read_macho if is_macho(code) else read_object
    symbols = read(code).symbols
    return [s.name for s in symbols if s.section is not None and s.binding != layout.LOCAL]


def _even(size: int) -> int:
    return size + size % 2


def archive_member(name: str, data: bytes) -> bytes:
    """Return a member with its header, padded to an even number of bytes. Time, owner and permissions are constants."""
    fields = name.ljust(16), "0".ljust(12), "0".ljust(6), "0".ljust(6), "644".ljust(8), str(len(data)).ljust(10)
    return "".join(fields).encode() + _END + data + b"\n" * (len(data) % 2)
