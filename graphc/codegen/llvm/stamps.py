"""Stamps: the processor's cycle counter, written down around the calls of a program's kernels."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.ir.kernel.statements import Program

STAMPS = "stamps"
"""Storage of the stamps of ``entry.emit_stamped``, whose address is the last word of the table."""
LEAD = 9
"""Stamps at once at the start: the times between them are what a stamp costs. The first ones take longer, as their code
and memory are in no cache yet."""


def stamp_count(program: Program, each: bool = True) -> int:
    """How many words (i64) a call of the stamped program writes: the number LEAD, as many stamps at the start, one
    after each call, and for each call how many pairs of stamps were taken in it: one for each run of a repeated call.
    Without ``each`` all calls count as one."""
    return 1 + LEAD + 2 * (len(program.calls) if each else 1)


@dataclass(frozen=True)
class Stamps:
    """How stamps are taken; each method gives lines of LLVM text."""

    fence: str
    """LLVM's intrinsic that waits for what was begun before (``Target.cycle_fence``)."""
    each: bool
    """Whether around each call, or around all together."""

    @property
    def declarations(self) -> dict[str, str]:
        """What has to be declared."""
        counter = "declare i64 @llvm.readcyclecounter()"
        return {"stamp": counter, "fence": f"declare void @{self.fence}()"}

    def count(self, register: str) -> list[str]:
        """Reads the counter between two fences: nothing of what is timed passes it."""
        fence = f"  call void @{self.fence}()"
        return [fence, f"  {register} = call i64 @llvm.readcyclecounter()", fence]

    def begin(self, calls: int) -> list[str]:
        """How many stamps stand at the start, one pair for each of so many calls, and the stamps at the start."""
        lines = [f"  store i64 {LEAD}, ptr %ticks, align 8"]
        for word in range(1 + LEAD + calls, 1 + LEAD + 2 * calls):
            lines += [f"  %pair{word} = getelementptr inbounds i64, ptr %ticks, i64 {word}"]
            lines += [f"  store i64 1, ptr %pair{word}, align 8"]
        return [*lines, *(line for number in range(LEAD) for line in self.stamp(number))]

    def stamp(self, number: int) -> list[str]:
        """Writes down the counter."""
        return [
            *self.count(f"%count{number}"),
            f"  %word{number} = getelementptr inbounds i64, ptr %ticks, i64 {number + 1}",
            f"  store i64 %count{number}, ptr %word{number}, align 8",
        ]

    def sum_of(self, call: int) -> list[str]:
        """Stands at the head of the function: what a repeated call has taken so far, and in how many runs."""
        names = (f"%sum{call}", f"%runs{call}")
        return [
            line
            for name in names
            for line in (f"  {name} = alloca i64, align 8", f"  store i64 0, ptr {name}, align 8")
        ]

    def before_run(self, call: int) -> list[str]:
        """Stands before a repeated call."""
        return self.count(f"%sum{call}.0")

    def after_run(self, call: int) -> list[str]:
        """Stands behind a repeated call."""
        return [
            *self.count(f"%sum{call}.1"),
            f"  %sum{call}.2 = sub i64 %sum{call}.1, %sum{call}.0",
            *_add(f"%sum{call}", f"%sum{call}.2"),
            *_add(f"%runs{call}", "1"),
        ]

    def repeated(self, call: int, calls: int) -> list[str]:
        """The stamp of a call, of so many in the program, whose loop has ended, as if all its runs had followed each
        other, and how often it ran."""
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


def _add(place: str, value: str) -> list[str]:
    """Adds a value to the number in memory."""
    return [
        f"  {place}.old = load i64, ptr {place}, align 8",
        f"  {place}.new = add i64 {place}.old, {value}",
        f"  store i64 {place}.new, ptr {place}, align 8",
    ]
