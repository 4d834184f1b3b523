"""Scheduling of kernels: run the steps on every kernel, and add the calls that pack operands of register blocks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.dtypes import float32
from graphc.base.errors import VerifyError
from graphc.base.pass_runner import PassRun, added_up
from graphc.base.progress import counted
from graphc.base.records import dataclass
from graphc.base.sizes.named_dims import dimensions, size_of
from graphc.base.sizes.size import LARGEST, Dimension, at, hint
from graphc.codegen.schedule.base import Context, Nest, NestStep, PassResult, Scheduled, count_changes
from graphc.codegen.schedule.contraction.for_sizes import cycles_at
from graphc.codegen.schedule.contraction.pack import Packing, pack_body
from graphc.codegen.schedule.estimate.cost import StatementCounts
from graphc.codegen.schedule.forms import common_loops, constant_buffers, fixed_inside
from graphc.codegen.schedule.loops.transform import merge_loops, split_loops
from graphc.codegen.schedule.memory.prepacking import call_invariant_storages
from graphc.codegen.schedule.steps import STEPS, put_lanes, run_steps
from graphc.ir.kernel.dims import bind_kernel, dims_of_kernel
from graphc.ir.kernel.index import Axis, Div, Index, Mod
from graphc.ir.kernel.map import BodyCopier, Names, map_parts, map_statements
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Load, Loop, Program, Storage, Store, walk
from graphc.ir.kernel.verify import verify_kernel

_SUFFIX = "_least"
"""Suffix of buffers that belong to the version for the least size."""


@dataclass(frozen=True)
class Version:
    """A kernel of two nests: one for the least size of a dimension, one for all other sizes."""

    kernel: Kernel
    packing: Packing | None
    """Packing for the version for the least size, which reads it from the argument ``packing.buffer``."""
    reason: str


def with_least_version(kernel: Kernel, nest: Nest, context: Context) -> Version | None:
    """Return a scheduled kernel with an added version for the least size of a dimension that runs across lanes.

    The version binds the dimension to that size and goes through the same steps. Returns None unless the version is
    expected to be clearly faster and to read few more bytes of weights. ``kernel`` is the unscheduled ``nest``.
    """
    remaining = dims_of_kernel(nest.kernel)  # a dimension vanishes where all loops over it never run
    candidates = (d for name, d in dims_of_kernel(kernel).items() if name in remaining)
    dimension = next((d for d in candidates if _leaves_lanes_empty(nest, d, context)), None)
    if dimension is None or (nest.packing is not None and nest.packing.load.buffer not in nest.constants):
        return None
    sizes, k = {dimension.name: dimension.low}, context.target.costs.lanes
    small, _ = run_steps(Nest(bind_kernel(kernel, sizes), Names(), nest.constants), context)
    if _more_weights(nest, small) > context.target.l2_bytes * k.version_weights:
        return None
    before, after = _costs(nest, small, sizes, context)
    if not after or after * k.version_gain > before or after + k.version_saved > before:
        return None  # a loop without iterations (``after`` is 0) needs no version either
    version = _joined(nest, small, dimension)
    try:
        verify_kernel(version.kernel)
    except VerifyError:  # the verifier cannot always prove that an index within a part of a size is within the size
        return None
    why = f"a version of its own for {dimension.name} = {dimension.low}, there {before / after:.2g} times as fast"
    return replace(version, reason=f"{why} by the estimate")


def _leaves_lanes_empty(nest: Nest, dimension: Dimension, context: Context) -> bool:
    """Check whether an axis across lanes is shorter than a register when the dimension is smallest."""
    if not 1 <= dimension.low < dimension.hint or nest.form is None:
        return False
    if nest.tile is not None:
        across = [nest.tile.vector]
    else:
        scalar_loops = {s.axis.name for s, _ in walk(nest.kernel.body) if isinstance(s, Loop)}
        axes = [s.axis for s, _ in walk(nest.form.body) if isinstance(s, Loop)]
        across = [axis for axis in axes if axis.name not in scalar_loops]
    lanes = context.target.lanes(float32)
    return any(_least(x.extent, dimension) < min(lanes, hint(x.extent)) for x in across)


def _costs(nest: Nest, small: Nest, sizes: Mapping[str, int], context: Context) -> tuple[float, float]:
    """Return the estimated costs of both nests for these sizes: cycles of register blocks, else statement counts."""
    if nest.form is not None and nest.tile is not None and small.tile is not None:
        canonical = replace(nest.kernel, body=nest.form.body)
        return cycles_at(canonical, nest.tile, sizes, context.target, nest.constants), small.tile.cycles
    before = StatementCounts().body(bind_kernel(nest.kernel, sizes).body)
    return before, StatementCounts().body(small.kernel.body)


def _least(size: Any, dimension: Dimension) -> int:
    """Evaluate a size with ``dimension`` at its least value and all others at their expected values."""
    return at(size, {d: d.low if d == dimension else d.hint for d in dimensions((size,)).values()})


def _more_weights(nest: Nest, small: Nest) -> int:
    """Return the bytes of constants that only the version for the least size reads, plus its packed copies."""
    read = [{s.buffer for s, _ in walk(x.kernel.body) if isinstance(s, Load)} for x in (nest, small)]
    extra = [b for b in small.kernel.arguments if b.name in read[1] - read[0] and b.name in small.constants]
    nbytes = sum(hint(b.size) * b.dtype.itemsize for b in extra)
    if small.packing is not None:
        fixed = small.packing.load.buffer in small.constants
        nbytes += hint(small.packing.size) * small.packing.load.dtype.itemsize if fixed else LARGEST
    return nbytes


def _joined(nest: Nest, small: Nest, dimension: Dimension) -> Version:
    """Return both nests in one kernel, each in a loop that runs once or not at all."""
    kernel, names = nest.kernel, nest.names
    own = {b.name: b.name + _SUFFIX for b in small.kernel.buffers if b.role == "scratch"}
    packing = small.packing
    if packing is not None:
        own[packing.buffer] = packing.buffer + _SUFFIX
        packing = replace(packing, buffer=packing.buffer + _SUFFIX)
    added = [replace(b, name=own[b.name]) for b in small.kernel.buffers if b.name in own]
    arguments = (*kernel.arguments, *(b for b in added if b.role != "scratch"))
    scratch = [b for b in (*kernel.buffers, *added) if b.role == "scratch"]
    renamed = map_statements(small.kernel.body, leaf=lambda s: (map_parts(s, buffer=lambda b: own.get(b, b)),))
    body = BodyCopier(names, {}).body(renamed)
    more = (size_of(dimension) + (dimension.high - dimension.low - 1)) // dimension.high
    both = ((names.axis("w", 1 - more), body), (names.axis("w", more), kernel.body))
    loops = tuple(Loop(axis, "version", inner) for axis, inner in both)
    return Version(replace(kernel, buffers=(*arguments, *scratch), body=loops), packing, "")


@dataclass(frozen=True)
class Nests:
    """Schedule every kernel, and pack operands.

    Needs: kernels without lanes. Does: runs STEPS on every kernel. Packs an operand of a register block by a separate
    kernel before the call, outside of loops in which it does not change; packs constants at compile time. Leaves: an
    equivalent program without memory plan, with kernels in the form in which they are emitted.

    ``@k(x, w, y)`` -> ``@k_pack(w, w.packed0); @k(x, w.packed0, y)``.
    """

    name: str = "nests"
    steps: tuple[NestStep, ...] = STEPS
    """Steps on every kernel; any subset leaves an equivalent program, too."""

    def run(self, scheduled: Scheduled, context: Context) -> PassResult:
        """Schedule each kernel once, however often it is called."""
        scheduler = _Scheduler(scheduled.program, context, self.steps)
        program = scheduler.run()
        changed = count_changes(scheduled.program, program)
        reasons = tuple(f"{kernel}: {reason}" for kernel, run in scheduler.runs for reason in run.reasons)
        reasons = (*reasons, *scheduler.versions)
        steps = added_up(run for _, run in scheduler.runs)
        return PassResult(replace(scheduled, program=program), changed, reasons, steps)


_PackedPart = tuple[str, str, tuple[Axis, ...], Index]
"""Key of a packed copy: the packing kernel, the source storage, the loops around the copy, and the source's offset."""


