"""Functional calls on sequences as ONNX's operators: recurrent layers and attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, int32
from graphc.interop.onnx_export.calls import Call
from graphc.interop.onnx_export.layers import Entry
from graphc.interop.onnx_export.shaping import expanded
from graphc.interop.onnx_export.sizes import same
from graphc.interop.onnx_export.writer import Writer
from graphc.ir.graph.graph import Value
from graphc.nn import functional as F
from graphc.nn.functional import multi_head_attention, recurrent

Found = Sequence[Any] | None

_KINDS: dict[str, tuple[str, tuple[int, ...], dict[str, Any]]] = {
    "LSTM": ("LSTM", (0, 3, 1, 2), {}),
    "GRU": ("GRU", (1, 0, 2), {"linear_before_reset": 1}),
    "RNN_TANH": ("RNN", (0,), {"activations": ["Tanh"]}),
    "RNN_RELU": ("RNN", (0,), {"activations": ["Relu"]}),
}
"""Operator, its order of the gates, and attributes, by kind of layer."""


def _gates(w: Writer, values: Sequence[Value], order: Sequence[int]) -> str:
    """Weights (or biases, one behind the other) with the gates in ONNX's order, and a dimension for the direction."""
    arrays = [w.known(v) for v in values]
    if all(a is not None for a in arrays):
        parts = [np.split(a, len(order)) for a in arrays if a is not None]
        whole = np.concatenate([part[i] for part in parts for i in order])[None]
        return w.model.array(f"{w.value(values[0])}.onnx", whole)
    parts = []
    for value in values:
        rows = w.add("Split", w.value(value), outputs=len(order), axis=0, num_outputs=len(order))
        rows = [rows] if isinstance(rows, str) else rows
        parts += [rows[i] for i in order]
    return w.add("Unsqueeze", w.add("Concat", *parts, axis=0), w.ints(0))


def _recurrent(w: Writer, call: Call) -> Found:
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
    given = w.add(op, *inputs, outputs=1 + len(state), hidden_size=hidden, direction=direction, **fixed)
    return [w.add("Squeeze", name, w.ints(1 if i == 0 else 0)) for i, name in enumerate(given)]


def _attention(w: Writer, call: Call) -> Found:
    query, key, value, mask = (call[name] for name in ("query", "key", "value", "attn_mask"))
    if not all(len(t.shape) == 4 for t in (query, key, value)) or call["dropout_p"]:
        return None
    if call["is_causal"] and not same(query.shape[-2], key.shape[-2]):  # the operator counts positions from the end
        return None
    attrs: dict[str, Any] = {"is_causal": 1 if call["is_causal"] else None}
    if call["scale"] is not None:
        attrs["scale"] = float(call["scale"])
    inputs = [w.value(v) for v in (query, key, value)]
    inputs += [] if mask is None else [_whole(w, mask, query.shape[-2], key.shape[-2])]
    found = w.add("Attention", *inputs, **attrs)
    return [found if mask is None else _without_hidden(w, found, query, mask)]


def _whole(w: Writer, mask: Value, queries: Any, keys: Any) -> str:
    """A mask for each query and key: in these dimensions runtimes broadcast none."""
    return expanded(w, w.value(mask), mask.shape, (*mask.shape[:-2], queries, keys))


def _without_hidden(w: Writer, found: str, like: Value, mask: Value, squeezed: bool = False) -> str:
    """Zeros for queries from which a mask hides all keys, for which the operator gives NaN."""
    given, last = w.value(mask), w.ints(len(mask.shape) - 1)
    if mask.dtype is bool_:
        hidden = w.add("Not", w.cast(w.add("ReduceMax", w.cast(given, int32), last, keepdims=1), bool_))
    else:
        hidden = w.add("Equal", w.add("ReduceMax", given, last, keepdims=1), w.constant(-np.inf, mask.dtype))
    if squeezed:
        hidden = w.add("Squeeze", hidden, w.ints(1))
    return w.add("Where", hidden, w.constant(0, like.dtype), found)


def _heads(w: Writer, call: Call) -> Found:
    """Attention of [length, batch, size], whose heads lie side by side."""
    mask, heads, query = call["mask"], call["heads"], call["q"]
    per_head = mask is not None and len(mask.shape) == 4 and not same(mask.shape[1], 1)
    if call["dropout_p"] or (len(call.used) > 1 and call.used[1]) or per_head:
        return None
    inputs = [w.transpose(w.value(call[n]), (1, 0, 2)) for n in ("q", "k", "v")]
    inputs += [] if mask is None else [_whole(w, mask, query.shape[0], call["k"].shape[0])]
    found = w.add("Attention", *inputs, q_num_heads=heads, kv_num_heads=heads)
    if mask is not None and not call["need_weights"]:
        found = _without_hidden(w, found, query, mask, squeezed=len(mask.shape) == 4)
    return [w.transpose(found, (1, 0, 2)), None]


ENTRIES: tuple[Entry, ...] = (
    Entry(
        *(recurrent.recurrent_layer, "LSTM, GRU, RNN", 18, _recurrent, "no packed sequence, no projection"),
        users="nn.LSTM, nn.GRU, nn.RNN",
    ),
    Entry(
        F.scaled_dot_product_attention,
        "Attention",
        23,
        _attention,
        "four dimensions; Where for queries that see no key",
    ),
    Entry(
        *(multi_head_attention.attend, "Attention", 23, _heads, "weights are not asked for; no mask per head"),
        users="nn.MultiheadAttention, layers of nn.Transformer",
    ),
)
