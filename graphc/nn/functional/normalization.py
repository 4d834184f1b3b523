"""Normalisation by batch, layer, group and instance statistics."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.sizes.size import is_size
from graphc.ops.movement import shape as shapes
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.reduction import reduce
from graphc.tape.grad_mode import no_grad
from graphc.tensors import composite
from graphc.tensors.mixed import in_f32
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm", "local_response_norm", "rms_norm"]


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | Tensor = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel (dimension 1) of [batch, channels, ...].

    In training, uses the statistics of the batch, and also mixes them into ``running_mean`` and ``running_var`` in
    place with weight ``momentum`` (the variance as the unbiased one). Otherwise uses the running statistics.
    """
    if len(input.shape) < 2:
        if tuple(input.shape) == (0,):
            return ew.mul(input, 1.0)
        raise ShapeError(f"batch_norm: the input {list(input.shape)} has no channel dimension")
    if input.dtype.kind == "h":  # compute in f32
        wide = batch_norm(input.float(), running_mean, running_var, weight, bias, training, momentum, eps)
        return wide.to(input.dtype)
    _check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    if not training:
        if running_mean is None or running_var is None:
            raise AttributeValueError("batch_norm: evaluation needs running_mean and running_var")
        return _by_running_statistics(input, running_mean, running_var, weight, bias, eps)
    axes = (0, *range(2, len(input.shape)))
    count = prod(input.shape[a] for a in axes)
    if count == 1:
        raise AttributeValueError(
            f"batch_norm: training needs more than one value per channel, got input {list(input.shape)}",
            remedy="use a larger batch",
        )
    if _is_empty(input):  # Without statistics the running ones stay unchanged, and all gradients are 0.
        return _scaled(ew.mul(input, 1.0), _per_channel(weight, input), _per_channel(bias, input))
    result, mean, var = _by_statistics(input, weight, bias, eps)
    if running_mean is not None:
        _mix(running_mean, mean, momentum)
    if running_var is not None:
        _mix(running_var, var, momentum, count / (count - 1))
    return result


