"""Layers that pad, resize and rearrange pixels."""

from __future__ import annotations

from typing import Any, ClassVar

from graphc.nn import functional as F
from graphc.nn.functional.spatial import IntOrInts, per_dimension
from graphc.nn.module import Module
from graphc.tensors.tensor import Tensor

__all__ = ["ChannelShuffle", "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d"]
__all__ += ["ConstantPad3d", "Fold", "PixelShuffle", "PixelUnshuffle", "ReflectionPad1d", "ReflectionPad2d"]
__all__ += ["ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d", "Unfold", "Upsample"]
__all__ += ["UpsamplingBilinear2d", "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d"]


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


class _Pad(Module):
    """Base of padding of the last ``rank`` dimensions.

    ``padding`` is one number, or (before, after) per dimension, the last dimension first.
    """

    rank: ClassVar[int]
    mode: ClassVar[str] = "constant"
    value: float | None = None

    def __init__(self, padding: IntOrInts):
        super().__init__()
        self.padding = per_dimension(padding, 2 * self.rank, "padding")

    def forward(self, input: Tensor) -> Tensor:
        """Return the input with the last ``rank`` dimensions padded."""
        return F.pad(input, self.padding, self.mode, self.value)

    def extra_repr(self) -> str:
        return f"{self.padding}" if self.value is None else f"padding={self.padding}, value={self.value}"


class _ConstantPad(_Pad):
    def __init__(self, padding: IntOrInts, value: float):
        super().__init__(padding)
        self.value = value


class ConstantPad1d(_ConstantPad):
    """A constant around the last dimension."""

    rank = 1


class ConstantPad2d(_ConstantPad):
    """A constant around the last two dimensions."""

    rank = 2


class ZeroPad1d(_Pad):
    """Zeros around the last dimension."""

    rank = 1


class ZeroPad2d(_Pad):
    """Zeros around the last two dimensions."""

    rank = 2


class ConstantPad3d(_ConstantPad):
    """A constant around the last three dimensions."""

    rank = 3


class ZeroPad3d(_Pad):
    """Zeros around the last three dimensions."""

    rank = 3


class ReflectionPad1d(_Pad):
    """Mirrors the last dimension, without its edges."""

    rank, mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """Mirrors the last two dimensions, without their edges."""

    rank, mode = 2, "reflect"


class ReplicationPad1d(_Pad):
    """Repeats the edges of the last dimension."""

    rank, mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """Repeats the edges of the last two dimensions."""

    rank, mode = 2, "replicate"


class CircularPad1d(_Pad):
    """Wraps the last dimension around."""

    rank, mode = 1, "circular"


class CircularPad2d(_Pad):
    """Wraps the last two dimensions around."""

    rank, mode = 2, "circular"


class ReflectionPad3d(_Pad):
    """Mirrors the last three dimensions, without their edges."""

    rank, mode = 3, "reflect"


class ReplicationPad3d(_Pad):
    """Repeats the edges of the last three dimensions."""

    rank, mode = 3, "replicate"


class CircularPad3d(_Pad):
    """Wraps the last three dimensions around."""

    rank, mode = 3, "circular"


class Upsample(Module):
    """Resizes [batch, channels, ...] to ``size`` or by ``scale_factor``."""

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, ...] to [batch, channels, *new sizes]."""
        options = (self.size, self.scale_factor, self.mode, self.align_corners, self.recompute_scale_factor)
        return F.interpolate(input, *options)

    def extra_repr(self) -> str:
        size = f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"
        return f"{size}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resizes [batch, channels, height, width] by nearest neighbours."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resizes [batch, channels, height, width] bilinearly, with the corner points fixed."""

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, "bilinear", True)


class PixelShuffle(Module):
    """Rearranges [..., c r r, h, w] to [..., c, h r, w r] with r = ``upscale_factor``."""

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Move channels into pixels."""
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Rearranges [..., c, h r, w r] to [..., c r r, h, w] with r = ``downscale_factor``."""

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Move pixels into channels."""
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Interleaves the channels of all groups."""

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, channels, ...] to the same shape."""
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
