"""Affine maps of the last dimension."""

from __future__ import annotations

from graphc.base.errors import ShapeError
from graphc.ops.contraction import matrix_product
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.mixed import product
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor import Tensor

__all__ = ["bilinear", "linear"]


@product
@compiled_when_repeated
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``input @ weight.T + bias`` for input [..., in], weight [out, in] and bias [out].

    A weight [in] drops the last dimension. Raises ShapeError when input and weight differ in their last dimension.

    Example:
        >>> import graphc as gc
        >>> gc.nn.functional.linear(gc.tensor([1.0, 2.0]), gc.tensor([[1.0, 10.0]]), gc.tensor([0.5]))
        tensor([21.5000])
    """
    if not input.shape or not weight.shape or input.shape[-1] != weight.shape[-1]:
        raise ShapeError(
            f"linear: input {list(input.shape)} and weight {list(weight.shape)} differ in their last dimension",
            remedy=f"pass an input with {weight.shape[-1] if weight.shape else 1} features",
        )
    if len(input.shape) > 1 and len(weight.shape) == 2:
        result = matrix_product.matmul(input, weight, transpose_b=True)
    else:
        flat = input.reshape(1, -1) if len(input.shape) == 1 else input
        matrix = weight.reshape(1, -1) if len(weight.shape) == 1 else weight
        result = matrix_product.matmul(flat, matrix, transpose_b=True)
        result = result.reshape(*input.shape[:-1], *weight.shape[:-1])
    return result if bias is None else ew.add(result, bias)


@product
@compiled_when_repeated
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Compute ``sum_ij input1[i] weight[o, i, j] input2[j] + bias[o]`` over the last dimensions of both inputs.

    Raises ShapeError when sizes do not fit weight [out, in1, in2].
    """
    if len(weight.shape) != 3:
        raise ShapeError(
            f"bilinear: the weight {list(weight.shape)} is not [out, in1, in2]", remedy="pass three dimensions"
        )
    out, first, second = weight.shape
    if input1.shape[-1] != first or input2.shape[-1] != second or input1.shape[:-1] != input2.shape[:-1]:
        raise ShapeError(
            f"bilinear: inputs {list(input1.shape)} and {list(input2.shape)} do not fit weight {list(weight.shape)}"
        )
    rows = input1.reshape(-1, 1, 1, first)
    partial = matrix_product.matmul(rows, weight).reshape(-1, out, second)
    result = (partial * input2.reshape(-1, 1, second)).sum(-1, dtype=partial.dtype).reshape(*input1.shape[:-1], out)
    return result if bias is None else result + bias
