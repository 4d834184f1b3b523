"""Rules of ATen's elementwise operators, and of softmax."""

from __future__ import annotations

from math import inf
from typing import Any

from graphc.interop.aten.registry import rule, same
from graphc.nn import functional as F
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.creation import full
from graphc.tensors.tensor import Tensor

same("abs acos acosh asin asinh atan atanh ceil cos cosh digamma erf erfc erfinv exp exp2 expm1 floor frac isfinite")
same("isinf isnan isneginf isposinf lgamma log log10 log1p log2 logical_not neg positive reciprocal rsqrt sgn sigmoid")
same("sign signbit sin sinc sinh sqrt square tan tanh trunc bitwise_not logit nan_to_num deg2rad rad2deg absolute")
same("round i0 igamma igammac")
same("relu silu mish hardswish hardsigmoid relu6 selu celu leaky_relu softplus hardshrink softshrink hardtanh")
same("add sub rsub mul eq ne lt le gt ge remainder fmod bitwise_and bitwise_or bitwise_xor copysign", "Tensor Scalar")
same("div", "Tensor Scalar Tensor_mode Scalar_mode")
same("bitwise_left_shift bitwise_right_shift", "Tensor Tensor_Scalar")
same("maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2 logical_and logical_or logical_xor heaviside")
same("addcmul addcdiv prelu threshold glu floor_divide")
same("lerp", "Tensor Scalar")
same("clamp", "default Tensor")
same("clamp_min clamp_max")
for _sign in ("and", "or", "xor"):
    rule(f"__{_sign}__.Tensor", f"__{_sign}__.Scalar")(getattr(functions, f"bitwise_{_sign}"))
rule("clamp_min.Tensor")(functions.maximum)
rule("clamp_max.Tensor")(functions.minimum)


@rule("true_divide.Tensor", "true_divide.Scalar")
def true_divide(self: Tensor, other: Any) -> Tensor:
    return functions.div(self, other)


@rule("floor_divide.Scalar")
def floor_divide(self: Tensor, other: Any) -> Tensor:
    return functions.floor_divide(self, other)


@rule("pow.Tensor_Tensor", "pow.Tensor_Scalar")
def pow(self: Tensor, exponent: Any) -> Tensor:
    return functions.pow(self, exponent)


@rule("pow.Scalar")
def power_of(self: Any, exponent: Tensor) -> Any:
    return self**exponent


@rule("log_sigmoid_forward")
def log_sigmoid_forward(self: Tensor) -> tuple[Tensor, Tensor]:
    """Return the result, and a buffer for PyTorch's own backward pass."""
    return F.logsigmoid(self), functions.exp(-functions.abs(self))


@rule("log_sigmoid")
def log_sigmoid(self: Tensor) -> Tensor:
    return F.logsigmoid(self)


@rule("round.decimals")
def round_to(self: Tensor, *, decimals: int) -> Tensor:
    return functions.round(self, decimals=decimals)


@rule("gelu")
def gelu(self: Tensor, *, approximate: str = "none") -> Tensor:
    return F.gelu(self, approximate=approximate)


@rule("elu")
def elu(self: Tensor, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Tensor:
    if input_scale != 1:
        return free.where(self > 0, self * scale, functions.expm1(self * input_scale) * (alpha * scale))
    result = F.elu(self, alpha)
    return result if scale == 1 else result * scale


@rule("where.self", "where.ScalarOther", "where.ScalarSelf", "where.Scalar")
def where(condition: Tensor, self: Any, other: Any) -> Tensor:
    return free.where(condition, self, other)


@rule("where")
def where_true(condition: Tensor) -> Any:
    return free.where(condition)


@rule("masked_fill.Scalar", "masked_fill.Tensor")
def masked_fill(self: Tensor, mask: Tensor, value: Any) -> Tensor:
    return functions.masked_fill(self, mask, value)


@rule("fill.Scalar", "fill.Tensor")
def fill(self: Tensor, value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return copy(self, value)
    return full(self.shape, value, dtype=self.dtype)


@rule("_softmax")
def _softmax(self: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return F.softmax(self, dim)


@rule("_safe_softmax")
def safe_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    """Apply softmax. Entirely masked rows become zeros."""
    hidden = functions.all(functions.eq(self, -inf), dim, keepdim=True)
    return functions.masked_fill(F.softmax(self, dim, dtype=dtype), hidden, 0.0)


@rule("_log_softmax")
def _log_softmax(self: Tensor, dim: int, half_to_float: bool = False) -> Tensor:
    return F.log_softmax(self, dim)


@rule("softmax.int", "special_softmax")
def softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return F.softmax(self, dim, dtype=dtype)


@rule("log_softmax.int", "special_log_softmax")
def log_softmax(self: Tensor, dim: int, dtype: Any = None) -> Tensor:
    return F.log_softmax(self, dim, dtype=dtype)


@rule("copy")
def copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return src.to(self.dtype).expand(self.shape).clone()


@rule("copy_")
def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return self.copy_(src)


@rule("prims.fma.default")
def fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Multiply and add. The product is rounded, as in PyTorch's eager mode and elsewhere in compiled code."""
    return a * b + c
