"""Sequences: recurrent layers and attention as operators, with the weights in ONNX's order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from graphc.nn.utils.rnn import pack_padded_sequence
from tests.interop.onnx_export.runtimes import by_reference, check, onnx

gc.manual_seed(1)
X = gc.randn(5, 2, 4)
Q, K, V = gc.randn(2, 3, 5, 4), gc.randn(2, 3, 7, 4), gc.randn(2, 3, 7, 4)
SEEN = gc.rand(5, 7) > 0.5
SEEN[0] = False


@pytest.mark.parametrize(
    ("operator", "layer", "state"),
    [
        ("LSTM", nn.LSTM(4, 5, 2, bidirectional=True), None),
        ("LSTM", nn.LSTM(4, 5, batch_first=True), (gc.randn(1, 5, 5), gc.randn(1, 5, 5))),
        ("GRU", nn.GRU(4, 5, bias=False), None),
        ("GRU", nn.GRU(4, 5), gc.randn(1, 2, 5)),
        ("RNN", nn.RNN(4, 5), None),
    ],
)
def test_a_recurrent_layer_is_an_operator(tmp_path: Path, operator: str, layer: Any, state: Any):
    found = check(layer.eval(), (X,) if state is None else (X, state), tmp_path / "f.onnx")
    assert found.count(operator) == layer.num_layers * (2 if layer.bidirectional else 1)
    assert "Scan" not in found


def test_a_recurrent_layer_with_a_rectifier(tmp_path: Path):
    # The reference of onnx has no rectifier for it.
    assert "RNN" in check(nn.RNN(4, 5, nonlinearity="relu"), (X,), tmp_path / "f.onnx", reference=False)


def test_weights_of_recurrent_layers_keep_their_names(tmp_path: Path):
    check(nn.LSTM(4, 5), (X,), tmp_path / "f.onnx")
    arrays = {t.name: tuple(t.dims) for t in onnx.load(tmp_path / "f.onnx").graph.initializer}
    assert arrays["weight_ih_l0.onnx"] == (1, 20, 4) and arrays["bias_ih_l0.onnx"] == (1, 40)
    assert "weight_ih_l0" not in arrays


def test_weights_that_a_call_computes_are_put_into_order_by_it(tmp_path: Path):
    layer = nn.LSTM(4, 5)
    given = {name: p.detach() * 2 for name, p in layer.named_parameters()}

    def function(weights: Any, x: Any) -> Any:
        return gc.func.functional_call(layer, weights, x)

    assert {"LSTM", "Split"} <= set(check(function, (given, X), tmp_path / "f.onnx"))


def test_projections_and_packed_sequences_are_scans(tmp_path: Path):
    assert "Scan" in check(nn.LSTM(4, 5, proj_size=3), (X,), tmp_path / "f.onnx")
    layer = nn.GRU(4, 5)
    packed = check(lambda x: layer(pack_padded_sequence(x, [5, 3]))[1], (X,), tmp_path / "f.onnx")
    assert "Scan" in packed and "GRU" not in packed


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "without a mask": (F.scaled_dot_product_attention, (Q, K, V)),
    "causal": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (K, K, V)),
    "with a bool mask": (F.scaled_dot_product_attention, (Q, K, V, SEEN)),
    "with a mask that is added": (F.scaled_dot_product_attention, (Q, K, V, gc.randn(5, 7))),
    "with a mask for all queries": (F.scaled_dot_product_attention, (Q, K, V, gc.randn(2, 1, 1, 7))),
    "scaled": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.3), (Q, K, V)),
    "with shared heads": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        (gc.randn(2, 6, 5, 4), K, V),
    ),
    "an encoder layer": (nn.TransformerEncoderLayer(4, 2, 8).eval(), (X,)),
    "an encoder layer with padding": (
        nn.TransformerEncoderLayer(4, 2, 8, batch_first=True).eval(),
        (gc.randn(2, 5, 4), None, gc.tensor([[False] * 5, [False] * 3 + [True] * 2])),
    ),
    "a decoder layer": (nn.TransformerDecoderLayer(4, 2, 8).eval(), (X, X)),
}


@pytest.mark.parametrize("name", CASES)
def test_attention_is_an_operator_from_opset_23_on(name: str, tmp_path: Path):
    function, arguments = CASES[name]
    assert "Attention" in check(function, arguments, tmp_path / "new.onnx", 23)
    old = check(function, arguments, tmp_path / "old.onnx", 20)
    assert "Attention" not in old and "Softmax" in old


def test_a_query_that_sees_no_key_gives_zeros(tmp_path: Path):
    gc.export(F.scaled_dot_product_attention, Q, K, V, SEEN, path=tmp_path / "f.onnx", opset=23)
    (found,) = by_reference(tmp_path / "f.onnx", [t.numpy() for t in (Q, K, V, SEEN)])
    assert not found[:, :, 0].any() and found[:, :, 1:].any()


def test_attention_of_which_the_weights_are_asked_for_is_written_out(tmp_path: Path):
    layer = nn.MultiheadAttention(4, 2).eval()
    assert "Attention" not in check(layer, (X, X, X), tmp_path / "f.onnx", 23)


def test_causal_attention_to_more_keys_is_written_out(tmp_path: Path):
    def function(q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)

    assert "Attention" not in check(function, (Q, K, V), tmp_path / "f.onnx", 23)
