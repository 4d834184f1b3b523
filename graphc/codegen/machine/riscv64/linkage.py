"""Relocations of riscv64 (RISC-V ELF psABI, section "Relocations"), without relaxation.

Relaxation lets a linker shorten code. LLVM emits complete code without the feature ``relax``, so it is not needed.
"""

from __future__ import annotations

from collections.abc import Callable

from graphc.codegen.machine.linkage import PAGE, Linkage, Relocation, signed

_HALF = PAGE // 2
"""The lower part of an address is signed: from here on the upper part is one page more."""
_NEAR = -(1 << 31) - _HALF, (1 << 31) - _HALF
"""Limits of a distance in two parts."""


def _upper(old: int, value: int) -> int:
    """Patch ``auipc`` with 20 bits of a distance, rounded."""
    return old & 0xFFF | (value + _HALF) & 0xFFFFF000


def _lower(old: int, value: int) -> int:
    """Patch a load or an addition with the lower 12 bits."""
    return old & 0xFFFFF | (value & 0xFFF) << 20


def _lower_of_store(old: int, value: int) -> int:
    """Patch a store with the lower 12 bits, in two parts."""
    return old & 0x01FFF07F | (value >> 5 & 0x7F) << 25 | (value & 0x1F) << 7


def _call(old: int, value: int) -> int:
    """Patch ``auipc`` and the ``jalr`` after it."""
    return _upper(old & 0xFFFFFFFF, value) | _lower(old >> 32, value) << 32


def _scattered(*groups: tuple[int, int, int]) -> Callable[[int, int], int]:
    """Return the patch of an instruction with scattered groups of bits: (lowest bit of the group, bits, position in the
    instruction)."""

    def patch(old: int, value: int) -> int:
        for low, bits, position in groups:
            mask = (1 << bits) - 1
            old = old & ~(mask << position) | (value >> low & mask) << position
        return old

    return patch


_BRANCH = _scattered((11, 1, 7), (1, 4, 8), (5, 6, 25), (12, 1, 31))
_JUMP = _scattered((12, 8, 12), (11, 1, 20), (1, 10, 21), (20, 1, 31))
_SHORT_BRANCH = _scattered((5, 1, 2), (1, 2, 3), (6, 2, 5), (3, 2, 10), (8, 1, 12))
_SHORT_JUMP = _scattered(
    *((5, 1, 2), (1, 3, 3), (7, 1, 6), (6, 1, 7), (10, 1, 8), (8, 2, 9), (4, 1, 11), (11, 1, 12)),
)


def _add(old: int, value: int) -> int:
    return old + value


def _subtract(old: int, value: int) -> int:
    return old - value


def _stub(address: int, word: int) -> bytes:
    """Return ``auipc t3, word; ld t3, word(t3); jalr t1, t3; nop``."""
    words = _upper(0x00000E17, word - address), _lower(0x000E3E03, word - address), 0x000E0367, 0x00000013
    return b"".join(w.to_bytes(4, "little") for w in words)


LINKAGE = Linkage(
    machine=243,
    page_bytes=4096,
    relocations={
        0: Relocation("R_RISCV_NONE", "nothing"),
        2: Relocation("R_RISCV_64", "address", 8),
        16: Relocation("R_RISCV_BRANCH", "relative", 4, _BRANCH, limits=signed(13)),
        17: Relocation("R_RISCV_JAL", "relative", 4, _JUMP, limits=signed(21)),
        18: Relocation("R_RISCV_CALL", "relative", 8, _call, limits=_NEAR),
        19: Relocation("R_RISCV_CALL_PLT", "relative", 8, _call, limits=_NEAR),
        20: Relocation("R_RISCV_GOT_HI20", "got", 4, _upper, limits=_NEAR),
        23: Relocation("R_RISCV_PCREL_HI20", "relative", 4, _upper, limits=_NEAR),
        24: Relocation("R_RISCV_PCREL_LO12_I", "pair", 4, _lower),
        25: Relocation("R_RISCV_PCREL_LO12_S", "pair", 4, _lower_of_store),
        33: Relocation("R_RISCV_ADD8", "absolute", 1, _add),
        34: Relocation("R_RISCV_ADD16", "absolute", 2, _add),
        35: Relocation("R_RISCV_ADD32", "absolute", 4, _add),
        36: Relocation("R_RISCV_ADD64", "absolute", 8, _add),
        37: Relocation("R_RISCV_SUB8", "absolute", 1, _subtract),
        38: Relocation("R_RISCV_SUB16", "absolute", 2, _subtract),
        39: Relocation("R_RISCV_SUB32", "absolute", 4, _subtract),
        40: Relocation("R_RISCV_SUB64", "absolute", 8, _subtract),
        44: Relocation("R_RISCV_RVC_BRANCH", "relative", 2, _SHORT_BRANCH, limits=signed(9)),
        45: Relocation("R_RISCV_RVC_JUMP", "relative", 2, _SHORT_JUMP, limits=signed(12)),
        51: Relocation("R_RISCV_RELAX", "nothing"),
        57: Relocation("R_RISCV_32_PCREL", "relative", 4, limits=signed(32)),
        59: Relocation("R_RISCV_PLT32", "relative", 4, limits=signed(32)),
    },
    relative=3,
    absolute=2,
    slot=2,
    stub_bytes=16,
    stub=_stub,
)
