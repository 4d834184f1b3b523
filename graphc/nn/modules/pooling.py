"""Pooling layers."""

from __future__ import annotations

from typing import Any

from graphc.nn import functional as F
from graphc.nn.functional.spatial import IntOrInts
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor

__all__ = ["AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AvgPool1d", "AvgPool2d"]
__all__ += ["LPPool1d", "LPPool2d", "MaxPool1d", "MaxPool2d"]


class _MaxPool(Module):
    """Base of maximum pooling of any number of dimensions."""

    def __init__(
        self,
        kernel_size: IntOrInts,
        stride: IntOrInts | None = None,
        padding: IntOrInts = 0,
        dilation: IntOrInts = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def _args(self) -> tuple[Any, ...]:
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """Maximum over windows of [batch, channels, length]."""

    def forward(self, input: Tensor) -> Any:
        """Map [batch, channels, length] to [batch, channels, length']."""
        return F.max_pool1d(input, *self._args())


class MaxPool2d(_MaxPool):
    """Maximum over windows of [batch, channels, height, width].

    Example:
        >>> import graphc as gc
        >>> gc.nn.MaxPool2d(2)(gc.arange(16.0).reshape(1, 1, 4, 4))
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """

    def forward(self, input: Tensor) -> Any:
        """Map [batch, channels, height, width] to [batch, channels, height', width']."""
        return F.max_pool2d(input, *self._args())


class _AvgPool(Module):
    """Base of average pooling of any number of dimensions."""

    def __init__(
        self,
        kernel_size: IntOrInts,
        stride: IntOrInts | None = None,
        padding: IntOrInts = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPool):
    """Mean over windows of [batch, channels, length]."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, length] to [batch, channels, length']."""
        args = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return F.avg_pool1d(input, *args)


class _DividedAvgPool(_AvgPool):
    """Base of average pooling with ``divisor_override``."""

    def __init__(
        self,
        kernel_size: IntOrInts,
        stride: IntOrInts | None = None,
        padding: IntOrInts = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)
        self.divisor_override = divisor_override


class AvgPool2d(_DividedAvgPool):
    """Mean over windows of [batch, channels, height, width]."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, height, width] to [batch, channels, height', width']."""
        args = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return F.avg_pool2d(input, *args, self.divisor_override)


class _Adaptive(Module):
    """Base of pooling to a fixed output size."""

    def __init__(self, output_size: Any):
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """Mean over ``output_size`` windows of nearly equal size of [batch, channels, length]."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, length] to [batch, channels, output_size]."""
        return F.adaptive_avg_pool1d(input, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """Mean over ``output_size`` windows of nearly equal size of [batch, channels, height, width]."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, height, width] to [batch, channels, *output_size]."""
        return F.adaptive_avg_pool2d(input, self.output_size)


class _AdaptiveMax(_Adaptive):
    """Base of adaptive maximum pooling, optionally with positions."""

    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMax):
    """Maximum over ``output_size`` windows of nearly equal size of [batch, channels, length]."""

    def forward(self, input: Tensor) -> Any:
        """Map [batch, channels, length] to [batch, channels, output_size]."""
        return F.adaptive_max_pool1d(input, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """Maximum over ``output_size`` windows of nearly equal size of [batch, channels, height, width]."""

    def forward(self, input: Tensor) -> Any:
        """Map [batch, channels, height, width] to [batch, channels, *output_size]."""
        return F.adaptive_max_pool2d(input, self.output_size, self.return_indices)


class _LPPool(Module):
    """Base of power-average pooling of any number of dimensions."""

    def __init__(
        self, norm_type: float, kernel_size: IntOrInts, stride: IntOrInts | None = None, ceil_mode: bool = False
    ):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """Root of the sum of powers over windows of [batch, channels, length]."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, length] to [batch, channels, length']."""
        return F.lp_pool1d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)


class LPPool2d(_LPPool):
    """Root of the sum of powers over windows of [batch, channels, height, width]."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, height, width] to [batch, channels, height', width']."""
        return F.lp_pool2d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)
