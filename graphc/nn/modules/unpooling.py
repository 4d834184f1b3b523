"""Layers that put maxima back to their positions, and layers that pool over windows at random positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.nn import functional as F
from graphc.nn.functional.spatial import IntOrInts, per_dimension
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor

__all__ = ["FractionalMaxPool2d", "FractionalMaxPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


class _MaxUnpool(Module):
    """Base of unpooling of any number of dimensions."""

    rank: int

    def __init__(self, kernel_size: IntOrInts, stride: IntOrInts | None = None, padding: IntOrInts = 0):
        super().__init__()
        self.kernel_size = per_dimension(kernel_size, self.rank, "kernel_size")
        self.stride = self.kernel_size if stride is None else per_dimension(stride, self.rank, "stride")
        self.padding = per_dimension(padding, self.rank, "padding")

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Zeros with the maxima of a ``MaxPool1d`` of [batch, channels, length] at their positions."""

    rank = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Map [batch, channels, length] to the size before pooling, or to ``output_size``."""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpool):
    """Zeros with the maxima of a ``MaxPool2d`` of [batch, channels, height, width] at their positions."""

    rank = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Map [batch, channels, height, width] to the size before pooling, or to ``output_size``."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpool):
    """Zeros with the maxima of a ``MaxPool3d`` of a volume at their positions."""

    rank = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Map [batch, channels, depth, height, width] to the size before pooling, or to ``output_size``."""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(Module):
    """Base of pooling over windows at random positions."""

    def __init__(
        self,
        kernel_size: IntOrInts,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def _args(self) -> tuple[Any, ...]:
        return self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples


class FractionalMaxPool2d(_FractionalMaxPool):
    """Maximum over windows at random positions of [batch, channels, height, width] (Graham 2014)."""

    def forward(self, input: Tensor) -> Any:
        """Map [batch, channels, height, width] to [batch, channels, *output_size]."""
        return F.fractional_max_pool2d(input, *self._args())


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maximum over windows at random positions of a volume (Graham 2014)."""

    def forward(self, input: Tensor) -> Any:
        """Map [batch, channels, depth, height, width] to [batch, channels, *output_size]."""
        return F.fractional_max_pool3d(input, *self._args())
