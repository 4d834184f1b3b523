"""Rounding to narrow types is that of their definitions, for all numbers near their own."""

from __future__ import annotations

import math

import numpy as np
import pytest

import graphc
from graphc.interop.onnx.elements import BY_CODE, ELEMENTS
from graphc.interop.onnx.rounding import FORMATS, rounded, rounds

ml_dtypes = pytest.importorskip("ml_dtypes")
BY_NAME = {e.name: e for e in ELEMENTS}


def tricky(name: str) -> np.ndarray:
    """All numbers of a type of up to 16 bits, what lies between them, and their neighbours in f32."""
    dtype = BY_NAME[name].numpy
    bits = 8 * dtype.itemsize
    codes = np.arange(1 << bits, dtype=np.uint32).astype(f"uint{bits}")
    codes = codes[::7] if bits == 16 else codes & 15 if name == "FLOAT4E2M1" else codes
    every = np.unique(codes.view(dtype).astype(np.float32))
    every = every[np.isfinite(every)]
    middle = ((every[:-1].astype(np.float64) + every[1:]) / 2).astype(np.float32)
    ties = np.concatenate([every, middle])
    return np.concatenate([ties, np.nextafter(ties, np.float32(-np.inf)), np.nextafter(ties, np.float32(np.inf))])


@pytest.mark.parametrize("wide", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_nearest_number_is_taken_and_the_even_one_at_ties(name: str, wide: str):
    x = tricky(name).astype(wide)
    with np.errstate(all="ignore"):
        wanted = x.astype(np.float32).astype(BY_NAME[name].numpy).astype(np.float32)
        beyond = np.abs(x) > FORMATS[name].largest
    found = rounded(graphc.tensor(x), BY_NAME[name], saturate=False).numpy()
    at = ~beyond if name == "FLOAT4E2M1" else slice(None)
    np.testing.assert_array_equal(found[at], wanted[at])


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_compiled_code_rounds_alike(name: str):
    x = graphc.tensor(tricky(name))
    eager = rounded(x, BY_NAME[name])
    compiled = graphc.compile(lambda x: rounded(x, BY_NAME[name]))(x)
    np.testing.assert_array_equal(compiled.numpy(), eager.numpy())


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_infinities_and_nan(name: str):
    format = FORMATS[name]
    found = rounded(graphc.tensor([math.inf, -math.inf, math.nan]), BY_NAME[name]).numpy()
    limit = format.largest if format.saturates else format.beyond
    np.testing.assert_array_equal(found, np.array([limit, -limit, math.nan if format.has_nan else 0], np.float32))


def test_numbers_of_f64_are_rounded_once():
    x = graphc.tensor(np.array([1 + 2.0**-11 + 2.0**-40]))
    assert rounded(x, BY_NAME["FLOAT16"]).item() == 1 + 2.0**-10


def test_only_narrow_types_of_real_numbers_round():
    assert not any(rounds(BY_NAME[n]) for n in ("FLOAT", "DOUBLE", "INT4", "BOOL"))
    assert rounds(BY_CODE[10])
