"""Child process: runs graphs natively with every buffer ending, then starting, at a page that must not be touched.

Usage: ``python -m tests.end_to_end.guard_pages TARGET FILE...``. An access past either end ends the process.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from pathlib import Path

import numpy as np

import graphc.ops.registry
from graphc.ir.graph.parse import parse_graph
from graphc.ir.kernel.statements import Storage
from tests.native import Native, Tolerance, lowered, run_graph, scheduled, target_or_skip
from tests.passes.check_pass import random_arguments

assert graphc.ops.registry.FAMILIES
PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_kept: list[mmap.mmap] = []


def fenced(array: np.ndarray, at_end: bool) -> np.ndarray:
    """A copy whose last byte is followed (or first byte preceded) by a page without access."""
    pages = max(1, -(-array.nbytes // PAGE))
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    _kept.append(memory)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (0, pages + 1):
        if _libc.mprotect(ctypes.c_void_p(address + page * PAGE), ctypes.c_size_t(PAGE), 0):
            raise OSError(ctypes.get_errno(), "mprotect")
    start = PAGE + (pages * PAGE - array.nbytes if at_end else 0)
    copy = np.frombuffer(memory, np.uint8, array.nbytes, start).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def check(path: str, target: str) -> None:
    """Runs the graph of a file and compares its outputs."""
    graph = parse_graph(Path(path).read_text("utf-8"))
    machine = target_or_skip(target)
    arguments = random_arguments(graph)
    expected, _ = run_graph(graph, arguments)
    native = Native(scheduled(lowered(graph), machine), machine)
    for at_end in (True, False):

        def place(storage: Storage | None, array: np.ndarray, at_end: bool = at_end) -> np.ndarray:
            # The arena and constants start at multiples of 64 bytes by contract, so their ends are exact to 64 bytes.
            if storage is not None and storage.cls != "constant":
                return fenced(array, at_end)
            room = np.zeros(-(-array.nbytes // 64) * 64, np.uint8)
            room[: array.nbytes] = array.reshape(-1).view(np.uint8)
            return fenced(room, at_end)

        outputs = native([a.copy() for a in arguments], place)
        Tolerance(1e-4, 1e-5).check(outputs, expected)


if __name__ == "__main__":
    for file in sys.argv[2:]:
        print(Path(file).stem, flush=True)
        check(file, sys.argv[1])
    print("done")
