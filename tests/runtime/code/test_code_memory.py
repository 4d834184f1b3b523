"""Memory for code: permissions, lifetime, what the system refuses."""

from __future__ import annotations

import doctest
import gc
import sys
from pathlib import Path

import pytest

from graphc.runtime.code import code_memory
from graphc.runtime.code.code_memory import CodeMemory

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the maps of a process from /proc")


def permissions(address: int) -> str:
    """Return the permissions of a page of this process, such as ``r-xp``; empty where it has none."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        limits, flags, *_ = line.split()
        low, high = (int(limit, 16) for limit in limits.split("-"))
        if low <= address < high:
            return flags
    return ""


def test_the_example_runs():
    assert doctest.testmod(code_memory).failed == 0


@linux
def test_pages_are_written_or_executed_and_never_both():
    memory = CodeMemory(3 * 4096)
    assert permissions(memory.address) == "rw-p"
    memory.protect(0, 4096, execute=True)
    memory.protect(4096, 4096)
    memory.protect(8192, 4096, write=True)
    assert [permissions(memory.address + 4096 * page) for page in range(3)] == ["r-xp", "r--p", "rw-p"]


@linux
def test_pages_go_with_their_owner_unless_they_are_kept():
    memory, kept = CodeMemory(1 << 20), CodeMemory(1 << 20)
    address, other = memory.address, kept.address
    memory.protect(0, 1 << 20, execute=True)
    kept.protect(0, 1 << 20, execute=True)
    kept.keep()
    del memory, kept
    gc.collect()
    assert permissions(address) != "r-xp" and permissions(other) == "r-xp"


def test_what_the_system_refuses_is_an_os_error():
    with pytest.raises((OSError, OverflowError)):
        CodeMemory(1 << 60)
    with pytest.raises(OSError):
        CodeMemory(4096).protect(1, 4096)
