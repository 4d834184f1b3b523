"""Full derivative matrices of functions: Jacobians in forward and reverse mode, and Hessians."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from graphc.autograd.transforms import jvp, selected, vjp
from graphc.base.errors import ArgumentError
from graphc.control.vmap import check_chunk_size, vmap
from graphc.ops.movement.shape import reshape, transpose
from graphc.tensors.methods.shaping import stacked
from graphc.tensors.placement import beside
from graphc.tensors.structure import Structure, flatten, unflatten
from graphc.tensors.tensor_base import front
from graphc.tracing.trace import is_tracing


def _bases(tensors: Sequence[Any]) -> list[Any]:
    """Return a basis batch for each tensor: in entry k, the k-th element of all tensors together is 1 and the rest are
    0."""
    sizes = [prod(t.shape) for t in tensors]
    batches, first = [], 0
    for tensor, size in zip(tensors, sizes, strict=True):
        rows = np.zeros((sum(sizes), size), tensor.dtype.numpy)
        rows[first : first + size] = np.eye(size)
        batches.append(beside(front().constant(rows.reshape(sum(sizes), *tensor.shape)), tensor))
        first += size
    return batches


def _split_batch(batch: Any, like: Sequence[Any]) -> list[Any]:
    """Split a batch into the entries of the elements of each tensor in ``like``."""
    slices, first = [], 0
    for tensor in like:
        slices.append(batch[first : first + prod(tensor.shape)])
        first += prod(tensor.shape)
    return slices


def _each(
    function: Callable[..., Any], batches: Sequence[Any], like: Sequence[Any], chunk_size: int | None = None
) -> Any:
    """Apply ``function`` to every entry of the batches, and stack the results.

    A trace uses vmap; eager mode uses a loop, so that the function may read values. Empty batches give empty batches of
    the shapes of ``like``.
    """
    if not batches or not batches[0].shape[0]:
        return [beside(front().constant(np.empty((0, *x.shape), x.dtype.numpy)), x) for x in like]
    if is_tracing():
        return vmap(function, chunk_size=chunk_size)(*batches)
    rows = [function(*(b[i] for b in batches)) for i in range(batches[0].shape[0])]
    return [stacked(column) for column in zip(*rows, strict=True)]


def _split(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, argnums: Any) -> tuple[Any, list[Any]]:
    """Return the function of the chosen arguments only, and the chosen arguments."""
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
    """Return a function that computes the Jacobian of ``func`` by argument ``argnums`` (a tuple for several).

    The result is nested like the output of ``func`` and, inside, like the argument, with one tensor of shape
    ``output.shape + input.shape`` for each pair. With ``has_aux``, ``func`` returns (output, anything), and the result
    is (Jacobian, anything). Eager mode runs one backward pass for each element of the output; a trace runs one batched
    pass for all, or one for each ``chunk_size`` elements.

    Example:
        >>> import graphc as gc
        >>> gc.func.jacrev(lambda x: x**2)(gc.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
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
        blocks_of_results: list[list[Any]] = [[] for _ in results]
        for rows, x in zip(pulled, inputs, strict=True):
            for blocks, block, result in zip(blocks_of_results, _split_batch(rows, results), results, strict=True):
                blocks.append(reshape(block, shape=(*result.shape, *x.shape)))
        jacobian = unflatten(outer, [_tree(blocks, inner, argnums) for blocks in blocks_of_results])
        return (jacobian, *extra) if has_aux else jacobian

    return wrapped


def _tree(blocks: Sequence[Any], inner: Structure, argnums: int | Sequence[int]) -> Any:
    trees = unflatten(inner, blocks)
    return trees[0] if isinstance(argnums, int) else trees


def jacfwd(func: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False) -> Callable[..., Any]:
    """Return the function of ``jacrev``, computed in forward mode.

    Eager mode calls ``func`` once for each element of the arguments; a trace calls it once for all.

    Example:
        >>> import graphc as gc
        >>> gc.func.jacfwd(lambda x: gc.stack([x, x**2]))(gc.tensor(3.0))
        tensor([1., 6.])
    """

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        of_chosen, primals = _split(func, args, kwargs, argnums)
        inputs, inner = flatten(tuple(primals))
        outputs: list[Any] = []

        def push(*tangents: Any) -> list[Any]:
            output, pushed, *extra = jvp(of_chosen, primals, unflatten(inner, tangents), has_aux=has_aux)
            outputs[:] = [*flatten(output), *extra]
            return flatten(pushed)[0]

        if not any(prod(x.shape) for x in inputs):
            raise ArgumentError("jacfwd needs an argument that has elements")
        columns = _each(push, _bases(inputs), ())
        _, outer, *extra = outputs
        blocks_of_results = [
            [_last(block, x) for block, x in zip(_split_batch(column, inputs), inputs, strict=True)]
            for column in columns
        ]
        jacobian = unflatten(outer, [_tree(blocks, inner, argnums) for blocks in blocks_of_results])
        return (jacobian, *extra) if has_aux else jacobian

    return wrapped


def _last(columns: Any, x: Any) -> Any:
    """Move the first dimension, over the elements of ``x``, to the end, and give it the shape of ``x``."""
    rank = len(columns.shape)
    turned = transpose(columns, permutation=(*range(1, rank), 0))
    return reshape(turned, shape=(*columns.shape[1:], *x.shape))


def hessian(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that computes the second derivatives of ``func``, as ``jacfwd`` of ``jacrev``.

    Example:
        >>> import graphc as gc
        >>> gc.func.hessian(lambda x: (x**3).sum())(gc.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
