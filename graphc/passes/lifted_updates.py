"""Rewrites of slice updates: lift them to the sliced value, and join updates that cover it into concatenations."""

from __future__ import annotations

from itertools import accumulate
from math import prod
from typing import Any, NamedTuple

from graphc.base.dtypes import int64
from graphc.base.sizes.size import always, is_size
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.types import row_major_strides
from graphc.ops import dispatch
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.movement import shape
from graphc.ops.movement.slice_update import slice_index, slice_stops, update_slice
from graphc.ops.pointwise.elementwise import add, cast, mul
from graphc.ops.selection.index import iota, scatter, scatter_add, scatter_extreme, scatter_product
from graphc.passes.updates import unmoved, updated

_AT_INDICES = frozenset(f.op for f in (scatter, scatter_add, scatter_extreme, scatter_product))
"""Ops that update entries along an axis at indices."""


class SliceRegion(NamedTuple):
    """Indices of a strided slice: ``starts``, ``starts + steps``, ... along each dimension. Starts, steps and counts
    may be sizes known at run time."""

    starts: tuple[int, ...]
    steps: tuple[int, ...]
    counts: tuple[int, ...]

    @property
    def attrs(self) -> dict[str, Any]:
        """Attributes of an ``update_slice``."""
        return {"starts": self.starts, "steps": self.steps}

    @property
    def has_sizes(self) -> bool:
        """Whether a start, step or count is known only at run time."""
        return any(map(is_size, (*self.starts, *self.steps, *self.counts)))

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.counts)

    @property
    def as_index(self) -> tuple[Any, ...]:
        """The slice as a numpy index; all sizes must be known."""
        return slice_index(*self)

    @property
    def stops(self) -> tuple[int, ...]:
        """Exclusive end of the slice along each dimension."""
        return slice_stops(*self)

    def restricted(self, first: int, end: int) -> SliceRegion:
        """Return the slice restricted to the dimensions from ``first`` to ``end``."""
        return SliceRegion(self.starts[first:end], self.steps[first:end], self.counts[first:end])

    def covers(self, dim: int, extent: int) -> bool:
        """Check whether the slice covers a dimension of that size."""
        return (self.starts[dim], self.steps[dim], self.counts[dim]) == (0, 1, extent)

    def covers_all(self, extents: tuple[int, ...]) -> bool:
        """Check whether the slice covers a tensor of that shape."""
        return all(self.covers(d, extent) for d, extent in enumerate(extents))

    def inside(self, extents: tuple[int, ...]) -> bool:
        """Check whether the slice provably lies within a tensor of that shape, for all sizes."""
        sides = zip(extents, self.starts, self.steps, self.counts, strict=True)
        return all(
            always("<=", 0, start) and always("<=", 0, shape.behind(extent, start, step, count))
            for extent, start, step, count in sides
        )

    def is_slice(self, value: Value, of: Value) -> bool:
        """Check whether a value is this slice of another one."""
        node = value.node
        if node.op is not shape.slice.op or node.operands[0] is not of or value.shape != self.counts:
            return False
        return (node.attrs["starts"], node.attrs["steps"]) == (self.starts, self.steps)


def content_before(value: Value) -> Value | None:
    """Return the content of a state before an update, or the same content under another shape or permutation."""
    before = updated(value)
    if before is None:
        before = unmoved(value)
    return value.node.operands[0] if before is None and value.node.op is shape.transpose.op else before


def lift_updates(graph: Graph, state: Value, value: Value) -> int:
    """Rewrite the updates between a state and ``value`` where another form writes less: updates of slices written back
    afterwards, updates of permuted states, and updates that together replace the state. Return their number."""
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
        return _cancelled_transpose(node)
    if node.op.updates is None:
        return None
    if node.operands[0].node.op is shape.transpose.op:
        return _permuted_update(node)
    if node.op is not update_slice.op:
        return None
    content, new = node.operands
    region = SliceRegion(node.attrs["starts"], node.attrs["steps"], new.shape)
    return _lift_inner_updates(graph, node, region) or tiled(content, new, region)


# ---- updates of permuted states


def _cancelled_transpose(node: Node) -> Value | None:
    """Return the operand of a permutation if the next one undoes it."""
    before = node.operands[0].node
    if before.op is not shape.transpose.op:
        return None
    composed = tuple(before.attrs["permutation"][d] for d in node.attrs["permutation"])
    return before.operands[0] if composed == tuple(range(len(composed))) else None


def _permuted_update(node: Node) -> Value | None:
    """Rewrite the update of a permuted state as a permutation of the updated state."""
    permutation = node.operands[0].node.attrs["permutation"]
    content, inverse = node.operands[0].node.operands[0], shape.inverse(permutation)
    if node.op is update_slice.op:
        new = shape.transpose(node.operands[1], permutation=inverse)
        attrs = {name: tuple(of[d] for d in inverse) for name, of in node.attrs.items()}
        result = update_slice(content, new, **attrs)
    elif node.op in _AT_INDICES and len(node.operands[1].shape) == 1:
        updates = shape.transpose(node.operands[2], permutation=inverse)
        attrs = {**node.attrs, "axis": permutation[node.attrs["axis"]]}
        result = dispatch.apply(node.op, (content, node.operands[1], updates), attrs)
    else:
        return None
    return shape.transpose(result, permutation=permutation)


