"""Rules of ONNX operators: activations, and three kinds of softmax."""

from __future__ import annotations

from math import prod
from typing import Any

from graphc.interop.onnx.registry import MICROSOFT, op
from graphc.interop.onnx.values import Value
from graphc.nn import functional as F
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors import functions
from graphc.tensors.creation import arange
from graphc.tensors.tensor import Tensor


@op("Elu", since=6)
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.elu(x, alpha)


@op("Selu", since=6)
def selu(x: Tensor, *, alpha: float = 1.67326319217681884765625, gamma: float = 1.05070102214813232421875) -> Tensor:
    return F.elu(x, alpha) * gamma


@op("Celu", since=12)
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.celu(x, alpha)


@op("LeakyRelu", since=6)
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    return F.leaky_relu(x, alpha)


@op("ThresholdedRelu", since=10)
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return ew.where(x > alpha, x, 0.0)


@op("PRelu", since=7)
def prelu(x: Tensor, slope: Tensor) -> Tensor:
    """Multiply negative numbers by slopes, which broadcast to them."""
    return ew.where(x < 0, x * slope, x)


@op("HardSigmoid", since=6)
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    return functions.clamp(x * alpha + beta, 0.0, 1.0)


@op("HardSwish", since=14)
def hard_swish(x: Tensor) -> Tensor:
    return x * hard_sigmoid(x, alpha=1 / 6, beta=0.5)


@op("Swish", since=24)
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    return F.silu(x) if alpha == 1.0 else x * functions.sigmoid(x * alpha)


@op("Shrink", since=9)
def shrink(x: Tensor, *, bias: float = 0.0, lambd: float = 0.5) -> Tensor:
    """Move numbers beyond ``lambd`` towards zero by ``bias``; map the others to zero."""
    real = x if x.dtype.is_floating_point else x.to("float32")
    beyond = ew.where(real < -lambd, real + bias, ew.where(real > lambd, real - bias, 0.0))
    return beyond.to(x.dtype)


@op("Gelu", since=20)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return F.gelu(x, approximate=approximate)


# ---- softmax


def _rows(x: Tensor, axis: int) -> Tensor:
    """Return the matrix whose rows are the dimensions before the axis and whose columns are the others."""
    at = axis % max(x.ndim, 1)
    return x.reshape(prod(x.shape[:at]), prod(x.shape[at:]))


@op("Softmax", since=13)
def softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return F.softmax(x, axis)


@op("LogSoftmax", since=13)
def log_softmax(x: Tensor, *, axis: int = -1) -> Tensor:
    return F.log_softmax(x, axis)


@op("Hardmax", since=13)
def hardmax(x: Tensor, *, axis: int = -1) -> Tensor:
    """Return 1 at the first of the largest elements, 0 elsewhere."""
    at = axis % x.ndim
    positions = arange(x.shape[at]).reshape(-1, *(1,) * (x.ndim - 1 - at))
    return functions.argmax(x, at, keepdim=True).eq(positions).to(x.dtype)


@op("Softmax")
def softmax_of_rows(x: Tensor, *, axis: int = 1) -> Tensor:
    """Apply softmax over all dimensions from the axis on (before version 13)."""
    return F.softmax(_rows(x, axis), 1).reshape(x.shape)


@op("LogSoftmax")
def log_softmax_of_rows(x: Tensor, *, axis: int = 1) -> Tensor:
    return F.log_softmax(_rows(x, axis), 1).reshape(x.shape)


@op("Hardmax")
def hardmax_of_rows(x: Tensor, *, axis: int = 1) -> Tensor:
    return hardmax(_rows(x, axis), axis=1).reshape(x.shape)


# ---- operators into which ONNX Runtime fuses several of ONNX


def _like(x: Value, result: Tensor) -> Value:
    return Value(x.element, result)


@op("Gelu", domain=MICROSOFT, values=True)
def exact_gelu(x: Value) -> Value:
    return _like(x, F.gelu(x.tensor))


@op("BiasGelu", domain=MICROSOFT, values=True)
def bias_gelu(x: Value, bias: Value) -> Value:
    return _like(x, F.gelu(x.tensor + bias.tensor))


@op("FastGelu", domain=MICROSOFT, values=True)
def fast_gelu(x: Value, bias: Value | None = None) -> Value:
    return _like(x, F.gelu(x.tensor if bias is None else x.tensor + bias.tensor, approximate="tanh"))


@op("QuickGelu", domain=MICROSOFT, values=True)
def quick_gelu(x: Value, *, alpha: float = 1.702) -> Value:
    return _like(x, x.tensor * functions.sigmoid(x.tensor * alpha))


@op("BiasSplitGelu", domain=MICROSOFT, values=True)
def bias_split_gelu(x: Value, bias: Value) -> Value:
    """Multiply the first half of the last dimension by the gelu of the second half."""
    left, right = functions.chunk(x.tensor + bias.tensor, 2, -1)
    return _like(x, left * F.gelu(right))


@op("BiasSoftmax", domain=MICROSOFT, values=True)
def bias_softmax(x: Value, bias: Value, *, axis: int = 1, is_inner_broadcast: int = 1) -> Value:
    """Apply softmax over all dimensions from the axis on, after the addition of a bias.

    The bias lacks or repeats the dimensions before the axis.
    """
    scores: Any = x.tensor
    added = bias.tensor
    if not is_inner_broadcast and added.ndim < scores.ndim:
        added = added.reshape(*added.shape[:1], *(1,) * (scores.ndim - added.ndim), *added.shape[1:])
    return _like(x, softmax_of_rows(scores + added, axis=axis))
