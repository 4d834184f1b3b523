"""Descent of decision trees: one loop over rows, in which several trees advance together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, float32, int32, int64, uint32, uint64
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.size_relations import at_most
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.op import Attr, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.define import define
from graphc.ops.rules import check_kind, check_one_dtype, show
from graphc.ops.samples import array, floats, plain, refused

WORDS = 4
"""Integers of a record: feature, threshold, step where the feature is at most the threshold, step where it is not."""
CHAINS = 8
"""Trees that advance together. A step waits for two reads, one after the other, so that eight of them overlap."""
STEPS = 2
"""Comparisons until the loop asks whether all trees have reached their leaves."""


def _infer(x: TensorType, records: TensorType, roots: TensorType, depth: int, missing: bool) -> TensorType:
    check_kind("descend", 0, x.dtype, "f")
    check_kind("descend", 1, records.dtype, "i")
    check_one_dtype("descend", (records, roots), first=1)
    if records.dtype.bits != x.dtype.bits:
        raise DTypeError(f"descend: records of {records.dtype.name} cannot hold thresholds of {x.dtype.name}")
    if tuple(t.rank for t in (x, records, roots)) != (2, 1, 1) or not (
        at_most(WORDS, records.shape[0]) and at_most(1, x.shape[1])
    ):
        what = f"descend: rows {show(x.shape)}, records {show(records.shape)}, roots {show(roots.shape)}"
        raise ShapeError(what, remedy=f"pass x[rows, features], records[{WORDS}*nodes], roots[trees]")
    if depth < 0:
        raise AttributeValueError(f"descend: depth {depth}", remedy="pass the largest number of comparisons")
    return TensorType(records.dtype, (roots.shape[0], x.shape[0]))


def _inside(positions: np.ndarray, last: int) -> np.ndarray:
    """Return positions of at most ``last``, also in place of negative ones."""
    return np.where((positions < 0) | (positions > last), last, positions)


def _reference(x: np.ndarray, records: np.ndarray, roots: np.ndarray, depth: int, missing: bool) -> np.ndarray:
    last, rows = len(records) - WORDS, np.arange(len(x))
    at = np.repeat(_inside(roots, last)[:, None], len(x), 1)
    for _ in range(depth):
        first = records[at]
        value = x[rows, _inside(first >> 1 if missing else first, x.shape[1] - 1)]
        goes = value <= records[at + 1].view(x.dtype)
        if missing:
            goes |= np.isnan(value) & (first & 1 > 0)
        at = _inside(at + records[at + np.where(goes, 2, 3)], last)
    return records[at + 1]


class _Descent:
    """Kernel of one application of the op."""

    def __init__(self, c: LowerContext, operands: Sequence[OperandRef], depth: int, missing: bool):
        self.c, self.nest, (self.x, self.records, self.roots) = c, c.nest, operands
        self.depth, self.missing = depth, missing
        self.last = self.records.shape[0] - WORDS
        self.position = uint32 if self.records.dtype.bits == 32 else uint64
        self.nodes = c.scratch(self.position, CHAINS)

    def word(self, node: Scalar, number: int) -> Scalar:
        """Load a word of a record."""
        return self.c.load(self.records, (self.nest.dynamic(node, 0, self.last) + number,))

    def inside(self, position: Scalar, last: int) -> Scalar:
        """Return an unsigned position of at most ``last``: a negative one becomes a large one."""
        unsigned = self.position
        bits = position if position.dtype is unsigned else self.nest.op("bitcast", position, dtype=unsigned)
        return self.nest.op("min", bits, self.nest.const(last, unsigned))

    def step(self, row: Any, node: Scalar) -> Scalar:
        """Return the step that a row takes from a node: 0 at a leaf."""
        nest, first = self.nest, self.word(node, 0)
        feature = nest.op("shr", first, nest.const(1, first.dtype)) if self.missing else first
        column = nest.dynamic(self.inside(feature, self.x.shape[1] - 1), 0, self.x.shape[1] - 1)
        value = self.c.load(self.x, (row, column))
        goes = value <= nest.op("bitcast", self.word(node, 1), dtype=self.x.dtype)
        if self.missing:
            goes = goes | (value.ne(value) & (first & 1).ne(0))
        way = nest.select(goes, nest.const(2, node.dtype), nest.const(3, node.dtype))
        return self.c.load(self.records, (nest.dynamic(node + way, 2, self.last + 3),))

    def trees(self, first: Any, count: int) -> None:
        """Descend ``count`` neighbouring trees for each row."""
        nest = self.nest
        with nest.loop(self.x.shape[0]) as row:
            with nest.loop(count, "unroll") as tree:
                root = self.inside(self.c.load(self.roots, (first + tree,)), self.last)
                nest.store_at(self.nodes, tree, root)
            moving = nest.accumulator(bool_, "and", True)
            with nest.loop(-(-self.depth // STEPS), "serial"):
                left = nest.select(nest.read(moving, bool_), nest.const(STEPS, int64), nest.const(0, int64))
                moved = nest.accumulator(bool_, "or", False)
                with nest.loop(STEPS, "serial", until=left) as number:
                    last = nest.index(number) >= STEPS - 1
                    with nest.loop(count, "unroll") as tree:
                        node = nest.load_at(self.nodes, tree, self.position)
                        step = self.step(row, node)
                        nest.store_at(
                            self.nodes,
                            tree,
                            self.inside(node + nest.op("bitcast", step, dtype=self.position), self.last),
                        )
                        nest.update(moved, step.ne(0) & last)
                nest.update(moving, nest.read(moved, bool_))
            with nest.loop(count, "unroll") as tree:
                node = nest.load_at(self.nodes, tree, self.position)
                self.c.store((first + tree, row), self.word(node, 1))


def _nest(c: LowerContext, x: OperandRef, records: OperandRef, roots: OperandRef, depth: int, missing: bool) -> None:
    descent = _Descent(c, (x, records, roots), depth, missing)
    full, rest = divmod(roots.shape[0], CHAINS)
    if full:
        with c.nest.loop(full) as block:
            descent.trees(block * CHAINS, CHAINS)
    if rest:
        descent.trees(full * CHAINS, rest)


def _samples() -> list[Sample]:
    one = [1, 0, 4, 8, 0, 5, 0, 0, 0, 6, 0, 0]
    return [
        plain(floats((5, 2), "float32"), array(one, "int32"), array([0, 0, 4], "int32"), depth=1, missing=False),
        plain(floats((0, 2), "float32"), array(one, "int32"), array([0], "int32"), depth=1, missing=True),
        plain(floats((3, 2)), array(one, "int64"), array([0] * 19, "int64"), depth=7, missing=False),
        plain(
            array([[0, np.nan], [1, 2]], "float32"),
            array([3, *one[1:]], "int32"),
            array([0], "int32"),
            depth=1,
            missing=True,
        ),
    ]


descend = define(
    "descend",
    "The threshold words of the records that rows of x reach from the roots: [trees, rows]. A record is four integers: "
    "a feature, the bits of a threshold, and the steps to the next record, in integers, where the feature is at most "
    "the threshold and where it is not. Both steps of a leaf are 0. A position or a feature out of range becomes the "
    "last one.",
    "x records roots",
    _infer,
    attrs=[
        Attr("depth", "int", "the largest number of comparisons"),
        Attr("missing", "bool", "features count twice; an odd one takes the first step where it is NaN", False, False),
    ],
    reference=_reference,
    lower_nest=_nest,
    traits=Trait.PURE | Trait.MATERIALIZE,
    samples=_samples,
    error_samples=[
        refused(
            DTypeError,
            "records of i64 cannot hold thresholds of f32",
            (float32, (2, 3)),
            (int64, (4,)),
            (int64, (1,)),
            depth=1,
        ),
        refused(ShapeError, "records [3]", (float32, (2, 3)), (int32, (3,)), (int32, (1,)), depth=1),
        refused(AttributeValueError, "depth -1", (float32, (2, 3)), (int32, (4,)), (int32, (1,)), depth=-1),
    ],
)
