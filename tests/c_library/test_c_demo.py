"""The demo of a library: sizes as expressions of C."""

from __future__ import annotations

from typing import Any

import pytest

import graphc
from graphc.base.sizes.size import positive_part
from graphc.c_library.c_demo import expression

BATCH: Any = graphc.Dim("batch", max=64)
TIME: Any = graphc.Dim("time", min=2)
NAMES = {d: f"{d.name}_size" for size in (BATCH, TIME) for monomial, _ in size.terms for d, _ in monomial}


@pytest.mark.parametrize(
    ("size", "wanted"),
    [
        (12, "12"),
        (BATCH, "batch_size"),
        (3 * BATCH + 1, "3 * batch_size + 1"),
        (BATCH * TIME, "batch_size * time_size"),
        (TIME // 2, "((time_size) / (2))"),
        ((BATCH - TIME) // BATCH, "floor_of(-1 * time_size, batch_size) + 1"),
        (positive_part(BATCH - 3), "positive_part(batch_size + -3)"),
    ],
)
def test_sizes_are_expressions_of_c(size: Any, wanted: str):
    assert expression(size, NAMES) == wanted
