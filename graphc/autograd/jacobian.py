"""Whole derivatives of functions: Jacobians in forward and reverse mode, and Hessians."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.autograd.transforms import jvp, selected, vjp
from graphc.errors import ArgumentError
from graphc.ops.shape import concat, reshape, transpose, zeros_like
from graphc.structure import flatten, unflatten
from graphc.tensor_base import front


def _basis(tensor: Any) -> list[Any]:
    """Tensors of the shape of ``tensor`` that are 1 at one element each and 0 elsewhere, in row-major order."""
    count = prod(tensor.shape)
    rows = np.eye(count, dtype=tensor.dtype.numpy).reshape(count, *tensor.shape)
    return [front().constant(np.array(row)) for row in rows]


def _stacked(parts: Sequence[Any], like: Any) -> Any:
    """Parts along a new first dimension; without parts, an empty tensor of entries like ``like``."""
    if not parts:
        return front().constant(np.empty((0, *like.shape), like.dtype.numpy))
    rows = [reshape(p, shape=(1, *p.shape)) for p in parts]
    return rows[0] if len(rows) == 1 else concat(*rows, axis=0)


def _split(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, argnums: Any) -> tuple[Any, list[Any]]:
    """The function of the chosen arguments alone, and those."""
    chosen = selected(argnums, args)

    def of_chosen(*values: Any) -> Any:
        full = list(args)
        for n, value in zip(chosen, values, strict=True):
            full[n] = value
        return function(*full, **kwargs)

    return of_chosen, [args[n] for n in chosen]


def jacrev(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``function`` with respect to argument ``argnums`` (a tuple for several).

    For every tensor that the function returns, nested as it returns them, there is one tensor of shape
    ``output.shape + input.shape`` per tensor of the argument, nested as in the argument. With ``has_aux`` the function
    returns (output, anything), and the result is (Jacobian, anything). One backward pass per element of the output.
    """

    @functools.wraps(function, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = _split(function, args, kwargs, argnums)
        output, pull, *extra = vjp(of_chosen, *primals, has_aux=has_aux)
        results, outer = flatten(output)
        inputs, inner = flatten(tuple(primals))
        zeros = [zeros_like(r) for r in results]
        found = []
        for i, result in enumerate(results):
            rows = [flatten(pull(unflatten(outer, [*zeros[:i], one, *zeros[i + 1 :]])))[0] for one in _basis(result)]
            columns = [_stacked([row[k] for row in rows], x) for k, x in enumerate(inputs)]
            shaped = [reshape(c, shape=(*result.shape, *x.shape)) for c, x in zip(columns, inputs, strict=True)]
            trees = unflatten(inner, shaped)
            found.append(trees[0] if isinstance(argnums, int) else trees)
        jacobian = unflatten(outer, found)
        return (jacobian, *extra) if has_aux else jacobian

    return wrapped


def jacfwd(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """As ``jacrev``, in forward mode: one call of ``function`` per element of the arguments."""

    @functools.wraps(function, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = _split(function, args, kwargs, argnums)
        inputs, inner = flatten(tuple(primals))
        zeros = [zeros_like(x) for x in inputs]
        blocks, last = [], None
        for k, x in enumerate(inputs):
            columns = []
            for one in _basis(x):
                last = jvp(of_chosen, primals, unflatten(inner, [*zeros[:k], one, *zeros[k + 1 :]]), has_aux=has_aux)
                columns.append(flatten(last[1])[0])
            blocks.append(columns)
        if last is None:
            raise ArgumentError("jacfwd needs an argument that has elements")
        results, outer = flatten(last[0])
        found = []
        for i, result in enumerate(results):
            shaped = [
                _last(_stacked([column[i] for column in columns], result), x)
                for columns, x in zip(blocks, inputs, strict=True)
            ]
            trees = unflatten(inner, shaped)
            found.append(trees[0] if isinstance(argnums, int) else trees)
        jacobian = unflatten(outer, found)
        return (jacobian, *last[2:]) if has_aux else jacobian

    return wrapped


def _last(columns: Any, x: Any) -> Any:
    """The first dimension, which counts the elements of ``x``, as last ones of the shape of ``x``."""
    rank = len(columns.shape)
    turned = transpose(columns, permutation=(*range(1, rank), 0))
    return reshape(turned, shape=(*columns.shape[1:], *x.shape))


def hessian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of ``function``, as ``jacfwd`` of ``jacrev``."""
    return jacfwd(jacrev(function, argnums), argnums)
