"""Cost estimates of scheduled kernels, from trip counts of loops and bytes of memory.

Sizes known only at run time count with their expected values.
"""

from __future__ import annotations

from collections import Counter

from graphc.base.sizes.size import hint
from graphc.codegen.machine.roofline import Roofline
from graphc.ir.kernel.access import access
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Kernel, Load, Loop, Program, Stmt, Store


class StatementCounts:
    """Counter of executed statements of a kernel; a statement over all lanes of a register counts once."""

    def __init__(self) -> None:
        self._costs: dict[int, tuple[Stmt, int]] = {}

    def body(self, body: tuple[Stmt, ...], vector: Axis | None = None) -> int:
        """Return the cost of one run of these statements, inside a loop over lanes if ``vector`` is set."""
        return sum(self.statement(s, vector) for s in body)

    def statement(self, stmt: Stmt, vector: Axis | None = None) -> int:
        """Return the cost of a statement: 1, or 1 per lane for a strided or gathered access."""
        if isinstance(stmt, Loop):
            return self._loop(stmt, vector)
        if vector is not None and isinstance(stmt, Load | Store) and not access(stmt.index, vector).plain:
            return hint(vector.extent)
        return 1

    def _loop(self, loop: Loop, vector: Axis | None) -> int:
        entry = self._costs.get(id(loop))
        if entry is not None:
            return entry[1]
        if loop.kind == "vector":
            cost = self.body(loop.body, loop.axis)
        else:
            cost = hint(loop.axis.extent) * (self.body(loop.body, vector) + (loop.kind != "unroll"))
        # NOTE: the entry keeps the loop alive, so that its id is not reused.
        self._costs[id(loop)] = (loop, cost)
        return cost


def kernel_ns(kernel: Kernel, statements: int, roofline: Roofline) -> int:
    """Estimate, very roughly, the nanoseconds of one run on one core; ``statements`` is the cost of the body."""
    touched = sum(hint(b.size) * b.dtype.itemsize for b in kernel.arguments)
    return int(roofline.time(statements, touched))


def program_ns(program: Program, roofline: Roofline) -> int:
    """Estimate, very roughly, the nanoseconds of one run of a scheduled program on one core."""
    runs: Counter[str] = Counter()
    for call in program.calls:
        runs[call.kernel] += hint(call.runs)
    kernels = [k for k in program.kernels if runs[k.name]]
    return sum(runs[k.name] * kernel_ns(k, StatementCounts().body(k.body), roofline) for k in kernels)
