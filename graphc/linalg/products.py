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
from graphc.ops import dispatch, reduce, shape
from graphc.ops import elementwise as ew
from graphc.ops.matrix_product import matmul as product
from graphc.ops.parts_of_complex import conjugate
from graphc.ops.state import straight_through
from graphc.tensors.free_functions import cat, where
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor

# ---- vectors


def cross(input: Tensor, other: Tensor, *, dim: int = -1) -> Tensor:
    """The vector product along a dimension of size 3; the others broadcast. Raises ShapeError."""
    need_tensor("cross", input, other)
    if input.ndim != other.ndim:
        raise ShapeError(f"cross: {list(input.shape)} and {list(other.shape)} have other numbers of dimensions")
    at = dim_of(dim, input.ndim)
    if input.shape[at] != 3 or other.shape[at] != 3:
        raise ShapeError(f"cross takes size 3 along {dim}, got {list(input.shape)} and {list(other.shape)}")
    whole = common_shape(input.shape, other.shape)
    a, b = (x if tuple(x.shape) == whole else shape.broadcast_to(x, shape=whole) for x in (input, other))
    return a.cross(b, dim)


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Sums of products along a dimension of both, complex numbers of ``x`` conjugated; the others broadcast."""
    need_tensor("vecdot", x, y)
    products = ew.mul(conjugate(x), y)
    found = reduce.sum(products, axes=(dim_of(dim, products.ndim),))
    return found if found.dtype is products.dtype else ew.cast(found, dtype=products.dtype)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 to ``N - 1`` (None: as many as elements) of the elements of vectors [..., n], side by side."""
    need_tensor("vander", x)
    x = x if x.ndim else x.unsqueeze(0)
    count = x.shape[-1] if N is None else N
    if N is not None and N <= 1:
        raise AttributeValueError(f"vander: N is {N}", remedy="at least 2")
    ones = x.new_ones(*x.shape, 1)
    wide = cat([ones, x.unsqueeze(-1).expand(*x.shape, count - 1)], -1) if count > 1 else ones
    return wide.cumprod(-1)[..., :count]


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonals of matrices, ``offset`` above the middle one: a view."""
    return A.diagonal(offset, dim1, dim2)


# ---- chains of products


def matmul(input: Tensor, other: Tensor) -> Tensor:
    """The matrix product, as ``@``."""
    return input.matmul(other)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices, of which the first and the last may be vectors, in the order that takes the fewest
    multiplications (Cormen et al., Introduction to algorithms, section 15.2)."""
    if len(tensors) < 2:
        raise ArgumentError(f"multi_dot takes two tensors or more, got {len(tensors)}")
    need_tensor("multi_dot", *tensors)
    for place, t in enumerate(tensors):
        ends = place in (0, len(tensors) - 1)
        if t.ndim != 2 and not (ends and t.ndim == 1):
            raise ShapeError(f"multi_dot takes matrices, and vectors at the ends, got {list(t.shape)} at {place}")
    first, last = tensors[0], tensors[-1]
    chain = [*tensors]
    chain[0] = first.unsqueeze(0) if first.ndim == 1 else first
    chain[-1] = last.unsqueeze(-1) if last.ndim == 1 else last
    for a, b in pairwise(chain):
        if a.shape[1] != b.shape[0]:
            raise ShapeError(f"multi_dot: {list(a.shape)} and {list(b.shape)} do not fit")
    found = _in_order(chain, _best_cuts([chain[0].shape[0], *[t.shape[1] for t in chain]]), 0, len(chain) - 1)
    found = found.squeeze(0) if first.ndim == 1 else found
    return found.squeeze(-1) if last.ndim == 1 else found


