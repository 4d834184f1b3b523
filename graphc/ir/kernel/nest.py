"""Builder of kernel bodies: scalar expressions with operators, loops, accumulators; equal expressions are shared."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from graphc.base.dtypes import DType, bool_, element, float64, int32, int64, number_of
from graphc.base.errors import ArgumentError
from graphc.base.sizes.size import SizeNumber, is_size, smaller
from graphc.base.sizes.size_relations import at_most
from graphc.ir.kernel.index import Axis, Dynamic, Index, IndexLike, as_index, bounds
from graphc.ir.kernel.scalar import SCALAR_OPS, result_type
from graphc.ir.kernel.statements import (
    Acc,
    Bound,
    Const,
    Guard,
    IndexLet,
    Let,
    Load,
    Loop,
    Read,
    Ref,
    Stmt,
    Store,
    Update,
)

_NUMBER_OPS = {
    operator.add: "add",
    operator.sub: "sub",
    operator.mul: "mul",
    operator.truediv: "div",
    operator.pow: "pow",
}
"""Kernel operations for Python functions of numbers."""


class Scalar:
    """An SSA scalar or literal inside a nest. Operators build statements; Python numbers take this scalar's type."""

    __slots__ = ("dtype", "nest", "ref")

    def __init__(self, nest: NestBuilder, ref: Ref, dtype: DType):
        self.nest = nest
        self.ref = ref
        self.dtype = dtype

    def _with(self, name: str, other: Any, swap: bool = False) -> Scalar:
        other = other if isinstance(other, Scalar) else self.nest.const(other, self.dtype)
        return self.nest.op(name, other, self) if swap else self.nest.op(name, self, other)

    def __add__(self, other: Any) -> Scalar:
        return self._with("add", other)

    def __radd__(self, other: Any) -> Scalar:
        return self._with("add", other, True)

    def __sub__(self, other: Any) -> Scalar:
        return self._with("sub", other)

    def __rsub__(self, other: Any) -> Scalar:
        return self._with("sub", other, True)

    def __mul__(self, other: Any) -> Scalar:
        return self._with("mul", other)

    def __rmul__(self, other: Any) -> Scalar:
        return self._with("mul", other, True)

    def __truediv__(self, other: Any) -> Scalar:
        return self._with("div", other)

    def __rtruediv__(self, other: Any) -> Scalar:
        return self._with("div", other, True)

    def __neg__(self) -> Scalar:
        return self.nest.op("neg", self)

    def __and__(self, other: Any) -> Scalar:
        return self._with("and", other)

    def __or__(self, other: Any) -> Scalar:
        return self._with("or", other)

    def __xor__(self, other: Any) -> Scalar:
        return self._with("xor", other)

    def __invert__(self) -> Scalar:
        return self.nest.op("not", self)

    def __lt__(self, other: Any) -> Scalar:
        return self._with("lt", other)

    def __le__(self, other: Any) -> Scalar:
        return self._with("le", other)

    def __gt__(self, other: Any) -> Scalar:
        return self._with("gt", other)

    def __ge__(self, other: Any) -> Scalar:
        return self._with("ge", other)

    def eq(self, other: Any) -> Scalar:
        """Emit ``self == other``, a bool scalar."""
        return self._with("eq", other)

    def ne(self, other: Any) -> Scalar:
        """Emit ``self != other``, a bool scalar."""
        return self._with("ne", other)

    def cast(self, dtype: DType) -> Scalar:
        """Convert to ``dtype``."""
        return self if dtype is self.dtype else self.nest.op("cast", self, dtype=dtype)


