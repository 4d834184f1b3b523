"""Convolution layers."""

from __future__ import annotations

import math
from typing import Any

from graphc.base.errors import AttributeValueError
from graphc.nn import functional as F
from graphc.nn import init
from graphc.nn.functional.convolution import same_padding
from graphc.nn.functional.spatial import IntOrInts, Ints, per_dimension
from graphc.nn.functional.vision import pad
from graphc.nn.module import Module
from graphc.nn.parameter import Parameter, empty_parameter
from graphc.tensors.tensor import Tensor

__all__ = ["Conv1d", "Conv2d", "ConvTranspose1d", "ConvTranspose2d"]

_PADDING_MODES = ("zeros", "reflect", "replicate", "circular")


class _Conv(Module):
    """Base of convolutions of any number of dimensions."""

    rank: int
    transposed = False
    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrInts,
        stride: IntOrInts = 1,
        padding: IntOrInts | str = 0,
        dilation: IntOrInts = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise AttributeValueError(
                f"{self._get_name()}: {groups} groups do not divide {in_channels} input and {out_channels} "
                "output channels"
            )
        if padding_mode not in _PADDING_MODES:
            raise AttributeValueError(
                f"{self._get_name()}: padding_mode {padding_mode!r} is not known",
                remedy=f"pass one of {_PADDING_MODES}",
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_dimension(kernel_size, self.rank, "kernel_size")
        self.stride = per_dimension(stride, self.rank, "stride")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise AttributeValueError(f"{self._get_name()}: padding {padding!r} is neither 'same' nor 'valid'")
        if padding == "same" and any(s != 1 for s in per_dimension(stride, self.rank, "stride")):
            raise AttributeValueError(f"{self._get_name()}: padding 'same' needs a stride of 1, got {stride}")
        self.padding = padding if isinstance(padding, str) else per_dimension(padding, self.rank, "padding")
        self.dilation = per_dimension(dilation, self.rank, "dilation")
        self.groups = groups
        self.padding_mode = padding_mode
        channels = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (channels[0], channels[1] // groups, *self.kernel_size)
        self.weight = empty_parameter(shape, dtype, device)
        self.register_parameter("bias", empty_parameter((out_channels,), dtype, device) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly from minus to plus 1/sqrt(fan_in)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = init.bias_bound(self.weight)
            init.uniform_(self.bias, -bound, bound)

    def _padded(self, input: Tensor) -> tuple[Tensor, Ints | str]:
        """Apply non-zero padding modes to the input; return it with the padding that remains for the convolution."""
        if self.padding_mode == "zeros":
            return input, self.padding
        if self.padding == "same":
            pairs = same_padding(self.kernel_size, self.dilation)
        elif isinstance(self.padding, str):
            pairs = ()
        else:
            pairs = tuple((p, p) for p in self.padding)
        return pad(input, [n for pair in reversed(pairs) for n in pair], self.padding_mode), (0,) * self.rank

    def extra_repr(self) -> str:
        options = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        if self.padding != (0,) * self.rank:
            options.append(f"padding={self.padding}")
        if self.dilation != (1,) * self.rank:
            options.append(f"dilation={self.dilation}")
        if self.groups != 1:
            options.append(f"groups={self.groups}")
        if self.bias is None:
            options.append("bias=False")
        if self.padding_mode != "zeros":
            options.append(f"padding_mode={self.padding_mode}")
        return ", ".join(options)


class Conv1d(_Conv):
    """Convolution of [batch, in_channels, length]; weight [out_channels, in_channels / groups, kernel].

    Example:
        >>> import graphc as gc
        >>> gc.nn.Conv1d(3, 8, kernel_size=5)(gc.zeros(1, 3, 20)).shape
        (1, 8, 16)
    """

    rank = 1

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, in_channels, length] to [batch, out_channels, length']."""
        input, padding = self._padded(input)
        return F.conv1d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """Convolution of [batch, in_channels, height, width]; weight [out_channels, in_channels / groups, kh, kw].

    In compiled code, infinities and NaN may spread to more elements; see docs/reliability.md.

    Example:
        >>> import graphc as gc
        >>> layer = gc.nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)
        >>> layer(gc.zeros(1, 3, 32, 32)).shape
        (1, 8, 16, 16)
    """

    rank = 2

    def forward(self, input: Tensor) -> Tensor:
        """Map [batch, in_channels, height, width] to [batch, out_channels, height', width']."""
        input, padding = self._padded(input)
        return F.conv2d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class _ConvTranspose(_Conv):
    """Base of transposed convolutions."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: IntOrInts,
        stride: IntOrInts = 1,
        padding: IntOrInts = 0,
        output_padding: IntOrInts = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: IntOrInts = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        if padding_mode != "zeros":
            raise AttributeValueError(f'{self._get_name()}: padding_mode must be "zeros", got {padding_mode!r}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = per_dimension(output_padding, self.rank, "output_padding")

    def _numbers(self) -> Ints:
        """Return the padding as numbers; transposed convolutions take no padding names."""
        return per_dimension(self.padding, self.rank, "padding")

    def extra_repr(self) -> str:
        extra = super().extra_repr()
        return extra if not any(self.output_padding) else f"{extra}, output_padding={self.output_padding}"

    def _output_padding(self, input: Tensor, output_size: Any) -> Ints:
        """Return the output padding that makes the result ``output_size`` (its whole shape, or its spatial
        dimensions)."""
        if output_size is None:
            return self.output_padding
        target = tuple(output_size)[-self.rank :]
        sizes = input.shape[-self.rank :]
        padding = self._numbers()
        extras = []
        for n, t, k, s, p, d in zip(sizes, target, self.kernel_size, self.stride, padding, self.dilation, strict=True):
            extra = t - ((n - 1) * s - 2 * p + d * (k - 1) + 1)
            if not 0 <= extra < max(s, d):
                raise AttributeValueError(
                    f"{self._get_name()}: no output_padding maps size {tuple(sizes)} to output_size {target}"
                )
            extras.append(extra)
        return tuple(extras)


class ConvTranspose1d(_ConvTranspose):
    """Transposed convolution of [batch, in_channels, length]; weight [in_channels, out_channels / groups, kernel]."""

    rank = 1

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Map [batch, in_channels, length] to [batch, out_channels, length']."""
        extra = self._output_padding(input, output_size)
        args = (self.stride, self._numbers(), extra, self.groups, self.dilation)
        return F.conv_transpose1d(input, self.weight, self.bias, *args)


class ConvTranspose2d(_ConvTranspose):
    """Transposed convolution of [batch, in_channels, height, width]; weight [in_channels, out_channels / groups, *].

    In compiled code, infinities and NaN may spread to more elements; see docs/reliability.md.
    """

    rank = 2

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """Map [batch, in_channels, height, width] to [batch, out_channels, height', width']."""
        extra = self._output_padding(input, output_size)
        args = (self.stride, self._numbers(), extra, self.groups, self.dilation)
        return F.conv_transpose2d(input, self.weight, self.bias, *args)
