"""Narrow weights: store large weights of products and lookups, or multiply by them too, in 16, 8 or 4 bits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bfloat16, bfloat16x2, float16, float32, int8, int32, narrow
from graphc.base.errors import ArgumentError
from graphc.base.records import dataclass
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.op import Trait
from graphc.ir.types import TensorType
from graphc.ops.contraction.byte_product import i8_quads, quad_matmul
from graphc.ops.contraction.convolution import conv
from graphc.ops.contraction.group_product import panel_width, panels_of
from graphc.ops.contraction.matrix_product import bf16_pairs, matmul
from graphc.ops.contraction.nibble_product import GROUP, nibble_matmul, nibble_quad_matmul, nibble_scales, store_nibbles
from graphc.ops.contraction.nibble_product import NIBBLES as STEPS
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.flow.loop import scan
from graphc.ops.movement.shape import broadcast_to, flip, pad, reshape, slice, transpose
from graphc.ops.pointwise import elementwise as e
from graphc.ops.pointwise import math
from graphc.ops.pointwise.elementwise import cast, mul
from graphc.ops.reduction import reduce
from graphc.ops.selection.index import gather

PRECISIONS = {
    "bf16": bfloat16,
    "f16": float16,
    "int8": int8,
    "int4": int32,
    "bf16_dot": bfloat16x2,
    "int8_dot": int32,
    "int4_dot": int32,
}
"""Element type of the stored weights for each precision that users name.

- ``bf16_dot``: the other operand is rounded to bf16 too; products of pairs are summed in f32.
- ``int8_dot``: rows of the other operand are quantized to int8 with a scale each; products of quads are summed in i32.
- ``int4``: eight codes per word, one scale per group of neighbours along the summed axis.
- ``int4_dot``: the same, with rows of the other operand quantized to int8.
"""
NIBBLES = ("int4", "int4_dot")
"""Precisions that store words of 4-bit codes (see ops.contraction.nibble_product)."""
SMALLEST = 4096
"""Elements of the smallest weight that is stored narrow."""
SCALE = ".scale"
"""Suffix of the path of a param's scales."""

_VIEWS = (reshape.op, transpose.op, slice.op, broadcast_to.op, flip.op)
"""Ops that only move elements."""

