"""What a kernel rule of an op sees: operands, the index of the result element, and the builder to compute it with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graphc.base.dtypes import DType
from graphc.ir.kernel.index import Index, IndexLike
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.statements import Guard
from graphc.ir.types import TensorType


@dataclass(frozen=True)
class OperandRef:
    """An operand inside a kernel rule; read it with ``LowerContext.load``."""

    position: int
    type: TensorType

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape."""
        return self.type.shape


class LowerContext(Protocol):
    """Given to ``lower(c, index, *operands, **attrs)`` and ``lower_nest(c, *operands, **attrs)``.

    A rule never learns whether an operand lies in memory or is computed on the spot by another op's rule.
    """

    nest: NestBuilder
    """Scalars, loops, reductions."""
    type: TensorType
    """Type of the result."""

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        """Element of an operand at a multi-dimensional index, or ``other`` where the guard is false."""
        ...

    def broadcast(self, operand: OperandRef, index: Sequence[Index]) -> Scalar:
        """Element of an operand that is broadcast (numpy rules) to the result whose index is ``index``."""
        ...

    def store(self, index: Sequence[IndexLike], value: Scalar, guard: Guard = (), combine: str | None = None) -> None:
        """Writes an element of the result (``lower_nest`` only)."""
        ...

    def scratch(self, dtype: DType, size: int) -> str:
        """The name of a flat buffer for ``NestBuilder.load_at`` and ``store_at``, of unknown content, in which the
        iterations of the outermost parallel loops keep nothing for each other (``lower_nest`` only, one for an op)."""
        ...
