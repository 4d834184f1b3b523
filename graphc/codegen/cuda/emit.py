"""Kernels with threads as CUDA C: the only code that turns statements of kernel IR into text for GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.errors import CompileError
from graphc.base.records import dataclass
from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import is_size
from graphc.codegen.cuda.angle import angle_text
from graphc.codegen.cuda.index import IndexWriter, parameter_of, reach, size_text
from graphc.codegen.cuda.prelude import PRELUDE
from graphc.codegen.cuda.scalar import combined, expression
from graphc.codegen.cuda.types import literal, memory_type, register_type
from graphc.codegen.cuda.wide import MEMBERS, WIDTHS, wide_loads, wide_stores
from graphc.codegen.machine.cuda.facts import SHARED_BYTES
from graphc.ir.kernel.dims import dims_of_kernel
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.map import chain_of
from graphc.ir.kernel.scalar import result_type
from graphc.ir.kernel.statements import (
    ARGUMENT_ROLES,
    SHARED_KINDS,
    SPREAD_KINDS,
    WARP,
    Acc,
    Barrier,
    Buffer,
    Const,
    IndexLet,
    Kernel,
    Let,
    Load,
    Loop,
    Prefetch,
    Program,
    Read,
    Ref,
    Stmt,
    Store,
    Update,
    identity,
    walk,
)

_WIDE = 2**31


@dataclass(frozen=True)
class Launch:
    """Launch configuration of a kernel."""

    symbol: str
    grid: Any
    """Number of blocks; a size if it depends on dimensions."""
    threads: int
    """Threads of a block."""
    dynamic: int = 0
    """Bytes of dynamic shared memory."""


@dataclass(frozen=True)
class CudaSource:
    """CUDA C of a program."""

    text: str
    launches: dict[str, Launch]
    """Launch by kernel."""


def emit_cuda(program: Program) -> CudaSource:
    """Return the kernels of a program, all of which have threads. Raises CompileError for statements without CUDA
    text."""
    texts, launches = [], {}
    for number, kernel in enumerate(program.kernels):
        text, launches[kernel.name] = emit_kernel(kernel, f"k{number}_{_identifier(kernel.name)}")
        texts.append(text)
    angles = [angle_text()] if any("gc_reduce_large" in kernel_text for kernel_text in texts) else []
    return CudaSource("\n".join([PRELUDE, *angles, *texts]), launches)


def emit_kernel(kernel: Kernel, symbol: str) -> tuple[str, Launch]:
    """Return the text of one kernel, without the prelude, and its launch configuration."""
    writer = _Kernel(kernel, symbol)
    return writer.text(), writer.launch()


def _identifier(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _indices(body: tuple[Stmt, ...]) -> Iterator[Index]:
    """Yield all index expressions of a body."""
    for stmt, _ in walk(body):
        if isinstance(stmt, IndexLet | Load | Store):
            yield stmt.index
        if isinstance(stmt, Load | Store):
            yield from (bound.index for bound in stmt.guard)


def _most(size: Any) -> int:
    return size_bounds(size)[1] if is_size(size) else int(size)


class _Kernel:
    """Writer of one kernel. ``put`` appends a line; ``group`` is the group of threads that run the current lines."""

    def __init__(self, kernel: Kernel, symbol: str):
        self.kernel = kernel
        self.symbol = symbol
        self.buffers = {b.name: b for b in kernel.buffers}
        self.texts = {b.name: f"b{i}" for i, b in enumerate(kernel.buffers)}
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[Any, str] = {}
        self.types: dict[str, DType] = {}
        self.accs: dict[str, Acc] = {}
        self.over = {s.acc: s.over for s, _ in walk(kernel.body) if isinstance(s, Read) and s.over}
        self.count = 0
        sizes = [_most(b.size) for b in kernel.buffers]
        sizes += [
            prod(_most(loop.axis.extent) for loop in (*loops, s))
            for s, loops in walk(kernel.body)
            if isinstance(s, Loop)
        ]
        wide = any(n * 2 >= _WIDE for n in sizes) or any(reach(index) >= _WIDE for index in _indices(kernel.body))
        self.index = IndexWriter(wide, self.names)
        self.warps = any(isinstance(s, Loop) and s.kind == "warp" for s in kernel.body)
        self.group = ""
        """``block`` or ``warp`` where all its threads do the same, empty where each thread works for itself."""
        self.vector: tuple[Axis, int] | None = None
        self.dynamic = 0
        self.slots: dict[str, str] = {}
        """Slot of the current round, by private buffer with one element per iteration."""

    # ---- kernel

    def text(self) -> str:
        self._own_buffers()
        self._spread()
        # NOTE: without a minimum number of blocks the assembler spills registers to stay within 64 of them.
        least = ", 1" if any(b.role == "private" for b in self.kernel.buffers) else ""
        head = f'extern "C" __global__ void __launch_bounds__({self.kernel.threads}{least}) {self.symbol}('
        head += f"{self._parameters()}) {{"
        return "\n".join([head, *self.lines, "}"]) + "\n"

    def launch(self) -> Launch:
        total, threads = self.total, self.kernel.threads
        kind = self.kind
        if kind == "grid":
            grid = (total + threads - 1) // threads
        elif kind == "warp":
            grid = (total + threads // WARP - 1) // (threads // WARP)
        else:
            grid = total
        return Launch(self.symbol, grid, threads, self.dynamic)

    def _parameters(self) -> str:
        aliased = "_SHARED" if any(b.role == "inout" for b in self.kernel.buffers) else ""
        buffers = [
            f"GC_{b.role.upper()}{aliased}({memory_type(b.dtype)}) {self.texts[b.name]}" for b in self.kernel.arguments
        ]
        return ", ".join([*buffers, *(f"long long {parameter_of(d)}" for d in dims_of_kernel(self.kernel).values())])

    def _own_buffers(self) -> None:
        for b in self.kernel.arguments:
            self.put(f"GC_EXTENT({self.texts[b.name]}, {size_text(b.size)});")
        used = 0
        folds = {self._fold_type(s.acc) for s, _ in walk(self.kernel.body) if isinstance(s, Read) and s.over == "block"}
        for kind in sorted(folds):
            self.put(f"GC_SHARED({kind}, gc_part_{_identifier(kind)}, {WARP});")
            used += 8 * WARP
        for b in self.kernel.buffers:
            if b.role == "shared":
                used = self._shared(b, used)
            elif b.role == "private":
                self.put(f"GC_PRIVATE({register_type(b.dtype)}, {self.texts[b.name]}, {self._slots_of(b)});")
            elif b.role not in ARGUMENT_ROLES:
                raise CompileError(f"@{self.kernel.name}: %{b.name} has the role {b.role} in a kernel with threads")

    def _fold_type(self, acc: str) -> str:
        (accumulator,) = [s for s, _ in walk(self.kernel.body) if isinstance(s, Acc) and s.name == acc]
        return _exchanged(accumulator.dtype)

    def _shared(self, b: Buffer, used: int) -> int:
        copies = self.kernel.threads // WARP if self.warps else 1
        size = _most(b.size) * copies
        nbytes = (size * b.dtype.itemsize + 15) // 16 * 16
        if used + nbytes <= SHARED_BYTES and not self.dynamic:
            self.put(f"GC_SHARED({memory_type(b.dtype)}, {self.texts[b.name]}, {size});")
            return used + nbytes
        self.put(f"GC_SHARED_DYNAMIC({memory_type(b.dtype)}, {self.texts[b.name]}, {self.dynamic}, {size});")
        self.dynamic += nbytes
        return used

    def _slots_of(self, b: Buffer) -> int:
        """Return the number of a private buffer's elements per thread."""
        together = WARP if self.warps else self.kernel.threads
        return -(-_most(b.size) // together)

    def _spread(self) -> None:
        """Emit the outermost loops, whose iterations run in separate threads."""
        body, self.kind, self.total = self.kernel.body, "block", 1
        (first,) = body if len(body) == 1 else (None,)
        if not isinstance(first, Loop) or first.kind not in SPREAD_KINDS:
            self.group = "block"
            self.body(body)
            return
        loops, inside = chain_of(first)
        self.kind, self.total = first.kind, prod(loop.axis.extent for loop in loops)
        kind = self.index.type
        threads = self.kernel.threads
        where = {
            "grid": f"({kind})blockIdx.x * {threads} + ({kind})threadIdx.x",
            "warp": f"({kind})blockIdx.x * {threads // WARP} + ({kind})(threadIdx.x / {WARP})",
            "block": f"({kind})blockIdx.x",
        }[first.kind]
        self.put(f"const {kind} gc_at = {where};")
        if first.kind != "block":
            self.put(f"if (gc_at >= {self.index.number(self.total)}) return;")
        self._axes(loops, "gc_at")
        self.group = "" if first.kind == "grid" else first.kind
        self.body(inside)

    # ---- lines

    def put(self, line: str) -> None:
        self.lines.append("  " * self.depth + line)

    def open(self, line: str) -> None:
        self.put(line + " {")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.put("}")

    def define(self, name: Any, dtype: DType | None = None) -> str:
        """Return a new C name for a name of the kernel."""
        self.count += 1
        stem = name.name if isinstance(name, Axis) else name
        self.names[name] = f"{_identifier(stem)}_{self.count}"
        if dtype is not None:
            self.types[str(name)] = dtype
        return self.names[name]

    def _axes(self, loops: Sequence[Loop], number: str) -> None:
        """Emit the axes of flattened loops from the number of an iteration."""
        rest = number
        for position, loop in reversed(list(enumerate(loops))):
            extent = self.index.number(loop.axis.extent)
            name = self.define(loop.axis)
            unsigned = "unsigned long long" if self.index.wide else "unsigned"
            value = rest if position == 0 else f"({self.index.type})(({unsigned}){rest} % ({unsigned}){extent})"
            self.put(f"const {self.index.type} {name} = {value};")
            if position:
                self.count += 1
                after = f"gc_rest_{self.count}"
                self.put(
                    f"const {self.index.type} {after} = ({self.index.type})(({unsigned}){rest} / ({unsigned}){extent});"
                )
                rest = after

    # ---- statements

    def body(self, body: Sequence[Stmt]) -> None:
        for stmt in body:
            _WRITE[type(stmt)](self, stmt)

    def ref(self, ref: Ref) -> str:
        return literal(ref) if isinstance(ref, Const) else self.names[ref]

    def type_of(self, ref: Ref) -> DType:
        return ref.dtype if isinstance(ref, Const) else self.types[ref]

    def let(self, stmt: Let) -> None:
        types = [self.type_of(a) for a in stmt.args]
        result = result_type(stmt.op, tuple(types), stmt.dtype)
        value = expression(stmt.op, [self.ref(a) for a in stmt.args], types, result)
        self._value(stmt.name, stmt.dtype, value)

    def _value(self, name: str, dtype: DType, value: str) -> None:
        self.put(f"const {register_type(dtype)} {self.define(name, dtype)} = {value};")

    def index_let(self, stmt: IndexLet) -> None:
        self._value(stmt.name, stmt.dtype, f"({register_type(stmt.dtype)}){self.index.index(stmt.index)}")

    def element(self, buffer: Buffer, index: Index) -> str:
        """Return the C expression of a buffer's element."""
        text = self.texts[buffer.name]
        if buffer.role == "private":
            return f"{text}[{self._slot(buffer, index)}]"
        at = self.index.index(index)
        if buffer.role == "shared" and self.warps:
            at = f"{at} + ({self.index.type})(threadIdx.x / {WARP}) * {_most(buffer.size)}"
        return f"{text}[{at}]"

    def _slot(self, buffer: Buffer, index: Index) -> str:
        """Return the position of a private buffer's element within its thread (see ir.kernel.threads)."""
        slots = self._slots_of(buffer)
        if buffer.name in self.slots:
            return self.slots[buffer.name]
        own_terms = [
            (atom, factor) for atom, factor in index.terms if not (factor == slots and atom in self._shared_axes)
        ]
        if len(own_terms) == len(index.terms) and (slots > 1 or index.terms):
            raise CompileError(f"@{self.kernel.name}: %{buffer.name}[{index}] does not belong to a single thread")
        if len(own_terms) == len(index.terms):
            return "0"
        return self.index.index(Index(tuple(own_terms), index.constant))

    def load(self, stmt: Load) -> None:
        value = self.element(self.buffers[stmt.buffer], stmt.index)
        kind = register_type(stmt.dtype)
        value = f"{value} != 0" if stmt.dtype.kind == "b" else f"({kind}){value}"
        if stmt.guard and stmt.other is not None:
            test = self.index.guard(stmt.guard)
            value = value if test == "true" else f"({test}) ? ({value}) : {literal(stmt.other)}"
        self._value(stmt.name, stmt.dtype, value)

    def store(self, stmt: Store) -> None:
        buffer = self.buffers[stmt.buffer]
        target, value = self.element(buffer, stmt.index), self.ref(stmt.value)
        if stmt.combine:
            old = f"({target} != 0)" if buffer.dtype.kind == "b" else f"({register_type(buffer.dtype)}){target}"
            value = combined(stmt.combine, old, value, buffer.dtype)
        tests = [] if not stmt.guard else [self.index.guard(stmt.guard)]
        if self.group:
            tests.append(f"threadIdx.x % {WARP} == 0" if self.group == "warp" else "threadIdx.x == 0")
        condition = " && ".join(f"({t})" for t in tests if t != "true")
        self.put(f"{f'if ({condition}) ' if condition else ''}{target} = ({memory_type(buffer.dtype)})({value});")

    def acc(self, stmt: Acc) -> None:
        self.accs[stmt.name] = stmt
        name = self.define(stmt.name, stmt.dtype)
        init = literal(identity(stmt.combine, stmt.dtype)) if stmt.name in self.over else self.ref(stmt.init)
        self.put(f"{register_type(stmt.dtype)} {name} = {init};")

    def update(self, stmt: Update) -> None:
        acc, name = self.accs[stmt.acc], self.names[stmt.acc]
        self.put(f"{name} = {combined(acc.combine, name, self.ref(stmt.value), acc.dtype)};")

    def read(self, stmt: Read) -> None:
        acc = self.accs[stmt.acc]
        if not stmt.over:
            self._value(stmt.name, acc.dtype, self.names[stmt.acc])
            return
        partial = self.names[stmt.acc]
        kind = _exchanged(acc.dtype)
        name = self.define(stmt.name, acc.dtype)
        self.count += 1
        local, other = f"gc_sum_{self.count}", f"gc_other_{self.count}"
        self.put(f"{kind} {local} = ({kind}){partial};")
        more = self._more(acc, local, other, kind)
        self.open(f"for (int gc_o = {WARP // 2}; gc_o > 0; gc_o >>= 1)")
        self.put(f"const {kind} {other} = gc_shfl_xor({local}, gc_o);")
        self.put(more)
        self.close()
        if stmt.over == "block":
            self._over_warps(local, other, kind, more)
        total = combined(acc.combine, self.ref(acc.init), f"(({register_type(acc.dtype)}){local})", acc.dtype)
        self.put(f"const {register_type(acc.dtype)} {name} = {total};")

    def _more(self, acc: Acc, local: str, other: str, kind: str) -> str:
        register = register_type(acc.dtype)
        return (
            f"{local} = ({kind}){combined(acc.combine, f'(({register}){local})', f'(({register}){other})', acc.dtype)};"
        )

    def _over_warps(self, local: str, other: str, kind: str, more: str) -> None:
        """Combine the sums of the warps in their order. A barrier ensures that no thread writes the next ones before
        all have read these."""
        partial_sums = f"gc_part_{_identifier(kind)}"
        self.put(f"if (threadIdx.x % {WARP} == 0) {partial_sums}[threadIdx.x / {WARP}] = {local};")
        self.put("gc_block_sync();")
        self.put(f"{local} = {partial_sums}[0];")
        self.open(f"for (int gc_w = 1; gc_w < {self.kernel.threads // WARP}; ++gc_w)")
        self.put(f"const {kind} {other} = {partial_sums}[gc_w];")
        self.put(more)
        self.close()
        self.put("gc_block_sync();")

    def prefetch(self, stmt: Prefetch) -> None:
        """Emit nothing: other warps run while one waits for memory."""

    def barrier(self, stmt: Barrier) -> None:
        self.put("gc_block_sync();" if stmt.over == "block" else "gc_warp_sync();")

    # ---- loops

    def loop(self, stmt: Loop) -> None:
        if stmt.kind in SHARED_KINDS:
            self._shared_loop(stmt)
        elif stmt.kind == "vector":
            self._copies(stmt)
        else:
            self._sequence(stmt)

    def _sequence(self, stmt: Loop) -> None:
        kind, name = self.index.type, self.define(stmt.axis)
        most = self.index.number(stmt.axis.extent)
        more = f" && {name} < {self.ref(stmt.until)}" if stmt.until else ""
        if stmt.kind == "unroll":
            self.put("#pragma unroll")
        self.open(f"for ({kind} {name} = 0; {name} < {most}{more}; ++{name})")
        self.body(stmt.body)
        self.close()

    def _copies(self, stmt: Loop) -> None:
        """Emit an unrolled loop of a few iterations. Neighbours in shared memory are read as one vector; neighbours of
        an argument are written as one if aligned."""
        self.open("")
        vectors = self._wide_loads(stmt)
        arrays = self._wide_stores(stmt)
        for number in range(int(stmt.axis.extent)):
            self.open("")
            self.put(f"const {self.index.type} {self.define(stmt.axis)} = {number};")
            for inner in stmt.body:
                if isinstance(inner, Load) and inner.name in vectors:
                    self._value(inner.name, inner.dtype, f"{vectors[inner.name]}.{MEMBERS[number]}")
                elif isinstance(inner, Store) and inner in arrays:
                    self.put(f"{arrays[inner]}[{number}] = {self.ref(inner.value)};")
                else:
                    self.body((inner,))
            self.close()
        for store, values in arrays.items():
            self._store_wide(store, values, stmt.axis)
        self.close()

    def _wide_loads(self, stmt: Loop) -> dict[str, str]:
        """Emit vector reads for all iterations; return the vector by the name of the load."""
        shared = {b.name for b in self.kernel.buffers if b.role == "shared" and not self.warps}
        vectors: dict[str, str] = {}
        for load in wide_loads(stmt, shared):
            self.count += 1
            vectors[load.name] = f"gc_vector_{self.count}"
            arguments = f"{self.texts[load.buffer]}, {self.index.index(load.index - Index(((stmt.axis, 1),)))}"
            self.put(f"const auto {vectors[load.name]} = gc_load{stmt.axis.extent}({arguments});")
        return vectors

    def _wide_stores(self, stmt: Loop) -> dict[Store, str]:
        """Declare an array for the values of all iterations of each store; return it by store."""
        fitting = {b.name for b in self.kernel.arguments if stmt.axis.extent in WIDTHS.get(memory_type(b.dtype), ())}
        arrays: dict[Store, str] = {}
        for store in wide_stores(stmt, fitting) if not self.group else ():
            self.count += 1
            arrays[store] = f"gc_values_{self.count}"
            kind = memory_type(self.buffers[store.buffer].dtype)
            self.put(f"{kind} {arrays[store]}[{stmt.axis.extent}];")
        return arrays

    def _store_wide(self, store: Store, values: str, axis: Axis) -> None:
        """Write an array that all iterations have filled."""
        text, count = self.texts[store.buffer], axis.extent
        first = self.index.index(store.index - Index(((axis, 1),)))
        kind = memory_type(self.buffers[store.buffer].dtype).replace(" ", "")
        test = self.index.guard(store.guard) if store.guard else "true"
        self.open("" if test == "true" else f"if ({test})")
        vector = f"make_{kind}{count}({', '.join(f'{values}[{i}]' for i in range(count))})"
        self.put(f"if (gc_is_aligned({text})) gc_store{count}({text}, {first}, ({vector}));")
        self.put(f"else {{ {' '.join(f'{text}[{first} + {i}] = {values}[{i}];' for i in range(count))} }}")
        self.close()

    _shared_axes: frozenset[Axis] = frozenset()

    def _shared_loop(self, stmt: Loop) -> None:
        """Emit loops whose iterations are shared by the threads of the group."""
        loops, inside = chain_of(stmt)
        total = prod(loop.axis.extent for loop in loops)
        together = WARP if stmt.kind == "lane" else self.kernel.threads
        me = f"({self.index.type})(threadIdx.x % {WARP})" if stmt.kind == "lane" else f"({self.index.type})threadIdx.x"
        self.count += 1
        number, kind = f"gc_i_{self.count}", self.index.type
        group, self.group = self.group, ""
        axes, self._shared_axes = self._shared_axes, frozenset(loop.axis for loop in loops)
        private_buffers = self._kept(loops, inside)
        if private_buffers:
            rounds = -(-_most(total) // together)
            self.put("#pragma unroll")
            self.open(f"for (int gc_round = 0; gc_round < {rounds}; ++gc_round)")
            self.put(f"const {kind} {number} = gc_round * {together} + {me};")
            self.open(f"if ({number} < {self.index.number(total)})")
            self.slots = dict.fromkeys(private_buffers, "gc_round")
        elif not is_size(total) and total <= together:
            self.put(f"const {kind} {number} = {me};")
            self.open("" if total == together else f"if ({number} < {self.index.number(total)})")
        else:
            self.open(f"for ({kind} {number} = {me}; {number} < {self.index.number(total)}; {number} += {together})")
        self._axes(loops, number)
        self.body(inside)
        self.close()
        if private_buffers:
            self.close()
            self.slots = {}
        self.group, self._shared_axes = group, axes

    def _kept(self, loops: Sequence[Loop], inside: tuple[Stmt, ...]) -> list[str]:
        """Return the private buffers whose iterations access the element of their own number."""
        number, step = Index(), 1
        for loop in reversed(loops):
            number, step = number + Index(((loop.axis, step),)), step * loop.axis.extent
        private = {b.name for b in self.kernel.buffers if b.role == "private"}
        used = [s for s, _ in walk(inside) if isinstance(s, Load | Store) and s.buffer in private]
        return sorted({s.buffer for s in used if s.index == number})


def _exchanged(dtype: DType) -> str:
    """Return the type in which lanes exchange a value: at least 32 bits."""
    return "int" if dtype.kind == "b" or dtype.bits < 32 else register_type(dtype)


_WRITE: dict[type, Callable[[_Kernel, Any], None]] = {
    Let: _Kernel.let,
    IndexLet: _Kernel.index_let,
    Load: _Kernel.load,
    Store: _Kernel.store,
    Acc: _Kernel.acc,
    Update: _Kernel.update,
    Read: _Kernel.read,
    Prefetch: _Kernel.prefetch,
    Barrier: _Kernel.barrier,
    Loop: _Kernel.loop,
}
