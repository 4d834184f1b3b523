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


@pytest.mark.sampled(50)
@pytest.mark.parametrize("case", list(itertools.islice(aten.cases(0), 60)) if aten else [])
def test_rules_give_what_pytorch_gives(case: str):
    outcome = aten.judge(case)
    assert outcome.kind in (run.EQUAL, run.REFUSED), outcome.detail


def test_a_wrong_rule_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(aten, "find", lambda name: lambda *_, **__: graphc.zeros(3))
    assert aten.judge("exp/f32").kind == run.DIFFERENT


@pytest.mark.parametrize("case", ["sort/f32", "argsort/f32", "topk/i64", "kthvalue/f32"])
def test_indices_of_other_elements_are_found(case: str, monkeypatch: pytest.MonkeyPatch):
    rule = aten.find

    def off(name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            values, indices = rule(name)(*args, **named)
            return values, graphc.zeros_like(indices)

        return call if name.startswith(("aten.sort", "aten.topk", "aten.kthvalue")) else rule(name)

    assert aten.judge(case).kind == run.EQUAL
    monkeypatch.setattr(aten, "find", off)
    assert aten.judge(case).kind == run.DIFFERENT


@pytest.mark.parametrize(
    ("case", "operator", "columns"),
    [
        ("svd_lowrank/f32", "aten._linalg_svd.default", (0, 2)),
        ("linalg_eigh/f32", "aten._linalg_eigh.default", (1,)),
        ("linalg_qr/f32", "aten.linalg_qr.default", (0, 1)),
    ],
)
def test_factors_may_have_other_signs_but_make_the_same_matrix(
    case: str, operator: str, columns: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
):
    rule = aten.find

    def turned(which: tuple[int, ...]) -> Any:
        def find(name: str) -> Any:
            def call(*args: Any, **named: Any) -> Any:
                return [-t if i in which else t for i, t in enumerate(rule(name)(*args, **named))]

            return call if name == operator else rule(name)

        return find

    for which in ((), columns):
        monkeypatch.setattr(aten, "find", turned(which))
        assert aten.judge(case).kind == run.EQUAL
    monkeypatch.setattr(aten, "find", turned((0,)))
    assert aten.judge(case).kind == run.DIFFERENT


@pytest.mark.parametrize(
    ("result", "expected", "same"),
    [(1.5, 1.5, True), (float("nan"), float("nan"), True), (float("nan"), 1.5, False), (1, 1.0, False)],
)
def test_numbers_are_compared(result: Any, expected: Any, same: bool):
    assert (aten.difference(result, expected) == "") is same


def test_a_rule_that_raises_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(aten, "find", lambda name: lambda *_, **__: [][0])
    assert aten.judge("exp/f32").kind == run.FAILED


def test_an_operator_without_a_rule_is_named(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(aten, "find", lambda name: None)
    outcome = aten.judge("exp/f32")
    assert outcome.kind == run.REFUSED and "no rule for aten.exp.default" in outcome.detail
