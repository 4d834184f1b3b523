"""Instructions of microcontrollers (Thumb-2, Armv7E-M and Armv8.1-M) as steps, as LLVM prints them.

Source: Arm Architecture Reference Manuals for Armv7-M and Armv8-M, chapter "Instruction details".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from graphc.base.records import dataclass
from graphc.codegen.machine.step import (
    RETURN,
    Aligned,
    BranchCondition,
    Expression,
    InstructionEffects,
    Line,
    Location,
    MemorySlot,
    Sum,
    UpperHalf,
    signed_word,
)

_WORD = 4
_CONDITIONS = {
    **{"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"},
    **{"lo": "ult", "cc": "ult", "ls": "ule", "hi": "ugt", "hs": "uge", "cs": "uge"},
    # The sign of a difference decides like an order, where no number is negative; no others are counted.
    **{"mi": "lt", "pl": "ge", "vs": "", "vc": ""},
}
_THEN = re.compile(r"^it[te]{0,3}$")
_BRANCH = re.compile(rf"^b({'|'.join(_CONDITIONS)})$")
_SYSTEM = re.compile(
    r"^(svc|smc|hvc|bkpt|wf[ei]|sev|yield|cps\w*|setend|m[cr]rr?2?|mrc2?|cdp2?|(ld|st)c2?l?|tt\w*|sg|bxns)$"
)
_LOCK = re.compile(r"^(ldrex|strex|ldaex|stlex|lda|stl|clrex)[bhd]?$")
_STOP = frozenset(["udf", "trap"])
_READ_ONLY = frozenset(
    ["cmp", "cmn", "tst", "teq", "nop", "dmb", "dsb", "isb", "csdb", "pld", "pldw", "pli", "vmsr", "vcmp", "vcmpe"]
)
_SETS_FLAGS = re.compile(
    r"^(cm[pn]|tst|teq|(add|adc|sub|sbc|rsb|and|orr|eor|bic|orn|mov|mvn|mul|lsl|lsr|asr|ror|rrx)s)$"
)
_TWO_RESULTS = re.compile(r"^([su]mull|[su]mlal|sml[as]ldx?|smlal[bt][bt]|umaal)s?$")
_ONE_RESULT = re.compile(
    r"^((mov|mvn|adc|add|sbc|sub|rsb|and|bic|eor|orr|orn|lsl|lsr|asr|ror|rrx|mul)s?|addw|subw|movw|movt|adr|ml[as]|[su]div"
    r"|bf[ci]|[su]bfx|clz|rbit|rev(16|sh)?|pkh(bt|tb)|[su]xta?(b|h|b16)|[su]sat(16)?|usada?8|sel|qd?(add|sub)|mrs"
    r"|[su]?[hq]?(add|sub)(8|16)|[suq]h?(asx|sax)|sm(la|ul)[bt][bt]|sm(la|ul)w[bt]|smm(la|ls|ul)r?|sm(la|ls|ua|us)dx?"
    r"|csel|cset|csetm|csinc|csinv|csneg|cinc|cinv|cneg"
    r"|v(mov|mvn|mrs|abs|neg|sqrt|add|sub|mul|nmul|div|ml[as]|nml[as]|fm[as]|fnm[as]|cvt[abmnprtx]?|rint[anmpzrx]"
    r"|(max|min)nm|sel(eq|ge|gt|vs)|movx|ins))$"
)
"""Instructions that change nothing but their first operand and the flags."""
_REGISTER = re.compile(r"^(r1?\d|sp|lr|pc)$")
_WORDS = re.compile(r"\w+")
_VECTOR = re.compile(r"^[sdq]\d+$")
_MEMORY = re.compile(r"^\[(\w+)(?:,\s*(.+))?\]$")
_LOAD_STORE = re.compile(r"^v?(ld|st)r(d|s?[bh])?$")
_PART = re.compile(r"^(ldrs?|str)[bh]$")
"""Loads and stores of less than a word."""
_MULTIPLE = re.compile(r"^(v?)(ldm|stm|push|pop)(ia|fd|ea|db)?$")
_BYTES_OF = {"s": 4, "d": 8, "q": 16}


@dataclass(eq=False)
class Thumb:
    """Thumb-2 with the standard calling convention of Arm."""

    architecture: str = "thumb"
    comment: str = "@"
    stack_pointer: str = "sp"
    frame_pointer: str = ""
    clobbered: tuple[str, ...] = ("r0", "r1", "r2", "r3", "r12", "lr")
    word_bytes: int = _WORD
    return_bytes: int = 0
    instruction_bytes: int = 0
    filling_bytes: int = 2
    filler: re.Pattern[bytes] | None = re.compile(rb"\x00\xbf|\xaf\xf3\x00\x80")

    def steps(self, lines: Sequence[Line], labels: frozenset[str]) -> tuple[InstructionEffects, ...]:
        """Return the effects of a function's instructions. Those that ``it`` makes conditional may happen or not."""
        effects: list[InstructionEffects] = []
        position = 0
        while position < len(lines):
            line = lines[position]
            count = len(line.mnemonic) - 1 if _THEN.match(line.mnemonic) else 0
            inner = lines[position + 1 : position + 1 + count]
            block = [self.step(_unconditional(x), labels) for x in inner]
            conditions = [_condition(x) for x in inner]
            return_if = conditions[-1] if block and block[-1].kind == "return" else None
            effects.append(self.step(line, labels))
            effects += [_perhaps(step, c, c == return_if) for step, c in zip(block, conditions, strict=True)]
            position += 1 + count
        return tuple(effects)

    def reads(self, line: Line, register: str) -> bool:
        """Check whether an instruction may read a register. Loads only write their first operand, and so do
        instructions with three operands or more, except those that change some of its bits."""
        name, operands = line.mnemonic.partition(".")[0], line.operands
        is_load = _LOAD_STORE.match(name) and "ld" in name
        if is_load or (_ONE_RESULT.match(name) and len(operands) > 2 and not name.startswith("bf")):
            operands = operands[1:]
        return any(register in _WORDS.findall(operand) for operand in operands)

    def step(self, line: Line, labels: frozenset[str]) -> InstructionEffects:
        name, operands = line.mnemonic.partition(".")[0], line.operands
        if name == "msr" and operands[0].startswith("apsr"):
            return InstructionEffects(keeps_flags=False)
        if _SYSTEM.match(name) or name == "msr" or (name == "mrs" and operands[1] != "apsr"):
            return InstructionEffects(kind="system")
        if _LOCK.match(name):
            return InstructionEffects(kind="lock")
        if name in _STOP:
            return InstructionEffects(kind="stop")
        return _jump(name, operands, labels) or _plain(name, operands)


