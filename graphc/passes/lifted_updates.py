"""Updates of slices as updates of what they are slices of, and contents that are put together of slices."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

from graphc.base.dtypes import int64
from graphc.base.sizes.size import always, is_size
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.types import row_major_strides
from graphc.ops import dispatch, shape
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.elementwise import add, cast, mul
from graphc.ops.index import iota, scatter, scatter_add, scatter_extreme, scatter_product
from graphc.ops.slice_update import slice_index, slice_stops, update_slice
from graphc.passes.updates import unmoved, updated

_AT_INDICES = frozenset(f.op for f in (scatter, scatter_add, scatter_extreme, scatter_product))
"""Updates of entries along an axis at indices."""


class SlicePlaces(NamedTuple):
    """Places of a slice: along each dimension ``starts``, ``starts + steps``, ...; how many there are may be known at
    run time."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of an ``update_slice``."""
        return {"starts": self.starts, "steps": self.steps}

    @property
    def has_sizes(self) -> bool:
        """Whether some of it is known at run time."""
        return any(map(is_size, (*self.starts, *self.steps, *self.counts)))

    @property
    def size(self) -> int:
        """The number of places."""
        return prod(self.counts)

    @property
    def as_index(self) -> tuple[Any, ...]:
        """The slice, of known sizes, as an index of numpy."""
        return slice_index(*self)

    @property
    def stops(self) -> tuple[int, ...]:
        """Where the slice ends along each dimension."""
        return slice_stops(*self)

    def part(self, first: int, end: int) -> SlicePlaces:
        """The places along some of the dimensions."""
        return SlicePlaces(self.starts[first:end], self.steps[first:end], self.counts[first:end])

    def is_whole(self, dim: int, extent: int) -> bool:
        """Whether a dimension of that size has no other places."""
        return (self.starts[dim], self.steps[dim], self.counts[dim]) == (0, 1, extent)

    def is_all(self, extents: tuple[int, ...]) -> bool:
        """Whether nothing else is in a tensor of that shape."""
        return all(self.is_whole(d, extent) for d, extent in enumerate(extents))

    def inside(self, extents: tuple[int, ...]) -> bool:
        """Whether all places are provably in a tensor of that shape, for all sizes."""
        sides = zip(extents, self.starts, self.steps, self.counts, strict=True)
        return all(
            always("<=", 0, start) and always("<=", 0, shape.behind(extent, start, step, count))
            for extent, start, step, count in sides
        )

    def is_slice(self, value: Value, of: Value) -> bool:
        """Whether a value is this slice of another one."""
        node = value.node
        if node.op is not shape.slice.op or node.operands[0] is not of or value.shape != self.counts:
            return False
        return (node.attrs["starts"], node.attrs["steps"]) == (self.starts, self.steps)


def content_before(value: Value) -> Value | None:
    """What a content of a state was before an update, or what it is under another shape or with dimensions permuted."""
    before = updated(value)
    if before is None:
        before = unmoved(value)
    return value.node.operands[0] if before is None and value.node.op is shape.transpose.op else before


def lift_updates(graph: Graph, state: Value, value: Value) -> int:
    """Rewrites the updates that lead from a state to ``value`` where another form writes less: those of slices that are
    put back, those of permuted states, and those after which nothing of it is left where it was. Returns how many."""
    chain: list[Value] = []
    present: Value | None = value
    while present is not None and present is not state:
        chain.append(present)
        present = content_before(present)
    count = 0
    for old in reversed(chain):
        with use(GraphDispatcher(graph, old.node.location)):
            new = _rewritten(graph, old)
        if new is not None:
            graph.replace_uses(old, new)
            count += 1
    return count


def _rewritten(graph: Graph, value: Value) -> Value | None:
    node = value.node
    if node.op is shape.transpose.op:
        return _turned_back(node)
    if node.op.updates is None:
        return None
    if node.operands[0].node.op is shape.transpose.op:
        return _of_permuted(node)
    if node.op is not update_slice.op:
        return None
    content, part = node.operands
    places = SlicePlaces(node.attrs["starts"], node.attrs["steps"], part.shape)
    return _of_slice(graph, node, places) or tiled(content, part, places)


# ---- updates of permuted states


def _turned_back(node: Node) -> Value | None:
    """What is permuted and permuted back."""
    before = node.operands[0].node
    if before.op is not shape.transpose.op:
        return None
    back = tuple(before.attrs["permutation"][d] for d in node.attrs["permutation"])
    return before.operands[0] if back == tuple(range(len(back))) else None


def _of_permuted(node: Node) -> Value | None:
    """The update of a permuted state as a permuted one of the state."""
    permutation = node.operands[0].node.attrs["permutation"]
    content, back = node.operands[0].node.operands[0], shape.inverse(permutation)
    if node.op is update_slice.op:
        part = shape.transpose(node.operands[1], permutation=back)
        attrs = {name: tuple(of[d] for d in back) for name, of in node.attrs.items()}
        found = update_slice(content, part, **attrs)
    elif node.op in _AT_INDICES and len(node.operands[1].shape) == 1:
        updates = shape.transpose(node.operands[2], permutation=back)
        attrs = {**node.attrs, "axis": permutation[node.attrs["axis"]]}
        found = dispatch.apply(node.op, (content, node.operands[1], updates), attrs)
    else:
        return None
    return shape.transpose(found, permutation=permutation)


