"""Assumptions of a trace about sizes."""

import pytest

from graphc.base.sizes.assumptions import Assumptions, assuming, by_stage, holding
from graphc.base.sizes.named_dims import Dim, dimensions, size_of
from graphc.base.sizes.size import UndecidedSize

BATCH, TIME = Dim("batch", 1, 64), Dim("time", 1, 512, hint=128)


def test_a_trace_assumes_what_the_hints_say():
    with assuming(Assumptions()) as assumptions:
        assert TIME > 100 and TIME > 100 and TIME != BATCH and int(BATCH) == 32
        assert 1 / TIME * 128.0 == 1.0
    texts = [str(a).partition(" (asked")[0] for a in assumptions.found.values()]
    assert texts == ["time > 100", "time != batch", "batch == 32", "time == 128"]
    assert all("test_assumptions.py" in str(a.place) for a in assumptions.found.values())
    dims = dimensions([TIME, BATCH])
    fits = {dims["time"]: 128, dims["batch"]: 32}
    assert assumptions.broken(fits) is None
    broken = assumptions.broken(fits | {dims["time"]: 90})
    assert broken is not None and str(broken).startswith("time > 100")


def test_questions_are_answered_for_the_sizes_of_a_call():
    dims = dimensions([TIME, BATCH])
    call = {dims["time"]: 90, dims["batch"]: 2}
    with assuming(Assumptions(call)) as assumptions:
        assert not TIME > 100
        assert int(BATCH) == 2
        assert float(1 / BATCH) == 0.5
    assert assumptions.broken(call) is None


def halved(size, times):
    for _ in range(times):
        size = (size + 1) // 2
    return size


def test_a_remainder_answers_all_questions_of_a_pyramid():
    dims = dimensions([TIME])
    with assuming(Assumptions({dims["time"]: 96})) as assumptions:
        assert all(halved(TIME, n - 1) == 2 * halved(TIME, n) for n in (5, 4, 3, 2, 1))
        assert TIME % 8 == 0 and int(TIME % 16 + 3) == 3
    (assumption,) = assumptions.found.values()
    assert str(assumption).startswith("time == 32*(time // 32) (asked at")
    assert assumptions.broken({dims["time"]: 160}) is None
    assert assumptions.broken({dims["time"]: 161}) is assumption


def test_remainders_of_a_trace_answer_questions_about_its_graph():
    with assuming(Assumptions({dimensions([TIME])["time"]: 97})) as assumptions:
        assert halved(TIME, 3) == (TIME + 7) // 8
        assert TIME % 8 == 1
    values = {d: size_of(d) for d in dimensions([TIME]).values()}
    with holding(assumptions.found.values(), values):
        assert halved(TIME, 2) * 4 == TIME + 3
        assert halved(TIME, 2) * 4 != TIME
        assert halved(TIME, 2) * 4 > TIME
    with holding(assumptions.found.values(), values), pytest.raises(UndecidedSize):
        assert halved(TIME, 2) > 20


def test_a_resolver_answers_what_a_trace_has_assumed_before():
    dims = dimensions([TIME, BATCH])
    with assuming(Assumptions({dims["time"]: 97, dims["batch"]: 2})) as traced:
        assert TIME % 8 == 1 and BATCH < 9
    later = Assumptions.after(list(traced.found.values()), {dims["time"]: 100, dims["batch"]: 2})
    with assuming(later):
        assert TIME % 4 == 1 and BATCH < 9, "answered by remainders and assumptions, not for the size"
        assert TIME == 100
    assert [str(a).partition(" (")[0] for a in list(later.found.values())[len(traced.found) :]] == ["time == 100"]


def test_assumptions_are_sorted_by_the_last_size_that_decides_them():
    with assuming(Assumptions()) as assumptions:
        assert TIME > 100 and TIME > BATCH and BATCH > 3
        assert BATCH + TIME > 7
    time = dimensions([TIME])["time"]
    stages = by_stage(assumptions.found.values(), [None, time])
    assert [[str(a).partition(" (")[0] for a in stage] for stage in stages] == [
        ["batch > 3"],
        [],
        ["time > 100", "time > batch", "batch + time > 7"],
    ]


def test_assumptions_begin_again():
    assumptions = Assumptions()
    with assuming(assumptions):
        assert TIME > 100
        assumptions.restart({dimensions([TIME])["time"]: 90})
        assert not assumptions.found and not TIME > 100


def test_assumptions_with_some_sizes_are_about_the_others() -> None:
    batch, time = (next(iter(dimensions((d,)).values())) for d in (BATCH, TIME))
    with assuming(Assumptions({batch: 4, time: 9})) as assumptions:
        assert BATCH * 2 < TIME
    bound = assumptions.bound({time: 5})
    assert bound.broken({batch: 2}) is None and bound.broken({batch: 3}) is not None
    assert assumptions.bound({batch: 2, time: 5}).broken({}) is None
