"""SHA-256 digests: of few bytes by Python's own code, of many by OpenSSL, whose import takes 2 ms."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from graphc.base.lazy import deferred

_by_openssl = deferred("hashlib:sha256")


def _find_python_code() -> Callable[[], Any]:
    """Return the constructor that hashlib would use without OpenSSL; OpenSSL's in a Python built without it."""
    for module in ("_sha2", "_sha256"):  # from Python 3.12 on, and before
        with suppress(ImportError):
            return import_module(module).sha256
    return _by_openssl


_by_python = _find_python_code()
SMALL = 1 << 17
"""Bytes up to which OpenSSL is not imported: Python's code hashes 0.3 bytes, OpenSSL's 1.8, in a nanosecond."""


def sha256(*blocks: Any) -> bytes:
    """Return the SHA-256 digest of bytes-like blocks, one after the other."""
    return digest_of(blocks)


def digest_of(blocks: Iterable[Any]) -> bytes:
    """Return the SHA-256 digest of bytes-like blocks, as ``sha256`` does."""
    views = [memoryview(block) for block in blocks]
    is_small = "hashlib" not in sys.modules and sum(view.nbytes for view in views) <= SMALL
    state = _by_python() if is_small else _by_openssl()
    for view in views:
        if view.nbytes:
            state.update(view)
    return state.digest()
