"""Operators of com.microsoft, against onnxruntime and compositions, eagerly and compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

import graphc as gc  # noqa: E402
from graphc.base.errors import UnsupportedError  # noqa: E402
from tests.interop.onnx.one_node import MICROSOFT, check, floats, model_of, needs_runtime  # noqa: E402

X, SKIP, BIAS = floats(2, 5, 32), floats(2, 5, 32, seed=3), floats(32, seed=4)
GAMMA, BETA = floats(32, seed=1), floats(32, seed=2)
IDS = np.array([[1, 2, 3, 0, 2], [4, 4, 1, 1, 0]], np.int32)
MASK = np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)
TABLES = (floats(9, 32), floats(7, 32, seed=8), floats(2, 32, seed=9))
WIDE = floats(32, 32, seed=6) * 0.2
IMAGE, WEIGHT = floats(2, 4, 9, 8), floats(6, 4, 3, 3) * 0.3
RUNTIME = {"domain": MICROSOFT, "runtime": True, "tolerance": 2e-4}


def _layer_norm(x: np.ndarray) -> np.ndarray:
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5) * GAMMA + BETA


def _rms_norm(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5) * GAMMA


@pytest.mark.parametrize("domain", ["", MICROSOFT])
def test_the_root_mean_square_is_known_by_an_older_name(domain):
    inverse = 1 / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-5)
    options = {"domain": domain, "outputs": 2, "tolerance": 1e-4, "open_sizes": {0: ("b", "t", 32)}}
    check("SimplifiedLayerNormalization", X, GAMMA, expected=[_rms_norm(X), inverse], **options)


def test_a_layer_normalization_of_this_domain_is_that_of_onnx():
    check("LayerNormalization", X, GAMMA, BETA, domain=MICROSOFT, expected=[_layer_norm(X)], tolerance=1e-4)


def test_a_layer_normalization_may_be_in_a_model_of_an_older_version():
    check("LayerNormalization", X, GAMMA, BETA, opset=12, expected=[_layer_norm(X)], tolerance=1e-4)


def test_a_sum_is_normalized_and_given_as_well():
    total = X + SKIP + BIAS
    options = {"outputs": ["y", "", "", "s"], "epsilon": 1e-5, "domain": MICROSOFT, "tolerance": 1e-4}
    check("SkipLayerNormalization", X, SKIP, GAMMA, BETA, BIAS, expected=[_layer_norm(total), total], **options)
    check("SkipSimplifiedLayerNormalization", X, SKIP, GAMMA, BIAS, expected=[_rms_norm(total), total], **options)


def test_the_statistics_of_a_sum_are_results():
    total = X + SKIP
    statistics = [total.mean(-1, keepdims=True), 1 / np.sqrt(total.var(-1, keepdims=True) + 1e-5)]
    options = {"outputs": 4, "epsilon": 1e-5, "domain": MICROSOFT, "tolerance": 1e-4}
    check("SkipLayerNormalization", X, SKIP, GAMMA, BETA, expected=[_layer_norm(total), *statistics, total], **options)


@needs_runtime
def test_a_sum_is_normalized_as_by_onnxruntime():
    options = {"outputs": ["y", "", "", "s"], "epsilon": 1e-5}
    check("SkipLayerNormalization", X, SKIP, GAMMA, BETA, BIAS, **options, **RUNTIME)
    check("SkipSimplifiedLayerNormalization", X, SKIP, GAMMA, BIAS, **options, **RUNTIME)


@needs_runtime
def test_embeddings_are_added_and_normalized():
    options = {"epsilon": 1e-5, "constants": (2, 3, 4, 5, 6), **RUNTIME}
    segments = (IDS > 2).astype(np.int32)
    check("EmbedLayerNormalization", IDS, segments, *TABLES, GAMMA, BETA, MASK, outputs=3, **options)
    check("EmbedLayerNormalization", IDS, None, *TABLES[:2], None, GAMMA, BETA, outputs=2, **options)


def test_embeddings_are_those_of_words_and_positions():
    total = TABLES[0][IDS] + TABLES[1][None, :5]
    options = {"epsilon": 1e-5, "domain": MICROSOFT, "tolerance": 1e-4, "open_sizes": {0: ("b", 5)}}
    options["constants"] = (2, 3, 5, 6)
    arrays = (IDS, None, *TABLES[:2], None, GAMMA, BETA)
    check("EmbedLayerNormalization", *arrays, expected=[_layer_norm(total)], **options)


@needs_runtime
@pytest.mark.parametrize(
    ("activation", "numbers"), [("LeakyRelu", [0.2]), ("Clip", [-1.0, 0.5]), ("Relu", []), ("HardSigmoid", [0.3, 0.4])]
)
def test_a_convolution_has_an_activation(activation, numbers):
    options = {"activation": activation, "constants": (1, 2), **({"activation_params": numbers} if numbers else {})}
    check("FusedConv", IMAGE, WEIGHT, floats(6), floats(2, 6, 7, 6, seed=5), **options, **RUNTIME)


def test_a_convolution_with_a_sum_is_one_of_plain_operators():
    extra = floats(2, 6, 7, 6, seed=5)
    plain = check("Conv", IMAGE, WEIGHT, constants=(1,), tolerance=1e-4)[0]
    options = {"activation": "Relu", "constants": (1,), "domain": MICROSOFT, "tolerance": 1e-4}
    check("FusedConv", IMAGE, WEIGHT, None, extra, expected=[np.maximum(plain + extra, 0)], **options)


@pytest.mark.parametrize("name", ["NhwcConv", "NhwcFusedConv"])
def test_a_convolution_may_have_its_channels_last(name):
    plain = check("Conv", IMAGE, WEIGHT, floats(6), constants=(1,), tolerance=1e-4)[0]
    image = np.moveaxis(IMAGE, 1, -1).copy()
    options: dict[str, Any] = {"constants": (1,), "domain": MICROSOFT, "tolerance": 1e-4}
    check(name, image, WEIGHT, floats(6), expected=[np.moveaxis(plain, 1, -1)], **options)


def test_a_gate_is_half_of_its_tensor_or_another():
    gate, up = np.minimum(X, 1), np.clip(SKIP, -1, 1)
    expected = gate / (1 + np.exp(-1.7 * gate)) * (up + 0.5)
    options: dict[str, Any] = {"activation_alpha": 1.7, "activation_beta": 0.5, "limit": 1.0, "domain": MICROSOFT}
    check("SwiGLU", X, SKIP, expected=[expected], **options)
    check("SwiGLU", np.concatenate([X, SKIP], -1), expected=[expected], **options)


def test_a_product_has_an_activation():
    product = X @ WIDE + BETA
    expected = product * 0.5 * (1 + np.tanh(np.sqrt(2 / np.pi) * (product + 0.044715 * product**3)))
    check("GemmFastGelu", X, WIDE, BETA, expected=[expected], domain=MICROSOFT, tolerance=1e-4)


@pytest.mark.parametrize("both", [0, 1])
def test_distances_have_a_bias_of_their_bucket(both):
    table, lengths = floats(8, 3), [np.array(n) for n in (5, 40)]
    bias = np.zeros((1, 3, 5, 40), np.float32)
    for query in range(5):
        for key in range(40):
            count = 4 if both else 8
            steps = abs(key - query) if both else max(query - key, 0)
            if steps >= count // 2:
                ratio = np.log(steps / (count // 2)) / np.log(16 / (count // 2))
                steps = min(count // 2 + int(ratio * (count - count // 2)), count - 1)
            bias[0, :, query, key] = table.reshape(3, 8)[:, steps + (count if both and key > query else 0)]
    options: dict[str, Any] = {"max_distance": 16, "is_bidirectional": both, "constants": (1, 2)}
    check("RelativePositionBias", table, *lengths, expected=[bias], domain=MICROSOFT, **options)


def test_an_unknown_activation_is_an_error():
    module = gc.from_onnx(model_of("FusedConv", (IMAGE, WEIGHT), activation="Odd", domain=MICROSOFT))
    with pytest.raises(UnsupportedError, match="Odd"):
        module(IMAGE, WEIGHT)


def test_three_are_added():
    check("BiasAdd", X, BETA, SKIP, domain=MICROSOFT, expected=[X + BETA + SKIP])


@pytest.mark.parametrize("activation", [0, 1])
def test_groups_of_channels_that_stand_last_are_normalized(activation):
    x, gamma, beta = floats(2, 6, 5, 8), floats(8, seed=1), floats(8, seed=2)
    skip, bias = floats(2, 8, seed=3), floats(8, seed=5)
    options = {"groups": 4, "activation": activation, "domain": MICROSOFT, "tolerance": 1e-4}
    check("GroupNorm", x, gamma, beta, expected=[_grouped(x, gamma, beta, activation)], **options)
    total = x + skip[:, None, None] + bias
    expected = [_grouped(total, gamma, beta, activation), total]
    check("SkipGroupNorm", x, gamma, beta, skip, bias, outputs=2, expected=expected, **options)


def _grouped(x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, activation: int) -> np.ndarray:
    parts = x.reshape(2, 30, 4, 2)
    mean, var = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    found = ((parts - mean) / np.sqrt(var + 1e-5)).reshape(x.shape) * gamma + beta
    return found / (1 + np.exp(-found)) if activation else found


def test_results_have_the_element_type_of_the_first_input():
    x = X.astype(np.float16)
    model = model_of("BiasAdd", (x, BETA.astype(np.float16), x), domain=MICROSOFT)
    (found,) = gc.from_onnx(model).run((x, BETA.astype(np.float16), x), {})
    assert found.array.dtype == np.float16
