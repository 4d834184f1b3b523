"""``graphc.testing`` hands on what compares."""

from __future__ import annotations

import graphc
from graphc.tensors import closeness


def test_it_is_the_function_that_compares():
    assert graphc.testing.assert_close is closeness.assert_close
