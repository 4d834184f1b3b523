"""The benchmark of solvers: SciPy's solutions, where it is installed, and gradients beside differences of values."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import solvers


def test_methods_agree_with_scipy():
    pytest.importorskip("scipy", reason="scipy is not installed")
    for name in ("lorenz, dopri5", "robertson, rodas5p"):
        result = solvers.SWEEP.run_case(name, ["scipy"], rounds=1, seconds=0)
        assert not result.problems and result.errors["graphc"] < 1e-5
        assert float(result.facts["graphc compile s"]) > 0


def test_the_gradient_is_the_slope_of_the_value():
    case = solvers.CASES["lorenz, tsit5, gradient"]
    value, gradient = solvers._graphc(case)()
    ends = []
    for step in (1e-6, -1e-6):
        system = case.system
        moved = solvers.System(
            system.rate, system.start, (10.0 + step, *system.parameters[1:]), system.end, 1e-11, 1e-11
        )
        ends.append(solvers._graphc(solvers.Case(moved, "tsit5", "Tsit5"))().square().sum().item())
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, gradient[0].item(), rtol=1e-4)
    np.testing.assert_allclose(value.item(), sum(ends) / 2, rtol=1e-5)


def test_scipy_takes_part_in_values_only():
    for name, case in solvers.CASES.items():
        assert not (case.gradient and case.scipy), name
