"""Collectives on tensors, with gradients, in eager mode and in compiled code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, DTypeError, ShapeError
from graphc.distributed.communicator import OPS
from graphc.distributed.group import group
from graphc.eager.function import Function
from graphc.tensors.free_functions import cat, stack
from graphc.tensors.placement import is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import opaque


class ReduceOp:
    """The reductions by PyTorch's names."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "mean", "prod", "min", "max"


def _collective(results: Callable[..., Any]) -> Callable[..., Any]:
    """A function that compiled code calls in Python, at its place in the order of calls."""
    return lambda function: opaque(function, results=results)


def _array(x: Tensor, name: str) -> np.ndarray:
    if is_on_device(x._data):
        raise ArgumentError(f"{name}: the tensor lies on {x.device}", remedy="tensor.cpu()")
    return x._data


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str) -> Tensor:
        ctx.op = op
        if op != "sum" or not x.dtype.is_differentiable:
            ctx.set_materialize_grads(False)
        return Tensor._wrap(group().all_reduce(_array(x, "all_reduce"), op))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if ctx.op != "sum":
            raise ArgumentError(
                f"all_reduce: the reduction {ctx.op!r} has no gradient", remedy="'sum', 'mean', or tensor.detach()"
            )
        return _AllReduce.apply(grads[0], "sum"), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str) -> Tensor:
        ctx.op = op
        return Tensor._wrap(group().reduce_scatter(_array(x, "reduce_scatter"), op))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if ctx.op != "sum":
            raise ArgumentError(
                f"reduce_scatter: the reduction {ctx.op!r} has no gradient", remedy="'sum', or tensor.detach()"
            )
        return _AllGather.apply(grads[0]).flatten(0, 1), None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return Tensor._wrap(group().all_gather(_array(x, "all_gather")))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _ReduceScatter.apply(grads[0], "sum").squeeze(0)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, root: int) -> Tensor:
        ctx.root = root
        return Tensor._wrap(group().broadcast(_array(x, "broadcast"), root))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        found = _AllReduce.apply(grads[0], "sum")
        return found if group().rank == ctx.root else found * 0, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return Tensor._wrap(group().all_to_all(_array(x, "all_to_all")))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _AllToAll.apply(grads[0])


