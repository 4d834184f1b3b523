"""Instructions of x86-64 in AT&T syntax, as steps."""

from __future__ import annotations

import re

from graphc.base.records import dataclass
from graphc.codegen.machine.step import (
    Aligned,
    BranchCondition,
    Expression,
    InstructionEffects,
    Line,
    LineReader,
    Location,
    MemorySlot,
    Sum,
)

_WIDE = ("rax", "rbx", "rcx", "rdx", "rsi", "rdi", "rbp", "rsp", *(f"r{n}" for n in range(8, 16)))


def _register_names() -> dict[str, tuple[str, int]]:
    registers: dict[str, tuple[str, int]] = {}
    for name in _WIDE:
        registers[name] = name, 64
        if name[1].isdigit():
            registers |= {name + end: (name, bits) for end, bits in (("d", 32), ("w", 16), ("b", 8))}
            continue
        short = name[1:]
        registers[f"e{short}"], registers[short] = (name, 32), (name, 16)
        registers[short[0] + "l" if short.endswith("x") else short + "l"] = name, 8
        if short.endswith("x"):
            registers[short[0] + "h"] = name, 8
    return registers


_REGISTERS = _register_names()
"""Full register and number of bits, by the name of a register or a part of it."""
_FILLER = re.compile(rb"\x66*\x2e?\x0f\x1f(?:\x00|\x40.|\x44..|\x80.{4}|\x84.{5})|\x66*\x90", re.DOTALL)
"""Padding instructions (nops)."""
_MEMORY = re.compile(r"^(-?\w*)\(%(\w+)\)$")
_VECTOR = re.compile(r"%[xyz]?mm\d")
_CONDITIONS = {
    **{"e": "eq", "z": "eq", "ne": "ne", "nz": "ne", "l": "lt", "le": "le", "g": "gt", "ge": "ge"},
    **{"b": "ult", "c": "ult", "nae": "ult", "be": "ule", "na": "ule", "a": "ugt", "nbe": "ugt"},
    **{"ae": "uge", "nc": "uge", "nb": "uge"},
}
_SYSTEM = frozenset(
    [
        "syscall",
        "sysenter",
        "sysexit",
        "sysret",
        "int",
        "int3",
        "into",
        "hlt",
        "in",
        "out",
        "ins",
        "outs",
        "iret",
        "iretq",
    ]
)
_STOPS = frozenset({"ud2", "ud1"})
_COMPARES = re.compile(r"^v?(u?comis[sd]|ptest|testp[sd])$|^k(or)?test[bwdq]$")
_ONLY_READ = re.compile(r"^(cmp|test)[bwlq]$|^bt[wlq]?$|^prefetch\w*$|^nop[wlq]?$|^[sml]fence$|^v?ldmxcsr$")
_NO_FLAGS = re.compile(
    r"^(mov|lea|push|pop|set|cmov|nop|prefetch|not|bswap|rorx|s[ah][lr]x|mulx|pext|pdep|[slm]fence|v?(ld|st)mxcsr)"
)
_IMPLICIT = re.compile(r"^(i?mul|i?div)[bwlq]$")
_OWN = re.compile(
    r"^(add|sub|adc|sbb|and|or|xor|not|neg|sh[lr]|sa[lr]|ro[lr]|rc[lr]|imul|lea|bswap|bs[fr]|lzcnt|tzcnt|popcnt|andn|"
    r"bextr|bls\w+|rorx|s[ah][lr]x|pext|pdep|bzhi|sh[lr]d|inc|dec)[bwlq]?$|^(mov|cmov|set)\w+$"
)
"""Instructions that change only their last operand and the flags."""


