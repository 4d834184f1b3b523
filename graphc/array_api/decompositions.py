"""Factors and inverses of matrices, which numpy computes, in compiled code too, with gradients that are operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphc.base.errors import AttributeValueError, DTypeError, GradientError, ShapeError
from graphc.eager.function import Function
from graphc.ops import elementwise as ew
from graphc.ops.shape import filled
from graphc.tensors.methods.algebra import diag_embed
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import need_tensor
from graphc.tracing.host import opaque


class Rule(NamedTuple):
    """How numpy computes something of matrices, and its gradient."""

    name: str
    forward: Callable[..., Any]
    """Arrays to an array, or a tuple of them."""
    gradient: Callable[..., Any]
    """``gradient(gradients of the results, operands, results)``: those of the operands, as operations."""
    shapes: Callable[..., tuple[tuple[int, ...], ...]]
    """Shapes of the operands to those of the results."""


class _ByNumpy(Function):
    @staticmethod
    def forward(ctx: Any, rule: Rule, *tensors: Any) -> Any:
        try:
            found = rule.forward(*[t.detach().numpy() for t in tensors])
        except np.linalg.LinAlgError as error:
            raise AttributeValueError(f"{rule.name}: {error}", remedy="a matrix for which it exists") from None
        found = tuple(found) if isinstance(found, tuple) else (found,)
        results = tuple([Tensor._wrap(np.array(f, tensors[0].dtype.numpy, order="C")) for f in found])
        ctx.rule, ctx.count = rule, len(tensors)
        ctx.save_for_backward(*tensors, *results)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        return None, *ctx.rule.gradient(grads, saved[: ctx.count], saved[ctx.count :])


def apply(rule: Rule, *tensors: Any) -> tuple[Any, ...]:
    """The results of a rule, with gradients. Raises DTypeError for a type that is not floating point, ShapeError for
    what is no matrix, AttributeValueError for matrices of which it does not exist."""
    need_tensor(rule.name, *tensors)
    for t in tensors:
        if not t.dtype.is_floating_point:
            raise DTypeError(
                f"{rule.name} takes floating-point matrices, got {t.dtype.name}", remedy="astype(x, float64)"
            )
        if t.ndim < 2:
            raise ShapeError(f"{rule.name} takes matrices, got {list(t.shape)}", remedy="at least two axes")
    function: Any = partial(_ByNumpy.apply, rule)
    function.__name__ = rule.name  # what errors say
    return opaque(function, results=partial(_results_like, rule))(*tensors)


def _results_like(rule: Rule, *tensors: Any) -> tuple[Any, ...]:
    return tuple([filled(0, tensors[0].dtype, s) for s in rule.shapes(*[tuple(t.shape) for t in tensors])])


def need_square(name: str, x: Any) -> Any:
    """The matrix itself; raises ShapeError for one that is not square."""
    need_tensor(name, x)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name} takes square matrices, got {list(x.shape)}")
    return x


def _wide(x: Any) -> Any:
    """With two axes of size 1 at the end, to be multiplied with matrices."""
    return x.unsqueeze(-1).unsqueeze(-1)


def _inverse_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    turned = found[0].mT
    return (-(turned @ grads[0] @ turned),)


def _solution_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    (right,) = apply(SOLVE, given[0].mT, grads[0])
    return -(right @ found[0].mT), right


def _determinant_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    return (_wide(grads[0] * found[0]) * apply(INVERSE, given[0])[0].mT,)


def _log_determinant_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    return (_wide(grads[1]) * apply(INVERSE, given[0])[0].mT,)


def _halved(x: Any) -> Any:
    """The lower triangle, with half of the diagonal."""
    return x.tril(-1) + diag_embed(x.diagonal(0, -2, -1)) * 0.5


def _cholesky_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    """Murray, Differentiation of the Cholesky decomposition, 2016, equation 10."""
    (inverse,) = apply(INVERSE, found[0])
    part = inverse.mT @ _halved(found[0].mT @ grads[0]) @ inverse
    return ((part + part.mT) * 0.5,)


def _over_gaps(x: Any, values: Any) -> Any:
    """``x[i, j] / (values[j] - values[i])``, 0 where the two are equal."""
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    zero = ew.eq(gaps, 0)
    return ew.where(zero, 0, ew.div(x, ew.where(zero, 1, gaps)))


def _eigen_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    """Giles, Collected matrix derivative results, 2008, section 3.1."""
    values, vectors = found
    inner = diag_embed(grads[0]) + _over_gaps(vectors.mT @ grads[1], values)
    return (vectors @ inner @ vectors.mT,)


def _singular_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    """Townsend, Differentiating the singular value decomposition, 2016."""
    (x,), (left, values, right) = given, found
    grad_left, grad_values, grad_right = grads
    v, grad_v = right.mT, grad_right.mT
    squares, across = values * values, values.unsqueeze(-2)
    a, b = left.mT @ grad_left, v.mT @ grad_v
    inner = _over_gaps(a - a.mT, squares) * across + values.unsqueeze(-1) * _over_gaps(b - b.mT, squares)
    result = left @ (inner + diag_embed(grad_values)) @ right
    if x.shape[-2] > x.shape[-1]:
        result = result + ((grad_left - left @ a) / across) @ right
    if x.shape[-1] > x.shape[-2]:
        result = result + (left / across) @ (grad_v - v @ b).mT
    return (result,)


def _triangular_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    """Walter, Lehmann, Algorithmic differentiation of linear algebra functions, 2010, section 3.2: of matrices that are
    not wider than high."""
    q, r = found
    if given[0].shape[-2] < given[0].shape[-1] or q.shape[-1] != r.shape[-1]:
        raise GradientError(
            f"qr of {list(given[0].shape)} in this mode has no gradient", remedy='no more columns than rows, "reduced"'
        )
    mixed = r @ grads[1].mT - grads[0].mT @ q
    symmetric = mixed.tril() + mixed.tril(-1).mT
    return ((grads[0] + q @ symmetric) @ apply(INVERSE, r)[0].mT,)


def _no_gradient(grads: Sequence[Any], given: Sequence[Any], found: Sequence[Any]) -> Any:
    raise GradientError(
        "svd with full_matrices has no gradient, as its last vectors are any", remedy="full_matrices=False"
    )


def _same(*shapes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return (shapes[0],)


def _solution_shape(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    return ((*np.broadcast_shapes(a[:-2], b[:-2]), a[-1], b[-1]),)


def _singular_shapes(x: tuple[int, ...], full: bool = False) -> tuple[tuple[int, ...], ...]:
    *batch, rows, columns = x
    least = min(rows, columns)
    left, right = (rows, columns) if full else (least, least)
    return (*batch, rows, left), (*batch, least), (*batch, right, columns)


def _triangular_shapes(x: tuple[int, ...], complete: bool = False) -> tuple[tuple[int, ...], ...]:
    *batch, rows, columns = x
    inner = rows if complete else min(rows, columns)
    return (*batch, rows, inner), (*batch, inner, columns)


INVERSE = Rule("inv", np.linalg.inv, _inverse_gradient, _same)
SOLVE = Rule("solve", np.linalg.solve, _solution_gradient, _solution_shape)
DETERMINANT = Rule("det", np.linalg.det, _determinant_gradient, lambda x: (x[:-2],))
LOG_DETERMINANT = Rule("slogdet", np.linalg.slogdet, _log_determinant_gradient, lambda x: (x[:-2], x[:-2]))
CHOLESKY = Rule("cholesky", np.linalg.cholesky, _cholesky_gradient, _same)
EIGEN = Rule("eigh", np.linalg.eigh, _eigen_gradient, lambda x: (x[:-1], x))
SINGULAR = Rule("svd", partial(np.linalg.svd, full_matrices=False), _singular_gradient, _singular_shapes)
SINGULAR_FULL = Rule("svd", np.linalg.svd, _no_gradient, partial(_singular_shapes, full=True))
TRIANGULAR = Rule("qr", np.linalg.qr, _triangular_gradient, _triangular_shapes)
TRIANGULAR_COMPLETE = Rule(
    "qr", partial(np.linalg.qr, mode="complete"), _triangular_gradient, partial(_triangular_shapes, complete=True)
)
