"""Collectives on tensors, with gradients, in eager mode and in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.autograd.function import Function
from graphc.base.errors import ArgumentError, DTypeError, GradientError, ShapeError
from graphc.distributed.communicator import OPS
from graphc.distributed.group import check_group
from graphc.distributed.group import group as here
from graphc.tensors.free_functions import cat, stack
from graphc.tensors.placement import is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import opaque

__all__ = ["ReduceOp", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all"]
__all__ += ["all_to_all_single", "broadcast", "broadcast_object_list", "reduce_scatter", "reduce_scatter_tensor"]
__all__ += ["reduced"]


class ReduceOp:
    """Reductions by PyTorch's names."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "mean", "prod", "min", "max"


class Done:
    """Completed collective, returned for ``async_op=True`` in place of PyTorch's Work."""

    def __init__(self, result: Any = None):
        self._result = result

    def wait(self, timeout: Any = None) -> bool:
        """Return True, since the collective is complete."""
        return True

    def is_completed(self) -> bool:
        """Return True, since the collective is complete."""
        return True

    def result(self) -> list[Any]:
        """Return a list with the output tensor."""
        return [self._result]


def _result_or_work(result: Any, async_op: bool) -> Any:
    return Done(result) if async_op else result


def _named(op: Any, x: Tensor, name: str) -> str:
    """Return graphc's name of a reduction, given a name in any case or an entry of PyTorch's ReduceOp."""
    reduction = str(getattr(op, "name", op)).lower()
    reduction = {"avg": "mean", "product": "prod"}.get(reduction, reduction)
    if reduction not in (*OPS, "mean"):
        raise ArgumentError(
            f"{name}: there is no reduction {op!r}", remedy=f"choose one of {', '.join((*OPS, 'mean'))}"
        )
    if reduction == "mean" and not x.dtype.is_differentiable:
        raise DTypeError(f"{name}: {x.dtype.name} has no mean", remedy="pass tensor.float()")
    if reduction in ("min", "max") and x.dtype.is_complex:
        raise DTypeError(
            f"{name}: complex numbers have no order, which {reduction!r} needs", remedy="pass view_as_real(tensor)"
        )
    return reduction


