"""Attention and embeddings of quantized transformers, against onnxruntime and a composition, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

from tests.interop.onnx.one_node import MICROSOFT, check, floats, needs_exact_bytes, needs_runtime

BATCH, TIME, HEADS, SIZE = 2, 5, 2, 8
WIDTH = HEADS * SIZE
RNG = np.random.default_rng(5)
CODES = RNG.integers(0, 256, (BATCH, TIME, WIDTH)).astype(np.uint8)
WEIGHTS = RNG.integers(-127, 128, (WIDTH, 3 * WIDTH)).astype(np.int8)
BIAS, X_SCALE = floats(3 * WIDTH), np.float32(0.02)
COLUMN_SCALES = (RNG.random(3 * WIDTH) * 0.01).astype(np.float32)
MASK = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
ZERO, W_ZERO = np.uint8(120), np.int8(0)
OPTIONS: dict[str, Any] = {"domain": MICROSOFT, "tolerance": 2e-4}


def _inputs(scales: Any, *others: Any) -> list[Any]:
    return [CODES, WEIGHTS, BIAS, np.asarray(X_SCALE), np.asarray(scales), *others]


def test_quantized_attention_is_that_of_real_numbers():
    zeros = np.zeros(3 * WIDTH, np.int8)
    arrays = _inputs(COLUMN_SCALES, MASK, np.asarray(ZERO), zeros)
    x = (CODES.astype(np.float32) - ZERO) * X_SCALE
    parts = np.split(x @ (WEIGHTS * COLUMN_SCALES) + BIAS, 3, -1)
    q, k, v = (t.reshape(BATCH, TIME, HEADS, SIZE).swapaxes(1, 2) for t in parts)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(SIZE) + (MASK[:, None, None] - 1) * 10000.0
    raised = np.exp(scores - scores.max(-1, keepdims=True))
    expected = (raised / raised.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(BATCH, TIME, WIDTH)
    options = {"num_heads": HEADS, "constants": (1, 2, 3, 4, 6, 7), "open_sizes": {0: ("b", "t", WIDTH), 5: ("b", "t")}}
    check("QAttention", *arrays, expected=[expected], **options, **OPTIONS)


@needs_exact_bytes
@needs_runtime
@pytest.mark.parametrize("causal", [0, 1])
def test_quantized_attention_with_a_past_is_that_of_onnxruntime(causal):
    past = floats(2, BATCH, HEADS, 3, SIZE)
    arrays = _inputs(np.float32(0.01), None, np.asarray(ZERO), np.asarray(W_ZERO), past)
    options = {"num_heads": HEADS, "unidirectional": causal, "constants": (1, 2, 3, 4, 6, 7), "outputs": 2}
    check("QAttention", *arrays, runtime=True, **options, **OPTIONS)


IDS = np.array([[1, 2, 3, 0, 2], [4, 4, 1, 1, 0]], np.int32)
TABLES = [RNG.integers(0, 256, (n, WIDTH)).astype(np.uint8) for n in (9, 7, 2)]
ENDS = [RNG.integers(0, 256, WIDTH).astype(np.uint8) for _ in range(2)]
SCALES = [np.asarray(n, np.float32) for n in (0.02, 0.01, 0.03, 0.04, 0.05)]
ZEROS = [np.asarray(n, np.uint8) for n in (120, 130, 128, 100, 140)]


def _embedding(with_segments: bool) -> list[Any]:
    arrays = [IDS, IDS % 2, *TABLES, *ENDS, MASK, *SCALES, *ZEROS]
    if not with_segments:
        for i in (1, 4, 10, 15):
            arrays[i] = None
    return arrays


CONSTANTS = (2, 3, 4, 5, 6, *range(8, 18))


def _real(codes: np.ndarray, number: int) -> np.ndarray:
    return (codes.astype(np.float32) - ZEROS[number]) * SCALES[number]


def test_quantized_embeddings_are_those_of_real_numbers():
    total = _real(TABLES[0][IDS], 0) + _real(TABLES[1][:TIME], 1) + _real(TABLES[2][IDS % 2], 2)
    normal = (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-5)
    expected = [normal * _real(ENDS[0], 3) + _real(ENDS[1], 4), MASK.sum(1).astype(np.int32)]
    sizes = {0: ("b", 5), 1: ("b", 5), 7: ("b", 5)}
    options = {"outputs": 2, "epsilon": 1e-5, "constants": CONSTANTS, "open_sizes": sizes}
    check("QEmbedLayerNormalization", *_embedding(True), expected=expected, **options, **OPTIONS)


@needs_runtime
@pytest.mark.parametrize("with_segments", [True, False])
def test_quantized_embeddings_are_those_of_onnxruntime(with_segments):
    options = {"outputs": 2, "epsilon": 1e-5, "constants": CONSTANTS, "runtime": True}
    check("QEmbedLayerNormalization", *_embedding(with_segments), **options, **OPTIONS)
