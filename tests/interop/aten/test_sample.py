"""Applications of operators with known results, as programs."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.base import dtypes
from graphc.interop.aten import registry, sample
from graphc.interop.aten.graph import Ref, Step

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
STEP = Step("y", "aten.sum.dim_IntList", (Ref("x"), (1,)), {"dtype": dtypes.float64})


def replayed(path: Path) -> Any:
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(path), run_name="__main__")
    return ended.value.code


def test_a_rule_that_is_right():
    assert sample.fault_of(STEP, {"x": X}, [X.astype(np.float64).sum(1)]) == ""


def test_a_rule_that_is_wrong_is_written_and_shown(monkeypatch: pytest.MonkeyPatch, capsys: Any):
    right = registry.TABLE[STEP.target]
    monkeypatch.setitem(registry.TABLE, STEP.target, lambda *args, **named: right(*args, **named) + 1)
    expected = [X.astype(np.float64).sum(1)]
    what = sample.fault_of(STEP, {"x": X}, expected)
    assert what.startswith("result 0: 2 of 2 elements differ") and what.endswith("expected -1.80000003")
    path = sample.written(STEP, {"x": X}, expected, what)
    assert replayed(path) == 1 and capsys.readouterr().out.strip() == what
    monkeypatch.setitem(registry.TABLE, STEP.target, right)
    assert replayed(path) == 0


def test_shapes_types_and_errors_are_differences():
    assert sample.differing(X, X[:1]).startswith("float32[2, 3] instead of float32[1, 3]")
    assert "float64" in sample.differing(X.astype(np.float64), X)
    assert sample.differing(X, X + np.float32(1e-7)) == ""
    step = Step("y", "aten.no_such.default", (Ref("x"),))
    assert sample.fault_of(step, {"x": X}, [X]).startswith("UnsupportedError")
