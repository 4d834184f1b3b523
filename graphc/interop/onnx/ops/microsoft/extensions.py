"""Rules of com.microsoft operators into which ONNX Runtime's optimizer and exporters fuse several of ONNX."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.errors import UnsupportedError
from graphc.interop.onnx.ops.convolutions import conv
from graphc.interop.onnx.ops.normalization import layer_norm, layer_normalization, rms_norm, statistics
from graphc.interop.onnx.ops.recurrent import ACTIVATIONS
from graphc.interop.onnx.ops.vision.grids import grid_sample
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.nn import functional as F
from graphc.ops.selection import index
from graphc.tensors.tensor import Tensor

op("GridSample", domain=MICROSOFT)(grid_sample)
op("LayerNormalization", domain=MICROSOFT)(layer_normalization)


@op("SimplifiedLayerNormalization", domain=MICROSOFT)
@op("SimplifiedLayerNormalization")
def simplified_layer_normalization(
    x: Tensor, scale: Tensor, *, call: Any, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Any:
    """Divide by the root mean square. A second result is its inverse."""
    first = axis % len(x.shape)
    result = rms_norm(x, first, scale, epsilon)
    return (result, _inverse_root(x, first, epsilon)) if call.outputs > 1 else result


def _inverse_root(x: Tensor, first: int, epsilon: float) -> Tensor:
    return ((x * x).mean(tuple(range(first, len(x.shape))), keepdim=True) + epsilon).rsqrt()


@op("SkipLayerNormalization", domain=MICROSOFT)
def skip_layer_normalization(
    x: Tensor,
    skip: Tensor,
    gamma: Tensor,
    beta: Tensor | None = None,
    bias: Tensor | None = None,
    *,
    call: Any,
    epsilon: float = 1e-12,
) -> Any:
    """Normalize a sum as LayerNormalization does. The fourth result is the sum."""
    total = _added(x, skip, bias)
    last = len(total.shape) - 1
    result = layer_norm(total, last, gamma, beta, epsilon)
    return _with_statistics(call, result, total, lambda: statistics(total, last, epsilon))


@op("SkipSimplifiedLayerNormalization", domain=MICROSOFT)
def skip_simplified_layer_normalization(
    x: Tensor, skip: Tensor, gamma: Tensor, bias: Tensor | None = None, *, call: Any, epsilon: float = 1e-5
) -> Any:
    """Divide a sum by its root mean square. The fourth result is the sum."""
    total = _added(x, skip, bias)
    last = len(total.shape) - 1
    result = rms_norm(total, last, gamma, epsilon)
    return _with_statistics(call, result, total, lambda: (None, _inverse_root(total, last, epsilon)))


def _added(x: Tensor, skip: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if skip is None else x + skip
    return x if bias is None else x + bias


def _with_statistics(call: Any, result: Tensor, total: Tensor, compute: Any) -> Any:
    """Return as many results as the node has. ``compute`` runs only where a middle result is used."""
    if call.outputs < 2:
        return result
    middle = compute() if any(call.node.outputs[1:3]) else (None, None)
    return (result, *middle, total)[: call.outputs]


@op("EmbedLayerNormalization", domain=MICROSOFT)
def embed_layer_normalization(
    ids: Tensor,
    segments: Tensor | None,
    words: Tensor,
    positions: Tensor,
    kinds: Tensor | None,
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None = None,
    position_ids: Tensor | None = None,
    *,
    call: Any,
    epsilon: float = 1e-12,
    mask_index_type: int = 0,
) -> Any:
    """Normalize the sum of the embeddings of words, positions and segments.

    The second result counts the elements of the mask in each row, the third is the sum.
    """
    tables = [words, positions, *([] if kinds is None else [kinds])]
    marks = None if kinds is None else segments
    return embedded(
        ids,
        marks,
        lambda table, indices: F.embedding(indices, tables[table]),
        gamma,
        beta,
        mask,
        position_ids,
        call=call,
        epsilon=epsilon,
    )


def embedded(
    ids: Tensor,
    segments: Tensor | None,
    rows: Callable[[int, Tensor], Tensor],
    gamma: Tensor,
    beta: Tensor,
    mask: Tensor | None,
    position_ids: Tensor | None,
    *,
    call: Any,
    epsilon: float,
) -> Any:
    """Normalize sums of embeddings. ``rows`` returns those of indices in the tables 0 (words), 1 (positions) and 2
    (segments)."""
    position_indices = index.iota(shape=(1, ids.shape[1]), axis=1) if position_ids is None else position_ids.to("int64")
    total = rows(0, ids.to("int64")) + rows(1, position_indices)
    if segments is not None:
        total = total + rows(2, segments.to("int64"))
    result = layer_norm(total, 2, gamma, beta, epsilon)
    count = None
    if call.outputs > 1 and call.node.outputs[1]:
        valid = ids.new_zeros(ids.shape[0]) if mask is None else mask.sum(1)
        count = valid.to("int32")
    return (result, count, total)[: call.outputs] if call.outputs > 1 else result


@op("FusedConv", domain=MICROSOFT)
def fused_conv(
    x: Tensor,
    w: Tensor,
    b: Tensor | None = None,
    z: Tensor | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    **attributes: Any,
) -> Tensor:
    """Convolve, add and apply an activation."""
    result = conv(x, w, b, **attributes)
    return _activated(result if z is None else result + z, activation, activation_params)


@op("NhwcConv", "NhwcFusedConv", domain=MICROSOFT)
def channels_last_conv(
    x: Tensor, w: Tensor, b: Tensor | None = None, z: Tensor | None = None, **attributes: Any
) -> Tensor:
    """Compute FusedConv of images with the channels last."""
    added = None if z is None else z.movedim(-1, 1)
    return fused_conv(x.movedim(-1, 1), w, b, added, **attributes).movedim(1, -1)


def _activated(x: Tensor, name: str, numbers: Sequence[float]) -> Tensor:
    if not name:
        return x
    if name == "Clip":
        return x.clamp(*numbers)
    if name.lower() not in ACTIVATIONS:
        raise UnsupportedError(f"FusedConv: graphc lacks the activation {name[:40]!r}")
    function, defaults = ACTIVATIONS[name.lower()]
    return function(x, *[*numbers, *defaults[len(numbers) :]])


@op("GemmFastGelu", domain=MICROSOFT)
def gemm_fast_gelu(x: Tensor, w: Tensor, bias: Tensor | None = None) -> Tensor:
    product = x @ w
    return F.gelu(product if bias is None else product + bias, approximate="tanh")


@op("SwiGLU", domain=MICROSOFT)
def swiglu(
    gate: Tensor,
    up: Tensor | None = None,
    *,
    activation_alpha: float = 1.0,
    activation_beta: float = 0.0,
    limit: float = 0.0,
    round_activation: int = 0,
) -> Tensor:
    """Multiply a gate by its sigmoid and by ``up``, which is otherwise the second half of the gate's last dimension."""
    if up is None:
        gate, up = gate.chunk(2, -1)
    return gated(gate, up, activation_alpha, activation_beta, limit if limit > 0 else None)


