"""Products, rows and elements of weights that stay codes."""

from __future__ import annotations

import numpy as np
import pytest

import graphc as gc
from graphc.llm.block_layers import BlockLinear, BlockTable, BlockWeight
from graphc.llm.blocks import FORMATS, BlockFormat, dequantize
from graphc.llm.gguf_file import GgufTensor
from tools.gguf_files import random_blocks

QUANTIZED = [kind for kind in FORMATS.values() if kind.unpack is not None]


def weight_of(kind: BlockFormat, rows: int = 40) -> tuple[BlockWeight, np.ndarray]:
    blocks = random_blocks(kind.name, rows, 512)
    return BlockWeight.of(GgufTensor(kind, blocks)), dequantize(kind, blocks)


@pytest.mark.parametrize("rows", [40, 128])
@pytest.mark.parametrize("kind", QUANTIZED, ids=lambda kind: kind.name)
def test_layers_compute_with_the_elements_of_the_file(kind: BlockFormat, rows: int):
    """40 rows are one panel, 128 are two."""
    weight, elements = weight_of(kind, rows)
    linear, table = BlockLinear(weight).eval(), BlockTable(weight).eval()
    assert weight.shape == elements.shape
    np.testing.assert_array_equal(weight.dense().numpy(), elements)
    np.testing.assert_array_equal(table(gc.tensor([[3, 39], [0, 3]])).numpy(), elements[[[3, 39], [0, 3]]])
    x = np.random.default_rng(1).standard_normal((3, 512)).astype(np.float32)
    expected = x.astype(np.float64) @ elements.T
    limit = 1e-5 * np.abs(expected).max()
    with gc.no_grad():
        for result in (linear(gc.tensor(x)), gc.compile(linear)(gc.tensor(x)), gc.compile(table.project)(gc.tensor(x))):
            np.testing.assert_allclose(result.numpy(), expected, atol=limit)


def test_stored_codes_have_the_size_of_the_file():
    for name, bits in (("Q4_0", 4.5), ("Q8_0", 8.5)):
        weight, _ = weight_of(next(kind for kind in QUANTIZED if kind.name == name))
        stored = sum(b.numpy().nbytes for b in weight.buffers())
        assert stored * 8 == bits * 40 * 512, name


def test_gradients_reach_the_input_in_training_mode():
    weight, elements = weight_of(QUANTIZED[0])
    x = gc.ones(2, 512, requires_grad=True)
    BlockLinear(weight).train()(x).sum().backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.numpy()[0], elements.sum(0), atol=1e-5)
