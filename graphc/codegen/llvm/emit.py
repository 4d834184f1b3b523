"""One scheduled kernel as an LLVM function: the only code that turns statements of kernel IR into instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from graphc.base.dtypes import int64
from graphc.base.errors import CompileError
from graphc.base.sizes.size import bounds, is_size
from graphc.codegen.llvm.accumulator import Accumulator, AccumulatorWriter, Key, analyse, sums_in_order
from graphc.codegen.llvm.function import Coordinates, FunctionWriter, LaneValue
from graphc.codegen.llvm.indices import VectorAxis
from graphc.codegen.llvm.memory import MemoryWriter
from graphc.codegen.llvm.module import Function, Item, Parameter
from graphc.codegen.llvm.scalar import ScalarEmitter, register_type, splat_literal
from graphc.codegen.llvm.share import ShareWriter
from graphc.codegen.llvm.sizes import register_of
from graphc.codegen.llvm.strided import Pattern, merge_spans
from graphc.codegen.llvm.tiles import TileWriter
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.threads.chunks import Chunking
from graphc.ir.kernel.dims import dims_of_kernel
from graphc.ir.kernel.index import Axis, Dynamic, Index, atoms
from graphc.ir.kernel.map import operands_of
from graphc.ir.kernel.products import FACTORS, fused_products
from graphc.ir.kernel.statements import (
    Acc,
    Const,
    IndexLet,
    Kernel,
    Let,
    Load,
    Loop,
    Prefetch,
    Read,
    Ref,
    Stmt,
    Store,
    Update,
    identity,
    walk,
)


def emit_kernel(
    kernel: Kernel,
    target: Target,
    declarations: dict[str, Item],
    chunking: Chunking | None = None,
    non_temporal: frozenset[str] = frozenset(),
) -> Function:
    """Return the function ``void @name(ptr, ...)`` of a scheduled kernel, and add its callees to ``declarations``.

    Its parameters are the kernel's buffers in order, scratch included, and its named dimensions, by name. With
    ``chunking`` the number of the chunk and the number of chunks follow. With ``non_temporal`` (see
    memory.non_temporal) it is ``@name.streamed``, for buffers that start at a cache line.
    """
    if kernel.host >= 0:
        return emit_host(kernel)
    emitter = KernelEmitter(chunking.kernel if chunking else kernel, target, declarations, chunking)
    emitter.memory.non_temporal = non_temporal
    return emitter.emit()


HOST = "graphc_host"
"""Symbol that programs with host calls import: a pointer to ``void (i64 number, ptr addresses)``. It calls the Python
function ``number`` on the buffers at these addresses (see runtime.host_calls)."""


def emit_host(kernel: Kernel) -> Function:
    """Return a kernel that calls a Python function with an array of its buffers' addresses. Its first result, the
    token, signals failure until the server of the call clears it, also if Ctrl-C comes before that."""
    count = len(kernel.buffers)
    lines = [f"  %addresses = alloca [{count} x ptr], align 8"]
    for i in range(count):
        lines.append(f"  %a{i} = getelementptr inbounds ptr, ptr %addresses, i64 {i}")
        lines.append(f"  store ptr %b{i}, ptr %a{i}, align 8")
    lines.append("  store float 1.0, ptr %b0, align 4")
    lines.append(f"  %host = load ptr, ptr @{HOST}, align 8")
    lines.append(f"  call void %host(i64 {kernel.host}, ptr %addresses)")
    parameters = tuple(("ptr", f"%b{i}") for i in range(count))
    return Function(kernel.name, parameters, "\n".join(["entry:", *lines, "  ret void"]), calls=True)


def non_temporal_name(kernel: str) -> str:
    """Return the name of a kernel's function with non-temporal stores."""
    return f"{kernel}.streamed"


