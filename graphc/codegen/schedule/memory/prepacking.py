"""Prepacking: split the calls that depend on weights alone into a separate program that runs once for many calls."""

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
    """Return the names of constants, weights, and temporaries computed from these alone. Flags of loops are not among
    them: a call of the program itself writes them."""
    fixed = {s.name for s in program.storages if s.cls in ("constant", "weight")}
    if not any(s.cls == "weight" for s in program.storages):
        return frozenset(fixed)
    shared = {name for s in program.storages if s.alias for name in (s.name, s.alias)}
    shared |= {axis.flag for call in program.calls for axis in call.loops if axis.flag}
    steps = [_NamedCall(program, call) for call in program.calls]
    named = any(s.equals is not None or any(map(is_size, s.shape)) for s in program.storages)
    call_invariant = {s.name for s in program.storages if s.cls == "temp"} - shared
    call_invariant &= {name for step in steps for name in step.written}
    readers: dict[str, list[_NamedCall]] = {}
    for step in steps:
        for name in step.read & call_invariant:
            readers.setdefault(name, []).append(step)
    fixed |= call_invariant
    varying = [step for step in steps if not step.needs_only(fixed) or (named and step.depends_on_sizes(program))]
    while varying:
        for name in varying.pop().written & call_invariant:
            call_invariant.discard(name)
            fixed.discard(name)
            varying += readers.get(name, ())
    return frozenset(fixed)


def call_invariant_first(program: Program) -> Program:
    """Move the calls that depend on weights and constants alone before all others, if the program has weights."""
    if all(s.cls != "weight" for s in program.storages):
        return program
    early, rest = parted(program)
    return replace(program, calls=(*early, *rest))


def parted(program: Program) -> tuple[list[Call], list[Call]]:
    """Return the call-invariant calls, and the others."""
    call_invariant = call_invariant_storages(program) & {s.name for s in program.storages if s.cls == "temp"}
    steps = [_NamedCall(program, call) for call in program.calls]
    moved = [bool(step.written) and step.written <= call_invariant for step in steps]
    early, rest = ([s.call for s, m in zip(steps, moved, strict=True) if m is flag] for flag in (True, False))
    return early, rest


def split_prepacking(program: Program) -> tuple[Program, Program | None]:
    """Split the call-invariant calls off.

    Needs: a scheduled program without memory plan. Does: moves the calls that depend on weights and constants alone
    into a second program. Its inputs are those weights. The main program reads its outputs, as weights with the path
    PREPACKED and the output's name. Leaves: (main program, second program), or the unchanged program and None if there
    is nothing to move.
    """
    first, rest = parted(program)
    if not first or all(s.cls != "weight" for s in program.storages):
        return program, None
    temps = {s.name for s in program.storages if s.cls == "temp"}
    handed_over = {a for c in first for a in c.args} & temps & {a for c in rest for a in c.args}
    before = [_before(s, handed_over) for s in program.storages]
    after = [_after(s, handed_over) for s in program.storages]
    prepacking = _subprogram(replace(program, name=f"{program.name}_weights"), before, first)
    return _subprogram(program, after, rest, ("input", "param", "state", "output", "status")), prepacking


def recipes(program: Program) -> dict[str, Recipe]:
    """Return the recipe of each output of a prepacking program: a hash, and the inputs on which the output depends.

    The hash covers the text of kernels without their names, the content of constants, and the data flow between calls.
    An output that shares memory with another storage has no recipe.
    """
    numbers = {s.name: i for i, s in enumerate(s for s in program.storages if s.cls == "input")}
    shared = {name for s in program.storages if s.alias for name in (s.name, s.alias)}
    steps = [_NamedCall(program, call) for call in program.calls]
    writers: dict[str, list[int]] = {}
    for number, step in enumerate(steps):
        for name in step.written:
            writers.setdefault(name, []).append(number)

    @cache
    def kernel(name: str) -> str:
        return print_kernel(replace(program.kernel(name), name="k", origin=()))

    recipe_of = {}
    for storage in program.storages:
        calls = [steps[i].call for i in _needed(storage.name, steps, writers)] if storage.cls == "output" else []
        if not calls or any(name in shared for call in calls for name in call.args):
            continue
        state, order = hashlib.sha256(), {storage.name: 0}
        for call in calls:
            arguments = [order.setdefault(name, len(order)) for name in call.args]
            state.update(repr((kernel(call.kernel), arguments, call.offsets, call.loops)).encode())
        for name in order:
            for content in _content(program.storage(name)):
                state.update(content)
        inputs = tuple(numbers[name] for name in order if name in numbers)
        recipe_of[storage.name] = Recipe(state.hexdigest(), inputs)
    return recipe_of


def _needed(name: str, steps: list[_NamedCall], writers: dict[str, list[int]]) -> list[int]:
    """Return the numbers of the calls on which a storage's content depends, in order."""
    needed: set[int] = set()
    stack = [name]
    while stack:
        for number in writers.get(stack.pop(), ()):
            if number not in needed:
                needed.add(number)
                stack += sorted(steps[number].read | steps[number].written)
    return sorted(needed)


def _content(storage: Storage) -> Iterator[bytes]:
    """Yield the class, type and data of a storage as bytes, without its name."""
    yield repr((storage.cls, storage.dtype.name, storage.shape)).encode()
    if storage.data is not None:
        yield np.ascontiguousarray(storage.data).tobytes()


class _NamedCall:
    """A call with the names of its read and written storages."""

    def __init__(self, program: Program, call: Call):
        self.call = call
        arguments = program.kernel(call.kernel).arguments
        self.read = {name for b, name in zip(arguments, call.args, strict=True) if b.role != "out"}
        self.written = {name for b, name in zip(arguments, call.args, strict=True) if b.role != "in"}

    def needs_only(self, fixed: set[str] | frozenset[str]) -> bool:
        """Check whether it runs once, and reads only the storages ``fixed``."""
        return not self.call.loops and self.read <= fixed

    def depends_on_sizes(self, program: Program) -> bool:
        """Check whether its offsets or its kernel depend on sizes known only at run time."""
        offsets = any(True for offset in self.call.offsets for _ in sizes_of(offset))
        return offsets or bool(dims_of_kernel(program.kernel(self.call.kernel)))


def _before(storage: Storage, handed_over: set[str]) -> Storage:
    if storage.cls == "weight":
        return replace(storage, cls="input")
    return replace(storage, cls="output") if storage.name in handed_over else storage


def _after(storage: Storage, handed_over: set[str]) -> Storage:
    return replace(storage, cls="weight", path=PREPACKED + storage.name) if storage.name in handed_over else storage


_ORDER = ({"input", "param", "state", "weight"}, {"output"}, {"status"}, {"constant"}, {"temp"})


def _subprogram(program: Program, storages: list[Storage], calls: list[Call], classes: tuple[str, ...] = ()) -> Program:
    """Return a program of some of the calls, with the storages that these use and all storages of ``classes``."""
    used = {a for c in calls for a in c.args}
    used |= {s.alias for s in storages if s.name in used}
    remaining = [s for s in storages if s.name in used or s.cls in classes]
    ordered = [s for group in _ORDER for s in remaining if s.cls in group]
    called = {c.kernel for c in calls}
    kernels = tuple(k for k in program.kernels if k.name in called)
    return replace(program, storages=tuple(ordered), kernels=kernels, calls=tuple(calls))
