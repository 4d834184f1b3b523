"""Rule of ONNX's rotary position embedding."""

from __future__ import annotations

from graphc.interop.onnx.ops.attention import heads_apart, heads_together
from graphc.interop.onnx.registry import op
from graphc.tensors.free_functions import cat, stack
from graphc.tensors.tensor import Tensor


@op("RotaryEmbedding", since=23)
def rotary_embedding(
    x: Tensor,
    cos_cache: Tensor,
    sin_cache: Tensor,
    position_ids: Tensor | None = None,
    *,
    interleaved: int = 0,
    num_heads: int | None = None,
    rotary_embedding_dim: int = 0,
) -> Tensor:
    """Rotate pairs of elements of each head by the angle of its position."""
    if position_ids is not None:
        cos_cache, sin_cache = cos_cache[position_ids.to("int64")], sin_cache[position_ids.to("int64")]
    cos, sin = cos_cache.unsqueeze(1), sin_cache.unsqueeze(1)
    flat = len(x.shape) == 3
    result = rotated(heads_apart(x, num_heads) if flat else x, cos, sin, bool(interleaved), rotary_embedding_dim)
    return heads_together(result) if flat else result


def rotated(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, size: int = 0) -> Tensor:
    """Rotate the first ``size`` elements (0: all) of heads [batch, heads, time, elements] in pairs.

    A pair consists of two neighbours, or of one element from each half. Cosines and sines are [batch, 1, time, size /
    2].
    """
    size = size or x.shape[3]
    source, unrotated = x[..., :size], x[..., size:]
    if interleaved:
        a, b = source[..., 0::2], source[..., 1::2]
        result = stack([a * cos - b * sin, a * sin + b * cos], -1).reshape(*source.shape)
    else:
        a, b = source[..., : size // 2], source[..., size // 2 :]
        result = cat([a * cos - b * sin, a * sin + b * cos], -1)
    return result if size == x.shape[3] else cat([result, unrotated], -1)
