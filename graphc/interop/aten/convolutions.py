"""Rules of ATen's convolution operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.interop.aten.registry import rule, same
from graphc.nn import functional as F
from graphc.tensors.tensor import Tensor

same("conv1d conv2d conv3d", "default padding")
same("conv_transpose1d")
rule("conv_transpose2d.input")(F.conv_transpose2d)
rule("conv_transpose3d.input")(F.conv_transpose3d)

_PLAIN = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
_TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}


@rule("convolution")
def convolution(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Tensor:
    rank = weight.dim() - 2
    every: Any = [tuple(v) * rank if len(v) == 1 else tuple(v) for v in (stride, padding, dilation, output_padding)]
    strides, paddings, dilations, outputs = every
    if transposed:
        return _TRANSPOSED[rank](input, weight, bias, strides, paddings, outputs, groups, dilations)
    return _PLAIN[rank](input, weight, bias, strides, paddings, dilations, groups)
