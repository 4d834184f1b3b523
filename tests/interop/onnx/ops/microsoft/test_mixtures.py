"""Mixtures of experts of com.microsoft, against onnxruntime and compositions, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")

import graphc as gc
from graphc.base.errors import UnsupportedError
from tests.interop.onnx.one_node import MICROSOFT, check, floats, model_of, needs_runtime

TOKENS, HIDDEN, INNER, EXPERTS = 6, 16, 32, 4
X, ROUTER = floats(TOKENS, HIDDEN), floats(TOKENS, EXPERTS, seed=1)
FC1, FC1_BIAS = floats(EXPERTS, INNER, HIDDEN, seed=2), floats(EXPERTS, INNER, seed=3)
FC2, FC2_BIAS = floats(EXPERTS, HIDDEN, INNER, seed=4), floats(EXPERTS, HIDDEN, seed=5)
GATED, GATED_BIAS = floats(EXPERTS, 2 * INNER, HIDDEN, seed=6), floats(EXPERTS, 2 * INNER, seed=7)
PLAIN: dict[str, Any] = {"domain": MICROSOFT, "tolerance": 1e-3}
RNG = np.random.default_rng(8)


def _mixed(fc1: np.ndarray, fc2: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the results of all experts with ReLU, each times its weight [tokens, experts]."""
    inner = np.maximum(np.einsum("th,eih->eti", X, fc1) + FC1_BIAS[:, None], 0)
    return np.einsum("eti,ehi,te->th", inner, fc2, weights) + weights @ FC2_BIAS


def _best(k: int) -> np.ndarray:
    """Return 1 for the ``k`` largest scores of each token, 0 for the others."""
    return (np.argsort(np.argsort(-ROUTER, -1), -1) < k).astype(np.float32)


@pytest.mark.parametrize("normalized", [0, 1])
def test_the_most_probable_experts_are_added(normalized):
    weights = np.exp(ROUTER) / np.exp(ROUTER).sum(-1, keepdims=True) * _best(2)
    weights = weights / weights.sum(-1, keepdims=True) if normalized else weights
    options = {"k": 2, "normalize_routing_weights": normalized, "constants": (2, 3, 4, 5)}
    sizes = {0: ("t", HIDDEN), 1: ("t", EXPERTS)}
    arrays = (X, ROUTER, FC1, FC1_BIAS, FC2, FC2_BIAS)
    check("MoE", *arrays, expected=[_mixed(FC1, FC2, weights)], open_sizes=sizes, **options, **PLAIN)


@needs_runtime
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
def test_experts_have_the_activations_of_onnxruntime(activation):
    options = {"k": 2, "activation_type": activation, "constants": (2, 3, 4, 5), "runtime": True}
    check("MoE", X.reshape(2, 3, HIDDEN), ROUTER, FC1, FC1_BIAS, FC2, FC2_BIAS, **options, **PLAIN)


@needs_runtime
@pytest.mark.parametrize("limits", [{}, {"swiglu_limit": 1.0, "activation_alpha": 1.7, "activation_beta": 1.0}])
def test_gates_alternate_with_what_they_multiply(limits):
    options = {"k": 2, "activation_type": "swiglu", "swiglu_fusion": 1, "constants": (2, 3, 4, 5), "runtime": True}
    check("MoE", X, ROUTER, GATED, GATED_BIAS, FC2, FC2_BIAS, **limits, **options, **PLAIN)


def _quantized(rows: int, columns: int, bits: int, blocks: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return packed codes, their scales, and the weights."""
    codes = RNG.integers(0, 1 << bits, (EXPERTS, rows, columns))
    parts = codes.reshape(EXPERTS, rows, -1, 8 // bits)
    packed = np.sum(parts << (bits * np.arange(8 // bits)), -1).astype(np.uint8)
    scales = (RNG.random((EXPERTS, rows, blocks)) * 0.05).astype(np.float32)
    weight = (codes - (1 << (bits - 1))) * np.repeat(scales, columns // blocks, -1)
    return packed, scales if blocks > 1 else scales[..., 0], weight.astype(np.float32)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantized_experts_are_weighted_among_the_best(bits):
    (fc1, fc1_scales, first), (fc2, fc2_scales, second) = (
        _quantized(INNER, HIDDEN, bits, 1),
        _quantized(HIDDEN, INNER, bits, 1),
    )
    weights = np.exp(ROUTER) * _best(2)
    weights /= weights.sum(-1, keepdims=True)
    arrays = (X, ROUTER, fc1, fc1_scales, FC1_BIAS, fc2, fc2_scales, FC2_BIAS)
    options = {"k": 2, "expert_weight_bits": bits, "constants": (2, 3, 4, 5, 6, 7)}
    check("QMoE", *arrays, expected=[_mixed(first, second, weights)], **options, **PLAIN)


@needs_runtime
@pytest.mark.parametrize(("bits", "block"), [(4, 0), (8, 0), (4, 16)])
def test_quantized_experts_are_those_of_onnxruntime(bits, block):
    blocks = (HIDDEN // block, INNER // block) if block else (1, 1)
    (fc1, fc1_scales, _), (fc2, fc2_scales, _) = (
        _quantized(INNER, HIDDEN, bits, blocks[0]),
        _quantized(HIDDEN, INNER, bits, blocks[1]),
    )
    if block:
        fc1_scales = fc1_scales.reshape(EXPERTS, INNER, -1)
    arrays = (X, ROUTER, fc1, fc1_scales, FC1_BIAS, fc2, fc2_scales, FC2_BIAS)
    options = {"k": 2, "expert_weight_bits": bits, "constants": (2, 3, 4, 5, 6, 7), "runtime": True}
    check("QMoE", *arrays, **options, **({"block_size": block} if block else {}), **PLAIN)


@needs_runtime
def test_quantized_experts_have_zero_points_and_weights_of_their_own():
    fc1, fc1_scales, _ = _quantized(INNER, HIDDEN, 4, 1)
    fc2, fc2_scales, _ = _quantized(HIDDEN, INNER, 4, 1)
    zeros = [RNG.integers(0, 256, (EXPERTS, n // 2)).astype(np.uint8) for n in (INNER, HIDDEN)]
    weights = np.abs(floats(TOKENS, EXPERTS, seed=9))
    arrays = [X, ROUTER, fc1, fc1_scales, None, fc2, fc2_scales, None, None, None, None, *zeros, None]
    options = {"k": 2, "constants": (2, 3, 5, 6, 11, 12), "runtime": True}
    check("QMoE", *arrays, **options, **PLAIN)
    for normalized in (0, 1):
        check("QMoE", *arrays, weights, normalize_routing_weights=normalized, **options, **PLAIN)


def test_other_weights_and_activations_are_refused():
    arrays = (X, ROUTER, FC1, FC1_BIAS, FC2, FC2_BIAS)
    with pytest.raises(UnsupportedError, match="activation 'odd'"):
        gc.from_onnx(model_of("MoE", arrays, activation_type="odd", domain=MICROSOFT))(*arrays)
    with pytest.raises(UnsupportedError, match="use_sparse_mixer"):
        gc.from_onnx(model_of("MoE", arrays, use_sparse_mixer=1, domain=MICROSOFT))(*arrays)
