"""Kernel IR: a loop nest over flat buffers with loads, stores, accumulators and scalar operations in SSA form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

from graphc.base.dtypes import DType
from graphc.base.locks import cached_property
from graphc.base.sizes.named_dims import chosen_sizes, dimensions
from graphc.base.sizes.size import Dimension, at, is_size
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.types import TensorType

LOOP_KINDS = (
    *("parallel", "serial", "reduce", "vector", "unroll", "tile"),
    *("version", "grid", "block", "warp", "thread", "lane"),
)
"""``parallel``: iterations are independent. ``reduce``: iterations only meet in accumulators (any order).
``serial``: in order. The others are set by the schedule. ``vector`` and ``unroll``: the extent is at most one register,
or is written out. ``tile``: rows, vectors side by side, and lanes of sums that registers hold together, one loop inside
of the other. ``version``: one of several nests that make up a kernel, of which one runs in a call, once.

The last five belong to kernels that are started with ``threads``, see ``Kernel``. Iterations of ``grid``, ``block`` and
``warp`` loops are those of single threads, of blocks of threads and of warps; ``thread`` and ``lane`` loops share their
iterations among the threads of the block or of the warp that is there: iteration ``i`` is that of thread ``i`` modulo
their number. Loops of one of these kinds of which one is all that stands in the other count as one loop."""
SPREAD_KINDS = ("grid", "block", "warp")
"""Kinds of loops whose iterations have threads of their own: the outermost of a kernel."""
SHARED_KINDS = ("thread", "lane")
"""Kinds of loops whose iterations are shared by the threads that are there."""
WARP = 32
"""Threads of a warp, which run in step and read each other's registers."""
COMBINES = ("add", "mul", "max", "min", "and", "or")
"""What an accumulator or a combining store does with its old and the new value."""


@dataclass(frozen=True)
class Const:
    """A literal scalar."""

    value: bool | int | float
    dtype: DType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Const) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
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


@dataclass(frozen=True)
class Load:
    """``name = buffer[index]``, or ``other`` where the guard is false (memory is not touched there)."""

    name: str
    buffer: str
    index: Index
    dtype: DType
    guard: Guard = ()
    other: Const | None = None


@dataclass(frozen=True)
class Store:
    """``buffer[index] = value`` (or combined with what is there), only where the guard holds."""

    buffer: str
    index: Index
    value: Ref
    guard: Guard = ()
    combine: str | None = None


@dataclass(frozen=True)
class Acc:
    """Declares an accumulator holding ``init``; lane loops inside that update it spread it over lanes and copies."""

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
    """``block`` or ``warp`` where threads have updated an accumulator of their own each in ``thread`` or ``lane``
    loops: what these are combined to, in a fixed order, is read by all of them, which meet there."""


@dataclass(frozen=True)
class Prefetch:
    """Asks for the memory around ``buffer[index]``, which may lie outside of the buffer; changes no value."""

    buffer: str
    index: Index


@dataclass(frozen=True)
class Barrier:
    """No thread of the ``block`` or ``warp`` goes on before all have come here; what they have written is seen then."""

    over: str


@dataclass(frozen=True)
class Loop:
    """A loop over an axis. SSA names defined inside are visible inside only; accumulators outlive it."""

    axis: Axis
    kind: str
    body: tuple[Stmt, ...]
    until: str = ""
    """Name of an i64 scalar that says before which iteration a ``reduce`` loop ends, if that is less than the extent:
    what the iterations behind it would add changes nothing. Empty for a loop over the whole axis."""


Stmt = Let | IndexLet | Load | Store | Acc | Update | Read | Prefetch | Barrier | Loop

ARGUMENT_ROLES = ("in", "out", "inout")
"""Roles of buffers that a call binds."""
OWN_ROLES = ("scratch", "shared", "private")
"""Roles of buffers that a kernel owns, with unknown content at entry. ``scratch`` lies in memory. In kernels of threads
``shared`` is one array per block, or per warp inside of a ``warp`` loop; ``private`` holds elements that single threads
keep in registers: each element is touched by one thread only (see ``ir.kernel.threads``)."""


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
    """A loop nest with its buffers, in call order; those that it owns come last.

    With ``threads`` it is what a grid of blocks of so many threads runs. Its body is one ``grid`` loop, whose
    iterations run by themselves; or one ``warp`` loop, inside of which 32 threads do all that is not shared in
    ``lane`` loops alike; or one ``block`` loop, inside of which the threads of a block do all that is not shared in
    ``thread`` loops alike (without the loop there is one block). Of stores outside of shared loops one thread does
    each."""

    name: str
    buffers: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    origin: tuple[str, ...] = ()
    """Module paths of the graph nodes it computes; for people only."""
    threads: int = 0
    """Threads of a block; 0 where loops are no business of threads."""
    host: int = -1
    """The number of the Python function that a call of the kernel is; -1 for a nest. Its body is empty: the function
    gets what the ``in`` buffers hold and fills the ``out`` ones; the first of either kind is a token (see ops.host)."""

    def buffer(self, name: str) -> Buffer:
        """The buffer of that name."""
        return next(b for b in self.buffers if b.name == name)

    @property
    def arguments(self) -> tuple[Buffer, ...]:
        """The buffers that a call binds."""
        return tuple(b for b in self.buffers if b.role in ARGUMENT_ROLES)

    @property
    def versions(self) -> int:
        """How many nests there are of which a call runs one."""
        return max(1, sum(isinstance(s, Loop) and s.kind == "version" for s in self.body))


