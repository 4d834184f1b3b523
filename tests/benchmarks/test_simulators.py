"""The benchmark of simulators: gradients beside differences of values, and contenders that agree."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import graphc as gc
from benchmarks import simulators
from benchmarks.models.simulators import PROBLEMS
from benchmarks.models.simulators_loops import LOOPS


@pytest.mark.parametrize("name", ["pendulum", "policy"])
def test_gradient_is_the_slope_of_the_value(name):
    value, gradient = (simulators.contender_of_graphc((PROBLEMS[name], g)) for g in (False, True))
    found, gradients = gradient()
    assert float(value()) == pytest.approx(float(found), rel=1e-12)
    rng = np.random.default_rng(0)
    parameters = PROBLEMS[name].parameters
    directions = [rng.standard_normal(np.shape(x)) for x in parameters]
    lib = simulators.functions(gc, gc.tensor, gc.scan)
    run = gc.compile(partial(PROBLEMS[name].run, lib))
    after, before = (
        float(run(*(gc.tensor(x + h * d) for x, d in zip(parameters, directions, strict=True)))) for h in (1e-6, -1e-6)
    )
    slope = sum(float((g.numpy() * d).sum()) for g, d in zip(gradients, directions, strict=True))
    assert (after - before) / 2e-6 == pytest.approx(slope, rel=1e-5)


def test_contenders_compute_the_same(torch):
    result = simulators.SWEEP.run_case("policy, gradient", ["torch"], rounds=1, seconds=0)
    assert not result.problems and result.errors["graphc"] < 1e-10
    assert result.facts["numbers"] == 4 and float(result.facts["graphc compile s"]) > 0


def test_every_problem_says_how_many_numbers_its_state_has():
    assert {p.numbers for p in PROBLEMS.values() if p.numbers >= 1000} == {64 * 64}


@pytest.mark.parametrize("name", PROBLEMS)
def test_plain_loops_compute_the_same(name):
    loop, arrays = LOOPS[name]
    value = simulators.contender_of_graphc((PROBLEMS[name], False))()
    assert float(value) == pytest.approx(loop(*PROBLEMS[name].parameters, *arrays), rel=1e-9)


def test_numpy_computes_the_same_and_takes_part_in_values_only():
    result = simulators.SWEEP.run_case("policy", ["numpy"], rounds=1, seconds=0)
    assert not result.problems and result.errors["graphc"] < 1e-10
    assert "numpy" not in simulators.SWEEP.run_case("policy, gradient", ["numpy"], rounds=1, seconds=0).rounds_ms
