"""Rules of ONNX Runtime's quantized operators of transformers: attention with quantized projections, and embeddings."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import float32
from graphc.interop.onnx.ops.indexing import gather
from graphc.interop.onnx.ops.microsoft.attention import self_attention
from graphc.interop.onnx.ops.microsoft.extensions import embedded
from graphc.interop.onnx.ops.quantized.integer_products import product
from graphc.interop.onnx.ops.quantized.linear import numbers
from graphc.interop.onnx.ops.quantized.quantization import real
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.tensors.tensor import Tensor


@op("QAttention", domain=MICROSOFT, values=True)
def quantized_attention(
    x: Value,
    weights: Value,
    bias: Value,
    x_scale: Value,
    w_scale: Value,
    mask_index: Value | None = None,
    x_zero: Value | None = None,
    w_zero: Value | None = None,
    past: Value | None = None,
    *,
    call: Any,
    **attributes: Any,
) -> Any:
    """Project quantized inputs by quantized weights, and attend as com.microsoft.Attention does."""
    zeros = [None if z is None else z.tensor for z in (x_zero, w_zero)]
    joined = product(x, zeros[0], weights, zeros[1]).to(float32) * (real(x_scale) * real(w_scale)) + bias.tensor
    tensors = [None if v is None else v.tensor for v in (mask_index, past)]
    return self_attention(joined, *tensors, call=call, **attributes)


@op("QEmbedLayerNormalization", domain=MICROSOFT, values=True)
def quantized_embed_layer_normalization(
    ids: Value,
    segments: Value | None,
    words: Value,
    positions: Value,
    kinds: Value | None,
    gamma: Value,
    beta: Value,
    mask: Value | None,
    *parameters: Value | None,
    call: Any,
    epsilon: float = 1e-12,
) -> Any:
    """Compute EmbedLayerNormalization of quantized tables. ``parameters`` are five scales and five zero points."""
    pairs = list(zip(parameters[:5], parameters[5:], strict=True))

    def plain(codes: Value | None, number: int) -> Tensor:
        scale, zero = pairs[number]
        assert codes is not None and scale is not None
        return numbers(codes, scale, zero)

    def rows(table: int, indices: Tensor) -> Tensor:
        codes = (words, positions, kinds)[table]
        assert codes is not None
        return plain(Value(codes.element, gather(codes.tensor, indices)), table)

    marks = [None if v is None else v.tensor for v in (segments, mask)]
    ends = plain(gamma, 3), plain(beta, 4)
    return embedded(ids.tensor, marks[0], rows, *ends, marks[1], None, call=call, epsilon=epsilon)
