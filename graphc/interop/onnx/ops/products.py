"""Rules of ONNX's matrix products and determinants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.lazy import deferred
from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.creation import arange, ones
from graphc.tensors.methods.algebra import einsum
from graphc.tensors.tensor import Tensor

product_of_codes = deferred("graphc.interop.onnx.ops.quantized.dequantized:product_of_codes")


@op("MatMul", values=True)
def matmul(a: Value, b: Value) -> Tensor:
    """Multiply matrices; dequantized ones by the exact product of their codes."""
    product = None if a.codes is None else product_of_codes(a.codes, b.codes)
    return free.matmul(a.tensor, b.tensor) if product is None else product


@op("Gemm", values=True)
def general_product(a: Value, b: Value, c: Value | None = None, **attributes: Any) -> Tensor:
    """Return ``alpha * a @ b + beta * c``; of dequantized matrices by the exact product of their codes."""
    product, others = None, attributes.keys() - {"transB"}
    is_plain = all(attributes[name] == default for name, default in _PLAIN.items() if name in others)
    if a.codes is not None and is_plain:
        product = product_of_codes(a.codes, b.codes, bool(attributes.get("transB", 0)))
    addend = None if c is None else c.tensor
    if product is None:
        return gemm(a.tensor, b.tensor, addend, **attributes)
    return product if addend is None else product + addend


_PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0}
"""Attributes of Gemm with which it is a product and a sum."""


def gemm(
    a: Tensor,
    b: Tensor,
    c: Tensor | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Tensor:
    """Return ``alpha * a @ b + beta * c``."""
    left = a.t() if transA else a
    if transB and c is not None and c.ndim == 1 and c.shape == b.shape[:1] and alpha == 1 == beta:
        return F.linear(left, b, c)
    product = _scaled(free.matmul(left, b.t() if transB else b), alpha)
    return product if c is None else product + _scaled(c, beta)


def _scaled(x: Tensor, factor: float) -> Tensor:
    if factor == 1:
        return x
    return x * factor if x.dtype.is_floating_point else (x.to("float64") * factor).to(x.dtype)


@op("Einsum")
def summed_products(*inputs: Tensor, equation: str) -> Tensor:
    return einsum(equation, *inputs)


@op("Det")
def determinant(x: Tensor) -> Tensor:
    """Return determinants of matrices, by elimination with the largest pivot of each column."""
    count = x.shape[-1]
    product = ones(x.shape[:-2], dtype=x.dtype)
    for _ in range(count):
        pivot, flips, x = _eliminated(x)
        product = product * ew.where(flips, -pivot, pivot)
    return product


def _eliminated(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Eliminate one column. Returns its pivot, whether rows were swapped, and the remaining submatrices."""
    best = functions.argmax(ew.abs(x[..., 0]), -1, keepdim=True).unsqueeze(-1)
    is_best = best.eq(arange(x.shape[-2]).reshape(-1, 1))
    chosen = ew.where(is_best, x, 0.0).sum(-2, True)
    rows = ew.where(is_best, x[..., :1, :], x)[..., 1:, :]
    pivot = chosen[..., :1]
    factor = rows[..., :1] / ew.where(pivot.eq(0), 1.0, pivot)
    remainder = rows[..., 1:] - factor * chosen[..., 1:]
    return pivot[..., 0, 0], best[..., 0, 0].ne(0), remainder


# ---- of ONNX Runtime


def _turned(x: Tensor, transposed: int, batch: int) -> Tensor:
    """Transpose an operand for multiplication. ``batch`` moves the first dimension after the other batch
    dimensions."""
    if batch:
        x = x.permute(*range(1, x.ndim - 1), 0, x.ndim - 1)
    return x.transpose(-1, -2) if transposed and x.ndim > 1 else x


@op("FusedMatMul", "TransposeMatMul", domain=MICROSOFT, values=True)
def fused_matmul(
    a: Value,
    b: Value,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Value:
    left, right = _turned(a.tensor, transA, transBatchA), _turned(b.tensor, transB, transBatchB)
    return Value(a.element, _scaled(free.matmul(left, right), alpha))


_ACTIVATIONS: dict[str, Callable[..., Tensor]] = {
    "": lambda x: x,
    "Relu": F.relu,
    "LeakyRelu": lambda x, alpha=0.01, *_: F.leaky_relu(x, alpha),
    "Sigmoid": functions.sigmoid,
    "HardSigmoid": lambda x, alpha=0.2, beta=0.5, *_: functions.clamp(x * alpha + beta, 0.0, 1.0),
    "Softplus": F.softplus,
    "Tanh": functions.tanh,
}


@op("FusedGemm", domain=MICROSOFT, values=True)
def fused_gemm(
    a: Value,
    b: Value,
    c: Value | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    activation: str = "",
    activation_params: Sequence[float] = (),
    **named: Any,
) -> Value:
    """Apply Gemm, then an activation with its parameters as a list or by name."""
    parameters = activation_params or tuple([named[k] for k in ("activation_alpha", "activation_beta") if k in named])
    added = None if c is None else c.tensor
    product = gemm(a.tensor, b.tensor, added, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return Value(a.element, _ACTIVATIONS[activation](product, *parameters))
