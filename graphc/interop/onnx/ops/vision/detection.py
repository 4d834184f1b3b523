"""Rule of ONNX's operator of object detection: NonMaxSuppression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_, int64
from graphc.control.while_loop import while_loop
from graphc.interop.onnx.registry import op
from graphc.tensors.compaction import positions
from graphc.tensors.creation import arange, full, ones_like, zeros
from graphc.tensors.free_functions import cat, where
from graphc.tensors.functions import maximum, minimum
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.reads import folded, may_read


@op("NonMaxSuppression", since=10, host="max_output_boxes_per_class iou_threshold score_threshold")
def non_max_suppression(
    boxes: Tensor,
    scores: Tensor,
    max_output_boxes_per_class: Any = None,
    iou_threshold: Any = None,
    score_threshold: Any = None,
    *,
    center_point_box: int = 0,
) -> Any:
    """Select the best boxes without overlap. Returns batch, class and box, i64[n, 3]."""
    most, limit, least = (
        None if v is None else np.asarray(v).reshape(-1)[0].item()
        for v in (max_output_boxes_per_class, iou_threshold, score_threshold)
    )
    if not most:
        return np.zeros((0, 3), np.int64)
    if may_read() and any(folded(t) is None for t in (boxes, scores)):
        return _in_trace(boxes, scores, most, limit or 0.0, least, center_point_box)
    purpose = "NonMaxSuppression, whose result has a size that depends on values,"
    box_values, score_values = (front().values(t.detach(), purpose) for t in (boxes, scores))
    selected = []
    for batch, corners in enumerate(_corners(box_values, center_point_box)):
        overlaps = _overlaps(corners)
        for kind, row in enumerate(score_values[batch]):
            order = np.argsort(-row, kind="stable")
            if least is not None:
                order = order[row[order] > least]
            best = _best(order, overlaps, float(limit or 0), int(most))
            selected += [(batch, kind, box) for box in best]
    return np.array(selected, np.int64).reshape(-1, 3)


def _corners(boxes: np.ndarray, center: int) -> np.ndarray:
    """Return low and high corners of boxes, given by any two opposite corners or by centre and size."""
    if center:
        middle, half = boxes[..., [0, 1]], boxes[..., [2, 3]] / 2
        return np.concatenate([middle - half, middle + half], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _overlaps(corners: np.ndarray) -> np.ndarray:
    """Return the intersection over union of each pair of boxes."""
    low, high = corners[:, :2], corners[:, 2:]
    sides = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    shared = np.prod(np.maximum(sides, 0), -1)
    areas = np.prod(high - low, -1)
    union = areas[:, None] + areas - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def _best(order: np.ndarray, overlaps: np.ndarray, limit: float, most: int) -> list[int]:
    selected: list[int] = []
    for box in order.tolist():
        if len(selected) == most:
            break
        if not (overlaps[box, selected] > limit).any():
            selected.append(box)
    return selected


def _in_trace(boxes: Tensor, scores: Tensor, most: int, limit: float, least: float | None, center: int) -> Tensor:
    """Return the selected boxes in a trace of a call: a loop takes the best box of all classes in each step."""
    if center:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        low, high = middle - half, middle + half
    else:
        low, high = minimum(boxes[..., :2], boxes[..., 2:]), maximum(boxes[..., :2], boxes[..., 2:])
    batch, kinds, count = scores.shape
    most = count if most >= count else most
    low, high = low.unsqueeze(1), high.unsqueeze(1)
    areas = (high - low).prod(-1)
    numbers, slots = arange(count), arange(most)
    live = scores > least if least is not None else ones_like(scores, dtype=bool_)

    # NOTE: sums over one element, since an index in a loop would be checked once and not in each step.
    def at(mask: Tensor, values: Tensor) -> Tensor:
        return where(mask, values, 0.0).sum(2, keepdim=True)

    def step(state: Any) -> Any:
        number, live, picks = state
        is_any = live.any(-1, keepdim=True)
        best = where(live, scores, -math.inf).argmax(-1, keepdim=True)
        is_best = numbers == best
        first, last = (at(is_best.unsqueeze(-1), corners) for corners in (low, high))
        shared = (minimum(high, last) - maximum(low, first)).clamp(min=0).prod(-1)
        union = areas + at(is_best, areas) - shared
        overlaps = where(union > 0, shared / where(union > 0, union, 1.0), 0.0)
        picks = where((slots == number) & is_any, best, picks)
        return number + 1, live & (overlaps <= limit) & ~is_best, picks

    init = zeros((), dtype=int64), live, full((batch, kinds, most), -1, dtype=int64)
    picks = while_loop(lambda state: (state[0] < most) & state[1].any(), step, init)[2]
    rows = positions(picks >= 0, "NonMaxSuppression")
    box = picks.reshape(-1)[(rows[:, 0] * kinds + rows[:, 1]) * most + rows[:, 2]]
    return cat([rows[:, :2], box.unsqueeze(1)], 1)
