"""Rules of com.microsoft's attention operators, into which transformer models are optimized."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.base.sizes.size import always
from graphc.interop.onnx.ops.attention import Scoring, attend, causal_mask, heads_apart, heads_together, rows_written
from graphc.interop.onnx.ops.microsoft.rotary import rotated
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.nn.functional.affine import linear
from graphc.ops.selection import index
from graphc.tensors import creation
from graphc.tensors.free_functions import cat, stack
from graphc.tensors.tensor import Tensor


@op("Attention", domain=MICROSOFT)
def attention(
    x: Tensor,
    weights: Tensor,
    bias: Tensor | None = None,
    mask_index: Tensor | None = None,
    past: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_sequence_length: Tensor | None = None,
    *,
    call: Any,
    **attributes: Any,
) -> Any:
    """Project one input to queries, keys and values, and attend. ``past`` holds earlier keys and values."""
    joined = linear(x, weights.transpose(0, 1), bias)
    return self_attention(joined, mask_index, past, attention_bias, call=call, **attributes)


def self_attention(
    joined: Tensor,
    mask_index: Tensor | None,
    past: Tensor | None,
    attention_bias: Tensor | None = None,
    *,
    call: Any,
    do_rotary: int = 0,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    past_present_share_buffer: int = 0,
    qkv_hidden_sizes: Sequence[int] | None = None,
    rotary_embedding_dim: int = 0,
    scale: float | None = None,
    unidirectional: int = 0,
) -> Any:
    """Attend with queries, keys and values [batch, time, size] that are joined along the last axis."""
    if do_rotary or past_present_share_buffer:
        raise UnsupportedError(f"{call.node.title} with do_rotary or past_present_share_buffer")
    sizes = tuple(qkv_hidden_sizes) if qkv_hidden_sizes else (joined.shape[2] // 3,) * 3
    q, k, v = (heads_apart(projected, num_heads) for projected in joined.split(sizes, 2))
    if past is not None:
        k, v = cat([past[0], k], 2), cat([past[1], v], 2)
    mask = None if mask_index is None else _masked(mask_index, q.shape[0], k.shape[2], mask_filter_value, q)
    scoring = _scoring(q, k, scale, bool(unidirectional), mask, attention_bias)
    result = heads_together(attend(q, k, v, scoring)[0])
    return (result, stack([k, v], 0)) if call.outputs > 1 else result


def _scoring(
    q: Tensor, k: Tensor, scale: float | None, causal: bool, mask: Tensor | None, bias: Tensor | None
) -> Scoring:
    added = bias if mask is None else mask if bias is None else mask + bias
    if not causal:
        return Scoring(scale or None, bias=added)
    if always("==", q.shape[2], k.shape[2]):
        return Scoring(scale or None, bias=added, causal=True)
    return Scoring(scale or None, keep=causal_mask(q.shape[2], k.shape[2], k.shape[2] - q.shape[2]), bias=added)


def _masked(mask: Tensor, batch: Any, keys: Any, filling: float, like: Tensor) -> Tensor:
    """Return the summand of the scores for a mask.

    The mask holds counts of valid keys [batch], ends and starts of valid keys [2 * batch], or flags of valid keys
    [batch, keys], [batch, queries, keys] or [batch, 1, queries, keys].
    """
    rank = len(mask.shape)
    if rank == 1:
        position = index.iota(shape=(1, keys), axis=1)
        ends = mask[:batch].unsqueeze(1)
        valid = position < ends
        if not always("==", mask.shape[0], batch):
            valid = valid & (position >= mask[batch : batch + batch].unsqueeze(1))
        mask, rank = valid, 2
    valid = mask if mask.dtype.kind == "b" else mask.ne(0)
    shape = {2: (valid.shape[0], 1, 1, valid.shape[1]), 3: (valid.shape[0], 1, *valid.shape[1:])}.get(rank)
    valid = valid if shape is None else valid.reshape(*shape)
    return like.new_full((), 0.0).where(valid, filling)


@op("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    bias: Tensor | None = None,
    key_padding_mask: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    past_sequence_length: Tensor | None = None,
    cache_indirection: Tensor | None = None,
    *,
    call: Any,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    scale: float | None = None,
    unidirectional: int = 0,
) -> Any:
    """Compute attention of queries, keys and values [batch, time, heads * size].

    All three may come as one tensor [batch, time, heads, 3, size], keys and values as [batch, time, heads, 2, size] or
    as [batch, heads, time, size].
    """
    if cache_indirection is not None:
        raise UnsupportedError(f"{call.node.title} with cache_indirection")
    heads = _three(query, key, value, bias, num_heads)
    past = None if past_key is None or past_value is None else (past_key, past_value)
    masks = key_padding_mask, attention_bias
    options: dict[str, Any] = {"filling": mask_filter_value, "scale": scale, "causal": bool(unidirectional)}
    return _multi_head(heads, past, past_sequence_length, masks, call=call, **options)


def _multi_head(
    heads: Sequence[Tensor],
    past: tuple[Tensor, Tensor] | None,
    length: Tensor | None,
    masks: tuple[Tensor | None, Tensor | None],
    *,
    call: Any,
    filling: float,
    scale: float | None,
    causal: bool = False,
    beams: Tensor | None = None,
) -> Any:
    """Attend with queries, keys and values.

    ``past`` holds earlier keys and values or, with ``length``, buffers of which ``length`` steps are written. ``masks``
    are the mask of valid keys, and the summand of the scores.
    """
    q, k, v = heads
    if past is not None and length is not None:
        return _with_buffers(
            q, k, v, past, length, *masks, call=call, filling=filling, scale=scale, causal=causal, beams=beams
        )
    if past is not None:
        k, v = cat([past[0], k], 2), cat([past[1], v], 2)
    mask = None if masks[0] is None else _masked(masks[0], q.shape[0], k.shape[2], filling, q)
    result = heads_together(attend(q, k, v, _scoring(q, k, scale, causal, mask, masks[1]))[0])
    return (result, k, v)[: call.outputs] if call.outputs > 1 else result


def _with_buffers(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    buffers: tuple[Tensor, Tensor],
    length: Tensor,
    mask: Tensor | None,
    bias: Tensor | None,
    *,
    call: Any,
    filling: float,
    scale: float | None,
    causal: bool,
    beams: Tensor | None,
) -> Any:
    """Attend with keys and values in buffers, of which ``length`` steps are written already, and write the new ones.

    ``beams`` holds, for each beam and step [batch, beams, steps], the beam whose step it has.
    """
    row = length.to("int64").reshape(1, 1, 1, 1)
    k, v = (rows_written(buffer, rows, row, 2) for buffer, rows in zip(buffers, (k, v), strict=True))
    keys, queries = k.shape[2], q.shape[2]
    written = index.iota(shape=(1, 1, 1, keys), axis=3) < row + queries
    keep = causal_mask(queries, keys, row) if causal else written
    if mask is not None:
        known = mask.shape[-1] if mask.ndim > 1 else keys
        added = _masked(mask, q.shape[0], known, filling, q)
        added = added if always("==", known, keys) else F.pad(added, (0, keys - known))
        bias = added if bias is None else bias + added
    if bias is not None and not always("==", bias.shape[-1], keys):
        bias = F.pad(bias, (0, keys - bias.shape[-1]))
    seen = (k, v) if beams is None else (_of_beams(k, beams, row), _of_beams(v, beams, row))
    result = heads_together(attend(q, *seen, Scoring(scale or None, keep=keep, bias=bias))[0])
    return (result, k, v)[: call.outputs] if call.outputs > 1 else result


def _of_beams(buffer: Tensor, sources: Tensor, row: Tensor) -> Tensor:
    """Return the steps that each beam has seen, up to ``row`` from the buffers [batch * beams, ...] of others."""
    count, keys = buffer.shape[0], buffer.shape[2]
    own = index.iota(shape=(count, 1), axis=0)
    step = index.iota(shape=(1, keys), axis=1)
    first = own - own % sources.shape[1]
    others = first + sources.to("int64").reshape(count, keys)
    picked = others.where(step < row.reshape(1, 1), own)
    return buffer.transpose(1, 2)[picked, step].transpose(1, 2)


@op("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def decoder_attention(
    query: Tensor,
    key: Tensor | None = None,
    value: Tensor | None = None,
    mask_index: Tensor | None = None,
    attention_bias: Tensor | None = None,
    past_key: Tensor | None = None,
    past_value: Tensor | None = None,
    past_sequence_length: Tensor | None = None,
    beam_width: Tensor | None = None,
    cache_indirection: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    call: Any,
    mask_filter_value: float = -10000.0,
    num_heads: int,
    output_qk: int = 0,
    past_present_share_buffer: int = 0,
    scale: float | None = None,
) -> Any:
    """Compute MultiHeadAttention of one step. Keys and values lie in buffers, or are those of cross attention."""
    heads = _three(query, key, value, bias, num_heads)
    past = None if past_key is None or past_value is None else (past_key, past_value)
    options: dict[str, Any] = {"filling": mask_filter_value, "scale": scale, "beams": cache_indirection}
    return _multi_head(heads, past, past_sequence_length, (mask_index, attention_bias), call=call, **options)


def _three(query: Tensor, key: Tensor | None, value: Tensor | None, bias: Tensor | None, heads: int) -> list[Tensor]:
    """Return queries, keys and values [batch, heads, time, size], with the bias of each added."""
    if key is None:
        tensors = [query[:, :, :, i].transpose(1, 2) for i in range(3)]
    elif value is None:
        tensors = [heads_apart(query, heads), *[key[:, :, :, i].transpose(1, 2) for i in range(2)]]
    else:
        tensors = [heads_apart(t, heads) if len(t.shape) == 3 else t for t in (query, key, value)]
    if bias is None:
        return tensors
    biased = []
    shares = bias.split([heads * t.shape[3] for t in tensors])
    for source, tensor, share in zip((query, key, value), tensors, shares, strict=True):
        is_cache = source is not None and source is not query and len(source.shape) == 4
        biased.append(tensor if is_cache else tensor + share.reshape(heads, 1, tensor.shape[3]))
    return biased


@op("RotaryEmbedding", domain=MICROSOFT)
def rotary_embedding(
    x: Tensor,
    position_ids: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """Rotate pairs of elements by the angles of their positions. A single position belongs to the first step."""
    flat = len(x.shape) == 3
    heads = num_heads or (x.shape[2] // (cos_cache.shape[1] * 2) if flat else 0)
    split_heads = heads_apart(x, heads) if flat else x
    positions = position_ids.to("int64")
    if len(positions.shape) == 1:
        positions = (positions + index.iota(shape=(split_heads.shape[2],), axis=0)).unsqueeze(0)
    rotated_heads = _turned(split_heads, cos_cache, sin_cache, positions, bool(interleaved))
    return heads_together(rotated_heads) if flat else rotated_heads


@op("MRotaryEmbedding", domain=MICROSOFT)
def rotary_embedding_of_three(
    x: Tensor,
    position_ids: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    *,
    interleaved: int = 0,
    is_packed_batching: int = 0,
    mrope_layout: int = 0,
    mrope_section: Sequence[int],
    num_heads: int = 0,
    rotary_embedding_dim: int = 0,
    scale: float = 1.0,
) -> Tensor:
    """Rotate pairs of elements by angles of positions in time, height and width [3, batch, time].

    ``mrope_section`` counts the pairs of each. They are adjacent or, in layout 1, every third pair.
    """
    flat, half = len(x.shape) == 3, cos_cache.shape[1]
    heads = num_heads or (x.shape[2] // (half * 2) if flat else 0)
    axes = [axis for axis, count in enumerate(mrope_section) for _ in range(count)]
    if mrope_layout == 1:
        counts = [0, *mrope_section[1:]]
        axes = [i % 3 if i < 3 * counts[i % 3] else 0 for i in range(half)]
    pair = index.iota(shape=(half,), axis=0)
    rows = position_ids.to("int64")[creation.tensor(axes, dtype="int64")].permute(1, 2, 0)
    cos, sin = (table[rows, pair].unsqueeze(1) for table in (cos_cache, sin_cache))
    result = rotated(heads_apart(x, heads) if flat else x, cos, sin, bool(interleaved), 2 * half)
    return heads_together(result) if flat else result


def _turned(x: Tensor, cos: Tensor, sin: Tensor, positions: Tensor, interleaved: bool) -> Tensor:
    return rotated(x, cos[positions].unsqueeze(1), sin[positions].unsqueeze(1), interleaved, 2 * cos.shape[1])


@op("GroupQueryAttention", domain=MICROSOFT, values=True)
def group_query_attention(
    query: Value,
    key: Value | None,
    value: Value | None,
    past_key: Value | None,
    past_value: Value | None,
    seqlens_k: Value,
    total_sequence_length: Value,
    cos_cache: Value | None = None,
    sin_cache: Value | None = None,
    position_ids: Value | None = None,
    attention_bias: Value | None = None,
    head_sink: Value | None = None,
    *others: Value | None,
    call: Any,
    do_rotary: int = 0,
    kv_num_heads: int,
    local_window_size: int = -1,
    num_heads: int,
    rotary_interleaved: int = 0,
    scale: float | None = None,
    smooth_softmax: int = -1,
    softcap: float = 0.0,
    **attributes: Any,
) -> Any:
    """Compute causal attention of heads that share keys and values.

    Keys and values are written to a cache after the steps that each batch item already has. A cache with room for all
    steps keeps its length. Where a trace does not know the number of all steps, the cache grows by the steps of the
    query.
    """
    _check_options(others, attributes)
    q, k, v = _shared_three(query.tensor, key, value, num_heads, kv_num_heads)
    before = (seqlens_k.tensor.to("int64").reshape(-1) + 1 - q.shape[2]).clamp(min=0)
    if do_rotary and cos_cache is not None and sin_cache is not None:
        positions = before.unsqueeze(1) + index.iota(shape=(1, q.shape[2]), axis=1)
        positions = positions if position_ids is None else position_ids.tensor.to("int64")
        tables = cos_cache.tensor, sin_cache.tensor
        q, k = (_turned(t, *tables, positions, bool(rotary_interleaved)) for t in (q, k))
    window = local_window_size - 1 if local_window_size > 0 else -1
    keep = None
    if past_key is not None and past_value is not None and not always("==", past_key.shape[2], 0):
        total = total_sequence_length.number if total_sequence_length.is_known else None
        row = before.reshape(-1, 1, 1, 1)
        k, v = (_extended(c.tensor, t, row, total) for c, t in ((past_key, k), (past_value, v)))
        keep = causal_mask(q.shape[2], k.shape[2], row, window)
    elif window >= 0:
        keep = causal_mask(q.shape[2], k.shape[2], 0, window)
    bias = None if attention_bias is None else attention_bias.tensor
    sink = None
    if head_sink is not None or smooth_softmax == 1:
        sink = q.new_zeros(1, 1, 1) if head_sink is None else head_sink.tensor.reshape(-1, 1, 1)
    scoring = Scoring(scale or None, softcap, keep, bias, keep is None, sink=sink)
    result = Value(query.element, heads_together(attend(q, k, v, scoring)[0]))
    cached = [Value(query.element, t) for t in (k, v)]
    return (result, *cached)[: call.outputs] if call.outputs > 1 else result


def _check_options(others: Sequence[Any], attributes: dict[str, Any]) -> None:
    """Raise UnsupportedError for options that graphc lacks and that differ from their defaults."""
    usual = {"causal": 1, "k_quant_type": "NONE", "v_quant_type": "NONE"}
    odd = [n for n, v in attributes.items() if n in usual and v != usual[n]]
    odd += [n for n in ("qk_output", "sliding_window_cache", "kv_cache_bit_width") if attributes.get(n)]
    if odd or any(o is not None for o in others):
        raise UnsupportedError(f"com.microsoft.GroupQueryAttention with {', '.join(odd) or 'inputs after head_sink'}")


def _shared_three(
    query: Tensor, key: Value | None, value: Value | None, heads: int, shared: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return queries, keys and values [batch, heads, time, size], which may come as one tensor."""
    if key is not None and value is not None:
        return heads_apart(query, heads), heads_apart(key.tensor, shared), heads_apart(value.tensor, shared)
    all_heads = heads_apart(query, heads + 2 * shared)
    q, k, v = all_heads.split([heads, shared, shared], 1)
    return q, k, v


def _extended(cache: Tensor, rows: Tensor, row: Tensor, total: Any) -> Tensor:
    """Return a cache with ``rows`` written after the steps of each item, and room for ``total`` steps."""
    room = cache.shape[2] + rows.shape[2] if total is None else total
    missing = room - cache.shape[2]
    if not always("<=", missing, 0):
        cache = cat([cache, cache.new_zeros(*cache.shape[:2], missing, cache.shape[3])], 2)
    return rows_written(cache, rows, row, 2)
