"""Symbolic values of registers and stack slots in a function: a base plus a number.

Two values with the same base differ by the difference of their numbers, whatever the base is. A base is the value of a
register at entry, an unknown result of an instruction, or a join of several paths.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import field
from typing import Any

from graphc.base.records import dataclass
from graphc.codegen.machine.step import (
    Aligned,
    Both,
    Expression,
    InstructionEffects,
    Location,
    MemorySlot,
    Reader,
    Sum,
    UpperHalf,
    signed_word,
)
from graphc.codegen.proof.flow import Flow

Value = tuple[Any, int]
"""(base, number); base None means that the value is the number itself."""
FLAGS = "flags"
"""Key of the flags, with a value (left, right, bits), among the registers."""
WIDENING_LIMIT = 300
"""Visits of a block before a join widens to unknown."""
VECTOR = 64
"""Bytes of the longest store of a vector."""
_WORDS, _MEMORY, _OFFSET = re.compile(r"\w+"), re.compile(r"[\[(]"), re.compile(r"-?\d+(?=\()")


@dataclass
class State:
    """Values of all locations between two instructions. Unlisted locations have their value at entry."""

    values: dict[Any, Any] = field(default_factory=dict)

    def of(self, key: Any) -> Any:
        """Return the value of a location."""
        return self.values.get(key, (("entry", key), 0))


@dataclass
class Values:
    """Values of one function, computed by ``find``."""

    flow: Flow
    machine: Reader
    escaped: bool = False
    """Whether another register than stack and frame pointer holds a stack address, and not only temporarily. Any store
    may then change the stack."""
    naming: frozenset[int] = frozenset()
    """Numbers of the instructions that name the stack or frame pointer."""
    entering: dict[int, State] = field(default_factory=dict)
    """State before each reachable block."""
    leaving: dict[int, State] = field(default_factory=dict)

    def find(self) -> Values:
        """Analyze the blocks until nothing changes."""
        lines = enumerate(self.flow.function.lines)
        self.naming = frozenset(n for n, line in lines if any(map(self._named_pointers, line.operands)))
        while True:
            before = self.escaped
            self._run()
            if self.escaped == before:
                return self

    def _run(self) -> None:
        self.entering, self.leaving = {0: State()}, {}
        visits: dict[int, int] = {}
        pending = [0]
        while pending:
            block = min(pending, key=self.flow.order.__getitem__)
            pending.remove(block)
            visits[block] = visits.get(block, 0) + 1
            state = State(dict(self.entering[block].values))
            for _ in self.walk(block, state):
                pass
            self.leaving[block] = state
            for other in dict.fromkeys(self.flow.after[block]):
                if self._join(other, visits.get(other, 0) >= WIDENING_LIMIT) and other not in pending:
                    pending.append(other)

    def _join(self, block: int, final: bool) -> bool:
        """Join the states of all known predecessors of a block; return whether that changed anything. With ``final``, a
        value stays unknown once it has differed, which guarantees termination."""
        states = [self.leaving[b] for b in self.flow.before[block] if b in self.leaving]
        if block == 0:
            states.append(State())
        old, new = self.entering.get(block), State()
        for key in dict.fromkeys(k for incoming in (*states, *([old] if old else ())) for k in incoming.values):
            new.values[key] = self._joined(
                block, key, {incoming.of(key) for incoming in states}, old if final else None
            )
        self.entering[block] = new
        return old is None or old.values != new.values

    def _joined(self, block: int, key: Any, values: set[Any], old: State | None) -> Any:
        if key == FLAGS:
            return values.pop() if len(values) == 1 else None
        joined = (("join", block, key), 0)
        # NOTE: a value that a loop passes through unchanged does not affect the join.
        values = values - {joined} | ({old.of(key)} if old is not None else set())
        return values.pop() if len(values) == 1 else joined

    def walk(self, block: int, state: State) -> Iterator[tuple[int, InstructionEffects]]:
        """Yield each instruction of a block with its number, while ``state`` holds the values before it. Afterwards
        ``state`` holds the values after the block."""
        for number in self.flow.span(block):
            step = self.flow.steps[number]
            yield number, step
            self._apply(number, step, state)

    # ---- one instruction

    def _apply(self, number: int, step: InstructionEffects, state: State) -> None:
        flags = self._flags(step, state)
        self.escaped |= bool(self.exposed(number, state))
        for i, (location, expression) in enumerate(step.moves):
            value = self.value(expression, state, (number, i))
            if isinstance(location, MemorySlot):
                self.escaped |= is_on_stack(value)
                self._store(self.address(location, state), value, state, number)
            else:
                own = location in (self.machine.stack_pointer, self.machine.frame_pointer)
                if is_on_stack(value) and not own and not self.escaped:
                    self.escaped = not self._is_temporary(number, location)
                state.values[location] = value
        for slot in step.stores:
            self._store(self.address(slot, state), None, state, number)
        if step.stores_somewhere or step.kind == "call":
            self._store(None, None, state, number)
        unknown = step.unknown if step.kind != "call" else self.machine.clobbered
        for register in self._all(state) if step.forgets_all else unknown:
            state.values[register] = (("unknown", number, register), 0)
        if step.compares is not None or not step.keeps_flags:
            state.values[FLAGS] = flags

    def exposed(self, number: int, state: State) -> list[int]:
        """Return the depths of stack addresses to which an instruction adds an unknown number, to store there or to
        keep the sum in a register."""
        depths = list[int]()
        if number not in self.naming:
            return depths
        line, step = self.flow.function.lines[number], self.flow.steps[number]
        unknown = [e for where, e in step.moves if isinstance(where, str) and self.value(e, state, None) is None]
        for operand in line.operands:
            is_sum = not _MEMORY.search(operand) or line.mnemonic.startswith("lea")
            if not step.stores_somewhere and not (is_sum and unknown):
                continue
            offset = _OFFSET.match(operand)
            pointers = [self._register(name, state) for name in self._named_pointers(operand)]
            depths += [depth(p) - (int(offset[0]) if offset else 0) for p in pointers if is_on_stack(p)]
        return depths

    def _named_pointers(self, operand: str) -> set[str]:
        return {self.machine.stack_pointer, self.machine.frame_pointer}.intersection(_WORDS.findall(operand))

    def _is_temporary(self, number: int, register: str) -> bool:
        """Check whether a stack address that an instruction puts into a register is only the base of words at constant
        offsets in the same block, and every path overwrites the register before another instruction reads it."""
        flow = self.flow
        block = bisect_right(flow.starts, number) - 1
        own = range(number + 1, flow.span(block).stop)
        visited, pending = set[int](), [(block, own)]
        while pending:
            block, span = pending.pop()
            for i in span:
                step, is_read = flow.steps[i], self.machine.reads(flow.function.lines[i], register)
                if step.kind in ("call", "tail") or (is_read and not _is_followed(step, register, span is own)):
                    return False
                if any(location == register for location, _ in step.moves):
                    break
            else:
                pending += [(b, flow.span(b)) for b in flow.after[block] if b not in visited]
                visited.update(flow.after[block])
        return True

    def _all(self, state: State) -> list[str]:
        preserved = {self.machine.stack_pointer, FLAGS}
        return [*self.machine.clobbered, *(k for k in state.values if isinstance(k, str) and k not in preserved)]

    def _flags(self, step: InstructionEffects, state: State) -> Any:
        comparison = step.compares
        if comparison is None:
            return None
        left, right = (self.value(x, state, None) for x in (comparison.left, comparison.right))
        return None if left is None or right is None else (left, right, comparison.bits)

    def compared(self, step: InstructionEffects, state: State) -> Any:
        """Return the comparison of a branch as (left, right, bits); None if unknown."""
        return self._flags(step, state) if step.compares is not None else state.values.get(FLAGS)

    def value(self, expression: Expression, state: State, origin: Any) -> Any:
        """Return the value of an expression; if it is unknown, a new base named ``origin``."""
        if isinstance(expression, Sum):
            if expression.location is None:
                return None, expression.number
            operand = self._content(expression.location, state)
            if operand is not None:
                return operand[0], operand[1] + expression.number
        if isinstance(expression, Both):
            first, second = (self._content(location, state) for location in expression.locations)
            if first is not None and second is not None and None in (first[0], second[0]):
                return second[0] if first[0] is None else first[0], first[1] + second[1]
        if isinstance(expression, Aligned):
            operand = self._content(expression.location, state)
            if is_on_stack(operand):
                return ("stack", origin, depth(operand) + expression.multiple - 1), 0
        if isinstance(expression, UpperHalf):
            operand = self._content(expression.location, state)
            if operand is not None and operand[0] is None:
                return None, signed_word(expression.number << 16 | operand[1] & 0xFFFF)
        return None if origin is None else (("unknown", *origin), 0)

    def _content(self, location: Location, state: State) -> Any:
        if not isinstance(location, MemorySlot):
            return self._register(location, state)
        address = self.address(location, state)
        return state.of(address) if is_on_stack(address) else None

    def _register(self, name: str, state: State) -> Value:
        if name == self.machine.stack_pointer and name not in state.values:
            return ("stack", None, 0), 0
        return state.of(name)

    def address(self, slot: MemorySlot, state: State) -> Value:
        """Return the address of a slot."""
        base, number = self._register(slot.base, state)
        return base, number + slot.offset

    def _store(self, address: Any, value: Any, state: State, number: int) -> None:
        """Forget all values possibly changed by a store. ``value`` None: a store of any length."""
        if not is_on_stack(address) and not self.escaped:
            return
        word = self.machine.word_bytes
        length = word if value is not None else VECTOR
        for key in [k for k in state.values if is_on_stack(k)]:
            disjoint = is_on_stack(address) and key[0] == address[0] and not -word < key[1] - address[1] < length
            if not disjoint:
                state.values[key] = (("lost", key, number), 0)
        if value is not None and is_on_stack(address):
            state.values[address] = value


def _is_followed(step: InstructionEffects, register: str, as_base: bool) -> bool:
    """Check whether an instruction's moves tell all that it does, and read a register only ``as_base`` of words."""
    sources = [expression.location if isinstance(expression, Sum) else register for _, expression in step.moves]
    slots = [x for x in (*sources, *(location for location, _ in step.moves)) if isinstance(x, MemorySlot)]
    others = step.unknown or step.stores or step.stores_somewhere or step.forgets_all or not step.moves
    return not others and register not in sources and (as_base or register not in [slot.base for slot in slots])


def is_on_stack(value: Any) -> bool:
    """Return whether a value is an address on the stack."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and value[0][0] == "stack"


def depth(value: Value) -> int:
    """Return the maximum distance in bytes of a stack address below the stack pointer at entry."""
    return value[0][2] - value[1]
