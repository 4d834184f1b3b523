"""vmap: a function of examples becomes one of batches, by tracing it once and applying its graph to all examples."""

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
from graphc.ops.batch import Entry, spread
from graphc.ops.batching import run_batched
from graphc.ops.shape import concat, transpose
from graphc.passes.base import held_graphs
from graphc.tape.tangents import has_tangents
from graphc.tensors.structure import Branch, Leaf, Structure, flatten, unflatten
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front, refresh
from graphc.tracing.trace import draws
from graphc.tracing.tracer import Captured, Tracer

RANDOMNESS = ("error", "same", "different")


class ExampleTracer(Tracer):
    """Traces the function of one example; tensors from outside become arguments, whatever their history."""

    def __init__(self, graph: Graph, outside: Any):
        super().__init__(graph, parent=outside)

    def _lift(self, tensor: Tensor, outer: Tensor) -> Tensor:
        inner = self.graph.add_input(TensorType(outer.dtype, refresh(outer).shape), f"outside.{len(self.origins)}")
        self.origins.append(outer)
        image = self._remember(tensor, inner)
        # At the place of the tensor outside, so that a backward pass inside goes through what was recorded outside.
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
    """A function that computes ``func`` for every entry of a batch, without a loop.

    ``in_dims``: for each argument the dimension that counts the entries, or None for one that all entries share; one
    for all arguments, or nested as the arguments are. Keyword arguments are batched along dimension 0. ``out_dims``
    says where that dimension goes in the results. ``randomness``: random numbers are an ``error``, the ``same`` for
    every entry, or ``different``.

    The function is traced at every call: code that asks for values raises TraceError, and so do writes to tensors from
    outside that differ between the entries. Gradients, tangents and compilation go through, both ways.

    ``chunk_size``: so many entries are computed at once, the last ones in a smaller chunk, which takes less memory.
    """
    if chunk_size is not None:
        return _in_chunks(func, in_dims, out_dims, randomness, chunk_size)
    if randomness not in RANDOMNESS:
        raise AttributeValueError(f"vmap: randomness is one of {', '.join(RANDOMNESS)}, got {randomness!r}")

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
            found, shape = flatten(func(*inputs, **keywords))
            results = [refresh(tracer.local(t))._data for t in found]
            writes = [(c, refresh(c.image)._data) for c in tracer.written()]
        tracer.graph.set_outputs([*results, *(value for _, value in writes)])
        _check_random(tracer.graph, randomness)
        arguments = [*entries, *(Entry(t, False) for t in tracer.origins)]
        outputs = run_batched(tracer.graph, size, arguments, randomness == "different")
        for (entry, _), output in zip(writes, outputs[len(results) :], strict=True):
            _write_back(entry, output)
        places = _out_dims_of(shape, out_dims, len(results))
        return unflatten(shape, [_placed(o, d, size) for o, d in zip(outputs, places, strict=False)])

    return wrapped


def _is_variable(tensor: Tensor) -> bool:
    """Whether a derivative outside goes through the tensor: by a gradient, or by its tangent."""
    return tensor.requires_grad or has_tangents((tensor,))


def _example(tracer: Tracer, entry: Entry, i: int) -> Tensor:
    image = Tensor._wrap(tracer.graph.add_input(TensorType(entry.value.dtype, entry.shape), f"x{i}"))
    image._requires_grad = _is_variable(entry.value)
    return image


def _dims_of(structure: Structure, in_dims: Any, positional: int, leaves: int) -> list[int | None]:
    """The batch dimension of every leaf of (args, kwargs)."""
    assert isinstance(structure, Branch)
    args, kwargs = structure.children
    given = in_dims
    if not isinstance(in_dims, (int, tuple, list)):
        raise AttributeValueError(f"vmap: in_dims is an int or a tuple, got {type(in_dims).__name__}")
    if isinstance(in_dims, (tuple, list)):
        if len(in_dims) != positional:
            raise AttributeValueError(f"vmap: in_dims has {len(in_dims)} entries for {positional} arguments")
        given = tuple(in_dims)
    found = _matched(args, given, "in_dims") + _matched(kwargs, 0, "in_dims")
    assert len(found) == leaves
    return found


