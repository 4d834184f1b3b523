"""Detection of changed arrays by their contents, so that writes of any kind are noticed.

Contents are compared by universal hashes (see codegen.door.contents), which reads all bytes. Where the system reports
written pages (see runtime.written_pages), large contents that stayed unchanged for some looks are read again only after
some of their pages were written.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError
from graphc.base.locks import Lock
from graphc.codegen.door.contents import BLOCK, CHANGED, COMPARE, FLAG, SPAN_WORDS, UNCHANGED, emit_compare
from graphc.compiler.ready import prepare_threads, small_object
from graphc.runtime.arena import address_of, aligned
from graphc.runtime.loader import host, link_forever
from graphc.runtime.written_pages import PAGE, WrittenPages, private_memory

LARGE = 1 << 16
"""Bytes from which pages are watched. Reading less takes no longer than querying its pages."""
QUIET, LONGEST = 8, 1024
"""Looks without a change before pages are watched, initially and at most. Each change doubles them, because a write to
a watched page is slow."""
_Compare = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_lock = Lock()
"""Serializes comparisons: a content may belong to several."""
_state = (ctypes.c_uint64 * 2)()
"""For native code under the interpreter lock: whether a comparison is running, and the number of changes found."""


class Content:
    """A dense array and the hashes of its last content: 16 bytes for each 4096."""

    __slots__ = (
        "__weakref__",
        "array",
        "counter",
        "finalizer",
        "is_watched",
        "may_differ",
        "patience",
        "quiet",
        "sums",
    )

    def __init__(self, array: np.ndarray):
        """Raise ArgumentError for an array with gaps (not C-contiguous)."""
        if not array.flags.c_contiguous:
            raise ArgumentError(
                "only the content of a dense array is compared", remedy="pass np.ascontiguousarray(...)"
            )
        self.array = array
        self.sums = np.zeros((-(-array.nbytes // BLOCK), 2), np.uint64)
        self.counter = [0]
        """Number of changes found."""
        self.quiet, self.patience = 0, QUIET
        """Looks since the last change, and the number required before pages are watched."""
        self.is_watched = False
        self.finalizer: Any = None
        self.may_differ = True
        """Whether a watched page was written since the last comparison."""

    @property
    def pages(self) -> tuple[int, int]:
        """Start and end address of its pages."""
        start = address_of(self.array)
        return start - start % PAGE, start + self.array.nbytes + -(start + self.array.nbytes) % PAGE

    def looked(self, changed: bool) -> None:
        """Record the result of a comparison."""
        self.may_differ = False
        self.quiet = 0 if changed else self.quiet + 1
        if changed:
            self.counter[0] += 1
            _state[1] += 1
            if self.is_watched:
                self.patience = min(2 * self.patience, LONGEST)
                _watch.drop(self)


class _Watch:
    """The contents with watched pages."""

    def __init__(self) -> None:
        self._contents: weakref.WeakSet[Content] = weakref.WeakSet()
        self._pages: WrittenPages | None = None
        self._is_possible = True

    def add(self, contents: Sequence[Content]) -> list[Content]:
        """Start watching contents where possible. Return the watched ones."""
        watched = []
        try:
            private = private_memory()
            if self._pages is None and self._is_possible:
                self._is_possible = False
                self._pages = WrittenPages()
                self._is_possible = True
        except OSError:
            private = []
        for content in contents:
            start, stop = content.pages
            try:
                if self._pages is None or not any(low <= start and stop <= high for low, high in private):
                    raise OSError("others may write there, or nobody can look")
                self._pages.watch(start, stop)
            except OSError:
                content.patience, content.quiet = LONGEST, 0
                continue
            content.is_watched = content.may_differ = True
            content.finalizer = weakref.finalize(content, self._pages.forget, start, stop)
            content.finalizer.atexit = False
            self._contents.add(content)
            watched.append(content)
        return watched

    def drop(self, content: Content) -> None:
        """Stop watching a content."""
        content.is_watched, content.may_differ = False, True
        self._contents.discard(content)
        content.finalizer()

    def look(self, contents: Sequence[Content]) -> None:
        """Mark all contents that share a written page with these contents.

        Looking resets the written flags of pages, so it must mark every content on them.
        """
        for content in contents:
            assert self._pages is not None
            try:
                written = list(self._pages.look(*content.pages))
            except OSError:
                # A deleted content on the same page ended the watch of its memory. Writes until then are unknown.
                written = [content.pages]
                self.drop(content)
            for start, stop in written:
                for other in list(self._contents):
                    low, high = other.pages
                    other.may_differ |= low < stop and start < high

    def all_may_differ(self) -> None:
        """Mark all contents for comparison at their next look."""
        for content in list(self._contents):
            content.may_differ = True

    def after_fork(self) -> None:
        """Stop watching in a forked child, where pages are not watched."""
        for content in list(self._contents):
            content.is_watched, content.may_differ = False, True
        self._contents.clear()
        if self._pages is not None:
            self._pages.close()
            self._pages = None
        _state[0] = 0  # the thread that compared does not exist here


_watch = _Watch()
os.register_at_fork(after_in_child=_watch.after_fork)


class ContentComparison:
    """Contents compared together."""

    def __init__(self, contents: Sequence[Content]):
        self.contents = tuple(contents)
        """The contents; each may belong to other comparisons too."""
        self._large = [c for c in self.contents if c.array.nbytes >= LARGE]
        self._reading = _Reading(self.contents)

    def look(self) -> None:
        """Count the contents that changed since the last look of any comparison."""
        with _lock:
            _state[0] = 1
            try:
                self._look()
            # NOTE: also after Ctrl-C, which may have interrupted the counting. Raise it again.
            except BaseException:
                self._not_known()
                raise
            finally:
                _state[0] = 0

    def _not_known(self) -> None:
        """Count all contents as changed, after an interruption whose results are lost."""
        for content in self.contents:
            content.counter[0] += 1
        _state[1] += 1
        _watch.all_may_differ()

    def _look(self) -> None:
        if self._large:
            self._look_at_pages()
        else:
            self._reading.read()

    def _look_at_pages(self) -> None:
        _watch.look([c for c in self._large if c.is_watched])
        unsure = tuple([c for c in self.contents if c.may_differ or not c.is_watched])
        if unsure != self._reading.contents:
            self._reading = _Reading(unsure)
        self._reading.read()
        added = [c for c in self._large if not c.is_watched and c.quiet >= c.patience]
        if added and (added := _watch.add(added)):
            # NOTE: read once more after protecting the pages, to notice a write in between.
            _watch.look(added)
            _Reading(tuple(added)).read()

    @property
    def table(self) -> int:
        """Address of the table for ``graphc_unchanged``; 0 where the contents are too large for one thread to compare
        quickly.
        """
        return 0 if sum(c.array.nbytes for c in self.contents) >= LARGE else self._reading.address


class _Reading:
    """The table for one call of the native function."""

    def __init__(self, contents: tuple[Content, ...]):
        self.contents = contents
        self._large = [c for c in contents if c.array.nbytes >= LARGE]
        self._function, _, self._keys = _load()
        blocks = [len(content.sums) for content in contents]
        self._spans = np.zeros((len(blocks), SPAN_WORDS), np.int64)
        for row, content in zip(self._spans, contents, strict=True):
            row[:FLAG] = address_of(content.array), content.array.nbytes, address_of(content.sums), 0
        self._spans[1:, FLAG - 1] = np.cumsum(blocks[:-1])
        self._table = (ctypes.c_int64 * (CHANGED + 1))(
            len(blocks), sum(blocks), address_of(self._keys), address_of(self._spans), 0
        )
        self.address = ctypes.addressof(self._table)

    def read(self) -> None:
        """Compare the contents with their hashes, and record changes."""
        self._function(self.address)
        if not self._table[CHANGED]:
            for content in self._large:
                content.looked(changed=False)
            return
        for content, flag in zip(self.contents, self._spans[:, FLAG].tolist(), strict=True):
            content.looked(bool(flag))
        self._table[CHANGED] = 0
        self._spans[:, FLAG] = 0


def changes() -> int:
    """Return the number of changes found in any content."""
    return _state[1]


def quiet_words(count: int) -> dict[int, int]:
    """Return words in memory by address with their values while ``changes`` returns ``count`` and no comparison runs.

    Only then may native code use ``graphc_unchanged``.
    """
    start = ctypes.addressof(_state)
    return {start: 0, start + ctypes.sizeof(ctypes.c_uint64): count}


def unchanged_function() -> int:
    """Return the address of ``graphc_unchanged``."""
    return _load()[1]


@cache
def _load() -> tuple[Callable[[int], Any], int, np.ndarray]:
    """Return the native functions, and the hash keys of this process."""
    code = small_object("contents", emit_compare, quick=False)
    prepare_threads(code)
    keys = aligned(np.frombuffer(os.urandom(2 * BLOCK), np.uint8).copy())
    functions = link_forever(code, (COMPARE, UNCHANGED), host())
    return _Compare(functions[COMPARE]), functions[UNCHANGED], keys
