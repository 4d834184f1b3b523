"""Cost of hooks: each measured model calls its hooks, and returns the same."""

import json

import numpy as np
import pytest

from benchmarks import hooks


@pytest.mark.parametrize("compiled", [False, True])
def test_hooks_are_called_and_change_nothing(compiled):
    call, called = hooks.make(compiled, True, modules=4)
    results = [call(), call()]
    assert called == [8]
    np.testing.assert_allclose(results, hooks.make(compiled, False, modules=4)[0](), rtol=1e-6)


def test_figures_of_both(capsys, monkeypatch):
    monkeypatch.setattr(hooks, "MODULES", 2)
    hooks.main(["--rounds", "1", "--calls", "1", "--json"])
    rows = json.loads(capsys.readouterr().out)
    assert [r["code"] for r in rows] == ["compiled", "eager"]
    assert all(r["with_ms"] > 0 for r in rows)
