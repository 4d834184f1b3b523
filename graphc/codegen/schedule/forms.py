"""Canonical forms of kernels, with the register block of each and an estimate of its cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType

from graphc.base.locks import cached_property
from graphc.base.records import dataclass
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.contraction.match import Contraction, find_contraction
from graphc.codegen.schedule.contraction.register_block import Tile, choose_tile, rank_tiles
from graphc.codegen.schedule.lanes.choose import choose
from graphc.codegen.schedule.loops.transform import (
    drop_trivial,
    has_divisor,
    merge_loops,
    sort_loops,
    split_loops,
)
from graphc.codegen.schedule.memory.prepacking import call_invariant_storages
from graphc.ir.kernel.index import Axis
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Call, Kernel, Loop, Program, Stmt
from graphc.ir.kernel.text import print_kernel

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class Form:
    """A nest in its canonical form, with its register block if it gets one."""

    source: Kernel
    body: tuple[Stmt, ...]
    names: int
    """Number of the first name that the body does not use."""
    tiled: tuple[Contraction, Tile] | None
    target: Target

    @cached_property
    def cycles(self) -> float:
        """The estimated cycles by which the schedule chooses."""
        return self.tiled[1].cycles if self.tiled else _plain_cycles(self.body, self.target)


class Forms:
    """Memo of the canonical forms of kernels for one target.

    Programs with a common nest share its form: most kernels are the same in all compared layouts, and the chosen
    program is first estimated, then scheduled.
    """

    def __init__(self, target: Target):
        self.target = target
        self._forms: dict[tuple, Form] = {}

    def find(self, kernel: Kernel, constants: frozenset[str]) -> Form:
        """Return the form of a kernel; ``constants`` are the buffers to which calls bind constants."""
        # NOTE: nests are keyed by identity, since hashing takes longer; safe because a form keeps its source alive.
        key = id(kernel.body), kernel.buffers, constants
        form = self._forms.get(key)
        if form is None:
            names = Names()
            canonical_kernel = canonical(kernel, names, self.target.costs.strict_order)
            tiled = register_block(canonical_kernel, constants, self.target)
            form = Form(kernel, canonical_kernel.body, names.next, tiled, self.target)
            self._forms[key] = form
        return form


def block_key(canonical_kernel: Kernel, constants: frozenset[str]) -> str:
    """Return a hash of a kernel and its constant buffers, without the kernel's name."""
    text = print_kernel(replace(canonical_kernel, name="k", origin=()))
    return sha256(f"{text}\n{sorted(constants)}".encode()).hexdigest()


def _plain_cycles(body: tuple[Stmt, ...], target: Target) -> float:
    return target.costs.contraction.plain_operation * sum(choose(s, target).cost for s in body if isinstance(s, Loop))


def register_block(
    canonical_kernel: Kernel, constants: frozenset[str], target: Target, tuned: Mapping[str, str] = NOTHING
) -> tuple[Contraction, Tile] | None:
    """Match a kernel as a contraction; return it with its ``tuned`` or best register block.

    Returns None if the kernel has no register block, or so poor a one that plain lanes are expected to take less than
    half of its time (their estimate is less reliable).
    """
    contraction = find_contraction(canonical_kernel)
    label = tuned.get(block_key(canonical_kernel, constants)) if tuned and contraction else None
    if contraction and label:
        for tile in rank_tiles(contraction, target, constants):
            if tile.label == label:
                return contraction, tile
    tile = choose_tile(contraction, target, constants) if contraction else None
    if contraction is None or tile is None:
        return None
    k = target.costs.contraction
    cycles = tile.cycles - tile.memory
    poor = cycles > k.poor_block * contraction.work / (k.multiply_adds * target.lanes(contraction.dtype))
    return None if poor and 2 * _plain_cycles(canonical_kernel.body, target) < cycles else (contraction, tile)


def constant_buffers(program: Program, kernel: Kernel, fixed: frozenset[str] | None = None) -> frozenset[str]:
    """Return the buffers of a kernel to which every call binds a call-invariant or loop-invariant storage.

    ``fixed`` are the call-invariant storages of the program; they are computed if None.
    """
    fixed = call_invariant_storages(program) if fixed is None else fixed
    varying: set[str] = set()
    for call in program.calls_of(kernel.name):
        for i, (buffer, storage) in enumerate(zip(kernel.arguments, call.args, strict=True)):
            constant = storage in fixed and program.is_whole(call, i)
            if not constant and fixed_inside(program, call, i) == len(call.loops):
                varying.add(buffer.name)
    return frozenset(b.name for b in kernel.arguments) - varying


def fixed_inside(program: Program, call: Call, position: int) -> int:
    """Return the number of outer loops around a call in which an argument changes.

    The argument is the same in all iterations of the remaining, inner loops.
    """
    if not call.loops:
        return 0
    depth = max((d + 1 for d, axis in enumerate(call.loops) if call.offset(position).coefficient(axis)), default=0)
    return max([depth, *(common_loops(call.loops, other.loops) for other in program.writers(call.args[position]))])


def common_loops(first: tuple[Axis, ...], second: tuple[Axis, ...]) -> int:
    """Count the loops shared by two calls, from the outside, given the loops around each."""
    shorter = min(len(first), len(second))
    return next((d for d in range(shorter) if first[d] != second[d]), shorter)


def canonical(kernel: Kernel, names: Names, strict_order: bool = False) -> Kernel:
    """Return a kernel with its nest in canonical form: quotients are axes, loops follow memory order and are merged.

    In ``strict_order`` reduce loops keep their order.
    """
    body = drop_trivial(kernel.body, names)
    while True:
        body = merge_loops(sort_loops(split_loops(body, names), strict_order), names)
        if not has_divisor(body):
            return replace(kernel, body=body)
