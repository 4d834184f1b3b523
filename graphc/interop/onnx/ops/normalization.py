"""Rules of ONNX operators that normalize by statistics, and of dropout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from graphc.interop.onnx.registry import op
from graphc.nn import functional as F
from graphc.nn.functional.spatial import padded
from graphc.tensors.creation import ones_like, rand
from graphc.tensors.tensor import Tensor


@op("BatchNormalization")
def batch_normalization_spatial(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    spatial: int = 1,
) -> Tensor:
    """Normalize by the running statistics (versions 7 and 9) of channels or, without ``spatial``, of each element."""
    if spatial:
        return _by_channels(x, scale, b, mean, var, epsilon)
    return (x - mean) * (var + epsilon).rsqrt() * scale + b


@op("BatchNormalization", since=14)
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    b: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    call: Any,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
) -> Any:
    """Normalize by the running statistics, or in training by the batch statistics, which update the running ones."""
    if not training_mode:
        return _by_channels(x, scale, b, mean, var, epsilon)
    axes = (0, *range(2, len(x.shape)))
    batch_mean, batch_var = x.mean(axes), x.var(axes, False)
    result = _by_channels(x, scale, b, batch_mean, batch_var, epsilon)
    running = [
        old * momentum + new.to(old.dtype) * (1.0 - momentum) for old, new in ((mean, batch_mean), (var, batch_var))
    ]
    return (result, *running) if call.outputs > 1 else result


def _by_channels(x: Tensor, scale: Tensor, b: Tensor, mean: Tensor, var: Tensor, epsilon: float) -> Tensor:
    parameters = [t if t.dtype is x.dtype else t.to(x.dtype) for t in (mean, var, scale, b)]
    return F.batch_norm(x, *parameters, training=False, eps=epsilon)


@op("InstanceNormalization")
def instance_normalization(x: Tensor, scale: Tensor, b: Tensor, *, epsilon: float = 1e-5) -> Tensor:
    return F.group_norm(x, x.shape[1], scale, b, epsilon)


# ONNX Runtime's optimizer also writes it to models of earlier versions.
@op("LayerNormalization")
def layer_normalization(
    x: Tensor,
    scale: Tensor,
    b: Tensor | None = None,
    *,
    call: Any,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Any:
    """Normalize over the dimensions from ``axis`` on. Further results are mean and inverse standard deviation."""
    first = axis % len(x.shape)
    result = layer_norm(x, first, scale, b, epsilon)
    return (result, *statistics(x, first, epsilon)) if call.outputs > 1 else result


def layer_norm(x: Tensor, first: int, scale: Tensor | None, b: Tensor | None, epsilon: float) -> Tensor:
    """Apply ``F.layer_norm`` over the dimensions from ``first`` on. Scale and bias broadcast."""
    shape = tuple(x.shape[first:])
    if all(t is None or tuple(t.shape) == shape for t in (scale, b)):
        return F.layer_norm(x, shape, scale, b, epsilon)
    return _scaled(F.layer_norm(x, shape, None, None, epsilon), scale, b)


def _scaled(x: Tensor, scale: Tensor | None, b: Tensor | None) -> Tensor:
    x = x if scale is None else x * scale
    return x if b is None else x + b


def statistics(x: Tensor, first: int, epsilon: float) -> tuple[Tensor, Tensor]:
    """Return mean and inverse standard deviation over the dimensions from ``first`` on."""
    axes = tuple(range(first, len(x.shape)))
    return x.mean(axes, keepdim=True), (x.var(axes, False, keepdim=True) + epsilon).rsqrt()


@op("RMSNormalization", since=23)
def rms_normalization(
    x: Tensor, scale: Tensor, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1
) -> Tensor:
    return rms_norm(x, axis % len(x.shape), scale, epsilon)


def rms_norm(x: Tensor, first: int, scale: Tensor, epsilon: float) -> Tensor:
    """Apply ``F.rms_norm`` over the dimensions from ``first`` on. The scale broadcasts."""
    shape = tuple(x.shape[first:])
    if tuple(scale.shape) == shape:
        return F.rms_norm(x, shape, scale, epsilon)
    return F.rms_norm(x, shape, None, epsilon) * scale


@op("GroupNormalization", since=18)
def group_normalization_by_groups(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, num_groups: int
) -> Tensor:
    """Normalize groups of channels (version 18), with one scale and bias for each group."""
    each = x.shape[1] // num_groups
    return F.group_norm(x, num_groups, scale.repeat_interleave(each), bias.repeat_interleave(each), epsilon)


@op("GroupNormalization", since=21)
def group_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5, num_groups: int, stash_type: int = 1
) -> Tensor:
    return F.group_norm(x, num_groups, scale, bias, epsilon)


@op("LRN")
def local_response_normalization(
    x: Tensor, *, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0, size: int
) -> Tensor:
    """Normalize over ``size`` neighbouring channels. For an even size the window has one more channel after than
    before."""
    around = (((size - 1) // 2, size // 2), *((0, 0),) * (len(x.shape) - 2))
    squares = padded(x * x, around)
    total = squares.narrow(1, 0, x.shape[1])
    for i in range(1, size):
        total = total + squares.narrow(1, i, x.shape[1])
    return x / (total * (alpha / size) + bias).pow(beta)


@op("Dropout")
def dropout_of_inference(data: Tensor, *, call: Any, ratio: float = 0.5, seed: int = 0) -> Any:
    """Return the input unchanged (before version 12)."""
    return (data, ones_like(data)) if call.outputs > 1 else data


@op("Dropout", since=12, host="ratio training_mode")
def dropout(
    data: Tensor,
    ratio: float | None = None,
    training_mode: bool | None = None,
    *,
    call: Any,
    seed: int | None = None,
) -> Any:
    """Set random elements to 0 in training, by graphc's generator."""
    probability = 0.5 if ratio is None else float(_first(ratio))
    if training_mode is None or not _first(training_mode) or probability == 0.0:
        return (data, ones_like(data, dtype="bool")) if call.outputs > 1 else data
    if call.outputs < 2:
        return F.dropout(data, probability, True)
    mask = rand(*data.shape) >= probability
    return data.where(mask, 0.0) * (1.0 / (1.0 - probability) if probability < 1.0 else math.inf), mask


def _first(value: Any) -> Any:
    return value[0] if isinstance(value, Sequence) else value
