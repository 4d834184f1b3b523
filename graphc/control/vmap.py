"""vmap: turns a function of one example into a function of batches by tracing it once."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from graphc.base.errors import AttributeValueError, ShapeError, TraceError
from graphc.base.interruptions import kept_outside
from graphc.base.sizes.dims import dim_of
from graphc.ir.graph.graph import Graph
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.batch import BatchedOperand, spread
from graphc.ops.batching import run_batched
from graphc.ops.movement.shape import concat, transpose
from graphc.passes.base import held_graphs
from graphc.tape.tangents import has_tangents
from graphc.tensors.structure import Branch, Leaf, Structure, fields_of, flatten, is_record, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.trace import draws
from graphc.tracing.tracer import Captured, Tracer

RANDOMNESS = ("error", "same", "different")


class ExampleTracer(Tracer):
    """Tracer for the function of one example; tensors from outside become arguments, whatever their history."""

    def __init__(self, graph: Graph, outside: Any):
        super().__init__(graph, parent=outside)

    def _lift(self, tensor: Tensor, outer: Tensor) -> Tensor:
        inner = self.graph.add_input(TensorType(outer.dtype, refresh(outer).shape), f"outside.{len(self.origins)}")
        self.origins.append(outer)
        image = self._remember(tensor, inner)
        # Take over the autograd node of the outside tensor, so that a backward pass inside continues outside.
        image._node, image._index, image._accumulator = outer._node, outer._index, outer._accumulator
        image._requires_grad = _is_variable(outer)
        return image


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that computes ``func`` for every entry of a batch, without a loop.

    ``in_dims``: for each argument the batch dimension, or None for an argument that all entries share; a single value
    for all arguments, or nested like the arguments. Keyword arguments are batched along dimension 0. ``out_dims``: the
    position of the batch dimension in the results. ``randomness``: random numbers raise an ``error``, are the ``same``
    for every entry, or ``different``.

    Every call traces the function: code that reads values raises TraceError, and so do writes to tensors from outside
    that differ between entries. Gradients, tangents and compilation work through it, inside and outside.

    ``chunk_size``: the number of entries computed at once, to save memory; the last chunk may be smaller.

    Example:
        >>> import graphc as gc
        >>> distance = gc.vmap(lambda a, b: (a - b).norm(), in_dims=(0, None))
        >>> distance(gc.tensor([[0.0, 3.0], [4.0, 0.0]]), gc.zeros(2))
        tensor([3., 4.])
    """
    if chunk_size is not None:
        return _in_chunks(func, in_dims, out_dims, randomness, chunk_size)
    if randomness not in RANDOMNESS:
        raise AttributeValueError(f"vmap: randomness must be one of {', '.join(RANDOMNESS)}, got {randomness!r}")

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        dims = _dims_of(structure, in_dims, len(args), len(leaves))
        entries, size = _entries(leaves, dims)
        outer = front()
        tracer = ExampleTracer(Graph("vmap"), outer)
        examples = [_example(tracer, e, i) for i, e in enumerate(entries)]
        with kept_outside(), dispatch.use(tracer):
            inputs, keywords = unflatten(structure, examples)
            returned, shape = flatten(func(*inputs, **keywords))
            results = [refresh(tracer.local(t))._data for t in returned]
            writes = [(c, refresh(c.image)._data) for c in tracer.written()]
        tracer.graph.set_outputs([*results, *(value for _, value in writes)])
        _check_random(tracer.graph, randomness)
        arguments = [*entries, *(BatchedOperand(t, False) for t in tracer.origins)]
        outputs = run_batched(tracer.graph, size, arguments, randomness == "different")
        for (entry, _), output in zip(writes, outputs[len(results) :], strict=True):
            _write_back(entry, output)
        result_dims = _out_dims_of(shape, out_dims, len(results))
        return unflatten(shape, [_placed(o, d, size) for o, d in zip(outputs, result_dims, strict=False)])

    return wrapped


def _is_variable(tensor: Tensor) -> bool:
    """Return whether a derivative outside passes through the tensor: by its gradient or its tangent."""
    return tensor.requires_grad or has_tangents((tensor,))


def _example(tracer: Tracer, entry: BatchedOperand, i: int) -> Tensor:
    image = Tensor._wrap(tracer.graph.add_input(TensorType(entry.value.dtype, entry.shape), f"x{i}"))
    image._requires_grad = _is_variable(entry.value)
    return image


def _dims_of(structure: Structure, in_dims: Any, positional: int, leaves: int) -> list[int | None]:
    """Return the batch dimension of every leaf of (args, kwargs)."""
    assert isinstance(structure, Branch)
    args, kwargs = structure.children
    positional_dims = in_dims
    if not isinstance(in_dims, (int, tuple, list)):
        raise AttributeValueError(f"vmap: in_dims must be an int or a tuple, got {type(in_dims).__name__}")
    if isinstance(in_dims, (tuple, list)):
        if len(in_dims) != positional:
            raise AttributeValueError(f"vmap: in_dims has {len(in_dims)} entries for {positional} arguments")
        positional_dims = tuple(in_dims)
    leaf_dims = _matched(args, positional_dims, "in_dims") + _matched(kwargs, 0, "in_dims")
    assert len(leaf_dims) == leaves
    return leaf_dims


