"""Relocations of aarch64 in ELF and Mach-O files.

Sources: ELF for the Arm 64-bit Architecture, section 5.7; Apple's mach-o/arm64/reloc.h.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.codegen.machine.linkage import PAGE, Linkage, Relocation, either, signed

_NEAR = signed(33)
"""Limits of a distance in pages in two parts of an address."""


def _bits(old: int, value: int, count: int, position: int) -> int:
    """Return an instruction with the lowest ``count`` bits of a value at a position."""
    mask = (1 << count) - 1
    return old & ~(mask << position) | (value & mask) << position


def _address(old: int, value: int) -> int:
    """Patch ``adr`` with 21 bits, the lowest two of them separate."""
    return _bits(_bits(old, value, 2, 29), value >> 2, 19, 5)


def _page(old: int, value: int) -> int:
    """Patch ``adrp`` with a distance in pages."""
    return _address(old, value // PAGE)


def _low(scale: int) -> Callable[[int, int], int]:
    """Return the patch of ``add``, loads and stores with the offset in a page, in units of 2**scale bytes."""
    return lambda old, value: _bits(old, value % PAGE >> scale, 12 - scale, 10)


def _offset(old: int, value: int) -> int:
    """Patch an instruction with the offset in a page, in the unit that it counts: bytes for ``add``, what it moves for
    loads and stores."""
    scale = 0
    if old & 0x3B000000 == 0x39000000:
        is_quad = old & 0x04800000 == 0x04800000 and old >> 30 == 0
        scale = 4 if is_quad else old >> 30
    return _low(scale)(old, value)


def _branch(count: int, position: int) -> Callable[[int, int], int]:
    """Return the patch of a branch with a distance in instructions."""
    return lambda old, value: _bits(old, value >> 2, count, position)


def _stub(address: int, word: int) -> bytes:
    """Return ``adrp x16, word; ldr x17, [x16, word]; br x17; nop``."""
    pages = (word // PAGE - address // PAGE) * PAGE
    words = _page(0x90000010, pages), _low(3)(0xF9400211, word), 0xD61F0220, 0xD503201F
    return b"".join(w.to_bytes(4, "little") for w in words)


LINKAGE = Linkage(
    machine=183,
    page_bytes=65536,
    relocations={
        0: Relocation("R_AARCH64_NONE", "nothing"),
        257: Relocation("R_AARCH64_ABS64", "address", 8),
        260: Relocation("R_AARCH64_PREL64", "relative", 8),
        261: Relocation("R_AARCH64_PREL32", "relative", 4, limits=either(32)),
        262: Relocation("R_AARCH64_PREL16", "relative", 2, limits=either(16)),
        273: Relocation("R_AARCH64_LD_PREL_LO19", "relative", 4, _branch(19, 5), limits=signed(21)),
        274: Relocation("R_AARCH64_ADR_PREL_LO21", "relative", 4, _address, limits=signed(21)),
        275: Relocation("R_AARCH64_ADR_PREL_PG_HI21", "page", 4, _page, limits=_NEAR),
        276: Relocation("R_AARCH64_ADR_PREL_PG_HI21_NC", "page", 4, _page),
        277: Relocation("R_AARCH64_ADD_ABS_LO12_NC", "absolute", 4, _low(0)),
        278: Relocation("R_AARCH64_LDST8_ABS_LO12_NC", "absolute", 4, _low(0)),
        279: Relocation("R_AARCH64_TSTBR14", "relative", 4, _branch(14, 5), limits=signed(16)),
        280: Relocation("R_AARCH64_CONDBR19", "relative", 4, _branch(19, 5), limits=signed(21)),
        282: Relocation("R_AARCH64_JUMP26", "relative", 4, _branch(26, 0), limits=signed(28)),
        283: Relocation("R_AARCH64_CALL26", "relative", 4, _branch(26, 0), limits=signed(28)),
        284: Relocation("R_AARCH64_LDST16_ABS_LO12_NC", "absolute", 4, _low(1)),
        285: Relocation("R_AARCH64_LDST32_ABS_LO12_NC", "absolute", 4, _low(2)),
        286: Relocation("R_AARCH64_LDST64_ABS_LO12_NC", "absolute", 4, _low(3)),
        299: Relocation("R_AARCH64_LDST128_ABS_LO12_NC", "absolute", 4, _low(4)),
        311: Relocation("R_AARCH64_ADR_GOT_PAGE", "got page", 4, _page, limits=_NEAR),
        312: Relocation("R_AARCH64_LD64_GOT_LO12_NC", "got absolute", 4, _low(3)),
        314: Relocation("R_AARCH64_PLT32", "relative", 4, limits=signed(32)),
    },
    relative=1027,
    absolute=257,
    slot=1025,
    stub_bytes=16,
    stub=_stub,
)
MACHO = Linkage(
    machine=0x100000C,
    page_bytes=16384,
    relocations={
        0x06: Relocation("ARM64_RELOC_UNSIGNED", "address", 8),
        0x14: Relocation("ARM64_RELOC_SUBTRACTOR", "difference", 4, limits=signed(32)),
        0x16: Relocation("ARM64_RELOC_SUBTRACTOR", "difference", 8),
        0x25: Relocation("ARM64_RELOC_BRANCH26", "relative", 4, _branch(26, 0), limits=signed(28)),
        0x35: Relocation("ARM64_RELOC_PAGE21", "page", 4, _page, limits=_NEAR),
        0x44: Relocation("ARM64_RELOC_PAGEOFF12", "absolute", 4, _offset),
        0x55: Relocation("ARM64_RELOC_GOT_LOAD_PAGE21", "got page", 4, _page, limits=_NEAR),
        0x64: Relocation("ARM64_RELOC_GOT_LOAD_PAGEOFF12", "got absolute", 4, _offset),
        0x75: Relocation("ARM64_RELOC_POINTER_TO_GOT", "got", 4, limits=signed(32)),
        0xA4: Relocation("ARM64_RELOC_ADDEND", "addend", 4),
    },
    relative=1,
)
"""Rules of Mach-O, by type, length and direction (``macho.layout.kind_of``). ``relative`` is REBASE_TYPE_POINTER."""
