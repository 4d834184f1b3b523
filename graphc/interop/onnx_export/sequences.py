"""Functional calls on sequences as ONNX operators: recurrent layers and attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, int32
from graphc.interop.onnx_export.calls import ExportedCall
from graphc.interop.onnx_export.layers import LayerRule
from graphc.interop.onnx_export.shaping import expanded
from graphc.interop.onnx_export.sizes import same
from graphc.interop.onnx_export.writer import GraphWriter
from graphc.ir.graph.graph import Value
from graphc.nn import functional as F
from graphc.nn.functional import multi_head_attention, recurrent

CallResults = Sequence[Any] | None

_KINDS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "LSTM": ("LSTM", (0, 3, 1, 2), {}),
    "GRU": ("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    "RNN_TANH": ("RNN", (0,), {"activations": ["Tanh"]}),
    "RNN_RELU": ("RNN", (0,), {"activations": ["Relu"]}),
}
"""Operator, its order of the gates, and attributes, by kind of layer."""


def _gates(w: GraphWriter, values: Sequence[Value], order: Sequence[int]) -> str:
    """Return weights (or concatenated biases) with the gates in ONNX's order and a leading dimension for the
    direction."""
    arrays = [w.known(v) for v in values]
    if all(a is not None for a in arrays):
        split_arrays = [np.split(a, len(order)) for a in arrays if a is not None]
        reordered = np.concatenate([gates[i] for gates in split_arrays for i in order])[None]
        return w.model.array(f"{w.value(values[0])}.onnx", reordered)
    gate_names = []
    for value in values:
        rows = w.add("Split", w.value(value), outputs=len(order), axis=0, num_outputs=len(order))
        rows = [rows] if isinstance(rows, str) else rows
        gate_names += [rows[i] for i in order]
    return w.add("Unsqueeze", w.add("Concat", *gate_names, axis=0), w.ints(0))


def _recurrent(w: GraphWriter, call: ExportedCall) -> CallResults:
    if call["mask"] is not None or call["weight_hr"] is not None:
        return None
    op, order, fixed = _KINDS[call["kind"]]
    state, biases = call["state"], [call["bias_ih"], call["bias_hh"]]
    hidden = call["weight_hh"].shape[1]
    inputs = [w.value(call["x"]), _gates(w, [call["weight_ih"]], order), _gates(w, [call["weight_hh"]], order)]
    bias = _gates(w, biases, order) if all(b is not None for b in biases) else ""
    first = ["" if w.is_zero(s) else w.add("Unsqueeze", w.value(s), w.ints(0)) for s in state]
    inputs += [bias, "", *first]
    while not inputs[-1]:
        inputs.pop()
    direction = "reverse" if call["reverse"] else None
    names = w.add(op, *inputs, outputs=1 + len(state), hidden_size=hidden, direction=direction, **fixed)
    return [w.add("Squeeze", name, w.ints(1 if i == 0 else 0)) for i, name in enumerate(names)]


def _attention(w: GraphWriter, call: ExportedCall) -> CallResults:
    query, key, value, mask = (call[name] for name in ("query", "key", "value", "attn_mask"))
    if not all(len(t.shape) == 4 for t in (query, key, value)) or call["dropout_p"]:
        return None
    if call["is_causal"] and not same(query.shape[-2], key.shape[-2]):  # the operator counts positions from the end
        return None
    attrs: dict[str, Any] = {"is_causal": 1 if call["is_causal"] else None}
    if call["scale"] is not None:
        attrs["scale"] = float(call["scale"])
    inputs = [w.value(v) for v in (query, key, value)]
    inputs += [] if mask is None else [_full_mask(w, mask, query.shape[-2], key.shape[-2])]
    attended = w.add("Attention", *inputs, **attrs)
    return [attended if mask is None else _without_hidden(w, attended, query, mask)]


def _full_mask(w: GraphWriter, mask: Value, queries: Any, keys: Any) -> str:
    """Expand a mask to all queries and keys: runtimes do not broadcast these dimensions."""
    return expanded(w, w.value(mask), mask.shape, (*mask.shape[:-2], queries, keys))


def _without_hidden(w: GraphWriter, attended: str, like: Value, mask: Value, squeezed: bool = False) -> str:
    """Write zeros for queries whose keys are all masked, for which the operator gives NaN."""
    mask_name, last = w.value(mask), w.ints(len(mask.shape) - 1)
    if mask.dtype is bool_:
        hidden = w.add("Not", w.cast(w.add("ReduceMax", w.cast(mask_name, int32), last, keepdims=1), bool_))
    else:
        hidden = w.add("Equal", w.add("ReduceMax", mask_name, last, keepdims=1), w.constant(-np.inf, mask.dtype))
    if squeezed:
        hidden = w.add("Squeeze", hidden, w.ints(1))
    return w.add("Where", hidden, w.constant(0, like.dtype), attended)


def _heads(w: GraphWriter, call: ExportedCall) -> CallResults:
    """Write attention of [length, batch, size] with the heads side by side in the last dimension."""
    mask, heads, query = call["mask"], call["heads"], call["q"]
    per_head = mask is not None and len(mask.shape) == 4 and not same(mask.shape[1], 1)
    if call["dropout_p"] or (len(call.used) > 1 and call.used[1]) or per_head:
        return None
    inputs = [w.transpose(w.value(call[n]), (1, 0, 2)) for n in ("q", "k", "v")]
    inputs += [] if mask is None else [_full_mask(w, mask, query.shape[0], call["k"].shape[0])]
    attended = w.add("Attention", *inputs, q_num_heads=heads, kv_num_heads=heads)
    if mask is not None and not call["need_weights"]:
        attended = _without_hidden(w, attended, query, mask, squeezed=len(mask.shape) == 4)
    return [w.transpose(attended, (1, 0, 2)), None]


ENTRIES: tuple[LayerRule, ...] = (
    LayerRule(
        *(recurrent.recurrent_layer, "LSTM, GRU, RNN", 18, _recurrent, "no packed sequence, no projection"),
        users="nn.LSTM, nn.GRU, nn.RNN",
    ),
    LayerRule(
        F.scaled_dot_product_attention,
        "Attention",
        23,
        _attention,
        "four dimensions; Where for queries that see no key",
    ),
    LayerRule(
        *(multi_head_attention.attend, "Attention", 23, _heads, "weights are not asked for; no mask per head"),
        users="nn.MultiheadAttention, layers of nn.Transformer",
    ),
)
