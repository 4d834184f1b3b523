"""Planted faults of the CUDA emitter: each changes something, and each is noticed."""

from __future__ import annotations

import pytest

from tools.cuda import faults
from tools.cuda.cases import Case
from tools.cuda.faults import CAUGHT, FAULTS, run_faults, subject, subjects
from tools.cuda.runs import EQUAL, compile_all, judge


@pytest.fixture(autouse=True)
def every_check(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GRAPHC_EMULATOR", "orders,races")


def test_what_faults_are_planted_in_is_right_without_them():
    cases: list[Case] = [subject(name) for name in subjects()]
    assert [(o.case, o.kind, o.detail) for o in map(judge, compile_all(cases, faults.DEVICE)) if o.kind != EQUAL] == []


def test_every_fault_is_noticed():
    assert len(FAULTS) >= 20
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
    outcomes = run_faults()
    assert [(f.fault, f.subject, f.by, f.said) for f in outcomes if f.by not in CAUGHT] == []
    assert {f.by for f in outcomes} >= {"emulator", "numbers"}
