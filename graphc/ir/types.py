"""The type of a tensor value: element type and shape."""

from __future__ import annotations

from math import prod

from graphc.base.dtypes import DType
from graphc.base.records import dataclass

Dim = int
"""A dimension: an int, or a ``Size`` of named dimensions, whose value may differ in each call (base.sizes.size)."""


@dataclass(frozen=True)
class TensorType:
    """Element type and shape of a value."""

    dtype: DType
    shape: tuple[Dim, ...] = ()

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of a dense row-major array of this type."""
        return self.size * self.dtype.itemsize

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


def row_major_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides, in elements, of a dense row-major array."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