# ---- updates of slices


def _lift_inner_updates(graph: Graph, node: Node, region: SliceRegion) -> Value | None:
    """Rewrite updates of a slice, which is then written back, as updates of the sliced value."""
    content, new = node.operands
    inner: list[Value] = []
    present: Value | None = new
    while present is not None and not region.is_slice(present, content):
        inner.append(present)
        present = present.node.operands[0] if _is_liftable(present.node) else None
    if present is None or not inner:
        return None
    for value in reversed(inner):
        content = _lifted(value.node, content, region)
        view = shape.slice(content, starts=region.starts, stops=region.stops, steps=region.steps)
        graph.replace_uses(value, view)
    return content


def _is_liftable(node: Node) -> bool:
    return node.op is update_slice.op or node.op in _AT_INDICES


def _lifted(node: Node, content: Value, region: SliceRegion) -> Value:
    """Rewrite the update of a slice as an update of the sliced value."""
    if node.op is update_slice.op:
        sides = zip(region.starts, region.steps, node.attrs["starts"], node.attrs["steps"], strict=True)
        starts, steps = zip(*((a + i * by, by * step) for a, by, i, step in sides), strict=True)
        return update_slice(content, node.operands[1], starts=starts, steps=steps)
    _, indices, updates = node.operands
    axis = node.attrs["axis"]
    sliced = [d for d in range(len(content.shape)) if d == axis or not region.covers(d, content.shape[d])]
    first, end = sliced[0], sliced[-1] + 1
    merged = content.shape[first:end]
    flat = shape.reshape(content, shape=(*content.shape[:first], prod(merged), *content.shape[end:]))
    positions = _positions(indices, axis - first, merged, region.restricted(first, end))
    result = dispatch.apply(node.op, (flat, positions, updates), {**node.attrs, "axis": first})
    return shape.reshape(result, shape=content.shape)


def _positions(indices: Value, axis: int, extents: tuple[int, ...], region: SliceRegion) -> Value:
    """Return row-major offsets, in dimensions of these extents, of the entries of a slice at indices along one of its
    axes."""
    rank, strides = len(indices.shape), row_major_strides(extents)
    full = (*region.counts[:axis], *indices.shape, *region.counts[axis + 1 :])
    column = shape.reshape(indices, shape=(*indices.shape, *(1,) * (len(extents) - axis - 1)))
    total = mul(cast(column, dtype=int64), region.steps[axis] * strides[axis])
    total = add(total, sum(start * stride for start, stride in zip(region.starts, strides, strict=True)))
    for d, (step, stride) in enumerate(zip(region.steps, strides, strict=True)):
        if d != axis:
            counted = iota(shape=full, axis=d if d < axis else d + rank - 1)
            total = add(total, mul(counted, step * stride))
    return total if total.shape == full else shape.broadcast_to(total, shape=full)


# ---- slices that cover the content


def tiled(content: Value, new: Value, region: SliceRegion) -> Value | None:
    """Rewrite an update as a concatenation, where the content consists of consecutive slices and the update replaces
    some of them. The result is then computed as one value, as a window that moves along should be."""
    axes = [d for d, extent in enumerate(content.shape) if not region.covers(d, extent)]
    if len(axes) != 1 or region.steps[axes[0]] != 1:
        return None
    axis = axes[0]
    segments_before = _segments(content, axis)
    low = region.starts[axis]
    high = low + new.shape[axis]
    if segments_before is None or not {low, high} <= {p.start for p in segments_before} | {content.shape[axis]}:
        return None
    remaining = [p for p in segments_before if p.start < low or p.start >= high]
    if any(p.value is None for p in remaining):
        return None
    segments = sorted([*remaining, _Segment(low, new)], key=lambda p: p.start)
    return shape.concat(*(p.value for p in segments), axis=axis)


class _Segment(NamedTuple):
    """A segment of a content along an axis, starting at ``start``; ``value`` is None where it is unknown."""

    start: int
    value: Value | None


def _segments(content: Value, axis: int) -> list[_Segment] | None:
    """Split a content into its segments along an axis; None where their offsets or sizes are unknown."""
    node = content.node
    if any(is_size(extent) for v in (content, *node.operands) for extent in v.shape[axis : axis + 1]):
        return None
    if node.op is shape.concat.op and node.attrs["axis"] == axis:
        starts = accumulate((v.shape[axis] for v in node.operands), initial=0)
        return [_Segment(start, v) for start, v in zip(starts, node.operands, strict=False)]
    if node.op is not update_slice.op:
        return None
    new = node.operands[1]
    region = SliceRegion(node.attrs["starts"], node.attrs["steps"], new.shape)
    low, is_known = region.starts[axis], not is_size(region.starts[axis]) and region.steps[axis] == 1
    if not is_known or not all(region.covers(d, n) for d, n in enumerate(content.shape) if d != axis):
        return None
    end = low + new.shape[axis]
    before = [_Segment(0, None)] if low else []
    return [*before, _Segment(low, new), *([_Segment(end, None)] if end < content.shape[axis] else [])]
