"""ONNX operators of object detection: NonMaxSuppression."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.interop.onnx.registry import op
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front


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
    """Batch, class and box of the best boxes that do not overlap better ones, i64[n, 3]. Their number depends on
    values, so that it is computed in eager mode alone."""
    purpose = "NonMaxSuppression, whose result has a size that depends on values,"
    places, marks = (front().values(t.detach(), purpose) for t in (boxes, scores))
    most, limit, least = (
        None if v is None else np.asarray(v).reshape(-1)[0]
        for v in (max_output_boxes_per_class, iou_threshold, score_threshold)
    )
    if not most:
        return np.zeros((0, 3), np.int64)
    found = []
    for batch, corners in enumerate(_corners(places, center_point_box)):
        overlaps = _overlaps(corners)
        for kind, row in enumerate(marks[batch]):
            order = np.argsort(-row, kind="stable")
            if least is not None:
                order = order[row[order] > least]
            kept = _best(order, overlaps, float(limit or 0), int(most))
            found += [(batch, kind, box) for box in kept]
    return np.array(found, np.int64).reshape(-1, 3)


def _corners(boxes: np.ndarray, center: int) -> np.ndarray:
    """Low and high corners of boxes that are given by any two opposite ones, or by centre and size."""
    if center:
        middle, half = boxes[..., [0, 1]], boxes[..., [2, 3]] / 2
        return np.concatenate([middle - half, middle + half], -1)
    first, second = boxes[..., :2], boxes[..., 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], -1)


def _overlaps(corners: np.ndarray) -> np.ndarray:
    """Intersection over union of each two boxes."""
    low, high = corners[:, :2], corners[:, 2:]
    sides = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    shared = np.prod(np.maximum(sides, 0), -1)
    areas = np.prod(high - low, -1)
    union = areas[:, None] + areas - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=union > 0)


def _best(order: np.ndarray, overlaps: np.ndarray, limit: float, most: int) -> list[int]:
    kept: list[int] = []
    for box in order.tolist():
        if len(kept) == most:
            break
        if not (overlaps[box, kept] > limit).any():
            kept.append(box)
    return kept