def gated(gate: Tensor, up: Tensor, alpha: float, beta: float, limit: float | None) -> Tensor:
    """Return ``gate * sigmoid(alpha * gate) * (up + beta)``, both clamped to a limit before."""
    if limit is not None:
        gate, up = gate.clamp(max=limit), up.clamp(-limit, limit)
    return gate * (gate * alpha).sigmoid() * (up + beta)


@op("RelativePositionBias", domain=MICROSOFT, host="query_length key_length")
def relative_position_bias(
    table: Tensor, query_length: Any, key_length: Any, *, is_bidirectional: int = 0, max_distance: int
) -> Tensor:
    """Return T5's summand of attention scores [1, heads, queries, keys] from a table of distances in buckets.

    The shape of the table is [buckets, heads]. ONNX Runtime's schema says that its elements are column-major; no kernel
    for the CPU exists to compare with.
    """
    buckets, heads = table.shape
    lengths = [n[0] if isinstance(n, tuple) else n for n in (query_length, key_length)]
    distance = index.iota(shape=(1, lengths[1]), axis=1) - index.iota(shape=(lengths[0], 1), axis=0)
    count = buckets // 2 if is_bidirectional else buckets
    offset = (distance > 0).to("int64") * count if is_bidirectional else 0
    steps = distance.abs() if is_bidirectional else (-distance).clamp(min=0)
    exact = count // 2
    ratio = (steps.clamp(min=1).to("float32") / exact).log() / math.log(max_distance / exact)
    far = (exact + (ratio * (count - exact)).to("int64")).clamp(max=count - 1)
    bucket = steps.where(steps < exact, far) + offset
    return table.reshape(heads, buckets)[:, bucket].unsqueeze(0)


@op("BiasAdd", domain=MICROSOFT)
def bias_add(x: Tensor, bias: Tensor, skip: Tensor) -> Tensor:
    return x + bias + skip


@op("GroupNorm", domain=MICROSOFT)
def group_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    activation: int = 0,
    channels_last: int = 1,
    epsilon: float = 1e-5,
    groups: int,
) -> Tensor:
    """Normalize groups of channels of images with the channels last, then apply SiLU for ``activation`` 1."""
    last = len(x.shape) - 1
    images = x.permute(0, last, *range(1, last)) if channels_last else x
    result = F.group_norm(images, groups, gamma.to(x.dtype), beta.to(x.dtype), epsilon)
    result = F.silu(result) if activation == 1 else result
    return result.permute(0, *range(2, last + 1), 1) if channels_last else result


@op("SkipGroupNorm", domain=MICROSOFT)
def skip_group_norm(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    skip: Tensor,
    bias: Tensor | None = None,
    *,
    call: Any,
    **attributes: Any,
) -> Any:
    """Normalize a sum by groups of channels. The second result is the sum."""
    if len(skip.shape) == 2:
        skip = skip.reshape(skip.shape[0], 1, 1, skip.shape[1])
    total = _added(x, skip, bias)
    result = group_norm(total, gamma, beta, **attributes)
    return (result, total) if call.outputs > 1 else result
