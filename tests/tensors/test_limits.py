"""Limits of element types."""

from __future__ import annotations

import numpy as np
import pytest

import graphc
from graphc.base.dtypes import bfloat16, float16
from graphc.errors import DTypeError


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_floating_point(name):
    found, wanted = graphc.finfo(getattr(graphc, name)), np.finfo(name)
    for key in ("bits", "eps", "max", "min", "tiny", "smallest_normal"):
        assert getattr(found, key) == getattr(wanted, key)
    assert found.dtype == name and found.resolution == pytest.approx(float(wanted.resolution))


@pytest.mark.parametrize("name", ["int8", "uint8", "int32", "int64"])
def test_whole_numbers(name):
    found, wanted = graphc.iinfo(getattr(graphc, name)), np.iinfo(name)
    assert (found.bits, found.min, found.max, found.dtype) == (wanted.bits, wanted.min, wanted.max, name)


def test_the_default_type_and_the_text():
    assert graphc.finfo().dtype == "float32"
    assert repr(graphc.finfo(graphc.float32)).startswith("finfo(resolution=1e-06, min=-3.40282e+38, max=3.40282e+38")
    assert repr(graphc.iinfo(graphc.int8)) == "iinfo(min=-128, max=127, dtype=int8)"


def test_halves():
    half, short = graphc.finfo(float16), graphc.finfo(bfloat16)
    assert half.max == 65504 and half.bits == short.bits == 16
    assert short.eps == 0.0078125 and short.max == pytest.approx(3.38953139e38) and short.tiny == 2.0**-126


def test_other_kinds_are_refused():
    with pytest.raises(DTypeError, match=r"graphc\.iinfo"):
        graphc.finfo(graphc.int32)
    with pytest.raises(DTypeError, match=r"graphc\.finfo"):
        graphc.iinfo(graphc.float32)
