"""Rules of ATen operators that PyTorch composes of others, and of second names of operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.interop.aten.registry import function_of, rule, same
from graphc.nn import functional as F
from graphc.tensors import creation, functions, special_functions
from graphc.tensors import free_functions as free
from graphc.tensors.tensor import Tensor

same("ravel view_as reshape_as fliplr flipud msort argwhere arcsin arccos arctan arcsinh arccosh arctanh fix negative")
same("inner ger diag diagflat dist renorm vander isclose concat dstack row_stack arctan2")
same("atleast_1d atleast_2d atleast_3d")
same("nansum nanmean bincount histc")
same("clip", "default Tensor")
same("greater greater_equal less less_equal not_equal subtract multiply", "Tensor Scalar")
same("divide", "Tensor Scalar Tensor_mode Scalar_mode")
same("float_power", "Tensor_Tensor Tensor_Scalar")
same("xlogy", "Tensor Scalar_Other")
same("moveaxis", "int intlist")
same("tensor_split", "sections indices")
same("hsplit vsplit dsplit", "int array")
same("quantile", "default scalar")

SECOND_NAMES = {
    "special_expit": "sigmoid",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_exp2": "exp2",
    "special_expm1": "expm1",
    "special_log1p": "log1p",
    "special_sinc": "sinc",
    "special_gammaln": "lgamma",
    "special_psi": "digamma",
    "special_digamma": "digamma",
    "special_logsumexp": "logsumexp",
}
for _name, _other in SECOND_NAMES.items():
    rule(_name)(function_of(_other))
for _name, _other in {"lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift"}.items():
    rule(f"__{_name}__.Tensor", f"__{_name}__.Scalar")(function_of(_other))


@rule("std_mean.correction")
def std_mean(self: Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return free.std_mean(self, dim, keepdim=keepdim, correction=1 if correction is None else correction)


def _unbiased(function: Any) -> Any:
    def pair(self: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> tuple[Tensor, Tensor]:
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        return function(self, dim, keepdim=keepdim, correction=int(unbiased))

    return pair


rule("std_mean", "std_mean.dim")(_unbiased(free.std_mean))
rule("var_mean", "var_mean.dim")(_unbiased(free.var_mean))


rule("special_xlog1py")(special_functions.xlog1py)
rule("special_entr")(special_functions.entr)


@rule("ldexp.Tensor")
def ldexp(self: Tensor, other: Tensor) -> Tensor:
    return self * functions.pow(creation.full((), 2.0), other)


@rule("cartesian_prod")
def cartesian_prod(tensors: Sequence[Tensor]) -> Tensor:
    return free.cartesian_prod(*tensors)


@rule("trapezoid.dx", "trapz.dx")
def trapezoid(y: Tensor, *, dx: float = 1, dim: int = -1) -> Tensor:
    return functions.trapezoid(y, dx=dx, dim=dim)


@rule("tensordot")
def tensordot(self: Tensor, other: Tensor, dims_self: Sequence[int], dims_other: Sequence[int]) -> Tensor:
    return free.tensordot(self, other, (list(dims_self), list(dims_other)))


@rule("affine_grid_generator")
def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool) -> Tensor:
    return F.affine_grid(theta, tuple(size), align_corners)


@rule("logspace")
def logspace(start: float, end: float, steps: int, base: float = 10.0, *, dtype: Any = None) -> Tensor:
    return creation.logspace(start, end, steps, base, dtype=dtype)


@rule("sum_to_size")
def sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    return self.sum_to_size(tuple(size))


@rule("isin.Tensor_Tensor")
def isin(elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    return elements.isin(test_elements, assume_unique=assume_unique, invert=invert)


@rule("diagonal_scatter")
def diagonal_scatter(self: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    result = self.clone()
    result.diagonal(offset, dim1, dim2).copy_(src)
    return result


@rule("item")
def item(self: Tensor) -> Any:
    """Return a Python number, in eager mode only: compiled code cannot depend on a number that only a call knows."""
    return self.item()


@rule("exponential_")
def exponential(self: Tensor, lambd: float = 1) -> Tensor:
    return self.exponential_(lambd)
