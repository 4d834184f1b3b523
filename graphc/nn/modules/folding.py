"""Layers for windows of images as columns (Unfold), and columns summed back to images (Fold)."""

from __future__ import annotations

from typing import Any

from graphc.nn import functional as F
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor

__all__ = ["Fold", "Unfold"]


class Unfold(Module):
    """Arranges every window of [batch, channels, height, width] as a column."""

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, height, width] to [batch, channels * window, windows]."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Unfold):
    """Sums columns up to an image of ``output_size``."""

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels * window, windows] to [batch, channels, *output_size]."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"
