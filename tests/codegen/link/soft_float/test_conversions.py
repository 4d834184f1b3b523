"""Conversions in integers: the numbers of numpy, the limits of integers, and the nearest floats."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.codegen.link.soft_float.running import COUNT, FORMATS, assert_equal, floats, run

INTEGERS = {
    **{"si": (np.int32, "i32"), "di": (np.int64, "i64")},
    **{"unssi": (np.uint32, "i32"), "unsdi": (np.uint64, "i64")},
}


@pytest.mark.parametrize("letter", FORMATS)
@pytest.mark.parametrize("name", INTEGERS)
def test_floats_become_integers_towards_zero_within_the_limits(name: str, letter: str, tmp_path: Path):
    (dtype, kind, _), (integer, word) = FORMATS[letter], INTEGERS[name]
    info = np.iinfo(integer)
    x = np.concatenate([*floats(dtype, 1), *(dtype(2.0**n) * np.array([1, -1], dtype) for n in range(66))])
    whole = np.trunc(np.where(np.isnan(x), 0, x))
    above, below = whole >= 2.0**info.bits / (1 if info.min == 0 else 2), whole < info.min
    expected = np.where(above | below, 0, whole).astype(integer)
    expected[above | np.isnan(x)], expected[below] = info.max, info.min
    found = run(f"__fix{name.removesuffix(name[-2:])}{letter}f{name[-2:]}", [x], [kind], (integer, word), tmp_path)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("letter", FORMATS)
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_become_the_nearest_floats(name: str, letter: str, tmp_path: Path):
    (dtype, kind, _), (integer, word) = FORMATS[letter], INTEGERS[name]
    random, info = np.random.default_rng(3), np.iinfo(integer)
    bits = np.frombuffer(random.bytes(COUNT * info.bits // 8), integer) >> integer(0)
    short = bits >> random.integers(0, info.bits, COUNT).astype(integer)
    x = np.concatenate([bits, short, np.array([0, 1, info.min, info.max, info.max - 1, 2**24 + 1, 2**24 + 3], integer)])
    found = run(f"__float{name.replace('uns', 'un')}{letter}f", [x], [word], (dtype, kind), tmp_path)
    assert_equal(found, x.astype(dtype), x)


def test_formats_become_each_other(tmp_path: Path):
    single, double = floats(np.float32, 1)[0], floats(np.float64, 1)[0]
    random = np.random.default_rng(9)
    with np.errstate(all="ignore"):  # halves of the last place, also of subnormal numbers
        near = single.astype(np.float64) * (1 + random.integers(-2, 3, single.size) * 2.0**-25)
        x = np.concatenate([double, near])
        assert_equal(run("__truncdfsf2", [x], ["double"], (np.float32, "float"), tmp_path), x.astype(np.float32), x)
    (tmp_path / "more").mkdir()
    found = run("__extendsfdf2", [single], ["float"], (np.float64, "double"), tmp_path / "more")
    with np.errstate(invalid="ignore"):
        assert_equal(found, single.astype(np.float64), single)
