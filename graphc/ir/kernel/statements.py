"""Kernel IR: a loop nest over flat buffers with loads, stores, accumulators and scalar operations in SSA form."""

from __future__ import annotations

from dataclasses import field
from math import prod
from typing import Any, final

from graphc.base.dtypes import DType
from graphc.base.locks import cached_property
from graphc.base.records import dataclass
from graphc.base.sizes.named_dims import chosen_sizes, dimensions
from graphc.base.sizes.size import Dimension, at, bounds, is_size
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.types import TensorType

LOOP_KINDS = (
    *("parallel", "serial", "reduce", "vector", "unroll", "tile"),
    *("version", "grid", "block", "warp", "thread", "lane"),
)
"""``parallel``: iterations are independent. ``reduce``: iterations depend on each other only by accumulators (any
order). ``serial``: in order. The schedule sets the others. ``vector`` and ``unroll``: the extent is at most one
register, or is unrolled. ``tile``: nested loops over rows, neighbouring vectors, and lanes of sums that registers
contain together. ``version``: one of several alternative nests of a kernel; a call runs exactly one of them, once.

The last five belong to kernels with ``threads``, see ``Kernel``. Iterations of ``grid``, ``block`` and ``warp`` loops
run on single threads, blocks of threads and warps. ``thread`` and ``lane`` loops distribute their iterations over the
threads of the block or the warp: thread ``i`` modulo their number runs iteration ``i``. Perfectly nested loops of one
of these kinds count as one loop.
"""
SPREAD_KINDS = ("grid", "block", "warp")
"""Kinds of loops whose iterations have their own threads: the outermost ones of a kernel."""
SHARED_KINDS = ("thread", "lane")
"""Kinds of loops whose iterations are distributed over existing threads."""
WARP = 32
"""Threads of a warp, which run in lockstep and can read each other's registers."""
COMBINES = ("add", "mul", "max", "min", "and", "or", "last")
"""Operations by which an accumulator or a combining store combines its old and the new value; ``last`` is the new one,
in a serial loop that hands a value from one iteration to the next."""


@dataclass(frozen=True)
class Const:
    """A literal scalar."""

    value: bool | int | float
    dtype: DType

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Const) and repr(self) == repr(other))

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        return self._text

    @cached_property
    def _text(self) -> str:
        return f"{self.dtype.name}({self.value!r})"


Ref = str | Const
"""A scalar operand: the name of an SSA scalar, or a literal."""


@dataclass(frozen=True)
class Bound:
    """A condition ``low <= index < high``."""

    index: Index
    low: int
    high: int


Guard = tuple[Bound, ...]
"""A conjunction of bounds; empty is true."""


@final
@dataclass(frozen=True)
class Let:
    """``name = op(args)``; ops are listed in ir.kernel.scalar."""

    name: str
    op: str
    args: tuple[Ref, ...]
    dtype: DType


@dataclass(frozen=True)
class IndexLet:
    """``name = index`` as an integer scalar (i64 or i32)."""

    name: str
    index: Index
    dtype: DType


@final
@dataclass(frozen=True)
class Load:
    """``name = buffer[index]``, or ``other`` where the guard is false (memory is not touched there)."""

    name: str
    buffer: str
    index: Index
    dtype: DType
    guard: Guard = ()
    other: Const | None = None


@final
@dataclass(frozen=True)
class Store:
    """``buffer[index] = value`` (or a combination with the old value), only where the guard holds."""

    buffer: str
    index: Index
    value: Ref
    guard: Guard = ()
    combine: str | None = None


@dataclass(frozen=True)
class Acc:
    """Declaration of an accumulator with initial value ``init``; lane loops inside that update it spread it over lanes
    and copies."""

    name: str
    dtype: DType
    combine: str
    init: Ref


@dataclass(frozen=True)
class Update:
    """``acc = combine(acc, value)``."""

    acc: str
    value: Ref


@dataclass(frozen=True)
class Read:
    """``name = acc``."""

    name: str
    acc: str
    over: str = ""
    """``block`` or ``warp`` where threads have updated private accumulators in ``thread`` or ``lane`` loops: all
    threads synchronize, and read the combination in a fixed order."""


@dataclass(frozen=True)
class Prefetch:
    """Prefetch of the memory around ``buffer[index]``, which may be outside of the buffer; changes no value."""

    buffer: str
    index: Index


@dataclass(frozen=True)
class Barrier:
    """Synchronization of all threads of the ``block`` or ``warp``; their earlier writes are visible after it."""

    over: str


