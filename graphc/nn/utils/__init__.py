"""Utilities on parameters under PyTorch's import path: clipping, vectors, norms, pruning, sequences."""

from graphc.base.lazy import known_as
from graphc.nn.clip_grad import (
    clip_grad_norm_,
    clip_grad_value_,
    clip_grads_with_norm_,
    get_total_norm,
    parameters_to_vector,
    vector_to_parameters,
)
from graphc.nn.utils import parametrizations, parametrize, prune, rnn, stateless
from graphc.nn.utils.creation import (
    convert_conv2d_weight_memory_format,
    convert_conv3d_weight_memory_format,
    skip_init,
)
from graphc.nn.utils.fusion import (
    fuse_conv_bn_eval,
    fuse_conv_bn_weights,
    fuse_linear_bn_eval,
    fuse_linear_bn_weights,
)
from graphc.nn.utils.normed_weight import remove_spectral_norm, remove_weight_norm, spectral_norm, weight_norm

clip_grad_norm = clip_grad_norm_
"""The old name of ``clip_grad_norm_``."""
__all__ = [
    "clip_grad_norm",
    "clip_grad_norm_",
    "clip_grad_value_",
    "clip_grads_with_norm_",
    "convert_conv2d_weight_memory_format",
    "convert_conv3d_weight_memory_format",
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
    "get_total_norm",
    "parameters_to_vector",
    "parametrizations",
    "parametrize",
    "prune",
    "remove_spectral_norm",
    "remove_weight_norm",
    "rnn",
    "skip_init",
    "spectral_norm",
    "stateless",
    "vector_to_parameters",
    "weight_norm",
]

for _file in ("clip_grad", "convert_parameters", "weight_norm", "spectral_norm"):
    known_as(f"{__name__}.{_file}", __name__)
