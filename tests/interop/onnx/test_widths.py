"""Whole numbers beyond an element type are cut to its bits."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.elements import ELEMENTS
from graphc.interop.onnx.widths import narrowed

BY_NAME = {e.name: e for e in ELEMENTS}


@pytest.mark.parametrize("name", ["UINT16", "INT16", "UINT32"])
def test_what_is_left_are_the_lowest_bits(name: str):
    element = BY_NAME[name]
    assert element.carrier is not None
    x = np.array([0, 1, -1, 70000, -70000, 2**31 - 1], element.carrier.numpy)
    assert narrowed(graphc.tensor(x), element).tolist() == x.astype(element.numpy).tolist()


@pytest.mark.parametrize(("name", "wanted"), [("INT4", [7, -8, 1]), ("INT2", [-1, 0, 1])])
def test_types_of_less_than_a_byte_have_a_sign(name: str, wanted: list[int]):
    x = graphc.tensor(np.array([7, 8, -15], np.int8))
    assert narrowed(x, BY_NAME[name]).tolist() == wanted


@pytest.mark.parametrize("name", ["FLOAT", "INT64", "UINT64", "BOOL", "UINT8"])
def test_types_that_tensors_have_stay(name: str):
    element = BY_NAME[name]
    assert element.carrier is not None
    x = graphc.zeros(3, dtype=element.carrier)
    assert narrowed(x, element) is x
