"""Rounds through the tensors that a training step writes: a small part of them is looked at after each call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.calls.bindings import Slot

CALLS = 128
"""After so many calls all of them have been looked at."""


class Rounds:
    """Looks at one part of some tensors at a time, in turns."""

    def __init__(self, slots: Mapping[str, Slot]):
        """``slots`` are those of the tensors, by path."""
        self._parts: list[list[tuple[Slot, str, int, int]]] = []
        self._next = 0
        sizes = {path: math.prod(slot.shape) for path, slot in slots.items()}
        share = max(1, math.ceil(sum(sizes.values()) / CALLS))
        free = 0
        for path, size in sizes.items():
            begin = 0
            while begin < size:
                if not free:
                    self._parts.append([])
                    free = share
                end = min(size, begin + free)
                self._parts[-1].append((slots[path], path, begin, end))
                free -= end - begin
                begin = end

    def look(self) -> str | None:
        """The path of a tensor whose part is not finite; None where all that is looked at this time is."""
        if not self._parts:
            return None
        part = self._parts[self._next]
        self._next = (self._next + 1) % len(self._parts)
        for slot, path, begin, end in part:
            numbers: Any = slot.tensor()._data.reshape(-1)[begin:end]
            if not np.isfinite(numbers).all():
                return path
        return None
