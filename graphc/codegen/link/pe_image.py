"""File of a Windows library (PE32+): headers, sections, directories, and the checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from enum import IntEnum
from struct import Struct, pack_into

from graphc.base.errors import CompileError
from graphc.codegen.link import layout
from graphc.codegen.link.coff_layout import FILE_HEADER, SECTION, CoffFlag
from graphc.codegen.link.reader import Section

_DOS_HEADER = b"MZ".ljust(60, b"\0") + (64).to_bytes(4, "little")
"""Header of DOS programs, whose last word is the offset of the signature."""
_SIGNATURE = b"PE\0\0"
OPTIONAL_HEADER = Struct("<HBBIIIII QIIHHHHHHIIIIHHQQQQII")
"""Magic, version of the linker; bytes of code, of contents and of zeros, entry point, address of code; address of the
image, alignments in memory and in the file; versions of system, image and subsystem; bytes of image and headers,
checksum; subsystem and flags; stack and heap; count of directories."""
DIRECTORY = Struct("<II")
"""Address and bytes of a table for the loader."""
_DIRECTORIES = 16
# Offsets in the file of the time in FILE_HEADER, and of the checksum in OPTIONAL_HEADER.
_TIME_OFFSET = len(_DOS_HEADER) + len(_SIGNATURE) + 4
_CHECKSUM_OFFSET = len(_DOS_HEADER) + len(_SIGNATURE) + FILE_HEADER.size + 64
IMAGE_BASE = 0x1_8000_0000
"""Preferred address of a library, above 4 GB as Microsoft's linker chooses it; ASLR picks another one."""
PAGE, _FILE_ALIGNMENT = 4096, 512
_IS_LIBRARY = 0x2022
"""EXECUTABLE_IMAGE, LARGE_ADDRESS_AWARE, DLL."""
_FLAGS = 0x160
"""HIGH_ENTROPY_VA and DYNAMIC_BASE (ASLR), NX_COMPAT."""
_PE32_PLUS, _GRAPHICAL = 0x20B, 2
_VERSION = 6, 0
"""Version of Windows that can load the library: Vista, the first with ASLR."""
_STACK = 1 << 20, 4096, 1 << 20, 4096
"""Reserved and committed bytes of stack and heap, which only programs use."""
_LARGEST = (1 << 31) - (1 << 20)
"""Maximum bytes of an image: code addresses data within two gigabytes of itself."""
NAME_BYTES = 8
"""Maximum bytes of a section's name."""


class Directory(IntEnum):
    """Table for the loader, by its index in the header."""

    EXPORT = 0
    EXCEPTION = 3
    BASE_RELOCATION = 5


class ImageSection:
    """Section of an image, made of sections of object code; zeros come last and take no bytes of the file."""

    def __init__(self, name: str, flags: CoffFlag, sections: Iterable[Section]):
        self.name, self.flags = name, flags
        self.sections = sorted(sections, key=lambda section: bool(section.nbytes and not section.data))
        self.address = self.offset = self.nbytes = self.file_bytes = 0

    def place(self, address: int, offset: int) -> None:
        """Place its sections at an address relative to the image, and at an offset in the file."""
        self.address, self.offset = address, offset
        end = file_end = address
        for section in self.sections:
            section.address = layout.align(end, section.alignment)
            end = section.end
            file_end = end if section.data else file_end
        self.nbytes = end - address
        self.file_bytes = layout.align(file_end - address, _FILE_ALIGNMENT)

    @property
    def contents(self) -> bytes:
        """Its bytes in the file."""
        pieces, end = [], self.address
        for section in self.sections:
            if section.data:
                pieces += [bytes(section.address - end), section.data]
                end = section.end
        return b"".join([*pieces, bytes(self.address + self.file_bytes - end)])


def place_sections(sections: Sequence[ImageSection]) -> None:
    """Place sections on separate pages. Raises CompileError for an image that is too large."""
    address, offset = layout.align(_headers_bytes(len(sections)), PAGE), _headers_bytes(len(sections))
    for section in sections:
        section.place(address, offset)
        address = layout.align(address + section.nbytes, PAGE)
        offset += section.file_bytes
    if address > _LARGEST:
        raise CompileError(
            f"the library would take {address} bytes of memory, at most {_LARGEST} are possible",
            remedy="link a smaller library: put constants into a separate file",
        )


def _headers_bytes(count: int) -> int:
    fixed = len(_DOS_HEADER) + len(_SIGNATURE) + FILE_HEADER.size + OPTIONAL_HEADER.size
    return layout.align(fixed + _DIRECTORIES * DIRECTORY.size + count * SECTION.size, _FILE_ALIGNMENT)


def image_bytes(machine: int, sections: Sequence[ImageSection], directories: Mapping[Directory, Section]) -> bytes:
    """Return the file of placed sections. A digest of its bytes takes the place of the time, so that equal sections
    give equal files."""
    head = b"".join([_DOS_HEADER, _SIGNATURE, *_headers(machine, sections, directories)])
    data = bytearray().join([head, bytes(_headers_bytes(len(sections)) - len(head)), *(s.contents for s in sections)])
    data[_TIME_OFFSET : _TIME_OFFSET + 4] = hashlib.sha256(data).digest()[:4]
    pack_into("<I", data, _CHECKSUM_OFFSET, checksum(data))
    return bytes(data)


def _headers(
    machine: int, sections: Sequence[ImageSection], directories: Mapping[Directory, Section]
) -> Iterable[bytes]:
    optional = OPTIONAL_HEADER.size + _DIRECTORIES * DIRECTORY.size
    yield FILE_HEADER.pack(machine, len(sections), 0, 0, 0, optional, _IS_LIBRARY)
    code = [s for s in sections if CoffFlag.CODE in s.flags]
    last = sections[-1]
    yield OPTIONAL_HEADER.pack(
        *(_PE32_PLUS, 1, 0, sum(s.file_bytes for s in code)),
        *(sum(s.file_bytes for s in sections if CoffFlag.CONTENTS in s.flags), 0, 0),
        *(code[0].address if code else 0, IMAGE_BASE, PAGE, _FILE_ALIGNMENT),
        *(*_VERSION, 0, 0, *_VERSION, 0, layout.align(last.address + last.nbytes, PAGE)),
        *(_headers_bytes(len(sections)), 0, _GRAPHICAL, _FLAGS, *_STACK, 0, _DIRECTORIES),
    )
    for number in range(_DIRECTORIES):
        table = directories.get(Directory(number)) if number in {*Directory} else None
        yield DIRECTORY.pack(table.address, table.nbytes) if table is not None else DIRECTORY.pack(0, 0)
    for s in sections:
        name = s.name.encode().ljust(NAME_BYTES, b"\0")
        yield SECTION.pack(
            name, s.nbytes, s.address, s.file_bytes, s.offset if s.file_bytes else 0, 0, 0, 0, 0, s.flags
        )


def checksum(data: bytes | bytearray) -> int:
    """Return the checksum of an image whose own checksum is 0: the one's complement sum of its words of 16 bits, plus
    its size."""
    total = int.from_bytes(data, "little")
    return ((total % 0xFFFF or 0xFFFF) if total else 0) + len(data)