class KernelEmitter:
    """Emitter of a kernel. A ``vector`` or ``unroll`` loop emits no loop: its body is emitted once, and every value
    that depends on the axis exists once per lane or copy. All copies share the loops inside (unroll and jam)."""

    def __init__(self, kernel: Kernel, target: Target, declarations: dict[str, Item], chunking: Chunking | None = None):
        self.kernel = kernel
        self.target = target
        self.function = FunctionWriter(declarations, target.word_bits)
        self.share = ShareWriter(self.function, chunking) if chunking else None
        self.scalar = ScalarEmitter(self.function.line, self.function.declare, target)
        self.memory = MemoryWriter(self.function, self.value, target)
        self.tiles = TileWriter(self.function, self.memory, kernel, target)
        self.accumulators = AccumulatorWriter(self.function, self.scalar)
        self.spreads, self.lanes = analyse(kernel)
        self.in_order = sums_in_order(kernel, self.spreads) if target.costs.strict_order else frozenset()
        self.products = _products(kernel, target)
        self.late = frozenset() if target.memory_operands else _read_where_multiplied(kernel, self.products)
        self.values: dict[str, LaneValue] = {}
        self.live: dict[str, Accumulator] = {}
        self.inits: dict[str, Ref] = {}
        self.unroll: list[Axis] = []

    def emit(self) -> Function:
        """Emit the kernel and return its function."""
        parameters: list[Parameter] = []
        for i, buffer in enumerate(self.kernel.buffers):
            self.memory.buffers[buffer.name] = (buffer, f"%b{i}")
            readonly = " readonly" if buffer.role == "in" else ""
            parameters.append((f"ptr noalias nocapture{readonly}", f"%b{i}"))
        parameters += [("i64", register_of(d)) for d in dims_of_kernel(self.kernel).values()]
        if self.share is not None:
            parameters += ShareWriter.PARAMETERS
            self.share.start()
        self.tiles.start()
        self.body(self.kernel.body)
        self.tiles.end()
        name = self.kernel.name
        if self.memory.non_temporal:
            name = non_temporal_name(name)
            fence = self.target.instruction("fence")
            if fence is None:
                raise CompileError(f"@{name}: nothing orders non-temporal stores on {self.target.triple}")
            self.function.statement(fence.text(self.function, (), ""))
        return Function(
            name, tuple(parameters), f"entry:\n{self.function.text()}\n  ret void", calls=self.function.calls
        )

    def value(self, name: str) -> LaneValue:
        """Return the emitted form of an SSA scalar."""
        return self.values[name]

    def operand(self, ref: Ref) -> LaneValue | Const:
        """Return the emitted form of an operand."""
        return ref if isinstance(ref, Const) else self.values[ref]

    def copies(self, axes: Iterable[Axis]) -> Iterator[tuple[tuple[int, ...], Coordinates]]:
        """Yield (key, coordinates) of every copy along ``axes``."""
        ordered = tuple(axes)
        for c in product(*(range(a.extent) for a in ordered)):
            yield c, dict(zip(ordered, c, strict=True))

    def used_axes(self, refs: Iterable[Ref], indices: Iterable[Index] = ()) -> tuple[Axis, ...]:
        """Return the unrolled axes that values or index expressions depend on, outermost first."""
        axes_used: set[Axis] = set()
        for ref in refs:
            if isinstance(ref, str):
                axes_used.update(self.values[ref].axes)
        for index in indices:
            for atom in atoms(index):
                if isinstance(atom, Dynamic):
                    axes_used.update(self.values[atom.name].axes)
                else:
                    axes_used.add(atom)
        return tuple(a for a in self.unroll if a in axes_used)

    # ---- statements

    def body(self, statements: tuple[Stmt, ...]) -> None:
        """Emit statements in order."""
        before = self.memory.spans
        if self.memory.vector is not None:
            self.memory.spans = merge_spans(self._strided_reads(statements))
        for stmt in statements:
            _EMIT[type(stmt)](self, stmt)
        self.memory.spans = before

    def _strided_reads(self, statements: tuple[Stmt, ...]) -> Iterator[tuple[Pattern, int, int]]:
        """Yield the short-stride reads of the statements from constant buffers."""
        for stmt in statements:
            if not isinstance(stmt, Load) or stmt.guard or self.kernel.buffer(stmt.buffer).role != "in":
                continue
            if any(isinstance(a, Dynamic) for a in atoms(stmt.index)):
                continue
            for _, at in self.copies(self.used_axes((), (stmt.index,))):
                read = self.memory.strided_read(stmt.buffer, stmt.index, at)
                if read is not None:
                    yield read

    def let(self, stmt: Let) -> None:
        """Emit a scalar operation."""
        if stmt.name in self.products:
            return
        args = [self.operand(a) for a in stmt.args]
        lanes = max((a.lanes for a in args if isinstance(a, LaneValue)), default=0)
        axes = self.used_axes(stmt.args)
        result = LaneValue(stmt.dtype, axes, lanes, depth=self.function.depth)
        types = [a.dtype for a in args]
        for c, at in self.copies(axes):
            registers = [self.function.widen(a, at, lanes) for a in args]
            result.registers[c] = self.scalar.emit(stmt.op, registers, types, stmt.dtype, lanes)
        self.values[stmt.name] = result

    def index_let(self, stmt: IndexLet) -> None:
        """Emit an index as a value."""
        axes = self.used_axes((), (stmt.index,))
        vector = self.memory.vector
        lanes = vector.lanes if vector and self.memory.varies(stmt.index) else 0
        result = LaneValue(stmt.dtype, axes, lanes, depth=self.function.depth)
        for c, at in self.copies(axes):
            index = self.memory.fix(stmt.index, at)
            if lanes:
                result.registers[c] = self.memory.vector_index(index, at, stmt.dtype)
                continue
            register = self.memory.scalar_index(index, at)
            if stmt.dtype.bits != 64 and register.startswith("%"):
                register = self.function.line(f"trunc i64 {register} to {register_type(stmt.dtype)}")
            result.registers[c] = register
        self.values[stmt.name] = result

    def load(self, stmt: Load) -> None:
        """Emit a load, one instruction per different copy."""
        axes = self.used_axes((), (stmt.index, *(b.index for b in stmt.guard)))
        result = LaneValue(stmt.dtype, axes, 0, depth=self.function.depth)
        across = None if stmt.guard else self.memory.transposed_axis(stmt.index, axes)
        if across is not None:
            self._load_transposed(stmt, across, result)
            return
        load = self.memory.load
        if stmt.name in self.late:
            self._load_late(stmt, result)
            return
        loaded = {c: load(stmt.buffer, stmt.index, stmt.guard, stmt.other, at) for c, at in self.copies(axes)}
        result.lanes = max(lanes for _, lanes in loaded.values())
        for c, (register, lanes) in loaded.items():  # one copy of x[(lane + 4 * copy) // 5] may not vary by lane
            wide = result.lanes and not lanes
            result.registers[c] = self.function.splat(register, stmt.dtype, result.lanes) if wide else register
        self.values[stmt.name] = result

    def _load_late(self, stmt: Load, result: LaneValue) -> None:
        """Record a load whose copies are emitted where they are multiplied. A block with nearly as many sums as
        registers has no room for other copies."""
        indices = (stmt.index, *(b.index for b in stmt.guard))
        varies = any(self.memory.varies(self.memory.fix(i, at)) for i in indices for _, at in self.copies(result.axes))
        result.lanes = self.memory.vector.lanes if self.memory.vector and varies else 0

        def make(at: Coordinates) -> str:
            register, lanes = self.memory.load(stmt.buffer, stmt.index, stmt.guard, stmt.other, at)
            return self.function.splat(register, stmt.dtype, result.lanes) if result.lanes and not lanes else register

        result.make = make
        self.values[stmt.name] = result

    def _load_transposed(self, stmt: Load, across: Axis, result: LaneValue) -> None:
        """Load all copies along ``across`` at once: rows are read along it and transposed in registers."""
        position = result.axes.index(across)
        for c, at in self.copies(a for a in result.axes if a != across):
            columns = self.memory.load_transposed(stmt.buffer, stmt.index, across, at)
            result.lanes = len(columns)
            for i, register in enumerate(columns):
                result.registers[(*c[:position], i, *c[position:])] = register
        self.values[stmt.name] = result

    def store(self, stmt: Store) -> None:
        """Emit a store, plain or combining."""
        indices = (stmt.index, *(b.index for b in stmt.guard))
        axes = self.used_axes((stmt.value,), indices)
        value = self.operand(stmt.value)
        varies = any(self.memory.varies(i) for i in indices)
        if stmt.combine:
            self._check_combining(stmt, axes)
        vector = self.memory.vector
        lanes = vector.lanes if vector and varies else 0
        dtype = self.kernel.buffer(stmt.buffer).dtype
        if not stmt.guard and not stmt.combine and self._store_together(stmt, value, axes, lanes):
            return
        for _, at in self.copies(axes):
            register = self.function.widen(value, at, lanes)
            if stmt.combine:
                old, _ = self.memory.load(stmt.buffer, stmt.index, stmt.guard, Const(0, dtype), at)
                register = self.accumulators.combine(stmt.combine, old, register, dtype, lanes)
            self.memory.store(stmt.buffer, stmt.index, stmt.guard, register, at)

    def _store_together(self, stmt: Store, value: LaneValue | Const, axes: tuple[Axis, ...], lanes: int) -> bool:
        """Store all copies along an axis at once, if they fill the gaps between strided lanes or form rows."""
        memory = self.memory
        between = memory.interleaved_axis(stmt.index, axes)
        across = between or memory.row_axis(stmt.index, axes)
        if across is None:
            return False
        write = memory.store_interleaved if between else memory.store_transposed
        for _, at in self.copies(a for a in axes if a != across):
            rows = [self.function.widen(value, {**at, across: i}, lanes) for i in range(across.extent)]
            write(stmt.buffer, stmt.index, across, rows, at)
        return True

    def prefetch(self, stmt: Prefetch) -> None:
        """Emit a prefetch, one instruction per different copy."""
        for _, at in self.copies(self.used_axes((), (stmt.index,))):
            self.memory.prefetch(stmt.buffer, stmt.index, at)

    def _check_combining(self, stmt: Store, axes: tuple[Axis, ...]) -> None:
        """Raise CompileError unless lanes of a combining store hit different elements and every copy stores."""
        vector = self.memory.vector
        if set(axes) != set(self.unroll) or (vector and not self.memory.access(stmt.index).stride):
            raise CompileError(f"@{self.kernel.name}: a combining store to %{stmt.buffer} cannot be vectorised")

    # ---- accumulators

    def acc(self, stmt: Acc) -> None:
        """Declare an accumulator."""
        vector = self.memory.vector
        lanes = vector.lanes if vector else 0
        acc = Accumulator(stmt.dtype, stmt.combine, "", tuple(self.unroll), lanes, self.spreads[stmt.name])
        init = self.operand(stmt.init)
        self.inits[stmt.name] = stmt.init
        copies = dict(self.copies(acc.axes))
        width = acc.width if acc.spread.running else lanes
        self.accumulators.start(acc, list(copies), lambda c: self.function.widen(init, copies[c], width))
        self.live[stmt.name] = acc

    def update(self, stmt: Update) -> None:
        """Combine a value into the registers of an accumulator."""
        acc = self.live[stmt.acc]
        extra = [a for a in self.unroll if a not in acc.axes]
        for _, at in self.copies(self.unroll):
            if stmt.acc in self.in_order:
                self._add_in_order(acc, stmt.value, at)
                continue
            key = (tuple(at[a] for a in acc.axes), _flat([(at[a], a.extent) for a in extra]))
            if acc.spread.running:
                self._run(acc, key, stmt.value, at)
                continue
            old = acc.registers[key]
            new = self._combined(acc, stmt.value, old, at)
            mask = self._updated_lanes(acc)
            acc.registers[key] = self.scalar.select(mask, new, old, acc.dtype, acc.width) if mask else new

    def _updated_lanes(self, acc: Accumulator) -> str:
        """Return the mask of the lanes that an update changes here; empty for all lanes."""
        vector = self.memory.vector
        if acc.spread.lanes > 1 and vector is None:  # a term outside of lanes counts once
            return f"<{', '.join(['i1 true', *['i1 false'] * (acc.width - 1)])}>"
        return self.memory.mask() if acc.spread.lanes and vector is not None and vector.partial else ""

    def _add_in_order(self, acc: Accumulator, value: Ref, at: Coordinates) -> None:
        """Combine the lanes of a value one after the other: computed in parallel, rounded in the written order."""
        key, vector = (tuple(at[a] for a in acc.axes), 0), self.memory.vector
        lanes = vector.lanes if vector is not None and not acc.lanes else 0
        let = self.products.get(value) if isinstance(value, str) else None
        operands = let.args if let is not None else (value,)
        terms, used = [self.function.widen(self.operand(x), at, lanes or acc.lanes) for x in operands], lanes
        if lanes and vector is not None and vector.partial:
            if vector.fixed:
                used = vector.axis.extent
            else:
                nothing = Const(-0.0, acc.dtype) if acc.combine == "add" else identity(acc.combine, acc.dtype)
                neutral = (nothing, Const(1.0, acc.dtype))  # -0 * 1 changes no sum
                terms = [
                    self.scalar.select(self.memory.mask(), x, splat_literal(c, lanes), acc.dtype, lanes)
                    for x, c in zip(terms, neutral, strict=False)
                ]
        acc.registers[key] = self.accumulators.add_in_order(acc, acc.registers[key], terms, lanes, used)

    def _run(self, acc: Accumulator, key: Key, value: Ref, at: Coordinates) -> None:
        vector = self.memory.vector
        register = self.function.widen(self.operand(value), at, acc.width)
        if vector is None:
            old = acc.registers[key]
            acc.registers[key] = self.accumulators.combine(acc.combine, old, register, acc.dtype, acc.width)
            return
        if vector.partial:
            neutral = splat_literal(identity(acc.combine, acc.dtype), acc.width)
            register = self.scalar.select(self.memory.mask(), register, neutral, acc.dtype, acc.width)
        self.accumulators.run(acc, key, register, vector.axis)

    def _combined(self, acc: Accumulator, value: Ref, old: str, at: Coordinates) -> str:
        product_of = self.products.get(value) if isinstance(value, str) else None
        if product_of is not None:
            a, b = (self.function.widen(self.operand(r), at, acc.width) for r in product_of.args)
            if product_of.op not in FACTORS:
                return self.scalar.add_dot(product_of.op, a, b, old, acc.width)
            return self.scalar.emit("fma", [a, b, old], [acc.dtype] * 3, acc.dtype, acc.width)
        register = self.function.widen(self.operand(value), at, acc.width)
        return self.accumulators.combine(acc.combine, old, register, acc.dtype, acc.width)

    def read(self, stmt: Read) -> None:
        """Emit the present value of an accumulator."""
        acc = self.live[stmt.acc]
        vector = self.memory.vector
        if vector is not None and acc.along == vector.axis:
            prefixes = {c: register for (c, _), register in acc.prefixes.items()}
            self.values[stmt.name] = LaneValue(acc.dtype, acc.axes, acc.width, prefixes, depth=self.function.depth)
            return
        result = LaneValue(acc.dtype, acc.axes, acc.lanes, depth=self.function.depth)
        for c, at in self.copies(acc.axes):
            init = self.function.widen(self.operand(self.inits[stmt.acc]), at, acc.lanes)
            result.registers[c] = self.accumulators.fold(acc, c, init)
        self.values[stmt.name] = result

    # ---- loops

    def loop(self, stmt: Loop) -> None:
        """Emit a lane loop, an unrolled loop, or a run-time loop."""
        if stmt.axis.extent == 0:
            return
        if stmt.kind == "vector":
            self._lane_loop(stmt)
        elif stmt.kind == "unroll":
            self.unroll.append(stmt.axis)
            self.body(stmt.body)
            self.unroll.pop()
        elif stmt.kind == "tile":
            self.tiles.block(stmt)
        elif self.share is not None and stmt.axis in self.share.shares:
            self._shared_loop(stmt, self.share)
        else:
            self._run_time_loop(stmt)

    def _lane_loop(self, stmt: Loop) -> None:
        """Emit all lanes at once; nothing for an empty loop."""
        lanes, extent = self.lanes[stmt.axis], stmt.axis.extent
        if is_size(extent) and lanes == 1:  # an extent of 0 or 1
            self._run_time_loop(Loop(stmt.axis, "serial", stmt.body))
            return
        if is_size(extent) and not self._has_lanes(extent, lanes):
            some = Axis(f"{stmt.axis.name}_some", (extent + (lanes - 1)) // lanes)
            self._run_time_loop(Loop(some, "serial", (stmt,)))
            return
        if lanes == 1:
            self.body(stmt.body)
            return
        if self.memory.vector is not None:
            raise CompileError(f"@{self.kernel.name}: vector loop {stmt.axis} inside another one")
        self.memory.vector = VectorAxis(stmt.axis, lanes)
        if not self._copied(stmt):
            self.body(stmt.body)
        self.memory.vector = None

    def _has_lanes(self, extent: Any, lanes: int) -> bool:
        """Return whether an extent is positive here: always, or because a loop around it runs zero times otherwise."""
        around = [scope.axis.extent for scope in self.function.scopes if scope.axis is not None]
        return bounds(extent)[0] > 0 or any(extent == e or (extent + (lanes - 1)) // lanes == e for e in around)

    def _copied(self, stmt: Loop) -> bool:
        """Emit a lane loop that only transposes a square block, from rows along unrolled copies to rows along the
        lanes. Return False for other loops."""
        load, store = stmt.body if len(stmt.body) == 2 else (None, None)
        if not isinstance(load, Load) or not isinstance(store, Store) or store.value != load.name or not self.unroll:
            return False
        across = self.unroll[-1]
        if not self.memory.is_turned(load, store, across):
            return False
        for _, at in self.copies(a for a in self.used_axes((), (load.index, store.index)) if a != across):
            self.memory.copy_turned(load, store, across, at)
        return True

    def _shared_loop(self, stmt: Loop, share: ShareWriter) -> None:
        loop = self.function.open_loop(stmt.axis, *share.bounds(stmt.axis))
        share.enter(stmt.axis, loop.counter)
        self.body(stmt.body)
        share.leave()
        self.function.close_loop(loop, [])

    def _run_time_loop(self, stmt: Loop) -> None:
        updated = {s.acc for s, _ in walk(stmt.body) if isinstance(s, Update)}
        carried = [
            (acc, key)
            for name in sorted(updated & set(self.live))
            for acc in [self.live[name]]
            for key in acc.registers
        ]
        loop = self.function.open_loop(stmt.axis, end=self._end(stmt))
        for acc, key in carried:
            acc.registers[key] = self.function.phi(loop, register_type(acc.dtype, acc.width), acc.registers[key])
        self.body(stmt.body)
        after = self.function.close_loop(loop, [acc.registers[key] for acc, key in carried])
        for (acc, key), register in zip(carried, after, strict=True):
            acc.registers[key] = register

    def _end(self, stmt: Loop) -> str:
        """Return the number of iterations if it is not the extent, else an empty string."""
        if not stmt.until:
            return ""
        last = self.values[stmt.until]
        if last.lanes or last.axes:
            raise CompileError(f"@{self.kernel.name}: the end of {stmt.axis} varies between copies or lanes")
        extent = self.function.sizes.value(stmt.axis.extent)
        least = self.scalar.emit("max", [last.registers[()], "0"], [int64, int64], int64, 0)
        return self.scalar.emit("min", [least, extent], [int64, int64], int64, 0)


def _flat(digits: list[tuple[int, int]]) -> int:
    number = 0
    for digit, extent in digits:
        number = number * extent + digit
    return number


def _products(kernel: Kernel, target: Target) -> dict[str, Let]:
    """Return the products to emit as fused multiply-adds: in strict order those that round in every target alike."""
    if not target.costs.strict_order:
        return fused_products(kernel) if target.fma else {}
    return {name: let for name, let in fused_products(kernel).items() if let.op in FACTORS}


def _read_where_multiplied(kernel: Kernel, products: Mapping[str, Let]) -> frozenset[str]:
    """Return the loads of constant data that only products of the same body use, which are added there."""
    uses: Counter[str] = Counter()
    products_of: Counter[str] = Counter()
    for stmt, _ in walk(kernel.body):
        uses.update(r for r in operands_of(stmt) if isinstance(r, str))
        if isinstance(stmt, Loop):
            products_of.update(_multiplied(stmt.body, kernel, products))
    return frozenset(name for name, count in products_of.items() if uses[name] == count)


def _multiplied(body: tuple[Stmt, ...], kernel: Kernel, products: Mapping[str, Let]) -> Iterator[str]:
    """Yield the loads of a body that its added products use, once per use. A body with stores has none."""
    if any(isinstance(s, Store) for s in body):
        return
    loads = {s.name for s in body if isinstance(s, Load) and kernel.buffer(s.buffer).role == "in"}
    added = {s.value for s in body if isinstance(s, Update)}
    for stmt in body:
        if isinstance(stmt, Let) and stmt.name in added and stmt.name in products:
            yield from (a for a in stmt.args if isinstance(a, str) and a in loads)


_EMIT = {
    Let: KernelEmitter.let,
    IndexLet: KernelEmitter.index_let,
    Load: KernelEmitter.load,
    Store: KernelEmitter.store,
    Acc: KernelEmitter.acc,
    Update: KernelEmitter.update,
    Read: KernelEmitter.read,
    Prefetch: KernelEmitter.prefetch,
    Loop: KernelEmitter.loop,
}
