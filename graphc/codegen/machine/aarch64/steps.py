"""Instructions of aarch64 as steps."""

from __future__ import annotations

import re

from graphc.base.records import dataclass
from graphc.codegen.machine.step import (
    BranchCondition,
    Expression,
    InstructionEffects,
    Line,
    LineReader,
    Location,
    MemorySlot,
    Sum,
)

_CONDITIONS = {
    **{"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"},
    **{"lo": "ult", "cc": "ult", "ls": "ule", "hi": "ugt", "hs": "uge", "cs": "uge"},
}
_SYSTEM = frozenset(["svc", "hvc", "smc", "wfi", "wfe", "eret", "msr", "sys"])
_LOCK = re.compile(
    r"^(ld|st)l?a?xp?r[bh]?$|^ld(a|l|al)?xp$|^st(l)?xp$|^(casp?|swp|ld(add|clr|eor|set|[su](max|min)))\w*$"
)
_SETS_FLAGS = re.compile(r"^(cmp|cmn|tst|ccmp|ccmn|f(c)?cmpe?|adds|subs|ands|bics|adcs|sbcs|negs)$")
_ONLY_READ = re.compile(r"^(cmp|cmn|tst|ccmp|ccmn|fc?cmpe?|prfm|prfum|nop|hint|dmb|dsb|isb|yield|csdb)$")
_STORES = re.compile(r"^(st[pru]\w*|st[1-4]|stnp)$")
_MEMORY = re.compile(r"^\[(\w+)(?:,\s*#?(-?\w+))?\]$")


@dataclass(eq=False)
class Aarch64(LineReader):
    """aarch64 with its procedure call standard."""

    architecture: str = "aarch64"
    comment: str = "//"
    stack_pointer: str = "sp"
    frame_pointer: str = "x29"
    clobbered: tuple[str, ...] = tuple(f"x{n}" for n in (*range(19), 30))
    return_bytes: int = 0
    instruction_bytes: int = 4
    filling_bytes: int = 4
    filler: re.Pattern[bytes] | None = None

    def step(self, line: Line, labels: frozenset[str]) -> InstructionEffects:
        name, operands = line.mnemonic, line.operands
        if name in _SYSTEM and operands[:1] != ("FPCR",):
            return InstructionEffects(kind="system")
        if _LOCK.match(name):
            return InstructionEffects(kind="lock")
        if name in ("brk", "udf"):
            return InstructionEffects(kind="stop")
        if name == "ret":
            return InstructionEffects(kind="return")
        if name in ("bl", "blr"):
            return InstructionEffects(kind="call", target=operands[0] if name == "bl" else "", keeps_flags=False)
        if name in ("b", "br"):
            target = operands[0] if name == "b" else ""
            return InstructionEffects(kind="jump" if target in labels or not target else "tail", target=target)
        if name.startswith("b."):
            return InstructionEffects(kind="branch", target=operands[0], condition=_CONDITIONS.get(name[2:], ""))
        if name in ("cbz", "cbnz", "tbz", "tbnz"):
            return _tested(name, operands)
        return _plain(name, operands)


def _tested(name: str, operands: tuple[str, ...]) -> InstructionEffects:
    """Return the step of a branch that tests a register instead of the flags."""
    register = _register(operands[0])
    if name.startswith("t") or register is None:
        return InstructionEffects(kind="branch", target=operands[-1])
    bits = 64 if operands[0].startswith("x") else 32
    compares = BranchCondition(Sum(register), Sum(None, 0), bits)
    return InstructionEffects(
        kind="branch", target=operands[-1], condition="eq" if name == "cbz" else "ne", compares=compares
    )


def _register(text: str) -> str | None:
    """Return the full register of an operand; None for vectors, numbers and zero."""
    if text in ("sp", "wsp"):
        return "sp"
    return f"x{text[1:]}" if re.fullmatch(r"[xw]([12]?\d|30)", text) else None


def _number(text: str) -> int | None:
    try:
        return int(text.removeprefix("#"), 0)
    except ValueError:
        return None


def _value(text: str) -> Expression:
    if text in ("xzr", "wzr"):
        return Sum(None, 0)
    number = _number(text)
    if number is not None:
        return Sum(None, number)
    register = _register(text)
    return Sum(register) if register and text[0] in "xs" else None


