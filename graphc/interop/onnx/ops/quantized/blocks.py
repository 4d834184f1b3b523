"""Rules of ONNX Runtime's products and embeddings of language models, whose weights have a scale for each block."""

from __future__ import annotations

from typing import Any

from graphc.base.dtypes import float32
from graphc.interop.onnx.elements import UINT8
from graphc.interop.onnx.ops.indexing import gather
from graphc.interop.onnx.ops.quantized.quantization import along, real
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.tensors import free_functions as free
from graphc.tensors.creation import tensor
from graphc.tensors.tensor import Tensor


def unpacked(packed: Tensor, bits: int) -> Tensor:
    """Unpack codes of ``bits`` bits from bytes u8[..., n], lowest bits first, to u8[..., n * 8 / bits]."""
    if bits == 8:
        return packed
    codes = [(packed >> shift) & ((1 << bits) - 1) for shift in range(0, 8, bits)]
    return free.stack(codes, -1).reshape(*packed.shape[:-1], packed.shape[-1] * (8 // bits))


@op("MatMulNBits", domain=MICROSOFT, values=True)
def matmul_nbits(
    a: Value,
    b: Value,
    scales: Value,
    zero_points: Value | None = None,
    g_idx: Value | None = None,
    bias: Value | None = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Value:
    """Multiply rows by the transpose of a quantized matrix [N, K], in blocks along K.

    Each block has a scale and a zero point. The default zero point is the middle of the codes.
    """
    blocks = -(-K // block_size)
    codes = unpacked(b.tensor.reshape(N, blocks, -1), bits).to(float32).reshape(N, blocks, block_size)
    scale = real(scales).reshape(N, blocks, 1)
    if zero_points is None:
        zero: Any = float(1 << (bits - 1))
    elif zero_points.element.is_floating_point:
        zero = zero_points.tensor.reshape(N, blocks, 1)
    else:
        zero = unpacked(zero_points.tensor.reshape(N, -1), bits).narrow(1, 0, blocks).to(float32).unsqueeze(-1)
    if g_idx is None:
        weight = ((codes - zero) * scale).reshape(N, blocks * block_size).narrow(1, 0, K)
    else:
        group = g_idx.tensor.narrow(0, 0, K)
        offset = zero if isinstance(zero, float) else zero[:, group, 0]
        weight = (codes.reshape(N, blocks * block_size).narrow(1, 0, K) - offset) * scale[:, group, 0]
    return Value(a.element, F.linear(a.tensor, weight, None if bias is None else bias.tensor))


_FP4 = (0.0, 1 / 192, 2 / 3, 1.0, 1 / 3, 1 / 2, 1 / 6, 1 / 4)
"""Numbers of the codes 0 to 7 of bitsandbytes' type FP4. Codes 8 to 15 are their negatives."""
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
"""Numbers of the codes of bitsandbytes' type NF4."""


@op("MatMulBnb4", domain=MICROSOFT, values=True)
def matmul_bnb4(
    a: Value,
    b: Value,
    absmax: Value,
    *,
    K: int,
    N: int,
    block_size: int,
    quant_type: int,
    training_mode: int = 0,
    transB: int = 1,
) -> Value:
    """Multiply rows by a matrix [N, K] of bitsandbytes' codes, or by its transpose, with a scale for each block."""
    table = tensor(_NF4 if quant_type else (*_FP4, *[-n for n in _FP4]), dtype=float32)
    codes = free.stack([b.tensor >> 4, b.tensor & 15], -1).reshape(-1)
    numbers = table[codes.to("int64")].narrow(0, 0, N * K)
    weight = (numbers * along(real(absmax), numbers, 0, block_size)).reshape(N, K)
    return Value(a.element, F.linear(a.tensor, weight) if transB else free.matmul(a.tensor, weight))


@op("GatherBlockQuantized", domain=MICROSOFT, values=True)
def gather_block_quantized(
    data: Value,
    indices: Value,
    scales: Value,
    zero_points: Value | None = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Value:
    """Gather slices of codes with a scale for each block along ``quantize_axis``, and dequantize them.

    Codes in u8 are packed along the last axis. Their default zero point is the middle of the codes, otherwise 0.
    """
    rank, packed = data.tensor.ndim, data.element is UINT8
    at, axis = gather_axis % rank, quantize_axis % rank
    codes, factors, rows = data.tensor, real(scales), indices.tensor
    zeros = None if zero_points is None else zero_points.tensor
    if packed and zeros is not None:
        zeros = unpacked(zeros, bits).narrow(-1, 0, factors.shape[-1])
    late = axis == at or factors.shape[at] != codes.shape[at]
    if not late:
        codes, factors = gather(codes, rows, axis=at), gather(factors, rows, axis=at)
        zeros = None if zeros is None else gather(zeros, rows, axis=at)
        axis += rows.ndim - 1 if axis > at else 0
    codes = (unpacked(codes, bits) if packed else codes).to(float32)
    size = block_size or codes.shape[axis]
    if zeros is not None:
        codes = codes - along(zeros.to(float32), codes, axis, size)
    elif packed:
        codes = codes - float(1 << (bits - 1))
    result = codes * along(factors, codes, axis, size)
    return Value(scales.element, gather(result, rows, axis=at) if late else result)
