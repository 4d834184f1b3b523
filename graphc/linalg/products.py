"""Products of matrices: powers, exponentials, chains, tensor systems; and products of vectors."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce as fold
from itertools import pairwise
from math import factorial, prod
from typing import Any

from graphc.base.dtypes import complex128, float64
from graphc.base.errors import ArgumentError, AttributeValueError, ShapeError
from graphc.base.sizes.dims import common_shape, dim_of
from graphc.linalg.checks import expanded, identity, need_square
from graphc.linalg.systems import inv, solve
from graphc.ops import dispatch
from graphc.ops.contraction.matrix_product import matmul as product
from graphc.ops.effects.state import straight_through
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise.parts_of_complex import conjugate
from graphc.ops.reduction import reduce
from graphc.tensors.free_functions import cat, where
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor

__all__ = ["cross", "diagonal", "matmul", "matrix_exp", "matrix_power", "multi_dot", "tensorinv", "tensorsolve"]
__all__ += ["vander", "vecdot"]

# ---- vectors


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """Compute the vector product along a dimension of size 3; the others broadcast. Raises ShapeError."""
    need_tensor("cross", input, other)
    if input.ndim != other.ndim:
        raise ShapeError(f"cross: {list(input.shape)} and {list(other.shape)} have different numbers of dimensions")
    axis = dim_of(dim, input.ndim)
    if input.shape[axis] != 3 or other.shape[axis] != 3:
        raise ShapeError(f"cross takes size 3 along {dim}, got {list(input.shape)} and {list(other.shape)}")
    common = common_shape(input.shape, other.shape)
    a, b = (x if tuple(x.shape) == common else shape.broadcast_to(x, shape=common) for x in (input, other))
    return a.cross(b, dim)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Compute sums of products along a dimension of both; complex numbers of ``x`` are conjugated, and other dimensions
    broadcast."""
    need_tensor("vecdot", x, y)
    products = ew.mul(conjugate(x), y)
    sums = reduce.sum(products, axes=(dim_of(dim, products.ndim),))
    return sums if sums.dtype is products.dtype else ew.cast(sums, dtype=products.dtype)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers 0 to ``N - 1`` (None: as many as elements) of the elements of vectors [..., n] as columns."""
    need_tensor("vander", x)
    x = x if x.ndim else x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise AttributeValueError(f"vander: N is {N}", remedy="pass at least 2")
    ones = x.new_ones(*x.shape, 1)
    wide = cat([ones, x.unsqueeze(-1).expand(*x.shape, count - 1)], -1) if count > 1 else ones
    return wide.cumprod(-1)[..., :count]


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of matrices, ``offset`` above the main one: a view."""
    return A.diagonal(offset, dim1, dim2)


# ---- chains of products


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """Compute the matrix product, like ``@``."""
    return input.matmul(other)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Multiply matrices, of which the first and the last may be vectors, in the order with the fewest scalar
    multiplications (Cormen et al., Introduction to algorithms, section 15.2)."""
    if len(tensors) < 2:
        raise ArgumentError(f"multi_dot takes two tensors or more, got {len(tensors)}")
    need_tensor("multi_dot", *tensors)
    for position, t in enumerate(tensors):
        ends = position in (0, len(tensors) - 1)
        if t.ndim != 2 and not (ends and t.ndim == 1):
            raise ShapeError(
                f"multi_dot takes matrices, and vectors at the ends, got {list(t.shape)} at position {position}"
            )
    first, last = tensors[0], tensors[-1]
    chain = [*tensors]
    chain[0] = first.unsqueeze(0) if first.ndim == 1 else first
    chain[-1] = last.unsqueeze(-1) if last.ndim == 1 else last
    for a, b in pairwise(chain):
        if a.shape[1] != b.shape[0]:
            raise ShapeError(f"multi_dot: {list(a.shape)} and {list(b.shape)} do not fit")
    chain_product = _in_order(chain, _best_cuts([chain[0].shape[0], *[t.shape[1] for t in chain]]), 0, len(chain) - 1)
    chain_product = chain_product.squeeze(0) if first.ndim == 1 else chain_product
    return chain_product.squeeze(-1) if last.ndim == 1 else chain_product


def _best_cuts(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return, for each sub-chain from a first to a last matrix, the matrix after which to split it."""
    count, cuts = len(sizes) - 1, {}
    cost = {(i, i): 0 for i in range(count)}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cost[i, j] = min(costs)
            cuts[i, j] = i + costs.index(cost[i, j])
    return cuts


