"""Stamps: readings of the processor's cycle counter around the calls of a program's kernels."""

from __future__ import annotations

from graphc.base.records import dataclass
from graphc.ir.kernel.statements import Program

STAMPS = "stamps"
"""Storage of the stamps of ``entry.emit_stamped``, whose address is the last word of the table."""
LEAD = 9
"""Consecutive stamps at the start: the times between them are the cost of a stamp. The first ones take longer, as their
code and memory are in no cache yet."""


def stamp_count(program: Program, each: bool = True) -> int:
    """Return the number of words (i64) that a call of the stamped program writes: the number LEAD, LEAD stamps at the
    start, one after each call, and for each call its number of stamp pairs: one for each run of a repeated call.
    Without ``each`` all calls count as one."""
    return 1 + LEAD + 2 * (len(program.calls) if each else 1)


@dataclass(frozen=True)
class Stamps:
    """Emitter of stamps; each method returns lines of LLVM text."""

    fence: str
    """LLVM intrinsic that waits for all earlier instructions (``Target.cycle_fence``)."""
    each: bool
    """Whether to stamp each call, or all together."""

    @property
    def declarations(self) -> dict[str, str]:
        """Declarations for the stamps."""
        counter = "declare i64 @llvm.readcyclecounter()"
        return {"stamp": counter, "fence": f"declare void @{self.fence}()"}

    def count(self, register: str) -> list[str]:
        """Read the counter between two fences, which no timed instruction passes."""
        fence = f"  call void @{self.fence}()"
        return [fence, f"  {register} = call i64 @llvm.readcyclecounter()", fence]

    def begin(self, calls: int) -> list[str]:
        """Write the number of stamps at the start, one pair for each of ``calls`` calls, and the stamps at the
        start."""
        lines = [f"  store i64 {LEAD}, ptr %ticks, align 8"]
        for word in range(1 + LEAD + calls, 1 + LEAD + 2 * calls):
            lines += [f"  %pair{word} = getelementptr inbounds i64, ptr %ticks, i64 {word}"]
            lines += [f"  store i64 1, ptr %pair{word}, align 8"]
        return [*lines, *(line for number in range(LEAD) for line in self.stamp(number))]

    def stamp(self, number: int) -> list[str]:
        """Read the counter and store it."""
        return [
            *self.count(f"%count{number}"),
            f"  %word{number} = getelementptr inbounds i64, ptr %ticks, i64 {number + 1}",
            f"  store i64 %count{number}, ptr %word{number}, align 8",
        ]

    def sum_of(self, call: int) -> list[str]:
        """Allocate the total time and the number of runs of a repeated call, at the head of the function."""
        names = (f"%sum{call}", f"%runs{call}")
        return [
            line
            for name in names
            for line in (f"  {name} = alloca i64, align 8", f"  store i64 0, ptr {name}, align 8")
        ]

    def before_run(self, call: int) -> list[str]:
        """Read the counter before a repeated call."""
        return self.count(f"%sum{call}.0")

    def after_run(self, call: int) -> list[str]:
        """Add up time and runs after a repeated call."""
        return [
            *self.count(f"%sum{call}.1"),
            f"  %sum{call}.2 = sub i64 %sum{call}.1, %sum{call}.0",
            *_add(f"%sum{call}", f"%sum{call}.2"),
            *_add(f"%runs{call}", "1"),
        ]

    def repeated(self, call: int, calls: int) -> list[str]:
        """Write the stamp of a repeated call after its loop, as if all its runs had followed each other, and its number
        of runs. ``calls`` is the number of calls of the program."""
        number = LEAD + call
        return [
            f"  %end{call}.0 = getelementptr inbounds i64, ptr %ticks, i64 {number}",
            f"  %end{call}.1 = getelementptr inbounds i64, ptr %ticks, i64 {number + 1}",
            f"  %end{call}.2 = load i64, ptr %end{call}.0, align 8",
            f"  %end{call}.3 = load i64, ptr %sum{call}, align 8",
            f"  %end{call}.4 = add i64 %end{call}.2, %end{call}.3",
            f"  store i64 %end{call}.4, ptr %end{call}.1, align 8",
            f"  %end{call}.5 = load i64, ptr %runs{call}, align 8",
            f"  %end{call}.6 = getelementptr inbounds i64, ptr %ticks, i64 {number + 1 + calls}",
            f"  store i64 %end{call}.5, ptr %end{call}.6, align 8",
        ]


def _add(address: str, value: str) -> list[str]:
    """Add a value to a number in memory."""
    return [
        f"  {address}.old = load i64, ptr {address}, align 8",
        f"  {address}.new = add i64 {address}.old, {value}",
        f"  store i64 {address}.new, ptr {address}, align 8",
    ]
