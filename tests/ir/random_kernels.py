"""Random kernels, right by construction, and a direct evaluation of them to compare interpreters with."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from graphc.base.dtypes import DType, bool_, float32, float64, int8, int32, int64, uint8
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, bounds
from graphc.ir.kernel.statements import (
    Acc,
    Bound,
    Buffer,
    Const,
    IndexLet,
    Kernel,
    Let,
    Load,
    Loop,
    Read,
    Ref,
    Stmt,
    Store,
    Update,
)

DTYPES = (float32, float64, int32, int64, int8, uint8, bool_)
NUMBERS = (float32, float64, int32, int64)


def indices(axes: list[Axis]) -> st.SearchStrategy[Index]:
    """Index expressions over these axes, with quotients and remainders."""
    leaf = st.integers(-9, 9).map(as_index)
    if axes:
        leaf = leaf | st.sampled_from(axes).map(as_index)

    def larger(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
        return (
            st.tuples(inner, inner).map(lambda p: p[0] + p[1])
            | st.tuples(inner, st.integers(-4, 4)).map(lambda p: p[0] * p[1])
            | st.tuples(inner, st.integers(1, 5)).map(lambda p: p[0] // p[1])
            | st.tuples(inner, st.integers(1, 5)).map(lambda p: p[0] % p[1])
        )

    return st.recursive(leaf, larger, max_leaves=6)


def literals(dtype: DType) -> st.SearchStrategy[Const]:
    """Literals of an element type, odd ones too."""
    if dtype.kind == "f":
        values = st.floats(width=32 if dtype is float32 else 64, allow_nan=True)
        return values.map(lambda v: Const(float("nan") if v != v else v, dtype))
    if dtype.kind == "b":
        return st.booleans().map(lambda v: Const(v, dtype))
    low = 0 if dtype.kind == "u" else -(2 ** (dtype.bits - 1))
    return st.integers(low, low + 2**dtype.bits - 1).map(lambda v: Const(v, dtype))


class _Body:
    """Draws statements; ``scalars`` are the visible names by element type."""

    def __init__(self, draw: Callable):
        self.draw = draw
        self.count = 0
        self.buffers: dict[str, Buffer] = {}
        self.axes: list[Axis] = []
        self.parallel: list[Axis] = []

    def fresh(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def ref(self, scalars: list[tuple[str, DType]], dtype: DType) -> Ref:
        known = [name for name, d in scalars if d is dtype]
        if known and self.draw(st.booleans()):
            return self.draw(st.sampled_from(known))
        return self.draw(literals(dtype))

    def buffer(self, dtype: DType, size: int, role: str) -> str:
        name = self.fresh("b")
        self.buffers[name] = Buffer(name, dtype, size, role)
        return name

    def body(self, scalars: list[tuple[str, DType]], depth: int) -> tuple[Stmt, ...]:
        """One to five statements; names defined here are added to a copy of ``scalars``."""
        scalars = list(scalars)
        stmts: list[Stmt] = []
        for _ in range(self.draw(st.integers(1, 5))):
            kinds = [self.let, self.index_let, self.load, self.store, self.reduction]
            if depth:
                kinds.append(lambda s: self.loop(s, depth))
            stmts.extend(self.draw(st.sampled_from(kinds))(scalars))
        return tuple(stmts)

    def let(self, scalars: list[tuple[str, DType]]) -> list[Stmt]:
        name = self.fresh("v")
        dtype = self.draw(st.sampled_from(NUMBERS))
        op = self.draw(st.sampled_from(["add", "sub", "mul", "max", "min", "neg", "lt", "select", "cast"]))
        if op == "neg":
            args, result = (self.ref(scalars, dtype),), dtype
        elif op == "cast":
            args, result = (self.ref(scalars, dtype),), self.draw(st.sampled_from(DTYPES))
        else:
            args = (self.ref(scalars, dtype), self.ref(scalars, dtype))
            result = bool_ if op == "lt" else dtype
        if op == "select":
            args = (self.ref(scalars, bool_), *args)
        scalars.append((name, result))
        return [Let(name, op, args, result)]

    def index_let(self, scalars: list[tuple[str, DType]]) -> list[Stmt]:
        name, dtype = self.fresh("v"), self.draw(st.sampled_from((int32, int64)))
        scalars.append((name, dtype))
        return [IndexLet(name, self.draw(indices(self.axes)), dtype)]

    def load(self, scalars: list[tuple[str, DType]]) -> list[Stmt]:
        dtype = self.draw(st.sampled_from(DTYPES))
        index = self.draw(indices(self.axes))
        low, high = bounds(index)
        name = self.fresh("v")
        scalars.append((name, dtype))
        if self.draw(st.booleans()):
            buffer = self.buffer(dtype, max(1, (high - low) // 2), "in")
            guard = (Bound(index - low, 0, self.buffers[buffer].size),)
            return [Load(name, buffer, index - low, dtype, guard, self.draw(literals(dtype)))]
        return [Load(name, self.buffer(dtype, high - low + 1, "in"), index - low, dtype)]

    def store(self, scalars: list[tuple[str, DType]]) -> list[Stmt]:
        dtype = self.draw(st.sampled_from(NUMBERS))
        place, size = Index(), 1
        for axis in self.axes:
            place, size = place * axis.extent + as_index(axis), size * axis.extent
        value = self.ref(scalars, dtype)
        if self.draw(st.booleans()):
            return [
                Store(self.buffer(dtype, size, "inout"), place, value, (), self.draw(st.sampled_from(["add", "max"])))
            ]
        shift, name = self.draw(st.integers(0, 3)), self.fresh("v")
        at = Index(((Dynamic(name, 0, 3), 1),))
        stmts: list[Stmt] = [IndexLet(name, as_index(shift), int64)]
        return [*stmts, Store(self.buffer(dtype, size + 3, "out"), place + at, value)]

    def reduction(self, scalars: list[tuple[str, DType]]) -> list[Stmt]:
        dtype = self.draw(st.sampled_from(NUMBERS))
        acc, result = self.fresh("acc"), self.fresh("v")
        lanes = self.draw(st.sampled_from([0, 2, 4]))
        axis = Axis(self.fresh("i"), self.draw(st.integers(2, 4)))
        lane = Axis(self.fresh("i"), lanes)
        self.axes.append(axis)
        value = self.draw(st.sampled_from([self.let, self.load]))
        inner = list(scalars)
        stmts = value(inner)
        self.axes.pop()
        update = Update(acc, self.ref(inner, dtype))
        body = (*stmts, Loop(lane, "vector", (update,)) if lanes else update)
        combine = self.draw(st.sampled_from(["add", "mul", "max", "min"]))
        scalars.append((result, dtype))
        return [
            Acc(acc, dtype, combine, self.ref(scalars[:-1], dtype)),
            Loop(axis, "reduce", body),
            Read(result, acc),
        ]

    def loop(self, scalars: list[tuple[str, DType]], depth: int) -> list[Stmt]:
        axis = Axis(self.fresh("i"), self.draw(st.integers(2, 5)))
        self.axes.append(axis)
        body = self.body(scalars, depth - 1)
        self.axes.pop()
        return [Loop(axis, self.draw(st.sampled_from(["parallel", "serial"])), body)]


@st.composite
def kernels(draw: Callable) -> Kernel:
    """Valid kernels with loops up to three deep, guards, quotients, run-time indices and reductions."""
    body = _Body(draw)
    stmts = body.body([], 3)
    origin = tuple(draw(st.lists(st.sampled_from(["fc1", "layers.0.norm", 'odd "name"']), max_size=2)))
    return Kernel(draw(st.sampled_from(["k0", "softmax.1", "odd name"])), tuple(body.buffers.values()), stmts, origin)
