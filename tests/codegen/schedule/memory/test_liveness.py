"""Liveness: intervals of temporaries and the least memory that they need."""

from __future__ import annotations

from graphc.base.dtypes import float32
from graphc.codegen.schedule.memory.liveness import Interval, intervals, peak
from graphc.ir.kernel.statements import Call, Program, Storage


def program(*calls: tuple[str, ...]) -> Program:
    """A program whose calls use the given temporaries (lower case) and inputs (upper case)."""
    names = sorted({n for c in calls for n in c})
    storages = tuple(Storage(n, float32, (16,), "input" if n.isupper() else "temp") for n in names)
    return Program("p", storages, (), tuple(Call("k", c) for c in calls))


def test_intervals_run_from_the_first_to_the_last_use():
    found = intervals(program(("X", "a"), ("a", "b"), ("b", "c"), ("a", "c", "d")))
    assert [(i.storage.name, i.first, i.last) for i in found] == [("a", 0, 3), ("b", 1, 2), ("c", 2, 3), ("d", 3, 3)]


def test_only_temporaries_have_an_interval():
    assert intervals(program(("X", "Y"))) == []


def test_overlap():
    storage = Storage("a", float32, (1,), "temp")
    assert Interval(storage, 0, 2).overlaps(Interval(storage, 2, 3))
    assert not Interval(storage, 0, 1).overlaps(Interval(storage, 2, 3))


def test_peak_is_the_largest_sum_of_what_is_alive_at_once():
    live = intervals(program(("a",), ("a", "b"), ("b", "c"), ("c", "d")))
    sizes = {"a": 64, "b": 128, "c": 64, "d": 192}
    assert peak(live, sizes) == 256
    assert peak([], {}) == 0
