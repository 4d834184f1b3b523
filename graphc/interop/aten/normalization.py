"""Rules of ATen's normalization operators, also of native forms that return the statistics for a backward pass."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.interop.aten.registry import Rule, rule, same
from graphc.nn import functional as F
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

same("rms_norm")


def statistics_dims(input: Tensor) -> list[int]:
    """Return the dimensions over which batch norm takes means."""
    return [d for d in range(input.dim()) if d != 1]


@rule("layer_norm")
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    return F.layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@rule("native_layer_norm")
def native_layer_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, bias: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    dims = tuple(range(-len(normalized_shape), 0))
    var, mean = free.var_mean(input, dims, keepdim=True, correction=0)
    return F.layer_norm(input, tuple(normalized_shape), weight, bias, eps), mean, functions.rsqrt(var + eps)


@rule("group_norm")
def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enabled: bool = True,
) -> Tensor:
    return F.group_norm(input, num_groups, weight, bias, eps)


@rule("native_group_norm")
def native_group_norm(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    var, mean = free.var_mean(input.reshape(N, group, prod(input.shape[1:]) // group), 2, correction=0)
    return F.group_norm(input, group, weight, bias, eps), mean, functions.rsqrt(var + eps)


def _running(name: str, function: Rule) -> None:
    """Register an operator that normalizes by statistics of its input and updates running ones, or uses these."""

    @rule(name)
    def norm(
        input: Tensor,
        weight: Tensor | None,
        bias: Tensor | None,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        of_input: bool,
        momentum: float,
        eps: float,
        cudnn_enabled: bool = True,
    ) -> Tensor:
        return function(input, running_mean, running_var, weight, bias, of_input, momentum, eps)


_running("instance_norm", F.instance_norm)
_running("batch_norm", F.batch_norm)


@rule("_native_batch_norm_legit_no_training")
def batch_norm_inference(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    none = input.new_zeros((0,))
    return F.batch_norm(input, running_mean, running_var, weight, bias, False, momentum, eps), none, none


@rule("_native_batch_norm_legit_functional")
def batch_norm_functional(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor,
    running_var: Tensor,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, ...]:
    if not training:
        result, mean, deviation = batch_norm_inference(input, weight, bias, running_mean, running_var, momentum, eps)
        return result, mean, deviation, running_mean.clone(), running_var.clone()
    result, mean, deviation = batch_norm_of_batch(input, weight, bias, True, momentum, eps)
    dims = statistics_dims(input)
    count = prod(input.shape[d] for d in dims)
    var = free.var_mean(input, dims, correction=0)[0] * (count / (count - 1))
    mean_after, var_after = (
        before * (1 - momentum) + now * momentum for before, now in ((running_mean, mean), (running_var, var))
    )
    return result, mean, deviation, mean_after, var_after


@rule("_native_batch_norm_legit.no_stats")
def batch_norm_of_batch(
    input: Tensor, weight: Tensor | None, bias: Tensor | None, training: bool, momentum: float, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    var, mean = free.var_mean(input, statistics_dims(input), correction=0)
    return F.batch_norm(input, None, None, weight, bias, True, momentum, eps), mean, functions.rsqrt(var + eps)


@rule("_weight_norm")
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    return weight_norm_interface(v, g, dim)[0]


@rule("_weight_norm_interface")
def weight_norm_interface(v: Tensor, g: Tensor, dim: int = 0) -> tuple[Tensor, Tensor]:
    """Return a vector and its original norms.

    Scales ``v`` to norm ``g`` along all dimensions but ``dim`` (all of them for -1).
    """
    norms = functions.norm(v, 2, [d for d in range(v.dim()) if d != dim], True)
    return v * (g / norms), norms


@rule("_native_batch_norm_legit", "native_batch_norm")
def batch_norm_in_place(
    input: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize channels. Updates the running statistics in training."""
    if not training:
        assert running_mean is not None and running_var is not None
        return batch_norm_inference(input, weight, bias, running_mean, running_var, momentum, eps)
    result = F.batch_norm(input, running_mean, running_var, weight, bias, True, momentum, eps)
    return result, *batch_norm_of_batch(input, None, None, True, momentum, eps)[1:]


@rule("_fused_rms_norm")
def fused_rms_norm(
    input: Tensor, normalized_shape: Sequence[int], weight: Tensor | None, eps: Any
) -> tuple[Tensor, Tensor]:
    eps = float(np.finfo(input.dtype.numpy).eps) if eps is None else eps
    result = F.rms_norm(input, tuple(normalized_shape), weight, eps)
    dims = tuple(range(-len(normalized_shape), 0))
    return result, functions.rsqrt((input * input).mean(dims, keepdim=True) + eps)
