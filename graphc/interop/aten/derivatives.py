"""Rules of ATen's backward operators: activations, products, normalization, pooling, and movement of elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from graphc.autograd.transforms import vjp
from graphc.base.errors import UnsupportedError
from graphc.interop.aten.convolutions import convolution
from graphc.interop.aten.distances import cdist as distances
from graphc.interop.aten.normalization import statistics_dims
from graphc.interop.aten.pointwise import gelu
from graphc.interop.aten.pooling import RESAMPLING, grid_sampler
from graphc.interop.aten.products import flash_attention
from graphc.interop.aten.registry import TABLE, rule
from graphc.interop.aten.shapes import slice_of
from graphc.nn import functional as F
from graphc.tape.grad_mode import no_grad
from graphc.tensors import creation, functions
from graphc.tensors import free_functions as free
from graphc.tensors.tensor import Tensor

Gradients = tuple[Tensor | None, ...]


def pullback(
    function: Callable[..., Tensor],
    grad: Tensor,
    primals: Sequence[Tensor | None],
    requested: Sequence[bool] | None = None,
) -> Gradients:
    """Return the gradients of ``primals`` for ``grad``, the gradient of the result of ``function``.

    The gradient is None for primals that are None or not ``requested``. In a trace, forward computations disappear
    where the gradient does not need them.
    """
    chosen = [i for i, p in enumerate(primals) if p is not None and (requested is None or requested[i])]
    results: list[Tensor | None] = [None] * len(primals)
    if not chosen:
        return tuple(results)

    def of_chosen(*values: Tensor) -> Tensor:
        filled = list(primals)
        for i, value in zip(chosen, values, strict=True):
            filled[i] = value
        return function(*filled)

    with no_grad():
        gradients = vjp(of_chosen, *[primals[i] for i in chosen])[1](grad)
    for i, gradient in zip(chosen, gradients, strict=True):
        results[i] = gradient
    return tuple(results)


def pulled(function: Callable[..., Tensor], grad: Tensor, primal: Tensor) -> Tensor:
    """Return the gradient of a function's only argument."""
    (gradient,) = pullback(function, grad, (primal,))
    assert gradient is not None
    return gradient


def _activation(name: str, function: Callable[..., Tensor]) -> None:
    """Register the backward operator of a smooth function. Further arguments go to the function unchanged."""

    @rule(f"{name}_backward")
    def backward(grad_output: Tensor, self: Tensor, *rest: Any, **named: Any) -> Tensor:
        return pulled(lambda x: function(x, *rest, **named), grad_output, self)


_activation("gelu", gelu)
_activation("silu", F.silu)
_activation("mish", F.mish)
_activation("softplus", F.softplus)
_activation("glu", F.glu)
_activation("logit", functions.logit)


@rule("log_sigmoid_backward")
def log_sigmoid_backward(grad_output: Tensor, self: Tensor, buffer: Tensor) -> Tensor:
    return pulled(F.logsigmoid, grad_output, self)


@rule("tanh_backward")
def tanh_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (1 - output * output).conj()


@rule("sigmoid_backward")
def sigmoid_backward(grad_output: Tensor, output: Tensor) -> Tensor:
    return grad_output * (output * (1 - output)).conj()


@rule("threshold_backward")
def threshold_backward(grad_output: Tensor, self: Tensor, threshold: Any) -> Tensor:
    return free.where(self <= threshold, 0, grad_output)


@rule("hardtanh_backward")
def hardtanh_backward(grad_output: Tensor, self: Tensor, min_val: Any, max_val: Any) -> Tensor:
    return free.where((self <= min_val) | (self >= max_val), 0, grad_output)


@rule("hardsigmoid_backward")
def hardsigmoid_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return free.where((self > -3) & (self < 3), grad_output * (1 / 6), 0)


@rule("hardswish_backward")
def hardswish_backward(grad_output: Tensor, self: Tensor) -> Tensor:
    return free.where(self <= -3, 0, free.where(self < 3, grad_output * (self / 3 + 0.5), grad_output))