def _unconditional(line: Line) -> Line:
    """Return an instruction after ``it`` without its condition."""
    name, dot, rest = line.mnemonic.partition(".")
    return replace(line, mnemonic=name[:-2] + dot + rest)


def _condition(line: Line) -> str:
    return _CONDITIONS[line.mnemonic.partition(".")[0][-2:]]


def _perhaps(step: InstructionEffects, condition: str, returns: bool) -> InstructionEffects:
    """Return the effects of an instruction that happens under a condition. ``returns``: the same condition ends in a
    return, so that nothing but its stores matters to the code after it."""
    if step.kind == "return":
        return InstructionEffects(kind="branch", target=RETURN, condition=condition)
    kind = {"tail": "call" if step.target else "tail", "jump": "branch"}.get(step.kind, step.kind)
    moves = tuple((where, None) for where, _ in step.moves if isinstance(where, MemorySlot) or not returns)
    keeps = step.keeps_flags and step.compares is None
    return replace(step, kind=kind, condition="", moves=moves, compares=None, keeps_flags=keeps)


def _jump(name: str, operands: tuple[str, ...], labels: frozenset[str]) -> InstructionEffects | None:
    """Return the step of an instruction that does not continue with the next one; None for others."""
    if name in ("bl", "blx"):
        target = "" if _register(operands[0]) else operands[0]
        return InstructionEffects(kind="call", target=target, keeps_flags=False)
    if name == "bx":
        return InstructionEffects(kind="return" if operands[0] == "lr" else "tail")
    if name == "b":
        return InstructionEffects(kind="jump" if operands[0] in labels else "tail", target=operands[0])
    if name in ("tbb", "tbh"):
        return InstructionEffects(kind="tail")
    if branch := _BRANCH.match(name):
        if operands[0] not in labels:  # a call at the end of a function, where a condition holds
            return InstructionEffects(kind="call", target=operands[0])
        return InstructionEffects(kind="branch", target=operands[0], condition=_CONDITIONS[branch[1]])
    if name in ("cbz", "cbnz"):
        compares = BranchCondition(Sum(operands[0]), Sum(None, 0), 32)
        return InstructionEffects(
            kind="branch", target=operands[1], condition="eq" if name == "cbz" else "ne", compares=compares
        )
    return _counted_loop(name, operands)


