"""The stack of a function: how far its pointer goes down, how far below that it writes, and where it calls others."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.base.errors import RealtimeError
from graphc.codegen.machine.step import Slot, Step
from graphc.codegen.proof.values import State, Values, depth, is_on_stack


@dataclass(frozen=True)
class CallSite:
    """A call in a function."""

    number: int
    """Of its instruction."""
    target: str
    """Nothing where a register holds it."""
    depth: int
    """Bytes of the caller below the stack pointer at its entry, with the return address."""


@dataclass(frozen=True)
class Frame:
    """What one call of a function takes of the stack, without what it calls."""

    reserved: int
    """Bytes from the stack pointer at entry to the lowest one that is set aside, or written below it."""
    touched: int
    """Bytes from there to the lowest one that is written."""
    calls: tuple[CallSite, ...]


def frame_of(values: Values) -> Frame:
    """The frame of a function. Raises RealtimeError where the stack pointer is moved by what is not known, or differs
    between two ways to one place."""
    reserved = touched = 0
    calls: list[CallSite] = []
    for block, entering in values.entering.items():
        state = State(dict(entering.known))
        for number, step in values.walk(block, state):
            here = _pointer(values, state, number)
            if step.kind in ("call", "tail"):
                below = here + (values.machine.return_bytes if step.kind == "call" else 0)
                calls.append(CallSite(number, step.target, below))
                touched = max(touched, below if step.kind == "call" else 0)
            written = max(_written(values, step, state), default=0)
            reserved, touched = max(reserved, here, written), max(touched, written)
        reserved = max(reserved, _pointer(values, state, values.flow.span(block)[-1]))
    return Frame(max(reserved, touched), touched, tuple(sorted(calls, key=lambda call: call.number)))


def _pointer(values: Values, state: State, number: int) -> int:
    found = values.address(Slot(values.machine.stack_pointer, 0), state)
    if not is_on_stack(found):
        function = values.flow.function
        place = f"@{function.name}, line {function.lines[number].number}: {function.lines[number]}"
        raise RealtimeError("the stack pointer is moved by a number of bytes that is not known", where=place)
    return depth(found)


def _written(values: Values, step: Step, state: State) -> list[int]:
    """How far down each store to the stack reaches."""
    after = State(dict(state.known))
    found = []
    for i, (place, expression) in enumerate(step.moves):
        if isinstance(place, Slot):
            address = values.address(place, after)
            found += [depth(address)] if is_on_stack(address) else []
        else:
            value = values.value(expression, after, ("frame", i))
            after.known[place] = value
            own = place in (values.machine.stack_pointer, values.machine.frame_pointer)
            if is_on_stack(value) and not own:  # who has the address may write there
                found.append(depth(value))
    addresses = [values.address(slot, after) for slot in step.stores]
    return [*found, *(depth(a) for a in addresses if is_on_stack(a))]