_reduced = _collective(lambda x, op: x)(lambda x, op: _AllReduce.apply(x, op))
_scattered = _collective(lambda x, op: x[: x.shape[0] // group().size])(lambda x, op: _ReduceScatter.apply(x, op))
_gathered = _collective(lambda x: x[None].expand(group().size, *x.shape))(lambda x: _AllGather.apply(x))
_broadcast = _collective(lambda x, root: x)(lambda x, root: _Broadcast.apply(x, root))
_exchanged = _collective(lambda x: x)(lambda x: _AllToAll.apply(x))


def _checked(x: Any, name: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{name} takes a tensor, got {type(x).__name__}", remedy="graphc.tensor(...)")
    return x


def _whole_parts(x: Tensor, dim: int, name: str) -> None:
    count = group().size
    if not x.shape or x.shape[dim] % count:
        raise ShapeError(f"{name}: dimension {dim} of {list(x.shape)} is not a multiple of {count} processes")


def reduced(x: Tensor, op: str = "sum") -> Tensor:
    """The reduction of the tensors of all processes, element by element, as a new tensor; the gradient of a sum is the
    sum of the gradients of all. ``op``: sum, mean, prod, min, max. Raises ArgumentError, DTypeError."""
    if op not in (*OPS, "mean"):
        raise ArgumentError(f"all_reduce: there is no reduction {op!r}", remedy=", ".join((*OPS, "mean")))
    _checked(x, "all_reduce")
    if op != "mean":
        return _reduced(x, op)
    if not x.dtype.is_differentiable:
        raise DTypeError(f"all_reduce: the mean of {x.dtype.name}", remedy="tensor.float()")
    return _reduced(x, "sum") / group().size


def all_reduce(tensor: Tensor, op: str = "sum") -> Tensor:
    """``reduced``, written into the tensor, which is returned too. As any operation in place, it is recorded where
    gradients are, and refused for a leaf that requires one."""
    return _checked(tensor, "all_reduce").copy_(reduced(tensor, op))


def broadcast(tensor: Tensor, src: int = 0) -> Tensor:
    """Writes the tensor of process ``src`` into that of each other one, and returns it; all are of one shape and type.
    The gradient goes to that of ``src``, summed. Raises ArgumentError."""
    group().check_rank(src)
    return _checked(tensor, "broadcast").copy_(_broadcast(tensor, src))


def all_gather(x: Any, tensor: Tensor | None = None, dim: int = 0) -> Any:
    """``all_gather(x)``: the tensors of all processes, concatenated along ``dim`` in the order of ranks, with a
    gradient. ``all_gather(tensors, x)`` copies them into the tensors of a list. Raises ArgumentError, ShapeError."""
    if tensor is not None:
        parts = _gathered(_checked(tensor, "all_gather"))
        _fill(x, parts, "all_gather")
        return None
    _checked(x, "all_gather")
    if not x.shape:
        return _gathered(x)
    dim = dim + x.dim() if dim < 0 else dim
    return cat(list(_gathered(x)), dim) if dim else _gathered(x).flatten(0, 1)


def reduce_scatter(x: Any, inputs: Sequence[Tensor] | None = None, op: str = "sum", dim: int = 0) -> Tensor:
    """``reduce_scatter(x)``: part ``rank`` along ``dim`` of the sum (or ``op``) of the tensors of all processes.
    ``reduce_scatter(output, inputs)`` copies the sum of all ``inputs[rank]`` into ``output``. Raises ShapeError where
    the dimension is no multiple of the number of processes."""
    if inputs is not None:
        return _checked(x, "reduce_scatter").copy_(_scattered(stack(list(inputs)), op)[0])
    _checked(x, "reduce_scatter")
    _whole_parts(x, dim, "reduce_scatter")
    if op == "mean":
        return reduce_scatter(x, op="sum", dim=dim) / group().size
    return _scattered(x.movedim(dim, 0), op).movedim(0, dim)


def all_to_all(x: Any, inputs: Sequence[Tensor] | None = None) -> Any:
    """``all_to_all(x)``: part i along the first dimension goes to process i; gives what came, in the order of senders.
    ``all_to_all(outputs, inputs)`` does so with lists of tensors. Raises ShapeError where the dimension is no multiple
    of the number of processes."""
    if inputs is not None:
        _fill(x, _exchanged(stack(list(inputs))), "all_to_all")
        return None
    _whole_parts(_checked(x, "all_to_all"), 0, "all_to_all")
    return _exchanged(x)


def _fill(outputs: Any, parts: Tensor, name: str) -> None:
    count = group().size
    if not isinstance(outputs, (list, tuple)) or len(outputs) != count:
        raise ArgumentError(f"{name}: the outputs are no list of {count} tensors, one for each process")
    for output, part in zip(outputs, parts, strict=True):
        output.copy_(part)


def all_gather_into_tensor(output: Tensor, input: Tensor) -> Tensor:
    """Copies the tensors of all processes into ``output``, along its first dimension."""
    return output.copy_(_gathered(_checked(input, "all_gather_into_tensor")).reshape(output.shape))


def reduce_scatter_tensor(output: Tensor, input: Tensor, op: str = "sum") -> Tensor:
    """Copies part ``rank`` of the reduction of ``input``, along its first dimension, into ``output``."""
    return output.copy_(reduce_scatter(input, op=op).reshape(output.shape))


def all_to_all_single(output: Tensor, input: Tensor) -> Tensor:
    """Copies what ``all_to_all(input)`` gives into ``output``."""
    return output.copy_(all_to_all(input))


def all_gather_object(objects: list[Any], value: Any) -> None:
    """Fills the list with the values of all processes, which are pickled."""
    objects[:] = group().gather_objects(value)


def broadcast_object_list(objects: list[Any], src: int = 0) -> None:
    """Replaces the entries of the list by those of process ``src``, which are pickled."""
    group().check_rank(src)
    objects[:] = group().gather_objects(list(objects) if group().rank == src else None)[src]
