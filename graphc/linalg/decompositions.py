"""Eigenvalues and singular values, always computed by numpy, with gradients in operations of graphc."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphc.autograd.function import Function
from graphc.base.dtypes import DType
from graphc.base.errors import GradientError
from graphc.linalg.checks import LinAlgError, need_matrix
from graphc.ops.factorization import factors
from graphc.ops.movement.shape import filled
from graphc.ops.pointwise import elementwise as ew
from graphc.tensors.methods.algebra import diag_embed
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import opaque


class MatrixFunction(NamedTuple):
    """A matrix function of numpy with its gradient."""

    name: str
    forward: Callable[..., Any]
    """Function of arrays that returns an array or a tuple of arrays."""
    gradient: Callable[..., Any]
    """``gradient(gradients of the results, operands, results)`` returns the gradients of the operands, in
    operations."""
    shapes: Callable[..., tuple[tuple[int, ...], ...]]
    """Function from the shapes of the operands to the shapes of the results."""
    types: str
    """Kind of each result at the matrix's precision: ``m`` the type of the matrix, ``r`` real, ``c`` complex."""

    def dtypes(self, matrix: DType) -> tuple[DType, ...]:
        """Return the element types of the results."""
        by_kind = {"m": matrix, "r": matrix.real, "c": matrix if matrix.is_complex else None}
        return tuple([by_kind[t] or matrix.complex for t in self.types])


class _ByNumpy(Function):
    @staticmethod
    def forward(ctx: Any, rule: MatrixFunction, *tensors: Any) -> Any:
        try:
            arrays = rule.forward(*[t.detach().numpy() for t in tensors])
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"linalg.{rule.name}: {error}", remedy="pass a matrix for which it exists") from None
        arrays = tuple(arrays) if isinstance(arrays, tuple) else (arrays,)
        types = rule.dtypes(tensors[0].dtype)
        results = tuple([Tensor._wrap(np.array(f, t.numpy, order="C")) for f, t in zip(arrays, types, strict=True)])
        ctx.rule, ctx.count = rule, len(tensors)
        ctx.save_for_backward(*tensors, *results)
        return results

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        saved = ctx.saved_tensors
        return None, *ctx.rule.gradient(grads, saved[: ctx.count], saved[ctx.count :])


def apply(rule: MatrixFunction, *tensors: Any) -> tuple[Any, ...]:
    """Return the differentiable results of a rule. Raise DTypeError for types other than floating point or complex,
    ShapeError for non-matrices, LinAlgError if the result does not exist."""
    need_matrix(rule.name, tensors[0])
    function: Any = partial(_ByNumpy.apply, rule)
    function.__name__ = f"linalg: {rule.name} by numpy, as there is no native code for it"
    return opaque(function, results=partial(_results_like, rule))(*tensors)


def _results_like(rule: MatrixFunction, *tensors: Any) -> tuple[Any, ...]:
    shapes = rule.shapes(*[tuple(t.shape) for t in tensors])
    return tuple([filled(0, t, s) for t, s in zip(rule.dtypes(tensors[0].dtype), shapes, strict=True)])


def _over_gaps(x: Any, values: Any) -> Any:
    """Compute ``x[i, j] / (values[j] - values[i])``, and 0 for equal values."""
    gaps = values.unsqueeze(-2) - values.unsqueeze(-1)
    zero = ew.eq(gaps, 0)
    return ew.where(zero, 0, ew.div(x, ew.where(zero, 1, gaps)))


def _singular_gradient(grads: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """Differentiate the SVD (Townsend, Differentiating the singular value decomposition, 2016). For complex matrices,
    the common phases of left and right vectors are omitted, which do not change the product."""
    (x,), (left_vectors, values, right_vectors) = operands, results
    grad_left, grad_values, grad_right = grads
    v, grad_v = right_vectors.mH, grad_right.mH
    squares, across = values * values, values.unsqueeze(-2)
    a, b = left_vectors.mH @ grad_left, right_vectors @ grad_v
    inner = _over_gaps(a - a.mH, squares) * across + values.unsqueeze(-1) * _over_gaps(b - b.mH, squares)
    if x.dtype.is_complex:
        inner = inner + diag_embed((a - a.mH).diagonal(0, -2, -1) / (values * 2))
    result = left_vectors @ (inner + diag_embed(grad_values)) @ right_vectors
    if x.shape[-2] > x.shape[-1]:
        result = result + ((grad_left - left_vectors @ a) / across) @ right_vectors
    if x.shape[-1] > x.shape[-2]:
        result = result + (left_vectors / across) @ (grad_v - v @ b).mH
    return (result,)


def _no_gradient(grads: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> Any:
    raise GradientError(
        "the last vectors of svd with full_matrices have no gradient", remedy="pass full_matrices=False"
    )


def _singular_shapes(x: tuple[int, ...], full: bool = False) -> tuple[tuple[int, ...], ...]:
    *batch, rows, columns = x
    least = min(rows, columns)
    left_count, right_count = (rows, columns) if full else (least, least)
    return (*batch, rows, left_count), (*batch, least), (*batch, right_count, columns)


def _eigen_of_any_gradient(grads: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """Differentiate eigenvalues and eigenvectors (Boeddeker et al., On the computation of complex-valued gradients,
    2017, equation 4.77). Vectors of norm 1 do not change along themselves."""
    (x,), (values, vectors) = operands, results
    inner = vectors.mH @ grads[1]
    along = inner.diagonal(0, -2, -1).real
    free = inner - (vectors.mH @ vectors) * along.unsqueeze(-2)
    middle = diag_embed(grads[0]) + _over_gaps(free, values.conj())
    result = factors.solve(vectors.mH, middle @ vectors.mH)
    return (result if x.dtype.is_complex else result.real,)


def _pseudo_inverse(a: np.ndarray, atol: np.ndarray, rtol: np.ndarray) -> np.ndarray:
    left_vectors, values, right_vectors = np.linalg.svd(a, full_matrices=False)
    least = np.maximum(values.max(-1, keepdims=True) * rtol[..., None], atol[..., None])
    inverse = np.divide(1, values, where=values > least, out=np.zeros_like(values))
    return np.conj((left_vectors * inverse[..., None, :]) @ right_vectors).swapaxes(-1, -2)


def _pseudo_inverse_gradient(grads: Sequence[Any], operands: Sequence[Any], results: Sequence[Any]) -> Any:
    """Differentiate the pseudo-inverse at constant rank (Golub, Pereyra, The differentiation of pseudo-inverses, 1973,
    equation 4.12)."""
    (a, *tolerances), (x,), turned = operands, results, grads[0].mH
    left_term, right_term = x.mH @ x @ turned, turned @ (x @ x.mH)
    result = (right_term - a @ (x @ right_term)) + (left_term - (left_term @ x) @ a) - (x @ turned @ x).mH
    return result, *[None for _ in tolerances]


EIGEN_OF_ANY = MatrixFunction("eig", np.linalg.eig, _eigen_of_any_gradient, lambda x: (x[:-1], x), "cc")
PSEUDO_INVERSE = MatrixFunction(
    "pinv", _pseudo_inverse, _pseudo_inverse_gradient, lambda x, *tolerances: ((*x[:-2], x[-1], x[-2]),), "m"
)
SINGULAR = MatrixFunction(
    "svd", partial(np.linalg.svd, full_matrices=False), _singular_gradient, _singular_shapes, "mrm"
)
SINGULAR_FULL = MatrixFunction("svd", np.linalg.svd, _no_gradient, partial(_singular_shapes, full=True), "mrm")