def _matched(structure: Structure, dims: Any, what: str) -> list[int | None]:
    """Return one dimension per leaf of a structure, from a single value or a tree that may be shallower."""
    if isinstance(structure, Leaf):
        if dims is not None and (not isinstance(dims, int) or isinstance(dims, bool)):
            raise AttributeValueError(f"vmap: {what} is {dims!r} for a tensor, expected an int or None")
        return [dims]
    if not isinstance(structure, Branch):
        return []
    if dims is None or isinstance(dims, int):
        inner = [dims] * len(structure.children)
    elif isinstance(dims, dict) or is_record(dims):
        by_key = dims if isinstance(dims, dict) else fields_of(dims)
        inner = [by_key.get(key) for key in structure.keys]
    elif isinstance(dims, (tuple, list)):
        inner = list(dims)
    else:
        raise AttributeValueError(f"vmap: {what} is {dims!r} for a {structure.kind.__name__}", remedy="nest it alike")
    if len(inner) != len(structure.children):
        raise AttributeValueError(f"vmap: {what} has {len(inner)} entries for {len(structure.children)} values")
    return [d for child, dim in zip(structure.children, inner, strict=True) for d in _matched(child, dim, what)]


def _entries(leaves: Sequence[Tensor], dims: Sequence[int | None]) -> tuple[list[BatchedOperand], int]:
    """Move the batch dimension of all leaves to the front; return them with the batch size."""
    entries, sizes = [], set()
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            entries.append(BatchedOperand(leaf, False))
            continue
        if not leaf.shape:
            raise ShapeError("vmap: a tensor without dimensions has no batch", remedy="pass in_dims=None for it")
        axis = dim_of(dim, leaf.ndim)
        sizes.add(leaf.shape[axis])
        entries.append(BatchedOperand(_moved(leaf, axis, 0), True))
    if not sizes:
        raise AttributeValueError(
            "vmap: no argument is batched", remedy="give at least one tensor an in_dims other than None"
        )
    if len(sizes) > 1:
        raise ShapeError(f"vmap: arguments have batches of different sizes: {', '.join(map(str, sorted(sizes)))}")
    return entries, sizes.pop()


def _moved(tensor: Any, source: int, target: int) -> Any:
    if source == target:
        return tensor
    order = [d for d in range(len(tensor.shape)) if d != source]
    order.insert(target, source)
    return transpose(tensor, permutation=tuple(order))


def _check_random(graph: Graph, randomness: str) -> None:
    if any(draws(node.attrs[name]) for node in graph.nodes() for name in held_graphs(node)):
        what = "vmap: the function draws random numbers inside of a loop or a branch"
        raise TraceError(what, remedy="draw them before vmap, and pass them as an argument")
    for node in graph.nodes():
        if node.op.has(Trait.RANDOM) and randomness == "error":
            raise TraceError(
                "vmap: the function draws random numbers",
                origin=node.location.describe() or None,
                remedy='pass randomness="different" for different numbers in every entry, or "same"',
            )


def _write_back(entry: Captured, output: BatchedOperand) -> None:
    """Write to a tensor from outside; raise TraceError if the entries wrote different values."""
    if output.batched:
        raise TraceError(
            "vmap: the function writes values that differ between the entries to a tensor from outside",
            origin=entry.origin.describe() if entry.origin else None,
            remedy="return the value instead",
        )
    front().assign(entry.tensor, output.value)


def _out_dims_of(structure: Structure, out_dims: Any, count: int) -> list[int | None]:
    leaf_dims = _matched(structure, out_dims, "out_dims")
    assert len(leaf_dims) == count
    return leaf_dims


def _placed(output: BatchedOperand, dim: int | None, size: int) -> Any:
    if dim is None:
        if output.batched:
            raise AttributeValueError("vmap: out_dims is None for a result that differs between the entries")
        return output.value
    value = spread(output, size)
    return _moved(value, 0, dim_of(dim, len(value.shape)))


def check_chunk_size(name: str, size: int | None) -> None:
    """Raise AttributeValueError unless the size is None or a positive int."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise AttributeValueError(f"{name}: chunk_size must be None or at least 1, got {size!r}")


def _in_chunks(func: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str, size: int) -> Callable[..., Any]:
    """Compute the batch in chunks of ``size`` and concatenate their results; see ``vmap``."""
    check_chunk_size("vmap", size)
    if randomness == "same":
        raise AttributeValueError(
            "vmap: randomness='same' does not work with chunk_size: each chunk draws its own random numbers"
        )
    batched = vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        dims = _dims_of(structure, in_dims, len(args), len(leaves))
        _, count = _entries(leaves, dims)
        if count <= size:
            return batched(*args, **kwargs)
        chunk_results, shape = [], None
        for start in range(0, count, size):
            chunk = [_slice(x, d, start, min(start + size, count)) for x, d in zip(leaves, dims, strict=True)]
            inputs, keywords = unflatten(structure, chunk)
            results, shape = flatten(batched(*inputs, **keywords))
            chunk_results.append(results)
        assert shape is not None
        result_dims = _out_dims_of(shape, out_dims, len(chunk_results[0]))
        columns = zip(*chunk_results, strict=True)
        return unflatten(shape, [_joined(pieces, dim) for pieces, dim in zip(columns, result_dims, strict=True)])

    return wrapped


def _slice(tensor: Any, dim: int | None, start: int, stop: int) -> Any:
    return tensor if dim is None else tensor.narrow(dim, start, stop - start)


def _joined(pieces: Sequence[Any], dim: int | None) -> Any:
    return pieces[0] if dim is None else concat(*pieces, axis=dim_of(dim, len(pieces[0].shape)))
