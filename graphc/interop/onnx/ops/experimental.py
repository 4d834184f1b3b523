"""Rules of operators that ONNX had as experiments until version 10, and that old files of other frameworks contain."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.interop.onnx.ops.slicing import slice_
from graphc.interop.onnx.registry import op
from graphc.nn import functional as F
from graphc.tensors.creation import tensor
from graphc.tensors.tensor import Tensor

op("DynamicSlice", host="starts ends axes")(slice_)


@op("Affine")
def affine(x: Tensor, *, alpha: float = 1.0, beta: float = 0.0) -> Tensor:
    return x * alpha + beta


@op("Scale")
def scaled(x: Tensor, *, scale: float = 1.0) -> Tensor:
    return x * scale


@op("ScaledTanh")
def scaled_tanh(x: Tensor, *, alpha: float = 1.0, beta: float = 1.0) -> Tensor:
    return (x * beta).tanh() * alpha


@op("ParametricSoftplus")
def parametric_softplus(x: Tensor, *, alpha: float = 1.0, beta: float = 1.0) -> Tensor:
    return F.softplus(x * beta) * alpha


@op("ImageScaler")
def image_scaler(x: Tensor, *, bias: Sequence[float] = (), scale: float = 1.0) -> Tensor:
    """Multiply images, and add a number to each channel."""
    result = x * scale
    return result + tensor(bias, dtype=x.dtype).reshape(-1, 1, 1) if bias else result


@op("Crop")
def crop(x: Tensor, *, border: Sequence[int], scale: Sequence[int] = ()) -> Tensor:
    """Cut ``border`` (left, top, right, bottom) off images. ``scale`` gives height and width instead of the end."""
    left, top, right, bottom = border
    height, width = scale or (x.shape[2] - top - bottom, x.shape[3] - left - right)
    return x.narrow(2, top, height).narrow(3, left, width)
