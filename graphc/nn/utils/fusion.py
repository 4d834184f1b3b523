"""Batch normalisation folded into the preceding layer, for models in evaluation mode."""

from __future__ import annotations

import copy
from typing import Any

from graphc.base.errors import ArgumentError
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter
from graphc.tensors.tensor import Tensor

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """Copy ``conv`` with new weights to compute ``bn(conv(x))``; both must be in evaluation mode."""
    fused = _copy(conv, bn)
    terms = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_conv_bn_weights(fused.weight, fused.bias, *terms, transpose)
    return fused


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """Copy ``linear`` with new weights to compute ``bn(linear(x))``; both must be in evaluation mode."""
    fused = _copy(linear, bn)
    if linear.out_features != bn.num_features and bn.num_features != 1:
        raise ArgumentError(
            f"cannot fuse a linear layer of {linear.out_features} features with a batch normalisation of "
            f"{bn.num_features}"
        )
    terms = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = fuse_linear_bn_weights(fused.weight, fused.bias, *terms)
    return fused


def _copy(layer: Module, bn: Any) -> Any:
    if layer.training or bn.training:
        raise ArgumentError("only layers in evaluation mode can be fused", remedy="call model.eval() first")
    if bn.running_mean is None:
        raise ArgumentError("cannot fuse a batch normalisation without running statistics")
    return copy.deepcopy(layer)


def _scale_and_shift(
    bias: Tensor | None, mean: Tensor, var: Tensor, eps: float, weight: Tensor | None, shift: Tensor | None
) -> tuple[Tensor, Tensor]:
    scale = (var + eps).rsqrt()
    scale = scale if weight is None else scale * weight
    moved = -mean if bias is None else bias - mean
    return scale, moved * scale if shift is None else moved * scale + shift


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Compute weight and bias of a convolution followed by a batch normalisation."""
    scale, bias = _scale_and_shift(conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    shape = [1] * len(conv_w.shape)
    shape[1 if transpose else 0] = -1
    return _parameters(conv_w, conv_b, conv_w * scale.reshape(*shape), bias)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Compute weight and bias of a linear layer followed by a batch normalisation."""
    scale, bias = _scale_and_shift(linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b)
    return _parameters(linear_w, linear_b, linear_w * scale.reshape(-1, 1), bias)


def _parameters(old: Tensor, old_bias: Tensor | None, weight: Tensor, bias: Tensor) -> tuple[Parameter, Parameter]:
    trained = old.requires_grad if old_bias is None else old_bias.requires_grad
    return Parameter(weight.detach(), old.requires_grad), Parameter(bias.detach(), trained)
