"""The pool of worker threads of this process: loaded once, and shared by all programs."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable

from graphc.base.locks import Lock
from graphc.runtime import threads
from graphc.runtime.loader import host, link_forever

RUN, RESET, SIZE = "graphc_pool_run", "graphc_pool_reset", "graphc_pool_size"
"""Symbols of the native pool."""

_Reset = ctypes.CFUNCTYPE(None)
_Size = ctypes.CFUNCTYPE(ctypes.c_int64)
_pool: dict[str, int] = {}
"""Addresses of the native functions."""
_lock = Lock()


def install(build: Callable[[], bytes]) -> None:
    """Load the object code of the pool that ``build`` returns, and let programs use it. Later calls do nothing."""
    with _lock:
        if not _pool:
            # NOTE: workers wait inside this code until the process ends, so it must never be unloaded.
            _pool.update(link_forever(build(), (RUN, RESET, SIZE), host()))
            threads.connect(_pool[RUN])


def workers() -> int:
    """Return the number of worker threads. The first call of a program that needs workers starts them."""
    return _Size(_pool[SIZE])() if _pool else 0


def _after_fork() -> None:
    # NOTE: fork() does not copy the workers; the child's first call that needs them starts new ones.
    if _pool:
        _Reset(_pool[RESET])()


os.register_at_fork(after_in_child=_after_fork)