def _matched(structure: Structure, dims: Any, what: str) -> list[int | None]:
    """One dimension per leaf of a structure: a single one, or a tree that may end before the structure does."""
    if isinstance(structure, Leaf):
        if dims is not None and (not isinstance(dims, int) or isinstance(dims, bool)):
            raise AttributeValueError(f"vmap: {what} holds {dims!r} for a tensor, expected an int or None")
        return [dims]
    if not isinstance(structure, Branch):
        return []
    if dims is None or isinstance(dims, int):
        inner = [dims] * len(structure.children)
    elif isinstance(dims, dict):
        inner = [dims.get(key) for key in structure.keys]
    else:
        inner = list(dims)
    if len(inner) != len(structure.children):
        raise AttributeValueError(f"vmap: {what} has {len(inner)} entries for {len(structure.children)} values")
    return [d for child, dim in zip(structure.children, inner, strict=True) for d in _matched(child, dim, what)]


def _entries(leaves: Sequence[Tensor], dims: Sequence[int | None]) -> tuple[list[Entry], int]:
    """The leaves with the batch in front, and its size."""
    entries, sizes = [], set()
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            entries.append(Entry(leaf, False))
            continue
        if not leaf.shape:
            raise ShapeError("vmap: a tensor without dimensions has no batch", remedy="in_dims=None for it")
        at = dim_of(dim, leaf.ndim)
        sizes.add(leaf.shape[at])
        entries.append(Entry(_moved(leaf, at, 0), True))
    if not sizes:
        raise AttributeValueError("vmap: no argument is batched", remedy="in_dims that is not None for a tensor")
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
        raise TraceError(what, remedy="draw them before, and pass them as an argument")
    for node in graph.nodes():
        if node.op.has(Trait.RANDOM) and randomness == "error":
            raise TraceError(
                "vmap: the function draws random numbers",
                origin=node.location.describe() or None,
                remedy='randomness="different" for other numbers in every entry, or "same"',
            )


def _write_back(entry: Captured, output: Entry) -> None:
    """A tensor from outside was written to: all entries must agree on what."""
    if output.batched:
        raise TraceError(
            "vmap: a tensor from outside is written to with values that differ between the entries",
            origin=entry.origin.describe() if entry.origin else None,
            remedy="return the value instead",
        )
    front().assign(entry.tensor, output.value)


def _out_dims_of(structure: Structure, out_dims: Any, count: int) -> list[int | None]:
    found = _matched(structure, out_dims, "out_dims")
    assert len(found) == count
    return found


def _placed(output: Entry, dim: int | None, size: int) -> Any:
    if dim is None:
        if output.batched:
            raise AttributeValueError("vmap: out_dims is None for a result that differs between the entries")
        return output.value
    value = spread(output, size)
    return _moved(value, 0, dim_of(dim, len(value.shape)))


def check_chunk_size(name: str, size: int | None) -> None:
    """Raises AttributeValueError for what is no number of entries."""
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise AttributeValueError(f"{name}: chunk_size is None or at least 1, got {size!r}")


def _in_chunks(func: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str, size: int) -> Callable[..., Any]:
    """See ``vmap``: the batch in pieces of ``size``, whose results are put together."""
    check_chunk_size("vmap", size)
    if randomness == "same":
        raise AttributeValueError(
            "vmap: chunks draw random numbers of their own, which are not the same for all entries"
        )
    whole = vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func, updated=())
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        dims = _dims_of(structure, in_dims, len(args), len(leaves))
        _, count = _entries(leaves, dims)
        if count <= size:
            return whole(*args, **kwargs)
        found, shape = [], None
        for start in range(0, count, size):
            parts = [_part(x, d, start, min(start + size, count)) for x, d in zip(leaves, dims, strict=True)]
            inputs, keywords = unflatten(structure, parts)
            results, shape = flatten(whole(*inputs, **keywords))
            found.append(results)
        assert shape is not None
        places = _out_dims_of(shape, out_dims, len(found[0]))
        columns = zip(*found, strict=True)
        return unflatten(shape, [_joined(pieces, dim) for pieces, dim in zip(columns, places, strict=True)])

    return wrapped


def _part(tensor: Any, dim: int | None, start: int, stop: int) -> Any:
    return tensor if dim is None else tensor.narrow(dim, start, stop - start)


def _joined(pieces: Sequence[Any], dim: int | None) -> Any:
    return pieces[0] if dim is None else concat(*pieces, axis=dim_of(dim, len(pieces[0].shape)))
