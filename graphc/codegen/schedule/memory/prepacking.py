"""The calls of a program that depend on its weights alone, as a program of their own that runs once for many calls."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import numpy as np

from graphc.base.sizes.size import is_size
from graphc.files.manifest import PREPACKED, Recipe
from graphc.ir.kernel.dims import dims_of_kernel
from graphc.ir.kernel.index import sizes_of
from graphc.ir.kernel.statements import Call, Program, Storage
from graphc.ir.kernel.text import print_kernel


def call_invariant_storages(program: Program) -> frozenset[str]:
    """Names of constants, weights, and temporaries that are computed from these alone."""
    known = {s.name for s in program.storages if s.cls in ("constant", "weight")}
    if not any(s.cls == "weight" for s in program.storages):
        return frozenset(known)
    shared = {name for s in program.storages if s.alias for name in (s.name, s.alias)}
    steps = [_Step(program, call) for call in program.calls]
    named = any(s.equals is not None or any(map(is_size, s.shape)) for s in program.storages)
    call_invariant = {s.name for s in program.storages if s.cls == "temp"} - shared
    call_invariant &= {name for step in steps for name in step.written}
    readers: dict[str, list[_Step]] = {}
    for step in steps:
        for name in step.read & call_invariant:
            readers.setdefault(name, []).append(step)
    known |= call_invariant
    lost = [step for step in steps if not step.needs_only(known) or (named and step.depends_on_sizes(program))]
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


def recipes(program: Program) -> dict[str, Recipe]:
    """The recipe of each output of a prepacking: kernels by text, without names, constants by content, and who reads
    what of whom. An output that shares memory with another storage has none."""
    numbers = {s.name: i for i, s in enumerate(s for s in program.storages if s.cls == "input")}
    shared = {name for s in program.storages if s.alias for name in (s.name, s.alias)}
    steps = [_Step(program, call) for call in program.calls]
    writers: dict[str, list[int]] = {}
    for number, step in enumerate(steps):
        for name in step.written:
            writers.setdefault(name, []).append(number)

    @cache
    def kernel(name: str) -> str:
        return print_kernel(replace(program.kernel(name), name="k", origin=()))

    found = {}
    for storage in program.storages:
        calls = [steps[i].call for i in _needed(storage.name, steps, writers)] if storage.cls == "output" else []
        if not calls or any(name in shared for call in calls for name in call.args):
            continue
        state, order = hashlib.sha256(), {storage.name: 0}
        for call in calls:
            places = [order.setdefault(name, len(order)) for name in call.args]
            state.update(repr((kernel(call.kernel), places, call.offsets, call.loops)).encode())
        for name in order:
            for part in _content(program.storage(name)):
                state.update(part)
        found[storage.name] = Recipe(state.hexdigest(), tuple(numbers[name] for name in order if name in numbers))
    return found


def _needed(name: str, steps: list[_Step], writers: dict[str, list[int]]) -> list[int]:
    """Numbers of the calls that a storage's content depends on, in order."""
    found: set[int] = set()
    stack = [name]
    while stack:
        for number in writers.get(stack.pop(), ()):
            if number not in found:
                found.add(number)
                stack += sorted(steps[number].read | steps[number].written)
    return sorted(found)


def _content(storage: Storage) -> Iterator[bytes]:
    """What a storage is apart from its name."""
    yield repr((storage.cls, storage.dtype.name, storage.shape)).encode()
    if storage.data is not None:
        yield np.ascontiguousarray(storage.data).tobytes()


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

    def depends_on_sizes(self, program: Program) -> bool:
        """Whether what it does is not the same in all calls, even where what it reads is."""
        offsets = any(True for offset in self.call.offsets for _ in sizes_of(offset))
        return offsets or bool(dims_of_kernel(program.kernel(self.call.kernel)))


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