def _best_cuts(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """For each part of the chain, from a first matrix to a last one, the matrix behind which it is cut."""
    count, cuts = len(sizes) - 1, {}
    cost = {(i, i): 0 for i in range(count)}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            found = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cost[i, j] = min(found)
            cuts[i, j] = i + found.index(cost[i, j])
    return cuts


def _in_order(chain: Sequence[Any], cuts: dict[tuple[int, int], int], first: int, last: int) -> Any:
    if first == last:
        return chain[first]
    cut = cuts[first, last]
    return _in_order(chain, cuts, first, cut) @ _in_order(chain, cuts, cut + 1, last)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """The product of ``n`` square matrices; of inverses where ``n`` is negative."""
    need_tensor("matrix_power", A)
    if A.ndim < 2 or A.shape[-1] != A.shape[-2]:
        raise ShapeError(f"matrix_power takes square matrices, got {list(A.shape)}")
    if n == 0:
        one = expanded(identity(A), tuple(A.shape[:-2]))
        return straight_through(A * 0, one) if A.dtype.is_differentiable else one.clone()
    base, left = A if n > 0 else inv(A), abs(n)
    factors = []
    while left:
        if left & 1:
            factors.append(base)
        left >>= 1
        base = base @ base if left else base
    return fold(product, factors) if len(factors) > 1 else factors[0].clone()


_RUNS, _POWERS = 5, 5
"""The series of exp for matrices of norm 2, 25 terms, in runs of that many: the next term is below the rounding of f64.
Fewer terms of smaller matrices are less work, but each squaring doubles the error."""
_SQUARINGS = 16
"""How often compiled code halves a matrix at most, which is one program for all: norms up to 2**17."""


def matrix_exp(A: Tensor) -> Tensor:
    """exp of square matrices [..., n, n]: the power series of a small part of them, squared again and again, in f64, as
    each squaring doubles the error. Compiled code squares 16 times at most: of matrices with sums of columns beyond
    2**17 it is not exact there."""
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
    """The power series of exp, in runs of terms that share powers, which takes few products (Paterson, Stockmeyer, On
    the number of nonscalar multiplications necessary to evaluate polynomials, 1973)."""
    powers = [identity(A), A]
    for _ in range(_POWERS - 1):
        powers.append(powers[-1] @ A)
    result = None
    for run in reversed(range(_RUNS)):
        terms = [power / float(factorial(run * _POWERS + k)) for k, power in enumerate(powers[:-1])]
        part = fold(ew.add, reversed(terms))
        result = part if result is None else result @ powers[-1] + part
    return result


def _halvings(A: Any) -> Any:
    """How often each matrix is halved until its norm is 2 [..., 1, 1]; not at all where it has none."""
    size = A.detach().abs().sum(-2).amax(-1)[..., None, None]
    return size.nan_to_num(0.0, 0.0, 0.0).clamp(min=2.0).log2().ceil() - 1


# ---- tensors as matrices


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse of A as a matrix, whose first ``ind`` dimensions are its rows: those of the result are its last."""
    need_tensor("tensorinv", A)
    if ind <= 0:
        raise AttributeValueError(f"tensorinv: ind is {ind}", remedy="at least 1")
    rows, columns = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if prod(rows) != prod(columns):
        raise ShapeError(f"tensorinv: {prod(rows)} rows and {prod(columns)} columns of {list(A.shape)}")
    return inv(A.reshape(prod(rows), prod(columns))).reshape(*columns, *rows)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:
    """The X of ``tensordot(A, X, X.ndim) = B``; ``dims`` of A are moved to its end before."""
    need_tensor("tensorsolve", A, B)
    a = A if dims is None else A.movedim(tuple(dims), tuple(range(-len(dims), 0)))
    columns = tuple(a.shape[B.ndim :])
    if prod(columns) != B.numel() or prod(a.shape[: B.ndim]) != B.numel():
        raise ShapeError(f"tensorsolve: {list(a.shape)} is no square matrix beside {list(B.shape)}")
    return solve(a.reshape(B.numel(), B.numel()), B.reshape(-1)).reshape(*columns)
