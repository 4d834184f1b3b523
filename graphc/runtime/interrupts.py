"""Ctrl-C during a long native call: the program ends early, before it has written to anything of the caller's."""

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
"""Symbol by which programs with polls know the bytes that ``armed`` has signals written to; see codegen.llvm.entry."""
ARMED = 1
"""What the last word of a program's table is before a call that is to be interrupted; a larger number is left where it
was."""
_PROTECTION, _SHARED, _FIXED, _ANONYMOUS = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, 0x10, mmap.MAP_ANONYMOUS
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]


class _Signals:
    """A page of memory that is a file too, into which Python's signal handler writes the numbers of signals."""

    def __init__(self) -> None:
        self.file = -1
        self.address = self._map(None)
        self.word = ctypes.c_int64.from_address(self.address)

    def _map(self, place: int | None) -> int:
        """Maps a new file at an address, or memory alone where the system has no files in memory."""
        flags = _SHARED | (0 if place is None else _FIXED)
        try:
            self.file = os.memfd_create("graphc-signals")
            os.ftruncate(self.file, mmap.PAGESIZE)
            os.set_blocking(self.file, False)
        except (AttributeError, OSError):
            self.file, flags = -1, flags | _ANONYMOUS
        found = _libc.mmap(place, mmap.PAGESIZE, _PROTECTION, flags, self.file, 0)
        if found in (None, ctypes.c_void_p(-1).value):
            raise MemoryError("no page of memory for signals")
        return found

    def renew(self) -> None:
        """Called in the child after fork(), which must not share the file with its parent."""
        if self.file >= 0:
            os.close(self.file)
        self._map(self.address)


_signals = _Signals()
ADDRESS = _signals.address
os.register_at_fork(after_in_child=_signals.renew)


@contextmanager
def armed() -> Iterator[bool]:
    """While the block runs, the numbers of signals that come are written to the bytes behind SYMBOL; gives whether they
    are: only in the main thread, and where Python handles Ctrl-C."""
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
            os.write(other, os.pread(_signals.file, count, 0))  # Whoever waits for signals there gets them late.


def run_interruptibly(call: Callable[..., Any], word: ctypes.c_size_t, *arguments: Any, **options: Any) -> Any:
    """What ``call`` returns, which runs a program with polls. Ctrl-C ends it early, and its handler runs; where that
    raises nothing, the program is run again from its start, unless it lends memory: then nothing ends it. ``word`` is
    the last one of the program's table."""
    while True:
        with armed() as wanted:
            word.value = ARMED if wanted and not is_lending() else 0
            found = call(*arguments, **options)
        if word.value <= ARMED:
            return found


def interruptible(call: Callable[..., Any], fallback: Callable[..., Any], word: ctypes.c_size_t) -> Callable[..., Any]:
    """A native callable, which has one table, such that Ctrl-C ends it early; a call while another one is running, also
    one from a handler of a signal, goes to ``fallback``."""
    busy = threading.Lock()

    def run(*arguments: Any, **options: Any) -> Any:
        if not busy.acquire(blocking=False):
            return fallback(*arguments, **options)
        try:
            return run_interruptibly(call, word, *arguments, **options)
        finally:
            busy.release()

    return run
