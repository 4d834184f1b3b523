"""Ways to compute attention are hints."""

from __future__ import annotations

import pytest

import graphc
from graphc.errors import ArgumentError
from graphc.nn import functional as F
from graphc.nn.attention import SDPBackend, sdpa_kernel


@pytest.mark.parametrize("ways", [SDPBackend.MATH, [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]])
def test_attention_is_what_it_is_outside(ways):
    q = graphc.randn(1, 2, 3, 4)
    with sdpa_kernel(ways):
        inside = F.scaled_dot_product_attention(q, q, q)
    assert graphc.equal(inside, F.scaled_dot_product_attention(q, q, q))


def test_what_is_no_way_is_refused():
    for wrong in ([], ["math"]):
        with pytest.raises(ArgumentError, match="sdpa_kernel: expected SDPBackend values"), sdpa_kernel(wrong):
            pass


def test_numbers_are_those_of_pytorch():
    assert SDPBackend.MATH == 0 and SDPBackend(1) is SDPBackend.FLASH_ATTENTION
