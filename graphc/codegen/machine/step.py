"""What an instruction does, as far as a proof asks: where it goes, what it leaves in registers and on the stack."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Line:
    """One instruction as it is written."""

    mnemonic: str
    operands: tuple[str, ...]
    number: int
    """Of its line in the text."""

    def __str__(self) -> str:
        return f"{self.mnemonic} {', '.join(self.operands)}".strip()


@dataclass(frozen=True)
class Slot:
    """Eight bytes of memory at a place that a register names."""

    base: str
    offset: int


Place = str | Slot
"""A register, by the name of all of it, or memory."""


@dataclass(frozen=True)
class Sum:
    """What a place holds, and a number."""

    place: Place | None
    """None: nothing but the number."""
    number: int = 0


@dataclass(frozen=True)
class Aligned:
    """What a place holds, made a multiple of a number by up to that number less one."""

    place: Place
    multiple: int


@dataclass(frozen=True)
class Both:
    """What two places hold, added up."""

    places: tuple[Place, Place]


Expression = Sum | Aligned | Both | None
"""None: not known."""


@dataclass(frozen=True)
class Comparison:
    """What a conditional branch looks at. Where ``bits`` are 0 only whether both are equal is known."""

    left: Expression
    right: Expression
    bits: int = 64


@dataclass(frozen=True, kw_only=True)
class Step:
    """One instruction. Its moves happen one after the other."""

    kind: str = "plain"
    """``plain``, ``call``, ``tail`` (a jump to another function), ``jump``, ``branch``, ``return``, ``stop`` (it goes
    nowhere), ``system`` (asks the system for something), ``lock`` (other threads see it happen at once)."""
    target: str = ""
    """A label or symbol; nothing where a register holds it."""
    condition: str = ""
    """Of a branch: ``ne eq lt le gt ge ult ule ugt uge``, or nothing where it is not known."""
    moves: tuple[tuple[Place, Expression], ...] = ()
    unknown: tuple[str, ...] = ()
    """Registers of which is not known what they hold behind it."""
    forgets_all: bool = False
    """Whether that is so for every register but the stack pointer."""
    compares: Comparison | None = None
    """Of values before the moves; of a branch what it looks at beside flags."""
    keeps_flags: bool = True
    stores: tuple[Slot, ...] = ()
    """Memory of an unknown length from there on that it writes; what ``moves`` write is not among it."""
    stores_somewhere: bool = False
    """Whether it writes memory of which no register and offset is known to this proof."""


class Reader(Protocol):
    """How the instructions of an architecture are read."""

    architecture: str
    comment: str
    """What begins a comment."""
    stack_pointer: str
    frame_pointer: str
    clobbered: tuple[str, ...]
    """Registers that a call may change."""
    return_bytes: int
    """Bytes that a call puts on the stack."""
    instruction_bytes: int
    """Bytes of every instruction; 0 where they differ."""
    filling_bytes: int
    """Bytes of an instruction that fills room before an aligned place, at least, but for the last one."""
    filler: re.Pattern[bytes] | None
    """Such an instruction, where they come in many lengths."""

    def step(self, line: Line, labels: frozenset[str]) -> Step:
        """What an instruction does; ``labels`` are those of its function."""
        ...


OPPOSITE = {
    **{"ne": "eq", "eq": "ne", "lt": "ge", "ge": "lt", "le": "gt", "gt": "le"},
    **{"ult": "uge", "uge": "ult", "ule": "ugt", "ugt": "ule"},
}
"""The condition that holds where one does not."""
