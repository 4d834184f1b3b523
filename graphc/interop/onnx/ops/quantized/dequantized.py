"""Products of dequantized operands, computed from the codes: exact sums in i32, times both scales."""

from __future__ import annotations

from math import prod
from typing import Any

from graphc.base.dtypes import float32
from graphc.interop.onnx.elements import INT8
from graphc.interop.onnx.ops.quantized.byte_weights import point_of, point_of_all, takes_filters, takes_matrix
from graphc.interop.onnx.ops.quantized.quantization import along, integers_of
from graphc.interop.onnx.ops.windows import Window
from graphc.interop.onnx.values import Codes, Value
from graphc.nn.functional.byte_products import (
    BYTE,
    SIGNED,
    ByteMatrix,
    are_exact_reals,
    centered,
    grouped_convolved,
    holds_sums,
    real_convolved,
)
from graphc.tensors.tensor import Tensor


def product_of_codes(a: Codes | None, b: Codes | None, transposed: bool = False) -> Tensor | None:
    """Return the product of two dequantized matrices, the second one ``transposed`` or not.

    Returns None where it is no product of rows with one scale and a matrix with scales of columns.
    """
    if a is None or b is None or b.codes.tensor.ndim != 2:
        return None
    matrix = Value(b.codes.element, b.codes.tensor.t()) if transposed else b.codes
    if not takes_matrix(a.codes, matrix) or not a.is_along(None) or not b.is_along(0 if transposed else 1):
        return None
    if not holds_sums(matrix.shape[0], BYTE * _largest(b)):
        return None
    total = ByteMatrix.of(matrix.tensor, _point(b)).product(a.codes.tensor, point_of_all(a.zero))
    return total.to(float32) * (_scale(a) * _scale(b))


def _point(x: Codes) -> Tensor | None:
    point = None if x.zero is None else point_of(x.zero)
    return point.reshape(()) if point is not None and point.shape.numel() == 1 else point


def _largest(w: Codes) -> int:
    """Return the largest distance of a weight code from its zero point."""
    return SIGNED if w.codes.element is INT8 and _point(w) is None else BYTE


def _scale(x: Codes) -> Tensor:
    return x.scale.reshape(()) if x.scale.shape.numel() == 1 else x.scale


def convolution_of_codes(x: Codes | None, w: Codes | None, geometry: Window, group: int) -> Tensor | None:
    """Return the convolution of a dequantized image with dequantized filters.

    Returns None where it is no convolution of codes with one scale by filters with a scale each.
    """
    if x is None or w is None or not x.is_along(None) or not w.is_along(0):
        return None
    filters, point = w.codes.tensor, _point(w)
    if not takes_filters(x.codes, w.codes) or any(_crops(pair) for pair in geometry.padding):
        return None
    at = None if point is None else along(point, filters, 0, 0)
    spans, count = (geometry.padding, geometry.stride, geometry.dilation), prod(filters.shape[1:])
    if group > 1 and are_exact_reals(count, BYTE * _largest(w)):
        image = integers_of(x.codes, x.zero)
        if image is None:
            image = centered(x.codes.tensor, point_of_all(x.zero), float32)
        total = grouped_convolved(image, centered(filters, at, float32), *spans, group)
    elif group == 1 and holds_sums(count, BYTE * _largest(w)):
        total = real_convolved(x.codes.tensor, point_of_all(x.zero), filters, at, *spans)
    else:
        return None
    return total * along(_scale(x) * _scale(w), total, 1, 0)


def transposed_convolution_of_codes(x: Codes | None, w: Codes | None, geometry: Window, group: int) -> Tensor | None:
    """Return the transposed convolution of a dequantized image with dequantized filters [in, out, *kernel].

    Returns None unless each element of the result comes from one pixel, because the stride is the size of the filters:
    then it is a product of pixels, whose results lie in blocks.
    """
    if x is None or w is None or not x.is_along(None) or not w.is_along(1):
        return None
    kernel, rank = geometry.kernel, len(geometry.kernel)
    apart = tuple(geometry.stride) == tuple(kernel) and set(geometry.dilation) == {1}
    if not apart or group > 1 or not takes_filters(x.codes, w.codes) or _point(w) is not None:
        return None
    filters = w.codes.tensor.permute(*range(1, rank + 2), 0)
    if not holds_sums(filters.shape[-1], BYTE * _largest(w)):
        return None
    channels, ones = filters.shape[0], (1,) * rank
    columns = filters.reshape(-1, filters.shape[-1], *ones)
    total = real_convolved(x.codes.tensor, point_of_all(x.zero), columns, None, ((0, 0),) * rank, ones, ones)
    blocks = total.reshape(total.shape[0], channels, *kernel, *total.shape[2:])
    order = [axis for d in range(rank) for axis in (2 + rank + d, 2 + d)]
    sizes = [n * k for n, k in zip(total.shape[2:], kernel, strict=True)]
    image = blocks.permute(0, 1, *order).reshape(total.shape[0], channels, *sizes)
    return image * along(_scale(x) * _scale(w), image, 1, 0)


def _crops(pair: tuple[Any, Any]) -> bool:
    return min(pair) < 0
