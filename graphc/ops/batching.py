"""Batching rules: an op applied to every entry of a batch at once, by other attributes or another arrangement.

A batched operand has the batch as its first dimension; so has every result. ``run_batched`` applies a graph that way;
an op without a rule is applied to one entry after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from graphc.base.dtypes import dtype_of
from graphc.ir.graph.graph import CONSTANT, Graph, Node
from graphc.ir.graph.interpret import Interpreter, live_nodes
from graphc.ir.op import REGISTRY, OpDef, Trait
from graphc.ir.types import TensorType
from graphc.ops import dispatch
from graphc.ops.contraction import matmul
from graphc.ops.control import call
from graphc.ops.convolution import conv, conv_grad_input, conv_grad_weight
from graphc.ops.dispatch import GraphDispatcher
from graphc.ops.elementwise import add, mul
from graphc.ops.index import as_strided, gather, iota, scatter, scatter_add, scatter_extreme
from graphc.ops.loop import scan
from graphc.ops.random import random_bits
from graphc.ops.reduce import sum as add_up
from graphc.ops.shape import broadcast_to, concat, pad, reshape, slice, transpose

Attrs = dict[str, Any]


class Entry(NamedTuple):
    """An operand of a batched application."""

    value: Any
    batched: bool
    """Whether its first dimension is the batch; else it is the same for every entry."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one entry."""
        return tuple(self.value.shape[1:] if self.batched else self.value.shape)


Rule = Callable[[int, Sequence[Entry], Attrs], Any]
"""``rule(size of the batch, operands, attributes)`` gives the batched result, or a tuple of them."""


def spread(entry: Entry, size: int) -> Any:
    """The operand with a batch dimension: repeated where it had none."""
    if entry.batched:
        return entry.value
    return broadcast_to(entry.value, shape=(size, *entry.value.shape))


def apply_batched(op: OpDef, size: int, operands: Sequence[Entry], attrs: Attrs) -> tuple[Any, ...]:
    """The batched results of an op."""
    if op.has(Trait.ELEMENTWISE):
        found = _elementwise(op, operands, attrs)
    elif op.name in RULES:
        found = RULES[op.name](size, operands, attrs)
    else:
        found = _one_by_one(op, size, operands, attrs)
    return found if isinstance(found, tuple) else (found,)


def _one_by_one(op: OpDef, size: int, operands: Sequence[Entry], attrs: Attrs) -> tuple[Any, ...]:
    rows = []
    for i in range(size):
        values = [_row(e.value, i) if e.batched else e.value for e in operands]
        found = dispatch.apply(op, values, attrs)
        rows.append(found if isinstance(found, tuple) else (found,))
    stacked = [[reshape(v, shape=(1, *v.shape)) for v in column] for column in zip(*rows, strict=True)]
    return tuple(concat(*column, axis=0) for column in stacked)


def _row(value: Any, i: int) -> Any:
    rest = tuple(value.shape[1:])
    part = slice(value, starts=(i, *(0 for _ in rest)), stops=(i + 1, *rest), steps=(1, *(1 for _ in rest)))
    return reshape(part, shape=rest)


def _elementwise(op: OpDef, operands: Sequence[Entry], attrs: Attrs) -> Any:
    """Dimensions of size 1 after the batch, so that entries of different ranks broadcast as without it."""
    rank = max(len(e.shape) for e in operands)
    values = [
        reshape(e.value, shape=(e.value.shape[0], *(1,) * (rank - len(e.shape)), *e.shape))
        if e.batched and len(e.shape) < rank
        else e.value
        for e in operands
    ]
    return dispatch.apply(op, values, attrs)


def _leading(op: str) -> Rule:
    """Ops that take any number of dimensions in front."""
    return lambda size, operands, attrs: _apply(op, [spread(e, size) for e in operands], attrs)


def _apply(name: str, values: Sequence[Any], attrs: Attrs) -> Any:
    return dispatch.apply(REGISTRY[name], values, attrs)


