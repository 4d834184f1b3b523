"""Emitters of the functions that compare watched words of memory, for ``python_call``."""

from __future__ import annotations

from graphc.codegen.door.writer import NativeWriter

_PAIR = "{ ptr, i64 }"
"""The address of a word, and what it was."""


def same(w: NativeWriter) -> None:
    """Emit the check that every watched word is unchanged. It reads them in order: a changed word may mean that later
    ones are freed."""
    table = w.get("ptr", "%watch", "WatchTable.words")
    words = w.offset(table, 8)
    stop = w.element_address(_PAIR, words, w.load("i64", table))
    w.go("loop")
    w.label("loop")
    # NOTE: a loop over addresses, not indices: it runs in each call, over hundreds of words of a large model.
    pair = w.merge("ptr", (words, "entry"), ("%following", "body"))
    w.choose(w.value(f"icmp ult ptr {pair}, {stop}"), "body", "yes")
    w.label("body")
    now = w.load("i64", w.load("ptr", pair))
    then = w.load("i64", w.offset(pair, 8))
    w.do(f"%following = getelementptr {_PAIR}, ptr {pair}, i64 1")
    w.choose(w.equal("i64", now, then), "loop", "no")
    w.label("yes")
    w.give("i1", "true")
    w.label("no")
    w.give("i1", "false")


def answer(w: NativeWriter) -> None:
    """Emit the same check for Python: True or False."""
    watch = w.get("ptr", "%self", "Owner.data")
    equal = w.call("i1", "@same", f"ptr {watch}")
    yes, no = w.get("ptr", watch, "WatchTable.yes"), w.get("ptr", watch, "WatchTable.no")
    result = w.value(f"select i1 {equal}, ptr {yes}, ptr {no}")
    w.do(f"call void {w.get('ptr', watch, 'WatchTable.incref')}(ptr {result})")
    w.give("ptr", result)
