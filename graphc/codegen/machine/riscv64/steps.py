"""Instructions of RISC-V as steps: those of 64 bits, and of 32."""

from __future__ import annotations

import re

from graphc.base.records import dataclass
from graphc.codegen.machine.step import (
    Both,
    BranchCondition,
    Expression,
    InstructionEffects,
    Line,
    LineReader,
    Location,
    MemorySlot,
    Sum,
)

_SYSTEM = frozenset(["ecall", "wfi", "mret", "sret", "csrrw", "csrrs", "csrrc", "csrw", "csrs", "csrc"])
_LOCK = re.compile(r"^(lr|sc|amo\w+)\.")
_BRANCHES = {
    **{"beq": "eq", "bne": "ne", "blt": "lt", "bge": "ge", "bltu": "ult", "bgeu": "uge"},
    **{"bgt": "gt", "ble": "le", "bgtu": "ugt", "bleu": "ule"},
}
_TO_ZERO = {"beqz": "eq", "bnez": "ne", "bltz": "lt", "bgez": "ge", "blez": "le", "bgtz": "gt"}
_MEMORY = re.compile(r"^(-?\w*)\((\w+)\)$")
_STORES = re.compile(r"^(f?s[bhwd]|vs\w*)$")
_INTEGER = re.compile(r"^(zero|ra|sp|gp|tp|fp|[ast]\d+)$")


@dataclass(eq=False)
class Riscv(LineReader):
    """RISC-V with its standard calling convention."""

    architecture: str = "riscv64"
    word_bytes: int = 8
    comment: str = "#"
    stack_pointer: str = "sp"
    frame_pointer: str = "s0"
    clobbered: tuple[str, ...] = ("ra", *(f"a{n}" for n in range(8)), *(f"t{n}" for n in range(7)))
    return_bytes: int = 0
    instruction_bytes: int = 0
    filling_bytes: int = 2
    filler: re.Pattern[bytes] | None = None

    def step(self, line: Line, labels: frozenset[str]) -> InstructionEffects:
        name, operands = line.mnemonic, line.operands
        if name in _SYSTEM:
            return InstructionEffects(kind="system")
        if _LOCK.match(name):
            return InstructionEffects(kind="lock")
        if name in ("ebreak", "unimp"):
            return InstructionEffects(kind="stop")
        if name == "ret":
            return InstructionEffects(kind="return")
        if name in ("call", "jalr"):
            target = _symbol(operands[-1]) if name == "call" else ""
            return InstructionEffects(kind="call", target=target, instructions=2 if target else 1)
        if name == "tail":
            return InstructionEffects(kind="tail", target=_symbol(operands[0]), instructions=2)
        if name in ("j", "jr"):
            target = operands[0] if name == "j" else ""
            return InstructionEffects(kind="jump" if target in labels or not target else "tail", target=target)
        if name in _BRANCHES or name in _TO_ZERO:
            left, right = _value(operands[0]), _value(operands[1]) if name in _BRANCHES else Sum(None, 0)
            condition = _BRANCHES.get(name) or _TO_ZERO[name]
            return InstructionEffects(
                kind="branch",
                target=operands[-1],
                condition=condition,
                compares=BranchCondition(left, right, 8 * self.word_bytes),
            )
        return _plain(name, operands, "d" if self.word_bytes == 8 else "w")


def _symbol(text: str) -> str:
    return text.partition("@")[0]


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _value(text: str) -> Expression:
    if text == "zero":
        return Sum(None, 0)
    number = _number(text)
    return Sum(None, number) if number is not None else Sum(text) if _INTEGER.match(text) else None


def _plain(name: str, operands: tuple[str, ...], word: str) -> InstructionEffects:
    """Return the step of an instruction without jumps. ``word``: letter of loads and stores of a whole register."""
    memory = _MEMORY.match(operands[-1]) if operands else None
    if memory is not None:
        offset = _number(memory[1] or "0")
        return _access(name, operands[0], None if offset is None else MemorySlot(memory[2], offset), word)
    if not operands or not _INTEGER.match(operands[0]) or operands[0] == "zero":
        return InstructionEffects()
    return InstructionEffects(moves=((operands[0], _result(name, operands)),))


def _result(name: str, operands: tuple[str, ...]) -> Expression:
    if name in ("li", "mv"):
        return _value(operands[1])
    number = _number(operands[-1])
    if name == "lui" and number is not None:
        number = number << 12
        return Sum(None, number - (1 << 32) if number >= 1 << 31 else number)
    if name == "add":
        left, right = (_value(o) for o in operands[1:])
        if isinstance(left, Sum) and isinstance(right, Sum) and left.location and right.location:
            return Both((left.location, right.location))
    if name == "addi" and number is not None:
        source = _value(operands[1])
        return Sum(source.location, source.number + number) if isinstance(source, Sum) else None
    return None


def _access(name: str, value: str, slot: MemorySlot | None, word: str) -> InstructionEffects:
    if _STORES.match(name):
        if slot is None:
            return InstructionEffects(stores_somewhere=True)
        is_word = name == f"s{word}"
        return InstructionEffects(moves=((slot, _value(value)),)) if is_word else InstructionEffects(stores=(slot,))
    if not _INTEGER.match(value):
        return InstructionEffects()
    moves: tuple[tuple[Location, Expression], ...] = ((value, Sum(slot) if slot and name == f"l{word}" else None),)
    return InstructionEffects(moves=moves)


READER = Riscv()
