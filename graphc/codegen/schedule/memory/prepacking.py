"""The calls of a program that depend on its weights alone, as a program of their own that runs once for many calls."""

from __future__ import annotations

from dataclasses import replace

from graphc.files.manifest import PREPACKED
from graphc.ir.kernel.statements import Call, Program, Storage


def call_invariant_storages(program: Program) -> frozenset[str]:
    """Names of constants, weights, and temporaries that are computed from these alone."""
    known = {s.name for s in program.storages if s.cls in ("constant", "weight")}
    if not any(s.cls == "weight" for s in program.storages):
        return frozenset(known)
    shared = {name for s in program.storages if s.alias for name in (s.name, s.alias)}
    steps = [_Step(program, call) for call in program.calls]
    call_invariant = {s.name for s in program.storages if s.cls == "temp"} - shared
    call_invariant &= {name for step in steps for name in step.written}
    readers: dict[str, list[_Step]] = {}
    for step in steps:
        for name in step.read & call_invariant:
            readers.setdefault(name, []).append(step)
    known |= call_invariant
    lost = [step for step in steps if not step.needs_only(known)]
    while lost:
        for name in lost.pop().written & call_invariant:
            call_invariant.discard(name)
            known.discard(name)
            lost += readers.get(name, ())
    return frozenset(known)


def call_invariant_first(program: Program) -> Program:
    """The program with the calls that depend on weights and constants alone before all others, where it has weights."""
    if all(s.cls != "weight" for s in program.storages):
        return program
    early, rest = parted(program)
    return replace(program, calls=(*early, *rest))


def parted(program: Program) -> tuple[list[Call], list[Call]]:
    """The calls that compute something fixed, and the others."""
    call_invariant = call_invariant_storages(program) & {s.name for s in program.storages if s.cls == "temp"}
    steps = [_Step(program, call) for call in program.calls]
    moved = [bool(step.written) and step.written <= call_invariant for step in steps]
    early, rest = ([s.call for s, m in zip(steps, moved, strict=True) if m is wanted] for wanted in (True, False))
    return early, rest


def split_prepacking(program: Program) -> tuple[Program, Program | None]:
    """Needs: a scheduled program without memory plan. Does: moves the calls that depend on weights and constants alone
    into a program whose inputs are those weights and whose outputs are what the rest reads; there these are weights
    with the path PREPACKED and the output's name. Leaves: two programs, or the given one and None where there is
    nothing to move."""
    first, rest = parted(program)
    if not first or all(s.cls != "weight" for s in program.storages):
        return program, None
    temps = {s.name for s in program.storages if s.cls == "temp"}
    made = {a for c in first for a in c.args} & temps & {a for c in rest for a in c.args}
    before = [_before(s, made) for s in program.storages]
    after = [_after(s, made) for s in program.storages]
    prepacking = _part(replace(program, name=f"{program.name}_weights"), before, first)
    return _part(program, after, rest, ("input", "param", "state", "output", "status")), prepacking


class _Step:
    """What a call reads and writes."""

    def __init__(self, program: Program, call: Call):
        self.call = call
        arguments = program.kernel(call.kernel).arguments
        self.read = {name for b, name in zip(arguments, call.args, strict=True) if b.role != "out"}
        self.written = {name for b, name in zip(arguments, call.args, strict=True) if b.role != "in"}

    def needs_only(self, known: set[str] | frozenset[str]) -> bool:
        """Whether it runs once, and reads nothing else."""
        return not self.call.loops and self.read <= known


def _before(storage: Storage, made: set[str]) -> Storage:
    if storage.cls == "weight":
        return replace(storage, cls="input")
    return replace(storage, cls="output") if storage.name in made else storage


def _after(storage: Storage, made: set[str]) -> Storage:
    return replace(storage, cls="weight", path=PREPACKED + storage.name) if storage.name in made else storage


_ORDER = ({"input", "param", "state", "weight"}, {"output"}, {"status"}, {"constant"}, {"temp"})


def _part(program: Program, storages: list[Storage], calls: list[Call], kept: tuple[str, ...] = ()) -> Program:
    """A program of some of the calls, with the storages that these use and all of the classes ``kept``."""
    used = {a for c in calls for a in c.args}
    used |= {s.alias for s in storages if s.name in used}
    found = [s for s in storages if s.name in used or s.cls in kept]
    ordered = [s for group in _ORDER for s in found if s.cls in group]
    called = {c.kernel for c in calls}
    kernels = tuple(k for k in program.kernels if k.name in called)
    return replace(program, storages=tuple(ordered), kernels=kernels, calls=tuple(calls))