def _counted_loop(name: str, operands: tuple[str, ...]) -> InstructionEffects | None:
    """Return the step of an instruction of low-overhead loops, whose register ``lr`` counts down; None for others."""
    if name == "dls":
        return InstructionEffects(moves=(("lr", Sum(operands[1])),))
    if name == "wls":
        compares = BranchCondition(Sum(operands[1]), Sum(None, 0), 32)
        moves: tuple[tuple[Location, Expression], ...] = (("lr", Sum(operands[1])),)
        return InstructionEffects(kind="branch", target=operands[2], condition="eq", compares=compares, moves=moves)
    if name == "le" and len(operands) == 1:
        return InstructionEffects(kind="jump", target=operands[0])
    if name == "le":
        compares = BranchCondition(Sum("lr"), Sum(None, 1), 32)
        moves = (("lr", Sum("lr", -1)),)
        return InstructionEffects(kind="branch", target=operands[1], condition="ugt", compares=compares, moves=moves)
    return None


# ---- operands


def _register(text: str) -> str | None:
    """Return a register for integers; None for other operands."""
    return text if _REGISTER.match(text) else None


def _number(text: str) -> int | None:
    try:
        return signed_word(int(text.removeprefix("#"), 0)) if text.startswith("#") else None
    except ValueError:
        return None


def _value(text: str) -> Expression:
    number = 0 if text == "zr" else _number(text)
    if number is not None:
        return Sum(None, number)
    register = _register(text)
    return Sum(register) if register and register != "pc" else None


def _list(text: str) -> list[str]:
    """Return the registers of a list in braces."""
    return [name.strip() for name in text.strip("{}").split(",")]


def _bytes(register: str) -> int:
    return _BYTES_OF.get(register[0], _WORD) if _VECTOR.match(register) else _WORD


# ---- instructions that continue with the next one


def _plain(name: str, operands: Sequence[str]) -> InstructionEffects:
    if multiple := _MULTIPLE.match(name):
        return _multiple(multiple[2], multiple[3] or "", operands)
    if _LOAD_STORE.match(name):
        return _access(name, operands)
    keeps_flags = not _SETS_FLAGS.match(name) and "APSR_nzcv" not in operands
    if name in _READ_ONLY or _THEN.match(name):
        return InstructionEffects(compares=_compared(name, operands), keeps_flags=keeps_flags)
    if "pc" in operands[:1]:
        return InstructionEffects(kind="tail")
    registers = [r for r in operands[:2] if _register(r)]
    if _TWO_RESULTS.match(name) or (name == "vmov" and len(operands) > 2 and len(registers) == 2):
        return InstructionEffects(unknown=tuple(registers), keeps_flags=keeps_flags)
    if not _ONE_RESULT.match(name):
        return InstructionEffects(kind="unknown")
    if _register(operands[0]) is None:
        return InstructionEffects(keeps_flags=keeps_flags)
    value, compares = _result(name, operands)
    return InstructionEffects(moves=((operands[0], value),), compares=compares, keeps_flags=keeps_flags)


def _compared(name: str, operands: Sequence[str]) -> BranchCondition | None:
    if len(operands) != 2 or name not in ("cmp", "cmn"):
        return None
    left, right = _value(operands[0]), _value(operands[1])
    if name == "cmn":
        number = _number(operands[1])
        right = None if number is None else Sum(None, -number)
    return BranchCondition(left, right, 32)


