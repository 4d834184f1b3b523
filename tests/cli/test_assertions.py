"""Bounds on figures."""

from __future__ import annotations

import argparse

import pytest

from graphc.cli.assertions import assertion


@pytest.mark.parametrize(
    ("text", "figure", "bound"),
    [
        ("p99<50us", "p99", 50e-6),
        ("p99.9 <= 1.5ms", "p99.9", 1.5e-3),
        ("min>100ns", "min", 1e-7),
        ("mean<1e-2s", "mean", 1e-2),
        ("throughput>=1e3", "throughput", 1000),
    ],
)
def test_bounds_have_a_figure_a_number_and_a_unit(text: str, figure: str, bound: float):
    found = assertion(text)
    assert (found.figure, found.bound) == (figure, pytest.approx(bound))


@pytest.mark.parametrize(
    "text", ["", "p99", "p99<50", "p99<50h", "p98<5us", "throughput>5us", "p99=5us", "p50<x us", "p50<1-2us"]
)
def test_wrong_bounds(text: str):
    with pytest.raises(argparse.ArgumentTypeError):
        assertion(text)


@pytest.mark.parametrize(
    ("text", "holds"), [("p50<2us", False), ("p50<=2us", True), ("p50>1us", True), ("p50>=3us", False)]
)
def test_bounds_hold_or_not(text: str, holds: bool):
    figures = {"p50": 2e-6}
    assert assertion(text).holds(figures) is holds
    assert assertion(text).as_json(figures) == {"text": text, "value": 2e-6, "holds": holds}
