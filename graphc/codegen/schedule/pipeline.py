"""The CPU schedule: every kernel of a program gets its loops tiled, vectorised and unrolled for a target."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from types import MappingProxyType

import numpy as np

from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.blocks.tile_and_fuse import block_chains
from graphc.codegen.schedule.contraction.match import Contraction, find_contraction
from graphc.codegen.schedule.contraction.nest import apply_tile
from graphc.codegen.schedule.contraction.pack import Packing, make_packing, pack_body
from graphc.codegen.schedule.contraction.register_block import Tile, choose_tile, rank_tiles
from graphc.codegen.schedule.expansion.expand import expand
from graphc.codegen.schedule.lanes.choose import choose, vectorise
from graphc.codegen.schedule.lanes.transpose import holds_transposed, transposed_tiles
from graphc.codegen.schedule.loops.distribute import separate_phases
from graphc.codegen.schedule.loops.index_set_splitting import split_ranges
from graphc.codegen.schedule.loops.transform import (
    drop_trivial,
    has_divisor,
    hoist,
    merge_loops,
    sort_loops,
    split_loops,
)
from graphc.codegen.schedule.memory.prepacking import fixed_first, fixed_storages, parted
from graphc.codegen.schedule.reduce.narrow_loads import far_reads
from graphc.codegen.schedule.reduce.split_reduction import split_reductions
from graphc.ir.kernel.index import Axis, Div, Index, Mod
from graphc.ir.kernel.map import Names
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Load, Loop, Program, Stmt, Storage, Store, walk
from graphc.ir.kernel.text import print_kernel

NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True)
class _Form:
    """A nest in its canonical form, and what the schedule makes of it."""

    source: Kernel
    body: tuple[Stmt, ...]
    names: int
    """Number of the first name that the body does not use."""
    tiled: tuple[Contraction, Tile] | None

    def cycles(self, target: Target) -> float:
        """The estimate from which the schedule chooses."""
        return self.tiled[1].cycles if self.tiled else _plain_cycles(self.body, target)


class Forms:
    """The forms of kernels for one target, each found once for all programs that share its nest: most kernels are the
    same in every layout that is compared, and the one that is chosen is scheduled after it was estimated."""

    def __init__(self, target: Target):
        self.target = target
        self._known: dict[tuple, _Form] = {}

    def find(self, kernel: Kernel, constants: frozenset[str]) -> _Form:
        """The form of a kernel to which calls bind constants as the buffers ``constants``."""
        # NOTE: nests are compared by identity, which a form that keeps its source makes safe; hashing one takes longer.
        key = id(kernel.body), kernel.buffers, constants
        found = self._known.get(key)
        if found is None:
            names = Names()
            prepared = _prepare(kernel, names)
            found = _Form(kernel, prepared.body, names.next, _tiled(prepared, constants, self.target))
            self._known[key] = found
        return found


def schedule_program(
    program: Program, target: Target, tuned: Mapping[str, str] = NOTHING, forms: Forms | None = None
) -> Program:
    """Needs: a lowered program. Does: schedules every kernel; operands of products that lie badly are packed by
    kernels of their own, constants at once. ``tuned`` holds labels of register blocks by the keys of ``find_blocks``,
    which are taken instead of those with the best estimate; ``forms`` are those that ``estimate`` found. Leaves: an
    equivalent program (see ir.kernel.interpret), ready for memory planning."""
    return _Scheduler(_divided(program, target), tuned, forms or Forms(target)).run()


def _divided(program: Program, target: Target) -> Program:
    """The program with the kernels that are scheduled one by one."""
    return split_reductions(separate_phases(block_chains(fixed_first(program), target)), target.costs.reduction)


@dataclass(frozen=True)
class Blocks:
    """The register blocks that a kernel can have."""

    key: str
    """The same for equal kernels of all programs."""
    labels: tuple[str, ...]
    """By estimated time, the one that is taken first."""


def find_blocks(program: Program, target: Target) -> dict[str, Blocks]:
    """Of a lowered program the kernels that become register blocks, by the names that they have once scheduled (what
    packs for one is named so with ``_pack`` behind)."""
    divided = _divided(program, target)
    fixed = fixed_storages(divided)
    found: dict[str, Blocks] = {}
    for kernel in divided.kernels:
        prepared, constants = _prepare(kernel, Names()), constant_buffers(divided, kernel, fixed)
        tiled = _tiled(prepared, constants, target)
        if tiled is not None:
            labels = tuple(tile.label for tile in rank_tiles(tiled[0], target, constants))
            found[kernel.name] = Blocks(_key(prepared, constants), labels)
    return found


def _key(prepared: Kernel, constants: frozenset[str]) -> str:
    text = print_kernel(replace(prepared, name="k", origin=()))
    return sha256(f"{text}\n{sorted(constants)}".encode()).hexdigest()


def estimate(program: Program, forms: Forms) -> float:
    """Cycles that a lowered program would take once scheduled, by the estimates from which the schedule chooses; what
    depends on weights alone costs nothing."""
    program = separate_phases(program)
    fixed = fixed_storages(program)
    found = {k.name: forms.find(k, constant_buffers(program, k, fixed)) for k in program.kernels}
    cycles = {name: form.cycles(forms.target) for name, form in found.items()}
    return sum(c.runs * cycles[c.kernel] for c in parted(program)[1])


def _plain_cycles(body: tuple[Stmt, ...], target: Target) -> float:
    return target.costs.contraction.plain_operation * sum(choose(s, target).cost for s in body if isinstance(s, Loop))


def _tiled(
    prepared: Kernel, constants: frozenset[str], target: Target, tuned: Mapping[str, str] = NOTHING
) -> tuple[Contraction, Tile] | None:
    """The contraction that a kernel is, with its ``tuned`` or best register block; None when it has none, or one so
    poor that loops with plain lanes are expected to take less than half of its time (they are estimated less well)."""
    contraction = find_contraction(prepared)
    label = tuned.get(_key(prepared, constants)) if tuned and contraction else None
    if contraction and label:
        for tile in rank_tiles(contraction, target, constants):
            if tile.label == label:
                return contraction, tile
    tile = choose_tile(contraction, target, constants) if contraction else None
    if contraction is None or tile is None:
        return None
    k = target.costs.contraction
    poor = tile.cycles > k.poor_block * contraction.work / (k.multiply_adds * target.lanes(contraction.dtype))
    return None if poor and 2 * _plain_cycles(prepared.body, target) < tile.cycles else (contraction, tile)


def constant_buffers(program: Program, kernel: Kernel, fixed: frozenset[str] | None = None) -> frozenset[str]:
    """Buffers of a kernel to which every call binds what is ``fixed`` (known for the program, or found), or what does
    not change while the call is repeated."""
    fixed = fixed_storages(program) if fixed is None else fixed
    varying: set[str] = set()
    for call in program.calls_of(kernel.name):
        for i, (buffer, storage) in enumerate(zip(kernel.arguments, call.args, strict=True)):
            constant = storage in fixed and program.is_whole(call, i)
            if not constant and _fixed_inside(program, call, i) == len(call.repeats):
                varying.add(buffer.name)
    return frozenset(b.name for b in kernel.arguments) - varying


def _fixed_inside(program: Program, call: Call, position: int) -> int:
    """In how many of the loops around a call, counted from outside, an argument changes; it is the same in all
    iterations of those that are left."""
    if not call.repeats:
        return 0
    depth = max((d + 1 for d, axis in enumerate(call.repeats) if call.place(position).coefficient(axis)), default=0)
    return max([depth, *(_common(call.repeats, other.repeats) for other in program.writers(call.args[position]))])


def _common(first: tuple[Axis, ...], second: tuple[Axis, ...]) -> int:
    """How many loops around one call are also around another one."""
    shorter = min(len(first), len(second))
    return next((d for d in range(shorter) if first[d] != second[d]), shorter)


def _prepare(kernel: Kernel, names: Names) -> Kernel:
    """The nest in a canonical form: quotients as axes, loops in the order of memory, no more of them than needed."""
    body = drop_trivial(kernel.body, names)
    while True:
        body = merge_loops(sort_loops(split_loops(body, names)), names)
        if not has_divisor(body):
            return replace(kernel, body=body)


def _vectorised(kernel: Kernel, target: Target, names: Names) -> Kernel:
    stored = {s.buffer for s, _ in walk(kernel.body) if isinstance(s, Store)}
    body = hoist(split_ranges(kernel.body, names, target.costs.loops), stored)
    far = far_reads(replace(kernel, body=body), target)
    return expand(replace(kernel, body=_lanes(body, target, names, far)))


def _lanes(
    body: tuple[Stmt, ...], target: Target, names: Names, far: frozenset[Axis] = frozenset()
) -> tuple[Stmt, ...]:
    """Every nest either as square blocks with register transposes, or with its cheapest axes across lanes."""
    result: list[Stmt] = []
    for stmt in body:
        tiled = transposed_tiles(stmt, target, names) if isinstance(stmt, Loop) else None
        if tiled is not None:
            result += tiled
        elif isinstance(stmt, Loop) and holds_transposed(stmt, target):
            result.append(Loop(stmt.axis, stmt.kind, _lanes(stmt.body, target, names, far)))
        else:
            result += vectorise((stmt,), target, names, far)
    return tuple(result)


class _Scheduler:
    def __init__(self, program: Program, tuned: Mapping[str, str], forms: Forms):
        self.program = program
        self.target = forms.target
        self.tuned = tuned
        self.forms = forms
        self.storages = list(program.storages)
        self.kernels: dict[str, Kernel] = {}
        self.packings: dict[str, tuple[Packing, Kernel]] = {}
        """By kernel name: what it wants packed, and the kernel that packs, not scheduled yet."""
        self.packed: dict[tuple[str, str], str] = {}
        """By (storage, packing kernel): the packed copy of what is fixed."""
        self.fixed = fixed_storages(program)

    def run(self) -> Program:
        for kernel in self.program.kernels:
            self._schedule(kernel)
        calls: list[Call] = []
        around: tuple[Axis, ...] = ()
        starts: list[int] = []
        """Where each of the open loops begins among the calls."""
        for number, call in enumerate(self.program.calls):
            kept = _common(around, call.repeats)
            starts[kept:] = [len(calls)] * (len(call.repeats) - kept)
            around = call.repeats
            *before, main = self._packed_call(call, number) if call.kernel in self.packings else [call]
            for pack in before:
                depth = len(pack.repeats)
                calls.insert(starts[depth] if depth < len(starts) else len(calls), pack)
                starts[depth:] = [start + 1 for start in starts[depth:]]
            calls.append(main)
        calls = self._without_unread(calls)
        used = {a for c in calls for a in c.args}
        kept = [s for s in self.storages if s.cls not in ("constant", "temp") or s.name in used]
        storages = (*(s for s in kept if s.cls != "temp"), *(s for s in kept if s.cls == "temp"))
        called = {c.kernel for c in calls}
        kernels = tuple(k for k in self.kernels.values() if k.name in called)
        return replace(self.program, storages=storages, kernels=kernels, calls=tuple(calls))

    def _without_unread(self, calls: list[Call]) -> list[Call]:
        """Calls without the arguments that a packed copy stands for, so that these need not be kept."""
        kept: dict[str, list[int]] = {}
        for name in {c.kernel for c in calls}:
            kernel = self.kernels[name]
            touched = {s.buffer for s, _ in walk(kernel.body) if isinstance(s, Load | Store)}
            stays = [b.role != "in" or b.name in touched for b in kernel.buffers]
            if not all(stays):
                kept[name] = [i for i, _ in enumerate(kernel.arguments) if stays[i]]
                buffers = tuple(b for b, stay in zip(kernel.buffers, stays, strict=True) if stay)
                self.kernels[name] = replace(kernel, buffers=buffers)
        return [_with_arguments(c, kept[c.kernel]) if c.kernel in kept else c for c in calls]

    def _schedule(self, kernel: Kernel) -> None:
        constants = constant_buffers(self.program, kernel, self.fixed)
        form = self.forms.find(kernel, constants)
        names, prepared = Names(first=form.names), replace(kernel, body=form.body)
        tiled = _tiled(prepared, constants, self.target, self.tuned) if self.tuned else form.tiled
        if tiled is None:
            self.kernels[kernel.name] = _vectorised(prepared, self.target, names)
            return
        contraction, tile = tiled
        packing = None
        if tile.pack is not None:
            packing = make_packing(contraction, tile, self.target, "packed")
            self.packings[kernel.name] = (packing, self._pack_kernel(kernel, packing))
            extra = Buffer("packed", tile.pack.dtype, packing.size, "in")
            args = [b for b in prepared.buffers if b.role != "scratch"]
            scratch = [b for b in prepared.buffers if b.role == "scratch"]
            prepared = replace(prepared, buffers=(*args, extra, *scratch))
        self.kernels[kernel.name] = expand(apply_tile(contraction, tile, prepared, self.target, names, packing))

    def _pack_kernel(self, kernel: Kernel, packing: Packing) -> Kernel:
        names = Names()
        source = kernel.buffer(packing.load.buffer)
        buffers = (
            replace(source, name="b0", role="in"),
            Buffer("b1", source.dtype, packing.size, "out"),
        )
        body = split_loops(pack_body(packing, names, "b1", "b0"), names)
        return Kernel(f"{kernel.name}_pack", buffers, body, kernel.origin)

    def _packed_call(self, call: Call, number: int) -> list[Call]:
        packing, pack = self.packings[call.kernel]
        kernel = self.program.kernel(call.kernel)
        position = [b.name for b in kernel.arguments].index(packing.load.buffer)
        source = self.program.storage(call.args[position])
        places = (*call.places, Index()) if call.places else ()
        fixed = source.name in self.fixed and self.program.is_whole(call, position)
        name = self.packed.get((source.name, pack.name)) if fixed else None
        known = name is not None
        name = name or f"{source.name}.packed{number}"
        main = replace(call, args=(*call.args, name), places=places)
        if known:
            return [main]
        if fixed:
            self.packed[source.name, pack.name] = name
        if fixed and source.cls == "constant":
            data = run_copy(pack, np.asarray(source.data))
            self.storages.append(Storage(name, source.dtype, data.shape, "constant", data=data))
            return [main]
        self.storages.append(Storage(name, source.dtype, (packing.size,), "temp"))
        self._add_packing(pack)
        repeats = call.repeats[: _fixed_inside(self.program, call, position)]
        given = () if self.program.is_whole(call, position) else (call.place(position), Index())
        return [Call(pack.name, (source.name, name), call.values, repeats, given), main]

    def _add_packing(self, pack: Kernel) -> None:
        if pack.name not in self.kernels:
            names = Names("y")
            self.kernels[pack.name] = replace(pack, body=_lanes(merge_loops(pack.body, names), self.target, names))


def _with_arguments(call: Call, positions: list[int]) -> Call:
    places = tuple(call.places[i] for i in positions) if call.places else ()
    return replace(call, args=tuple(call.args[i] for i in positions), places=places)


def run_copy(kernel: Kernel, source: np.ndarray) -> np.ndarray:
    """The result of a kernel that only copies ``b0`` into ``b1``, computed with numpy for constants at compile time."""
    result = np.zeros(kernel.buffer("b1").size, source.dtype)
    flat = np.ascontiguousarray(source).reshape(-1)
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Store):
            load = next(s for s in loops[-1].body if isinstance(s, Load))
            axes = [loop.axis for loop in loops]
            np.copyto(_view(result, stmt.index, axes), _view(flat, load.index, axes))
    return result


def _view(flat: np.ndarray, index: Index, axes: list[Axis]) -> np.ndarray:
    """The elements at ``index`` for every point of the axes; a view when the index is affine, else a copy."""
    shape = tuple(a.extent for a in axes)
    if all(isinstance(atom, Axis) for atom, _ in index.terms):
        strides = [index.coefficient(a) * flat.itemsize for a in axes]
        return np.lib.stride_tricks.as_strided(flat[index.constant :], shape, strides)
    grid = {a: np.arange(a.extent).reshape([-1 if b == a else 1 for b in axes]) for a in axes}
    return flat[np.broadcast_to(_evaluate(index, grid), shape)]


def _evaluate(index: Index, grid: dict[Axis, np.ndarray]) -> np.ndarray:
    total = np.asarray(index.constant)
    for atom, coefficient in index.terms:
        if isinstance(atom, Axis):
            value = grid[atom]
        elif isinstance(atom, Div):
            value = _evaluate(atom.operand, grid) // atom.divisor
        else:
            assert isinstance(atom, Mod)
            value = _evaluate(atom.operand, grid) % atom.divisor
        total = total + coefficient * value
    return total
