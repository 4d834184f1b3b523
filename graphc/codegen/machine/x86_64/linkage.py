"""Relocations of x86-64 in ELF, COFF and Mach-O files.

Sources: System V ABI, AMD64 supplement, section 4.4; Microsoft's PE specification; Apple's mach-o/x86_64/reloc.h.
"""

from __future__ import annotations

from graphc.codegen.machine.linkage import Linkage, Relocation, either, signed

_NEAR = signed(32)


def _stub(address: int, word: int) -> bytes:
    """Return ``jmp *word(%rip)``, padded."""
    return b"\xff\x25" + (word - address - 6).to_bytes(4, "little", signed=True) + b"\x66\x90"


LINKAGE = Linkage(
    machine=62,
    page_bytes=4096,
    relocations={
        0: Relocation("R_X86_64_NONE", "nothing"),
        1: Relocation("R_X86_64_64", "address", 8),
        2: Relocation("R_X86_64_PC32", "relative", 4, limits=_NEAR),
        4: Relocation("R_X86_64_PLT32", "relative", 4, limits=_NEAR),
        9: Relocation("R_X86_64_GOTPCREL", "got", 4, limits=_NEAR),
        13: Relocation("R_X86_64_PC16", "relative", 2, limits=either(16)),
        15: Relocation("R_X86_64_PC8", "relative", 1, limits=signed(8)),
        24: Relocation("R_X86_64_PC64", "relative", 8),
        41: Relocation("R_X86_64_GOTPCRELX", "got", 4, limits=_NEAR),
        42: Relocation("R_X86_64_REX_GOTPCRELX", "got", 4, limits=_NEAR),
    },
    relative=8,
    absolute=1,
    slot=6,
    stub_bytes=8,
    stub=_stub,
)

COFF = Linkage(
    machine=0x8664,
    page_bytes=4096,
    relocations={
        0: Relocation("IMAGE_REL_AMD64_ABSOLUTE", "nothing"),
        1: Relocation("IMAGE_REL_AMD64_ADDR64", "address", 8),
        3: Relocation("IMAGE_REL_AMD64_ADDR32NB", "image", 4, limits=(0, 1 << 32)),
        4: Relocation("IMAGE_REL_AMD64_REL32", "relative", 4, limits=_NEAR, addend=-4),
        **{
            4 + n: Relocation(f"IMAGE_REL_AMD64_REL32_{n}", "relative", 4, limits=_NEAR, addend=-4 - n)
            for n in range(1, 6)
        },
        11: Relocation("IMAGE_REL_AMD64_SECREL", "section", 4, limits=(0, 1 << 32)),
    },
    relative=10,
)
"""Rules of COFF. ``relative`` is IMAGE_REL_BASED_DIR64, a type of base relocation."""
MACHO = Linkage(
    machine=0x1000007,
    page_bytes=4096,
    relocations={
        0x06: Relocation("X86_64_RELOC_UNSIGNED", "address", 8),
        0x15: Relocation("X86_64_RELOC_SIGNED", "relative", 4, limits=_NEAR, addend=-4),
        0x25: Relocation("X86_64_RELOC_BRANCH", "relative", 4, limits=_NEAR, addend=-4),
        0x35: Relocation("X86_64_RELOC_GOT_LOAD", "got", 4, limits=_NEAR, addend=-4),
        0x45: Relocation("X86_64_RELOC_GOT", "got", 4, limits=_NEAR, addend=-4),
        0x54: Relocation("X86_64_RELOC_SUBTRACTOR", "difference", 4, limits=_NEAR),
        0x56: Relocation("X86_64_RELOC_SUBTRACTOR", "difference", 8),
        0x65: Relocation("X86_64_RELOC_SIGNED_1", "relative", 4, limits=_NEAR, addend=-4),
        0x75: Relocation("X86_64_RELOC_SIGNED_2", "relative", 4, limits=_NEAR, addend=-4),
        0x85: Relocation("X86_64_RELOC_SIGNED_4", "relative", 4, limits=_NEAR, addend=-4),
    },
    relative=1,
)
"""Rules of Mach-O, by type, length and direction (``macho.layout.kind_of``). ``relative`` is REBASE_TYPE_POINTER."""
