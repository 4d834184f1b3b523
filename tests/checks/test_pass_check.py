"""Verdicts about single results, and the table of a part (tests/checks/test_check_parts.py has whole models)."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.checks import pass_check
from graphc.checks.pass_check import CheckedGraph, Reference, check_part, graph_key, is_allowed, joined
from tests.compiler.graphs import arguments, lookup, mlp

ONE = np.float32(1)


@pytest.mark.parametrize(
    ("found", "narrow", "wide", "good"),
    [
        ([1.0], [1.0], [1.0], True),
        ([1.001], [1.0], [1.0], False),
        ([1.001], [1.0], [1.0005], True),
        ([np.nan], [np.nan], [np.nan], True),
        ([np.nan], [1.0], [1.5], False),
        ([np.inf], [np.inf], [np.inf], True),
        ([1.0, 1.0], [1.0], [1.0], False),
    ],
)
def test_floats_may_be_as_far_as_roundings_of_the_graph(found, narrow, wide, good: bool):
    assert is_allowed(np.array(found, np.float32), np.array(narrow, np.float32), np.array(wide)) is good


def test_other_types_are_equal():
    whole = np.array([1, 2])
    assert is_allowed(whole, whole, whole)
    assert not is_allowed(whole + 1, whole, whole) and not is_allowed(whole.astype(np.int32), whole, whole)
    assert not is_allowed(np.array([True]), np.array([False]), np.array([False]))


def test_a_reference_names_what_differs():
    graph = mlp()
    given = arguments(graph)
    reference = Reference(graph, given)
    outputs, states = reference.results
    assert reference.wrong((outputs, states)) == "" and reference.difference((outputs, states)).absolute < 1e-4
    assert reference.wrong(([outputs[0], outputs[1] + ONE], states)).startswith("output 1 differs by 1")


def test_large_programs_are_left_out_but_for_native_code(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pass_check, "MOST_STATEMENTS", 10)
    graph = mlp()
    told: list[str] = []
    report, first = check_part(CheckedGraph("forward", graph, tuple(arguments(graph))), tell=told.append)
    skipped = [line for line in report.lines if not line.compared]
    assert report.good and first is None and len(skipped) > 10 and "at most 10" in skipped[0].verdict
    assert report.lines[-1].point.name == "native" and report.lines[-1].compared
    assert told[-1] == "native code" and len(told) == len(report.lines)
    assert joined([report, report]).lines == (*report.lines, *report.lines)


def test_keys_tell_graphs_apart_by_their_constants():
    first, second = lookup(), lookup()
    assert graph_key(first) == graph_key(second) != graph_key(mlp())