def _collective(results: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that compiled code calls in Python, in the order of the program."""
    return lambda function: opaque(function, results=results)


def _with(x: Tensor) -> Any:
    """Return the object that reduces a tensor: the group for a host tensor, NCCL for one on a GPU."""
    return here().on_devices.of(x._data) if is_on_device(x._data) else here()


def _check_differentiable(name: str, op: str) -> None:
    """Raise GradientError for any reduction except a sum."""
    if op != "sum":
        raise GradientError(
            f"{name}: the reduction {op!r} has no gradient", remedy="use 'sum' or 'mean', or pass tensor.detach()"
        )


class _AllReduce(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str) -> Tensor:
        ctx.op = op
        if op != "sum" or not x.dtype.is_differentiable:
            ctx.set_materialize_grads(False)
        return Tensor._wrap(_with(x).all_reduce(x._data, op))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        _check_differentiable("all_reduce", ctx.op)
        return _AllReduce.apply(grads[0], "sum"), None


class _ReduceScatter(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, op: str) -> Tensor:
        ctx.op = op
        return Tensor._wrap(_with(x).reduce_scatter(x._data, op))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        _check_differentiable("reduce_scatter", ctx.op)
        return _AllGather.apply(grads[0]).flatten(0, 1), None


class _AllGather(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return Tensor._wrap(_with(x).all_gather(x._data))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _ReduceScatter.apply(grads[0], "sum").squeeze(0)


class _Broadcast(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, root: int) -> Tensor:
        ctx.root = root
        return Tensor._wrap(_with(x).broadcast(x._data, root))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        total = _AllReduce.apply(grads[0], "sum")
        return total if here().rank == ctx.root else total * 0, None


class _AllToAll(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return Tensor._wrap(_with(x).all_to_all(x._data))

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return _AllToAll.apply(grads[0])


_reduced = _collective(lambda x, op: x)(lambda x, op: _AllReduce.apply(x, op))
_scattered = _collective(lambda x, op: x[: x.shape[0] // here().size])(lambda x, op: _ReduceScatter.apply(x, op))
_gathered = _collective(lambda x: x[None].expand(here().size, *x.shape))(lambda x: _AllGather.apply(x))
_broadcast = _collective(lambda x, root: x)(lambda x, root: _Broadcast.apply(x, root))
_exchanged = _collective(lambda x: x)(lambda x: _AllToAll.apply(x))


def _checked(x: Any, name: str) -> Tensor:
    if not isinstance(x, Tensor):
        raise ArgumentError(f"{name} takes a tensor, got {type(x).__name__}", remedy="pass graphc.tensor(...)")
    return x


def reduced(x: Tensor, op: Any = "sum") -> Tensor:
    """Return the element-wise reduction of the tensors of all processes, as a new tensor.

    ``op`` is sum, mean, prod, min or max, or PyTorch's name for it. The gradient of a sum is the sum of all gradients.
    Raises ArgumentError, DTypeError.
    """
    name = _named(op, _checked(x, "all_reduce"), "all_reduce")
    return _reduced(x, "sum") / here().size if name == "mean" else _reduced(x, name)


def all_reduce(tensor: Tensor, op: Any = "sum", group: Any = None, async_op: bool = False) -> Any:
    """Reduce the tensor over all processes in place, and return it, or a completed Work with ``async_op``.

    Autograd records it like any in-place operation: it is refused for a leaf that requires gradients.
    """
    check_group(group, "all_reduce: group")
    return _result_or_work(_checked(tensor, "all_reduce").copy_(reduced(tensor, op)), async_op)


def broadcast(tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False) -> Any:
    """Copy the tensor of rank ``src`` into the tensors of the other processes, and return it.

    All tensors have the same shape and type. The gradient of rank ``src`` is the sum of all gradients. Raises
    ArgumentError.
    """
    check_group(group, "broadcast: group")
    here().check_rank(src)
    return _result_or_work(_checked(tensor, "broadcast").copy_(_broadcast(tensor, src)), async_op)


def all_gather(x: Any, tensor: Any = None, group: Any = None, async_op: bool = False, *, dim: int = 0) -> Any:
    """Gather the tensors of all processes.

    ``all_gather(x)`` returns them concatenated along ``dim`` in the order of ranks, with a gradient; scalars are
    stacked. ``all_gather(tensors, x)`` copies them into a list of tensors. Raises ArgumentError, ShapeError.
    """
    check_group(group, "all_gather: group")
    if tensor is not None:
        _fill(x, _gathered(_checked(tensor, "all_gather")), "all_gather")
        return _result_or_work(None, async_op)
    if not _checked(x, "all_gather").shape:
        return _gathered(x)
    dim = _dimension(x, dim, "all_gather")
    return cat(list(_gathered(x)), dim) if dim else _gathered(x).flatten(0, 1)


def reduce_scatter(
    x: Any, inputs: Any = None, op: Any = "sum", group: Any = None, async_op: bool = False, *, dim: int = 0
) -> Any:
    """Reduce the tensors of all processes, and return this process's part of the result.

    ``reduce_scatter(x)`` returns part ``rank`` along ``dim`` of the sum (or ``op``). ``reduce_scatter(output, inputs)``
    copies the sum of all ``inputs[rank]`` into ``output``. Raises ShapeError unless the number of processes divides the
    dimension.
    """
    check_group(group, "reduce_scatter: group")
    _checked(x, "reduce_scatter")
    if inputs is not None:
        _check_count(inputs, "reduce_scatter", "inputs")
        total = reduce_scatter(stack(list(inputs)), op=op)[0]
        return _result_or_work(x.copy_(total), async_op)
    name, dim = _named(op, x, "reduce_scatter"), _dimension(x, dim, "reduce_scatter")
    _check_parts(x, dim, "reduce_scatter")
    shard = _scattered(x.movedim(dim, 0), "sum" if name == "mean" else name).movedim(0, dim)
    return shard / here().size if name == "mean" else shard


def all_to_all(x: Any, inputs: Any = None, group: Any = None, async_op: bool = False) -> Any:
    """Exchange parts between all processes.

    ``all_to_all(x)`` sends part i along the first dimension to rank i, and returns the received parts in the order of
    senders. ``all_to_all(outputs, inputs)`` does so with lists of tensors of one shape. Raises ShapeError unless the
    number of processes divides the dimension.
    """
    check_group(group, "all_to_all: group")
    if inputs is not None:
        _check_count(inputs, "all_to_all", "inputs")
        _fill(x, _exchanged(stack(list(inputs))), "all_to_all")
        return _result_or_work(None, async_op)
    _check_parts(_checked(x, "all_to_all"), 0, "all_to_all")
    return _exchanged(x)


def _dimension(x: Tensor, dim: int, name: str) -> int:
    if not -x.dim() <= dim < x.dim():
        raise ShapeError(f"{name}: {list(x.shape)} has no dimension {dim}")
    return dim % x.dim()


def _check_parts(x: Tensor, dim: int, name: str) -> None:
    count = here().size
    if not x.shape or x.shape[dim] % count:
        raise ShapeError(f"{name}: dimension {dim} of {list(x.shape)} is not a multiple of {count} processes")


def _check_count(tensors: Any, name: str, argument: str) -> None:
    count = here().size
    if not isinstance(tensors, (list, tuple)) or len(tensors) != count:
        raise ArgumentError(f"{name}: {argument} must be a list of {count} tensors, one for each process")


def _fill(outputs: Any, values: Tensor, name: str) -> None:
    _check_count(outputs, name, "outputs")
    for output, value in zip(outputs, values, strict=True):
        output.copy_(value)


def all_gather_into_tensor(output: Tensor, input: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """Copy the tensors of all processes into ``output``, concatenated or stacked along its first dimension."""
    check_group(group, "all_gather_into_tensor: group")
    gathered = _gathered(_checked(input, "all_gather_into_tensor"))
    return _result_or_work(output.copy_(gathered.reshape(output.shape)), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = "sum", group: Any = None, async_op: bool = False
) -> Any:
    """Copy part ``rank`` of the reduction of ``input``, along its first dimension, into ``output``."""
    shard = reduce_scatter(input, op=op, group=group)
    return _result_or_work(output.copy_(shard.reshape(output.shape)), async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Copy the result of ``all_to_all(input)`` into ``output``. Raises ArgumentError for parts of unequal sizes."""
    if output_split_sizes or input_split_sizes:
        raise ArgumentError(
            "all_to_all_single: parts of unequal sizes are not supported", remedy="pad the parts to equal sizes"
        )
    return _result_or_work(output.copy_(all_to_all(input, group=group)), async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fill the list with the pickled values of all processes, by rank."""
    check_group(group, "all_gather_object: group")
    object_list[:] = here().gather_objects(obj)


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Replace the entries of the list by the pickled entries of rank ``src``."""
    check_group(group, "broadcast_object_list: group")
    here().check_rank(src)
    object_list[:] = here().gather_objects(list(object_list) if here().rank == src else None)[src]
