"""Cross entropy of a linear layer with many classes, in chunks, so that memory never holds all logits."""

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

__all__ = ["linear_cross_entropy"]

# Imported on first call, because it imports graphs and with them networkx.
_checkpoint = deferred("graphc.control.checkpoint:checkpoint")

_POLICIES = ("auto", "accurate", "balanced", "compact")
_BY_SHAPE = "aspect_ratio"
_AUTO = f"{_BY_SHAPE}:2"


@dataclass(frozen=True)
class LinearCrossEntropyOptions:
    """Chunking of ``linear_cross_entropy``: the number of rows whose logits are in memory at a time.

    The logits of each chunk are recomputed for the gradient. Raises AttributeValueError.

    ``allow_retain_graph``, ``acc_policy`` and ``acc_dtype`` are accepted and have no effect: gradients of any order are
    supported, and sums are computed as in the layer and the loss.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None
    """Rows per chunk; None lets ``chunking_method`` decide."""
    chunking_method: str | None = "auto"
    """Rows per chunk by shape. ``aspect_ratio``: as many rows as make the logits as large as the layer's input, rounded
    up to a power of 2; ``aspect_ratio:N``: an Nth of them; ``auto``: half of them; None: all."""
    acc_policy: str = "auto"
    acc_dtype: Any = None

    def __post_init__(self) -> None:
        if self.acc_policy not in _POLICIES:
            raise AttributeValueError(f"acc_policy {self.acc_policy!r} is not known", remedy=f"pass one of {_POLICIES}")
        if self.batch_chunk_size is not None and self.batch_chunk_size < 1:
            raise AttributeValueError(
                f"batch_chunk_size is {self.batch_chunk_size}", remedy="pass a number of 1 or more, or None"
            )
        if self.chunking_method not in (None, "auto"):
            name, _, divisor = self.chunking_method.partition(":")
            if name != _BY_SHAPE or not (divisor or "1").isdigit() or int(divisor or "1") < 1:
                raise AttributeValueError(
                    f"chunking_method {self.chunking_method!r} is not known", remedy=f'pass "auto", "{_AUTO}" or None'
                )

    def rows(self, batch: int, features: int, classes: int) -> int:
        """Return the number of rows per chunk for a batch of this size."""
        if self.batch_chunk_size is not None or self.chunking_method is None:
            return self.batch_chunk_size or max(batch, 1)
        method = _AUTO if self.chunking_method == "auto" else self.chunking_method
        balanced = math.ceil(batch / math.ceil(classes / max(features, 1)))
        power_of_2 = 1 << max(balanced - 1, 0).bit_length()
        return max(power_of_2 // int(method.partition(":")[2] or 1), 1)


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
    """Compute ``cross_entropy(linear(input, linear_weight, linear_bias), target, ...)``.

    Shapes: input [features] or [batch, features], weight [classes, features] or [classes, ..., features], bias
    [classes, ...]. A target of class indices is [batch, ...], with the further dimensions of the weight.

    With ``options`` the batch is processed in chunks, so that memory never holds all logits. That applies to class
    indices without smoothing and a weight with two dimensions; elsewhere the options have no effect. Raises ShapeError,
    and AttributeValueError for an ``ignore_index`` (else -100) together with probabilities.
    """
    shape = _shape_of_logits(input, linear_weight, linear_bias)
    if target.shape == shape and ignore_index is not None:
        raise AttributeValueError("ignore_index needs class indices, but the target holds probabilities")
    reduction_name = reduction_of(reduction)
    ignored = -100 if ignore_index is None else ignore_index
    at_once = label_smoothing or len(shape) != 2 or not target.dtype.is_integer or target.shape != shape[:1]
    if options is not None and not at_once:
        rows = options.rows(*shape[:1], *linear_weight.shape[::-1])
        return _in_chunks(rows, input, (linear_weight, linear_bias), target, weight, reduction_name, ignored)
    flat = linear_weight.reshape(-1, linear_weight.shape[-1])
    logits = linear(input, flat, None if linear_bias is None else linear_bias.reshape(-1)).reshape(*shape)
    return cross_entropy(logits, target, weight, None, ignored, None, reduction_name, label_smoothing)


def _shape_of_logits(input: Tensor, weight: Tensor, bias: Tensor | None) -> tuple[int, ...]:
    name, shapes = "linear_cross_entropy", f"{list(input.shape)} and {list(weight.shape)}"
    if input.ndim not in (1, 2) or weight.ndim < 2:
        raise ShapeError(
            f"{name}: input and weight have shapes {shapes}", remedy="pass [batch, features] and [classes, features]"
        )
    if input.shape[-1] != weight.shape[-1]:
        raise ShapeError(f"{name}: input and weight differ in their last dimension: {shapes}")
    if bias is not None and bias.shape != weight.shape[:-1]:
        raise ShapeError(
            f"{name}: the bias has shape {list(bias.shape)}", remedy=f"pass a bias of shape {list(weight.shape[:-1])}"
        )
    if weight.ndim > 2 and input.ndim == 1:
        raise ShapeError(f"{name}: a weight {list(weight.shape)} needs a batch", remedy="pass input.unsqueeze(0)")
    return (*input.shape[:-1], *weight.shape[:-1])


def _in_chunks(
    rows: int,
    input: Tensor,
    layer: tuple[Tensor, Tensor | None],
    target: Tensor,
    weight: Tensor | None,
    reduction: str,
    ignore_index: int,
) -> Tensor:
    chunk_reduction = "none" if reduction == "none" else "sum"

    def chunk_loss(x: Tensor, labels: Tensor) -> Tensor:
        return cross_entropy(linear(x, *layer), labels, weight, None, ignore_index, None, chunk_reduction)

    losses = [_checkpoint(chunk_loss, x, t) for x, t in zip(input.split(rows), target.split(rows), strict=True)]
    if reduction == "none":
        return cat(losses)
    total = fold(ew.add, losses)
    if reduction == "sum":
        return total
    counted = ew.ne(target, ignore_index)
    weights = counted.to(total.dtype) if weight is None else ew.where(counted, weight[ew.where(counted, target, 0)], 0)
    return ew.div(total, reduced(weights, "sum"))
