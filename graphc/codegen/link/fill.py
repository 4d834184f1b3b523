"""Object files with other contents of a section: large constants bypass the assembler."""

from __future__ import annotations

import numpy as np

from graphc.base.errors import CompileError
from graphc.codegen.link.coff_reader import coff_headers, is_coff
from graphc.codegen.link.elf32 import elf32_headers, is_elf32
from graphc.codegen.link.macho.reader import is_macho, macho_headers
from graphc.codegen.link.reader import elf_headers


def fill_section(code: bytes, section: str, contents: np.ndarray) -> bytes:
    """Return an object file (ELF, COFF or Mach-O) with other contents of the section of this name and size.

    Raises CompileError if there is no such section.
    """
    formats = ((is_elf32, elf32_headers), (is_coff, coff_headers), (is_macho, macho_headers))
    headers = next((read for fits, read in formats if fits(code)), elf_headers)
    for header in headers(code):
        if header.name == section and header.nbytes == contents.nbytes:
            return b"".join([code[: header.offset], contents.tobytes(), code[header.offset + header.nbytes :]])
    raise CompileError(f"the object code has no section {section} of {contents.nbytes} bytes")