def _plain(name: str, operands: tuple[str, ...]) -> InstructionEffects:
    positions = [i for i, o in enumerate(operands) if o.startswith("[")]
    if positions and not name.startswith("prf"):
        return _access(name, operands, positions[0])
    if _ONLY_READ.match(name):
        return InstructionEffects(compares=_compared(name, operands), keeps_flags=not _SETS_FLAGS.match(name))
    register = _register("".join(operands[:1]))
    if register is None:
        return InstructionEffects(keeps_flags=not _SETS_FLAGS.match(name))
    value, compares = _result(name, operands)
    return InstructionEffects(moves=((register, value),), compares=compares, keeps_flags=not _SETS_FLAGS.match(name))


def _compared(name: str, operands: tuple[str, ...]) -> BranchCondition | None:
    if name != "cmp" or len(operands) != 2:
        return None
    bits = 64 if operands[0].startswith("x") else 32
    left = _register(operands[0])
    number, register = _number(operands[1]), _register(operands[1])
    right = Sum(None, number) if number is not None else Sum(register) if register else _value(operands[1])
    return BranchCondition(Sum(left) if left else None, right, bits)


def _result(name: str, operands: tuple[str, ...]) -> tuple[Expression, BranchCondition | None]:
    wide = operands[0].startswith(("x", "sp"))
    if name == "mov" and len(operands) == 2:
        value = _value(operands[1])
        if isinstance(value, Sum) and value.location is None and not wide:
            value = Sum(None, value.number % (1 << 32))
        return value, None
    if name == "movk":
        return None, None
    if name not in ("add", "sub", "adds", "subs") or not wide:
        return None, None
    number, source = _number(operands[2]), _value(operands[1])
    if number is None or not isinstance(source, Sum) or source.location is None:
        return None, None
    if len(operands) > 3:
        shift = re.fullmatch(r"lsl #(\d+)", operands[3])
        if shift is None:
            return None, None
        number <<= int(shift[1])
    value = Sum(source.location, number if name.startswith("add") else -number)
    if name == "subs":
        return value, BranchCondition(Sum(source.location), Sum(None, number), 64)
    return value, BranchCondition(value, Sum(None, 0), 0) if name == "adds" else None


def _access(name: str, operands: tuple[str, ...], position: int) -> InstructionEffects:
    """Return the step of a load or store, with the update of its address register."""
    text, before = operands[position].removesuffix("!"), operands[position].endswith("!")
    match, behind = _MEMORY.match(text), operands[position + 1 :]
    base = _register(match[1]) if match else None
    offset = _number(match[2]) if match and match[2] else 0
    moves: list[tuple[Location, Expression]] = []
    if base and before:
        moves.append((base, None if offset is None else Sum(base, offset)))
        offset = 0
    slot = MemorySlot(base, offset) if base and offset is not None else None
    stores, somewhere = _effects(name, operands[:position], slot, moves)
    if behind and base is None:
        return InstructionEffects(forgets_all=True, stores=stores, stores_somewhere=somewhere)
    if behind and base:
        number = _number(behind[0])
        moves.append((base, None if number is None else Sum(base, number)))
    return InstructionEffects(moves=tuple(moves), stores=stores, stores_somewhere=somewhere)


def _effects(
    name: str, values: tuple[str, ...], slot: MemorySlot | None, moves: list[tuple[Location, Expression]]
) -> tuple[tuple[MemorySlot, ...], bool]:
    """Add loaded values, and stores of 64 bits, to the moves. Return the other stores."""
    is_full_width = name in ("str", "stur", "stp", "ldr", "ldur", "ldp")
    if not _STORES.match(name):
        for i, text in enumerate(values):
            register = _register(text)
            if register:
                is_known = slot is not None and is_full_width and text.startswith("x")
                moves.append((register, Sum(MemorySlot(slot.base, slot.offset + 8 * i)) if slot and is_known else None))
        return (), False
    if slot is None:
        return (), True
    if not is_full_width or any(v[0] not in "x" for v in values):
        return (slot,), False
    for i, text in enumerate(values):
        moves.append((MemorySlot(slot.base, slot.offset + 8 * i), _value(text)))
    return (), False


READER = Aarch64()
