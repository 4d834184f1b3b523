"""Collectives on tensors, with gradients, in eager mode and in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.errors import ArgumentError, DTypeError, GradientError, ShapeError
from graphc.distributed.communicator import OPS
from graphc.distributed.group import check_group
from graphc.distributed.group import group as here
from graphc.eager.function import Function
from graphc.tensors.free_functions import cat, stack
from graphc.tensors.placement import is_on_device
from graphc.tensors.tensor import Tensor
from graphc.tracing.host import opaque


class ReduceOp:
    """The reductions by PyTorch's names."""

    SUM, AVG, PRODUCT, MIN, MAX = "sum", "mean", "prod", "min", "max"


class Done:
    """A collective that has come to its end, for callers that ask with ``async_op=True`` for one to wait for."""

    def __init__(self, result: Any = None):
        self._result = result

    def wait(self, timeout: Any = None) -> bool:
        """True."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True

    def result(self) -> list[Any]:
        """The tensor that was written."""
        return [self._result]


def _as_asked(result: Any, async_op: bool) -> Any:
    return Done(result) if async_op else result


def _named(op: Any, x: Tensor, name: str) -> str:
    """The reduction by graphc's name: text, in any case, or an entry of PyTorch's ReduceOp."""
    found = str(getattr(op, "name", op)).lower()
    found = {"avg": "mean", "product": "prod"}.get(found, found)
    if found not in (*OPS, "mean"):
        raise ArgumentError(f"{name}: there is no reduction {op!r}", remedy=", ".join((*OPS, "mean")))
    if found == "mean" and not x.dtype.is_differentiable:
        raise DTypeError(f"{name}: the mean of {x.dtype.name}", remedy="tensor.float()")
    if found in ("min", "max") and x.dtype.is_complex:
        raise DTypeError(f"{name}: complex numbers have no order, as {found!r} needs", remedy="view_as_real(tensor)")
    return found


def _collective(results: Callable[..., Any]) -> Callable[..., Any]:
    """A function that compiled code calls in Python, at its place in the order of calls."""
    return lambda function: opaque(function, results=results)


def _with(x: Tensor) -> Any:
    """What reduces a tensor: the group, or for one on a GPU NCCL. A process alone has its tensors on the host."""
    return here().on_devices.of(x._data) if is_on_device(x._data) else here()


def _check_differentiable(name: str, op: str) -> None:
    """Raises GradientError for a reduction that is no sum."""
    if op != "sum":
        raise GradientError(f"{name}: the reduction {op!r} has no gradient", remedy="'sum', 'mean', or tensor.detach()")


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
        found = _AllReduce.apply(grads[0], "sum")
        return found if here().rank == ctx.root else found * 0, None


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
        raise ArgumentError(f"{name} takes a tensor, got {type(x).__name__}", remedy="graphc.tensor(...)")
    return x


def reduced(x: Tensor, op: Any = "sum") -> Tensor:
    """The reduction of the tensors of all processes, element by element, as a new tensor; the gradient of a sum is the
    sum of the gradients of all. ``op``: sum, mean, prod, min, max, also by PyTorch's names. Raises ArgumentError,
    DTypeError."""
    name = _named(op, _checked(x, "all_reduce"), "all_reduce")
    return _reduced(x, "sum") / here().size if name == "mean" else _reduced(x, name)


def all_reduce(tensor: Tensor, op: Any = "sum", group: Any = None, async_op: bool = False) -> Any:
    """``reduced``, written into the tensor, which is returned too. As any operation in place, it is recorded where
    gradients are, and refused for a leaf that requires one. With ``async_op`` returns what can be waited for."""
    check_group(group, "all_reduce: group")
    return _as_asked(_checked(tensor, "all_reduce").copy_(reduced(tensor, op)), async_op)


def broadcast(tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False) -> Any:
    """Writes the tensor of process ``src`` into that of each other one, and returns it; all are of one shape and type.
    The gradient goes to that of ``src``, summed. Raises ArgumentError."""
    check_group(group, "broadcast: group")
    here().check_rank(src)
    return _as_asked(_checked(tensor, "broadcast").copy_(_broadcast(tensor, src)), async_op)


def all_gather(x: Any, tensor: Any = None, group: Any = None, async_op: bool = False, *, dim: int = 0) -> Any:
    """``all_gather(x)``: the tensors of all processes, concatenated along ``dim`` in the order of ranks, with a
    gradient; scalars are stacked. ``all_gather(tensors, x)`` copies them into the tensors of a list. Raises
    ArgumentError, ShapeError."""
    check_group(group, "all_gather: group")
    if tensor is not None:
        _fill(x, _gathered(_checked(tensor, "all_gather")), "all_gather")
        return _as_asked(None, async_op)
    if not _checked(x, "all_gather").shape:
        return _gathered(x)
    dim = _dimension(x, dim, "all_gather")
    return cat(list(_gathered(x)), dim) if dim else _gathered(x).flatten(0, 1)


def reduce_scatter(
    x: Any, inputs: Any = None, op: Any = "sum", group: Any = None, async_op: bool = False, *, dim: int = 0
) -> Any:
    """``reduce_scatter(x)``: part ``rank`` along ``dim`` of the sum (or ``op``) of the tensors of all processes.
    ``reduce_scatter(output, inputs)`` copies the sum of all ``inputs[rank]`` into ``output``. Raises ShapeError where
    the dimension is no multiple of the number of processes."""
    check_group(group, "reduce_scatter: group")
    _checked(x, "reduce_scatter")
    if inputs is not None:
        _check_count(inputs, "reduce_scatter", "inputs")
        found = reduce_scatter(stack(list(inputs)), op=op)[0]
        return _as_asked(x.copy_(found), async_op)
    name, dim = _named(op, x, "reduce_scatter"), _dimension(x, dim, "reduce_scatter")
    _check_parts(x, dim, "reduce_scatter")
    found = _scattered(x.movedim(dim, 0), "sum" if name == "mean" else name).movedim(0, dim)
    return found / here().size if name == "mean" else found


def all_to_all(x: Any, inputs: Any = None, group: Any = None, async_op: bool = False) -> Any:
    """``all_to_all(x)``: part i along the first dimension goes to process i; gives what came, in the order of senders.
    ``all_to_all(outputs, inputs)`` does so with lists of tensors of one shape. Raises ShapeError where the dimension is
    no multiple of the number of processes."""
    check_group(group, "all_to_all: group")
    if inputs is not None:
        _check_count(inputs, "all_to_all", "inputs")
        _fill(x, _exchanged(stack(list(inputs))), "all_to_all")
        return _as_asked(None, async_op)
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


def _check_count(tensors: Any, name: str, what: str) -> None:
    count = here().size
    if not isinstance(tensors, (list, tuple)) or len(tensors) != count:
        raise ArgumentError(f"{name}: the {what} are no list of {count} tensors, one for each process")


def _fill(outputs: Any, parts: Tensor, name: str) -> None:
    _check_count(outputs, name, "outputs")
    for output, part in zip(outputs, parts, strict=True):
        output.copy_(part)


def all_gather_into_tensor(output: Tensor, input: Tensor, group: Any = None, async_op: bool = False) -> Any:
    """Copies the tensors of all processes into ``output``, along its first dimension, or along one more in front."""
    check_group(group, "all_gather_into_tensor: group")
    found = _gathered(_checked(input, "all_gather_into_tensor"))
    return _as_asked(output.copy_(found.reshape(output.shape)), async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: Any = "sum", group: Any = None, async_op: bool = False
) -> Any:
    """Copies part ``rank`` of the reduction of ``input``, along its first dimension, into ``output``."""
    found = reduce_scatter(input, op=op, group=group)
    return _as_asked(output.copy_(found.reshape(output.shape)), async_op)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Any = None,
    input_split_sizes: Any = None,
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """Copies what ``all_to_all(input)`` gives into ``output``; parts are equal. Raises ArgumentError for others."""
    if output_split_sizes or input_split_sizes:
        raise ArgumentError("all_to_all_single: parts of other sizes", remedy="equal parts, padded")
    return _as_asked(output.copy_(all_to_all(input, group=group)), async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fills the list with the values of all processes, which are pickled."""
    check_group(group, "all_gather_object: group")
    object_list[:] = here().gather_objects(obj)


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Replaces the entries of the list by those of process ``src``, which are pickled."""
    check_group(group, "broadcast_object_list: group")
    here().check_rank(src)
    object_list[:] = here().gather_objects(list(object_list) if here().rank == src else None)[src]
