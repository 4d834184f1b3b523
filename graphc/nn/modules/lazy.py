"""Layers that take their input sizes from the first input: LazyLinear, LazyConv2d, LazyBatchNorm2d and others."""

from __future__ import annotations

from typing import Any

from graphc.base.errors import AttributeValueError, TraceError
from graphc.nn.functional.spatial import IntOrInts
from graphc.nn.module import Module
from graphc.nn.modules.convolution import (
    Conv1d,
    Conv2d,
    ConvTranspose1d,
    ConvTranspose2d,
)
from graphc.nn.modules.linear import Linear
from graphc.nn.modules.normalization import (
    BatchNorm1d,
    BatchNorm2d,
    BatchNorm3d,
    InstanceNorm1d,
    InstanceNorm2d,
    InstanceNorm3d,
    _InstanceNorm,
)
from graphc.nn.modules.volume import Conv3d, ConvTranspose3d
from graphc.nn.parameter import UninitializedBuffer, UninitializedParameter, is_uninitialized
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tracing.trace import is_tracing

__all__ = ["LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d"]
__all__ += ["LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d"]
__all__ += ["LazyInstanceNorm2d", "LazyInstanceNorm3d", "LazyLinear"]


class _Lazy(Module):
    """A layer without sizes; its first call, or loading a state dictionary, gives its tensors their shapes.

    The first call also turns it into a layer of class ``becomes``. Parameters stay the same objects, so an optimizer
    may be created before.
    """

    becomes: type[Any]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            raise TraceError(
                f"{type(self).__name__} takes its sizes from its first input, which a trace does not provide",
                remedy="call the model once before you trace or compile it",
            )
        self._set_sizes(args[0] if args else next(iter(kwargs.values())))
        if self.has_uninitialized_params():
            with no_grad():
                self._make_tensors()
                self.reset_parameters()
        object.__setattr__(self, "__class__", self.becomes)
        return self(*args, **kwargs)

    def _set_sizes(self, input: Tensor) -> None:
        """Take the missing sizes from the input."""
        raise NotImplementedError

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the uninitialized tensors, once the sizes are known."""
        raise NotImplementedError

    def reset_parameters(self) -> None:
        """Initialize the parameters as class ``becomes`` does; do nothing while the sizes are unknown."""
        if not self.has_uninitialized_params():
            self.becomes.reset_parameters(self)

    def has_uninitialized_params(self) -> bool:
        """Check whether a parameter or buffer has no shape yet."""
        tensors = (*self._parameters.values(), *self._buffers.values())
        return any(is_uninitialized(tensor) for tensor in tensors)

    def _forget_shapes(self, dtype: Any) -> None:
        """Replace the tensors of unknown shape by uninitialized ones."""
        for name in self._shapes():
            if self._parameters.get(name) is not None:
                self._parameters[name] = UninitializedParameter(dtype=dtype)
            elif self._buffers.get(name) is not None:
                self._buffers[name] = UninitializedBuffer(dtype=dtype)

    def _make_tensors(self) -> None:
        for name, shape in self._shapes().items():
            tensor = self._parameters.get(name)
            tensor = self._buffers.get(name) if tensor is None else tensor
            if is_uninitialized(tensor):
                tensor.materialize(shape)

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
        for table in (self._parameters, self._buffers):
            for name, tensor in table.items():
                if is_uninitialized(tensor) and prefix + name in state_dict:
                    tensor.materialize(tuple(state_dict[prefix + name].shape))
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class LazyLinear(_Lazy, Linear):
    """``Linear`` that takes ``in_features`` from its first input."""

    becomes = Linear

    def __init__(self, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None):
        super().__init__(1, out_features, bias, device, dtype)
        self.in_features = 0
        self._forget_shapes(dtype)

    def _set_sizes(self, input: Tensor) -> None:
        self.in_features = input.shape[-1]

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return {"weight": (self.out_features, self.in_features)}


class _LazyConv(_Lazy):
    """Base of convolutions that take their input channels from the first input."""

    def __init__(self, out_channels: int, kernel_size: IntOrInts, *args: Any, **kwargs: Any):
        layer: Any = self
        groups = args[3] if len(args) > 3 else kwargs.get("groups", 1)
        super().__init__(groups, out_channels, kernel_size, *args, **kwargs)
        layer.in_channels = 0
        self._forget_shapes(kwargs.get("dtype"))

    def _set_sizes(self, input: Tensor) -> None:
        layer: Any = self
        channels = input.shape[-1 - layer.rank]
        if channels % layer.groups:
            raise AttributeValueError(f"{type(self).__name__}: {layer.groups} groups do not divide {channels} channels")
        layer.in_channels = channels

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        layer: Any = self
        first, second = layer.out_channels, layer.in_channels
        if layer.transposed:
            first, second = second, first
        return {"weight": (first, second // layer.groups, *layer.kernel_size)}


class _LazyNorm(_Lazy):
    """Base of normalisations that take their number of channels from the first input."""

    def __init__(self, *args: Any, **kwargs: Any):
        layer: Any = self
        super().__init__(1, *args, **kwargs)
        layer.num_features = 0
        self._forget_shapes(kwargs.get("dtype"))

    def _set_sizes(self, input: Tensor) -> None:
        layer: Any = self
        unbatched = isinstance(self, _InstanceNorm) and len(input.shape) == layer.ranks[0]
        layer.num_features = input.shape[0 if unbatched else 1]

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        layer: Any = self
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (layer.num_features,))


class LazyConv1d(_LazyConv, Conv1d):
    """``Conv1d`` that takes ``in_channels`` from its first input."""

    becomes = Conv1d


class LazyConv2d(_LazyConv, Conv2d):
    """``Conv2d`` that takes ``in_channels`` from its first input."""

    becomes = Conv2d


class LazyConv3d(_LazyConv, Conv3d):
    """``Conv3d`` that takes ``in_channels`` from its first input."""

    becomes = Conv3d


class LazyConvTranspose1d(_LazyConv, ConvTranspose1d):
    """``ConvTranspose1d`` that takes ``in_channels`` from its first input."""

    becomes = ConvTranspose1d


class LazyConvTranspose2d(_LazyConv, ConvTranspose2d):
    """``ConvTranspose2d`` that takes ``in_channels`` from its first input."""

    becomes = ConvTranspose2d


class LazyConvTranspose3d(_LazyConv, ConvTranspose3d):
    """``ConvTranspose3d`` that takes ``in_channels`` from its first input."""

    becomes = ConvTranspose3d


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """``BatchNorm1d`` that takes ``num_features`` from its first input."""

    becomes = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """``BatchNorm2d`` that takes ``num_features`` from its first input."""

    becomes = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """``BatchNorm3d`` that takes ``num_features`` from its first input."""

    becomes = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """``InstanceNorm1d`` that takes ``num_features`` from its first input."""

    becomes = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """``InstanceNorm2d`` that takes ``num_features`` from its first input."""

    becomes = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """``InstanceNorm3d`` that takes ``num_features`` from its first input."""

    becomes = InstanceNorm3d