@dataclass(eq=False)
class X86(LineReader):
    """x86-64 with the System V calling convention."""

    architecture: str = "x86_64"
    comment: str = "#"
    stack_pointer: str = "rsp"
    frame_pointer: str = "rbp"
    clobbered: tuple[str, ...] = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
    return_bytes: int = 8
    instruction_bytes: int = 0
    filling_bytes: int = 7
    filler: re.Pattern[bytes] | None = _FILLER

    def step(self, line: Line, labels: frozenset[str]) -> InstructionEffects:
        name, operands = line.mnemonic, line.operands
        if name.startswith("lock ") or (name.startswith("xchg") and any("(" in o for o in operands)):
            return InstructionEffects(kind="lock", keeps_flags=False)
        if name in _SYSTEM:
            return InstructionEffects(kind="system")
        if name in _STOPS:
            return InstructionEffects(kind="stop")
        if name in ("ret", "retq"):
            return InstructionEffects(kind="return")
        if name.startswith("j"):
            return _jump(name, operands[0], labels)
        if name in ("call", "callq"):
            indirect = operands[0].startswith("*")
            return InstructionEffects(kind="call", target="" if indirect else _symbol(operands[0]), keeps_flags=False)
        return _plain(name, operands)


def _symbol(operand: str) -> str:
    return operand.partition("@")[0]


def _jump(name: str, operand: str, labels: frozenset[str]) -> InstructionEffects:
    target = "" if operand.startswith("*") else _symbol(operand)
    if name in ("jmp", "jmpq"):
        return InstructionEffects(kind="jump" if target in labels or not target else "tail", target=target)
    return InstructionEffects(kind="branch", target=target, condition=_CONDITIONS.get(name[1:], ""))


def _plain(name: str, operands: tuple[str, ...]) -> InstructionEffects:
    if name in ("pushq", "popq"):
        return _push(operands[0]) if name == "pushq" else _pop(operands[0])
    if _VECTOR.search(" ".join(operands)) or name.startswith(("k", "vzero")) or _COMPARES.match(name):
        return _vector(name, operands)
    if name in ("stmxcsr", "vstmxcsr"):
        return _vector(name, operands)
    if name.startswith("rep "):
        return InstructionEffects(unknown=("rcx", "rsi", "rdi"), stores_somewhere=True)
    if _ONLY_READ.match(name):
        return InstructionEffects(compares=_compared(name, operands), keeps_flags=bool(_NO_FLAGS.match(name)))
    if _IMPLICIT.match(name) and (len(operands) == 1 or not name.startswith("imul")):
        return InstructionEffects(unknown=("rax", "rdx"), keeps_flags=False)
    if name in ("cqto", "cltd", "cltq", "cwtl"):
        return InstructionEffects(unknown=("rax", "rdx"))
    if not _OWN.match(name) or not operands:
        return InstructionEffects(forgets_all=True, keeps_flags=False, stores_somewhere=True)
    return _integer(name, operands)


def _vector(name: str, operands: tuple[str, ...]) -> InstructionEffects:
    """Return the effects of a vector instruction on integer registers, flags and memory."""
    if _COMPARES.match(name):
        return InstructionEffects(keeps_flags=False)
    last = operands[-1].partition("{")[0].strip() if operands else ""
    if "(" in last:
        if name.startswith(("vscatter", "vpscatter")):
            return InstructionEffects(stores_somewhere=True)
        slot = _memory(last)
        return InstructionEffects(stores=(slot,)) if slot else InstructionEffects(stores_somewhere=True)
    register = _REGISTERS.get(last.removeprefix("%"))
    return InstructionEffects(unknown=(register[0],) if register else ())


def _push(operand: str) -> InstructionEffects:
    slot = MemorySlot("rsp", 0)
    return InstructionEffects(moves=(("rsp", Sum("rsp", -8)), (slot, _value(operand, 64))))


def _pop(operand: str) -> InstructionEffects:
    # NOTE: a function restores the values that it saved; its caller counts on that.
    register = _REGISTERS.get(operand.removeprefix("%"))
    moves: list[tuple[Location, Expression]] = [(register[0], Sum(MemorySlot("rsp", 0)))] if register else []
    return InstructionEffects(moves=(*moves, ("rsp", Sum("rsp", 8))))


