"""Layers whose weights stay codes with scales: matrices, and tables of tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.base.dtypes import float32, int32
from graphc.llm.blocks import unpack
from graphc.llm.gguf_file import GgufTensor
from graphc.nn import functional as F
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter
from graphc.ops.contraction.group_product import group_matmul, panels_of
from graphc.ops.contraction.nibble_product import NIBBLES, nibble_matmul, words_of
from graphc.tensors.creation import arange
from graphc.tensors.creation import tensor as tensor_of
from graphc.tensors.tensor import Tensor

__all__ = ["BlockLinear", "BlockTable", "BlockWeight"]


class BlockWeight(Module):
    """Matrix [N, K] of codes in groups of neighbours along K: an element is ``code * scale + offset`` of its group.

    ``codes`` are words of eight 4-bit codes i32[P, K / 8, W], or i8[P, K, W], in P panels of W rows of the matrix;
    ``scales`` and ``offsets`` are [P, groups, W]. Products read them as they are.
    """

    codes: Tensor
    scales: Tensor
    offsets: Tensor | None

    def __init__(self, codes: Tensor, scales: Tensor, offsets: Tensor | None, format: str = ""):
        super().__init__()
        self.format = format
        self.register_buffer("codes", codes)
        self.register_buffer("scales", scales)
        self.register_buffer("offsets", offsets)

    @classmethod
    def of(cls, tensor: GgufTensor) -> BlockWeight:
        """Repack the blocks of a matrix. Codes and scales do not change; the offsets of 4-bit formats, which those from
        0 to 15 have, are rounded to f32 when they move to codes from -8 to 7."""
        codes, scales, offsets = unpack(tensor.format, tensor.blocks)
        narrow = scales.astype(np.float16)
        stored = words_of(codes.T) if tensor.format.bits == 4 else codes.T
        scales = narrow if np.array_equal(narrow, scales) else scales
        # NOTE: compiled code packs copies once, but arrays that numpy could write to in every call.
        arrays = [
            None if a is None else tensor_of(panels_of(a))
            for a in (stored, scales.T, None if offsets is None else offsets.T)
        ]
        return cls(*arrays, tensor.format.name)  # type: ignore[arg-type]

    @property
    def shape(self) -> tuple[int, int]:
        """Return the sizes [N, K] of the matrix."""
        panels, depth, width = self.codes.shape
        return panels * width, depth * (NIBBLES if self.codes.dtype is int32 else 1)

    def product(self, x: Tensor) -> Tensor:
        """Return the products [..., N] of rows [..., K] with all rows of the matrix, in f32."""
        rows = x.reshape(1, -1) if x.ndim == 1 else x
        multiply: Any = nibble_matmul if self.codes.dtype is int32 else group_matmul
        result = multiply(rows, self.codes, self.scales.to(float32))
        if self.offsets is not None:
            sums = rows.reshape(-1, self.scales.shape[1], rows.shape[-1] // self.scales.shape[1]).sum(-1)
            result = result + (sums @ self.offsets).transpose(0, 1).reshape(result.shape)
        return result.reshape(*x.shape[:-1], self.shape[0])

    def rows(self, index: Tensor) -> Tensor:
        """Return the rows f32[..., K] of integers [...]."""
        flat = index.reshape(-1, 1)
        picked = [None if t is None else _picked(t, flat) for t in (self.codes, self.scales, self.offsets)]
        return _elements(*picked).reshape(*index.shape, self.shape[1])

    def dense(self) -> Tensor:
        """Return all elements f32[N, K]."""
        turned = [
            None if t is None else t.transpose(1, 2).flatten(0, 1) for t in (self.codes, self.scales, self.offsets)
        ]
        return _elements(*turned)

    def extra_repr(self) -> str:
        return f"{self.format}, {self.shape}"


def _picked(panels: Tensor, row: Tensor) -> Tensor:
    """Return the rows [n, K] of integers [n, 1] of a matrix in panels [P, K, W]."""
    _, depth, width = panels.shape
    place = row // width * (depth * width) + arange(depth) * width + row % width
    return panels.reshape(-1)[place]  # NOTE: an index for each dimension would turn the whole matrix around first.


def _elements(codes: Any, scales: Any, offsets: Any) -> Tensor:
    """Return the elements f32[n, K] of codes with scales and offsets [n, groups]."""
    rows = codes.shape[0]
    if codes.dtype is int32:
        up = 28 - 4 * arange(NIBBLES, dtype=int32)
        codes = (codes[:, :, None] << up) >> 28
    values = codes.to(float32).reshape(*scales.shape, -1) * scales.to(float32)[:, :, None]
    return (values if offsets is None else values + offsets[:, :, None]).reshape(rows, -1)


class BlockLinear(Module):
    """``x @ weight.T + bias`` whose weight is codes with scales. In training mode the weight is a constant f32 matrix,
    and gradients reach the input."""

    bias: Parameter | None

    def __init__(self, weight: BlockWeight, bias: Parameter | None = None):
        super().__init__()
        self.weight = weight
        self.out_features, self.in_features = weight.shape
        self.register_parameter("bias", bias)

    def forward(self, input: Tensor) -> Tensor:
        """Map [..., in_features] to [..., out_features]."""
        if self.training:
            return F.linear(input, self.weight.dense(), self.bias)
        result = self.weight.product(input)
        return result if self.bias is None else result + self.bias

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class BlockTable(Module):
    """Table of vectors [count, width] of codes with scales, which also serves as the matrix of the logits."""

    def __init__(self, weight: BlockWeight):
        super().__init__()
        self.weight = weight
        self.num_embeddings, self.embedding_dim = weight.shape

    def forward(self, index: Tensor) -> Tensor:
        """Return the vectors [..., width] of integers [...]."""
        return self.weight.rows(index)

    def project(self, hidden: Tensor) -> Tensor:
        """Return the products [..., count] of vectors [..., width] with all rows."""
        return F.linear(hidden, self.weight.dense()) if self.training else self.weight.product(hidden)
