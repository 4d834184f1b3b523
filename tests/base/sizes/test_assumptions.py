"""Assumptions of a trace about sizes."""

from graphc.base.sizes.assumptions import Assumptions, assuming
from graphc.base.sizes.named_dims import Dim, dimensions

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