# ---- updates of slices


def _of_slice(graph: Graph, node: Node, places: SlicePlaces) -> Value | None:
    """Updates of a slice that is put back, as updates of the whole."""
    whole, part = node.operands
    inner: list[Value] = []
    present: Value | None = part
    while present is not None and not places.is_slice(present, whole):
        inner.append(present)
        present = present.node.operands[0] if _is_liftable(present.node) else None
    if present is None or not inner:
        return None
    for value in reversed(inner):
        whole = _lifted(value.node, whole, places)
        seen = shape.slice(whole, starts=places.starts, stops=places.stops, steps=places.steps)
        graph.replace_uses(value, seen)
    return whole


def _is_liftable(node: Node) -> bool:
    return node.op is update_slice.op or node.op in _AT_INDICES


def _lifted(node: Node, whole: Value, places: SlicePlaces) -> Value:
    """The update of a slice as one of the whole."""
    if node.op is update_slice.op:
        sides = zip(places.starts, places.steps, node.attrs["starts"], node.attrs["steps"], strict=True)
        starts, steps = zip(*((a + i * by, by * step) for a, by, i, step in sides), strict=True)
        return update_slice(whole, node.operands[1], starts=starts, steps=steps)
    _, indices, updates = node.operands
    axis = node.attrs["axis"]
    sliced = [d for d in range(len(whole.shape)) if d == axis or not places.is_whole(d, whole.shape[d])]
    first, end = sliced[0], sliced[-1] + 1
    merged = whole.shape[first:end]
    flat = shape.reshape(whole, shape=(*whole.shape[:first], prod(merged), *whole.shape[end:]))
    at = _positions(indices, axis - first, merged, places.part(first, end))
    found = dispatch.apply(node.op, (flat, at, updates), {**node.attrs, "axis": first})
    return shape.reshape(found, shape=whole.shape)


def _positions(indices: Value, axis: int, extents: tuple[int, ...], places: SlicePlaces) -> Value:
    """Row-major places, in dimensions of these extents, of the entries of a slice at indices along an axis of it."""
    rank, strides = len(indices.shape), row_major_strides(extents)
    full = (*places.counts[:axis], *indices.shape, *places.counts[axis + 1 :])
    column = shape.reshape(indices, shape=(*indices.shape, *(1,) * (len(extents) - axis - 1)))
    total = mul(cast(column, dtype=int64), places.steps[axis] * strides[axis])
    total = add(total, sum(start * stride for start, stride in zip(places.starts, strides, strict=True)))
    for d, (step, stride) in enumerate(zip(places.steps, strides, strict=True)):
        if d != axis:
            counted = iota(shape=full, axis=d if d < axis else d + rank - 1)
            total = add(total, mul(counted, step * stride))
    return total if total.shape == full else shape.broadcast_to(total, shape=full)


# ---- slices that make up the whole


def tiled(content: Value, part: Value, places: SlicePlaces) -> Value | None:
    """A content with a part at some places, where it consists of parts one behind the other and nothing else, as their
    concatenation: so it is computed as a whole, as one that moves along by some places."""
    axes = [d for d, extent in enumerate(content.shape) if not places.is_whole(d, extent)]
    if len(axes) != 1 or places.steps[axes[0]] != 1:
        return None
    axis = axes[0]
    pieces = _pieces(content, axis)
    low = places.starts[axis]
    high = low + part.shape[axis]
    if pieces is None or not {low, high} <= {p.start for p in pieces} | {content.shape[axis]}:
        return None
    left = [p for p in pieces if p.start < low or p.start >= high]
    if any(p.value is None for p in left):
        return None
    found = sorted([*left, _Piece(low, part)], key=lambda p: p.start)
    return shape.concat(*(p.value for p in found), axis=axis)


class _Piece(NamedTuple):
    """A part of a content along an axis, from a place on; None where it is none that is known."""

    start: int
    value: Value | None


def _pieces(content: Value, axis: int) -> list[_Piece] | None:
    """The parts of a content whose places and sizes are known."""
    node = content.node
    if any(is_size(extent) for v in (content, *node.operands) for extent in v.shape[axis : axis + 1]):
        return None
    if node.op is shape.concat.op and node.attrs["axis"] == axis:
        starts = accumulate((v.shape[axis] for v in node.operands), initial=0)
        return [_Piece(start, v) for start, v in zip(starts, node.operands, strict=False)]
    if node.op is not update_slice.op:
        return None
    part = node.operands[1]
    places = SlicePlaces(node.attrs["starts"], node.attrs["steps"], part.shape)
    low, is_known = places.starts[axis], not is_size(places.starts[axis]) and places.steps[axis] == 1
    if not is_known or not all(places.is_whole(d, n) for d, n in enumerate(content.shape) if d != axis):
        return None
    end = low + part.shape[axis]
    before = [_Piece(0, None)] if low else []
    return [*before, _Piece(low, part), *([_Piece(end, None)] if end < content.shape[axis] else [])]
