"""Semantics of one instruction for proofs: control flow, and effects on registers and the stack."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from graphc.base.records import dataclass


@dataclass(frozen=True)
class Line:
    """One instruction of assembly."""

    mnemonic: str
    operands: tuple[str, ...]
    number: int
    """Line number in the text."""

    def __str__(self) -> str:
        return f"{self.mnemonic} {', '.join(self.operands)}".strip()


@dataclass(frozen=True)
class MemorySlot:
    """A word of memory at an offset from a register, as long as a register for integers."""

    base: str
    offset: int


Location = str | MemorySlot
"""A register, by its full-width name, or memory."""


@dataclass(frozen=True)
class Sum:
    """Value of a location plus a number."""

    location: Location | None
    """None for the number alone."""
    number: int = 0


@dataclass(frozen=True)
class Aligned:
    """Value of a location, changed to a multiple of ``multiple`` by at most ``multiple - 1``."""

    location: Location
    multiple: int


@dataclass(frozen=True)
class Both:
    """Sum of the values of two locations."""

    locations: tuple[Location, Location]


@dataclass(frozen=True)
class UpperHalf:
    """Number of 32 bits: the lower 16 bits of a location, below these upper ones."""

    location: Location
    number: int


Expression = Sum | Aligned | Both | UpperHalf | None
"""None: unknown."""


@dataclass(frozen=True)
class BranchCondition:
    """Operands of a conditional branch. With ``bits`` 0, only equality is known."""

    left: Expression
    right: Expression
    bits: int = 64


RETURN = "return"
"""Target of a branch that returns."""


@dataclass(frozen=True, kw_only=True)
class InstructionEffects:
    """Effects of one instruction. Its moves happen one after the other."""

    kind: str = "plain"
    """``plain``, ``call``, ``tail`` (a jump to another function), ``jump``, ``branch``, ``return``, ``stop`` (ends the
    program), ``system`` (a system call or privileged instruction), ``lock`` (an atomic operation), ``unknown`` (an
    instruction that the reader does not know)."""
    target: str = ""
    """A label or symbol; RETURN for a return under a condition; empty if a register holds the target."""
    condition: str = ""
    """Condition of a branch: ``ne eq lt le gt ge ult ule ugt uge``, or empty if unknown."""
    moves: tuple[tuple[Location, Expression], ...] = ()
    unknown: tuple[str, ...] = ()
    """Registers with unknown values afterwards."""
    forgets_all: bool = False
    """Whether every register but the stack pointer has an unknown value afterwards."""
    compares: BranchCondition | None = None
    """Comparison of values before the moves: of a branch, its own condition instead of the flags."""
    keeps_flags: bool = True
    stores: tuple[MemorySlot, ...] = ()
    """Start of memory that it writes, of unknown length; without the slots in ``moves``."""
    stores_somewhere: bool = False
    """Whether it writes memory at an address that the proof cannot express."""
    instructions: int = 1
    """Number of instructions that the assembler makes of it."""


class Reader(Protocol):
    """Decoder of the instructions of an architecture."""

    architecture: str
    comment: str
    """Start of a comment."""
    stack_pointer: str
    frame_pointer: str
    clobbered: tuple[str, ...]
    """Registers that a call may change."""
    word_bytes: int
    """Bytes of a register for integers."""
    return_bytes: int
    """Bytes that a call pushes on the stack."""
    instruction_bytes: int
    """Bytes of every instruction; 0 where they differ."""
    filling_bytes: int
    """Minimum bytes of a padding instruction before an aligned location, except for the last one."""
    filler: re.Pattern[bytes] | None
    """Pattern of padding instructions, if they come in many lengths."""

    def steps(self, lines: Sequence[Line], labels: frozenset[str]) -> tuple[InstructionEffects, ...]:
        """Return the effects of a function's instructions. ``labels`` are the labels of the function."""
        ...

    def reads(self, line: Line, register: str) -> bool:
        """Check whether an instruction may read a register."""
        ...


class LineReader:
    """Decoder of instructions whose effects do not depend on the ones before."""

    word_bytes: int = 8

    def step(self, line: Line, labels: frozenset[str]) -> InstructionEffects:
        """Return the effects of an instruction. ``labels`` are the labels of its function."""
        raise NotImplementedError

    def steps(self, lines: Sequence[Line], labels: frozenset[str]) -> tuple[InstructionEffects, ...]:
        """Return the effects of a function's instructions."""
        return tuple(self.step(line, labels) for line in lines)

    def reads(self, line: Line, register: str) -> bool:
        """Check whether an instruction may read a register: without a rule of the processor, each may."""
        return True


def signed_word(number: int) -> int:
    """Return the number from -2**31 to 2**31 - 1 with the same lower 32 bits."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


OPPOSITE = {
    **{"ne": "eq", "eq": "ne", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"},
    **{"ult": "uge", "uge": "ult", "ule": "ugt", "ugt": "ule"},
}
"""Negation of each condition."""
