"""Memory for native code: pages that are written first and then executed, never both."""

from __future__ import annotations

import ctypes
import mmap
import os
import sys
from functools import cache

_READ, _WRITE, _EXECUTE = mmap.PROT_READ, mmap.PROT_WRITE, mmap.PROT_EXEC


class CodeMemory:
    """Zeroed pages of this process, which are writeable until ``protect`` is called. They are freed with this object.

    Example:
        >>> from graphc.runtime.code.code_memory import CodeMemory
        >>> memory = CodeMemory(8192)
        >>> memory.write(16, b"code")
        >>> memory.protect(0, 4096, execute=True)
        >>> memory.address % 4096
        0
    """

    def __init__(self, nbytes: int):
        """Raises OSError where the process cannot have so much memory."""
        self._pages = mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=_READ | _WRITE)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self._pages))

    def write(self, offset: int, data: bytes) -> None:
        """Copy bytes to an offset."""
        self._pages[offset : offset + len(data)] = data

    def protect(self, offset: int, nbytes: int, write: bool = False, execute: bool = False) -> None:
        """Set the permissions of whole pages. Raises OSError where the system forbids them."""
        permissions = _READ | (_WRITE if write else 0) | (_EXECUTE if execute else 0)
        if _mprotect()(self.address + offset, nbytes, permissions):
            number = ctypes.get_errno()
            raise OSError(number, "the system does not let this process execute new code")

    def keep(self) -> None:
        """Keep the pages until the process has ended, also while the interpreter frees its objects."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._pages))


def can_link() -> bool:
    """Return whether graphc links programs itself here: on Linux with x86-64. Other processors have to be told of new
    code."""
    return sys.platform == "linux" and os.uname().machine == "x86_64" and sys.maxsize > 1 << 32


@cache
def _mprotect() -> ctypes._NamedFuncPointer:
    function = ctypes.CDLL(None, use_errno=True).mprotect
    function.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return function
