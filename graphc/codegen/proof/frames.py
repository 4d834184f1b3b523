"""Stack frame of a function: how far its pointer goes down, how far it writes, and where it calls others."""

from __future__ import annotations

from dataclasses import dataclass

from graphc.base.errors import RealtimeError
from graphc.codegen.machine.step import InstructionEffects, MemorySlot
from graphc.codegen.proof.values import State, Values, depth, is_on_stack


@dataclass(frozen=True)
class CallSite:
    """A call within a function."""

    number: int
    """Number of the instruction."""
    target: str
    """Called symbol; empty for an indirect call."""
    depth: int
    """Bytes of the caller below the stack pointer at its entry, including the return address."""


@dataclass(frozen=True)
class Frame:
    """Stack use of one call of a function, without its callees."""

    reserved: int
    """Bytes from the stack pointer at entry to the lowest reserved or written byte."""
    touched: int
    """Bytes from the stack pointer at entry to the lowest written byte."""
    calls: tuple[CallSite, ...]


def frame_of(values: Values) -> Frame:
    """Return the frame of a function. Raises RealtimeError where the stack pointer changes by an unknown number of
    bytes, or differs between two paths to one location."""
    reserved = touched = 0
    calls: list[CallSite] = []
    for block, entering in values.entering.items():
        state = State(dict(entering.values))
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
    pointer = values.address(MemorySlot(values.machine.stack_pointer, 0), state)
    if not is_on_stack(pointer):
        function = values.flow.function
        where = f"@{function.name}, line {function.lines[number].number}: {function.lines[number]}"
        raise RealtimeError("the stack pointer changes by an unknown number of bytes", where=where)
    return depth(pointer)


def _written(values: Values, step: InstructionEffects, state: State) -> list[int]:
    """Return the depth that each store to the stack reaches."""
    after = State(dict(state.values))
    depths = []
    for i, (location, expression) in enumerate(step.moves):
        if isinstance(location, MemorySlot):
            address = values.address(location, after)
            depths += [depth(address)] if is_on_stack(address) else []
        else:
            value = values.value(expression, after, ("frame", i))
            after.values[location] = value
            own = location in (values.machine.stack_pointer, values.machine.frame_pointer)
            if is_on_stack(value) and not own:  # code that holds the address may write there
                depths.append(depth(value))
    addresses = [values.address(slot, after) for slot in step.stores]
    return [*depths, *(depth(a) for a in addresses if is_on_stack(a))]