@compiled_when_repeated
def _by_statistics(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalise the input by the statistics of the batch; also return mean and variance, with their gradients."""
    axes = (0, *range(2, len(input.shape)))
    mean = composite.mean(input, axes, keepdim=True)
    centred = ew.sub(input, mean)
    var = composite.mean(ew.mul(centred, centred), axes, keepdim=True)
    normal = ew.mul(centred, mathematics.rsqrt(ew.add(var, eps)))
    return _scaled(normal, _per_channel(weight, input), _per_channel(bias, input)), mean, var


def batch_norm_across(
    gather: Callable[[Tensor], Tensor],
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float | Tensor,
    eps: float,
) -> Tensor:
    """Apply ``batch_norm`` in training with the joint statistics of several processes' batches.

    This process has one of the batches, which may be empty. ``gather`` maps the [1, n] of this process to the rows of
    all processes, with a gradient.

    Means and squared deviations are joined as in Chan, Golub and LeVeque (Updating Formulae and a Pairwise Algorithm
    for Computing Sample Variances, 1979), so that a large mean costs no digits.
    """
    if input.dtype.kind == "h":
        args = input.float(), running_mean, running_var, weight, bias, momentum, eps
        return batch_norm_across(gather, *args).to(input.dtype)
    _check_channels("batch_norm", input, running_mean, running_var, weight, bias)
    rows = gather(_moments(input))
    result, mean, var, unbiased = _by_moments(input, rows, weight, bias, eps)
    if running_mean is not None:
        _mix(running_mean, mean, momentum)
    if running_var is not None:
        _mix(running_var, var, momentum, unbiased)
    return result


@compiled_when_repeated
def _moments(input: Tensor) -> Tensor:
    """Return [1, 2 * channels + 1]: means, sums of squared deviations, and the number of values per channel."""
    axes = (0, *range(2, len(input.shape)))
    count = prod(input.shape[a] for a in axes)
    mean = ew.mul(reduce.sum(input, axes=axes, keepdims=True), 1.0 / max(count, 1))
    centred = ew.sub(input, mean)
    squares = reduce.sum(ew.mul(centred, centred), axes=axes, keepdims=True)
    counts = shapes.filled(float(count), input.dtype, (1, 1))
    return shapes.concat(mean.reshape(1, -1), squares.reshape(1, -1), counts, axis=1)


@compiled_when_repeated
def _by_moments(
    input: Tensor, rows: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Normalise the input by the moments of all batches; return it, mean, variance and the factor of the unbiased
    variance."""
    size = input.shape[1]
    means, squares, counts = rows[:, :size], rows[:, size : 2 * size], rows[:, 2 * size :]
    total = reduce.sum(counts, axes=(0,), keepdims=False)
    mean = ew.div(reduce.sum(ew.mul(means, counts), axes=(0,), keepdims=False), total)
    deviation = ew.sub(means, mean)
    var = ew.div(
        reduce.sum(ew.add(squares, ew.mul(ew.mul(deviation, deviation), counts)), axes=(0,), keepdims=False), total
    )
    normal = ew.mul(ew.sub(input, _per_channel(mean, input)), _per_channel(mathematics.rsqrt(ew.add(var, eps)), input))
    scaled = _scaled(normal, _per_channel(weight, input), _per_channel(bias, input))
    return scaled, mean, var, ew.div(total, ew.sub(total, 1.0))


def _check_channels(name: str, input: Tensor, *parameters: Tensor | None) -> None:
    """Raise ShapeError unless each parameter has one element per channel of the input."""
    for parameter in parameters:
        if parameter is not None and tuple(parameter.shape) != tuple(input.shape[1:2]):
            raise ShapeError(
                f"{name}: the input {list(input.shape)} has {input.shape[1]} channels (dim 1), the layer "
                f"{parameter.numel()}",
                remedy=f"pass an input with {parameter.numel()} channels",
            )


@compiled_when_repeated
def _by_running_statistics(
    input: Tensor, mean: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    scale = mathematics.rsqrt(ew.add(var, eps))
    scale = scale if weight is None else ew.mul(scale, weight)
    shift = ew.neg(ew.mul(mean, scale))
    shift = shift if bias is None else ew.add(shift, bias)
    return ew.add(ew.mul(input, _per_channel(scale, input)), _per_channel(shift, input))


def _mix(running: Tensor, value: Tensor, momentum: float | Tensor, factor: float | Tensor = 1.0) -> None:
    with no_grad():
        running.copy_(_mixed(running, value, momentum, factor))


def _is_empty(x: Tensor) -> bool:
    """Check whether a statically known size is 0."""
    return 0 in [extent for extent in x.shape if not is_size(extent)]


@compiled_when_repeated
def _mixed(running: Tensor, value: Tensor, momentum: float | Tensor, factor: float | Tensor) -> Tensor:
    value = value if type(factor) is float and factor == 1.0 else ew.mul(value, factor)
    return running * (1.0 - momentum) + value.detach().reshape(*running.shape) * momentum


def _per_channel(x: Tensor | None, input: Tensor) -> Tensor | None:
    return None if x is None else x.reshape(-1, *(1,) * (len(input.shape) - 2))


def _scaled(x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
    x = x if weight is None else ew.mul(x, weight)
    return x if bias is None else ew.add(x, bias)


@in_f32
@compiled_when_repeated
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise over the last dimensions, whose shape is ``normalized_shape``; weight and bias have that shape."""
    axes = _last_axes("layer_norm", input, normalized_shape, weight, bias)
    return _scaled(_standardized(input, axes, eps), weight, bias)


def _standardized(x: Tensor, axes: tuple[int, ...], eps: float) -> Tensor:
    """Subtract the mean of ``x`` and divide by its standard deviation along ``axes``."""
    centred = ew.sub(x, composite.mean(x, axes, keepdim=True))
    var = composite.mean(ew.mul(centred, centred), axes, keepdim=True)
    return ew.mul(centred, mathematics.rsqrt(ew.add(var, eps)))


def _last_axes(
    name: str, input: Tensor, normalized_shape: Sequence[int], *parameters: Tensor | None
) -> tuple[int, ...]:
    shape = tuple(normalized_shape)
    count = len(input.shape)
    if not shape or tuple(input.shape[count - len(shape) :]) != shape:
        raise ShapeError(f"{name}: the input {list(input.shape)} does not end with {list(shape)}")
    for parameter in parameters:
        if parameter is not None and tuple(parameter.shape) != shape:
            raise ShapeError(f"{name}: weight or bias has shape {list(parameter.shape)}, expected {list(shape)}")
    return tuple(range(count - len(shape), count))


@in_f32
@compiled_when_repeated
def rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divide by the root mean square over the last dimensions.

    ``eps`` None takes the machine epsilon: 2**-52 for f64, else 2**-23.
    """
    axes = _last_axes("rms_norm", input, normalized_shape, weight)
    if eps is None:
        eps = 2.0**-52 if input.dtype.bits == 64 else 2.0**-23
    square = composite.mean(ew.mul(input, input), axes, keepdim=True)
    return _scaled(ew.mul(input, mathematics.rsqrt(ew.add(square, eps))), weight, None)


@in_f32
@compiled_when_repeated
def group_norm(
    input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Normalise each of ``num_groups`` groups of channels of [batch, channels, ...]; weight and bias are per channel.

    Raises ShapeError when the groups do not divide the channels.
    """
    if len(input.shape) < 2 or input.shape[1] % num_groups:
        raise ShapeError(f"group_norm: {num_groups} groups do not divide the channels of {list(input.shape)}")
    _check_channels("group_norm", input, weight, bias)
    group_size = prod(input.shape[1:]) // num_groups
    groups = input.reshape(input.shape[0], num_groups, group_size)
    normal = _standardized(groups, (2,), eps).reshape(*input.shape)
    return _scaled(normal, _per_channel(weight, input), _per_channel(bias, input))


def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalise each channel of each item of [batch, channels, ...] over its spatial dimensions.

    ``use_input_stats=False`` uses the running statistics; otherwise these are updated in place when given.
    """
    if not use_input_stats:
        return batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps)
    if len(input.shape) < 3:
        raise ShapeError(f"instance_norm: the input {list(input.shape)} has no spatial dimensions")
    _check_channels("instance_norm", input, running_mean, running_var, weight, bias)
    axes = tuple(range(2, len(input.shape)))
    count = prod(input.shape[2:])
    if count <= 1:
        raise AttributeValueError(
            f"instance_norm: input statistics need more than one value per channel, got input {list(input.shape)}"
        )
    mean = composite.mean(input, axes, keepdim=True)
    if running_mean is not None:
        _mix(running_mean, composite.mean(mean, 0), momentum)
    if running_var is not None:
        _mix(running_var, composite.mean(composite.var(input, axes, 1, keepdim=True), 0), momentum)
    return _scaled(_standardized(input, axes, eps), _per_channel(weight, input), _per_channel(bias, input))


@in_f32
@compiled_when_repeated
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """Divide each element by a power of the mean square of ``size`` neighbouring channels.

    Input [batch, channels, ...] (Krizhevsky et al. 2012, section 3.3).
    """
    if len(input.shape) < 3:
        raise ShapeError(f"local_response_norm: the input {list(input.shape)} has no dimension after the channels")
    if _is_empty(input):
        return ew.mul(input, 1)
    none = (0,) * (len(input.shape) - 2)
    low, high = (0, size // 2, *none), (0, (size - 1) // 2, *none)
    squares = shapes.pad(ew.mul(input, input), low=low, high=high, interior=(0,) * len(low))
    channels = input.shape[1]
    shifted = [squares.narrow(1, i, channels) for i in range(size)]
    total, factor = functools.reduce(ew.add, shifted), alpha / size
    if total.dtype.is_integer:  # the mean of integers is an integer, as in pooling
        total, factor = total // size, alpha
    return ew.div(input, mathematics.pow(ew.add(ew.mul(total, factor), k), beta))
