"""ONNX operators that apply a function to each element: arithmetic, comparisons, activations."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.interop.onnx.registry import host, op, same
from graphc.nn import functional as F
from graphc.tensors import free_functions, functions
from graphc.tensors.tensor import Tensor

_SPACES = (functions, free_functions, F)


def _function(name: str) -> Any:
    return next(getattr(space, name) for space in _SPACES if hasattr(space, name))


same("Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Erf Exp Floor Log Neg Reciprocal Sigmoid Sign", _function)
same("Sin Sinh Sqrt Tan Tanh Round Relu Softplus Softsign Mish", _function)
same("Add Sub Mul Pow", _function)
same("And=logical_and Or=logical_or Xor=logical_xor Not=logical_not Equal=eq Greater=gt Less=lt", _function)
same("GreaterOrEqual=ge LessOrEqual=le Where", _function)


@op("Identity", values=True)
def identity(x: Any) -> Any:
    return x


@op("Div")
def div(a: Tensor, b: Tensor) -> Tensor:
    """Quotients; of whole numbers those of C, cut towards zero."""
    return a / b if a.dtype.is_floating_point else functions.div(a, b, rounding_mode="trunc")


@op("Gelu", since=20)
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    return F.gelu(x, approximate=approximate)


host("Add")(np.add)
host("Mul")(np.multiply)
