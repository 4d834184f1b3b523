"""Rule of ONNX's operator of object detection: NonMaxSuppression."""

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
    """Select the best boxes without overlap. Returns batch, class and box, i64[n, 3].

    Works in eager mode only: the number of boxes depends on values.
    """
    purpose = "NonMaxSuppression, whose result has a size that depends on values,"
    box_values, score_values = (front().values(t.detach(), purpose) for t in (boxes, scores))
    most, limit, least = (
        None if v is None else np.asarray(v).reshape(-1)[0]
        for v in (max_output_boxes_per_class, iou_threshold, score_threshold)
    )
    if not most:
        return np.zeros((0, 3), np.int64)
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
