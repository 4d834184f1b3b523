"""Operators on sizes and numbers."""

from __future__ import annotations

import graphc
from graphc.interop.aten.table import TABLE


def test_sizes_are_those_of_the_tensor():
    x = graphc.zeros(2, 3)
    assert TABLE["aten.sym_size.int"](x, 1) == 3 and TABLE["aten.sym_numel.default"](x) == 6


def test_numbers_are_computed_as_python_does():
    assert TABLE["operator.floordiv"](7, 2) == 3 and TABLE["torch.sym_max"](2, 5) == 5
    assert TABLE["torch.sym_sum"]([2, 5, -1]) == 6