Arrays = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Narrow:
    """Storage format of one weight."""

    precision: str
    summed: tuple[int, ...] = ()
    """For quantized codes: the dimensions along which elements share a scale. For pairs: the dimension whose neighbours
    pair."""

    @property
    def dtype(self) -> DType:
        """Element type of the stored array."""
        return PRECISIONS[self.precision]

    @property
    def is_scaled(self) -> bool:
        """Whether elements are quantized codes with a scale."""
        return self.precision.startswith("int")

    def store(self, array: np.ndarray) -> np.ndarray:
        """Convert a weight to the stored array."""
        if self.precision in NIBBLES:
            return panels_of(store_nibbles(np.moveaxis(array, self.summed[0], 0))[0])
        if self.dtype is bfloat16x2:
            return np.ascontiguousarray(bf16_pairs.op.evaluate([array], {"axis": self.summed[0]})[0])
        if not self.is_scaled:
            return narrow(array, self.dtype)
        with np.errstate(all="ignore"):
            codes = np.rint(array / self.scale(array))
        quantized = np.where(np.isfinite(codes), codes, 0).astype(np.int8)
        if self.dtype is int8:
            return quantized
        rows = np.moveaxis(quantized, self.summed[0], -1).astype(np.int16) + 128
        return np.ascontiguousarray(rows.astype(np.uint8)).view(np.int32)

    def scale(self, array: np.ndarray) -> np.ndarray:
        """Compute the scales by which codes must be multiplied, with size 1 along ``summed``; for 4-bit codes, one
        scale per group."""
        if self.precision in NIBBLES:
            return panels_of(nibble_scales(np.moveaxis(array, self.summed[0], 0)))
        return np.abs(array).max(axis=self.summed, keepdims=True) / np.float32(127)

    def stored_type(self, type: TensorType) -> TensorType:
        """Return the type of the stored array of a weight."""
        if self.precision in NIBBLES:
            panels, groups, width = self.scale_type(type).shape
            return TensorType(int32, (panels, groups * GROUP // STEPS, width))
        if self.dtype is int32:
            (axis,) = self.summed
            return TensorType(int32, (type.shape[1 - axis], type.shape[axis] // 4))
        paired = self.summed if self.dtype is bfloat16x2 else ()
        return TensorType(self.dtype, tuple(n // 2 if d in paired else n for d, n in enumerate(type.shape)))

    def scale_type(self, type: TensorType) -> TensorType:
        """Return the type of the scales of a weight."""
        if self.precision in NIBBLES:
            (axis,) = self.summed
            columns = type.shape[1 - axis]
            width = panel_width(columns)
            return TensorType(bfloat16, (columns // width, -(-type.shape[axis] // GROUP), width))
        return TensorType(float32, tuple(1 if d in self.summed else n for d, n in enumerate(type.shape)))

    def nbytes(self, type: TensorType) -> int:
        """Return the bytes of a narrow weight and its scales."""
        return self.stored_type(type).nbytes + (self.scale_type(type).nbytes if self.is_scaled else 0)


@dataclass(frozen=True)
class Narrowed:
    """A graph with narrow weights."""

    graph: Graph
    params: dict[str, tuple[str, Arrays]] = field(default_factory=dict)
    """For each param that changed: the path of the original, and the function that converts its array."""
    count: int = 0
    """Number of narrow weights."""
    saved: int = 0
    """Bytes that narrow storage saves."""
    decisions: tuple[str, ...] = ()
    """One line per f32 weight of at least SMALLEST elements: its storage, and the reason where that is not the
    requested one."""


@dataclass(frozen=True)
class Images:
    """A graph before and after its weights became narrow, value by value."""

    graph: Graph
    """The graph with full weights."""
    stored: dict[Value, str]
    """Precision in which each narrow weight is stored."""
    values: dict[Value, Value]
    """For each value, the value of the new graph that takes its place. For a narrow weight, it is the stored array, or
    its conversion to f32 without scales."""

    def moved_weights(self) -> dict[Value, Value]:
        """Return the narrow weights and their views, each with the weight that it holds."""
        weights = {weight: weight for weight in self.stored}
        for node in self.graph.nodes():
            if node.op in _VIEWS and node.operands[0] in weights:
                weights[node.results[0]] = weights[node.operands[0]]
        return weights


TRAINING = "bf16"
"""Precision of the factors of products in training."""


def check_precision(precision: str | None) -> None:
    """Raise ArgumentError for an unknown precision."""
    if precision is not None and precision not in PRECISIONS:
        raise ArgumentError(
            f"there is no precision {precision!r}", remedy=f"pass one of {', '.join(PRECISIONS)}, or None for f32"
        )


def check_training_precision(precision: str | None) -> None:
    """Raise ArgumentError for a precision without support for training."""
    check_precision(precision)
    if precision not in (None, TRAINING):
        raise ArgumentError(
            f"precision {precision!r} does not support training, only weights that do not change",
            remedy=f"pass {TRAINING!r}: weights stay f32, and large products round their factors",
        )


def narrow_weights(graph: Graph, precision: str) -> Narrowed:
    """Store large weights in fewer bits.

    Needs: an optimized graph. Does: stores every f32 constant and every unwritten param as bf16, f16, int8,
    pairs of bf16, quads of int8 or words of 4-bit codes. The weight must have at least SMALLEST elements, and only
    products and lookups may read it, steps of scans included. Readers convert elements as they read them. int8 elements
    are codes with a scale per output channel, by which results are multiplied. Pairs are multiplied by pairs, quads by
    quads, rows by words with the scales of their groups. Leaves: everything else as f32; the params of steps are
    followed by their scales.

        %y = matmul(%x, %w) {transpose_b=true}    ->    %w.1 = cast(%w) {dtype=f32}        // %w is bf16
                                                        %y = matmul(%x, %w.1) {transpose_b=true}

    Raises ArgumentError for an unknown precision.
    """
    return narrow_with_images(graph, precision)[0]


def narrow_with_images(graph: Graph, precision: str) -> tuple[Narrowed, Images]:
    """Store large weights in fewer bits; see ``narrow_weights``. Return the images of the graph's values too."""
    check_precision(precision)
    written = {n.operands[0] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
    weights = [n.results[0] for n in graph.nodes() if n.op is CONSTANT]
    weights += [v for v in graph.inputs if input_class(v) == "param" and v not in written]
    plans, decisions = _plans(graph, [v for v in weights if v.type.size >= SMALLEST], precision)
    narrower = _Narrower(plans)
    result = narrower.transform(graph)
    saved = sum(v.type.nbytes - p.nbytes(v.type) for v, p in plans.items())
    narrowed = Narrowed(result, narrower.params, len(plans), saved, tuple(decisions))
    return narrowed, Images(graph, {v: p.precision for v, p in plans.items()}, narrower.values)


# ---- which weights, and how


_ALONE = {"bf16_dot": "bf16", "int4": "int8", "int8_dot": "int8", "int4_dot": "int8"}
"""Fallback storage of weights whose readers cannot be products of pairs, of quads or of words of codes."""


def _plans(graph: Graph, weights: Sequence[Value], precision: str) -> tuple[dict[Value, Narrow], list[str]]:
    """Choose the storage of each weight, and report it in a line with the reason where it differs from the request."""
    plans, decisions = {}, []
    for value in weights:
        if value.dtype is not float32:
            continue
        plan = _plan(graph, value, precision)
        reason = f" ({plan})" if isinstance(plan, str) else ""
        if isinstance(plan, str) and precision in _ALONE:
            plan = _plan(graph, value, _ALONE[precision])
            reason = reason if isinstance(plan, Narrow) else f" ({plan})"
        if isinstance(plan, Narrow):
            plans[value] = plan
        stored = plan.precision if isinstance(plan, Narrow) else "as it is"
        decisions.append(f"{value.name}: {value.type} is stored {'as ' if value in plans else ''}{stored}{reason}")
    return plans, decisions


def _plan(graph: Graph, weight: Value, precision: str) -> Narrow | str:
    """Return a storage format for all readers of a weight, or the reason for leaving it as it is."""
    reductions: set[tuple[int, ...]] = set()
    stack = [(graph, weight)]
    while stack:
        current, value = stack.pop()
        if value in current.outputs:
            return "it is a result"
        for node, position in current.uses(value):
            summed = _summed(node, position)
            if node.op.has(Trait.LOOP) and position >= node.attrs["carries"] + node.attrs["sequences"]:
                stack.append((node.attrs["body"], node.attrs["body"].inputs[position]))
            elif precision in _ALONE:
                if not summed or not _FITS[precision](node, value, summed):
                    return f"{node.op.name} is no product of {_FACTORS[precision]}"
                reductions.add(summed[:1])
            elif summed:
                reductions.add(summed)
            elif precision != "int8" and node.op in _VIEWS:
                stack.append((current, node.results[0]))
            else:
                return f"{node.op.name} reads it as it is"
    aligned = precision == "int8" or precision in _ALONE
    if not reductions or (aligned and len(reductions) > 1):
        return "its readers sum over different dimensions" if reductions else "nothing reads it"
    return Narrow(precision, reductions.pop() if aligned else ())


def _takes_pairs(node: Node, weight: Value, summed: tuple[int, ...]) -> bool:
    """Check for a product with a matrix, or a convolution, over an even number of elements (channels)."""
    return (
        node.op is not gather.op and weight.shape[summed[0]] % 2 == 0 and (node.op is conv.op or weight.type.rank == 2)
    )


def _summed(node: Node, position: int) -> tuple[int, ...]:
    """Return the dimensions of an operand that its reader's result does not have. These are the summed axis of a
    product, all dimensions but the output channels of a convolution's weights, and the elements of rows that are looked
    up. Empty for all other readers."""
    value = node.operands[position]
    rank = len(value.shape)
    if node.op is matmul.op and node.operands[1 - position] is not value:
        last = node.attrs["transpose_b"] if position else not node.attrs["transpose_a"]
        return (rank - 1 if last else rank - 2,)
    if node.op is conv.op and position == 1 and node.operands[0] is not value:
        return tuple(range(1, rank))
    if node.op is gather.op and position == 0 and node.attrs["axis"] == 0 and rank == 2:
        return (1,)
    return ()


def _takes_quads(node: Node, weight: Value, summed: tuple[int, ...]) -> bool:
    """Check for a product of rows with a matrix over a multiple of four elements."""
    return _takes_words(node, weight, summed) and weight.shape[summed[0]] % 4 == 0


def _takes_words(node: Node, weight: Value, _summed: tuple[int, ...]) -> bool:
    """Check for a product of rows with a matrix."""
    if node.op is not matmul.op or node.operands[1] is not weight or weight.type.rank != 2:
        return False
    return not node.attrs["transpose_a"]


_FITS = {"bf16_dot": _takes_pairs, "int8_dot": _takes_quads, "int4": _takes_words, "int4_dot": _takes_words}
_ROWS = "rows with this matrix"
_FACTORS = {
    "bf16_dot": "pairs with this matrix",
    "int8_dot": f"{_ROWS} over a multiple of four",
    "int4": _ROWS,
    "int4_dot": _ROWS,
}
"""Factors of the product that each precision needs, for messages; _FITS checks a reader (node, weight, axes)."""


# ---- the graph with narrow weights


class _Narrower(Reemitter):
    """Rewriter that replaces weights by narrow ones."""

    def __init__(self, plans: Mapping[Value, Narrow]):
        super().__init__()
        self.plans = plans
        self.params: dict[str, tuple[str, Arrays]] = {}
        self.stored: dict[Value, Value] = {}
        """Stored array for each weight of the old graph."""
        self.scales: dict[Value, Value] = {}
        """Scales for each weight of the old graph."""

    def transform(self, graph: Graph) -> Graph:
        """Copy the graph; scales of arguments become further arguments at the end."""
        self.target = Graph(self.name or graph.name)
        arguments = [self.copy_input(v) for v in graph.inputs]
        for value in graph.inputs:
            plan = self.plans.get(value)
            if plan is not None and plan.is_scaled:
                path = self._take(input_path(value), SCALE, plan.scale)
                type, name = plan.scale_type(value.type), value.name + SCALE
                self.scales[value] = self.target.add_input(type, name, input_class(value), path)
        self.target.set_outputs(self.run(graph, arguments))
        return self.target

    def copy_input(self, value: Value) -> Value:
        plan = self.plans.get(value)
        if plan is None:
            return super().copy_input(value)
        path, type = self._take(input_path(value), "", plan.store), plan.stored_type(value.type)
        return self._widened(value, self.target.add_input(type, value.name, input_class(value), path))

    def _take(self, path: str, suffix: str, make: Arrays) -> str:
        """Record how a param is converted; arguments of steps have no path."""
        if path:
            self.params[path + suffix] = (path, make)
        return path and path + suffix

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if node.op is CONSTANT and node.results[0] in self.plans:
            return (self._constant(node),)
        if node.op.has(Trait.LOOP):
            return self._scan(node, operands)
        results: Sequence[Value] = self._product(node, operands) or self.copy_node(node, operands)
        for position, old in enumerate(node.operands):
            if old in self.scales and self.plans[old].precision not in NIBBLES:
                with use(GraphDispatcher(self.target, node.location)):
                    results = (mul(results[0], self._factors(node, position, operands)),)
        return results

    def _product(self, node: Node, operands: list[Any]) -> Sequence[Value]:
        """Emit the product with a weight of pairs, quads or 4-bit codes; return nothing for other nodes."""
        for position, old in enumerate(node.operands):
            precision = self.plans[old].precision if old in self.plans else None
            with use(GraphDispatcher(self.target, node.location)):
                if precision in NIBBLES:
                    scale = cast(self.scales[old], dtype=float32)
                    product = _product_of_words if precision == "int4" else _product_of_nibbles
                    return (product(operands[0], operands[1], scale),)
                if precision == "bf16_dot":
                    other = 1 - position
                    (axis, *_) = _summed(node, other) if node.op is matmul.op else (1,)
                    pairs = [bf16_pairs(x, axis=axis) if i == other else x for i, x in enumerate(operands)]
                    return self.copy_node(node, pairs)
                if precision == "int8_dot":
                    return (_product_of_quads(operands[0], operands[1]),)
        return ()

    def _constant(self, node: Node) -> Value:
        value, array = node.results[0], node.attrs["value"]
        plan = self.plans[value]

        def store(data: np.ndarray, suffix: str) -> Value:
            return emit(self.target, CONSTANT, (), {"value": data}, node.location, value.name + suffix)[0]

        stored = store(plan.store(array), "")
        if plan.is_scaled:
            self.scales[value] = store(plan.scale(array), SCALE)
        return self._widened(value, stored)

    def _widened(self, old: Value, stored: Value) -> Value:
        self.stored[old] = stored
        if self.plans[old].precision in _ALONE:
            return stored
        return emit(self.target, cast.op, (stored,), {"dtype": float32}, old.node.location, f"{old.name}.wide")[0]

    def _factors(self, node: Node, position: int, operands: Sequence[Any]) -> Any:
        """Return the scales of an operand, shaped to multiply its reader's result."""
        scale = self.scales[node.operands[position]]
        if node.op is gather.op:
            return gather(scale, operands[1], axis=0)
        if node.op is conv.op:
            return reshape(scale, shape=(scale.shape[0], *(1 for _ in scale.shape[2:])))
        rows, columns = (scale.type.size // prod(scale.shape[:-2]), 1)[:: -1 if position else 1]
        return reshape(scale, shape=(*scale.shape[:-2], rows, columns))

    def _scan(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Emit a scan whose step takes narrow weights, followed by their scales."""
        body: Graph = node.attrs["body"]
        pairs = zip(body.inputs, node.operands, strict=True)
        weights = {inner: old for inner, old in pairs if old in self.plans}
        narrower = _Narrower({inner: self.plans[old] for inner, old in weights.items()})
        step = narrower.transform(body)
        arguments = [
            self.stored[old] if old in weights.values() else new
            for old, new in zip(node.operands, operands, strict=True)
        ]
        arguments += [self.scales[weights[inner]] for inner in narrower.scales]
        name = node.results[0].name.removesuffix(".0")
        return emit(self.target, scan.op, arguments, {**node.attrs, "body": step}, node.location, name)


def _product_of_quads(x: Any, weight: Any) -> Any:
    """Multiply rows, quantized with a scale each, by a weight whose bytes are offset by 128; the weight's scales are
    not applied yet."""
    largest, factor = _row_scales(x)
    code_sums = reduce.sum(math.round(e.mul(x, factor)), axes=(len(x.shape) - 1,), keepdims=True)
    excess = cast(mul(code_sums, 128.0), dtype=int32)
    total = e.sub(quad_matmul(i8_quads(x, factor), weight), excess)
    return mul(cast(total, dtype=float32), mul(largest, 1 / 127))


def _row_scales(x: Any) -> tuple[Any, Any]:
    """Return the largest magnitude of each row, and the factor that maps its elements to codes from -127 to 127."""
    largest = reduce.max(e.abs(x), axes=(len(x.shape) - 1,), keepdims=True)
    return largest, e.where(e.gt(largest, 0.0), e.div(127.0, largest), 0.0)


def _product_of_words(x: Any, words: Any, scale: Any) -> Any:
    """Multiply rows by words of 4-bit codes and the scales of their groups."""
    return _side_by_side(nibble_matmul(_whole_groups(x, scale), words, scale))


def _product_of_nibbles(x: Any, words: Any, scale: Any) -> Any:
    """Multiply rows, quantized with a scale each, by words of 4-bit codes. Codes in words are offset by 8, so sums
    start at the negated contribution of that offset."""
    largest, factor = _row_scales(x)
    x = _whole_groups(x, scale)
    codes = math.round(e.mul(x, factor))
    sums = reduce.sum(reshape(codes, shape=(*x.shape[:-1], scale.shape[1], GROUP)), axes=(len(x.shape),))
    start = cast(mul(sums, -8.0), dtype=int32)
    rank, count = len(x.shape) - 1, x.shape[-1] // STEPS
    eights = reshape(x, shape=(*x.shape[:-1], count, STEPS // 2, 2))
    halves = transpose(eights, permutation=(*range(rank), rank, rank + 2, rank + 1))
    quads = i8_quads(reshape(halves, shape=x.shape), factor)
    return mul(_side_by_side(nibble_quad_matmul(quads, start, words, scale)), mul(largest, 1 / 127))


def _side_by_side(panels: Any) -> Any:
    """Join the panels [..., P, W] of a product to [..., P * W]."""
    *rows, count, width = panels.shape
    return reshape(panels, shape=(*rows, count * width))


def _whole_groups(x: Any, scale: Any) -> Any:
    """Pad rows with zeros to a multiple of the group size."""
    missing = scale.shape[1] * GROUP - x.shape[-1]
    zeros = (0,) * len(x.shape)
    return pad(x, low=zeros, high=(*zeros[1:], missing), interior=zeros, value=0.0) if missing else x