@final
@dataclass(frozen=True)
class Loop:
    """A loop over an axis. SSA names defined inside are visible inside only; accumulators outlive it."""

    axis: Axis
    kind: str
    body: tuple[Stmt, ...]
    until: str = ""
    """Name of an i64 scalar that ends a ``reduce`` or ``serial`` loop before that iteration, if it is less than the
    extent. Later iterations of a ``reduce`` loop would not change the result. Empty for a loop over the entire
    axis."""

    @property
    def may_be_skipped(self) -> bool:
        """Whether the loop may have no iteration."""
        return bool(self.until) or bounds(self.axis.extent)[0] < 1


Stmt = Let | IndexLet | Load | Store | Acc | Update | Read | Prefetch | Barrier | Loop

ARGUMENT_ROLES = ("in", "out", "inout")
"""Roles of buffers that a call binds."""
OWN_ROLES = ("scratch", "shared", "private")
"""Roles of buffers that a kernel owns, with unknown content at entry. ``scratch`` is in memory. In kernels with
threads, ``shared`` is one array per block, or per warp inside of a ``warp`` loop; ``private`` elements are in registers
of single threads: only one thread accesses each element (see ``ir.kernel.threads``)."""


@dataclass(frozen=True)
class Buffer:
    """A flat array that the kernel reads or writes; several buffers never overlap unless one is ``inout``."""

    name: str
    dtype: DType
    size: int
    """Number of elements."""
    role: str
    """One of ARGUMENT_ROLES and OWN_ROLES."""


@dataclass(frozen=True)
class Kernel:
    """A loop nest with its buffers, in call order; buffers that it owns come last.

    With ``threads``, a grid of blocks of this many threads runs it. Its body is one of three loops: a ``grid`` loop,
    whose iterations are independent; a ``warp`` loop, in which 32 threads redundantly run everything outside of
    ``lane`` loops; or a ``block`` loop, in which the threads of a block redundantly run everything outside of
    ``thread`` loops (without the loop there is one block). Outside of shared loops, one thread does each store.
    """

    name: str
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    origin: tuple[str, ...] = ()
    """Module paths of the graph nodes that it computes; informational."""
    threads: int = 0
    """Threads of a block; 0 for a kernel without threads."""
    host: int = -1
    """Number of the Python function that a call of the kernel runs; -1 for a nest. The body of such a kernel is empty:
    the function reads the ``in`` buffers and fills the ``out`` ones; the first of either kind is a token (see
    ops.effects.host)."""

    def buffer(self, name: str) -> Buffer:
        """Return the buffer of that name."""
        return next(b for b in self.buffers if b.name == name)

    @cached_property
    def arguments(self) -> tuple[Buffer, ...]:
        """Buffers bound by calls."""
        return tuple(b for b in self.buffers if b.role in ARGUMENT_ROLES)

    @property
    def versions(self) -> int:
        """Number of alternative nests; a call runs one of them."""
        return max(1, sum(isinstance(s, Loop) and s.kind == "version" for s in self.body))


def walk(body: tuple[Stmt, ...]) -> list[tuple[Stmt, tuple[Loop, ...]]]:
    """Return every statement, outside in and in order, with the loops around it."""
    statements: list[tuple[Stmt, tuple[Loop, ...]]] = []
    _walk_inside(body, (), statements)
    return statements


def _walk_inside(
    body: tuple[Stmt, ...], loops: tuple[Loop, ...], statements: list[tuple[Stmt, tuple[Loop, ...]]]
) -> None:
    for stmt in body:
        statements.append((stmt, loops))
        if type(stmt) is Loop:
            _walk_inside(stmt.body, (*loops, stmt), statements)


ALIGNMENT = 64
"""Bytes to which temporaries, scratch buffers and constants are aligned: a cache line, and the widest vector."""


def aligned(nbytes: int) -> int:
    """Round ``nbytes`` up to the alignment; 0 stays 0."""
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


STORAGE = ("input", "param", "state", "weight", "output", "status", "constant", "temp")


