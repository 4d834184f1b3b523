"""Tensor methods of linear algebra based on matrix products: einsum, tensordot, kron, batched sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from graphc.base.errors import ArgumentError, AttributeValueError, DTypeError, IndexRangeError, ShapeError
from graphc.base.sizes.dims import common_shape, common_size, dim_of
from graphc.ops.contraction.matrix_product import matmul
from graphc.ops.movement import shape
from graphc.ops.pointwise import elementwise as ew
from graphc.ops.pointwise import math as mathematics
from graphc.ops.pointwise.parts_of_complex import conjugate
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import iota
from graphc.tensors import composite
from graphc.tensors.repeated import compiled_when_repeated
from graphc.tensors.tensor_base import TensorBase, front, need_tensor

if TYPE_CHECKING:
    from graphc.tensors.tensor import Tensor


def scaled_sum(name: str, base: Any, result: Any, beta: float, alpha: float) -> Any:
    """Return ``beta * base + alpha * result``. Integer tensors truncate both factors and keep their type."""
    dtype = result.dtype
    if not dtype.is_differentiable and not base.dtype.is_differentiable:
        beta, alpha = int(beta), int(alpha)
    scaled = result if alpha == 1 else ew.mul(result, alpha)
    if beta == 0:
        extents = common_shape(base.shape, result.shape)
        return shape.broadcast_to(scaled, shape=extents) if tuple(scaled.shape) != extents else scaled
    return ew.add(base if beta == 1 else ew.mul(base, beta), scaled)


class Algebra(TensorBase):
    """Products of vectors, matrices and batches of them."""

    def vdot(self, other: Tensor) -> Tensor:
        """Compute the inner product of two vectors; complex numbers of this one are conjugated."""
        return conjugate(self).dot(other)

    def inner(self, other: Tensor) -> Tensor:
        """Compute sums of products over the last dimensions."""
        need_tensor("inner", other)
        if not self.shape or not other.shape:
            return ew.mul(self, other)
        return tensordot(self, other, ([-1], [-1]))

    def ger(self, vec2: Tensor) -> Tensor:
        """Compute all products of an element of this vector with one of the other."""
        return self.outer(vec2)  # type: ignore[attr-defined]

    def addmv(self, mat: Tensor, vec: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """Compute ``beta * self + alpha * (mat @ vec)``."""
        return scaled_sum("addmv", self, mat.mv(vec), beta, alpha)

    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """Compute ``beta * self + alpha * outer(vec1, vec2)``."""
        all_integer = not any(x.dtype.is_differentiable for x in (self, vec1, vec2))
        if all_integer and (isinstance(beta, float) or isinstance(alpha, float)):
            raise ArgumentError(f"addr: beta {beta} and alpha {alpha} do not fit integer tensors", remedy="pass ints")
        if self.dtype.kind == vec1.dtype.kind == vec2.dtype.kind == "b":
            return _logical_addr(self, vec1.outer(vec2), beta, alpha)
        return scaled_sum("addr", self, vec1.outer(vec2), beta, alpha)

    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """Compute ``beta * self + alpha * bmm(batch1, batch2)``."""
        return scaled_sum("baddbmm", self, batch1.bmm(batch2), beta, alpha)

    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
        """Compute ``beta * self + alpha * bmm(batch1, batch2).sum(0)``."""
        products = batch1.bmm(batch2)
        total = ew.cast(reduce.sum(products, axes=(0,)), dtype=products.dtype)
        return scaled_sum("addbmm", self, total, beta, alpha)

    def trace(self) -> Tensor:
        """Compute the sum of the diagonal of a matrix."""
        if self.ndim != 2:
            raise ShapeError(f"trace takes a matrix, got {list(self.shape)}")
        return composite.total(self.diagonal())  # type: ignore[attr-defined]

    def kron(self, other: Tensor) -> Tensor:
        """Compute the Kronecker product."""
        need_tensor("kron", other)
        rank = max(self.ndim, other.ndim)
        a = (1,) * (rank - self.ndim) + self.shape
        b = (1,) * (rank - other.ndim) + other.shape
        spread_rows = shape.reshape(self, shape=tuple(v for s in a for v in (s, 1)))
        spread_columns = shape.reshape(other, shape=tuple(v for s in b for v in (1, s)))
        return shape.reshape(ew.mul(spread_rows, spread_columns), shape=tuple(x * y for x, y in zip(a, b, strict=True)))

    def cross(self, other: Tensor, dim: int | None = None) -> Tensor:
        """Compute the vector product along a dimension of size 3 (the first such for None)."""
        need_tensor("cross", other)
        sizes = [d for d, s in enumerate(self.shape) if s == 3]
        if dim is None and not sizes:
            raise ShapeError(f"cross needs a dimension of size 3, got {list(self.shape)}")
        at = sizes[0] if dim is None else dim_of(dim, self.ndim)
        if len(other.shape) != self.ndim or not self.ndim or self.shape[at] != 3 or other.shape[at] != 3:
            raise ShapeError(
                f"cross takes tensors of size 3 along dimension {at}, got {list(self.shape)} and {list(other.shape)}"
            )
        a, b = self, other
        turns = [(a.roll(-1, at), b.roll(-2, at)), (a.roll(-2, at), b.roll(-1, at))]  # type: ignore[attr-defined]
        return ew.sub(ew.mul(*turns[0]), ew.mul(*turns[1]))

    def dist(self, other: Tensor, p: float = 2) -> Tensor:
        """Compute the p-norm of the difference."""
        return composite.norm(ew.sub(self, other), float(p))

    def renorm(self, p: float, dim: int, maxnorm: float) -> Tensor:
        """Scale slices along ``dim`` whose p-norm exceeds ``maxnorm`` down to it."""
        at = dim_of(dim, self.ndim)
        if not (p > 0 and maxnorm >= 0):
            raise AttributeValueError(f"renorm: p is {p}, maxnorm {maxnorm}", remedy="pass p > 0 and maxnorm >= 0")
        if self.ndim < 2:
            raise ShapeError(f"renorm takes a tensor of at least 2 dimensions, got {list(self.shape)}")
        norms = composite.norm(self, float(p), [d for d in range(self.ndim) if d != at], keepdim=True)
        return ew.mul(self, ew.where(ew.gt(norms, maxnorm), ew.div(maxnorm, ew.add(norms, 1e-7)), 1.0))

    def cov(self, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
        """Compute the covariances of the rows. ``fweights`` (ints) are frequencies of the columns, ``aweights``
        (floats) their weights; both are vectors with one element of at least 0 per column."""
        if self.ndim > 2:
            raise ShapeError(f"cov takes a vector or a matrix, got {list(self.shape)}")
        x = composite.to_float(self if self.ndim == 2 else shape.reshape(self, shape=(1, self.numel())))
        _check_weights(x, fweights, aweights)
        if fweights is None and aweights is None:
            centred = ew.sub(x, composite.mean(x, 1, keepdim=True))
            result = ew.div(matmul(centred, centred, transpose_b=True), float(max(x.shape[1] - correction, 0)))
        else:
            result = _weighted_cov(x, correction, fweights, aweights)
        return shape.reshape(result, shape=()) if x.shape[0] == 1 else result

    def corrcoef(self) -> Tensor:
        """Compute the correlations of the rows."""
        covariances = Algebra.cov(self)
        if not covariances.shape:
            return ew.div(covariances, covariances)
        deviations = mathematics.sqrt(covariances.diagonal())
        return ew.div(ew.div(covariances, deviations.reshape(-1, 1)), deviations)


def _logical_addr(base: Any, result: Any, beta: float, alpha: float) -> Any:
    """Compute ``addr`` of booleans, whose product is "and" and whose sum is "or"."""
    return ew.logical_or(ew.logical_and(base, bool(beta)), ew.logical_and(result, bool(alpha)))


def _check_weights(x: Any, fweights: Any, aweights: Any) -> None:
    for name, weights, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if weights is None:
            continue
        if len(weights.shape) > 1 or weights.numel() != x.shape[1]:
            raise ShapeError(f"cov: {name} has shape {list(weights.shape)} for {x.shape[1]} columns")
        if weights.dtype.kind not in kinds:
            raise DTypeError(
                f"cov: {name} is {weights.dtype.name}", remedy="pass integer fweights and floating-point aweights"
            )
        values = front().known(weights)
        if values is not None and (values < 0).any():
            raise AttributeValueError(f"cov: {name} has negative elements", remedy="pass weights of 0 or more")


def _weighted_cov(x: Any, correction: int, fweights: Any, aweights: Any) -> Any:
    weights = aweights if fweights is None else fweights if aweights is None else ew.mul(fweights, aweights)
    weight_sum = composite.total(weights)
    mean = ew.div(composite.total(ew.mul(x, weights), 1, keepdim=True), weight_sum)
    removed: Any = correction
    if aweights is not None:
        removed = ew.div(ew.mul(composite.total(ew.mul(weights, aweights)), correction), weight_sum)
    centred = ew.sub(x, mean)
    products = matmul(ew.mul(centred, weights), centred, transpose_b=True)
    return ew.div(products, ew.cast(composite.clamp(ew.sub(weight_sum, removed), 0), dtype=x.dtype))


@compiled_when_repeated
def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    """Compute sums of products over dimensions: the last ``dims`` of ``a`` with the first of ``b``, or two lists of
    them."""
    if isinstance(dims, int):
        if not 0 <= dims <= min(len(a.shape), len(b.shape)):
            raise AttributeValueError(
                f"tensordot: dims is {dims} for shapes {list(a.shape)} and {list(b.shape)}",
                remedy="pass at most the number of dimensions of both",
            )
        dims_a, dims_b = list(range(len(a.shape) - dims, len(a.shape))), list(range(dims))
    else:
        dims_a = [dim_of(d, len(a.shape)) for d in dims[0]]
        dims_b = [dim_of(d, len(b.shape)) for d in dims[1]]
    a, b = _summed_units(a, b, dims_a, dims_b)
    repeated = len(set(dims_a)) < len(dims_a) or len(set(dims_b)) < len(dims_b)
    if repeated or [a.shape[d] for d in dims_a] != [b.shape[d] for d in dims_b]:
        raise ShapeError(f"tensordot: {list(a.shape)} and {list(b.shape)} do not fit along {dims_a} and {dims_b}")
    free_a = [d for d in range(len(a.shape)) if d not in dims_a]
    free_b = [d for d in range(len(b.shape)) if d not in dims_b]
    inner = math.prod(a.shape[d] for d in dims_a)
    rows, columns = [a.shape[d] for d in free_a], [b.shape[d] for d in free_b]
    x = shape.reshape(shape.transpose(a, permutation=(*free_a, *dims_a)), shape=(math.prod(rows), inner))
    y = shape.reshape(shape.transpose(b, permutation=(*dims_b, *free_b)), shape=(inner, math.prod(columns)))
    return shape.reshape(matmul(x, y), shape=(*rows, *columns))


def _summed_units(a: Any, b: Any, dims_a: Sequence[int], dims_b: Sequence[int]) -> tuple[Any, Any]:
    """Sum the dimensions that meet a dimension of size 1, as if the latter were repeated."""
    if len(dims_a) == len(dims_b):
        for d, e in zip(dims_a, dims_b, strict=True):
            if a.shape[d] == 1 != b.shape[e]:
                b = ew.cast(reduce.sum(b, axes=(e,), keepdims=True), dtype=b.dtype)
            elif b.shape[e] == 1 != a.shape[d]:
                a = ew.cast(reduce.sum(a, axes=(d,), keepdims=True), dtype=a.dtype)
    return a, b


_DISTANCES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


@compiled_when_repeated
def cdist(x1: Any, x2: Any, p: float = 2.0, compute_mode: str = _DISTANCES[0]) -> Any:
    """Compute the p-norms of the differences of all rows of ``x1`` [..., P, M] and all of ``x2`` [..., R, M]: [..., P,
    R].

    ``compute_mode`` is PyTorch's choice between products and differences; this function always uses differences, which
    are exact.
    """
    need_tensor("cdist", x1, x2)
    if compute_mode not in _DISTANCES:
        raise AttributeValueError(
            f"cdist: unknown compute_mode {compute_mode!r}", remedy=f"use one of {', '.join(_DISTANCES)}"
        )
    if len(x1.shape) < 2 or len(x2.shape) < 2:
        raise ShapeError(f"cdist takes matrices, got {list(x1.shape)} and {list(x2.shape)}")
    if x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(f"cdist: rows have {x1.shape[-1]} and {x2.shape[-1]} elements")
    if p < 0:
        raise AttributeValueError(f"cdist: p must not be negative, got {p}")
    return composite.norm(ew.sub(x1.unsqueeze(-2), x2.unsqueeze(-3)), float(p), -1)


# ---- einsum


@compiled_when_repeated
def einsum(equation: str, *operands: Any) -> Any:
    """Compute sums of products by Einstein's convention, e.g. ``einsum("bij,bjk->bik", a, b)``; ``...`` broadcasts.

    Operands are combined from left to right, each pair as one batched matrix product.

    Example:
        >>> import graphc as gc
        >>> a, b = gc.tensor([[1, 2], [3, 4]]), gc.tensor([[5, 6], [7, 8]])
        >>> gc.einsum("ij,jk->ik", a, b)
        tensor([[19, 22],
                [43, 50]])
        >>> gc.einsum("ii", a)
        tensor(5)
    """
    listed = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else list(operands)
    if not isinstance(equation, str):
        raise ArgumentError(
            f"einsum: the equation is of type {type(equation).__name__}", remedy='call einsum("ij,jk->ik", a, b)'
        )
    need_tensor("einsum", *listed)
    inputs, output = _parse(equation, listed)
    x, names = _unrepeated(listed[0], inputs[0])
    for i, other in enumerate(listed[1:], start=1):
        y, y_names = _unrepeated(other, inputs[i])
        later = set(output).union(*inputs[i + 1 :])
        x, names = _pair(x, names, y, y_names, later)
    extra = [d for d, n in enumerate(names) if n not in output]
    if extra:
        x = reduce.sum(x, axes=tuple(extra))
        names = [n for n in names if n in output]
    return shape.transpose(x, permutation=tuple(names.index(n) for n in output))


def _parse(equation: str, operands: Sequence[Any]) -> tuple[list[list[str]], list[str]]:
    """Return the dimension names of every operand and of the result; names for ``...`` are decimal strings."""
    text = equation.replace(" ", "")
    input_text, arrow, output_text = text.partition("->")
    terms = input_text.split(",")
    if len(terms) != len(operands):
        raise AttributeValueError(f"einsum: {equation!r} names {len(terms)} operands, got {len(operands)}")
    letters = [len(t.replace("...", "")) for t in terms]
    wide = max([len(x.shape) - n for x, n, t in zip(operands, letters, terms, strict=True) if "..." in t], default=0)
    inputs = []
    for term, x, count in zip(terms, operands, letters, strict=True):
        free = len(x.shape) - count
        if free < 0 or (free and "..." not in term):
            raise ShapeError(f"einsum: {term!r} names {count} dimensions of an operand of shape {list(x.shape)}")
        inputs.append(_names(term, range(wide - free, wide)))
    if arrow:
        output = _names(output_text, range(wide))
    else:
        flat = [n for names in inputs for n in names if n.isalpha()]
        output = [str(d) for d in range(wide)] + sorted(n for n in set(flat) if flat.count(n) == 1)
    input_names = {n for names in inputs for n in names}
    if not set(output) <= input_names or len(set(output)) != len(output):
        raise AttributeValueError(
            f"einsum: the result of {equation!r} names a dimension twice or one that no operand has"
        )
    return inputs, output


def _names(term: str, ellipsis: Sequence[int]) -> list[str]:
    before, dots, after = term.partition("...")
    if not (before + after).isalpha() and before + after:
        raise AttributeValueError(f"einsum: {term!r} must consist of letters and '...'")
    return [*before, *([str(d) for d in ellipsis] if dots else []), *after]


def _unrepeated(x: Any, names: list[str]) -> tuple[Any, list[str]]:
    """Take the diagonals of dimensions with the same name."""
    for name in dict.fromkeys(names):
        while names.count(name) > 1:
            first = names.index(name)
            second = names.index(name, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(f"einsum: dimensions {name!r} have sizes {x.shape[first]} and {x.shape[second]}")
            x = x.diagonal(0, first, second)
            names = [n for d, n in enumerate(names) if d not in (first, second)] + [name]
    return x, names


def _pair(x: Any, x_names: list[str], y: Any, y_names: list[str], later: set[str]) -> tuple[Any, list[str]]:
    """Multiply two operands, and sum dimensions that no later operand names."""
    x, x_names = _summed(x, x_names, set(y_names) | later)
    y, y_names = _summed(y, y_names, set(x_names) | later)
    sizes: dict[str, int] = {}
    for names, t in ((x_names, x), (y_names, y)):
        for name, size in zip(names, t.shape, strict=True):
            try:
                sizes[name] = common_size(sizes.get(name, 1), size)
            except ValueError:
                what = f"einsum: dimensions {name!r} have sizes {sizes[name]} and {size}"
                raise ShapeError(what) from None
    shared = [n for n in x_names if n in y_names]
    batch = [n for n in shared if n in later]
    inner = [n for n in shared if n not in later]
    rows, columns = [n for n in x_names if n not in shared], [n for n in y_names if n not in shared]
    first = _arranged(x, x_names, (batch, rows, inner), sizes)
    second = _arranged(y, y_names, (batch, inner, columns), sizes)
    names = [*batch, *rows, *columns]
    return shape.reshape(matmul(first, second), shape=tuple(sizes[n] for n in names)), names


def _summed(x: Any, names: list[str], needed: set[str]) -> tuple[Any, list[str]]:
    extra = tuple(d for d, n in enumerate(names) if n not in needed)
    return (reduce.sum(x, axes=extra), [n for n in names if n in needed]) if extra else (x, names)


def _arranged(x: Any, names: list[str], groups: Sequence[list[str]], sizes: dict[str, int]) -> Any:
    """Sort dimensions into groups, and merge each group into one dimension."""
    order = [n for group in groups for n in group]
    x = shape.transpose(x, permutation=tuple(names.index(n) for n in order))
    full = tuple(sizes[n] for n in order)
    x = x if tuple(x.shape) == full else shape.broadcast_to(x, shape=full)
    return shape.reshape(x, shape=tuple(math.prod(sizes[n] for n in group) for group in groups))


# ---- matrices of vectors


def diag(x: Any, diagonal: int = 0) -> Any:
    """Return a copy of the diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if len(x.shape) == 1:
        return diag_embed(x, diagonal)
    if len(x.shape) != 2:
        raise ArgumentError(f"diag takes a vector or a matrix, got {list(x.shape)}")
    return x.diagonal(diagonal).clone()


def diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    """Return matrices, in dimensions ``dim1`` and ``dim2``, with the last dimension of ``x`` on the diagonal."""
    rank = len(x.shape) + 1
    a, b = dim_of(dim1, rank), dim_of(dim2, rank)
    if a == b or not x.shape:
        raise IndexRangeError(
            f"diag_embed: invalid dimensions {dim1} and {dim2} of {rank}", remedy="pass two different dimensions"
        )
    n = x.shape[-1] + abs(offset)
    padding = (offset, 0) if offset > 0 else (0, -offset)
    low = (*(0,) * (rank - 2), padding[0])
    high = (*(0,) * (rank - 2), padding[1])
    wide = shape.pad(x, low=low, high=high, interior=(0,) * (rank - 1))
    columns = shape.reshape(wide, shape=(*wide.shape[:-1], 1, n))
    hit = ew.eq(iota(shape=(n, n), axis=1), ew.add(iota(shape=(n, n), axis=0), offset))
    zero = False if x.dtype.kind == "b" else 0
    result = ew.where(hit, columns, zero)
    return result if (a, b) == (rank - 2, rank - 1) else result.movedim((-2, -1), (a, b))
