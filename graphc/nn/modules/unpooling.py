"""Layers that put maxima back, and that pool over windows at random places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.nn import functional as F
from graphc.nn.functional.spatial import IntOrInts, per_dimension
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor


class _MaxUnpool(Module):
    """What unpooling of any number of dimensions has in common."""

    rank: int

    def __init__(self, kernel_size: IntOrInts, stride: IntOrInts | None = None, padding: IntOrInts = 0):
        super().__init__()
        self.kernel_size = per_dimension(kernel_size, self.rank, "kernel_size")
        self.stride = self.kernel_size if stride is None else per_dimension(stride, self.rank, "stride")
        self.padding = per_dimension(padding, self.rank, "padding")

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Zeros with maxima of [batch, channels, length] where a ``MaxPool1d`` found them."""

    rank = 1

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """[batch, channels, length] to the size before pooling, or to ``output_size``."""
        return F.max_unpool1d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool2d(_MaxUnpool):
    """Zeros with maxima of [batch, channels, height, width] where a ``MaxPool2d`` found them."""

    rank = 2

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """[batch, channels, height, width] to the size before pooling, or to ``output_size``."""
        return F.max_unpool2d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool3d(_MaxUnpool):
    """Zeros with maxima of a volume where a ``MaxPool3d`` found them."""

    rank = 3

    def forward(self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """[batch, channels, depth, height, width] to the size before pooling, or to ``output_size``."""
        return F.max_unpool3d(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class _FractionalMaxPool(Module):
    """What pooling at random places has in common."""

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
    """Maximum over windows at random places of [batch, channels, height, width] (Graham 2014)."""

    def forward(self, input: Tensor) -> Any:
        """[batch, channels, height, width] to [batch, channels, *output_size]."""
        return F.fractional_max_pool2d(input, *self._args())


class FractionalMaxPool3d(_FractionalMaxPool):
    """Maximum over windows at random places of a volume (Graham 2014)."""

    def forward(self, input: Tensor) -> Any:
        """[batch, channels, depth, height, width] to [batch, channels, *output_size]."""
        return F.fractional_max_pool3d(input, *self._args())
