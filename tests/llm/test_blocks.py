"""Elements of every block format equal those of the package ``gguf``, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.llm.blocks import FORMATS, BlockFormat, dequantize, unpack
from tools.gguf_files import random_blocks

QUANTIZED = [kind for kind in FORMATS.values() if kind.unpack is not None]


@pytest.mark.parametrize("kind", FORMATS.values(), ids=lambda kind: kind.name)
def test_elements_are_those_of_gguf(kind: BlockFormat):
    gguf = pytest.importorskip("gguf", reason="compares with gguf")
    blocks = random_blocks(kind.name, 7, 768)
    number = gguf.GGMLQuantizationType[kind.name]
    expected = gguf.quants.dequantize(blocks.view(np.uint8).reshape(7, -1), number)
    ours = dequantize(kind, blocks)
    assert ours.dtype == np.float32 and ours.shape == (7, 768)
    assert np.abs(expected).max() > 0
    # NOTE: codes of 4 bits are centered here, so an offset is rounded once more.
    limit = 2.0**-20 * np.abs(expected).max() if kind.name in ("Q4_1", "Q4_K") else 0.0
    np.testing.assert_allclose(ours, expected, rtol=0, atol=limit)
    assert (kind.size, kind.bytes) == gguf.GGML_QUANT_SIZES[number]


@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
def test_codes_fit_their_bits(kind: BlockFormat):
    codes, scales, offsets = unpack(kind, random_blocks(kind.name, 7, 768))
    limit = 1 << (kind.bits - 1)
    assert codes.dtype == np.int8 and codes.min() >= -limit and codes.max() < limit
    assert scales.shape[0] == 7 and 768 % scales.shape[1] == 0
    assert offsets is None or offsets.shape == scales.shape
