"""Accumulators of kernels in LLVM: a register per unrolled copy, carried through loops as phis, reduced when read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from math import prod

from graphc.base.dtypes import DType
from graphc.base.errors import CompileError
from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds
from graphc.codegen.llvm.function import FunctionWriter
from graphc.codegen.llvm.scalar import ScalarEmitter, register_type, splat_literal
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Acc, Kernel, Loop, Read, Update, identity, walk

Key = tuple[tuple[int, ...], int]
"""(coordinates along the unrolled axes around the declaration, number of the extra copy)."""


@dataclass
class Spread:
    """Number of registers over which an accumulator is spread by lane loops between its declaration and its updates."""

    copies: int = 1
    lanes: int = 0
    running: bool = False
    """Whether it is read in the loop over lanes that updates it. Each lane then sees the prefix up to itself."""


@dataclass
class Accumulator:
    """A live accumulator."""

    dtype: DType
    combine: str
    init: str
    """Register or literal of the initial value (scalar or vector, as declared); empty for the identity."""
    axes: tuple[Axis, ...]
    """Unrolled axes around the declaration."""
    lanes: int
    """Lanes at the declaration (0: scalar)."""
    spread: Spread
    registers: dict[Key, str] = field(default_factory=dict)
    """For a running accumulator, the value after the last lane, in every lane."""
    prefixes: dict[Key, str] = field(default_factory=dict)
    """For a running accumulator, the value after each lane of the vector axis ``along``."""
    along: Axis | None = None

    @property
    def width(self) -> int:
        """Lanes of its registers."""
        return self.spread.lanes or self.lanes


def next_power_of_two(n: int) -> int:
    """Return the smallest power of two not below ``n``."""
    return 1 << max(0, n - 1).bit_length()


def analyse(kernel: Kernel) -> tuple[dict[str, Spread], dict[Axis, int]]:
    """Return the spread of accumulators, and the lanes of vector axes. Vector loops that update one accumulator get
    equal lanes."""
    declared: dict[str, tuple[Loop, ...]] = {}
    spreads: dict[str, Spread] = {}
    lanes = {
        s.axis: next_power_of_two(bounds(s.axis.extent)[1])
        for s, _ in walk(kernel.body)
        if isinstance(s, Loop) and s.kind == "vector"
    }
    shared: dict[str, list[Axis]] = {}
    read_along: dict[str, list[Axis]] = {}
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Acc):
            declared[stmt.name] = loops
            spreads[stmt.name] = Spread()
        elif isinstance(stmt, Update):
            inside = loops[len(declared[stmt.acc]) :]
            copies = prod(loop.axis.extent for loop in inside if loop.kind == "unroll")
            spreads[stmt.acc].copies = max(spreads[stmt.acc].copies, copies)
            shared.setdefault(stmt.acc, []).extend(loop.axis for loop in inside if loop.kind == "vector")
        elif isinstance(stmt, Read):
            inside = loops[len(declared[stmt.acc]) :]
            read_along.setdefault(stmt.acc, []).extend(loop.axis for loop in inside if loop.kind == "vector")
    shared = {name: axes for name, axes in shared.items() if axes}
    _equalize(lanes, list(shared.values()))
    for name, axes in shared.items():
        spreads[name].lanes = lanes[axes[0]]
        spreads[name].running = not set(axes).isdisjoint(read_along.get(name, []))
    return spreads, lanes


def _equalize(lanes: dict[Axis, int], groups: list[list[Axis]]) -> None:
    """Give the axes of each group the most lanes that one of them has, until nothing changes."""
    changed = True
    while changed:
        changed = False
        for axes in groups:
            most = max(lanes[a] for a in axes)
            changed = changed or any(lanes[a] != most for a in axes)
            lanes.update(dict.fromkeys(axes, most))


def sums_in_order(kernel: Kernel, spreads: dict[str, Spread]) -> frozenset[str]:
    """Return the accumulators that would be spread and whose order of terms matters, and undo their spread. Raises
    CompileError for a run-time loop inside lanes or copies, which would change the order of the terms."""
    names: set[str] = set()
    declared: dict[str, tuple[Loop, ...]] = {}
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Acc):
            declared[stmt.name] = loops
            spread = spreads[stmt.name]
            if stmt.dtype.kind not in "iub" and (spread.lanes or spread.copies > 1):
                names.add(stmt.name)
                spreads[stmt.name] = Spread()
        elif isinstance(stmt, Update) and stmt.acc in names:
            kinds = [loop.kind in ("unroll", "vector") for loop in loops[len(declared[stmt.acc]) :]]
            if kinds != sorted(kinds):
                raise CompileError(f"@{kernel.name}: terms of {stmt.acc} are combined in another order than written")
    return frozenset(names)


class AccumulatorWriter:
    """Emits the combining operations."""

    def __init__(self, function: FunctionWriter, scalar: ScalarEmitter):
        self.function = function
        self.scalar = scalar

    def combine(self, op: str, a: str, b: str, dtype: DType, lanes: int) -> str:
        """Emit ``op(a, b)``; bool ``add`` is or, ``mul`` is and."""
        if op == "last":
            return b
        if dtype.kind == "b":
            op = {"add": "or", "mul": "and", "max": "or", "min": "and"}.get(op, op)
        return self.scalar.emit(op, [a, b], [dtype, dtype], dtype, lanes)

    def start(
        self, acc: Accumulator, coordinates: list[tuple[int, ...]], init: Callable[[tuple[int, ...]], str]
    ) -> None:
        """Fill the registers with the initial value; extra copies and lanes start from the identity."""
        neutral = splat_literal(identity(acc.combine, acc.dtype), acc.width)
        spread = not acc.spread.running and (acc.spread.copies > 1 or bool(acc.spread.lanes))
        for c in coordinates:
            first = init(c)
            for extra in range(acc.spread.copies):
                acc.registers[c, extra] = neutral if spread else first

    def fold(self, acc: Accumulator, c: tuple[int, ...], init: str) -> str:
        """Return the value of one declared copy: extra copies and lanes combined in a tree, then the initial value."""
        values = [acc.registers[c, extra] for extra in range(acc.spread.copies)]
        if acc.spread.running:
            return self.function.line(f"extractelement {register_type(acc.dtype, acc.width)} {values[0]}, i64 0")
        while len(values) > 1:
            pairs = [values[i : i + 2] for i in range(0, len(values), 2)]
            values = [self.combine(acc.combine, *p, acc.dtype, acc.width) if len(p) == 2 else p[0] for p in pairs]
        value = values[0]
        if acc.spread.lanes:
            value = self.fold_lanes(acc.combine, value, acc.dtype, acc.spread.lanes)
        if (acc.spread.copies > 1 or acc.spread.lanes) and init != splat_literal(
            identity(acc.combine, acc.dtype), acc.lanes
        ):
            value = self.combine(acc.combine, value, init, acc.dtype, acc.lanes)
        return value

    def run(self, acc: Accumulator, key: Key, value: str, along: Axis) -> None:
        """Emit the prefix combination over the lanes of a value, in a logarithmic number of steps."""
        f, lanes, kind = self.function, acc.width, register_type(acc.dtype, acc.width)
        neutral = splat_literal(identity(acc.combine, acc.dtype), lanes)
        step = 1
        while step < lanes:
            # NOTE: upper halves get the last lane of lower ones; shifting all lanes would take slower shuffles.
            picks = ", ".join(f"i32 {i // step * step - 1 if i & step else lanes}" for i in range(lanes))
            moved = f.line(f"shufflevector {kind} {value}, {kind} {neutral}, <{lanes} x i32> <{picks}>")
            value = self.combine(acc.combine, moved, value, acc.dtype, lanes)
            step *= 2
        last = ", ".join([f"i32 {lanes - 1}"] * lanes)
        total = f.line(f"shufflevector {kind} {value}, {kind} poison, <{lanes} x i32> <{last}>")
        acc.along = along
        acc.prefixes[key] = self.combine(acc.combine, acc.registers[key], value, acc.dtype, lanes)
        # NOTE: the next vector depends on this one operation only.
        acc.registers[key] = self.combine(acc.combine, acc.registers[key], total, acc.dtype, lanes)

    def add_in_order(self, acc: Accumulator, old: str, terms: Sequence[str], lanes: int, used: int) -> str:
        """Combine ``old`` with the first lanes of a value, or of the product of two factors, one after the other."""
        kind = register_type(acc.dtype, lanes)
        for i in range(used if lanes else 1):
            term = [self.function.line(f"extractelement {kind} {x}, i64 {i}") for x in terms] if lanes else terms
            if len(terms) == 1:
                old = self.combine(acc.combine, old, term[0], acc.dtype, acc.lanes)
            else:
                old = self.scalar.emit("fma", [*term, old], [acc.dtype] * 3, acc.dtype, acc.lanes)
        return old

    def fold_lanes(self, op: str, value: str, dtype: DType, lanes: int) -> str:
        """Combine all lanes by halving, a fixed order."""
        f = self.function
        while lanes > 1:
            kind, half = register_type(dtype, lanes), lanes // 2
            low = ", ".join(f"i32 {i}" for i in range(half))
            high = ", ".join(f"i32 {i + half}" for i in range(half))
            a = f.line(f"shufflevector {kind} {value}, {kind} poison, <{half} x i32> <{low}>")
            b = f.line(f"shufflevector {kind} {value}, {kind} poison, <{half} x i32> <{high}>")
            value = self.combine(op, a, b, dtype, half)
            lanes = half
        return f.line(f"extractelement {register_type(dtype, 1)} {value}, i64 0")
