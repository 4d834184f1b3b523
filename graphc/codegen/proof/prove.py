"""Proof about modules of functions: from the assembly of exactly the linked object code to stack and instructions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from graphc.base.errors import RealtimeError
from graphc.base.records import dataclass
from graphc.codegen.llvm.build import assemble, build_object, emit_assembly
from graphc.codegen.llvm.module import LlvmModule
from graphc.codegen.llvm.split import Unit, split_module
from graphc.codegen.machine.step import InstructionEffects, MemorySlot, Reader
from graphc.codegen.machine.target import Target, architecture, host_target
from graphc.codegen.proof.assembly import AssemblyFunction, read_assembly
from graphc.codegen.proof.flow import Flow, flow_of
from graphc.codegen.proof.leaves import LEAVES
from graphc.codegen.proof.longest import LoopBound, longest_path
from graphc.codegen.proof.object_code import (
    ObjectCode,
    check_layout,
    check_same,
    marked,
    note_filling,
    read_object_code,
)
from graphc.codegen.proof.values import State, Values, depth, is_on_stack

_REFUSED = {
    "system": "a system call or a privileged instruction",
    "lock": "an atomic instruction, as locks use",
    "unknown": "an instruction whose effects are unknown",
}
_NAME = re.compile(r"[A-Za-z_.$][\w.$]*")


@dataclass(frozen=True)
class Reached:
    """Functions reached from some roots."""

    functions: tuple[str, ...]
    """Functions of the code itself, callees first."""
    outside: tuple[str, ...]
    """Functions of the C library, sorted."""
    paths: Mapping[str, tuple[str, ...]]
    """A chain of calls to each of both."""


def reach(flows: Mapping[str, Flow], roots: Sequence[str], undefined: frozenset[str]) -> Reached:
    """Return the functions reached from ``roots``. ``undefined``: the code's external symbols. Raises RealtimeError
    with the chain of calls for anything not known to be free of allocation, locks and system calls, for indirect calls,
    and for recursion."""
    order: list[str] = []
    outside: dict[str, tuple[str, ...]] = {}
    paths: dict[str, tuple[str, ...]] = {}
    stack: list[tuple[str, tuple[str, ...], bool]] = [(root, (root,), False) for root in reversed(roots)]
    while stack:
        name, path, done = stack.pop()
        if done:
            order.append(name)
        elif name not in flows:
            outside.setdefault(_allowed(name, path), path)
        elif name not in paths:
            paths[name] = path
            stack.append((name, path, True))
            stack += [(callee, (*path, callee), False) for callee in _callees(flows[name], path, undefined)]
        elif name not in order:
            raise RealtimeError(f"@{name} calls itself, so its stack size is unknown", where=_chain(path))
    return Reached(tuple(order), tuple(sorted(outside)), {**paths, **outside})


def _chain(path: Sequence[str]) -> str:
    return " -> ".join(f"@{name}" for name in path)


def _allowed(name: str, path: tuple[str, ...]) -> str:
    if name not in LEAVES:
        raise RealtimeError(
            f"the code reaches @{name}, which is not known to be free of allocation, locks and system calls",
            where=_chain(path),
            remedy="remove that operation from the model; graphc explain shows what each kernel computes",
        )
    return name


def _callees(flow: Flow, path: tuple[str, ...], undefined: frozenset[str]) -> list[str]:
    """Return the callees of a function, in order; raises RealtimeError for forbidden instructions."""
    callees: list[str] = []
    for line, step in zip(flow.function.lines, flow.steps, strict=True):
        where = f"{_chain(path)}, line {line.number}: {line}"
        if step.kind in _REFUSED:
            raise RealtimeError(f"@{path[-1]} has {_REFUSED[step.kind]}", where=where)
        if step.kind in ("call", "tail"):
            if not step.target:
                raise RealtimeError(f"@{path[-1]} makes an indirect call, whose target is unknown", where=where)
            callees.append(step.target)
            continue
        named = {n for operand in line.operands for n in _NAME.findall(operand)} & undefined
        if named:
            raise RealtimeError(f"@{path[-1]} reads @{min(named)}, which is not part of the code", where=where)
    return list(dict.fromkeys(callees))


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
            written = max([*_written(values, step, state), *values.exposed(number, state)], default=0)
            reserved, touched = max(reserved, here, written), max(touched, written)
        if span := values.flow.span(block):
            reserved = max(reserved, _pointer(values, state, span[-1]))
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


SAME_BYTES = "the analyzed assembly gives the bytes of the object code"
SAME_LAYOUT = "each function has the same offset and length in the object code as in the analyzed assembly"
SAME_COUNTS = "each function has as many instructions in the object code as in the analyzed assembly"
SAME_NAMES = "the object code has exactly the functions of the analyzed assembly"
"""Ways of comparing assembly and object code."""


@dataclass(frozen=True)
class FunctionFacts:
    """Proven facts of one function, without its callees unless a field says so."""

    name: str
    code_bytes: int
    frame_bytes: int
    """Bytes of the stack below the stack pointer at its entry."""
    stack_bytes: int
    """The same with its callees."""
    touched_bytes: int
    """Bytes from there to the lowest written byte, with its callees."""
    instructions: int | None
    """Maximum instructions with its callees; None if a loop has no bound."""
    loops: tuple[LoopBound, ...]


@dataclass(frozen=True)
class Proof:
    """Proven facts of everything that some functions reach."""

    functions: tuple[FunctionFacts, ...]
    """Facts of each function, callees first."""
    outside: tuple[str, ...]
    """Reached functions of the C library; no number here includes them."""
    stack_path: tuple[str, ...]
    """Chain of calls with the largest stack."""
    compared: str
    """How the assembly was compared with the object code."""

    def of(self, name: str) -> FunctionFacts:
        """Return the facts of one function."""
        return next(f for f in self.functions if f.name == name)


def prove(
    modules: Sequence[LlvmModule | str],
    target: Target,
    roots: Sequence[str],
    data: Collection[str] = (),
    supply: Callable[[str], str | None] = lambda name: None,
) -> Proof:
    """Return the proof for ``roots`` in the object code that ``build_object`` makes of the modules. ``data`` names
    linked symbols without code. ``supply`` returns modules of further linked functions, by the function's name.

    Raises RealtimeError, with the reason, for code not known to be free of allocation, locks and system calls, and for
    an unbounded stack.
    """
    machine = target.reader
    if machine is None:
        raise RealtimeError(f"cannot prove code for {architecture(target)}: its instructions are unknown")
    functions, codes, named = list[AssemblyFunction](), list[ObjectCode](), set[str]()
    pending = [unit for m in modules for unit in ([Unit(m)] if isinstance(m, str) else split_module(m))]
    while pending:
        code, unit_functions = _looked_at(pending.pop(0), target, machine)
        functions += unit_functions
        codes.append(code)
        texts = [supply(name) for name in sorted(code.undefined - named)]
        pending += [Unit(text) for text in texts if text is not None]
        named |= code.undefined
    flows = {f.name: flow_of(f, machine) for f in functions if f.lines}
    missing = [root for root in roots if root not in flows]
    if missing:
        raise RealtimeError(f"no function @{missing[0]}", remedy=f"name one of {', '.join(sorted(flows))}")
    undefined = frozenset[str]().union(*(c.undefined for c in codes)) - flows.keys() - set(data)
    reached = reach(flows, roots, undefined)
    sizes = {name: size for code in codes for name, (_, size) in code.functions.items()}
    facts: dict[str, FunctionFacts] = {}
    deepest: dict[str, str] = {}
    for name in reached.functions:
        facts[name], deepest[name] = _facts(flows[name], machine, facts, sizes[name])
    root = max(roots, key=lambda name: facts[name].stack_bytes)
    path = [root]
    while deepest.get(path[-1]):
        path.append(deepest[path[-1]])
    return Proof(tuple(facts.values()), reached.outside, tuple(path), _compared(target, machine, codes))


def _looked_at(unit: Unit, target: Target, machine: Reader) -> tuple[ObjectCode, list[AssemblyFunction]]:
    """Return one unit's object code and functions, after comparing both."""
    text, quick = unit.named_text, unit.quick
    assembly, built = emit_assembly(text, target, quick), build_object(text, target, quick)
    code, functions = read_object_code(built), read_assembly(assembly, machine.comment)
    if architecture(target) == architecture(host_target()):
        again = assemble(marked(assembly), target)
        check_same(code, read_object_code(again), machine)
        note_filling(code, again, functions, machine)
    else:
        check_layout(code, functions, machine)
    return code, functions


def _compared(target: Target, machine: Reader, codes: Sequence[ObjectCode]) -> str:
    if architecture(target) == architecture(host_target()):
        return SAME_BYTES
    if any(code.instructions for code in codes):
        return SAME_COUNTS
    return SAME_LAYOUT if machine.instruction_bytes else SAME_NAMES


def _facts(flow: Flow, machine: Reader, callees: dict[str, FunctionFacts], size: int) -> tuple[FunctionFacts, str]:
    """Return the facts of a function whose callees are known, and the callee with the largest stack."""
    values = Values(flow, machine).find()
    frame = frame_of(values)
    longest = longest_path(values, {name: f.instructions for name, f in callees.items()})
    stack, touched, deepest = frame.reserved, frame.touched, ""
    for call in frame.calls:
        inner = callees.get(call.target)
        below = call.depth + (inner.stack_bytes if inner else 0)
        if inner is not None and below >= stack:
            deepest = call.target
        stack = max(stack, below)
        touched = max(touched, call.depth + (inner.touched_bytes if inner else 0))
    facts = FunctionFacts(flow.function.name, size, frame.reserved, stack, touched, longest.instructions, longest.loops)
    return facts, deepest
