"""Loop kernels: a loop around calls of kernels of scalars becomes one kernel, which keeps carries in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import isqrt

from graphc.base.records import dataclass
from graphc.base.sizes.size import is_size
from graphc.codegen.machine.costs import LoopCosts
from graphc.ir.kernel.index import Axis, Dynamic, Index, as_index, atoms, bounds
from graphc.ir.kernel.map import BodyCopier, Names, map_parts, substitute_axes
from graphc.ir.kernel.repeat import loop_spans, owners
from graphc.ir.kernel.statements import (
    Acc,
    Buffer,
    Call,
    Kernel,
    Load,
    Loop,
    Program,
    Read,
    Ref,
    Stmt,
    Storage,
    Store,
    Update,
    walk,
)


def make_loop_kernels(program: Program, costs: LoopCosts) -> Program:
    """Move each loop around calls of scalar kernels into a kernel.

    Needs: a scheduled program without memory plan. Does: emits the statements of all calls in one serial loop; an
    element that every iteration overwrites, such as a carry, becomes an accumulator, and what only the loop uses is not
    stored at all. Leaves: an equivalent program; every element is computed as before.
    """
    spans = {
        axis: span for axis, span in loop_spans(program.calls).items() if _is_scalar(program, axis, span, costs.kernel)
    }
    if not spans:
        return program
    owner = owners(program)
    kernels = list(program.kernels)
    calls: list[Call] = []
    done = 0
    for start, stop in sorted(spans.values()):
        runs = _iterations(program.calls[start].loops[-1].extent, costs.iterations)
        merged = _LoopKernel(program, owner, start, stop, runs).make(costs.carries) if runs else None
        if merged is not None:
            kernel, call = merged
            calls += [*program.calls[done:start], call]
            kernels.append(kernel)
            done = stop + 1
    if not done:
        return program
    calls += program.calls[done:]
    called, used = {c.kernel for c in calls}, {a for c in calls for a in c.args}
    used |= {axis.flag for c in calls for axis in c.loops if axis.flag}
    roots = {owner[name].name for name in used}
    storages = tuple(s for s in program.storages if s.cls not in ("constant", "temp") or s.name in used | roots)
    kernels = tuple(k for k in kernels if k.name in called)
    return replace(program, storages=storages, kernels=kernels, calls=tuple(calls))


def _iterations(extent: int, most: int) -> int:
    """Return how many iterations of a loop run in one call: all, or the largest divisor of a long loop; 0 where it
    is small."""
    if is_size(extent) or extent <= most:
        return extent
    return next((n for n in range(most, isqrt(most), -1) if extent % n == 0), 0)


def _is_scalar(program: Program, axis: Axis, span: tuple[int, int], most: int) -> bool:
    """Check whether a loop repeats nothing but kernels of scalars, in memory of a known order."""
    calls = program.calls[span[0] : span[1] + 1]
    loops = calls[0].loops
    if loops[-1] != axis or any(c.loops != loops or c.sizes for c in calls) or axis.flag:
        return False
    kernels = [program.kernel(c.kernel) for c in calls]
    if sum(len(k.body) for k in kernels) > most or any(
        k.host >= 0 or len(k.arguments) < len(k.buffers) for k in kernels
    ):
        return False
    simple = not any(isinstance(s, Loop | Acc) or (isinstance(s, Store) and s.combine) for k in kernels for s in k.body)
    return simple and not any(program.storage(a).cls == "status" for c in calls for a in c.args)


_Cell = tuple[str, Index]
"""An element of a buffer."""


@dataclass
class _StorageView:
    """The part of a storage that a loop uses, as a buffer of its kernel."""

    buffer: str
    storage: Storage
    around: Index
    """Base offset in the loops around the loop, without a constant."""
    first: int = 0
    """Lowest value of that offset."""
    size: int = 0


class _LoopKernel:
    """The kernel of one loop, while it is made."""

    def __init__(self, program: Program, owner: dict[str, Storage], start: int, stop: int, runs: int):
        self.program, self.owner, self.start, self.stop = program, owner, start, stop
        self.calls = program.calls[start : stop + 1]
        *around, self.axis = self.calls[0].loops
        self.runs = runs
        self.outer = Axis(f"{self.axis.name}_calls", 1 if runs == self.axis.extent else self.axis.extent // runs)
        """Loop around calls of the kernel."""
        self.around = (*around, self.outer) if self.outer.extent != 1 else tuple(around)
        self.names = Names()
        self.counter = self.names.axis("i", runs)
        self.views: dict[str, _StorageView] = {}
        """By name of the storage that owns the memory."""

    def make(self, most: int) -> tuple[Kernel, Call] | None:
        """Return the kernel and its call; None where there are more than ``most`` carries, where parts of one storage
        move differently, and where an index would become a literal."""
        statements: list[Stmt] = []
        for call in self.calls:
            if not self.bind(call):
                return None
            statements += self.copied(call)
        body = _LoopStatements(statements, self)
        if body.has_literal_index or len(body.carried) > most:
            return None
        loop = Loop(self.counter, "serial", tuple(body.inside))
        kernel_body = (*body.before, loop, *body.after)
        loaded = {s.buffer for s, _ in walk(kernel_body) if isinstance(s, Load)}
        stores: dict[str, set[Index]] = {}
        for stmt, _ in walk(kernel_body):
            if isinstance(stmt, Store):
                stores.setdefault(stmt.buffer, set()).add(stmt.index)
        buffers, views = [], []
        for view in self.views.values():
            role = self.role(view, view.buffer in loaded, stores.get(view.buffer, set()))
            if role == "unclear":
                return None
            if role:
                buffers.append(Buffer(view.buffer, view.storage.dtype, view.size, role))
                views.append(view)
        origin = tuple(dict.fromkeys(o for c in self.calls for o in self.program.kernel(c.kernel).origin))
        kernel = Kernel(f"loop_{self.axis.name}", tuple(buffers), kernel_body, origin)
        offsets = tuple(view.around - view.first for view in views) if self.around else ()
        values = tuple(v for c in self.calls for v in c.values)
        return kernel, Call(kernel.name, tuple(view.storage.name for view in views), values, self.around, offsets)

    def bind(self, call: Call) -> bool:
        """Declare the storages of a call; return False where the loops around the loop move a part of one otherwise
        than another part."""
        for i, name in enumerate(call.args):
            root, offset = self.owner[name], call.offset(i)
            around = Index(tuple((atom, c) for atom, c in offset.terms if atom != self.axis))
            around += as_index(self.outer) * (offset.coefficient(self.axis) * self.runs)
            view = self.views.setdefault(root.name, _StorageView(f"b{len(self.views)}", root, around))
            if view.around != around:
                return False
            view.size = root.size
            if around.terms:
                low, high = bounds(view.around)
                view.first, view.size = low, root.size - (high - low)
        return True

    def copied(self, call: Call) -> list[Stmt]:
        """Return the statements of a call's kernel, on the buffers of the loop's kernel."""
        kernel = self.program.kernel(call.kernel)
        shifts: dict[str, tuple[str, Index]] = {}
        for i, buffer in enumerate(kernel.arguments):
            view, offset = self.views[self.owner[call.args[i]].name], call.offset(i)
            step = as_index(self.counter) * offset.coefficient(self.axis)
            shifts[buffer.name] = view.buffer, step + (offset.constant + view.first)
        copied: list[Stmt] = []
        for stmt in BodyCopier(self.names, {}).body(kernel.body):
            if isinstance(stmt, Load | Store):
                name, shift = shifts[stmt.buffer]
                stmt = replace(stmt, buffer=name, index=stmt.index + shift)
            copied.append(stmt)
        return copied

    def role(self, view: _StorageView, is_loaded: bool, stored: set[Index]) -> str:
        """Return the role of a buffer: empty if the kernel does not use it, ``unclear`` if a loop around the kernel
        may carry what it has not written yet."""
        if not stored:
            return "in" if is_loaded else ""
        steps = {index.coefficient(self.counter) for index in stored}
        runs = self.runs if any(steps) else 1
        is_whole = len(steps) == 1 and len(stored) * runs == view.size and all(len(i.terms) <= 1 for i in stored)
        root = view.storage.name
        earlier = (
            self.owner[a].name == root
            for c in self.program.calls[: self.start]
            for b, a in zip(self.program.kernel(c.kernel).arguments, c.args, strict=True)
            if b.role != "in"
        )
        if view.storage.cls not in ("output", "temp") or any(earlier):
            return "inout" if is_loaded or not is_whole else "out"
        return "unclear" if self.around and not is_whole else "out"

    def is_read_outside(self, buffer: str) -> bool:
        """Check whether anything but this loop may read what it leaves in a buffer."""
        root = next(view.storage for view in self.views.values() if view.buffer == buffer)
        names = {name for name, storage in self.owner.items() if storage is root}
        if any(self.program.storage(name).cls != "temp" for name in names):
            return True
        others = (*self.program.calls[: self.start], *self.program.calls[self.stop + 1 :])
        flags = {axis.flag for c in others for axis in c.loops}
        return not names.isdisjoint(flags) or any(not names.isdisjoint(c.args) for c in others)


class _LoopStatements:
    """Statements before, inside and after the loop. Elements at fixed indices become scalars and accumulators."""

    def __init__(self, statements: Sequence[Stmt], kernel: _LoopKernel):
        self.kernel = kernel
        self.before: list[Stmt] = []
        self.inside: list[Stmt] = []
        self.after: list[Stmt] = []
        accesses = [s for s in statements if isinstance(s, Load | Store)]
        self.moving = {s.buffer for s in accesses if s.index.terms or s.guard}
        """Buffers with elements that differ by iteration, which stay in memory."""
        self.overwritten = {(s.buffer, s.index) for s in accesses if isinstance(s, Store)}
        self.values: dict[_Cell, Ref] = {}
        """Present values of elements."""
        self.carried: dict[_Cell, str] = {}
        """Accumulators of elements that an iteration reads before it overwrites them."""
        self.renamed: dict[str, Ref] = {}
        self.has_literal_index = False
        for stmt in statements:
            self.add(map_parts(stmt, ref=self.ref, index=self.index))
        for cell in sorted(self.overwritten, key=str):
            if cell[0] not in self.moving:
                self.finish(cell)

    def ref(self, ref: Ref) -> Ref:
        return self.renamed.get(ref, ref) if isinstance(ref, str) else ref

    def index(self, index: Index) -> Index:
        names = {a.name for a in atoms(index) if isinstance(a, Dynamic)}
        self.has_literal_index |= any(not isinstance(self.ref(name), str) for name in names)
        return substitute_axes(index, {}, self.renamed)

    def add(self, stmt: Stmt) -> None:
        """Add a statement, unless its value is known or its element is not kept in memory."""
        if isinstance(stmt, Load) and not stmt.guard:
            cell = stmt.buffer, stmt.index
            if cell not in self.values:
                self.values[cell] = self.load(stmt, cell)
            if self.values[cell] != stmt.name:
                self.renamed[stmt.name] = self.values[cell]
            return
        if isinstance(stmt, Store):
            if stmt.buffer in self.moving:
                self.inside.append(stmt)
                self.values = {cell: value for cell, value in self.values.items() if cell[0] != stmt.buffer}
            if not stmt.guard:
                self.values[stmt.buffer, stmt.index] = stmt.value
            return
        self.inside.append(stmt)

    def load(self, stmt: Load, cell: _Cell) -> Ref:
        """Emit the first load of an element in an iteration, and return its value."""
        if stmt.buffer in self.moving:
            self.inside.append(stmt)
            return stmt.name
        self.before.append(stmt)
        if cell not in self.overwritten:
            return stmt.name
        name = self.carried[cell] = self.kernel.names.scalar("c")
        self.before.append(Acc(name, stmt.dtype, "last", stmt.name))
        value = self.kernel.names.scalar(stmt.name)
        self.inside.append(Read(value, name))
        return value

    def finish(self, cell: _Cell) -> None:
        """Hand a fixed element on to the next iteration, and to what follows the loop."""
        buffer, index = cell
        leaves = self.kernel.is_read_outside(buffer)
        if cell not in self.carried:
            self.inside += [Store(buffer, index, self.values[cell])] if leaves else []
            return
        self.inside.append(Update(self.carried[cell], self.values[cell]))
        if leaves or self.kernel.around:
            name = self.kernel.names.scalar("c")
            self.after += [Read(name, self.carried[cell]), Store(buffer, index, name)]
