"""Quotients of 64-bit integers: those of numpy, towards zero."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.codegen.link.soft_float.running import COUNT, run


@pytest.mark.parametrize("name", ["div", "mod", "udiv", "umod"])
def test_quotients_of_64_bits(name: str, tmp_path: Path):
    integer, random = (np.uint64 if name.startswith("u") else np.int64), np.random.default_rng(4)
    x, y = (
        np.frombuffer(random.bytes(8 * COUNT), integer) >> random.integers(0, 64, COUNT).astype(integer)
        for _ in range(2)
    )
    x[:4], y[:4] = np.iinfo(integer).max, [1, 2, 3, np.iinfo(integer).max]
    y = np.where(y == 0, integer(7), y)
    with np.errstate(all="ignore"):
        quotient = (np.abs(x) // np.abs(y)) * np.sign(x) * np.sign(y) if integer is np.int64 else x // y
        expected = quotient if "div" in name else x - quotient * y
    np.testing.assert_array_equal(run(f"__{name}di3", [x, y], ["i64"] * 2, (integer, "i64"), tmp_path), expected)
