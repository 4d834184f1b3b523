"""Tensors as text."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import ArgumentError, AttributeValueError


@pytest.fixture(autouse=True)
def at_first():
    yield
    graphc.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0], "tensor([1.])"),
        (2.5, "tensor(2.5000)"),
        ([1.0, -2.0], "tensor([ 1., -2.])"),
        ([1.0, 1e5], "tensor([1.0000e+00, 1.0000e+05])"),
        ([0.5, 1e-5], "tensor([5.0000e-01, 1.0000e-05])"),
        ([1.0, float("nan"), float("-inf")], "tensor([1., nan, -inf])"),
        ([True, False], "tensor([ True, False])"),
        ([[1, -20]], "tensor([[  1, -20]])"),
        ([], "tensor([])"),
        ([[[1], [2]]], "tensor([[[1],\n         [2]]])"),
        ([[[1]], [[2]]], "tensor([[[1]],\n\n        [[2]]])"),
    ],
)
def test_elements(values, text):
    assert repr(graphc.tensor(values)) == text


def test_long_tensors_are_cut_to_their_edges():
    assert repr(graphc.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    text = repr(graphc.zeros(100, 100))
    assert text.count("...") == 7 and text.startswith("tensor([[0., 0., 0.,  ..., 0., 0., 0.],\n        [0.")


def test_what_is_behind_the_elements_begins_a_line_of_its_own_where_it_is_too_long():
    x = graphc.tensor(np.full(7, 0.125))
    assert repr(x).endswith("0.1250],\n       dtype=graphc.float64)")
    assert repr(x[:2]) == "tensor([0.1250, 0.1250], dtype=graphc.float64)"


def test_options():
    x = graphc.tensor([0.123456, 1.0])
    graphc.set_printoptions(precision=2)
    assert repr(x) == "tensor([0.12, 1.00])"
    graphc.set_printoptions(sci_mode=True)
    assert repr(x) == "tensor([1.23e-01, 1.00e+00])"
    graphc.set_printoptions(profile="full")
    assert "..." not in repr(graphc.zeros(2000)) and graphc.get_printoptions()["precision"] == 4
    graphc.set_printoptions(profile="short")
    assert repr(x) == "tensor([0.12, 1.00])"
    graphc.set_printoptions(profile="default", threshold=3, edgeitems=1, linewidth=20)
    assert repr(graphc.arange(5)) == "tensor([0,  ..., 4])"
    with graphc.printoptions(precision=1):
        assert repr(x) == "tensor([0.1, 1.0])"
    assert graphc.get_printoptions()["precision"] == 4


def test_wrong_options():
    with pytest.raises(AttributeValueError, match="profile 'long'"):
        graphc.set_printoptions(profile="long")
    with pytest.raises(ArgumentError, match="precision is -1"):
        graphc.set_printoptions(precision=-1)


def test_complex_numbers_have_both_parts():
    text = graphc.tensors.printing.text_of(np.array([1 + 2j, -0.5 - 1j]), 7)
    assert text == "[ 1.0000+2.j, -0.5000-1.j]"
