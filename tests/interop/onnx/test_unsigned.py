"""Numbers of 64 bits without a sign, held by their bits."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.interop.onnx import unsigned

TOP = 2**64 - 1
NUMBERS = [0, 1, 2, 3, 7, 10**9, 2**62, 2**63 - 1, 2**63, 2**63 + 1, TOP // 3, TOP - 1, TOP]


def held(numbers: list[int]) -> graphc.Tensor:
    return graphc.tensor(np.array(numbers, np.uint64).view(np.int64))


def given(x: graphc.Tensor) -> list[int]:
    return x.numpy().view(np.uint64).tolist()


def test_quotients_of_all_pairs():
    pairs = [(a, b) for a in NUMBERS for b in NUMBERS if b]
    a, b = (held(list(side)) for side in zip(*pairs, strict=True))
    wanted = [x // y for x, y in pairs]
    assert given(unsigned.quotient(a, b)) == wanted
    assert given(graphc.compile(unsigned.quotient)(a, b)) == wanted


def test_the_order_is_that_of_the_numbers():
    x = unsigned.ordered(held(NUMBERS)).numpy()
    assert (np.diff(x[np.argsort(NUMBERS)]) > 0).all()


@pytest.mark.parametrize("count", [0, 1, 31, 63, 64, 100])
def test_zeros_are_shifted_in(count: int):
    assert given(unsigned.shifted_right(held(NUMBERS), held([count]))) == [n >> count for n in NUMBERS]


def test_real_numbers_and_back():
    x = held([0, 5, 2**63, 2**64 - 2048])
    assert unsigned.as_real(x, graphc.float64).tolist() == [0, 5, 2.0**63, 2.0**64 - 2048]
    assert given(unsigned.of_real(unsigned.as_real(x, graphc.float64))) == [0, 5, 2**63, 2**64 - 2048]