@dataclass(frozen=True)
class Storage:
    """Memory of a program: an argument, an output, a constant, or a temporary in the arena."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    cls: str
    """One of STORAGE. ``param`` and ``state`` are read from and written back to the caller's arrays; ``weight`` is read
    only, and does not change for many calls. ``status`` is one bool, false at entry. A program whose checking calls set
    it stops after them, before it writes params and states."""
    path: str = ""
    """Qualified name of a param, state or weight."""
    data: Any = field(default=None, compare=False)
    """numpy array of a constant."""
    alias: str = ""
    """Name of the storage whose memory this one uses (in-place result, or an output that is a view of an input)."""
    offset: int = -1
    """Byte offset in the arena (temp only), -1 until planned."""
    equals: int | None = None
    """Size that the only element of an input equals in each call, if any."""
    complex: bool = False
    """Whether callers see complex numbers, whose parts are the last dimension of size 2 here: see ``outside``."""

    @property
    def outside(self) -> TensorType:
        """Element type and shape as callers see them."""
        return TensorType(self.dtype.complex, self.shape[:-1]) if self.complex else TensorType(self.dtype, self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.itemsize


_START = Index()
"""Base offset of an argument that is an entire storage."""


@dataclass(frozen=True)
class Call:
    """A run of a kernel on storages, one per argument of the kernel."""

    kernel: str
    args: tuple[str, ...]
    values: tuple[str, ...] = field(default=(), compare=False)
    """Names of the graph values that it computes, stored or not; informational."""
    loops: tuple[Axis, ...] = ()
    """Enclosing loops, outermost first. Neighbouring calls in the same loop alternate; no two loops of a program have
    the same name."""
    offsets: tuple[Index, ...] = ()
    """Base offsets: for each argument, the element of its storage at which the kernel's buffer starts, affine in
    ``loops``. Empty when every argument is an entire storage; otherwise each may be a subview at any offset."""

    sizes: tuple[tuple[Dimension, int], ...] = ()
    """Sizes in this call for dimensions of the kernel that the program does not have: (dimension, size)."""

    def size(self, size: int) -> int:
        """Return a size of the kernel in terms of the program's dimensions."""
        if not self.sizes or not is_size(size):
            return size
        return at(size, {**chosen_sizes(dimensions([size]), {}), **dict(self.sizes)})

    def offset(self, position: int) -> Index:
        """Return the offset of an argument's buffer in its storage."""
        return self.offsets[position] if position < len(self.offsets) else _START

    @property
    def runs(self) -> int:
        """Number of times the kernel runs."""
        return prod(axis.extent for axis in self.loops)


@dataclass(frozen=True)
class Program:
    """A lowered function: kernels called in order over storages, some repeatedly. Equal kernels are stored once."""

    name: str
    storages: tuple[Storage, ...]
    """Inputs, params and states in the order of the graph's inputs; then outputs in order, constants, temporaries."""
    kernels: tuple[Kernel, ...]
    calls: tuple[Call, ...]
    arena: int = 0
    """Bytes of the arena, 0 until planned."""
    scratch: int = 0
    """Bytes at the end of the arena for the kernels' scratch buffers."""

    def storage(self, name: str) -> Storage:
        """Return the storage of that name."""
        return self._storages[name]

    def kernel(self, name: str) -> Kernel:
        """Return the kernel of that name."""
        return self._kernels[name]

    def calls_of(self, name: str) -> list[Call]:
        """Return the calls of the kernel of that name."""
        return self._calls.get(name, [])

    @cached_property
    def checked(self) -> int:
        """Number of leading calls that may set the status; the program continues after them only if it is unset."""
        status = {s.name for s in self.storages if s.cls == "status"}
        return max((i + 1 for i, c in enumerate(self.calls) if not status.isdisjoint(c.args)), default=0)

    def is_whole(self, call: Call, position: int) -> bool:
        """Check whether the buffer of an argument is its entire storage."""
        buffer = self._kernels[call.kernel].arguments[position]
        if call.offsets and call.offset(position) != _START:
            return False
        return call.size(buffer.size) == self._storages[call.args[position]].size

    def writers(self, name: str) -> list[Call]:
        """Return the calls that write to the storage of that name."""
        return self._writers.get(name, [])

    @cached_property
    def _storages(self) -> dict[str, Storage]:
        return {s.name: s for s in self.storages}

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        return {k.name: k for k in self.kernels}

    @cached_property
    def _calls(self) -> dict[str, list[Call]]:
        calls: dict[str, list[Call]] = {}
        for call in self.calls:
            calls.setdefault(call.kernel, []).append(call)
        return calls

    @cached_property
    def _writers(self) -> dict[str, list[Call]]:
        writers: dict[str, list[Call]] = {}
        for call in self.calls:
            for buffer, name in zip(self._kernels[call.kernel].arguments, call.args, strict=True):
                if buffer.role != "in":
                    writers.setdefault(name, []).append(call)
        return writers


def identity(combine: str, dtype: DType) -> Const:
    """Return the neutral element of an accumulator that combines values of a type."""
    if combine in ("add", "or"):
        return Const(False if dtype.kind == "b" else 0.0 if dtype.kind == "f" else 0, dtype)
    if combine in ("mul", "and"):
        ones = True if dtype.kind == "b" else 1.0 if dtype.kind == "f" else 1
        full = 2**dtype.bits - 1 if dtype.kind == "u" else -1
        return Const(ones if combine == "mul" or dtype.kind == "b" else full, dtype)
    if dtype.kind == "b":
        return Const(combine == "min", dtype)
    if dtype.kind == "f":
        return Const(float("-inf") if combine == "max" else float("inf"), dtype)
    low = 0 if dtype.kind == "u" else -(2 ** (dtype.bits - 1))
    high = 2 ** (dtype.bits - (0 if dtype.kind == "u" else 1)) - 1
    return Const(low if combine == "max" else high, dtype)
