"""Ctrl-C during a long native call: the program ends early, before it writes to the caller's memory."""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from graphc.runtime.host_calls import is_lending

SYMBOL = "graphc_interrupt"
"""Symbol of the word in memory that ``armed`` lets signals write to. Programs with polls read it; see
codegen.llvm.entry."""
ARMED = 1
"""Value of the last word of a program's table before a call that may be interrupted. A larger number stays as it is."""
_PROTECTION, _SHARED, _FIXED, _ANONYMOUS = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, 0x10, mmap.MAP_ANONYMOUS
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class _Signals:
    """A memory page backed by a file. Python's signal handler writes signal numbers into it."""

    def __init__(self) -> None:
        self.file = -1
        self.address = self._map(None)
        self.word = ctypes.c_int64.from_address(self.address)

    def _map(self, address: int | None) -> int:
        """Map a new file at an address. Map anonymous memory where the system has no files in memory."""
        flags = _SHARED | (0 if address is None else _FIXED)
        try:
            self.file = os.memfd_create("graphc-signals")
            os.ftruncate(self.file, mmap.PAGESIZE)
            os.set_blocking(self.file, False)
        except (AttributeError, OSError):
            self.file, flags = -1, flags | _ANONYMOUS
        mapped = _libc.mmap(address, mmap.PAGESIZE, _PROTECTION, flags, self.file, 0)
        if mapped in (None, ctypes.c_void_p(-1).value):
            raise MemoryError("no page of memory for signals")
        return mapped

    def renew(self) -> None:
        """Map a new file in the child after fork(), so that child and parent do not share one."""
        if self.file >= 0:
            os.close(self.file)
        self._map(self.address)


_signals = _Signals()
ADDRESS = _signals.address
os.register_at_fork(after_in_child=_signals.renew)


@contextmanager
def armed() -> Iterator[bool]:
    """Direct signal numbers to the memory at SYMBOL while the block runs. Yield whether that works: only in the main
    thread, and only where Python handles Ctrl-C."""
    if (
        _signals.file < 0
        or threading.current_thread() is not threading.main_thread()
        or not callable(signal.getsignal(signal.SIGINT))
    ):
        yield False
        return
    _signals.word.value = 0
    os.lseek(_signals.file, 0, os.SEEK_SET)
    other = signal.set_wakeup_fd(_signals.file, warn_on_full_buffer=False)
    try:
        yield True
    finally:
        signal.set_wakeup_fd(other)
        count = os.lseek(_signals.file, 0, os.SEEK_CUR)
        if count and other >= 0:
            os.write(other, os.pread(_signals.file, count, 0))  # Readers of that descriptor get the signals late.


def run_interruptibly(call: Callable[..., Any], word: ctypes.c_size_t, *arguments: Any, **options: Any) -> Any:
    """Return what ``call`` returns, which runs a program with polls. Ctrl-C ends the program early and runs its
    handler. If the handler raises nothing, the program runs again from its start. A program that lends memory is never
    interrupted. ``word`` is the last word of the program's table."""
    while True:
        with armed() as is_armed:
            word.value = ARMED if is_armed and not is_lending() else 0
            result = call(*arguments, **options)
        if word.value <= ARMED:
            return result


def interruptible(call: Callable[..., Any], fallback: Callable[..., Any], word: ctypes.c_size_t) -> Callable[..., Any]:
    """Return a native callable (of a program with one table) that Ctrl-C ends early. A call during another one, also
    from a signal handler, goes to ``fallback``."""
    busy = threading.Lock()

    def run(*arguments: Any, **options: Any) -> Any:
        if not busy.acquire(blocking=False):
            return fallback(*arguments, **options)
        try:
            return run_interruptibly(call, word, *arguments, **options)
        finally:
            busy.release()

    return run
