"""What registers and the stack hold in a function, as far as it follows from its instructions: a base and a number.

Two values with one base differ by the difference of their numbers, whatever the base is: what a register held at entry,
what an instruction made of something unknown, or what came to a block by several ways.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from graphc.codegen.machine.step import Aligned, Both, Expression, Place, Reader, Slot, Step, Sum
from graphc.codegen.proof.flow import Flow

Value = tuple[Any, int]
"""(base, number); the base of a number that is known is None."""
FLAGS = "flags"
"""What flags tell of, as (left, right, bits), in the place of a register."""
PATIENCE = 300
"""How often a block is looked at until what has differed stays different."""
WORD, VECTOR = 8, 64
"""Bytes of a slot, and of the longest store of a vector."""


@dataclass
class State:
    """What places hold between two instructions; what is not listed holds what it held at entry."""

    known: dict[Any, Any] = field(default_factory=dict)

    def of(self, key: Any) -> Any:
        """What a place holds."""
        return self.known.get(key, (("entry", key), 0))


@dataclass
class Values:
    """The values of one function, once ``find`` has found them."""

    flow: Flow
    machine: Reader
    escaped: bool = False
    """Whether the address of something on the stack is in another register than those for it: what is stored anywhere
    may be there then."""
    entering: dict[int, State] = field(default_factory=dict)
    """For each block that runs what holds before it."""
    leaving: dict[int, State] = field(default_factory=dict)

    def find(self) -> Values:
        """Runs over the blocks until nothing changes."""
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
            state = State(dict(self.entering[block].known))
            for _ in self.walk(block, state):
                pass
            self.leaving[block] = state
            for other in dict.fromkeys(self.flow.after[block]):
                if self._join(other, visits.get(other, 0) >= PATIENCE) and other not in pending:
                    pending.append(other)

    def _join(self, block: int, final: bool) -> bool:
        """Puts together what comes to a block by all ways that are known; whether that is news. ``final``: what has
        differed once is never the same again, so that this ends."""
        ways = [self.leaving[b] for b in self.flow.before[block] if b in self.leaving]
        if block == 0:
            ways.append(State())
        old, new = self.entering.get(block), State()
        for key in dict.fromkeys(k for way in (*ways, *([old] if old else ())) for k in way.known):
            new.known[key] = self._joined(block, key, {way.of(key) for way in ways}, old if final else None)
        self.entering[block] = new
        return old is None or old.known != new.known

    def _joined(self, block: int, key: Any, found: set[Any], old: State | None) -> Any:
        if key == FLAGS:
            return found.pop() if len(found) == 1 else None
        joined = (("join", block, key), 0)
        # NOTE: what comes back from here as it went changes nothing.
        found = found - {joined} | ({old.of(key)} if old is not None else set())
        return found.pop() if len(found) == 1 else joined

    def walk(self, block: int, state: State) -> Iterator[tuple[int, Step]]:
        """Each instruction of a block with its number, while ``state`` is what holds before it; afterwards ``state`` is
        what holds behind the block."""
        for number in self.flow.span(block):
            step = self.flow.steps[number]
            yield number, step
            self._apply(number, step, state)

    # ---- one instruction

    def _apply(self, number: int, step: Step, state: State) -> None:
        flags = self._flags(step, state)
        for i, (place, expression) in enumerate(step.moves):
            value = self.value(expression, state, (number, i))
            if isinstance(place, Slot):
                self._store(self.address(place, state), value, state, number)
            else:
                own = place in (self.machine.stack_pointer, self.machine.frame_pointer)
                self.escaped |= not own and is_on_stack(value)
                state.known[place] = value
        for slot in step.stores:
            self._store(self.address(slot, state), None, state, number)
        if step.stores_somewhere or step.kind == "call":
            self._store(None, None, state, number)
        unknown = step.unknown if step.kind != "call" else self.machine.clobbered
        for register in self._all(state) if step.forgets_all else unknown:
            state.known[register] = (("made", number, register), 0)
        if step.compares is not None or not step.keeps_flags:
            state.known[FLAGS] = flags

    def _all(self, state: State) -> list[str]:
        kept = {self.machine.stack_pointer, FLAGS}
        return [*self.machine.clobbered, *(k for k in state.known if isinstance(k, str) and k not in kept)]

    def _flags(self, step: Step, state: State) -> Any:
        found = step.compares
        if found is None:
            return None
        left, right = (self.value(x, state, None) for x in (found.left, found.right))
        return None if left is None or right is None else (left, right, found.bits)

    def compared(self, step: Step, state: State) -> Any:
        """What a branch looks at, as (left, right, bits); None where that is not known."""
        return self._flags(step, state) if step.compares is not None else state.known.get(FLAGS)

    def value(self, expression: Expression, state: State, made: Any) -> Any:
        """What an expression is; where it is not known, a new base that is named by ``made``."""
        if isinstance(expression, Sum):
            if expression.place is None:
                return None, expression.number
            held = self._held(expression.place, state)
            if held is not None:
                return held[0], held[1] + expression.number
        if isinstance(expression, Both):
            first, second = (self._held(place, state) for place in expression.places)
            if first is not None and second is not None and None in (first[0], second[0]):
                return second[0] if first[0] is None else first[0], first[1] + second[1]
        if isinstance(expression, Aligned):
            held = self._held(expression.place, state)
            if is_on_stack(held):
                return ("stack", made, depth(held) + expression.multiple - 1), 0
        return None if made is None else (("made", *made), 0)

    def _held(self, place: Place, state: State) -> Any:
        if not isinstance(place, Slot):
            return self._register(place, state)
        address = self.address(place, state)
        return state.of(address) if is_on_stack(address) else None

    def _register(self, name: str, state: State) -> Value:
        if name == self.machine.stack_pointer and name not in state.known:
            return ("stack", None, 0), 0
        return state.of(name)

    def address(self, slot: Slot, state: State) -> Value:
        """The address of a slot."""
        base, number = self._register(slot.base, state)
        return base, number + slot.offset

    def _store(self, address: Any, value: Any, state: State, number: int) -> None:
        """Forgets what a store may have changed. ``value`` None: of any length."""
        if not is_on_stack(address) and not self.escaped:
            return
        length = WORD if value is not None else VECTOR
        for key in [k for k in state.known if is_on_stack(k)]:
            apart = is_on_stack(address) and key[0] == address[0] and not -WORD < key[1] - address[1] < length
            if not apart:
                state.known[key] = (("lost", key, number), 0)
        if value is not None and is_on_stack(address):
            state.known[address] = value


def is_on_stack(value: Any) -> bool:
    """Whether a value is an address of the stack."""
    return isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], tuple) and value[0][0] == "stack"


def depth(value: Value) -> int:
    """How many bytes below the stack pointer at entry an address of the stack lies at most."""
    return value[0][2] - value[1]
