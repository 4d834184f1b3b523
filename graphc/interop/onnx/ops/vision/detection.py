"""Rule of ONNX's operator of object detection: NonMaxSuppression."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.interop.onnx.registry import op
from graphc.ops.selection.suppression import suppress
from graphc.tensors.compaction import positions
from graphc.tensors.free_functions import cat
from graphc.tensors.functions import maximum, minimum
from graphc.tensors.tensor import Tensor


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
    if center_point_box:
        middle, half = boxes[..., :2], boxes[..., 2:] / 2
        low, high = middle - half, middle + half
    else:
        low, high = minimum(boxes[..., :2], boxes[..., 2:]), maximum(boxes[..., :2], boxes[..., 2:])
    corners, threshold = cat([low, high], -1).detach(), -math.inf if least is None else least
    picks = suppress(corners, scores.detach(), most=int(most), limit=float(limit or 0), least=float(threshold))
    rows = positions(picks >= 0, "NonMaxSuppression")
    _, kinds, slots = picks.shape
    box = picks.reshape(-1)[(rows[:, 0] * kinds + rows[:, 1]) * slots + rows[:, 2]]
    return cat([rows[:, :2], box.unsqueeze(1)], 1)