def _shifted(op: str, **moved: Callable[[Any], Any]) -> Rule:
    """Ops of operands that become batched by new attributes: ``moved[attribute]`` gives the new from the old one."""

    def rule(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
        new = {name: moved[name](value) if name in moved else value for name, value in attrs.items()}
        return _apply(op, [spread(e, size) for e in operands], new)

    return rule


def _one_more(axis: int) -> int:
    return axis + 1


def _all_one_more(axes: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + 1 for a in axes)


# ---- shapes


def _reshape(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    return reshape(operands[0].value, shape=(size, *attrs["shape"]))


def _transpose(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    return transpose(operands[0].value, permutation=(0, *_all_one_more(attrs["permutation"])))


def _broadcast_to(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    (x,) = operands
    aligned = reshape(x.value, shape=(size, *(1,) * (len(attrs["shape"]) - len(x.shape)), *x.shape))
    return broadcast_to(aligned, shape=(size, *attrs["shape"]))


def _slice(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    starts, stops, steps = (0, *attrs["starts"]), (size, *attrs["stops"]), (1, *attrs["steps"])
    return slice(operands[0].value, starts=starts, stops=stops, steps=steps)


def _pad(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    low, high, interior = ((0, *attrs[name]) for name in ("low", "high", "interior"))
    return pad(operands[0].value, low=low, high=high, interior=interior, value=attrs["value"])


def _as_strided(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    (x,) = operands
    strides = (prod(x.shape), *attrs["strides"])
    return as_strided(x.value, shape=(size, *attrs["shape"]), strides=strides, offset=attrs["offset"])


# ---- positions


def _move(value: Any, source: int, count: int, target: int) -> Any:
    """``count`` dimensions from ``source`` on moved so that they begin at ``target``."""
    rank = len(value.shape)
    moved = list(range(source, source + count))
    rest = [d for d in range(rank) if d not in moved]
    order = (*rest[:target], *moved, *rest[target:])
    return value if order == tuple(range(rank)) else transpose(value, permutation=order)


def _rows_of(size: int, extent: int, indices: Any) -> Any:
    """Positions in ``size`` axes of ``extent`` elements one after the other; out of range is treated as in gather."""
    inside = gather(iota(shape=(extent,), axis=0), indices, axis=0)
    first = iota(shape=(size, *(1,) * (len(indices.shape) - 1)), axis=0)
    return add(inside, mul(first, extent))


def _gather(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    x, indices = operands
    axis, rank = attrs["axis"], len(indices.shape)
    if not indices.batched:
        return gather(x.value, indices.value, axis=axis + 1)
    if not x.batched:
        return _move(gather(x.value, indices.value, axis=axis), axis, 1, 0)
    front = _move(x.value, axis + 1, 1, 1)
    extent, rest = front.shape[1], front.shape[2:]
    if not extent:
        return _one_by_one(REGISTRY["gather"], size, operands, attrs)
    flat = reshape(front, shape=(size * extent, *rest))
    found = gather(flat, _rows_of(size, extent, indices.value), axis=0)
    return _move(found, 1, rank, 1 + axis)


def _scatter(op: Any, size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    """Of ``scatter``, ``scatter_add`` and ``scatter_extreme``."""
    x, indices, updates = operands
    axis, rank = attrs["axis"], len(indices.shape)
    target, added = spread(x, size), spread(updates, size)
    if not indices.batched:
        return op(target, indices.value, added, **{**attrs, "axis": axis + 1})
    front, added = _move(target, axis + 1, 1, 1), _move(added, axis + 1, rank, 1)
    extent, rest = front.shape[1], front.shape[2:]
    if not extent:
        return target
    flat = reshape(front, shape=(size * extent, *rest))
    found = op(flat, _rows_of(size, extent, indices.value), added, **{**attrs, "axis": 0})
    return _move(reshape(found, shape=(size, extent, *rest)), 1, 1, 1 + axis)


def _random_bits(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    return random_bits(operands[0].value, **{**attrs, "shape": (size, *attrs["shape"])})


# ---- products


def _matmul(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    rank = max(len(e.shape) for e in operands)
    values = [
        reshape(e.value, shape=(size, *(1,) * (rank - len(e.shape)), *e.shape)) if e.batched else e.value
        for e in operands
    ]
    return matmul(*values, **attrs)


def _into_images(value: Any) -> Any:
    """[batch, images, ...] as [batch * images, ...]."""
    return reshape(value, shape=(value.shape[0] * value.shape[1], *value.shape[2:]))


def _into_channels(value: Any) -> Any:
    """[batch, images, channels, ...] as [images, batch * channels, ...]."""
    moved = _move(value, 0, 1, 1)
    return reshape(moved, shape=(moved.shape[0], moved.shape[1] * moved.shape[2], *moved.shape[3:]))


def _from_channels(value: Any, size: int) -> Any:
    """The reverse of ``_into_channels``."""
    images, channels, *rest = value.shape
    return _move(reshape(value, shape=(images, size, channels // size, *rest)), 1, 1, 0)


def _convolution(function: Any) -> Rule:
    """Of ``conv`` and ``conv_grad_input``: more images for one weight, or one group of channels per weight."""

    def rule(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
        x, weight = operands
        if not weight.batched:
            found = function(_into_images(x.value), weight.value, **attrs)
            return reshape(found, shape=(size, found.shape[0] // size, *found.shape[1:]))
        grouped = {**attrs, "groups": attrs["groups"] * size}
        found = function(_into_channels(spread(x, size)), _into_images(weight.value), **grouped)
        return _from_channels(found, size)

    return rule


def _conv_grad_weight(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    x, g = (_into_channels(spread(e, size)) for e in operands)
    found = conv_grad_weight(x, g, **{**attrs, "groups": attrs["groups"] * size})
    return reshape(found, shape=(size, found.shape[0] // size, *found.shape[1:]))


# ---- ops with sub-graphs


class _Batched(Interpreter):
    def __init__(self, size: int, draws: bool):
        self.size = size
        self.draws = draws

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Entry]:
        """Applies one node's op, batched where an operand is."""
        if node not in self.live:
            return [Entry(None, False)] * len(node.results)
        if node.op is CONSTANT:
            return [Entry(constant(node.attrs["value"]), False)]
        if any(e.batched for e in operands) or (self.draws and node.op is random_bits.op):
            return [Entry(v, True) for v in apply_batched(node.op, self.size, operands, node.attrs)]
        found = dispatch.apply(node.op, [e.value for e in operands], node.attrs)
        return [Entry(v, False) for v in (found if isinstance(found, tuple) else (found,))]

    def run(self, graph: Graph, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs as entries; what neither they nor checks need is left out."""
        checks = [node.results[0] for node in graph.nodes() if node.op.has(Trait.CHECK)]
        self.live = live_nodes(graph, [*graph.outputs, *checks])
        return super().run(graph, arguments)


def constant(array: np.ndarray) -> Any:
    """An array as an operand of the active dispatcher."""
    if not array.shape:
        return dispatch.current().scalar(array.item(), dtype_of(array.dtype))
    return dispatch.apply(CONSTANT, (), {"value": array})


def run_batched(graph: Graph, size: int, arguments: Sequence[Entry], draws: bool = False) -> tuple[Entry, ...]:
    """The outputs of a graph for a batch of arguments, applied under the active dispatcher.

    With ``draws`` random numbers differ between the entries of the batch.
    """
    return _Batched(size, draws).run(graph, arguments)


def batched_graph(graph: Graph, size: int, batched: Sequence[bool], wanted: Sequence[bool] | None = None) -> Graph:
    """A graph that takes and gives batches: of those arguments that are ``batched``; all outputs, or those ``wanted``.

    An output that is not wanted but depends on a batched argument is summed over the batch.
    """
    target = Graph(f"{graph.name}.batched")
    entries = []
    for value, more in zip(graph.inputs, batched, strict=True):
        shape = (size, *value.shape) if more else value.shape
        entries.append(Entry(target.add_input(TensorType(value.dtype, shape), value.name), more))
    with dispatch.use(GraphDispatcher(target)):
        found = run_batched(graph, size, entries)
        outputs = []
        for entry, all_of_it in zip(found, wanted or (True,) * len(found), strict=True):
            if all_of_it:
                outputs.append(spread(entry, size))
            else:
                outputs.append(add_up(entry.value, axes=(0,)) if entry.batched else mul(entry.value, size))
    target.set_outputs(outputs)
    return target


def _call(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    """Both sub-graphs batched; an operand that is the same for all entries gets the sum of their gradients."""
    flags = [e.batched for e in operands]
    forward = batched_graph(attrs["forward"], size, flags)
    backward = batched_graph(attrs["backward"], size, [True] * len(attrs["backward"].inputs), flags)
    return call(*(e.value for e in operands), forward=forward, backward=backward, results=attrs["results"])


def _scan(size: int, operands: Sequence[Entry], attrs: Attrs) -> Any:
    """Carries and stacks of batches; steps stay the first dimension of sequences."""
    carries, last = attrs["carries"], attrs["carries"] + attrs["sequences"]
    flags = [True] * carries + [e.batched for e in operands[carries:]]
    values = [
        spread(e, size) if i < carries else _move(e.value, 0, 1, 1) if e.batched and i < last else e.value
        for i, e in enumerate(operands)
    ]
    found = scan(*values, **{**attrs, "body": batched_graph(attrs["body"], size, flags)})
    found = found if isinstance(found, tuple) else (found,)
    return tuple(v if i < carries else _move(v, 1, 1, 0) for i, v in enumerate(found))


_REDUCTIONS = ("sum", "prod", "max", "min", "any", "all")
RULES: dict[str, Rule] = {
    **{name: _shifted(name, axes=_all_one_more) for name in (*_REDUCTIONS, "flip")},
    **{name: _shifted(name, axis=_one_more) for name in ("argmax", "argmin", "cumsum", "rank", "concat", "part_sum")},
    **{
        name: _leading(name)
        for name in (
            "max_pool",
            "max_pool_grad",
            "max_pool_pick",
            "avg_pool",
            "avg_pool_grad",
            "stop_gradient",
            "tap",
            "check_index",
        )
    },
    "reshape": _reshape,
    "transpose": _transpose,
    "broadcast_to": _broadcast_to,
    "slice": _slice,
    "pad": _pad,
    "as_strided": _as_strided,
    "gather": _gather,
    "scatter": partial(_scatter, scatter),
    "scatter_add": partial(_scatter, scatter_add),
    "scatter_extreme": partial(_scatter, scatter_extreme),
    "random_bits": _random_bits,
    "matmul": _matmul,
    "conv": _convolution(conv),
    "conv_grad_input": _convolution(conv_grad_input),
    "conv_grad_weight": _conv_grad_weight,
    "call": _call,
    "scan": _scan,
}
"""By op; those of each element need none."""
