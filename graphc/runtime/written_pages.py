"""Pages of memory written since the last look, found through Linux's write protection.

Since version 6.7, Linux can write-protect pages and remove the protection by itself at the first write (userfaultfd,
UFFD_FEATURE_WP_ASYNC). One call (PAGEMAP_SCAN) lists the pages that lost their protection and protects them again.
Linux sees every write of this process, from any code, and of system calls. It does not see devices that got the
memory before, nor other processes that share it, so only private anonymous memory is watched. A page's first write
after a look costs its writer a microsecond or two.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from collections.abc import Iterator
from pathlib import Path

PAGE = os.sysconf("SC_PAGESIZE") if hasattr(os, "sysconf") else 4096
_MAPS = Path("/proc/self/maps")
_USERFAULTFD = {"x86_64": 323, "aarch64": 282}
_USER_MODE_ONLY, _API, _WP_ASYNC, _MODE_WP = 1, 0xAA, 1 << 15, 2
_PROTECT, _CHECK, _WRITTEN = 1, 2, 1 << 1
_MAX_RUNS = 64
"""Maximum number of page runs that one call of PAGEMAP_SCAN returns."""


def _request(kind: int, number: int, size: int, read: bool = True) -> int:
    """Return the number of an ioctl that writes a record of ``size`` bytes, and with ``read`` also reads it."""
    return ((3 if read else 2) << 30) | (size << 16) | (kind << 8) | number


_INIT, _REGISTER = _request(_API, 0x3F, 24), _request(_API, 0x00, 32)
_UNREGISTER, _SCAN = (2 << 30) | (16 << 16) | (_API << 8) | 0x01, _request(ord("f"), 16, 96)


class WrittenPages:
    """Watches ranges of memory of this process."""

    def __init__(self) -> None:
        """Raises OSError where the system cannot watch pages."""
        number = _USERFAULTFD.get(platform.machine())
        if number is None or platform.system() != "Linux":
            raise OSError("no watched pages on this system")
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._libc.syscall.restype = ctypes.c_long
        self._libc.ioctl.argtypes = [ctypes.c_int, ctypes.c_ulong, ctypes.c_void_p]
        self._file = self._libc.syscall(number, os.O_CLOEXEC | os.O_NONBLOCK | _USER_MODE_ONLY)
        if self._file < 0:
            raise OSError(ctypes.get_errno(), "userfaultfd")
        self._pages = -1
        try:
            self._ioctl(self._file, _INIT, _API, _WP_ASYNC, 0)
            self._pages = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self.close()
            raise
        self._runs = (ctypes.c_uint64 * (3 * _MAX_RUNS))()

    def close(self) -> None:
        """Stop watching all pages."""
        for file in (self._file, self._pages):
            if file >= 0:
                os.close(file)
        self._file = self._pages = -1

    def watch(self, start: int, stop: int) -> None:
        """Watch whole pages of private memory. All of them count as written until the first look. Raises OSError where
        the system refuses."""
        self._ioctl(self._file, _REGISTER, start, stop - start, _MODE_WP, 0)

    def forget(self, start: int, stop: int) -> None:
        """Stop watching pages; unmapped ones are ignored."""
        with contextlib.suppress(OSError):
            self._ioctl(self._file, _UNREGISTER, start, stop - start)

    def look(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield the runs (start, stop) of pages written since the last look at them. Raises OSError if some pages are
        not watched (any more)."""
        runs = self._runs
        while start < stop:
            words = (
                96,
                _PROTECT | _CHECK,
                start,
                stop,
                0,
                ctypes.addressof(runs),
                _MAX_RUNS,
                0,
                0,
                _WRITTEN,
                0,
                _WRITTEN,
            )
            count, done = self._ioctl(self._pages, _SCAN, *words)
            written = [(runs[3 * i], runs[3 * i + 1]) for i in range(count)]
            start = done[4] if count == _MAX_RUNS and done[4] > start else stop
            yield from written

    def _ioctl(self, file: int, request: int, *words: int) -> tuple[int, ctypes.Array[ctypes.c_uint64]]:
        record = (ctypes.c_uint64 * len(words))(*words)
        count = self._libc.ioctl(file, request, ctypes.addressof(record))
        if count < 0:
            raise OSError(ctypes.get_errno(), "pages cannot be watched")
        return count, record


def private_memory() -> list[tuple[int, int]]:
    """Return the anonymous ranges (start, stop) of memory that belong to this process alone, in order of address."""
    ranges: list[tuple[int, int]] = []
    for line in _MAPS.read_text().splitlines():
        span, access, _, _, inode, *_ = line.split()
        low, high = (int(address, 16) for address in span.split("-"))
        if access[3] == "p" and inode == "0":
            if ranges and ranges[-1][1] == low:
                low = ranges.pop()[0]
            ranges.append((low, high))
    return ranges
