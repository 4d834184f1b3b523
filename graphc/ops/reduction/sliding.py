"""Geometry of sliding windows, shared by convolution and pooling: sizes, numpy views, kernel indices, guards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from graphc.base.errors import AttributeValueError, ShapeError
from graphc.base.records import dataclass
from graphc.ir.kernel.index import Index, IndexLike, as_index
from graphc.ir.kernel.statements import Bound, Guard
from graphc.ir.op import Attr

Pairs = tuple[tuple[int, int], ...]

STRIDE = Attr("stride", "ints", "step of the window, one per spatial dimension")
PADDING = Attr("padding", "pairs", "(low, high) elements added around the input, one pair per spatial dimension")
DILATION = Attr("dilation", "ints", "distance of neighbouring window elements, one per spatial dimension")
KERNEL = Attr("kernel", "ints", "size of the window, one per spatial dimension")
SIZE = Attr("size", "ints", "spatial size of the input")


@dataclass(frozen=True)
class Sliding:
    """Windows of ``kernel`` elements that slide over the last dimensions of an array."""

    kernel: tuple[int, ...]
    stride: tuple[int, ...]
    padding: Pairs
    dilation: tuple[int, ...]

    @property
    def rank(self) -> int:
        """Number of spatial dimensions."""
        return len(self.kernel)

    @property
    def extent(self) -> tuple[int, ...]:
        """Elements spanned by a window, dilation included."""
        return tuple(d * (k - 1) + 1 for k, d in zip(self.kernel, self.dilation, strict=True))

    @property
    def is_padded(self) -> bool:
        """Whether some dimension is padded."""
        return any(low or high for low, high in self.padding)

    @property
    def overlaps(self) -> bool:
        """Whether two windows can share an element."""
        return any(e > s for e, s in zip(self.extent, self.stride, strict=True))

    def check(self, op: str) -> None:
        """Raise AttributeValueError when an attribute has the wrong length or an impossible value."""
        for name, values in (("stride", self.stride), ("padding", self.padding), ("dilation", self.dilation)):
            if len(values) != self.rank:
                raise AttributeValueError(f"{op}: {name} has {len(values)} entries for {self.rank} spatial dimensions")
        for name, sizes in (("kernel", self.kernel), ("stride", self.stride), ("dilation", self.dilation)):
            if any(v < 1 for v in sizes):
                raise AttributeValueError(f"{op}: {name} must be positive, got {sizes}")
        if any(len(p) != 2 or min(p) < 0 for p in self.padding):
            raise AttributeValueError(f"{op}: padding must be pairs (low, high) of sizes >= 0, got {self.padding}")

    def output(self, op: str, sizes: Sequence[int]) -> tuple[int, ...]:
        """Return the number of windows per dimension; raise ShapeError when a window does not fit."""
        self.check(op)
        result = []
        for size, extent, stride, (low, high) in zip(sizes, self.extent, self.stride, self.padding, strict=True):
            if size + low + high < extent:
                raise ShapeError(
                    f"{op}: a window of {extent} elements does not fit an input of {size} padded by {low} and {high}",
                    remedy="pass a larger input, more padding, or a smaller kernel or dilation",
                )
            result.append((size + low + high - extent) // stride + 1)
        return tuple(result)

    def pad(self, x: np.ndarray, fill: float | int) -> np.ndarray:
        """Pad the spatial dimensions of ``x``."""
        if not self.is_padded:
            return x
        return np.pad(x, [(0, 0)] * (x.ndim - self.rank) + list(self.padding), constant_values=fill)

    def windows(self, x: np.ndarray, fill: float | int = 0) -> np.ndarray:
        """Return a read-only view [leading..., *windows, *kernel] of padded ``x``."""
        padded = self.pad(x, fill)
        axes = tuple(range(x.ndim - self.rank, x.ndim))
        view = sliding_window_view(padded, self.extent, axis=axes)  # type: ignore[call-overload]
        steps = [slice(None, None, s) for s in self.stride] + [slice(None, None, d) for d in self.dilation]
        return view[(..., *steps)]

    def add_windows(self, values: np.ndarray, sizes: Sequence[int]) -> np.ndarray:
        """Transpose ``windows``: sum [leading..., *windows, *kernel] into [leading..., *sizes]."""
        lead = values.shape[: values.ndim - 2 * self.rank]
        counts = values.shape[len(lead) : len(lead) + self.rank]
        full = [size + low + high for size, (low, high) in zip(sizes, self.padding, strict=True)]
        result = np.zeros((*lead, *full), values.dtype)
        for at in np.ndindex(*self.kernel):
            positions = tuple(
                slice(k * d, k * d + (n - 1) * s + 1, s)
                for k, d, n, s in zip(at, self.dilation, counts, self.stride, strict=True)
            )
            result[(..., *positions)] += values[(..., *at)]
        inner = tuple(slice(low, low + size) for (low, _), size in zip(self.padding, sizes, strict=True))
        return result[(..., *inner)]

    def along(self, dimension: int) -> Sliding:
        """Return the windows along one dimension; they are single elements along the others."""

        def only(values: Sequence[Any], rest: Any) -> tuple[Any, ...]:
            return tuple(v if i == dimension else rest for i, v in enumerate(values))

        return Sliding(only(self.kernel, 1), only(self.stride, 1), only(self.padding, (0, 0)), only(self.dilation, 1))

    def position(self, window: Sequence[IndexLike], at: Sequence[IndexLike]) -> tuple[Index, ...]:
        """Return the index in the (unpadded) input of element ``at`` of a window."""
        dimensions = zip(window, at, self.stride, self.dilation, self.padding, strict=True)
        return tuple(as_index(w) * s + as_index(k) * d - low for w, k, s, d, (low, _) in dimensions)


def inside(position: Sequence[Index], sizes: Sequence[int]) -> Guard:
    """Return the guard that keeps a position inside an array."""
    return tuple(Bound(p, 0, n) for p, n in zip(position, sizes, strict=True))
