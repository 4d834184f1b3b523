"""Convolution and pooling layers of volumes."""

from __future__ import annotations

from typing import Any

from graphc.nn import functional as F
from graphc.nn.modules.convolution import _Conv, _ConvTranspose
from graphc.nn.modules.pooling import _Adaptive, _AdaptiveMax, _DividedAvgPool, _LPPool, _MaxPool
from graphc.tensors.tensor import Tensor

__all__ = ["AdaptiveAvgPool3d", "AdaptiveMaxPool3d", "AvgPool3d", "Conv3d", "ConvTranspose3d", "LPPool3d", "MaxPool3d"]


class Conv3d(_Conv):
    """Convolution of [batch, in_channels, depth, height, width]; weight [out, in_channels / groups, *kernel]."""

    rank = 3

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, in_channels, depth, height, width] to [batch, out_channels, depth', height', width']."""
        input, padding = self._padded(input)
        return F.conv3d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class ConvTranspose3d(_ConvTranspose):
    """Transposed convolution of [batch, in_channels, depth, height, width]; weight [in, out / groups, *kernel]."""

    rank = 3

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Map [batch, in_channels, depth, height, width] to [batch, out_channels, depth', height', width']."""
        extra = self._output_padding(input, output_size)
        args = (self.stride, self._numbers(), extra, self.groups, self.dilation)
        return F.conv_transpose3d(input, self.weight, self.bias, *args)


class MaxPool3d(_MaxPool):
    """Maximum over windows of [batch, channels, depth, height, width]."""

    def forward(self, input: Tensor) -> Any:
        """Map [batch, channels, depth, height, width] to a smaller volume."""
        return F.max_pool3d(input, *self._args())


class AvgPool3d(_DividedAvgPool):
    """Mean over windows of [batch, channels, depth, height, width]."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, depth, height, width] to a smaller volume."""
        args = (self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)
        return F.avg_pool3d(input, *args, self.divisor_override)


class AdaptiveAvgPool3d(_Adaptive):
    """Mean over ``output_size`` windows of nearly equal size of a volume."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, depth, height, width] to [batch, channels, *output_size]."""
        return F.adaptive_avg_pool3d(input, self.output_size)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """Maximum over ``output_size`` windows of nearly equal size of a volume."""

    def forward(self, input: Tensor) -> Any:
        """Map [batch, channels, depth, height, width] to [batch, channels, *output_size]."""
        return F.adaptive_max_pool3d(input, self.output_size, self.return_indices)


class LPPool3d(_LPPool):
    """Root of the sum of powers over windows of [batch, channels, depth, height, width]."""

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, depth, height, width] to a smaller volume."""
        return F.lp_pool3d(input, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)
