"""A loader of shared libraries without an operating system's: memory, relocations that add the address, symbols."""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable
from pathlib import Path

LOAD, DYNAMIC = 1, 2
HASH, SYMBOLS, STRINGS, RELOCATIONS, RELOCATION_BYTES = 4, 6, 5, 7, 8
RELATIVE = {62: 8, 183: 1027, 243: 3}
"""Types of the only relocations that need no other library, by processor."""


class Loaded:
    """A library in memory that can be written and run. It is never freed, so that pointers into it stay valid."""

    def __init__(self, path: Path):
        file = path.read_bytes()
        machine, start, count = *struct.unpack_from("<H", file, 18), 64, struct.unpack_from("<H", file, 56)[0]
        headers = [struct.unpack_from("<IIQQQQQQ", file, start + 56 * i) for i in range(count)]
        loads = [(h[2], h[3], h[5], h[6]) for h in headers if h[0] == LOAD]
        size = max(address + nbytes for _, address, _, nbytes in loads)
        self.memory = mmap.mmap(-1, size, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        for offset, address, nbytes, _ in loads:
            self.memory[address : address + nbytes] = file[offset : offset + nbytes]
        at = next(h[3] for h in headers if h[0] == DYNAMIC)
        tags: dict[int, int] = {}
        while (tag := struct.unpack_from("<QQ", self.memory, at))[0]:
            tags[tag[0]], at = tag[1], at + 16
        for where in range(0, tags.get(RELOCATION_BYTES, 0), 24):
            offset, kind, addend = struct.unpack_from("<QQq", self.memory, tags[RELOCATIONS] + where)
            if kind != RELATIVE[machine]:
                raise ValueError(f"relocation {kind} needs another library")
            struct.pack_into("<Q", self.memory, offset, self.base + addend)
        self.symbols = dict(map(self._symbol(tags), range(1, struct.unpack_from("<II", self.memory, tags[HASH])[1])))

    def _symbol(self, tags: dict[int, int]) -> Callable[[int], tuple[str, int]]:
        def symbol(number: int) -> tuple[str, int]:
            name, _, _, _, address, _ = struct.unpack_from("<IBBHQQ", self.memory, tags[SYMBOLS] + 24 * number)
            text = self.memory[tags[STRINGS] + name : tags[STRINGS] + name + 200].split(b"\0")[0].decode()
            return text, self.base + address

        return symbol

    def call(self, name: str, *arguments: object, result: type = ctypes.c_int) -> int:
        """Call a function with pointers and sizes."""
        return ctypes.CFUNCTYPE(result)(self.symbols[name])(*arguments)
