"""Losses of classification: cross entropy, negative log likelihood, binary cross entropy, divergence."""

from __future__ import annotations

import math
import warnings
from functools import reduce as fold
from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.lazy import deferred
from graphc.base.records import dataclass
from graphc.nn.functional.activation import logsigmoid
from graphc.nn.functional.affine import linear
from graphc.ops.define import no_tensor
from graphc.ops.effects.state import stop_gradient, straight_through
from graphc.ops.pointwise import elementary
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.ops.selection import index
from graphc.tensors import composite
from graphc.tensors.free_functions import cat
from graphc.tensors.indexing import require
from graphc.tensors.mixed import loss
from graphc.tensors.native import native_after_compiled
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "gaussian_nll_loss", "kl_div"]
__all__ += ["linear_cross_entropy", "nll_loss"]


REDUCTIONS = ("mean", "sum", "none")


def reduction_of(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """Return the name of a reduction, also from the two flags of old programs.

    Raises AttributeValueError for an unknown name.
    """
    if size_average is not None or reduce is not None:
        warnings.warn("size_average and reduce are deprecated; pass reduction=", stacklevel=3)
        if reduce is False:
            return "none"
        return "sum" if size_average is False else "mean"
    if reduction not in REDUCTIONS:
        raise AttributeValueError(f"reduction {reduction!r} is not known", remedy=f"pass one of {REDUCTIONS}")
    return reduction


def reduced(loss: Tensor, reduction: str) -> Tensor:
    """Reduce the elements to their mean or sum, or return them unchanged."""
    if reduction == "none":
        return loss
    return composite.mean(loss) if reduction == "mean" else composite.total(loss)


@native_after_compiled
@loss
@compiled_when_repeated
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """Compute the negative log likelihood of the softmax of ``input`` [classes], [batch, classes] or [batch, classes,
    ...].

    ``target`` holds class indices (the shape of the input without classes), or probabilities (the shape of the input).
    ``weight`` [classes] scales classes; ``mean`` divides by the sum of the weights of the targets. Targets equal to
    ``ignore_index`` do not count. ``label_smoothing`` mixes the target with the uniform distribution.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.cross_entropy(gc.zeros(2, 4), gc.tensor([0, 3]))
        tensor(1.3863)
    """
    reduction_name = reduction_of(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise AttributeValueError(f"cross_entropy: label_smoothing {label_smoothing} is not between 0 and 1")
    if not isinstance(target, Tensor):
        raise no_tensor("cross_entropy", target)
    axis = _class_axis("cross_entropy", input)
    logs = composite.log_softmax(input, axis)
    if target.dtype.is_floating_point:
        return _soft_cross_entropy(logs, target, weight, label_smoothing, reduction_name, axis)
    return _likelihood(logs, target, weight, ignore_index, label_smoothing, reduction_name, axis)


@native_after_compiled
@loss
@compiled_when_repeated
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Negate the element of ``input`` (log-probabilities) at each target class; see ``cross_entropy`` for the rest."""
    reduction_name = reduction_of(reduction, size_average, reduce)
    return _likelihood(input, target, weight, ignore_index, 0.0, reduction_name, _class_axis("nll_loss", input))


def _class_axis(name: str, input: Tensor) -> int:
    if not input.shape:
        raise ShapeError(f"{name}: the input has no dimension for classes")
    return 0 if len(input.shape) == 1 else 1


def _likelihood(
    logs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    smoothing: float,
    reduction: str,
    axis: int,
) -> Tensor:
    _check_classes(logs, target, ignore_index, axis)
    target = target.to(int64) if target.dtype.bits == 8 else target
    classes = logs.shape[axis]
    indices = index.iota(shape=(classes,), axis=0, dtype=target.dtype).reshape(-1, *(1,) * (len(logs.shape) - axis - 1))
    labels = target.reshape(*target.shape[:axis], 1, *target.shape[axis:])
    chosen = ew.eq(labels, indices)
    counts = ew.ne(target, ignore_index)
    if 0 <= ignore_index < classes:
        chosen = ew.logical_and(chosen, counts.reshape(*labels.shape))
    scale = None if weight is None else _class_weight(logs, weight, axis)
    scaled = logs if scale is None else ew.mul(logs, scale)
    loss = ew.neg(reduce.sum(ew.where(chosen, scaled, 0), axes=(axis,), keepdims=False))
    if scale is None:
        divisor = counts.to(logs.dtype)
    else:
        divisor = reduce.sum(ew.where(chosen, scale, 0), axes=(axis,), keepdims=False)
    if smoothing:
        uniform = ew.neg(reduce.sum(scaled, axes=(axis,), keepdims=False))
        uniform = ew.where(counts, uniform, 0)
        loss = ew.add(ew.mul(loss, 1.0 - smoothing), ew.mul(uniform, smoothing / classes))
    if reduction == "mean":
        return ew.div(composite.total(loss), composite.total(divisor))
    return reduced(loss, reduction)


def _check_classes(logs: Tensor, target: Tensor, ignore_index: int, axis: int) -> None:
    expected = (*logs.shape[:axis], *logs.shape[axis + 1 :])
    if tuple(target.shape) != expected:
        raise ShapeError(
            f"targets have shape {list(target.shape)}, the input {list(logs.shape)} needs {list(expected)}",
            remedy="pass class indices without the class dimension, or probabilities (floating point) in the input's "
            "shape",
        )
    if not target.dtype.is_integer:
        raise DTypeError(f"class indices must be integers, got {target.dtype.name}", remedy="pass target.long()")
    require(target, 0, logs.shape[axis] - 1, "target", (ignore_index,))


def _class_weight(logs: Tensor, weight: Tensor, axis: int) -> Tensor:
    if tuple(weight.shape) != (logs.shape[axis],):
        raise ShapeError(f"class weights have shape {list(weight.shape)}, expected [{logs.shape[axis]}]")
    return weight.reshape(-1, *(1,) * (len(logs.shape) - axis - 1))


def _soft_cross_entropy(
    logs: Tensor, target: Tensor, weight: Tensor | None, smoothing: float, reduction: str, axis: int
) -> Tensor:
    if tuple(target.shape) != tuple(logs.shape):
        raise ShapeError(
            f"cross_entropy: probabilities {list(target.shape)} do not have the shape {list(logs.shape)} of the input",
            remedy="pass integers for class indices: target.long()",
        )
    classes = logs.shape[axis]
    if smoothing:
        target = ew.add(ew.mul(target, 1.0 - smoothing), smoothing / classes)
    terms = ew.mul(logs, target)
    terms = terms if weight is None else ew.mul(terms, _class_weight(logs, weight, axis))
    loss = ew.neg(reduce.sum(terms, axes=(axis,), keepdims=False))
    return reduced(loss, reduction)


@native_after_compiled
@loss
@compiled_when_repeated
def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Compute ``-(target log(input) + (1 - target) log(1 - input))`` for probabilities.

    Logarithms are taken as at least -100.
    """
    check_same_shape("binary_cross_entropy", input, target)
    _check_probabilities(input._data)
    reduction_name = reduction_of(reduction, size_average, reduce)
    loss = _binary_entropy(input, target)
    return reduced(loss if weight is None else ew.mul(loss, weight), reduction_name)


def _check_probabilities(values: Any) -> None:
    """Raise AttributeValueError for values outside of 0..1; values of a trace are not known."""
    if not isinstance(values, np.ndarray) or not values.size or (values.min() >= 0 and values.max() <= 1):
        return
    count = np.count_nonzero(np.isnan(values))
    if count:
        raise AttributeValueError(
            f"binary_cross_entropy: {count} of {values.size} elements of the input are NaN",
            remedy="look for the first NaN in the model that computes the input: gc.debug(model)",
        )
    raise AttributeValueError(
        "binary_cross_entropy: the input has elements outside of 0..1",
        remedy="use binary_cross_entropy_with_logits",
    )


_SATURATED = 1e-12
"""Least ``x (1 - x)`` by which the gradient of ``binary_cross_entropy`` divides, as in PyTorch."""


def _binary_entropy(x: Any, target: Any) -> Any:
    """Compute the elements of ``binary_cross_entropy``, with the gradient ``(x - target) / max(x (1 - x), 1e-12)``.

    Logarithms of saturated probabilities have no gradient to x; a parabola that is 0 at x has it there.
    """
    saturated = ew.lt(ew.mul(x, ew.sub(1.0, x)), _SATURATED)
    fixed = stop_gradient(x)
    inside = ew.where(saturated, fixed, x)
    positive = ew.maximum(mathematics.log(inside), -100.0)
    negative = ew.maximum(mathematics.log1p(ew.neg(inside)), -100.0)
    entropy = ew.neg(ew.add(ew.mul(target, positive), ew.mul(ew.sub(1.0, target), negative)))
    parabola = ew.mul(ew.sub(x, fixed), ew.sub(ew.mul(ew.add(x, fixed), 0.5), target))
    return ew.add(entropy, ew.where(saturated, ew.mul(parabola, 1.0 / _SATURATED), 0))


@native_after_compiled
@loss
@compiled_when_repeated
def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """Compute ``binary_cross_entropy`` of sigmoid(input) without overflow; ``pos_weight`` scales positive targets."""
    check_same_shape("binary_cross_entropy_with_logits", input, target)
    reduction_name = reduction_of(reduction, size_average, reduce)
    log_positive = logsigmoid(input)
    if pos_weight is not None:
        scale = ew.add(ew.mul(ew.sub(pos_weight, 1.0), target), 1.0)
        log_positive = ew.mul(log_positive, scale)
    loss = ew.sub(ew.mul(ew.sub(1.0, target), input), log_positive)
    return reduced(loss if weight is None else ew.mul(loss, weight), reduction_name)


def check_same_shape(name: str, input: Tensor, target: Tensor) -> None:
    """Raise ShapeError when input and target differ in shape."""
    if tuple(input.shape) != tuple(target.shape):
        raise ShapeError(f"{name}: the input has shape {list(input.shape)}, the target {list(target.shape)}")


@native_after_compiled
@loss
@compiled_when_repeated
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """Compute ``target (log(target) - input)`` for log-probabilities ``input``; 0 where the target is 0, NaN below.

    With ``log_target`` the targets are logarithms too. ``batchmean`` divides the sum by the first dimension, which
    gives the divergence as it is defined.
    """
    reduction_name = "sum" if reduction == "batchmean" else reduction_of(reduction, size_average, reduce)
    if log_target:
        loss = ew.mul(mathematics.exp(target), ew.sub(target, input))
    else:
        loss = ew.sub(elementary.xlogy(target, target), ew.mul(target, input))
    result = reduced(loss, reduction_name)
    return ew.mul(result, 1.0 / input.shape[0]) if reduction == "batchmean" and input.shape else result


@native_after_compiled
@loss
@compiled_when_repeated
def gaussian_nll_loss(
    input: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """Compute ``(log(var) + (input - target)^2 / var) / 2`` with ``var`` at least ``eps``; ``full`` adds the constant.

    ``var`` has the shape of ``input``; for one variance per row, its last dimension is 1 or missing.
    """
    if isinstance(var, Tensor) and var.shape != input.shape and var.shape == input.shape[:-1]:
        var = var.unsqueeze(-1)
    # As in PyTorch the limit has no part in gradients, so that a small variance can grow again.
    spread = straight_through(var, ew.where(ew.lt(var, eps), eps, var)) if isinstance(var, Tensor) else max(var, eps)
    difference = ew.sub(input, target)
    log = mathematics.log(spread) if isinstance(spread, Tensor) else float(np.log(spread))
    loss = ew.mul(ew.add(ew.div(ew.mul(difference, difference), spread), log), 0.5)
    if full:
        loss = ew.add(loss, 0.5 * float(np.log(2 * np.pi)))
    return reduced(loss, reduction_of(reduction))


# Imported on first call, because it imports graphs, which eager programs do not need.
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