def _in_order(chain: Sequence[Any], cuts: dict[tuple[int, int], int], first: int, last: int) -> Any:
    if first == last:
        return chain[first]
    cut = cuts[first, last]
    return _in_order(chain, cuts, first, cut) @ _in_order(chain, cuts, cut + 1, last)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Compute the ``n``-th power of square matrices, a power of the inverses for negative ``n``."""
    need_tensor("matrix_power", A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"matrix_power takes square matrices, got {list(A.shape)}")
    if n == 0:
        one = expanded(identity(A), tuple(A.shape[:-2]))
        return straight_through(A * 0, one) if A.dtype.is_differentiable else one.clone()
    base, remaining = A if n > 0 else inv(A), abs(n)
    factors = []
    while remaining:
        if remaining & 1:
            factors.append(base)
        remaining >>= 1
        base = base @ base if remaining else base
    return fold(product, factors) if len(factors) > 1 else factors[0].clone()


_RUNS, _POWERS = 5, 5
"""Number of runs, and terms per run, of the exponential series for matrices of norm 2: with 25 terms the next term is
below the rounding of f64. Fewer terms for smaller matrices would be less work, but each squaring doubles the error."""
_SQUARINGS = 16
"""Largest number of halvings of a matrix in compiled code, where one program serves all: norms up to 2**17."""


def matrix_exp(A: Tensor) -> Tensor:
    """Compute exp of square matrices [..., n, n]: scale them down, apply the power series, and square the result
    repeatedly.

    The computation is in f64, since each squaring doubles the error. Compiled code squares at most 16 times, so it is
    inexact for matrices with column sums beyond 2**17.
    """
    need_square("matrix_exp", A)
    if not A.numel():
        return A.clone()
    halvings = _halvings(A)
    if not dispatch.is_default():
        halvings = halvings.clamp(max=_SQUARINGS)
    squarings = int(halvings.max()) if dispatch.is_default() else _SQUARINGS
    result = _series((A * (-halvings).exp2()).to(complex128 if A.is_complex() else float64))
    for k in range(squarings):
        result = where(halvings > k, result @ result, result)
    return result.to(A.dtype)


def _series(A: Any) -> Any:
    """Evaluate the power series of exp in runs of terms that share powers, which needs few products (Paterson,
    Stockmeyer, On the number of nonscalar multiplications necessary to evaluate polynomials, 1973)."""
    powers = [identity(A), A]
    for _ in range(_POWERS - 1):
        powers.append(powers[-1] @ A)
    result = None
    for run in reversed(range(_RUNS)):
        terms = [power / float(factorial(run * _POWERS + k)) for k, power in enumerate(powers[:-1])]
        run_sum = fold(ew.add, reversed(terms))
        result = run_sum if result is None else result @ powers[-1] + run_sum
    return result


def _halvings(A: Any) -> Any:
    """Return the number of halvings of each matrix until its norm is at most 2 [..., 1, 1]; 0 for infinite or NaN
    norms."""
    size = A.detach().abs().sum(-2).amax(-1)[..., None, None]
    return size.nan_to_num(0.0, 0.0, 0.0).clamp(min=2.0).log2().ceil() - 1


# ---- tensors as matrices


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """Invert A as a matrix with its first ``ind`` dimensions as rows; these are the last dimensions of the result."""
    need_tensor("tensorinv", A)
    if ind <= 0:
        raise AttributeValueError(f"tensorinv: ind is {ind}", remedy="pass at least 1")
    rows, columns = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if prod(rows) != prod(columns):
        raise ShapeError(f"tensorinv: {prod(rows)} rows and {prod(columns)} columns of {list(A.shape)}")
    return inv(A.reshape(prod(rows), prod(columns))).reshape(*columns, *rows)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """Solve ``tensordot(A, X, X.ndim) = B`` for X; ``dims`` of A are moved to its end first."""
    need_tensor("tensorsolve", A, B)
    a = A if dims is None else A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    columns = tuple(a.shape[B.ndim :])
    if prod(columns) != B.numel() or prod(a.shape[: B.ndim]) != B.numel():
        raise ShapeError(f"tensorsolve: {list(a.shape)} is not a square matrix for {list(B.shape)}")
    return solve(a.reshape(B.numel(), B.numel()), B.reshape(-1)).reshape(*columns)
