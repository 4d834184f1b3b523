"""Weights in blocks with a scale each, against numpy and onnxruntime, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.interop.onnx.one_node import MICROSOFT, check, floats, needs_runtime

PLAIN: dict[str, Any] = {"domain": MICROSOFT, "tolerance": 1e-4}
RNG = np.random.default_rng(3)
IDS = np.array([[0, 3, 3], [5, 1, 2]], np.int64)


def _packed(codes: np.ndarray, bits: int) -> np.ndarray:
    parts = codes.reshape(*codes.shape[:-1], -1, 8 // bits).astype(np.uint8)
    return np.sum(parts << (bits * np.arange(8 // bits)), -1).astype(np.uint8)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("has_zeros", [True, False])
def test_rows_of_codes_are_gathered_and_dequantized(bits, has_zeros):
    codes, zeros = RNG.integers(0, 1 << bits, (6, 64)), RNG.integers(0, 1 << bits, (6, 4))
    scales = floats(6, 4)
    points = np.repeat(zeros if has_zeros else np.full((6, 4), 1 << (bits - 1)), 16, -1)
    expected = ((codes - points) * np.repeat(scales, 16, -1))[IDS].astype(np.float32)
    arrays = (_packed(codes, bits), IDS, scales, *([_packed(zeros, bits)] if has_zeros else []))
    options = {"bits": bits, "block_size": 16, "constants": (0, 2, 3), "open_sizes": {1: ("b", "t")}}
    check("GatherBlockQuantized", *arrays, expected=[expected], **options, **PLAIN)


@needs_runtime
def test_rows_of_codes_are_those_of_onnxruntime():
    codes, zeros = RNG.integers(0, 256, (6, 32)).astype(np.uint8), RNG.integers(0, 256, (6, 2)).astype(np.uint8)
    options = {"block_size": 16, "constants": (0, 2, 3), "runtime": True}
    for extra in ([zeros[:, :1]], []):
        check("GatherBlockQuantized", codes[:, :16], IDS, floats(6, 2), *extra, bits=4, **options, **PLAIN)
    check("GatherBlockQuantized", codes, IDS, floats(6, 2), zeros, bits=8, **options, **PLAIN)


@pytest.mark.parametrize("transposed", [0, 1])
def test_codes_of_bitsandbytes_are_signed_fractions(transposed):
    codes = RNG.integers(0, 16, 4 * 32)
    packed = (codes[0::2] << 4 | codes[1::2]).astype(np.uint8)
    table = np.array([0, 1 / 192, 2 / 3, 1, 1 / 3, 1 / 2, 1 / 6, 1 / 4])
    absmax = np.abs(floats(8))
    weight = (np.concatenate([table, -table])[codes] * np.repeat(absmax, 16)).reshape(4, 32).astype(np.float32)
    x = floats(3, 32) if transposed else floats(3, 4)
    options = {"K": 32, "N": 4, "block_size": 16, "quant_type": 0, "transB": transposed, "constants": (1, 2)}
    expected = [x @ (weight.T if transposed else weight)]
    check("MatMulBnb4", x, packed, absmax, expected=expected, **options, **PLAIN)


@needs_runtime
@pytest.mark.parametrize("kind", [0, 1])
def test_codes_of_bitsandbytes_are_multiplied_as_by_onnxruntime(kind):
    packed = RNG.integers(0, 256, 64).astype(np.uint8)
    options = {"K": 32, "N": 4, "block_size": 16, "quant_type": kind, "constants": (1, 2), "runtime": True}
    check("MatMulBnb4", floats(2, 3, 32), packed, np.abs(floats(8)), **options, **PLAIN)
