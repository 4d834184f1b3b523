"""Round-robin check of the tensors written by a training step: each call looks at a small segment of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.calls.bindings import Slot

CALLS = 128
"""Number of calls after which all elements have been checked."""


class Rounds:
    """Checks one segment of some tensors at a time, in turns."""

    def __init__(self, slots: Mapping[str, Slot]):
        """``slots`` are the slots of the tensors, by path."""
        self._parts: list[list[tuple[Slot, str, int, int]]] = []
        self._next = 0
        sizes = {path: math.prod(slot.shape) for path, slot in slots.items()}
        segment_size = max(1, math.ceil(sum(sizes.values()) / CALLS))
        left_in_segment = 0
        for path, size in sizes.items():
            begin = 0
            while begin < size:
                if not left_in_segment:
                    self._parts.append([])
                    left_in_segment = segment_size
                end = min(size, begin + left_in_segment)
                self._parts[-1].append((slots[path], path, begin, end))
                left_in_segment -= end - begin
                begin = end

    def look(self) -> str | None:
        """Return the path of a non-finite tensor in the next segment, or None."""
        if not self._parts:
            return None
        segment = self._parts[self._next]
        self._next = (self._next + 1) % len(self._parts)
        for slot, path, begin, end in segment:
            numbers: Any = slot.tensor()._data.reshape(-1)[begin:end]
            if not np.isfinite(numbers).all():
                return path
        return None
