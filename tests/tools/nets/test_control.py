"""Programs of control flow: a sample agrees, and wrong results are noticed."""

from __future__ import annotations

import itertools

import pytest

import graphc as gc
from tools.nets import control
from tools.nets.run import BAD, DIFFERENT, FAILED


@pytest.mark.sampled(25)
@pytest.mark.parametrize("case", list(itertools.islice(control.cases(7), 18)))
def test_programs(case):
    outcome = control.judge(case)
    assert outcome.kind not in BAD, outcome.detail


def test_programs_hold_all_constructs():
    constructs = set()
    for number in range(30):
        gc.manual_seed(0)
        model = control.BranchingModel(number, "call").double()
        try:
            with gc.no_grad():
                graph = gc.trace(model, gc.rand(3, 4, dtype=gc.float64), gc.tensor(1))
        except gc.errors.TraceError:
            continue
        constructs |= {word for word in ("cond(", "while_loop(", "scan(", "random_bits(") if word in str(graph)}
    assert len(constructs) == 4


def test_a_wrong_number_is_seen(monkeypatch):
    run = control.run

    def wrong(number, mode, compiled):
        results = run(number, mode, compiled)
        return [*results[:-1], results[-1] + 1e-6 * compiled]

    monkeypatch.setattr(control, "run", wrong)
    assert control.judge("loop:7000001").kind == DIFFERENT


def test_an_untyped_error_is_seen(monkeypatch):
    loop = control.RUNS["loop"]
    monkeypatch.setitem(control.RUNS, "loop", lambda model, compiled: 1 / 0 if compiled else loop(model, False))
    assert control.judge("loop:7000001").kind == FAILED
