"""Identity of the processor, from its CPUID instruction: it decides which instructions code may use."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from functools import cache

from graphc.base.errors import CompileError
from graphc.runtime.code.code_memory import CodeMemory, can_link

_CPUID = bytes.fromhex("53 8b07 8b4f08 0fa2 8907 895f04 894f08 89570c 5b c3")
"""``push rbx; mov eax, [rdi]; mov ecx, [rdi+8]; cpuid; mov [rdi], eax; mov [rdi+4], ebx; mov [rdi+8], ecx;
mov [rdi+12], edx; pop rbx; ret``"""
_XGETBV = bytes.fromhex("31c9 0f01d0 8907 895704 c3")
"""``xor ecx, ecx; xgetbv; mov [rdi], eax; mov [rdi+4], edx; ret``"""
_PAGE = 4096
_Registers = ctypes.c_uint32 * 4
EAX, EBX, ECX, EDX = range(4)
_HAS_XGETBV = 1 << 27
"""Bit of ECX of leaf 1 (OSXSAVE): the system tells which registers it saves."""
_EXTENDED = 0x8000_0000
_WORDS: tuple[tuple[int, int, tuple[int, ...]], ...] = (
    (0, 0, (EAX, EBX, ECX, EDX)),
    (1, 0, (EAX, ECX, EDX)),  # EBX has the number of the core
    (7, 0, (EAX, EBX, ECX, EDX)),
    (7, 1, (EAX, EBX, ECX, EDX)),
    (0xD, 1, (EAX,)),  # the others have sizes that depend on the registers in use
    (0x14, 0, (EBX,)),
    (0x19, 0, (EBX,)),
    (0x1E, 1, (EAX,)),
    (0x24, 0, (EBX,)),
    (_EXTENDED, 0, (EAX, EBX, ECX, EDX)),
    (_EXTENDED + 1, 0, (ECX, EDX)),
    (_EXTENDED + 2, 0, (EAX, EBX, ECX, EDX)),  # the name, in three leaves
    (_EXTENDED + 3, 0, (EAX, EBX, ECX, EDX)),
    (_EXTENDED + 4, 0, (EAX, EBX, ECX, EDX)),
    (_EXTENDED + 8, 0, (EBX,)),
)
"""Leaf, subleaf and registers with the maker, the model, and all features. They are equal on all cores of a kind."""


@cache
def processor_identity() -> bytes:
    """Return bytes that are equal for processors with the same model and features, and with the same registers saved
    by the system. Return no bytes for other processors than x86-64, and where code cannot be loaded."""
    if not can_link():
        return b""
    try:
        memory = CodeMemory(_PAGE)
        memory.write(0, _CPUID)
        memory.write(_PAGE // 2, _XGETBV)
        memory.protect(0, _PAGE, execute=True)
    except (OSError, CompileError):
        return b""
    ask = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    return b"".join(_words(ask(memory.address), ask(memory.address + _PAGE // 2)))


def _words(cpuid: ctypes._FuncPointer, xgetbv: ctypes._FuncPointer) -> Iterator[bytes]:
    registers = _Registers()

    def leaf(number: int, subleaf: int) -> list[int]:
        registers[:] = number, 0, subleaf, 0
        cpuid(ctypes.addressof(registers))
        return [*registers]

    limits = {start: leaf(start, 0)[EAX] for start in (0, _EXTENDED)}
    for number, subleaf, chosen in _WORDS:
        # NOTE: leaves beyond the largest one return those of another leaf, or anything.
        if number <= limits[number & _EXTENDED]:
            words = leaf(number, subleaf)
            yield struct.pack(f"<{len(chosen)}I", *(words[register] for register in chosen))
    if leaf(1, 0)[ECX] & _HAS_XGETBV:
        xgetbv(ctypes.addressof(registers))
        yield struct.pack("<2I", *registers[:2])
