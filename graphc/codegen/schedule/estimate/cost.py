"""What a scheduled kernel is expected to cost, from the trip counts of its loops and the bytes that it touches.

Sizes known at run time count as what they are expected to be.
"""

from __future__ import annotations

from collections import Counter

from graphc.base.sizes.size import hint
from graphc.codegen.machine.roofline import Roofline
from graphc.ir.kernel.access import access
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.statements import Kernel, Load, Loop, Program, Stmt, Store


class StatementCounts:
    """Statements executed by parts of one kernel; a statement over all lanes of a register counts once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Stmt, int]] = {}

    def body(self, body: tuple[Stmt, ...], vector: Axis | None = None) -> int:
        """The cost of one run of these statements, inside a loop over lanes if ``vector`` is given."""
        return sum(self.statement(s, vector) for s in body)

    def statement(self, stmt: Stmt, vector: Axis | None = None) -> int:
        """The cost of a statement: one, or one per lane where lanes lie apart."""
        if isinstance(stmt, Loop):
            return self._loop(stmt, vector)
        if vector is not None and isinstance(stmt, Load | Store) and not access(stmt.index, vector).plain:
            return hint(vector.extent)
        return 1

    def _loop(self, loop: Loop, vector: Axis | None) -> int:
        known = self._known.get(id(loop))
        if known is not None:
            return known[1]
        if loop.kind == "vector":
            cost = self.body(loop.body, loop.axis)
        else:
            cost = hint(loop.axis.extent) * (self.body(loop.body, vector) + (loop.kind != "unroll"))
        # NOTE: the loop is kept, so that its id stays its own.
        self._known[id(loop)] = (loop, cost)
        return cost


def kernel_ns(kernel: Kernel, statements: int, roofline: Roofline) -> int:
    """Nanoseconds that one run takes on one core, very roughly; ``statements`` is the cost of the body."""
    touched = sum(hint(b.size) * b.dtype.itemsize for b in kernel.arguments)
    return int(roofline.time(statements, touched))


def program_ns(program: Program, roofline: Roofline) -> int:
    """Nanoseconds that one run of a scheduled program takes on one core, very roughly."""
    runs: Counter[str] = Counter()
    for call in program.calls:
        runs[call.kernel] += hint(call.runs)
    kernels = [k for k in program.kernels if runs[k.name]]
    return sum(runs[k.name] * kernel_ns(k, StatementCounts().body(k.body), roofline) for k in kernels)
