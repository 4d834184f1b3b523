"""What a monitor hands on: numbers, histograms and images with their step, and who takes them."""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from graphc.base.errors import ShapeError
from graphc.ops.statistics import BINS
from graphc.tensors.tensor import Tensor
from graphc.tracing.taps import Statistics


@dataclass(frozen=True)
class Histogram:
    """How many values lie between which edges."""

    edges: np.ndarray
    """f64[bins + 1], increasing."""
    counts: np.ndarray
    """i64[bins]."""
    total: float
    """Sum of the values."""
    squares: float
    """Sum of their squares."""
    dropped: int
    """How many were infinite or not a number, and are not counted."""

    @property
    def count(self) -> int:
        """How many values were counted."""
        return int(self.counts.sum())


class Writer:
    """Takes what a monitor saw. Every method does nothing here; writers override those they need."""

    def scalar(self, name: str, value: float, step: int) -> None:
        """Takes one number."""

    def histogram(self, name: str, value: Histogram, step: int) -> None:
        """Takes one histogram."""

    def image(self, name: str, value: np.ndarray, step: int) -> None:
        """Takes one image, u8[height, width, 3]."""

    def flush(self) -> None:
        """Makes everything taken so far visible."""

    def close(self) -> None:
        """Ends the output; nothing is taken after it."""


def values_of(value: Any) -> np.ndarray:
    """The values of a tensor, array or number."""
    return np.asarray(value._values(force=True) if isinstance(value, Tensor) else value)


def make_histogram(value: Any, bins: int = BINS) -> Histogram:
    """The histogram of the finite values of a tensor or array."""
    values = values_of(value).astype(np.float64).ravel()
    finite = values[np.isfinite(values)]
    counts, edges = np.histogram(finite, bins)
    return Histogram(
        edges, counts.astype(np.int64), float(finite.sum()), float(finite @ finite), values.size - finite.size
    )


def histogram_of(found: Statistics) -> Histogram:
    """The histogram of a tensor of which a tap has told mean, norm and histogram."""
    finite = found.size - found.nonfinite
    low, high = (found.min, found.max) if finite else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts = np.array(found.histogram or (0,) * BINS, np.int64)
    total = found.mean * finite if finite else 0.0
    return Histogram(np.linspace(low, high, BINS + 1), counts, total, found.norm**2, found.nonfinite)


def make_image(value: Any) -> np.ndarray:
    """A picture u8[height, width, 3] of [height, width], or of 1 or 3 channels [c, height, width].

    Floats are scaled so that the smallest finite value is black and the largest white, unless all lie between 0 and 1.
    Raises ShapeError for other shapes.
    """
    values = values_of(value)
    if values.ndim == 2:
        values = values[None]
    if values.ndim != 3 or values.shape[0] not in (1, 3) or not values.size:
        raise ShapeError(
            f"an image has shape [height, width], [1, height, width] or [3, height, width], "
            f"got {list(np.shape(values_of(value)))}"
        )
    if values.dtype != np.uint8:
        values = _scaled(values.astype(np.float64))
    return np.ascontiguousarray(np.broadcast_to(values.transpose(1, 2, 0), (*values.shape[1:], 3)))


def _scaled(values: np.ndarray) -> np.ndarray:
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    shares = (np.nan_to_num(values, nan=low, posinf=high, neginf=low) - low) / max(high - low, 1e-300)
    return np.rint(shares.clip(0, 1) * 255).astype(np.uint8)


def png(image: np.ndarray) -> bytes:
    """An image u8[height, width, 3] as a PNG file."""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
