"""Rules of ATen's reductions: sums, extremes, orders, scans along a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.interop.aten.registry import rule, same
from graphc.tensors import free_functions as free
from graphc.tensors import functions
from graphc.tensors.tensor import Tensor

same("amax amin argmax argmin cumsum cumprod cummax cummin logcumsumexp logsumexp topk aminmax count_nonzero")
same("kthvalue mode nanmedian median trace", "default")
same("max min", "default dim other")
same("any all", "default dim dims")
same("argsort sort", "default stable")


@rule("sum")
def sum_all(self: Tensor, *, dtype: Any = None) -> Tensor:
    return functions.sum(self, dtype=dtype)


@rule("sum.dim_IntList")
def sum(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return functions.sum(self, dim or None, keepdim, dtype=dtype)


@rule("mean")
def mean_all(self: Tensor, *, dtype: Any = None) -> Tensor:
    return functions.mean(self, dtype=dtype)


@rule("mean.dim")
def mean(self: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return functions.mean(self, dim or None, keepdim, dtype=dtype)


@rule("prod")
def prod_all(self: Tensor, *, dtype: Any = None) -> Tensor:
    return functions.prod(self, dtype=dtype)


@rule("prod.dim_int")
def prod(self: Tensor, dim: int, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    return functions.prod(self, dim, keepdim, dtype=dtype)


@rule("var.correction")
def var(self: Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    return functions.var(self, dim, keepdim=keepdim, correction=1 if correction is None else correction)


@rule("var", "var.dim")
def var_unbiased(self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return functions.var(self, dim, keepdim=keepdim, correction=int(unbiased))


@rule("std.correction")
def std(self: Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    return functions.std(self, dim, keepdim=keepdim, correction=1 if correction is None else correction)


@rule("std", "std.dim")
def std_unbiased(self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    return functions.std(self, dim, keepdim=keepdim, correction=int(unbiased))


@rule("var_mean.correction")
def var_mean(self: Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return free.var_mean(self, dim, keepdim=keepdim, correction=1 if correction is None else correction)


@rule("norm.ScalarOpt_dim", "norm.Scalar", "norm.ScalarOpt_dim_dtype")
def norm(
    self: Tensor, p: Any = 2, dim: Sequence[int] | None = None, keepdim: bool = False, *, dtype: Any = None
) -> Tensor:
    return functions.norm(self, 2 if p is None else p, dim or None, keepdim, dtype=dtype)


@rule("_log_softmax_backward_data")
def log_softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any = None) -> Tensor:
    return grad_output - functions.exp(output) * grad_output.sum(dim, keepdim=True)


@rule("_softmax_backward_data")
def softmax_backward(grad_output: Tensor, output: Tensor, dim: int, input_dtype: Any = None) -> Tensor:
    weighted = grad_output * output
    return weighted - output * weighted.sum(dim, keepdim=True)