@rule("hardshrink_backward", "softshrink_backward")
def shrink_backward(grad_out: Tensor, self: Tensor, lambd: Any) -> Tensor:
    return free.where((self >= -lambd) & (self <= lambd), 0, grad_out)


@rule("leaky_relu_backward")
def leaky_relu_backward(grad_output: Tensor, self: Tensor, negative_slope: Any, self_is_result: bool) -> Tensor:
    return free.where(self > 0, grad_output, grad_output * negative_slope)


@rule("elu_backward")
def elu_backward(
    grad_output: Tensor, alpha: Any, scale: Any, input_scale: Any, is_result: bool, self_or_result: Tensor
) -> Tensor:
    x = self_or_result
    below = (x + alpha * scale) if is_result else functions.exp(x * input_scale) * (alpha * scale)
    return grad_output * free.where(x <= 0, below * input_scale, scale)


@rule("_prelu_kernel")
def prelu_kernel(self: Tensor, weight: Tensor) -> Tensor:
    return free.where(self > 0, self, self * weight)


@rule("_prelu_kernel_backward")
def prelu_backward(grad_output: Tensor, self: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    positive = self > 0
    return free.where(positive, grad_output, grad_output * weight), free.where(positive, 0, grad_output * self)


@rule("native_dropout_backward")
def dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    return grad_output * mask * scale


@rule("convolution_backward")
def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Gradients:
    def forward(x: Tensor, w: Tensor) -> Tensor:
        return convolution(x, w, None, stride, padding, dilation, transposed, output_padding, groups)

    of_input, of_weight = pullback(forward, grad_output, (input, weight), output_mask[:2])
    dims = [d for d in range(grad_output.dim()) if d != 1]
    return of_input, of_weight, grad_output.sum(dims) if output_mask[2] else None


@rule("linear_backward")
def linear_backward(self: Tensor, grad_output: Tensor, weight: Tensor, output_mask: Sequence[bool]) -> Gradients:
    gradients = pullback(F.linear, grad_output, (self, weight), output_mask[:2])
    return *gradients, grad_output.sum(tuple(range(grad_output.dim() - 1))) if output_mask[2] else None


@rule("_scaled_dot_product_flash_attention_for_cpu_backward")
def attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> Gradients:
    def forward(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flash_attention(q, k, v, dropout_p, is_causal, attn_mask=attn_mask, scale=scale)[0]

    return pullback(forward, grad_out, (query, key, value))


@rule("native_layer_norm_backward")
def layer_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> Gradients:
    dims = tuple(range(-len(normalized_shape), 0))
    outer = tuple(range(input.dim() - len(normalized_shape)))
    x = (input - mean) * rstd
    grad = grad_out if weight is None else grad_out * weight
    return (
        _centred(grad, x, rstd, dims) if output_mask[0] else None,
        _summed(grad_out * x, outer) if output_mask[1] and weight is not None else None,
        _summed(grad_out, outer) if output_mask[2] and bias is not None else None,
    )


def _centred(grad: Tensor, x: Tensor, rstd: Tensor, dims: Sequence[int]) -> Tensor:
    """Return the gradient of the input of a normalization over ``dims`` to ``x``, which has mean 0 and deviation 1."""
    along = (grad * x).mean(dims, keepdim=True)
    return (grad - grad.mean(dims, keepdim=True) - x * along) * rstd


def _summed(value: Tensor, dims: Sequence[int]) -> Tensor:
    return value.sum(tuple(dims)) if dims else value


@rule("native_group_norm_backward")
def group_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    N: int,
    C: int,
    HxW: int,
    group: int,
    output_mask: Sequence[bool],
) -> Gradients:
    shape = (N, group, C // group, HxW)
    deviation = rstd.reshape(N, group, 1, 1)
    x = (input.reshape(shape) - mean.reshape(N, group, 1, 1)) * deviation
    grad_by_group = grad_out.reshape(shape)
    grad = grad_by_group if weight is None else grad_by_group * weight.reshape(1, group, C // group, 1)
    return (
        _centred(grad, x, deviation, (2, 3)).reshape(input.shape) if output_mask[0] else None,
        (grad_by_group * x).sum((0, 3)).reshape(C) if output_mask[1] and weight is not None else None,
        grad_by_group.sum((0, 3)).reshape(C) if output_mask[2] else None,
    )


@rule("native_batch_norm_backward")
def batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_invstd: Tensor | None,
    train: bool,
    eps: float,
    output_mask: Sequence[bool],
) -> Gradients:
    dims, shape = statistics_dims(input), [1, -1, *[1] * (input.dim() - 2)]
    if train:
        assert save_mean is not None and save_invstd is not None
        mean, deviation = save_mean, save_invstd
    else:
        assert running_mean is not None and running_var is not None
        mean, deviation = running_mean, functions.rsqrt(running_var + eps)
    deviation = deviation.reshape(shape)
    x = (input - mean.reshape(shape)) * deviation
    grad = grad_out if weight is None else grad_out * weight.reshape(shape)
    of_input = _centred(grad, x, deviation, dims) if train else grad * deviation
    return (
        of_input if output_mask[0] else None,
        (grad_out * x).sum(dims) if output_mask[1] else None,
        grad_out.sum(dims) if output_mask[2] else None,
    )


@rule("batch_norm_backward")
def reserved_batch_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    weight: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    save_mean: Tensor | None,
    save_var: Tensor | None,
    update: bool,
    eps: float,
    output_mask: Sequence[bool],
    reserve: Tensor,
) -> Gradients:
    return batch_norm_backward(
        grad_out, input, weight, running_mean, running_var, save_mean, save_var, update, eps, output_mask
    )


@rule("_fused_rms_norm_backward")
def rms_norm_backward(
    grad_out: Tensor,
    input: Tensor,
    normalized_shape: Sequence[int],
    rstd: Tensor,
    weight: Tensor | None,
    output_mask: Sequence[bool],
) -> Gradients:
    dims = tuple(range(-len(normalized_shape), 0))
    outer = tuple(range(input.dim() - len(normalized_shape)))
    x = input * rstd
    grad = grad_out if weight is None else grad_out * weight
    return (
        (grad - x * (grad * x).mean(dims, keepdim=True)) * rstd if output_mask[0] else None,
        _summed(grad_out * x, outer) if output_mask[1] and weight is not None else None,
    )


@rule("embedding_dense_backward")
def embedding_backward(
    grad_output: Tensor, indices: Tensor, num_weights: int, padding_idx: int, scale_grad_by_freq: bool
) -> Tensor:
    weight = creation.zeros((num_weights, grad_output.shape[-1]), dtype=grad_output.dtype)
    skipped = None if padding_idx < 0 else padding_idx
    return pulled(
        lambda w: F.embedding(indices, w, skipped, scale_grad_by_freq=scale_grad_by_freq), grad_output, weight
    )


def _of_shape(name: str, view: Callable[..., Tensor]) -> None:
    """Register the backward operator of a view, which gets the shape of the viewed tensor and the view's arguments."""

    @rule(name)
    def backward(grad_output: Tensor, input_sizes: Sequence[int], *rest: Any) -> Tensor:
        base = creation.zeros(tuple(input_sizes), dtype=grad_output.dtype)
        return pulled(lambda x: view(x, *rest), grad_output, base)


_of_shape("slice_backward", slice_of)
_of_shape("select_backward", functions.select)
_of_shape("diagonal_backward", functions.diagonal)
_of_shape("unfold_backward", Tensor.unfold)


def _padding(mode: str, name: str) -> None:
    @rule(*[f"{name}{rank}d_backward" for rank in (1, 2, 3)])
    def backward(grad_output: Tensor, self: Tensor, padding: Sequence[int]) -> Tensor:
        return pulled(partial(F.pad, pad=tuple(padding), mode=mode), grad_output, self)


_padding("reflect", "reflection_pad")
_padding("replicate", "replication_pad")


@rule("value_selecting_reduction_backward")
def selected_backward(grad: Tensor, dim: int, indices: Tensor, sizes: Sequence[int], keepdim: bool) -> Tensor:
    values, positions = (grad, indices) if keepdim or not sizes else (grad.unsqueeze(dim), indices.unsqueeze(dim))
    return functions.scatter(creation.zeros(tuple(sizes), dtype=grad.dtype), dim, positions, values)


@rule("masked_select_backward")
def masked_select_backward(grad: Tensor, input: Tensor, mask: Tensor) -> Tensor:
    return functions.masked_scatter(creation.zeros(input.shape, dtype=grad.dtype), mask, grad)


def _pooling(targets: str, function: Callable[..., Tensor]) -> None:
    """Register backward operators of pooling: they get the gradient, the input, and the arguments of ``function``."""

    @rule(*targets.split())
    def backward(grad_output: Tensor, self: Tensor, *rest: Any) -> Tensor:
        return pulled(lambda x: function(x, *rest), grad_output, self)


def _largest(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return max pooling with the arguments of its backward operator, which include the indices.

    Of equal elements the first gets the gradient, as the indices say.
    """

    def pool(x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool, _: Any) -> Tensor:
        return function(x, kernel, stride or None, padding, dilation, ceil_mode)

    return pool


def _means(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def pool(x: Tensor, kernel: Any, stride: Any, *rest: Any) -> Tensor:
        return function(x, kernel, stride or None, *rest)

    return pool


_pooling("max_pool2d_with_indices_backward", _largest(F.max_pool2d))
_pooling("max_pool3d_with_indices_backward", _largest(F.max_pool3d))
_pooling("avg_pool2d_backward", _means(F.avg_pool2d))
_pooling("avg_pool3d_backward", _means(F.avg_pool3d))


def _adaptive(targets: str, function: Callable[..., Tensor], rank: int) -> None:
    @rule(*targets.split())
    def backward(grad_output: Tensor, self: Tensor, indices: Any = None) -> Tensor:
        return pulled(lambda x: function(x, grad_output.shape[-rank:]), grad_output, self)


_adaptive("_adaptive_avg_pool2d_backward", F.adaptive_avg_pool2d, 2)
_adaptive("_adaptive_avg_pool3d_backward", F.adaptive_avg_pool3d, 3)
_adaptive("adaptive_max_pool2d_backward", F.adaptive_max_pool2d, 2)


def _resampling(name: str) -> None:
    forward = TABLE[f"aten.{name}.default"]

    @rule(f"{name}_backward")
    def backward(grad_output: Tensor, output_size: Any, input_size: Sequence[int], *rest: Any, **named: Any) -> Tensor:
        base = creation.zeros(tuple(input_size), dtype=grad_output.dtype)
        return pulled(lambda x: forward(x, output_size, *rest, **named), grad_output, base)


for _name in RESAMPLING:
    _resampling(_name)


@rule("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def grid_sampler_backward(
    grad_output: Tensor,
    input: Tensor,
    grid: Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Sequence[bool],
) -> Gradients:
    def forward(x: Tensor, points: Tensor) -> Tensor:
        return grid_sampler(x, points, interpolation_mode, padding_mode, align_corners)

    return pullback(forward, grad_output, (input, grid), output_mask)


@rule("_cdist_backward")
def cdist_backward(grad: Tensor, x1: Tensor, x2: Tensor, p: float, cdist: Tensor) -> Tensor:
    if p < math.inf:
        return pulled(lambda x: distances(x, x2, p), grad, x1)
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    farthest = difference.abs() == cdist.unsqueeze(-1)
    return (farthest * difference.sign() * grad.unsqueeze(-1)).sum(
        -2
    )  # every element at the maximum distance gets the full gradient


@rule("_pdist_backward")
def pdist_backward(grad: Tensor, self: Tensor, p: float, pdist: Tensor) -> Tensor:
    if p == math.inf:
        raise UnsupportedError("the gradient of pdist with p = inf", remedy="use torch.cdist(x, x, p)")
    return pulled(lambda x: F.pdist(x, p), grad, self)
