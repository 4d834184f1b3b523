"""The net of others' graphs: a seeded sample, and how nodes of a trace become statements."""

from __future__ import annotations

import itertools

import pytest

pytest.importorskip("torch", reason="the net compares with PyTorch")
pytest.importorskip("nnsmith", reason="the dependency group fuzz is not installed")

from tools.nets import graphs, run

pytestmark = pytest.mark.torch

SAMPLE = 40
"""Models of the sample."""


def test_no_model_of_a_sample_differs():
    outcomes = {name: graphs.judge(name) for name in itertools.islice(graphs.cases(1), SAMPLE)}
    bad = {name: outcome.detail for name, outcome in outcomes.items() if outcome.kind in run.BAD}
    assert not bad, "\n".join(f"{name}: {detail}" for name, detail in bad.items())
    assert sum(outcome.kind == run.EQUAL for outcome in outcomes.values()) > SAMPLE * 0.7


def test_a_name_stands_for_the_same_model():
    first, again = graphs.model(5, True), graphs.model(5, True)
    assert first.text() == again.text() and first.body
