"""ONNX's operators of attention, and the caches of keys and values that they read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from graphc.base.dtypes import float32, float64
from graphc.base.errors import AttributeValueError
from graphc.base.sizes.size import always, root
from graphc.interop.onnx.elements import element_of_code
from graphc.interop.onnx.ops.windows import padded
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.nn.functional.attention import share_heads
from graphc.nn.functional.recurrent import scan
from graphc.ops import convolution, index
from graphc.tensors import composite
from graphc.tensors.free_functions import cat, matmul
from graphc.tensors.tensor import Tensor

_SCORES, _CAPPED, _BIASED, _WEIGHTS = range(4)
"""What ``qk_matmul_output`` may be."""


@dataclass(frozen=True, slots=True)
class Scoring:
    """From products of queries and keys to weights of values."""

    scale: Any = None
    """1 / sqrt(E) when None."""
    softcap: float = 0.0
    keep: Tensor | None = None
    """Which keys a query sees."""
    bias: Tensor | None = None
    """What is added."""
    causal: bool = False
    """Whether position i is kept from those after i, beside what ``keep`` says."""
    shown: int | None = None
    """Which step on the way is asked for."""
    precision: Any = None
    """The type in which weights are computed, where that is another one."""
    sink: Tensor | None = None
    """[heads, 1, 1]: a score beside those of the keys, of which no value is taken."""

    @property
    def is_plain(self) -> bool:
        """Whether ``scaled_dot_product_attention`` does all of it."""
        masks = (self.keep is not None) + (self.bias is not None) + self.causal
        rest = self.shown is None and self.precision is None and self.sink is None
        return not self.softcap and rest and masks < 2


def attend(q: Tensor, k: Tensor, v: Tensor, how: Scoring) -> tuple[Tensor, Tensor | None]:
    """Weighted values [batch, heads, L, F] for queries [batch, heads, L, E], keys and values of as many heads or of
    fewer that are shared; and what ``how`` asks to be shown."""
    shared = q.shape[-3] != k.shape[-3]
    if how.is_plain:
        mask = how.keep if how.keep is not None else how.bias
        result = F.scaled_dot_product_attention(q, k, v, mask, 0.0, how.causal, how.scale, shared)
        return result, None
    if shared:
        k, v = share_heads(q, k), share_heads(q, v)
    factor = 1.0 / root(q.shape[-1]) if how.scale is None else how.scale
    scores = matmul(q, k.transpose(-1, -2)) * factor
    shown = scores
    if how.softcap:
        scores = (scores / how.softcap).tanh() * how.softcap
    shown = scores if how.shown == _CAPPED else shown
    keep = _both(how.keep, causal_mask(q.shape[-2], k.shape[-2]) if how.causal else None)
    if how.bias is not None:
        keep = _both(keep, how.bias > -math.inf)
        scores = scores + how.bias
    scores = scores if keep is None else scores.where(keep, -math.inf)
    shown = scores if how.shown == _BIASED else shown
    weights = _weights(scores if how.precision is None else scores.to(how.precision), how.sink)
    weights = weights if weights.dtype is v.dtype else weights.to(v.dtype)
    return matmul(weights, v), weights if how.shown == _WEIGHTS else shown


def _weights(scores: Tensor, sink: Tensor | None) -> Tensor:
    if sink is None:
        return composite.masked_softmax(scores, -1)
    beside = sink.broadcast_to(*scores.shape[:-1], 1)
    return composite.masked_softmax(cat([scores, beside], -1), -1)[..., :-1]


def _both(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a & b


def causal_mask(queries: Any, keys: Any, offset: Any = 0, left: int = -1, right: int = 0) -> Tensor:
    """[queries, keys], or [batch, 1, queries, keys] for an offset [batch, 1, 1, 1]: whether key j is one that query i
    at position i + ``offset`` sees: from ``left`` before it to ``right`` after it; -1 is any number."""
    shape = (queries, keys)
    distance = index.iota(shape=shape, axis=0) + offset - index.iota(shape=shape, axis=1)
    low = distance >= -right if right >= 0 else None
    high = distance <= left if left >= 0 else None
    found = _both(low, high)
    assert found is not None
    return found


@op("Attention", since=23)
def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    nonpad_kv_seqlen: Tensor | None = None,
    *,
    call: Any,
    is_causal: int = 0,
    kv_num_heads: int | None = None,
    left_window_size: int = -1,
    q_num_heads: int | None = None,
    qk_matmul_output_mode: int = 0,
    right_window_size: int = -1,
    scale: float | None = None,
    softcap: float = 0.0,
    softmax_precision: int | None = None,
) -> Any:
    """Scaled dot-product attention, of several heads that stand beside each other in the last dimension of tensors of
    rank 3; ``past_key`` and ``past_value`` stand before keys and values."""
    flat = len(q.shape) == 3
    if flat:
        q, k, v = heads_apart(q, q_num_heads), heads_apart(k, kv_num_heads), heads_apart(v, kv_num_heads)
    offset: Any = 0
    if past_key is not None and past_value is not None:
        offset = past_key.shape[2]
        k, v = cat([past_key, k], 2), cat([past_value, v], 2)
    elif nonpad_kv_seqlen is not None:
        offset = nonpad_kv_seqlen.reshape(-1, 1, 1, 1) - q.shape[2]
    right = _narrower(right_window_size, 0) if is_causal else right_window_size
    keep, causal = None, False
    if type(offset) is int and offset == 0 and left_window_size < 0 and right == 0:
        causal = True
    elif past_key is not None and always("==", q.shape[2], 1) and left_window_size < 0 and right == 0:
        pass  # One query behind all keys sees all of them.
    elif left_window_size >= 0 or right >= 0:
        keep = causal_mask(q.shape[2], k.shape[2], offset, left_window_size, right)
    if nonpad_kv_seqlen is not None:
        there = index.iota(shape=(1, 1, 1, k.shape[2]), axis=3) < nonpad_kv_seqlen.reshape(-1, 1, 1, 1)
        keep = _both(keep, there)
    bias = None
    if attn_mask is not None:
        mask = _as_long(attn_mask, k.shape[2])
        keep, bias = (_both(keep, mask), None) if mask.dtype.kind == "b" else (keep, mask)
    how = Scoring(scale, softcap, keep, bias, causal, *_asked(call, qk_matmul_output_mode, softmax_precision, q))
    result, shown = attend(q, k, v, how)
    result = heads_together(result) if flat else result
    return (result, k, v, shown)[: call.outputs] if call.outputs > 1 else result


def _narrower(bound: int, other: int) -> int:
    return other if bound < 0 else min(bound, other)


def _asked(call: Any, mode: int, precision: int | None, q: Tensor) -> tuple[int | None, Any]:
    """What is to be shown, and the type of weights where it is not that of the query."""
    shown = mode if call.outputs > 3 and call.node.outputs[3] else None
    if shown is not None and not 0 <= shown <= _WEIGHTS:
        raise AttributeValueError(f"Attention: qk_matmul_output_mode {mode} is none of 0 to 3")
    wide = None if precision is None else element_of_code(precision).carrier
    return shown, wide if wide is float64 and q.dtype is float32 else None


def _as_long(mask: Tensor, keys: Any) -> Tensor:
    """A mask with all keys in its last dimension, of which it may lack those behind."""
    missing = keys - mask.shape[-1]
    if type(missing) is int and missing == 0:
        return mask
    return padded(mask, ((0, missing),), False if mask.dtype.kind == "b" else -math.inf)


def heads_apart(x: Tensor, heads: int | None) -> Tensor:
    """[batch, time, heads * size] as [batch, heads, time, size]."""
    if not heads:
        raise AttributeValueError("attention over tensors of rank 3 needs the number of heads")
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(1, 2)


def heads_together(x: Tensor) -> Tensor:
    """[batch, heads, time, size] as [batch, time, heads * size]."""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


@op("FlexAttention", domain="ai.onnx.preview")
def flex_attention(
    q: Tensor, k: Tensor, v: Tensor, *, call: Any, scale: float | None = None, softmax_precision: int | None = None
) -> Tensor:
    """Attention whose scores and weights pass through graphs of the model."""
    k, v = (share_heads(q, k), share_heads(q, v)) if q.shape[1] != k.shape[1] else (k, v)
    wide = float64 if softmax_precision == 11 else q.dtype
    element = element_of_code(softmax_precision or (11 if wide is float64 else 1))
    scores = (matmul(q, k.transpose(-1, -2)) * (1.0 / root(q.shape[-1]) if scale is None else scale)).to(wide)
    scores = _changed(call, "score_mod", scores, element)
    weights = _changed(call, "prob_mod", composite.masked_softmax(scores, -1), element)
    return matmul(weights.to(v.dtype), v)


def _changed(call: Any, name: str, x: Tensor, element: Any) -> Tensor:
    graph = call.node.attributes.get(name)
    return x if graph is None else call.run(graph, Value(element, x))[0].tensor


@op("TensorScatter", since=24)
def tensor_scatter(
    past_cache: Tensor, update: Tensor, write_indices: Tensor | None = None, *, axis: int = -2, mode: str = "linear"
) -> Tensor:
    """A cache with the rows of ``update`` from where each item of the batch is written, around its end if need be."""
    axis = axis % len(past_cache.shape)
    start = None if write_indices is None else write_indices.reshape(-1, *(1,) * (len(update.shape) - 1))
    return rows_written(past_cache, update, start, axis, mode == "circular")


def rows_written(cache: Tensor, rows: Tensor, start: Tensor | None, axis: int, circular: bool = False) -> Tensor:
    """``cache`` with ``rows`` from ``start`` [batch, 1, ...] on, along an axis."""
    shape = tuple(rows.shape)
    place = index.iota(shape=tuple([n if a == axis else 1 for a, n in enumerate(shape)]), axis=axis)
    place = place if start is None else place + start
    place = place % cache.shape[axis] if circular else place
    return cache.scatter(axis, place.broadcast_to(*shape), rows)


@op("LinearAttention", since=27)
def linear_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    past_state: Tensor | None = None,
    decay: Tensor | None = None,
    beta: Tensor | None = None,
    *,
    call: Any,
    chunk_size: int = 64,
    kv_num_heads: int,
    q_num_heads: int,
    scale: float = 0.0,
    update_rule: str = "gated_delta",
) -> tuple[Tensor, Value]:
    """A state [batch, heads, E, F] that keys and values are written to and that queries read, step by step."""
    rules = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
    if rules.get(update_rule) != (decay is not None, beta is not None):
        raise AttributeValueError(f"LinearAttention: update_rule {update_rule[:40]!r} with these inputs")
    batch, _, width = query.shape
    each = width // q_num_heads
    steps = {"q": _steps(query, q_num_heads), "k": _steps(key, kv_num_heads), "v": _steps(value, kv_num_heads)}
    if decay is not None:
        steps["decay"] = _steps(decay, kv_num_heads)
    if beta is not None:
        steps["beta"] = _steps(beta, beta.shape[2])
    factor = scale or 1.0 / root(each)

    def following(state: Tensor, x: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        if "decay" in x:
            state = state * x["decay"].exp().unsqueeze(3)
        k, v = x["k"].unsqueeze(3), x["v"].unsqueeze(2)
        if "beta" in x:
            v = (v - (state * k).sum(2, keepdim=True)) * x["beta"].unsqueeze(2)
        state = state + k * v
        read = share_heads(x["q"].unsqueeze(2), state)
        return state, matmul(x["q"].unsqueeze(2), read).squeeze(2) * factor

    zeros = query.new_zeros(batch, kv_num_heads, each, value.shape[2] // kv_num_heads)
    state, found = scan(following, zeros if past_state is None else past_state, steps)
    return found.transpose(0, 1).reshape(batch, query.shape[1], -1), Value(
        call.element(0 if past_state is None else 3), state
    )


def _steps(x: Tensor, heads: int) -> Tensor:
    """[batch, time, heads * size] as [time, batch, heads, size]."""
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(0, 1)


@op("CausalConvWithState", since=27)
def causal_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, past_state: Tensor | None = None, *, activation: str = "none"
) -> tuple[Tensor, Tensor]:
    """A convolution of each channel [batch, channels, time] by itself that sees no later step, and the steps that the
    next call goes on with."""
    if activation not in ("none", "silu", "swish"):
        raise AttributeValueError(f"CausalConvWithState: activation {activation[:40]!r} is none of none, silu, swish")
    before = weight.shape[2] - 1
    whole = padded(x, ((before, 0),)) if past_state is None else cat([past_state, x], 2)
    options = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": x.shape[1]}
    result = convolution.conv(whole, weight, **options)
    result = result if bias is None else result + bias.reshape(-1, 1)
    return F.silu(result) if activation != "none" else result, whole[:, :, whole.shape[2] - before :]
