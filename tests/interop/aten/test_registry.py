"""The table of ATen operators: what is found in it, and what it refuses."""

from __future__ import annotations

import pytest

import graphc
from graphc.interop.aten.registry import rule
from graphc.interop.aten.table import find


def test_an_operator_is_found_with_its_overload():
    add = find("aten.add.Scalar")
    assert add is not None and add(graphc.tensor([1.0]), 2, alpha=3).tolist() == [7]
    assert find("aten.add.out") is None and find("aten.no_such_thing.default") is None


def test_the_form_that_writes_stores_what_the_other_one_computes():
    x, write = graphc.tensor([1, 2]), find("aten.mul_.Tensor")
    assert write is not None and write(x, 3) is x and x.tolist() == [3, 6]
    assert find("aten.no_such_thing_.default") is None


def test_an_operator_has_one_rule():
    with pytest.raises(KeyError, match=r"aten\.add\.Tensor"):
        rule("add.Tensor")(lambda: None)
