"""Rules of ONNX's attention operators, and of their key and value caches."""

from __future__ import annotations

import math
from typing import Any

from graphc.base.dtypes import float32, float64
from graphc.base.errors import AttributeValueError
from graphc.base.records import dataclass
from graphc.base.sizes.size import always, root
from graphc.interop.onnx.elements import element_of_code
from graphc.interop.onnx.registry import op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.nn.functional.attention import share_heads
from graphc.nn.functional.recurrent import scan
from graphc.nn.functional.spatial import padded
from graphc.ops.contraction import convolution
from graphc.ops.selection import index
from graphc.tensors import composite
from graphc.tensors.free_functions import cat, matmul
from graphc.tensors.tensor import Tensor

_SCORES, _CAPPED, _BIASED, _WEIGHTS = range(4)
"""Values of ``qk_matmul_output_mode``."""


@dataclass(frozen=True)
class Scoring:
    """Parameters of the step from products of queries and keys to the weights of values."""

    scale: Any = None
    """None means 1 / sqrt(E)."""
    softcap: float = 0.0
    keep: Tensor | None = None
    """Mask: true for the keys that a query sees."""
    bias: Tensor | None = None
    """Summand of the scores."""
    causal: bool = False
    """Whether a query at position i sees only keys up to position i, in addition to ``keep``."""
    stage: int | None = None
    """Intermediate result that the caller asks for, as in ``qk_matmul_output_mode``."""
    precision: Any = None
    """Dtype of the weights, if it differs from the query's."""
    sink: Tensor | None = None
    """[heads, 1, 1]: an extra score without a value."""

    @property
    def is_plain(self) -> bool:
        """Check whether ``scaled_dot_product_attention`` computes all of it."""
        masks = (self.keep is not None) + (self.bias is not None) + self.causal
        is_default = self.stage is None and self.precision is None and self.sink is None
        return not self.softcap and is_default and masks < 2


def attend(q: Tensor, k: Tensor, v: Tensor, scoring: Scoring) -> tuple[Tensor, Tensor | None]:
    """Return weighted values [batch, heads, L, F], and the intermediate result that ``scoring`` asks for, or None.

    Queries have the shape [batch, heads, L, E]. Keys and values have as many heads, or fewer, shared heads.
    """
    shared = q.shape[-3] != k.shape[-3]
    if scoring.is_plain:
        mask = scoring.keep if scoring.keep is not None else scoring.bias
        result = F.scaled_dot_product_attention(q, k, v, mask, 0.0, scoring.causal, scoring.scale, shared)
        return result, None
    if shared:
        k, v = share_heads(q, k), share_heads(q, v)
    factor = 1.0 / root(q.shape[-1]) if scoring.scale is None else scoring.scale
    scores = matmul(q, k.transpose(-1, -2)) * factor
    intermediate = scores
    if scoring.softcap:
        scores = (scores / scoring.softcap).tanh() * scoring.softcap
    intermediate = scores if scoring.stage == _CAPPED else intermediate
    keep = _both(scoring.keep, causal_mask(q.shape[-2], k.shape[-2]) if scoring.causal else None)
    if scoring.bias is not None:
        keep = _both(keep, scoring.bias > -math.inf)
        scores = scores + scoring.bias
    scores = scores if keep is None else scores.where(keep, -math.inf)
    intermediate = scores if scoring.stage == _BIASED else intermediate
    weights = _weights(scores if scoring.precision is None else scores.to(scoring.precision), scoring.sink)
    weights = weights if weights.dtype is v.dtype else weights.to(v.dtype)
    return matmul(weights, v), weights if scoring.stage == _WEIGHTS else intermediate


def _weights(scores: Tensor, sink: Tensor | None) -> Tensor:
    if sink is None:
        return composite.masked_softmax(scores, -1)
    sinks = sink.broadcast_to(*scores.shape[:-1], 1)
    return composite.masked_softmax(cat([scores, sinks], -1), -1)[..., :-1]


