"""Writers of a monitor's output: numbers, histograms and images, each with its step."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np

from graphc.base.errors import ShapeError
from graphc.base.records import dataclass
from graphc.ops.reduction.statistics import BINS
from graphc.tensors.tensor import Tensor
from graphc.tracing.taps import Statistics


@dataclass(frozen=True)
class Histogram:
    """Counts of values between edges."""

    edges: np.ndarray
    """f64[bins + 1], increasing."""
    counts: np.ndarray
    """i64[bins]."""
    total: float
    """Sum of the values."""
    squares: float
    """Sum of their squares."""
    dropped: int
    """Number of values that are infinite or NaN; they are not counted."""

    @property
    def count(self) -> int:
        """Number of values counted."""
        return int(self.counts.sum())


class Writer:
    """Base of writers. Every method does nothing; subclasses override the ones they need."""

    def scalar(self, name: str, value: float, step: int) -> None:
        """Write one number of a step."""

    def histogram(self, name: str, value: Histogram, step: int) -> None:
        """Write one histogram of a step."""

    def image(self, name: str, value: np.ndarray, step: int) -> None:
        """Write one image, u8[height, width, 3]."""

    def flush(self) -> None:
        """Make everything written so far visible."""

    def close(self) -> None:
        """End the output. No other method is called afterwards."""


def values_of(value: Any) -> np.ndarray:
    """Return the values of a tensor, array or number as a numpy array."""
    return np.asarray(value._values(force=True) if isinstance(value, Tensor) else value)


def make_histogram(value: Any, bins: int = BINS) -> Histogram:
    """Compute the histogram of the finite values of a tensor or array."""
    values = values_of(value).astype(np.float64).ravel()
    finite = values[np.isfinite(values)]
    counts, edges = np.histogram(finite, bins)
    return Histogram(
        edges, counts.astype(np.int64), float(finite.sum()), float(finite @ finite), values.size - finite.size
    )


def histogram_of(statistics: Statistics) -> Histogram:
    """Build a histogram from a tap's statistics, which must include mean, norm and histogram."""
    finite = statistics.size - statistics.nonfinite
    low, high = (statistics.min, statistics.max) if finite else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    counts = np.array(statistics.histogram or (0,) * BINS, np.int64)
    total = statistics.mean * finite if finite else 0.0
    return Histogram(np.linspace(low, high, BINS + 1), counts, total, statistics.norm**2, statistics.nonfinite)


def make_image(value: Any) -> np.ndarray:
    """Convert [height, width], or [channels, height, width] with 1 or 3 channels, to an image u8[height, width, 3].

    Values other than u8 are scaled: the smallest finite value becomes black and the largest white; values between 0 and
    1 are scaled from 0 (black) to 1 (white). Raises ShapeError for other shapes.
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
    """Encode an image u8[height, width, 3] as a PNG file."""
    height, width, _ = image.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), image.reshape(height, -1)], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