def walk(body: tuple[Stmt, ...]) -> Iterator[tuple[Stmt, tuple[Loop, ...]]]:
    """Every statement, outside in and in order, with the loops around it."""
    stack: list[tuple[Stmt, tuple[Loop, ...]]] = [(s, ()) for s in reversed(body)]
    while stack:
        stmt, loops = stack.pop()
        yield stmt, loops
        if isinstance(stmt, Loop):
            stack.extend((s, (*loops, stmt)) for s in reversed(stmt.body))


ALIGNMENT = 64
"""Bytes to which temporaries, scratch buffers and constants are aligned: a cache line, and the widest vector."""


def aligned(nbytes: int) -> int:
    """``nbytes`` rounded up to the alignment; nothing takes no room."""
    return (nbytes + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


STORAGE = ("input", "param", "state", "weight", "output", "status", "constant", "temp")


@dataclass(frozen=True)
class Storage:
    """Memory of a program: an argument, an output, a constant, or a temporary in the arena."""

    name: str
    dtype: DType
    shape: tuple[int, ...]
    cls: str
    """One of STORAGE. ``param`` and ``state`` are read from and written back to the caller's arrays, ``weight`` is only
    read, and stays as it is for many calls. ``status`` is one bool, false at entry: a call that sets it stops when all
    have been made that may set it, before anything is written to params and states."""
    path: str = ""
    """Qualified name of a param, state or weight."""
    data: Any = field(default=None, compare=False)
    """numpy array of a constant."""
    alias: str = ""
    """Name of the storage whose memory this one uses (in-place result, or an output that is a view of an input)."""
    offset: int = -1
    """Byte offset in the arena (temp only), -1 until planned."""
    equals: int | None = None
    """The size that the only element of an input is, where each call gives that."""
    complex: bool = False
    """Whether callers see complex numbers, whose parts are the last dimension of 2 here: see ``outside``."""

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


@dataclass(frozen=True)
class Call:
    """Runs a kernel on storages, one per argument of the kernel."""

    kernel: str
    args: tuple[str, ...]
    values: tuple[str, ...] = field(default=(), compare=False)
    """Names of the graph's values that it computes, stored or not; for people only."""
    loops: tuple[Axis, ...] = ()
    """The enclosing loops, outermost first. Neighbours in the same loop take turns; no two loops of a program have
    the same name."""
    offsets: tuple[Index, ...] = ()
    """Base offsets: for each argument the element of its storage at which the kernel's buffer starts, affine in
    ``loops``; empty when every argument is a whole storage. Elsewhere one may be a part of it, wherever that starts."""

    sizes: tuple[tuple[Dimension, int], ...] = ()
    """What stands in this call for dimensions of the kernel that are none of the program: (dimension, size)."""

    def size(self, size: int) -> int:
        """What a size in the kernel is in this call: one of the program's dimensions."""
        if not self.sizes or not is_size(size):
            return size
        return at(size, {**chosen_sizes(dimensions([size]), {}), **dict(self.sizes)})

    def offset(self, position: int) -> Index:
        """Where the buffer of an argument starts in its storage."""
        return self.offsets[position] if position < len(self.offsets) else Index()

    @property
    def runs(self) -> int:
        """How often the kernel runs."""
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
    """How many bytes at the end of the arena serve the kernels' scratch buffers."""

    def storage(self, name: str) -> Storage:
        """The storage of that name."""
        return self._storages[name]

    def kernel(self, name: str) -> Kernel:
        """The kernel of that name."""
        return self._kernels[name]

    def calls_of(self, name: str) -> list[Call]:
        """The calls of the kernel of that name."""
        return self._calls.get(name, [])

    @cached_property
    def checked(self) -> int:
        """How many calls come first after which the program goes on only if none of them has set the status."""
        status = {s.name for s in self.storages if s.cls == "status"}
        return max((i + 1 for i, c in enumerate(self.calls) if not status.isdisjoint(c.args)), default=0)

    def is_whole(self, call: Call, position: int) -> bool:
        """Whether the buffer of an argument is all of its storage."""
        buffer = self._kernels[call.kernel].arguments[position]
        return call.offset(position) == Index() and call.size(buffer.size) == self._storages[call.args[position]].size

    def writers(self, name: str) -> list[Call]:
        """The calls that write to the storage of that name."""
        return self._writers.get(name, [])

    @cached_property
    def _storages(self) -> dict[str, Storage]:
        return {s.name: s for s in self.storages}

    @cached_property
    def _kernels(self) -> dict[str, Kernel]:
        return {k.name: k for k in self.kernels}

    @cached_property
    def _calls(self) -> dict[str, list[Call]]:
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            found.setdefault(call.kernel, []).append(call)
        return found

    @cached_property
    def _writers(self) -> dict[str, list[Call]]:
        found: dict[str, list[Call]] = {}
        for call in self.calls:
            for buffer, name in zip(self._kernels[call.kernel].arguments, call.args, strict=True):
                if buffer.role != "in":
                    found.setdefault(name, []).append(call)
        return found


def identity(combine: str, dtype: DType) -> Const:
    """The neutral element of an accumulator that combines values of a type."""
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
