"""Non-maximum suppression: one loop for each class, over the boxes that are left."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, float32, float64, int32, int64
from graphc.base.errors import AttributeValueError, DTypeError, ShapeError
from graphc.base.sizes.size import smaller
from graphc.ir.kernel.index import Index
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import Scalar
from graphc.ir.kernel.statements import Bound, Guard
from graphc.ir.op import Attr, Sample, Trait
from graphc.ir.types import TensorType
from graphc.ops.define import define
from graphc.ops.rules import check_kind, check_one_dtype, show
from graphc.ops.samples import array, floats, plain, refused

LANES = 16
"""Boxes of a block, whose overlaps with the last selected box are computed together."""
_COLUMNS = 7
"""Numbers of a box in scratch memory: score, four corners, area, index."""


def _infer(boxes: TensorType, scores: TensorType, most: int, limit: float, least: float) -> TensorType:
    check_kind("suppress", 0, boxes.dtype, "f")
    check_one_dtype("suppress", (boxes, scores))
    if boxes.dtype not in (float32, float64):
        raise DTypeError(f"suppress: boxes of {boxes.dtype.name}", remedy="convert them to f32")
    if len(boxes.shape) != 3 or len(scores.shape) != 3 or boxes.shape != (*scores.shape[::2], 4):
        what = f"suppress: boxes {show(boxes.shape)}, scores {show(scores.shape)}"
        raise ShapeError(what, remedy="pass boxes[batch, n, 4] and scores[batch, classes, n]")
    if most < 0:
        raise AttributeValueError(f"suppress: {most} boxes", remedy="pass a number of 0 or more")
    return TensorType(int64, (*scores.shape[:2], smaller(scores.shape[2], most)))


def _overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return the intersection over union of a box with others."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    sides, own = np.maximum(high - low, 0), box[2:] - box[:2]
    spans = others[:, 2:] - others[:, :2]
    shared = sides[:, 0] * sides[:, 1]
    union = spans[:, 0] * spans[:, 1] + own[0] * own[1] - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def _reference(boxes: np.ndarray, scores: np.ndarray, most: int, limit: float, least: float) -> np.ndarray:
    slots = min(scores.shape[2], most)
    picks = np.full((*scores.shape[:2], slots), -1, np.int64)
    for b, k in np.ndindex(*scores.shape[:2]):
        row = scores[b, k]
        left = np.flatnonzero(row > least)
        left = left[np.argsort(-row[left], kind="stable")]
        for slot in range(slots):
            if not len(left):
                break
            picks[b, k, slot] = left[0]
            left = left[1:][_overlaps(boxes[b, left[0]], boxes[b, left[1:]]) <= limit]
    return picks


class _Suppression:
    """Kernel of one application of the op: the boxes above the threshold in scratch memory, column by column."""

    def __init__(self, c: LowerContext, boxes: OperandRef, scores: OperandRef):
        self.c, self.nest, self.boxes, self.scores = c, c.nest, boxes, scores
        self.count, self.dtype = scores.shape[2], scores.dtype
        self.whole: DType = int32 if self.dtype is float32 else int64
        self.blocks = (self.count + LANES - 1) // LANES
        self.height = (self.blocks + 1) * LANES
        self.memory = c.scratch(self.dtype, _COLUMNS * self.height + 1)

    def load(self, column: int, row: Any) -> Scalar:
        """Load a number of a box that is left."""
        return self.nest.load_at(self.memory, row + self.height * column, self.dtype)

    def store(self, column: int, row: Any, value: Scalar) -> None:
        """Store a number of a box that is left."""
        self.nest.store_at(self.memory, row + self.height * column, value)

    def collect(self, at: tuple[Index, Index], least: float) -> Scalar:
        """Copy the boxes above the threshold together. Returns their number."""
        nest, (b, k) = self.nest, at
        found = nest.accumulator(int64, "add", 0)

        def score(row: Index) -> Scalar:
            from_scores = self.c.load(self.scores, (b, k, row), _below(row, self.count), -math.inf)
            return nest.select(from_scores > least, from_scores, -math.inf)

        with nest.loop(self.blocks, "serial") as block:
            highest = nest.reduce("max", -math.inf, self.dtype, [LANES], lambda lane: score(block * LANES + lane))
            left = nest.select(highest > least, nest.const(LANES, int64), 0)
            with nest.loop(LANES, "serial", until=left) as lane:
                row = block * LANES + lane
                place = nest.dynamic(nest.read(found, int64), 0, self.height - LANES - 1)
                value = score(row)
                corners = [self.c.load(self.boxes, (b, row, i), _below(row, self.count), 0) for i in range(4)]
                area = (corners[2] - corners[0]) * (corners[3] - corners[1])
                number = nest.op("bitcast", nest.index(row, self.whole), dtype=self.dtype)
                for column, x in enumerate((value, *corners, area, number)):
                    self.store(column, place, x)
                nest.update(found, (value > least).cast(int64))
        number = nest.read(found, int64)
        with nest.loop(LANES) as lane:
            place = nest.dynamic(number, 0, self.height - LANES) + lane
            for column in range(_COLUMNS - 1):  # The last block is read as a whole, except for numbers of boxes.
                self.store(column, place, nest.const(0.0 if column else -math.inf, self.dtype))
        return number

    def step(self, at: tuple[Index, Index], slot: Index, rows: Scalar, limit: float) -> None:
        """Select the best box, and drop it with all that overlap it. ``rows`` is the number of blocks."""
        nest, best = self.nest, self.nest.load_at(self.memory, self.height * _COLUMNS, self.dtype)
        is_any = best > -math.inf
        until = nest.select(is_any, rows, 0)
        last = nest.const(self.height - 1, self.whole)
        first = nest.accumulator(self.whole, "min", last)
        with nest.loop(self.blocks, "serial", until=until) as block, nest.loop(LANES, "reduce") as lane:
            row = block * LANES + lane
            nest.update(first, nest.select(self.load(0, row).eq(best), nest.index(row, self.whole), last))
        chosen = nest.read(first, self.whole)
        pick = nest.dynamic(chosen.cast(int64), 0, self.height - 1)
        number = nest.op("bitcast", self.load(6, pick), dtype=self.whole).cast(int64)
        self.c.store((*at, slot), nest.select(is_any, number, -1))
        box = [self.load(column, pick) for column in range(1, 6)]
        highest = nest.accumulator(self.dtype, "max", -math.inf)
        with nest.loop(self.blocks, "serial", until=until) as block, nest.loop(LANES, "reduce") as lane:
            row = block * LANES + lane
            other = [self.load(column, row) for column in range(1, 6)]
            sides = [nest.op("min", box[i + 2], other[i + 2]) - nest.op("max", box[i], other[i]) for i in (0, 1)]
            width, height = (nest.op("max", side, nest.const(0, self.dtype)) for side in sides)
            shared = width * height
            union = other[4] + box[4] - shared
            overlap = nest.select(union > 0, shared / union, 0)
            stays = (overlap <= limit) & nest.index(row, self.whole).ne(chosen)
            value = nest.select(stays, self.load(0, row), -math.inf)
            self.store(0, row, value)
            nest.update(highest, value)
        nest.store_at(self.memory, self.height * _COLUMNS, nest.read(highest, self.dtype))


def _below(row: Index, count: Any) -> Guard:
    return (Bound(row, 0, count),)


def _nest(c: LowerContext, boxes: OperandRef, scores: OperandRef, most: int, limit: float, least: float) -> None:
    nest, slots = c.nest, c.type.shape[2]
    work = _Suppression(c, boxes, scores)
    with nest.loop(scores.shape[0]) as b, nest.loop(scores.shape[1]) as k:
        at = b, k
        with nest.loop(slots) as slot:
            c.store((*at, slot), nest.const(-1, int64))
        found = work.collect(at, least)
        rows = nest.op("shr", found + (LANES - 1), nest.const(LANES.bit_length() - 1, int64))
        highest = nest.accumulator(work.dtype, "max", -math.inf)
        with nest.loop(work.blocks, "serial", until=rows) as block, nest.loop(LANES, "reduce") as lane:
            nest.update(highest, work.load(0, block * LANES + lane))
        nest.store_at(work.memory, work.height * _COLUMNS, nest.read(highest, work.dtype))
        with nest.loop(slots, "serial", until=found) as slot:
            work.step(at, slot, rows, limit)


def _samples() -> list[Sample]:
    boxes = [[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [5, 5, 6, 6], [0, 0, 1, 1], [2, 2, 2, 2]]]
    scores = [[[0.9, 0.8, 0.7, 0.9, 0.1], [0.1, 0.3, 0.1, 0.95, 0.95]]]
    return [
        plain(array(boxes, "float32"), array(scores, "float32"), most=3, limit=0.5, least=0.2),
        plain(array(boxes, "float64"), array(scores, "float64"), most=9, limit=0.95),
        plain(floats((2, 40, 4), "float32"), floats((2, 3, 40), "float32"), most=7, limit=0.2, least=0.0),
        plain(floats((1, 0, 4), "float32"), floats((1, 3, 0), "float32"), most=7, limit=0.2, least=0.0),
        plain(floats((1, 5, 4), "float32"), floats((1, 2, 5), "float32"), most=0, limit=0.2, least=0.0),
    ]


suppress = define(
    "suppress",
    "Indices of the best boxes of each class, i64[batch, classes, at most n], in order of score, and -1 behind the "
    "last one. A box is left out if a better one of its class overlaps it by more than a limit (intersection over "
    "union), or if its score is not above a threshold. Boxes are two corners, the lower one first.",
    "boxes scores",
    _infer,
    attrs=[
        Attr("most", "int", "the largest number of boxes of a class"),
        Attr("limit", "float", "the largest overlap of two selected boxes"),
        Attr("least", "float", "the threshold of scores", -math.inf, False),
    ],
    reference=_reference,
    lower_nest=_nest,
    traits=Trait.PURE | Trait.MATERIALIZE,
    samples=_samples,
    error_samples=[
        refused(
            ShapeError, "boxes [1,5,4], scores [1,2,6]", (float32, (1, 5, 4)), (float32, (1, 2, 6)), most=1, limit=0.5
        ),
        refused(AttributeValueError, "-1 boxes", (float32, (1, 5, 4)), (float32, (1, 2, 5)), most=-1, limit=0.5),
        refused(DTypeError, "operand 0", (int64, (1, 5, 4)), (float32, (1, 2, 5)), most=1, limit=0.5),
    ],
)