def _memory(operand: str) -> MemorySlot | None:
    match = _MEMORY.match(operand)
    if match is None or match[2] not in _WIDE:
        return None
    offset = _number(match[1] or "0")
    return None if offset is None else MemorySlot(match[2], offset)


def _number(text: str) -> int | None:
    try:
        return int(text, 0)
    except ValueError:
        return None


def _value(operand: str, bits: int) -> Expression:
    """Return the value of an operand, read as ``bits`` bits."""
    if operand.startswith("$"):
        number = _number(operand[1:])
        return None if number is None else Sum(None, number if bits == 64 else number % (1 << bits))
    if operand.startswith("%"):
        register = _REGISTERS.get(operand[1:])
        return Sum(register[0]) if register and register[1] == bits == 64 else None
    slot = _memory(operand)
    return Sum(slot) if slot and bits == 64 else None


def _bits(name: str, operands: tuple[str, ...]) -> int:
    for operand in reversed(operands):
        register = _REGISTERS.get(operand.removeprefix("%"))
        if register:
            return register[1]
    return {"b": 8, "w": 16, "l": 32, "q": 64}.get(name[-1], 0)


def _compared(name: str, operands: tuple[str, ...]) -> BranchCondition | None:
    if not name.startswith(("cmp", "test")):
        return None
    bits = _bits(name, operands)
    right, left = (_compared_value(o, bits) for o in operands)
    if name.startswith("test"):
        return BranchCondition(left, Sum(None, 0), bits) if operands[0] == operands[1] else None
    return BranchCondition(left, right, bits)


def _compared_value(operand: str, bits: int) -> Expression:
    """Return the same as ``_value``, but take half of a register as all of it: the comparison itself is narrow."""
    register = _REGISTERS.get(operand.removeprefix("%")) if operand.startswith("%") else None
    if register and register[1] == bits == 32:
        return Sum(register[0])
    return _value(operand, bits)


def _integer(name: str, operands: tuple[str, ...]) -> InstructionEffects:
    target, bits = operands[-1], _bits(name, operands)
    location: Location | None
    if target.startswith("%"):
        register = _REGISTERS.get(target[1:])
        location = register[0] if register else None
    else:
        location = _memory(target)
        if location is None:
            return InstructionEffects(stores_somewhere=True, keeps_flags=bool(_NO_FLAGS.match(name)))
    if location is None:
        return InstructionEffects(keeps_flags=False, forgets_all=True)
    value, compares = _result(name, operands, location, bits)
    if bits < 64 and (bits < 32 or isinstance(location, MemorySlot)):
        value = None  # the upper bits keep their old value
    return InstructionEffects(moves=((location, value),), compares=compares, keeps_flags=bool(_NO_FLAGS.match(name)))


def _result(
    name: str, operands: tuple[str, ...], location: Location, bits: int
) -> tuple[Expression, BranchCondition | None]:
    """Return the value left in the last operand, and the comparison in the flags."""
    stem, first = name.rstrip("bwlq") if name[:3] not in ("sub", "shl", "rol", "sal") else name[:3], operands[0]
    if stem in ("mov", "movabs") and len(operands) == 2:
        return _value(first, bits), None
    if stem == "xor" and len(operands) == 2 and operands[0] == operands[1]:
        return Sum(None, 0), None
    if stem == "lea":
        slot = _memory(first)
        return (Sum(slot.base, slot.offset) if slot and bits == 64 else None), None
    number = _number(first[1:]) if first.startswith("$") else None
    step = {"inc": 1, "dec": -1}.get(stem) if len(operands) == 1 else None
    if number is not None and stem in ("add", "sub") and len(operands) == 2:
        step = number if stem == "add" else -number
    if step is not None and bits == 64:
        value = Sum(location, step)
        if stem == "sub":
            return value, BranchCondition(Sum(location), Sum(None, -step), bits)
        return value, BranchCondition(value, Sum(None, 0), 0)
    if stem == "and" and number is not None and location == "rsp" and number < 0:
        return Aligned(location, -number), None
    return None, None


READER = X86()
