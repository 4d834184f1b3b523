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
    """How many words (i64) a call of the stamped program writes: the number LEAD, as many stamps at the start, and one
    after each call, or without ``each`` one after the last."""
    return 1 + LEAD + (len(program.calls) if each else 1)


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

    def begin(self) -> list[str]:
        """How many stamps stand at the start, and these."""
        count = f"  store i64 {LEAD}, ptr %ticks, align 8"
        return [count, *(line for number in range(LEAD) for line in self.stamp(number))]

    def stamp(self, number: int) -> list[str]:
        """Writes down the counter."""
        return [
            *self.count(f"%t{number}"),
            f"  %q{number} = getelementptr inbounds i64, ptr %ticks, i64 {number + 1}",
            f"  store i64 %t{number}, ptr %q{number}, align 8",
        ]

    def sum_of(self, call: int) -> list[str]:
        """Stands at the head of the function: the time that a repeated call has taken so far."""
        return [f"  %g{call} = alloca i64, align 8", f"  store i64 0, ptr %g{call}, align 8"]

    def before_run(self, call: int) -> list[str]:
        """Stands before a repeated call."""
        return self.count(f"%g{call}.0")

    def after_run(self, call: int) -> list[str]:
        """Stands behind a repeated call."""
        return [
            *self.count(f"%g{call}.1"),
            f"  %g{call}.2 = sub i64 %g{call}.1, %g{call}.0",
            f"  %g{call}.3 = load i64, ptr %g{call}, align 8",
            f"  %g{call}.4 = add i64 %g{call}.3, %g{call}.2",
            f"  store i64 %g{call}.4, ptr %g{call}, align 8",
        ]

    def repeated(self, call: int) -> list[str]:
        """The stamp of a call of a loop that has ended, as if all its runs had followed each other."""
        number = LEAD + call
        return [
            f"  %h{call}.0 = getelementptr inbounds i64, ptr %ticks, i64 {number}",
            f"  %h{call}.1 = getelementptr inbounds i64, ptr %ticks, i64 {number + 1}",
            f"  %h{call}.2 = load i64, ptr %h{call}.0, align 8",
            f"  %h{call}.3 = load i64, ptr %g{call}, align 8",
            f"  %h{call}.4 = add i64 %h{call}.2, %h{call}.3",
            f"  store i64 %h{call}.4, ptr %h{call}.1, align 8",
        ]
