"""Whether arrays hold what they held before, found by their contents: writes of any kind are seen."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.locks import Lock
from graphc.codegen.machine.target import host_target
from graphc.codegen.native.contents import BLOCK, CHANGED, COMPARE, FLAG, SPAN_WORDS, emit_compare
from graphc.compiler.compile import prepare_threads, small_object
from graphc.runtime.arena import address_of, aligned
from graphc.runtime.loader import link_forever

_Compare = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_lock = Lock()
"""One comparison at a time: a content may belong to several."""


class Content:
    """A dense array, and what is remembered of what it held: 16 bytes for each 4096."""

    __slots__ = ("__weakref__", "array", "counter", "sums")

    def __init__(self, array: np.ndarray):
        """Raises ArgumentError for an array that is not dense."""
        if not array.flags.c_contiguous:
            raise ArgumentError("only the content of a dense array is compared", remedy="np.ascontiguousarray(...)")
        self.array = array
        self.sums = np.zeros((-(-array.nbytes // BLOCK), 2), np.uint64)
        self.counter = [0]
        """How often it was found to be another one."""


class Comparison:
    """Contents that are compared together."""

    def __init__(self, contents: Sequence[Content]):
        self.contents = tuple(contents)
        self._function, self._keys = _load()
        blocks = [len(content.sums) for content in self.contents]
        self._spans = np.zeros((len(blocks), SPAN_WORDS), np.int64)
        for row, content in zip(self._spans, self.contents, strict=True):
            row[:FLAG] = address_of(content.array), content.array.nbytes, address_of(content.sums), 0
        self._spans[1:, FLAG - 1] = np.cumsum(blocks[:-1])
        self._table = (ctypes.c_int64 * (CHANGED + 1))(
            len(blocks), sum(blocks), address_of(self._keys), address_of(self._spans), 0
        )
        self._address = ctypes.addressof(self._table)

    def look(self) -> None:
        """Counts the contents that are not what they were when any comparison looked last."""
        with _lock:
            self._function(self._address)
            if self._table[CHANGED]:
                self._table[CHANGED] = 0
                for i in np.flatnonzero(self._spans[:, FLAG]):
                    self.contents[i].counter[0] += 1
                self._spans[:, FLAG] = 0


@cache
def _load() -> tuple[Callable[[int], Any], np.ndarray]:
    """The native function, and the keys of this process."""
    code = small_object("contents", emit_compare(host_target()), quick=False)
    prepare_threads(code)
    keys = aligned(np.frombuffer(os.urandom(2 * BLOCK), np.uint8).copy())
    return _Compare(link_forever(code, (COMPARE,))[COMPARE]), keys
