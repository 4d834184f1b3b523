"""The native comparison of watched words: it tells what the Python one tells."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

import pytest

from graphc.compiler.native_call import unchanged
from graphc.guards.watch_words import WatchTable, Words


def test_words_that_differ_are_told():
    table = {"a": 1}
    words = Words()
    if not words.dictionary(table):
        pytest.skip("dictionaries have no version here")
    watch = WatchTable()
    watch.set(words.found, words.owned)
    same = unchanged(watch)
    references = sys.getrefcount(watch)
    assert [same() for _ in range(1000)] == [True] * 1000 and sys.getrefcount(watch) == references
    table["a"] = 2
    assert same() is False and not watch.same()
    watch.set({}, ())
    assert same() is True


def test_words_are_replaced_in_one_step_while_others_compare_and_set_them():
    word, watch, found = ctypes.c_uint64(1), WatchTable(), []
    same, words = unchanged(watch), {ctypes.addressof(word): 2}
    watch.set({}, ())
    watch.set(words, ())

    def line(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code is WatchTable.set.__code__:
            found.append(same())
            sys.settrace(None)
            watch.set({ctypes.addressof(word): 3, ctypes.addressof(watch): 0}, [object()])
            found.append(same())
            sys.settrace(line)
        return line

    before = sys.gettrace()
    sys.settrace(line)
    try:
        watch.set(words, ())
    finally:
        sys.settrace(before)
    assert len(found) > 6 and not any(found)
    table = ctypes.cast(watch.words, ctypes.c_void_p).value
    assert table in [ctypes.addressof(kept) for _, kept in watch._objects.values()]
