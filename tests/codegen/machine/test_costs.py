"""Costs: each has a name and says what it is, and a target that has others compiles otherwise."""

from __future__ import annotations

import ast
import inspect
from dataclasses import fields, is_dataclass
from itertools import pairwise

import pytest

from graphc.codegen.machine import costs
from graphc.codegen.machine.costs import DEFAULT
from graphc.codegen.machine.target import named_targets, target_named
from tests.native import lowered, priced, scheduled
from tests.passes.graph_text import graph_of

RECORDS = [record for record in ast.parse(inspect.getsource(costs)).body if isinstance(record, ast.ClassDef)]


def is_text(stmt: ast.stmt) -> bool:
    return isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Constant) and isinstance(stmt.value.value, str)


@pytest.mark.parametrize("record", [r for r in RECORDS if r.name != "Costs"], ids=lambda r: r.name)
def test_every_cost_says_what_it_is(record: ast.ClassDef):
    named = [(stmt, after) for stmt, after in pairwise([*record.body, ast.Pass()]) if isinstance(stmt, ast.AnnAssign)]
    assert named
    for stmt, after in named:
        assert is_text(after), ast.unparse(stmt)


def test_costs_are_frozen_records_of_numbers():
    assert DEFAULT.strict_order is False
    for topic in fields(DEFAULT):
        if topic.name == "strict_order":
            continue
        record = getattr(DEFAULT, topic.name)
        assert is_dataclass(record)
        hash(record)


@pytest.mark.parametrize("name", named_targets())
def test_every_named_target_has_costs_of_its_own_kind(name: str):
    assert isinstance(target_named(name).costs, costs.Costs)


ROWS = """
graph @f(%x: f32[512,1024]) -> (f32[1024]) {
  %y = sum(%x) {axes=[0]} : f32[1024]
  return %y
}
"""


def test_the_schedule_follows_the_costs_of_its_target():
    target = target_named("avx512")
    early = priced(target, reduction={"rows_from": 512 * 1024})
    kernels = [len(scheduled(lowered(graph_of(ROWS)), t).kernels) for t in (target, early)]
    assert kernels == [1, 2]
