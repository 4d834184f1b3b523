"""Outside state that a trace relies on, for programs compiled from it later."""

import graphc as gc
from graphc import nn
from tests.calls.sized import BATCH, ones, same


def test_what_is_outside_is_that_of_the_call(traces):
    model = nn.Linear(8, 4)
    compiled = gc.compile(model, dims=[(BATCH,)])
    with gc.no_grad():
        same(compiled(ones(2, 8)), model(ones(2, 8)))
        model.weight = nn.Parameter(gc.rand(4, 8))
        same(compiled(ones(3, 8)), model(ones(3, 8)))
        model.weight.zero_()
        same(compiled(ones(5, 8)), model(ones(5, 8)))
    assert len(traces) == 1


SCALE = 2.0


def test_a_fact_that_changed_between_two_sizes_leads_to_another_trace(traces, monkeypatch):
    @gc.compile(dims={"x": (BATCH,)})
    def f(x):
        return x * SCALE

    same(f(ones(2, 3)), ones(2, 3) * 2)
    monkeypatch.setitem(globals(), "SCALE", 3.0)
    same(f(ones(4, 3)), ones(4, 3) * 3)
    same(f(ones(2, 3)), ones(2, 3) * 3)
    assert len(traces) == 2
