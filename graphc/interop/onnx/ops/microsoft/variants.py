"""Rules of com.microsoft operators that ONNX has in another form, or that search and distance algorithms use."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.errors import UnsupportedError
from graphc.interop.onnx.ops.convolutions import conv_transpose
from graphc.interop.onnx.ops.generators import range_
from graphc.interop.onnx.ops.indexing import gather_nd, unique
from graphc.interop.onnx.ops.slicing import pad, trilu
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.tensors.tensor import Tensor

op("GatherND", domain=MICROSOFT)(gather_nd)
op("Trilu", domain=MICROSOFT, host="k")(trilu)


@op("Pad", domain=MICROSOFT, host="pads value")
def pad_by_input(data: Tensor, pads: Any, value: Any = None, *, mode: str = "constant") -> Tensor:
    """Pad by sizes that may be a matrix of one row."""
    return pad(data, np.asarray(pads).reshape(-1).tolist(), value, mode=mode)


@op("Range", domain=MICROSOFT, host="start limit delta", values=True)
def range_by_one(start: Value, limit: Value, delta: Value | None = None) -> Value:
    """Return numbers from ``start`` to before ``limit`` in steps of ``delta`` or of 1."""
    return range_(start, limit, delta or Value(start.element, None, np.ones((), start.element.numpy)))


@op("ExpandDims", domain=MICROSOFT, host="axis")
def expand_dims(x: Tensor, axis: Any) -> Tensor:
    return x.unsqueeze(int(np.asarray(axis).reshape(-1)[0]))


@op("Inverse", domain=MICROSOFT)
def inverse(x: Tensor) -> Tensor:
    return x.inverse()


@op("Unique", domain=MICROSOFT)
def unique_in_order(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return distinct elements in the order of first occurrence, the indices of all elements in them, and counts."""
    distinct, _, indices, counts = unique(x, sorted=0)
    return distinct, indices, counts


@op("UnfoldTensor", domain=MICROSOFT)
def unfold_tensor(x: Tensor, *, dim: int = -1, size: int, step: int = 1) -> Tensor:
    return x.unfold(dim, size, step)


@op("CDist", domain=MICROSOFT)
def distances(a: Tensor, b: Tensor, *, metric: str = "sqeuclidean") -> Tensor:
    """Return the distance of each row of ``a`` from each of ``b``."""
    if metric not in ("sqeuclidean", "euclidean"):
        raise UnsupportedError(f"com.microsoft.CDist with the metric {metric[:40]!r}")
    difference = a.unsqueeze(1) - b.unsqueeze(0)
    total = (difference * difference).sum(2)
    return total.sqrt() if metric == "euclidean" else total


@op("ScaledSiLU", domain=MICROSOFT)
def scaled_silu(x: Tensor, scale: Tensor | None = None, *, alpha: float = 1.0) -> Tensor:
    scaled = x * (alpha if scale is None else scale)
    return scaled * scaled.sigmoid()


@op("ConvTransposeWithDynamicPads", domain=MICROSOFT, host="pads")
def conv_transpose_with_pads(
    x: Tensor, w: Tensor, pads: Any = None, b: Tensor | None = None, **attributes: Any
) -> Tensor:
    """Compute ConvTranspose with padding that is an input."""
    return conv_transpose(x, w, b, pads=pads, **attributes)


@op("NGramRepeatBlock", domain=MICROSOFT)
def block_repeated_ngrams(ids: Tensor, scores: Tensor, *, ngram_size: int) -> Tensor:
    """Set to -inf the scores of tokens that would repeat ``ngram_size`` tokens of a row."""
    count = ids.shape[1] - ngram_size + 1
    tokens = ids.narrow(1, ngram_size - 1, count)
    bound = scores.new_full((), -math.inf).expand(*tokens.shape)
    for i in range(ngram_size - 1):
        repeats = ids.narrow(1, i, count).eq(ids.narrow(1, count + i, 1))
        bound = bound.where(repeats, math.inf)
    return scores.scatter_reduce(1, tokens.to("int64"), bound, "amin")
