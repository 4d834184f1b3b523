"""Normalisation layers: batch, layer, RMS, group, instance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import int64
from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.lazy import deferred
from graphc.nn import functional as F
from graphc.nn import init
from graphc.nn.functional.normalization import batch_norm_across
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter, empty_parameter, filled
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "GroupNorm", "InstanceNorm1d", "InstanceNorm2d"]
__all__ += ["InstanceNorm3d", "LayerNorm", "LocalResponseNorm", "RMSNorm", "SyncBatchNorm"]


class _BatchNorm(Module):
    """Normalisation of channels: by batch statistics in training, by running statistics in evaluation."""

    _version = 2
    ranks: tuple[int, ...]
    """Allowed numbers of dimensions of the input."""
    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        size = (num_features,)
        self.register_parameter("weight", empty_parameter(size, dtype, device) if affine else None)
        self.register_parameter("bias", empty_parameter(size, dtype, device) if affine and bias else None)
        self.register_buffer("running_mean", filled(size, 0.0, dtype, device) if track_running_stats else None)
        self.register_buffer("running_var", filled(size, 1.0, dtype, device) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", filled((), 0, int64, device) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Set the running mean to 0, the variance to 1 and the number of batches to 0."""
        with no_grad():
            for name, value in (("running_mean", 0), ("running_var", 1), ("num_batches_tracked", 0)):
                buffer = self._buffers[name]
                if buffer is not None:
                    buffer.fill_(value)

    def reset_parameters(self) -> None:
        """Set scale to 1 and shift to 0, and reset the running statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, num_features, ...] to the same shape; training also updates the running statistics."""
        if len(input.shape) not in self.ranks:
            raise ShapeError(
                f"{self._get_name()}: the input {list(input.shape)} has {len(input.shape)} dimensions, "
                f"expected {' or '.join(map(str, self.ranks))}"
            )
        tracks = self.track_running_stats
        momentum: float | Tensor = 0.0 if self.momentum is None else self.momentum
        if self.training and tracks and self.num_batches_tracked is not None:
            with no_grad():
                self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / self.num_batches_tracked.to(input.dtype)
        by_batch = self.training or self.running_mean is None
        uses_running = not self.training or tracks
        mean, var = (self.running_mean, self.running_var) if uses_running else (None, None)
        return self._normalized(input, mean, var, by_batch, momentum)

    def _normalized(
        self, input: Tensor, mean: Tensor | None, var: Tensor | None, by_batch: bool, momentum: float | Tensor
    ) -> Tensor:
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, momentum, self.eps)

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load the entries; add the count of batches, which files of version 1 lack."""
        key = prefix + "num_batches_tracked"
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            current = self.num_batches_tracked
            state_dict[key] = np.zeros((), np.int64) if current is None else current
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [batch, channels] or [batch, channels, length] (Ioffe and Szegedy 2015)."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [batch, channels, height, width] (Ioffe and Szegedy 2015).

    Example:
        >>> import graphc as gc
        >>> layer = gc.nn.BatchNorm2d(3)
        >>> y = layer(gc.rand(4, 3, 8, 8) * 5)
        >>> gc.allclose(y.mean((0, 2, 3)), gc.zeros(3), atol=1e-4)
        True
    """

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of [batch, channels, depth, height, width]."""

    ranks = (5,)


class LayerNorm(Module):
    """Normalisation over the last dimensions, whose shape is ``normalized_shape`` (Ba et al. 2016).

    Example:
        >>> import graphc as gc
        >>> gc.nn.LayerNorm(2)(gc.tensor([[1.0, 3.0]])).detach().round()
        tensor([[-1.,  1.]])
    """

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.register_parameter("weight", empty_parameter(shape, dtype, device) if elementwise_affine else None)
        with_bias = elementwise_affine and bias
        self.register_parameter("bias", empty_parameter(shape, dtype, device) if with_bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scale to 1 and shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Map [..., *normalized_shape] to the same shape."""
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        options = f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        return f"{self.normalized_shape}, eps={self.eps}, {options}"


