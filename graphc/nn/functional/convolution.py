"""Convolutions and transposed convolutions over one or two spatial dimensions."""

from __future__ import annotations

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.nn.functional.spatial import IntOrInts, Ints, Pairs, batched, per_dimension, symmetric, unbatched
from graphc.ops.contraction import convolution
from graphc.ops.movement import shape
from graphc.tensors.mixed import product
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"]


@product
@compiled_when_repeated
def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlate [batch, channels, length] with weight [out, channels / groups, kernel]."""
    return _conv("conv1d", 1, input, weight, bias, stride, padding, dilation, groups)


@product
@compiled_when_repeated
def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts | str = 0,
    dilation: IntOrInts = 1,
    groups: int = 1,
) -> Tensor:
    """Cross-correlate [batch, channels, height, width] with weight [out, channels / groups, kernel height, width].

    ``padding`` is the number of zeros around the input, ``"valid"`` for none or ``"same"`` for an output of the input's
    size (stride 1 only). Raises ShapeError when channels or sizes do not fit. Compiled code may return NaN for more
    elements than eager code (never fewer) when the input holds infinities or NaN; docs/reliability.md says which.

    Example:
        >>> import graphc as gc
        >>> image, kernel = gc.ones(1, 1, 3, 3), gc.ones(1, 1, 2, 2)
        >>> gc.nn.functional.conv2d(image, kernel)
        tensor([[[[4., 4.],
                  [4., 4.]]]])
    """
    return _conv("conv2d", 2, input, weight, bias, stride, padding, dilation, groups)


def _conv(
    name: str,
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: IntOrInts,
    padding: IntOrInts | str,
    dilation: IntOrInts,
    groups: int,
) -> Tensor:
    x, added = batched(x, rank, name)
    _check_weight(name, rank, weight)
    strides = per_dimension(stride, rank, "stride")
    dilations = per_dimension(dilation, rank, "dilation")
    pads = _padding(name, padding, strides, dilations, tuple(weight.shape[2:]))
    result = convolution.conv(x, weight, stride=strides, padding=pads, dilation=dilations, groups=groups)
    return unbatched(add_bias(name, result, bias, rank), added)


def _check_weight(name: str, rank: int, weight: Tensor) -> None:
    if len(weight.shape) != rank + 2:
        raise ShapeError(f"{name}: the weight has {len(weight.shape)} dimensions {list(weight.shape)}, not {rank + 2}")


def _padding(name: str, padding: IntOrInts | str, stride: Ints, dilation: Ints, kernel: Ints) -> Pairs:
    if not isinstance(padding, str):
        return symmetric(per_dimension(padding, len(kernel), "padding"))
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding != "same":
        raise AttributeValueError(f'{name}: padding {padding!r} is neither a number, "valid" nor "same"')
    if any(s != 1 for s in stride):
        raise AttributeValueError(
            f'{name}: padding "same" needs stride 1, got {stride}', remedy="use stride 1, or pass padding as numbers"
        )
    return same_padding(kernel, dilation)


def same_padding(kernel: Ints, dilation: Ints) -> Pairs:
    """Return the padding that keeps the size; if the total is odd, the larger half comes after."""
    totals = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    return tuple((total // 2, total - total // 2) for total in totals)


def add_bias(name: str, result: Tensor, bias: Tensor | None, rank: int) -> Tensor:
    """Add a bias per output channel; raise ShapeError, naming ``name``, if it has another shape."""
    if bias is None:
        return result
    if tuple(bias.shape) != (result.shape[1],):
        raise ShapeError(f"{name}: the bias has shape {list(bias.shape)}, expected [{result.shape[1]}]")
    return result + bias.reshape(-1, *(1,) * rank)


@product
@compiled_when_repeated
def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """Apply the gradient of conv1d as a forward function.

    Shapes: input [batch, in, length], weight [in, out / groups, kernel].
    """
    return _conv_transpose(
        "conv_transpose1d", 1, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


@product
@compiled_when_repeated
def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: IntOrInts = 1,
    padding: IntOrInts = 0,
    output_padding: IntOrInts = 0,
    groups: int = 1,
    dilation: IntOrInts = 1,
) -> Tensor:
    """Apply the gradient of conv2d as a forward function.

    Shapes: input [batch, in, height, width], weight [in, out / groups, kernel height, kernel width].

    ``output_padding`` selects one of the output sizes which conv2d maps to the input's size. In compiled code an
    infinity or NaN spreads as far as a kernel whose size is rounded up to a multiple of the stride; docs/reliability.md
    says more.
    """
    return _conv_transpose(
        "conv_transpose2d", 2, input, weight, bias, stride, padding, output_padding, groups, dilation
    )


def _conv_transpose(
    name: str,
    rank: int,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: IntOrInts,
    padding: IntOrInts,
    output_padding: IntOrInts,
    groups: int,
    dilation: IntOrInts,
) -> Tensor:
    x, added = batched(x, rank, name)
    _check_weight(name, rank, weight)
    if x.shape[1] != weight.shape[0]:
        raise ShapeError(f"{name}: the input has {x.shape[1]} channels, the weight expects {weight.shape[0]}")
    strides = per_dimension(stride, rank, "stride")
    dilations = per_dimension(dilation, rank, "dilation")
    pads = per_dimension(padding, rank, "padding")
    extra = per_dimension(output_padding, rank, "output_padding")
    for e, s, d in zip(extra, strides, dilations, strict=True):
        if e >= max(s, d):
            raise AttributeValueError(f"{name}: output_padding {e} must be smaller than stride {s} or dilation {d}")
    # No stride reaches these last elements: reduce the padding at the end, and append zeros when it is used up.
    unreached = [e if e >= s else 0 for e, s in zip(extra, strides, strict=True)]
    pairs = tuple((p, max(p - b, 0)) for p, b in zip(pads, unreached, strict=True))
    zeros = tuple(max(b - p, 0) for p, b in zip(pads, unreached, strict=True))
    spans = zip(x.shape[2:], strides, dilations, weight.shape[2:], strict=True)
    size = tuple(
        (n - 1) * s - sum(pair) + d * (k - 1) + e - b + 1
        for (n, s, d, k), pair, e, b in zip(spans, pairs, extra, unreached, strict=True)
    )
    if any(n < 0 for n in size):
        raise ShapeError(
            f"{name}: padding {pads} leaves an output of size {size}",
            remedy="reduce the padding, or use a larger input or kernel",
        )
    options = {"stride": strides, "padding": pairs, "dilation": dilations, "groups": groups}
    result = convolution.conv_grad_input(x, weight, size=size, **options)
    if any(zeros):
        result = shape.pad(result, low=(0,) * (rank + 2), high=(0, 0, *zeros), interior=(0,) * (rank + 2))
    return unbatched(add_bias(name, result, bias, rank), added)
