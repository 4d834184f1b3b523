"""Real numbers computed from sizes, and whole ones below them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import UndecidedSize, at, is_size
from graphc.interop.onnx.real_sizes import as_real, whole_below, whole_part


@pytest.mark.parametrize(
    "function",
    [
        lambda n: as_real(n) / 2.0,
        lambda n: as_real(n) * 0.5 + 0.25,
        lambda n: (as_real(n) - 1.0) / as_real(3),
        lambda n: as_real(n) * 1.5 - 7.0,
        lambda n: -as_real(n) / -4.0,
    ],
)
def test_what_is_below_a_fraction_is_a_size_for_every_call(function: Callable[[Any], Any]):
    n = Dim("n", min=1, max=1000)
    found = whole_below(function(n))
    assert is_size(found)
    for value in (1, 2, 3, 7, 100):
        assert at(found, {dimensions([n])["n"]: value}) == math.floor(function(value))


def test_what_is_no_fraction_needs_the_number_of_a_call():
    n = Dim("n", min=1, max=1000)
    with pytest.raises(UndecidedSize):
        whole_below(as_real(n) * 0.1)


def test_numbers_are_cut_towards_zero():
    assert (whole_part(-2.5), whole_below(-2.5), whole_part(as_real(3))) == (-2, -3, 3)
    n = Dim("n", min=4, max=1000)
    assert at(whole_part(as_real(n) / 2.0 - 1.0), {dimensions([n])["n"]: 7}) == 2
