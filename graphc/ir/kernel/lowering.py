"""Interface of kernel rules: operands, the index of the result element, and the builder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from graphc.base.dtypes import DType
from graphc.base.records import dataclass
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
        """Size of each dimension."""
        return self.type.shape


class LowerContext(Protocol):
    """Context argument of ``lower(c, index, *operands, **attrs)`` and ``lower_nest(c, *operands, **attrs)``.

    A rule cannot tell whether an operand is in memory or computed in place by another op's rule.
    """

    nest: NestBuilder
    """Builder of scalars, loops, reductions."""
    type: TensorType
    """Type of the result."""

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        """Return an operand's element at a multi-dimensional index, or ``other`` where the guard is false."""
        ...

    def broadcast(self, operand: OperandRef, index: Sequence[Index]) -> Scalar:
        """Return the element of an operand that is broadcast (numpy rules) to the result with the index ``index``."""
        ...

    def store(self, index: Sequence[IndexLike], value: Scalar, guard: Guard = (), combine: str | None = None) -> None:
        """Write an element of the result (``lower_nest`` only)."""
        ...

    def scratch(self, dtype: DType, size: int) -> str:
        """Return the name of an uninitialized flat buffer for ``NestBuilder.load_at`` and ``store_at``. Iterations of
        the outermost parallel loops cannot communicate through it (``lower_nest`` only, one per op)."""
        ...
