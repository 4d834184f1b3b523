"""Applications of operators with known results, as cases."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
import pytest

from graphc.base import dtypes
from graphc.checks.check_case import load_case
from graphc.cli import console
from graphc.cli.main import main
from graphc.errors import ArtifactError
from graphc.interop.aten import registry, sample
from graphc.interop.aten.graph import Ref, Step

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
STEP = Step("y", "aten.sum.dim_IntList", (Ref("x"), (1,)), {"dtype": dtypes.float64})


def test_a_rule_that_is_right():
    assert sample.fault_of(STEP, {"x": X}, [X.astype(np.float64).sum(1)]) == ""


def test_a_rule_that_is_wrong_is_written_and_shown(monkeypatch: pytest.MonkeyPatch, capsys: Any):
    right = registry.TABLE[STEP.target]
    monkeypatch.setitem(registry.TABLE, STEP.target, lambda *args, **named: right(*args, **named) + 1)
    expected = [X.astype(np.float64).sum(1)]
    what = sample.fault_of(STEP, {"x": X}, expected)
    assert what.startswith("result 0: 2 of 2 elements differ") and what.endswith("expected -1.80000003")
    path = sample.written(STEP, {"x": X}, expected, what)
    assert path.name == "operator_aten_sum_dim_IntList.gc" and load_case(path).fault() == what
    assert main(["check", str(path)]) == console.WRONG and capsys.readouterr().out.startswith(
        f"operator aten.sum.dim_IntList: BAD: {what}"
    )
    monkeypatch.setitem(registry.TABLE, STEP.target, right)
    assert main(["check", str(path)]) == console.OK and load_case(path).fault() == ""


def test_arguments_of_all_kinds_are_kept():
    values = [Ref("x"), -inf, 1.5, -2, None, "sum", (1, slice(None, -1)), {"a": [True]}, dtypes.bfloat16, 1 - 2j]
    step = Step("y", "aten.no_such.default", tuple(values), {"dim": 1})
    case = load_case(sample.written(step, {"x": X}, [None, X], "is unknown"))
    assert case.operator == f"[1], {str_of(step)}"
    assert case.fault().startswith("UnsupportedError")


def str_of(step: Step) -> str:
    return f"Step({step.name!r}, {step.target!r}, {step.args!r}, {dict(step.kwargs)!r})"


@pytest.mark.parametrize(
    "text", ["[], open('x')", "[], Step", "[0]", "[0], Step('y', 'aten.a', (graphc.nn,))", "[0], ("]
)
def test_text_that_is_no_operator_is_refused(text: str):
    with pytest.raises(ArtifactError, match="the case is damaged"):
        sample.operator_fault(text, [], [X])


def test_shapes_types_and_errors_are_differences():
    assert sample.differing(X, X[:1]).startswith("float32[2, 3] instead of float32[1, 3]")
    assert "float64" in sample.differing(X.astype(np.float64), X)
    assert sample.differing(X, X + np.float32(1e-7)) == ""
    step = Step("y", "aten.no_such.default", (Ref("x"),))
    assert sample.fault_of(step, {"x": X}, [X]).startswith("UnsupportedError")