def _both(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    return b if a is None else a if b is None else a & b


def causal_mask(queries: Any, keys: Any, offset: Any = 0, left: int = -1, right: int = 0) -> Tensor:
    """Return the mask [queries, keys], or [batch, 1, queries, keys] for an offset [batch, 1, 1, 1].

    Query i stands at position i + ``offset``. It sees keys from ``left`` positions before it to ``right`` after it. -1
    removes a limit.
    """
    shape = (queries, keys)
    distance = index.iota(shape=shape, axis=0) + offset - index.iota(shape=shape, axis=1)
    low = distance >= -right if right >= 0 else None
    high = distance <= left if left >= 0 else None
    mask = _both(low, high)
    assert mask is not None
    return mask


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
    """Compute scaled dot-product attention.

    Tensors of rank 3 hold several heads side by side in their last dimension. ``past_key`` and ``past_value`` precede
    keys and values.
    """
    flat = len(q.shape) == 3
    if flat:
        q, k, v = heads_apart(q, q_num_heads), heads_apart(k, kv_num_heads), heads_apart(v, kv_num_heads)
    offset: Any = 0
    if past_key is not None and past_value is not None:
        offset = past_key.shape[2]
        k, v = cat([past_key, k], 2), cat([past_value, v], 2)
    elif nonpad_kv_seqlen is not None:
        offset = nonpad_kv_seqlen.reshape(-1, 1, 1, 1) - q.shape[2]
    right = 0 if is_causal else right_window_size
    keep, causal = None, False
    if type(offset) is int and offset == 0 and left_window_size < 0 and right == 0:
        causal = True
    elif past_key is not None and always("==", q.shape[2], 1) and left_window_size < 0 and right == 0:
        pass  # One query after all keys sees all of them.
    elif left_window_size >= 0 or right >= 0:
        keep = causal_mask(q.shape[2], k.shape[2], offset, left_window_size, right)
    if nonpad_kv_seqlen is not None:
        valid = index.iota(shape=(1, 1, 1, k.shape[2]), axis=3) < nonpad_kv_seqlen.reshape(-1, 1, 1, 1)
        keep = _both(keep, valid)
    bias = None
    if attn_mask is not None:
        mask = _as_long(attn_mask, k.shape[2])
        keep, bias = (_both(keep, mask), None) if mask.dtype.kind == "b" else (keep, mask)
    scoring = Scoring(
        scale, softcap, keep, bias, causal, *_requested(call, qk_matmul_output_mode, softmax_precision, q)
    )
    result, intermediate = attend(q, k, v, scoring)
    result = heads_together(result) if flat else result
    return (result, k, v, intermediate)[: call.outputs] if call.outputs > 1 else result


def _requested(call: Any, mode: int, precision: int | None, q: Tensor) -> tuple[int | None, Any]:
    """Return the requested intermediate result, and the dtype of weights if it differs from the query's."""
    stage = mode if call.outputs > 3 and call.node.outputs[3] else None
    if stage is not None and not 0 <= stage <= _WEIGHTS:
        raise AttributeValueError(f"Attention: qk_matmul_output_mode {mode} is not from 0 to 3")
    wide = None if precision is None else element_of_code(precision).carrier
    return stage, wide if wide is float64 and q.dtype is float32 else None


def _as_long(mask: Tensor, keys: Any) -> Tensor:
    """Extend a mask to all keys in its last dimension. Its missing last keys are masked out."""
    missing = keys - mask.shape[-1]
    if type(missing) is int and missing == 0:
        return mask
    return padded(mask, ((0, missing),), False if mask.dtype.kind == "b" else -math.inf)


def heads_apart(x: Tensor, heads: int | None) -> Tensor:
    """Reshape [batch, time, heads * size] to [batch, heads, time, size]."""
    if not heads:
        raise AttributeValueError(
            "Attention over tensors of rank 3 needs the number of heads (q_num_heads, kv_num_heads)"
        )
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(1, 2)


def heads_together(x: Tensor) -> Tensor:
    """Reshape [batch, heads, time, size] to [batch, time, heads * size]."""
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], x.shape[1] * x.shape[3])


@op("FlexAttention", domain="ai.onnx.preview")
def flex_attention(
    q: Tensor, k: Tensor, v: Tensor, *, call: Any, scale: float | None = None, softmax_precision: int | None = None
) -> Tensor:
    """Compute attention whose scores and weights pass through graphs of the model."""
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
    """Write the rows of ``update`` into a cache, from each batch item's write index on.

    In the circular mode rows beyond the end continue at the start.
    """
    axis = axis % len(past_cache.shape)
    start = None if write_indices is None else write_indices.reshape(-1, *(1,) * (len(update.shape) - 1))
    return rows_written(past_cache, update, start, axis, mode == "circular")


def rows_written(cache: Tensor, rows: Tensor, start: Tensor | None, axis: int, circular: bool = False) -> Tensor:
    """Return ``cache`` with ``rows`` written from ``start`` [batch, 1, ...] on along an axis."""
    shape = tuple(rows.shape)
    position = index.iota(shape=tuple([n if a == axis else 1 for a, n in enumerate(shape)]), axis=axis)
    position = position if start is None else position + start
    position = position % cache.shape[axis] if circular else position
    return cache.scatter(axis, position.broadcast_to(*shape), rows)


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
    """Update a state [batch, heads, E, F] in each step by its key and value, and read it by its query."""
    rules = {"linear": (False, False), "gated": (True, False), "delta": (False, True), "gated_delta": (True, True)}
    if rules.get(update_rule) != (decay is not None, beta is not None):
        raise AttributeValueError(
            f"LinearAttention: update_rule {update_rule[:40]!r} does not fit these inputs (decay, beta)"
        )
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
    state, outputs = scan(following, zeros if past_state is None else past_state, steps)
    return outputs.transpose(0, 1).reshape(batch, query.shape[1], -1), Value(
        call.element(0 if past_state is None else 3), state
    )


def _steps(x: Tensor, heads: int) -> Tensor:
    """Reshape [batch, time, heads * size] to [time, batch, heads, size]."""
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(0, 1)


@op("CausalConvWithState", since=27)
def causal_conv(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, past_state: Tensor | None = None, *, activation: str = "none"
) -> tuple[Tensor, Tensor]:
    """Convolve each channel [batch, channels, time] by itself without access to later steps.

    Also returns the last steps, which are ``past_state`` of the next call.
    """
    if activation not in ("none", "silu", "swish"):
        raise AttributeValueError(
            f"CausalConvWithState: activation {activation[:40]!r} is not one of none, silu, swish"
        )
    before = weight.shape[2] - 1
    padded_input = padded(x, ((before, 0),)) if past_state is None else cat([past_state, x], 2)
    options = {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": x.shape[1]}
    result = convolution.conv(padded_input, weight, **options)
    result = result if bias is None else result + bias.reshape(-1, 1)
    return F.silu(result) if activation != "none" else result, padded_input[:, :, padded_input.shape[2] - before :]
