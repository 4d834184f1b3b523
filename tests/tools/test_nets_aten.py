"""The net of ATen operators: it finds wrong rules, and a sample of it finds none."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import graphc

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
aten: Any = pytest.importorskip("tools.nets.aten")
run: Any = pytest.importorskip("tools.nets.run")


@pytest.mark.parametrize("case", list(itertools.islice(aten.cases(0), 60)) if aten else [])
def test_rules_give_what_pytorch_gives(case: str):
    outcome = aten.judge(case)
    assert outcome.kind in (run.EQUAL, run.REFUSED), outcome.detail


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(aten, "find", lambda name: lambda *_, **__: graphc.zeros(3))
    assert aten.judge("exp/f32").kind == run.DIFFERENT


def test_a_rule_that_raises_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(aten, "find", lambda name: lambda *_, **__: [][0])
    assert aten.judge("exp/f32").kind == run.FAILED


def test_an_operator_without_a_rule_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(aten, "find", lambda name: None)
    outcome = aten.judge("exp/f32")
    assert outcome.kind == run.REFUSED and "no rule for aten.exp.default" in outcome.detail
