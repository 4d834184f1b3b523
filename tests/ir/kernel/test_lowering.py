"""Kernel rules see operands by position, without their origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.dtypes import float32
from graphc.ir.kernel.index import Index, IndexLike, as_index, flatten
from graphc.ir.kernel.lowering import LowerContext, OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.statements import Buffer, Guard, Kernel
from graphc.ir.kernel.text import print_kernel
from graphc.ir.types import TensorType, row_major_strides


class Context:
    """Operand 0 lies in memory; operand 1 is the number of the element."""

    def __init__(self, type: TensorType):
        self.nest = NestBuilder()
        self.type = type

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        place = flatten(index, row_major_strides(operand.shape))
        if operand.position == 0:
            return self.nest.load_at("x", place, operand.dtype, guard, other)
        return self.nest.index(place).cast(operand.dtype)

    def broadcast(self, operand: OperandRef, index: Sequence[Index]) -> Scalar:
        return self.load(operand, index)

    def store(self, index: Sequence[IndexLike], value: Scalar, guard: Guard = (), combine: str | None = None) -> None:
        self.nest.store_at("y", flatten(index, row_major_strides(self.type.shape)), value, guard, combine)


def scaled(c: LowerContext, index: Sequence[Index], x: OperandRef, y: OperandRef) -> Scalar:
    """A kernel rule: ``x * y`` read backwards along the last axis."""
    back = (*index[:-1], as_index(x.shape[-1] - 1) - index[-1])
    return c.load(x, back) * c.load(y, back)


def test_one_rule_serves_memory_and_computed_operands():
    type = TensorType(float32, (2, 3))
    c = Context(type)
    x, y = OperandRef(0, type), OperandRef(1, type)
    assert (x.dtype, x.shape) == (float32, (2, 3))
    with c.nest.loops(type.shape) as index:
        c.store(index, scaled(c, index, x, y))
    kernel = Kernel("k", (Buffer("x", float32, 6, "in"), Buffer("y", float32, 6, "out")), c.nest.body())
    assert (
        print_kernel(kernel)
        == """kernel @k(%x: f32[6] in, %y: f32[6] out) {
  for i0 in 2 parallel {
    for i1 in 3 parallel {
      v1: f32 = load %x[3*i0 - 1*i1 + 2]
      v2: i64 = index 3*i0 - 1*i1 + 2
      v3: f32 = cast(v2)
      v4: f32 = mul(v1, v3)
      store %y[3*i0 + i1] = v4
    }
  }
}
"""
    )
