"""Digests of the front end: equal from run to run, different when something else is traced, guarded or computed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import graphc
from graphc.ops.pointwise import elementwise
from tools import front_digests as front
from tools.front_digests import Program

pytest.importorskip("torch")


def program(function: Callable[..., object]) -> Program:
    return Program("script/test", function, [graphc.ones(2, 3)], called=True)


def script(factor: float) -> Callable[..., object]:
    settings = {"factor": factor}
    return lambda x: x * settings["factor"] + 1.0


def test_two_runs_give_the_same():
    first, second = (dict(front.traced_digests(program(script(2.0)))) for _ in range(2))
    assert first == second
    assert first.keys() == {"script/test graph", "script/test guards"}


def test_another_graph_is_found():
    one, two = (dict(front.traced_digests(program(script(factor)))) for factor in (2.0, 3.0))
    assert one["script/test graph"] != two["script/test graph"]
    assert one["script/test guards"] == two["script/test guards"]


def test_guards_on_different_lines_differ():
    settings = {"factor": 2.0}
    one = dict(front.traced_digests(program(lambda x: x * settings["factor"])))
    two = dict(front.traced_digests(program(lambda x: x * settings["factor"])))
    assert one["script/test guards"] != two["script/test guards"]


def test_calls_get_cheaper_and_are_counted_by_package():
    counts = front.count_calls(program(script(2.0)))
    assert counts[0].functions > counts[1].functions >= counts[2].functions > 0
    assert ("tensors", "tensors") not in counts[0].changes
    assert len(counts[0].changes) > len(counts[2].changes)


def test_files_belong_to_packages_with_a_floor():
    root = Path(graphc.__file__).parent
    assert front.package_of(f"{root}/ir/graph/text.py") == "ir.graph"
    assert front.package_of(f"{root}/front.py") == front.FRONT
    assert front.package_of("/elsewhere/script.py") == ""


def test_other_bits_of_an_op_are_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(front, "REGISTRY", {"neg": elementwise.neg.op})
    before = dict(front.eager_digests())
    assert before.keys() == {"op/neg eager"}
    monkeypatch.setattr(front, "REGISTRY", {"neg": elementwise.abs.op})
    assert dict(front.eager_digests())["op/abs eager"] != before["op/neg eager"]


@pytest.mark.slow
def test_all_programs_give_digests():
    kinds = {key.rpartition(" ")[2] for key, _ in front.compute()}
    assert kinds == {"graph", "guards", "call2", "call3", "file", "eager"}
