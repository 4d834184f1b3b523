"""Buckets: gradients that are reduced together."""

from __future__ import annotations

from typing import Any

import graphc as gc
from graphc.nn.parallel.buckets import in_buckets


def parameters(*sizes: int, dtype: Any = gc.float32) -> list[tuple[str, Any]]:
    return [(f"p{i}", gc.zeros(size, dtype=dtype)) for i, size in enumerate(sizes)]


def test_the_last_parameters_come_first_and_the_first_bucket_is_small():
    found = in_buckets(parameters(1, 2, 3, 4, 5), first=16, others=28)
    assert [bucket.names for bucket in found] == [("p4",), ("p3", "p2"), ("p1", "p0")]
    assert [bucket.elements for bucket in found] == [5, 7, 3]


def test_a_parameter_larger_than_a_bucket_has_one_of_its_own():
    assert [b.names for b in in_buckets(parameters(1, 100, 1), first=4, others=8)] == [("p2",), ("p1",), ("p0",)]


def test_each_element_type_has_buckets_of_its_own():
    mixed = [*parameters(2, 2), *parameters(2, dtype=gc.float64), *parameters(1)]
    found = in_buckets(mixed, first=1000, others=1000)
    assert [(b.dtype, len(b.parameters)) for b in found] == [(gc.float32, 3), (gc.float64, 1)]
    assert in_buckets([]) == []
