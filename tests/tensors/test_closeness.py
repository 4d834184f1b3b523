"""``assert_close`` says what differs, and where most."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.errors import AttributeValueError
from graphc.testing import assert_close

ONES = graphc.ones(3)


def test_rounding_is_no_difference():
    assert_close(ONES, ONES + 1e-6)
    assert_close({"a": [ONES, 2.0]}, {"a": [ONES.numpy(), 2.0]})
    assert_close(graphc.tensor(float("nan")), graphc.tensor(float("nan")), equal_nan=True)
    assert_close(ONES, ONES * 1.1, rtol=0.2, atol=0)
    assert_close(ONES, ONES.double(), check_dtype=False)


@pytest.mark.parametrize(
    ("actual", "expected", "message"),
    [
        (ONES, graphc.tensor([1.0, 1.0, 1.1]), r"1 of 3 elements .* the worst is \[2\] = 1, expected 1.1"),
        (ONES, graphc.ones(2), r"shapes differ: \[3\] and \[2\]"),
        (ONES, ONES.double(), "dtypes differ: graphc.float32 and graphc.float64"),
        ([ONES, ONES], [ONES, -ONES], "item 1: 3 of 3 elements"),
        ([ONES], [ONES, ONES], "1 items and 2"),
        ({"a": 1}, {"b": 1}, r"keys differ: \['a'\] and \['b'\]"),
        (graphc.tensor([2**53, 0]), graphc.tensor([2**53 + 1, 0]), "1 of 2 elements"),
        (np.float64("nan"), np.float64("nan"), "1 of 1"),
        (graphc.tensor(1.0).bfloat16(), graphc.tensor(1.5).bfloat16(), "the worst is it = 1, expected 1.5"),
    ],
)
def test_what_differs_is_said(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


def test_a_message_of_ones_own():
    with pytest.raises(AssertionError, match=r"^step 3: 3 of 3"):
        assert_close(ONES, -ONES, msg=lambda text: f"step 3: {text}")
    with pytest.raises(AssertionError, match=r"^no$"):
        assert_close(ONES, -ONES, msg="no")


def test_strides_are_compared_where_asked():
    x = graphc.ones(2, 3)
    with pytest.raises(AssertionError, match="strides differ"):
        assert_close(x, graphc.ones(3, 2).t(), check_stride=True)


def test_tolerances_come_together():
    with pytest.raises(AttributeValueError, match="together"):
        assert_close(ONES, ONES, rtol=1.0)
