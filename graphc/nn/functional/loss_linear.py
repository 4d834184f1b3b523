"""The cross entropy of a linear layer's results, of many classes, without all of these results in memory at a time."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce as fold
from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.lazy import deferred
from graphc.nn.functional.linear import linear
from graphc.nn.functional.loss import cross_entropy, reduced, reduction_of
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.free_functions import cat
from graphc.tensors.tensor import Tensor

# Loaded when it is called: it knows graphs, which load networkx.
_checkpoint = deferred("graphc.control.checkpoint:checkpoint")

_POLICIES = ("auto", "accurate", "balanced", "compact")
_BY_SHAPE = "aspect_ratio"
_AUTO = f"{_BY_SHAPE}:2"


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """How ``linear_cross_entropy`` goes through a batch: so many rows at a time, of each of which the results of the
    linear layer are computed once more for the gradient. Raises AttributeValueError.

    ``allow_retain_graph``, ``acc_policy`` and ``acc_dtype`` are accepted and change nothing: gradients of any order are
    there, and sums are those of the layer and the loss."""

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    """Rows at a time; None: as ``chunking_method`` says."""
    chunking_method: str | None = "auto"
    """``aspect_ratio``: as many rows as make the results of the layer as large as its input, rounded up to a power of
    2; ``aspect_ratio:N``: an Nth of them; ``auto``: a half of them; None: all."""
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise AttributeValueError(f"acc_policy {self.acc_policy!r} is not known", remedy=f"one of {_POLICIES}")
        if self.batch_chunk_size is not None and self.batch_chunk_size < 1:
            raise AttributeValueError(f"batch_chunk_size is {self.batch_chunk_size}", remedy="1 or more, or None")
        if self.chunking_method not in (None, "auto"):
            name, _, part = self.chunking_method.partition(":")
            if name != _BY_SHAPE or not (part or "1").isdigit() or int(part or "1") < 1:
                raise AttributeValueError(
                    f"chunking_method {self.chunking_method!r} is not known", remedy=f'"auto", "{_AUTO}" or None'
                )

    def rows(self, batch: int, features: int, classes: int) -> int:
        """Rows at a time, of a batch of so many."""
        if self.batch_chunk_size is not None or self.chunking_method is None:
            return self.batch_chunk_size or max(batch, 1)
        method = _AUTO if self.chunking_method == "auto" else self.chunking_method
        wanted = math.ceil(batch / math.ceil(classes / max(features, 1)))
        whole = 1 << max(wanted - 1, 0).bit_length()
        return max(whole // int(method.partition(":")[2] or 1), 1)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """``cross_entropy(linear(input, linear_weight, linear_bias), target, ...)`` for an input [features] or [batch,
    features], a weight [classes, features] or [classes, ..., features] and a bias [classes, ...]; further dimensions of
    the weight are those of the target [batch, ...].

    With ``options`` the batch goes through both in parts, so that never all results of the layer are in memory: for
    class numbers without smoothing, and a weight with two dimensions; they change nothing elsewhere. Raises ShapeError,
    and AttributeValueError for an ``ignore_index`` (else -100) beside probabilities.
    """
    shape = _shape_of_logits(input, linear_weight, linear_bias)
    if target.shape == shape and ignore_index is not None:
        raise AttributeValueError("ignore_index is for class numbers, the target holds probabilities")
    how = reduction_of(reduction)
    ignored = -100 if ignore_index is None else ignore_index
    whole = label_smoothing or len(shape) != 2 or not target.dtype.is_integer or target.shape != shape[:1]
    if options is not None and not whole:
        rows = options.rows(*shape[:1], *linear_weight.shape[::-1])
        return _in_parts(rows, input, (linear_weight, linear_bias), target, weight, how, ignored)
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1)).reshape(*shape)
    return cross_entropy(logits, target, weight, None, ignored, None, how, label_smoothing)


def _shape_of_logits(input: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[int, ...]:
    name, shapes = "linear_cross_entropy", f"{list(input.shape)} and {list(weight.shape)}"
    if input.ndim not in (1, 2) or weight.ndim < 2:
        raise ShapeError(f"{name}: input and weight are {shapes}", remedy="[batch, features] and [classes, features]")
    if input.shape[-1] != weight.shape[-1]:
        raise ShapeError(f"{name}: input and weight have different features: {shapes}")
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise ShapeError(f"{name}: the bias is {list(bias.shape)}", remedy=f"{list(weight.shape[:-1])}")
    if weight.ndim > 2 and input.ndim == 1:
        raise ShapeError(f"{name}: a weight {list(weight.shape)} needs a batch", remedy="input.unsqueeze(0)")
    return (*input.shape[:-1], *weight.shape[:-1])


def _in_parts(
    rows: int,
    input: Tensor,
    layer: tuple[Tensor, Tensor | None],
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> Tensor:
    kept = "none" if reduction == "none" else "sum"

    def part(x: Tensor, wanted: Tensor) -> Tensor:
        return cross_entropy(linear(x, *layer), wanted, weight, None, ignore_index, None, kept)

    parts = [_checkpoint(part, x, t) for x, t in zip(input.split(rows), target.split(rows), strict=True)]
    if reduction == "none":
        return cat(parts)
    total = fold(ew.add, parts)
    if reduction == "sum":
        return total
    counted = ew.ne(target, ignore_index)
    share = counted.to(total.dtype) if weight is None else ew.where(counted, weight[ew.where(counted, target, 0)], 0)
    return ew.div(total, reduced(share, "sum"))
