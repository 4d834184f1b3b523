"""Rotary embeddings, against ONNX's evaluator, eagerly and compiled."""

from __future__ import annotations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from graphc.interop.onnx.ops.microsoft.rotary import rotated  # noqa: E402
from tests.interop.onnx.one_node import check, floats  # noqa: E402

ANGLES = np.outer(np.arange(9), 1 / 10 ** np.arange(4)).astype(np.float32)
PLACES = np.array([[0, 1, 2, 3, 4], [4, 8, 2, 1, 0]], np.int64)


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("size", [0, 4])
def test_pairs_are_turned_by_the_angles_of_their_positions(interleaved, size):
    angles = ANGLES[:, : (size or 8) // 2]
    arrays = (floats(2, 3, 5, 8), np.cos(angles), np.sin(angles), PLACES)
    options = {"interleaved": interleaved, "rotary_embedding_dim": size, "opset": 23, "constants": (1, 2)}
    check("RotaryEmbedding", *arrays, open_sizes={0: ("b", 3, "t", 8), 3: ("b", "t")}, **options)


def test_without_positions_each_step_has_its_angles():
    angles = ANGLES[PLACES]
    arrays = (floats(2, 5, 24), np.cos(angles), np.sin(angles))
    check("RotaryEmbedding", *arrays, num_heads=3, opset=23)


@pytest.mark.parametrize("interleaved", [False, True])
def test_lengths_stay(interleaved):
    x = gc.tensor(floats(1, 2, 9, 8))
    cos, sin = (gc.tensor(f(ANGLES)).reshape(1, 1, 9, 4) for f in (np.cos, np.sin))
    found = rotated(x, cos, sin, interleaved)
    np.testing.assert_allclose(found.norm(dim=-1).numpy(), x.norm(dim=-1).numpy(), rtol=1e-5)