class NestBuilder:
    """Builder that collects statements. Values computed in an outer scope are reused in inner ones, never the other way
    round."""

    def __init__(self) -> None:
        self._frames: list[list[Stmt]] = [[]]
        self._known: list[dict[Any, Scalar]] = [{}]
        self._count = 0
        self._axes = 0

    def fresh(self, prefix: str = "v") -> str:
        """Return an unused name."""
        self._count += 1
        return f"{prefix}{self._count}"

    def append(self, stmt: Stmt) -> None:
        """Add a statement to the innermost scope."""
        self._frames[-1].append(stmt)

    def body(self) -> tuple[Stmt, ...]:
        """Return the finished outermost body."""
        assert len(self._frames) == 1, "a loop is still open"
        return tuple(self._frames[0])

    # ---- scalars

    def const(self, value: Any, dtype: DType) -> Scalar:
        """Return a literal, rounded to ``dtype``. For a size known only at run time, or a number computed from such
        sizes (in f64), return the scalar with its value."""
        if is_size(value):
            return self.index(value, dtype) if dtype in (int64, int32) else self.index(value).cast(dtype)
        if type(value) is SizeNumber:
            return self._computed(value).cast(dtype)
        return Scalar(self, Const(number_of(element(value, dtype)), dtype), dtype)

    def _computed(self, number: SizeNumber) -> Scalar:
        name = _NUMBER_OPS.get(number.function)
        if name is None:
            raise ArgumentError(f"{number} is computed from sizes by a function that kernels do not support")
        operands = [self._computed(x) if type(x) is SizeNumber else self.const(x, float64) for x in number.operands]
        return self.op(name, *operands)

    def op(self, name: str, *args: Scalar, dtype: DType | None = None) -> Scalar:
        """Emit ``name(args)``; fold literals, and share equal applications in scope."""
        result = result_type(name, tuple(a.dtype for a in args), dtype)
        if args and all(isinstance(a.ref, Const) for a in args):
            return self._fold(name, args, result)
        key = (name, tuple(a.ref for a in args), result.name)
        return self._shared(key, result, lambda n: Let(n, name, tuple(a.ref for a in args), result))

    def _fold(self, name: str, args: Sequence[Scalar], dtype: DType) -> Scalar:
        values = [np.asarray(a.ref.value, dtype=a.dtype.numpy) for a in args]  # type: ignore[union-attr]
        reference = SCALAR_OPS[name].reference
        with np.errstate(all="ignore"):
            value = reference(*values, dtype) if SCALAR_OPS[name].rule == "cast" else reference(*values)
        return self.const(value, dtype)

    def _shared(self, key: Any, dtype: DType, make: Callable[[str], Stmt]) -> Scalar:
        for table in reversed(self._known):
            if key in table:
                return table[key]
        name = self.fresh()
        self.append(make(name))
        self._known[-1][key] = Scalar(self, name, dtype)
        return self._known[-1][key]

    def recall(self, key: Any) -> Scalar | None:
        """Return the scalar remembered under ``key`` in this scope or an enclosing one."""
        for table in reversed(self._known):
            if key in table:
                return table[key]
        return None

    def remember(self, key: Any, value: Scalar) -> Scalar:
        """Remember a scalar until the innermost scope closes; keys are tuples that start with a word of the
        caller's."""
        self._known[-1][key] = value
        return value

    def select(self, condition: Scalar, a: Any, b: Any) -> Scalar:
        """Emit ``a`` where ``condition`` holds, else ``b``; one of them may be a Python number."""
        dtype = a.dtype if isinstance(a, Scalar) else b.dtype
        a = a if isinstance(a, Scalar) else self.const(a, dtype)
        b = b if isinstance(b, Scalar) else self.const(b, dtype)
        if isinstance(condition.ref, Const):
            return a if condition.ref.value else b
        return self.op("select", condition, a, b)

    def fma(self, a: Scalar, b: Any, c: Any) -> Scalar:
        """Emit ``a * b + c`` with one rounding; ``b`` and ``c`` may be Python numbers."""
        b = b if isinstance(b, Scalar) else self.const(b, a.dtype)
        c = c if isinstance(c, Scalar) else self.const(c, a.dtype)
        return self.op("fma", a, b, c)

    def index(self, index: IndexLike, dtype: DType = int64) -> Scalar:
        """Convert an index expression to an integer scalar (i64 or i32)."""
        index = as_index(index)
        if type(index.constant) is int and index.is_constant:
            return self.const(index.constant, dtype)
        return self._shared(("index", index, dtype.name), dtype, lambda n: IndexLet(n, index, dtype))

    def dynamic(self, scalar: Scalar, low: int, high: int) -> Index:
        """Use an integer scalar as an index in ``low..high``, which the caller guarantees (clamp first)."""
        if isinstance(scalar.ref, Const):
            return as_index(int(scalar.ref.value))
        return Index(((Dynamic(scalar.ref, low, high), 1),))

    # ---- memory

    def load_at(self, buffer: str, index: IndexLike, dtype: DType, guard: Guard = (), other: Any = 0) -> Scalar:
        """Emit ``buffer[index]`` (flat, in elements), or ``other`` where the guard is false."""
        index = as_index(index)
        conditions = simplify(guard)
        if conditions is None:
            return self.const(other, dtype)
        fill = Const(number_of(element(other, dtype)), dtype) if conditions else None
        key = ("load", buffer, index, conditions, fill)
        return self._shared(key, dtype, lambda n: Load(n, buffer, index, dtype, conditions, fill))

    def store_at(
        self, buffer: str, index: IndexLike, value: Scalar, guard: Guard = (), combine: str | None = None
    ) -> None:
        """Emit ``buffer[index] = value``, and invalidate loads from the buffer."""
        conditions = simplify(guard)
        if conditions is not None:
            self.append(Store(buffer, as_index(index), value.ref, conditions, combine))
        for table in self._known:
            for key in [k for k in table if k[0] == "load" and k[1] == buffer]:
                del table[key]

    # ---- loops and accumulators

    @contextmanager
    def loop(self, extent: int, kind: str = "parallel", until: Scalar | None = None) -> Iterator[Index]:
        """Open a loop, which ends before iteration ``until``; yield its axis as an index. A loop of one iteration
        without ``until`` emits no loop."""
        if until is not None and isinstance(until.ref, Const):
            extent, until = smaller(extent, int(until.ref.value)), None
        if extent == 1 and until is None:
            yield Index()
            return
        axis = Axis(f"i{self._axes}", extent)
        self._axes += 1
        self._frames.append([])
        self._known.append({})
        yield as_index(axis)
        self._known.pop()
        self.append(Loop(axis, kind, tuple(self._frames.pop()), "" if until is None else str(until.ref)))

    @contextmanager
    def loops(self, extents: Sequence[int], kind: str = "parallel") -> Iterator[tuple[Index, ...]]:
        """Open nested loops; yield one index per extent."""
        if not extents:
            yield ()
            return
        with self.loop(extents[0], kind) as first, self.loops(extents[1:], kind) as rest:
            yield (first, *rest)

    def accumulator(self, dtype: DType, combine: str, init: Any) -> str:
        """Declare an accumulator in the current scope; return its name."""
        name = self.fresh("acc")
        ref = init.ref if isinstance(init, Scalar) else self.const(init, dtype).ref
        self.append(Acc(name, dtype, combine, ref))
        return name

    def update(self, acc: str, value: Scalar) -> None:
        """Combine ``value`` into an accumulator."""
        self.append(Update(acc, value.ref))

    def read(self, acc: str, dtype: DType) -> Scalar:
        """Return the current value of an accumulator."""
        name = self.fresh()
        self.append(Read(name, acc))
        return Scalar(self, name, dtype)

    def reduce(
        self, combine: str, init: Any, dtype: DType, extents: Sequence[int], value: Callable[..., Scalar]
    ) -> Scalar:
        """Reduce ``value(*indices)`` over all indices below ``extents`` with ``combine``, starting from ``init``."""
        acc = self.accumulator(dtype, combine, init)
        with self.loops(tuple(extents), "reduce") as indices:
            self.update(acc, value(*indices))
        return self.read(acc, dtype)

    def condition(self, guard: Guard) -> Scalar:
        """Convert a guard to a bool scalar."""
        conditions = simplify(guard)
        if conditions is None:
            return self.const(False, bool_)
        result = self.const(True, bool_)
        for bound in conditions:
            i = self.index(bound.index)
            low, high = bounds(bound.index)
            if not at_most(bound.low, low):
                result = self.op("and", result, i >= bound.low) if not isinstance(result.ref, Const) else i >= bound.low
            if not at_most(high, bound.high - 1):
                result = self.op("and", result, i < bound.high) if not isinstance(result.ref, Const) else i < bound.high
        return result


def simplify(guard: Guard) -> Guard | None:
    """Drop bounds that always hold and duplicates; return None when the guard never holds."""
    conditions: list[Bound] = []
    for bound in guard:
        low, high = bounds(bound.index)
        last = bound.high - 1
        if at_most(bound.low, low) and at_most(high, last):
            continue
        if at_most(high, bound.low - 1) or at_most(last + 1, low):
            return None
        if bound not in conditions:
            conditions.append(bound)
    return tuple(conditions)
