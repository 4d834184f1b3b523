"""Batch normalisation by the joint statistics of the batches of all processes."""

from __future__ import annotations

from typing import Any

from graphc.base.lazy import deferred
from graphc.nn.functional.normalization import batch_norm_across
from graphc.nn.module import Module
from graphc.nn.modules.normalization import _BatchNorm, _InstanceNorm
from graphc.tensors.tensor import Tensor

__all__ = ["SyncBatchNorm"]

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
