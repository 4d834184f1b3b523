"""Whether arrays hold what they held before, found by their contents: writes of any kind are seen.

Contents are compared by universal hashes (see codegen.native.contents), which reads them all. Where the system tells
which pages were written to (see runtime.written_pages), large ones that have been quiet for some looks are read again
only once some of their pages were.
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
"""Bytes from which pages are watched; to read less takes no longer than to ask for its pages."""
QUIET, LONGEST = 8, 1024
"""Looks without a change after which pages are watched, the first time and at most: each change doubles them, for a
write to watched pages is slow."""
_Compare = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_lock = Lock()
"""One comparison at a time: a content may belong to several."""
_state = (ctypes.c_uint64 * 2)()
"""For native code that holds the interpreter lock: whether a comparison is under way, and how often any content was
found to be another one."""


class Content:
    """A dense array, and what is remembered of what it held: 16 bytes for each 4096."""

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
        """Raises ArgumentError for an array that is not dense."""
        if not array.flags.c_contiguous:
            raise ArgumentError("only the content of a dense array is compared", remedy="np.ascontiguousarray(...)")
        self.array = array
        self.sums = np.zeros((-(-array.nbytes // BLOCK), 2), np.uint64)
        self.counter = [0]
        """How often it was found to be another one."""
        self.quiet, self.patience = 0, QUIET
        """Looks since the last change, and how many are wanted before pages are watched."""
        self.is_watched = False
        self.finalizer: Any = None
        self.may_differ = True
        """Whether a watched page was written to, which has not been compared since."""

    @property
    def pages(self) -> tuple[int, int]:
        """Start and end of the pages that it touches."""
        start = address_of(self.array)
        return start - start % PAGE, start + self.array.nbytes + -(start + self.array.nbytes) % PAGE

    def looked(self, changed: bool) -> None:
        """Notes what a comparison has found."""
        self.may_differ = False
        self.quiet = 0 if changed else self.quiet + 1
        if changed:
            self.counter[0] += 1
            _state[1] += 1
            if self.is_watched:
                self.patience = min(2 * self.patience, LONGEST)
                _watch.drop(self)


class _Watch:
    """The contents whose pages are watched."""

    def __init__(self) -> None:
        self._contents: weakref.WeakSet[Content] = weakref.WeakSet()
        self._pages: WrittenPages | None = None
        self._is_possible = True

    def add(self, contents: Sequence[Content]) -> list[Content]:
        """Begins to watch contents; returns those for which that is possible."""
        found = []
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
            found.append(content)
        return found

    def drop(self, content: Content) -> None:
        """Watches a content no longer."""
        content.is_watched, content.may_differ = False, True
        self._contents.discard(content)
        content.finalizer()

    def look(self, contents: Sequence[Content]) -> None:
        """Marks all contents that touch pages of these which were written to: pages that were looked at count as not
        written from then on, whomever they belong to."""
        for content in contents:
            assert self._pages is not None
            try:
                written = list(self._pages.look(*content.pages))
            except OSError:
                # The memory of a content that is gone, and shared a page, is watched no longer. What was written to
                # until then is not known.
                written = [content.pages]
                self.drop(content)
            for start, stop in written:
                for other in list(self._contents):
                    low, high = other.pages
                    other.may_differ |= low < stop and start < high

    def all_may_differ(self) -> None:
        """Has all contents compared in their next looks."""
        for content in list(self._contents):
            content.may_differ = True

    def after_fork(self) -> None:
        """Called in the child, whose pages nobody watches."""
        for content in list(self._contents):
            content.is_watched, content.may_differ = False, True
        self._contents.clear()
        if self._pages is not None:
            self._pages.close()
            self._pages = None
        _state[0] = 0  # the thread that compared does not exist here


_watch = _Watch()
os.register_at_fork(after_in_child=_watch.after_fork)


class Comparison:
    """Contents that are compared together."""

    def __init__(self, contents: Sequence[Content]):
        self.contents = tuple(contents)
        """What is compared; each may belong to other comparisons, too."""
        self._large = [c for c in self.contents if c.array.nbytes >= LARGE]
        self._reading = _Reading(self.contents)

    def look(self) -> None:
        """Counts the contents that are not what they were when any comparison looked last."""
        with _lock:
            _state[0] = 1
            try:
                self._look()
            # NOTE: also Ctrl-C, after which it is not known what was counted; it is raised again.
            except BaseException:
                self._not_known()
                raise
            finally:
                _state[0] = 0

    def _not_known(self) -> None:
        """Counts all contents as other ones: which were was found, or not, and is lost."""
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
        wanted = tuple([c for c in self.contents if c.may_differ or not c.is_watched])
        if wanted != self._reading.contents:
            self._reading = _Reading(wanted)
        self._reading.read()
        added = [c for c in self._large if not c.is_watched and c.quiet >= c.patience]
        if added and (added := _watch.add(added)):
            # NOTE: a write between reading and protecting must be seen, so they are read once more behind that.
            _watch.look(added)
            _Reading(tuple(added)).read()

    @property
    def table(self) -> int:
        """Where the table lies for ``graphc_unchanged``; 0 where there is more to compare than one thread does
        quickly."""
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
        """Compares the contents with what they were, and notes which are other ones."""
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
    """How often any content was found to be another one."""
    return _state[1]


def quiet_words(count: int) -> dict[int, int]:
    """Words in memory, by their addresses, and what they are as long as ``changes`` says ``count`` and nobody compares:
    only then may native code use ``graphc_unchanged``."""
    start = ctypes.addressof(_state)
    return {start: 0, start + ctypes.sizeof(ctypes.c_uint64): count}


def unchanged_function() -> int:
    """Address of ``graphc_unchanged``."""
    return _load()[1]


@cache
def _load() -> tuple[Callable[[int], Any], int, np.ndarray]:
    """The native functions, and the keys of this process."""
    code = small_object("contents", emit_compare, quick=False)
    prepare_threads(code)
    keys = aligned(np.frombuffer(os.urandom(2 * BLOCK), np.uint8).copy())
    found = link_forever(code, (COMPARE, UNCHANGED), host())
    return _Compare(found[COMPARE]), found[UNCHANGED], keys