class RMSNorm(Module):
    """Division by the root mean square over the last dimensions (Zhang and Sennrich 2019)."""

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.register_parameter("weight", empty_parameter(shape, dtype, device) if elementwise_affine else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set the scale to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, input: Tensor) -> Tensor:
        """Map [..., *normalized_shape] to the same shape."""
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalisation of groups of channels of [batch, channels, ...] (Wu and He 2018)."""

    weight: Parameter | None
    bias: Parameter | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups:
            raise AttributeValueError(f"GroupNorm: {num_groups} groups do not divide {num_channels} channels")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        self.register_parameter("weight", empty_parameter((num_channels,), dtype, device) if affine else None)
        with_bias = affine and bias
        self.register_parameter("bias", empty_parameter((num_channels,), dtype, device) if with_bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Set scale to 1 and shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, num_channels, ...] to the same shape."""
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        options = f"affine={self.affine}, bias={self.bias is not None}"
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, {options}"


class _InstanceNorm(_BatchNorm):
    """Normalisation of each channel of each item; running statistics only with ``track_running_stats``."""

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, num_features, ...] to the same shape (also without the batch dimension)."""
        if len(input.shape) not in self.ranks:
            raise ShapeError(f"{self._get_name()}: the input {list(input.shape)} does not have {self.ranks} dimensions")
        single = len(input.shape) == self.ranks[0]
        x = input.reshape(1, *input.shape) if single else input
        by_input = self.training or not self.track_running_stats
        args = (self.running_mean, self.running_var, self.weight, self.bias, by_input, self.momentum or 0.0, self.eps)
        result = F.instance_norm(x, *args)
        return result.reshape(*input.shape) if single else result


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of [batch, channels, length]."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of [batch, channels, height, width] (Ulyanov et al. 2016)."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of [batch, channels, depth, height, width]."""

    ranks = (4, 5)


class LocalResponseNorm(Module):
    """Division by a power of the mean square of neighbouring channels."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, ...] to the same shape."""
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


_group = deferred("graphc.distributed.group:group")
_check_group = deferred("graphc.distributed.group:check_group")
_gather = deferred("graphc.distributed.collectives:all_gather")


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation of [batch, channels, ...] by the joint statistics of the batches of all processes.

    The result is the same as in one process with the whole batch. In training, each call communicates with all
    processes, and so does its backward pass. Batches may differ in size, or be empty. With one process, and in
    evaluation, it is plain batch normalisation.
    """

    ranks = (2, 3, 4, 5)

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        _check_group(process_group, "SyncBatchNorm: process_group")
        self.process_group = None

    def _normalized(
        self, input: Tensor, mean: Tensor | None, var: Tensor | None, by_batch: bool, momentum: float | Tensor
    ) -> Tensor:
        if not (by_batch and self.training) or _group().size == 1:
            return super()._normalized(input, mean, var, by_batch, momentum)
        return batch_norm_across(_gather, input, mean, var, self.weight, self.bias, momentum, self.eps)

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Replace each BatchNorm of a module by a SyncBatchNorm with the same parameters and buffers.

        Returns the module; a BatchNorm itself gives a new module.
        """
        if isinstance(module, _BatchNorm) and not isinstance(module, (_InstanceNorm, SyncBatchNorm)):
            return cls._like(module, process_group)
        for name, child in module.named_children():
            converted = cls.convert_sync_batchnorm(child, process_group)
            if converted is not child:
                setattr(module, name, converted)
        return module

    @classmethod
    def _like(cls, module: _BatchNorm, process_group: Any) -> SyncBatchNorm:
        sizes = module.num_features, module.eps, module.momentum, module.affine, module.track_running_stats
        result = cls(*sizes, process_group=process_group)
        for name, parameter in module._parameters.items():
            result.register_parameter(name, parameter)
        for name, buffer in module._buffers.items():
            result.register_buffer(name, buffer)
        return result.train(module.training)