class _Scheduler:
    def __init__(self, program: Program, context: Context, steps: tuple[NestStep, ...] = STEPS):
        self.program = program
        self.context = context
        self.steps = steps
        self.runs: list[tuple[str, PassRun]] = []
        """Records of the steps' runs, with the name of the kernel."""
        self.storages = list(program.storages)
        self.kernels: dict[str, Kernel] = {}
        self.packings: dict[str, list[tuple[Packing, Kernel]]] = {}
        """Packings by kernel name, each with the (unscheduled) packing kernel."""
        self.versions: list[str] = []
        """Reasons for several versions of kernels."""
        self.packed: dict[tuple[str, str], str] = {}
        """Packed copies of call-invariant storages, by (storage, packing kernel)."""
        self.latest: dict[_PackedPart, tuple[int, str]] = {}
        """The last call (number) that packed a part, and the name of the copy."""
        self.fixed = call_invariant_storages(program)

    def run(self) -> Program:
        for kernel in counted(self.program.kernels):
            self._schedule(kernel)
        calls: list[Call] = []
        around: tuple[Axis, ...] = ()
        starts: list[int] = []
        """Position among the calls at which each open loop begins."""
        for number, call in enumerate(self.program.calls):
            shared = common_loops(around, call.loops)
            starts[shared:] = [len(calls)] * (len(call.loops) - shared)
            around = call.loops
            *before, main = self._packed_calls(call, number)
            for pack in before:
                depth = len(pack.loops)
                calls.insert(starts[depth] if depth < len(starts) else len(calls), pack)
                starts[depth:] = [start + 1 for start in starts[depth:]]
            calls.append(main)
        calls = self._without_unread(calls)
        used = {a for c in calls for a in c.args}
        needed = [s for s in self.storages if s.cls not in ("constant", "temp") or s.name in used]
        storages = (*(s for s in needed if s.cls != "temp"), *(s for s in needed if s.cls == "temp"))
        called = {c.kernel for c in calls}
        kernels = tuple(k for k in self.kernels.values() if k.name in called)
        return replace(self.program, storages=storages, kernels=kernels, calls=tuple(calls))

    def _without_unread(self, calls: list[Call]) -> list[Call]:
        """Drop arguments that kernels no longer read because they read a packed copy, so that these may be freed."""
        positions: dict[str, list[int]] = {}
        for name in {c.kernel for c in calls}:
            kernel = self.kernels[name]
            touched = {s.buffer for s, _ in walk(kernel.body) if isinstance(s, Load | Store)}
            stays = [b.role != "in" or b.name in touched or kernel.host >= 0 for b in kernel.buffers]
            if not all(stays):
                positions[name] = [i for i, _ in enumerate(kernel.arguments) if stays[i]]
                buffers = tuple(b for b, stay in zip(kernel.buffers, stays, strict=True) if stay)
                self.kernels[name] = replace(kernel, buffers=buffers)
        return [_with_arguments(c, positions[c.kernel]) if c.kernel in positions else c for c in calls]

    def _schedule(self, kernel: Kernel) -> None:
        if kernel.host >= 0:
            self.kernels[kernel.name], self.packings[kernel.name] = kernel, []
            return
        constants = constant_buffers(self.program, kernel, self.fixed)
        nest, runs = run_steps(Nest(kernel, Names(), constants), self.context, self.steps)
        self.runs += [(kernel.name, run) for run in runs]
        self.kernels[kernel.name] = nest.kernel
        packings: list[tuple[Packing, Kernel]] = []
        for packing in (nest.packing, nest.row_packing):
            if packing is not None:
                packings.append((packing, self._pack_kernel(kernel, packing, len(packings))))
        version = with_least_version(kernel, nest, self.context)
        if version is not None:
            self.kernels[kernel.name] = version.kernel
            self.versions.append(f"{kernel.name}: {version.reason}")
            if version.packing is not None:
                packings.append((version.packing, self._pack_kernel(kernel, version.packing, len(packings))))
        self.packings[kernel.name] = packings

    def _pack_kernel(self, kernel: Kernel, packing: Packing, number: int = 0) -> Kernel:
        names = Names()
        source = kernel.buffer(packing.load.buffer)
        buffers = (
            replace(source, name="b0", role="in"),
            Buffer("b1", source.dtype, packing.size, "out"),
        )
        body = split_loops(pack_body(packing, names, "b1", "b0"), names)
        return Kernel(f"{kernel.name}{f'_{number}' if number else ''}_pack", buffers, body, kernel.origin)

    def _packed_calls(self, call: Call, number: int) -> list[Call]:
        """Return the calls that pack a kernel's operands, followed by the call itself, which reads the copies."""
        before: list[Call] = []
        for i, (packing, pack) in enumerate(self.packings[call.kernel]):
            *packed, call = self._packed_call(call, packing, pack, (number, i))
            before += packed
        return [*before, call]

    def _packed_call(self, call: Call, packing: Packing, pack: Kernel, number: tuple[int, int]) -> list[Call]:
        kernel = self.program.kernel(call.kernel)
        position = [b.name for b in kernel.arguments].index(packing.load.buffer)
        source = self.program.storage(call.args[position])
        offsets = (*call.offsets, Index()) if call.offsets else ()
        fixed = source.name in self.fixed and self.program.is_whole(call, position)
        name = self.packed.get((source.name, pack.name)) if fixed else None
        is_packed = name is not None
        name = name or f"{source.name}.packed{number[0]}" + (f"_{number[1]}" if number[1] else "")
        main = replace(call, args=(*call.args, name), offsets=offsets)
        if is_packed:
            return [main]
        if fixed:
            self.packed[source.name, pack.name] = name
        if fixed and source.cls == "constant" and not dims_of_kernel(pack):
            data = run_copy(pack, np.asarray(source.data))
            self.storages.append(Storage(name, source.dtype, data.shape, "constant", data=data))
            return [main]
        loops = call.loops[: fixed_inside(self.program, call, position)]
        copy_key = (pack.name, source.name, loops, call.offset(position))
        before = self._packed_before(call, number[0], copy_key)
        if before:
            return [replace(main, args=(*call.args, before))]
        self.latest[copy_key] = number[0], name
        self.storages.append(Storage(name, source.dtype, (call.size(packing.size),), "temp"))
        self._add_packing(pack)
        pack_offsets = () if self.program.is_whole(call, position) else (call.offset(position), Index())
        return [Call(pack.name, (source.name, name), call.values, loops, pack_offsets, call.sizes), main]

    def _packed_before(self, call: Call, number: int, copy_key: _PackedPart) -> str:
        """Return the copy of the same part made for an earlier call, if its source has not changed since; else ""."""
        pack, source, loops, _ = copy_key
        first, name = self.latest.get(copy_key, (0, ""))
        if not loops or not name or {d.name for d, _ in call.sizes} & dims_of_kernel(self.kernels[pack]).keys():
            return ""
        between = self.program.calls[first:number]
        stays = all(c.loops[: len(loops)] == loops and self._only_reads(c, source) for c in between)
        return name if stays else ""

    def _only_reads(self, call: Call, name: str) -> bool:
        """Check whether a call leaves a storage unchanged."""
        pairs = zip(self.program.kernel(call.kernel).arguments, call.args, strict=True)
        written = [self.program.storage(a) for b, a in pairs if b.role != "in"]
        return not any(s.name == name or s.alias for s in written)

    def _add_packing(self, pack: Kernel) -> None:
        if pack.name not in self.kernels:
            names = Names("y")
            self.kernels[pack.name] = replace(
                pack, body=put_lanes(merge_loops(pack.body, names), self.context.target, names)
            )


def _with_arguments(call: Call, positions: list[int]) -> Call:
    offsets = tuple(call.offsets[i] for i in positions) if call.offsets else ()
    return replace(call, args=tuple(call.args[i] for i in positions), offsets=offsets)


def run_copy(kernel: Kernel, source: np.ndarray) -> np.ndarray:
    """Run a kernel that only copies ``b0`` into ``b1`` with numpy, to pack constants at compile time."""
    result = np.zeros(kernel.buffer("b1").size, source.dtype)
    flat = np.ascontiguousarray(source).reshape(-1)
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Store):
            load = next(s for s in loops[-1].body if isinstance(s, Load))
            axes = [loop.axis for loop in loops]
            np.copyto(_view(result, stmt.index, axes), _view(flat, load.index, axes))
    return result


def _view(flat: np.ndarray, index: Index, axes: list[Axis]) -> np.ndarray:
    """Return the elements at ``index`` for every point of the axes; a view when the index is affine, else a copy."""
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
