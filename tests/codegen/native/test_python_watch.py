"""The native comparison of watched words: it tells what the Python one tells."""

from __future__ import annotations

import sys

import pytest

from graphc.base.watch_words import Watch, Words
from graphc.compiler.native_call import unchanged


def test_words_that_differ_are_told():
    table = {"a": 1}
    words = Words()
    if not words.dictionary(table):
        pytest.skip("dictionaries have no version here")
    watch = Watch()
    watch.set(words.found, words.owned)
    same = unchanged(watch)
    references = sys.getrefcount(watch)
    assert [same() for _ in range(1000)] == [True] * 1000 and sys.getrefcount(watch) == references
    table["a"] = 2
    assert same() is False and not watch.same()
    watch.set({}, ())
    assert same() is True
