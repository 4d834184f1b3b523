"""The table of ATen operators: what is found in it, and what it refuses."""

from __future__ import annotations

import pytest

import graphc
from graphc.errors import UnsupportedError
from graphc.interop.aten.registry import rule
from graphc.interop.aten.table import find


def test_an_operator_is_found_with_its_overload():
    add = find("aten.add.Scalar")
    assert add is not None and add(graphc.tensor([1.0]), 2, alpha=3).tolist() == [7]
    assert find("aten.no_such_thing.default") is None and find("other.add_.Tensor") is None


def test_the_form_that_writes_stores_what_the_other_one_computes():
    x, write = graphc.tensor([1, 2]), find("aten.mul_.Tensor")
    assert write is not None and write(x, 3) is x and x.tolist() == [3, 6]
    assert find("aten.no_such_thing_.default") is None


def test_the_form_with_a_place_for_the_result_stores_it_there():
    x, out, add = graphc.tensor([1.0, 2.0]), graphc.zeros(2), find("aten.add.out")
    assert add is not None and add(x, 1, out=out) is out and out.tolist() == [2, 3]
    assert find("aten.max.dim_max") is None


def test_a_form_that_would_change_the_shape_of_its_argument_is_refused():
    x, write = graphc.ones(1, 2), find("aten.add_.Tensor")
    assert write is not None
    with pytest.raises(UnsupportedError, match="change the shape"):
        write(x, graphc.ones(3, 2))


def test_an_operator_has_one_rule():
    with pytest.raises(KeyError, match=r"aten\.add\.Tensor"):
        rule("add.Tensor")(lambda: None)
