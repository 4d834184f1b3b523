"""Facts about a scheduled kernel: lanes, register block, floating-point operations, bytes read and written.

Sizes known only at run time count with their expected values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod

from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds, hint
from graphc.ir.kernel.access import access
from graphc.ir.kernel.index import Axis, Dynamic, Index, atoms, axes_of
from graphc.ir.kernel.statements import Acc, IndexLet, Kernel, Let, Load, Loop, Read, Stmt, Store, Update, walk

LANE_KINDS = ("vector", "unroll")
"""Loops whose body is emitted once, see ir.kernel.statements."""
_ARITHMETIC = dict.fromkeys(("add", "sub", "mul", "weigh", "div", "sqrt", "min", "max", "neg", "abs"), 1) | {"fma": 2}
"""Floating-point operations that count, with the number that each counts for."""


@dataclass(frozen=True)
class Vectorization:
    """The loop over lanes in which a kernel does most of its work."""

    lanes: int
    """Elements in a vector register; 1 for a kernel without a loop over lanes."""
    copies: tuple[int, ...]
    """Extents of the unrolled loops around or inside, outermost first: rows and vectors of a register block."""
    block: bool
    """True if all copies hold accumulators at the same time while a loop runs: a register block."""
    reduced: bool
    """True if lanes run along a reduced axis, so that they are reduced at the end."""
    neighbours: bool
    """True if all accesses are contiguous across lanes (or the same for all lanes)."""

    @property
    def registers(self) -> int:
        """Number of registers for each value that varies over all copies."""
        return prod(self.copies)

    def __str__(self) -> str:
        if self.lanes == 1:
            return "one element at a time"
        if self.block:
            rows = " x ".join(map(str, self.copies)) or "1"
            what = f"sums over lanes, {rows} products" if self.reduced else f"register block {rows} vectors"
            return f"{what} of {self.lanes}"
        where = "reduced axis" if self.reduced else "kept axis"
        far = "" if self.neighbours else ", some lanes apart in memory"
        return f"lanes of {self.lanes} along the {where}, {self.registers} vectors at once{far}"


@dataclass(frozen=True)
class KernelFacts:
    """Operations and memory traffic of one run of a kernel."""

    vectorization: Vectorization
    flops: int
    """Arithmetic operations on floats."""
    read: int
    """Bytes read from arguments, counting each element once."""
    written: int
    """Bytes written to arguments, counting each element once."""
    scratch: tuple[int, ...]
    """Bytes of each scratch row."""


def kernel_facts(kernel: Kernel) -> KernelFacts:
    """Return the facts of a scheduled kernel, from its loops and indices alone."""
    read, written = _traffic(kernel)
    rows = tuple(hint(b.size) * b.dtype.itemsize for b in kernel.buffers if b.role == "scratch")
    return KernelFacts(main_vectorization(kernel), count_flops(kernel), read, written, rows)


def main_vectorization(kernel: Kernel) -> Vectorization:
    """Return the vectorization of the loop over lanes that executes the most statements."""
    best, most = Vectorization(1, (), False, False, True), -1
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Loop) and stmt.kind == "vector":
            inside = sum(_points(inner) for _, inner in walk(stmt.body))
            weight = _points((*loops, stmt)) * inside
            if weight > most:
                best, most = _vectorization(stmt, loops), weight
    return best


def _points(loops: Iterable[Loop]) -> int:
    """Return how often the innermost body of nested loops runs."""
    return prod(hint(x.axis.extent) for x in loops)


def _vectorization(loop: Loop, loops: tuple[Loop, ...]) -> Vectorization:
    inside = [s for s, _ in walk(loop.body)]
    copies = [x.axis.extent for x in (*loops, *(s for s in inside if isinstance(s, Loop))) if x.kind == "unroll"]
    own = {s.name for s in inside if isinstance(s, Acc)}
    reduced = any(isinstance(s, Update) and s.acc not in own for s in inside)
    holds = bool(own) and any(isinstance(s, Loop) and s.kind == "reduce" for s in inside)
    nested = any(x.kind == "unroll" and any(y.kind == "reduce" for y in loops[i:]) for i, x in enumerate(loops))
    near = all(access(s.index, loop.axis).plain for s in inside if isinstance(s, Load | Store))
    return Vectorization(bounds(loop.axis.extent)[1], tuple(c for c in copies if c > 1), holds or nested, reduced, near)


def count_flops(kernel: Kernel) -> int:
    """Count the floating-point operations of one run; a value is computed once per lane and copy on which it
    depends."""
    varies: dict[str, frozenset[Axis]] = {}
    total = 0
    for stmt, loops in walk(kernel.body):
        lanes = frozenset(x.axis for x in loops if x.kind in LANE_KINDS)
        name = getattr(stmt, "name", "")
        if name:
            varies[name] = lanes if isinstance(stmt, Acc) else _dependence(stmt, varies) & lanes
        if isinstance(stmt, Update):
            total += _points(loops)
        elif isinstance(stmt, Let) and stmt.dtype.kind == "f":
            times = _points(x for x in loops if x.axis not in lanes)
            total += _ARITHMETIC.get(stmt.op, 0) * times * prod(hint(a.extent) for a in varies[name])
    return total


def _dependence(stmt: Stmt, varies: dict[str, frozenset[Axis]]) -> frozenset[Axis]:
    """Return the axes over which the value of a statement varies, directly or through its operands."""
    if isinstance(stmt, Let):
        return frozenset().union(*(varies.get(a, frozenset()) for a in stmt.args if isinstance(a, str)))
    if isinstance(stmt, Load | IndexLet):
        return _index_axes(stmt.index, varies)
    return varies.get(stmt.acc, frozenset()) if isinstance(stmt, Read) else frozenset()


def _index_axes(index: Index, varies: dict[str, frozenset[Axis]]) -> frozenset[Axis]:
    dynamic = (varies.get(a.name, frozenset()) for a in atoms(index) if isinstance(a, Dynamic))
    return frozenset(axes_of(index)).union(*dynamic)


def _traffic(kernel: Kernel) -> tuple[int, int]:
    """Return the bytes read and written, for each argument at most its size."""
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Load | Store):
            dynamic = any(isinstance(a, Dynamic) for a in atoms(stmt.index))
            used = axes_of(stmt.index)
            points = _points(x for x in loops if dynamic or x.axis in used)
            (read if isinstance(stmt, Load) else written)[stmt.buffer] += points
            if isinstance(stmt, Store) and stmt.combine:
                read[stmt.buffer] += points
    sizes = {b.name: b for b in kernel.arguments}
    totals = [
        sum(min(count[n], hint(b.size)) * b.dtype.itemsize for n, b in sizes.items() if n in count)
        for count in (read, written)
    ]
    return totals[0], totals[1]