def _result(name: str, operands: Sequence[str]) -> tuple[Expression, BranchCondition | None]:
    """Return the value of the first operand afterwards, and the comparison that the flags remember."""
    plain = name.removesuffix("s")
    if plain in ("mov", "movw") and len(operands) == 2:
        return _value(operands[1]), None
    if plain == "mvn" and (number := _number(operands[-1])) is not None:
        return Sum(None, ~number), None
    if name == "movt":
        number = _number(operands[1])
        return None if number is None else UpperHalf(operands[0], number), None
    if name == "bfc" and operands[1] == "#0":
        return Aligned(operands[0], 1 << (_number(operands[2]) or 0)), None
    if plain not in ("add", "sub", "addw", "subw") or len(operands) > 3:
        return None, None
    number, source = _number(operands[-1]), _register(operands[-2])
    if number is None or source is None or source == "pc":
        return None, None
    value = Sum(source, number if plain.startswith("add") else -number)
    if name == "subs":
        return value, BranchCondition(Sum(source), Sum(None, number), 32)
    return value, BranchCondition(value, Sum(None, 0), 0) if name == "adds" else None


# ---- memory


def _access(name: str, operands: Sequence[str]) -> InstructionEffects:
    """Return the step of a load or store, with the update of its address register."""
    position = next((i for i, o in enumerate(operands) if o.startswith("[")), -1)
    values = operands[:position] if position > 0 else operands[: 2 if name == "ldrd" else 1]
    moves: list[tuple[Location, Expression]] = []
    slot: MemorySlot | None = None
    if position > 0:
        text, before, behind = operands[position], operands[position].endswith("!"), operands[position + 1 :]
        memory = _MEMORY.match(text.removesuffix("!"))
        base, offset = (memory[1], _number(memory[2]) if memory[2] else 0) if memory else ("", None)
        slot = MemorySlot(base, offset) if offset is not None and base != "pc" else None
        after = _number(behind[0]) if behind else offset if before else 0
        if before or behind:
            update = (base, None if after is None else Sum(base, after))
            if before:
                moves.append(update)
                slot = slot and MemorySlot(base, 0)
            return _transfer(name, values, slot, moves, [] if before else [update])
    return _transfer(name, values, slot, moves, [])


def _transfer(
    name: str,
    values: Sequence[str],
    slot: MemorySlot | None,
    before: list[tuple[Location, Expression]],
    after: list[tuple[Location, Expression]],
) -> InstructionEffects:
    """Return the step that moves registers from or to neighbouring words, with moves before and after it."""
    is_store, is_part = "st" in name or name == "push", _PART.match(name) is not None
    if is_store and slot is None:
        return InstructionEffects(moves=(*before, *after), stores_somewhere=True)
    moves: list[tuple[Location, Expression]] = []
    offset = 0
    for register in values:
        for word in range(0, _bytes(register), _WORD):
            place = slot and MemorySlot(slot.base, slot.offset + offset + word)
            whole = bool(_register(register)) and not is_part
            if is_store and place:
                moves.append((place, _value(register) if whole else None))
            elif not is_store and _register(register):
                moves.append((register, Sum(place) if place and whole else None))
        offset += _bytes(register)
    if not is_store and "pc" in values:
        return InstructionEffects(kind="return" if slot and slot.base == "sp" else "tail", moves=(*before, *after))
    if not is_store and slot and slot.base in values:  # the last load changes the base of the others
        moves.sort(key=lambda move: move[0] == slot.base)
    return InstructionEffects(moves=(*before, *moves, *after))


def _multiple(name: str, mode: str, operands: Sequence[str]) -> InstructionEffects:
    """Return the step of an instruction that loads or stores a list of registers."""
    is_stack = name in ("push", "pop")
    base, registers = "sp" if is_stack else operands[0].removesuffix("!"), _list(operands[-1])
    size = sum(map(_bytes, registers))
    update = is_stack or operands[0].endswith("!")
    down = name == "push" or mode == "db"
    if not down:
        after: list[tuple[Location, Expression]] = [(base, Sum(base, size))] if update else []
        return _transfer(name, registers, MemorySlot(base, 0), [], after)
    if update:
        return _transfer(name, registers, MemorySlot(base, 0), [(base, Sum(base, -size))], [])
    return _transfer(name, registers, MemorySlot(base, -size), [], [])


READER = Thumb()
