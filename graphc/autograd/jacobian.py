"""Whole derivatives of functions: Jacobians in forward and reverse mode, and Hessians."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.autograd.transforms import jvp, selected, vjp
from graphc.base.errors import ArgumentError
from graphc.control.vmap import check_chunk_size, vmap
from graphc.ops.shape import reshape, transpose
from graphc.tensors.methods.shaping import stacked
from graphc.tensors.placement import beside
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor_base import front
from graphc.tracing.trace import is_tracing


def _bases(tensors: Sequence[Any]) -> list[Any]:
    """For each tensor a batch of tensors of its shape: together, entry k is 1 at the k-th element of all of them and 0
    elsewhere."""
    sizes = [prod(t.shape) for t in tensors]
    found, first = [], 0
    for tensor, size in zip(tensors, sizes, strict=True):
        rows = np.zeros((sum(sizes), size), tensor.dtype.numpy)
        rows[first : first + size] = np.eye(size)
        found.append(beside(front().constant(rows.reshape(sum(sizes), *tensor.shape)), tensor))
        first += size
    return found


def _parts(batch: Any, like: Sequence[Any]) -> list[Any]:
    """A batch cut into the entries that belong to each of the tensors ``like``."""
    found, first = [], 0
    for tensor in like:
        found.append(batch[first : first + prod(tensor.shape)])
        first += prod(tensor.shape)
    return found


def _each(
    function: Callable[..., Any], batches: Sequence[Any], like: Sequence[Any], chunk_size: int | None = None
) -> Any:
    """``function`` of every entry of the batches, its results stacked: by vmap in a trace. Eagerly one after the other,
    so that the function may ask for values. Without entries, there are empty batches of tensors ``like``."""
    if not batches or not batches[0].shape[0]:
        return [beside(front().constant(np.empty((0, *x.shape), x.dtype.numpy)), x) for x in like]
    if is_tracing():
        return vmap(function, chunk_size=chunk_size)(*batches)
    rows = [function(*(b[i] for b in batches)) for i in range(batches[0].shape[0])]
    return [stacked(column) for column in zip(*rows, strict=True)]


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
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that returns the Jacobian of ``func`` with respect to argument ``argnums`` (a tuple for several).

    For every tensor that the function returns, nested as it returns them, there is one tensor of shape
    ``output.shape + input.shape`` per tensor of the argument, nested as in the argument. With ``has_aux`` the function
    returns (output, anything), and the result is (Jacobian, anything). One backward pass per element of the output; in
    a trace, one for all, or for ``chunk_size`` elements at a time.
    """
    check_chunk_size("jacrev", chunk_size)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = _split(func, args, kwargs, argnums)
        output, pull, *extra = vjp(of_chosen, *primals, has_aux=has_aux)
        results, outer = flatten(output)
        inputs, inner = flatten(tuple(primals))

        def row(*weights: Any) -> list[Any]:
            return flatten(pull(unflatten(outer, weights)))[0]

        pulled = _each(row, _bases(results), inputs, chunk_size)
        found: list[list[Any]] = [[] for _ in results]
        for rows, x in zip(pulled, inputs, strict=True):
            for blocks, part, result in zip(found, _parts(rows, results), results, strict=True):
                blocks.append(reshape(part, shape=(*result.shape, *x.shape)))
        jacobian = unflatten(outer, [_tree(blocks, inner, argnums) for blocks in found])
        return (jacobian, *extra) if has_aux else jacobian

    return wrapped


def _tree(blocks: Sequence[Any], inner: Structure, argnums: int | Sequence[int]) -> Any:
    trees = unflatten(inner, blocks)
    return trees[0] if isinstance(argnums, int) else trees


def jacfwd(func: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """As ``jacrev``, in forward mode: a call of ``func`` per element of the arguments; in a trace, one for all."""

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = _split(func, args, kwargs, argnums)
        inputs, inner = flatten(tuple(primals))
        seen: list[Any] = []

        def push(*tangents: Any) -> list[Any]:
            output, pushed, *extra = jvp(of_chosen, primals, unflatten(inner, tangents), has_aux=has_aux)
            seen[:] = [*flatten(output), *extra]
            return flatten(pushed)[0]

        if not any(prod(x.shape) for x in inputs):
            raise ArgumentError("jacfwd needs an argument that has elements")
        columns = _each(push, _bases(inputs), ())
        _, outer, *extra = seen
        found = [[_last(part, x) for part, x in zip(_parts(column, inputs), inputs, strict=True)] for column in columns]
        jacobian = unflatten(outer, [_tree(blocks, inner, argnums) for blocks in found])
        return (jacobian, *extra) if has_aux else jacobian

    return wrapped


def _last(columns: Any, x: Any) -> Any:
    """The first dimension, which counts the elements of ``x``, as last ones of the shape of ``x``."""
    rank = len(columns.shape)
    turned = transpose(columns, permutation=(*range(1, rank), 0))
    return reshape(turned, shape=(*columns.shape[1:], *x.shape))


def hessian(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of ``func``, as ``jacfwd`` of ``jacrev``."""
    return jacfwd(jacrev(func, argnums), argnums)
