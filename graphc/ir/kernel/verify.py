"""Verifier of kernels (scopes, types, loop kinds, bounds of every access) and programs (calls, storages, arena)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from graphc.base.dtypes import DType, element, int64, number_of
from graphc.base.errors import GraphcError, VerifyError
from graphc.base.sizes.size import is_one, is_size
from graphc.base.sizes.size_relations import at_most
from graphc.ir.excerpt import excerpt
from graphc.ir.kernel.arena import FixedArena, SizedArena, ends_before
from graphc.ir.kernel.dims import dims_of_calls, dims_of_kernel
from graphc.ir.kernel.index import Axis, Dynamic, Index, atoms, bounds
from graphc.ir.kernel.index_range import require_order, require_within, touches
from graphc.ir.kernel.repeat import live_spans
from graphc.ir.kernel.scalar import result_type
from graphc.ir.kernel.statements import (
    ALIGNMENT,
    ARGUMENT_ROLES,
    COMBINES,
    LOOP_KINDS,
    OWN_ROLES,
    SHARED_KINDS,
    SPREAD_KINDS,
    STORAGE,
    Acc,
    Barrier,
    Buffer,
    Call,
    Const,
    Guard,
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
    Storage,
    Store,
    Update,
)
from graphc.ir.kernel.text import kernel_lines, program_lines
from graphc.ir.kernel.threads import verify_threads
from graphc.ir.literal import print_type

ROLES = (*ARGUMENT_ROLES, *OWN_ROLES)
_NAME = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_KEYWORDS = frozenset(
    {"for", "store", "acc", "update", "index", "load", "prefetch", "barrier", "read", "inf", "nan", "true", "false"}
)
Scope = dict[str, Any]
"""Meaning of each name: a DType (scalar), an Axis, or a pair of Acc and the number of loops around it."""


def verify_kernel(kernel: Kernel) -> None:
    """Raise VerifyError, with the text around the faulty statement, when the kernel breaks a rule:

    - names are defined once, before their use, and visible (a name defined in a loop is not visible outside of it);
    - operations and literals have the types they state; loads and stores have the types of their buffers;
    - every index is within its buffer wherever its guard holds, and run-time terms within their promised range;
    - no store into an ``in`` buffer, no load from ``out`` or ``scratch`` before a store;
    - in ``parallel`` and ``reduce`` loops a store outside of scratch differs by iteration or combines; an accumulator
      is not updated across a ``parallel`` loop, and not read across the ``reduce`` loop that updates it;
    - ``version`` loops make up the entire kernel, and exactly one of them runs, whatever the sizes are."""
    _Verifier(kernel).run()


class _Verifier:
    """Visitor with one method per kind of statement; ``scopes`` has one table per open loop."""

    def __init__(self, kernel: Kernel):
        self.kernel = kernel
        self.buffers: dict[str, Buffer] = {}
        self.scopes: list[Scope] = [{}]
        self.loops: list[Loop] = []
        self.written: set[str] = set()
        self.path: list[int] = []

    def run(self) -> None:
        try:
            self.head()
            self.body(self.kernel.body)
            self.versions()
            verify_threads(self.kernel)
        except GraphcError as error:
            raise self.located(error) from error.__cause__

    def located(self, error: GraphcError) -> VerifyError:
        """Return the same error with the text around the current statement."""
        lines = [line for line, _ in kernel_lines(self.kernel)]
        return VerifyError(f"@{self.kernel.name}: {error.what}", where=excerpt(lines, self.line_number(), error.what))

    def line_number(self) -> int:
        """Return the line of the statement at ``path``, or 0, the head, outside of statements."""
        number, body = 0, self.kernel.body
        for position in self.path:
            number += 1 + sum(_line_count(s) for s in body[:position])
            stmt = body[position]
            body = stmt.body if isinstance(stmt, Loop) else ()
        return number

    def head(self) -> None:
        require(self.kernel.host < 0 or not self.kernel.body, "a Python function has no statements")
        for buffer in self.kernel.buffers:
            require(buffer.name not in self.buffers, f"two buffers are called %{buffer.name}")
            require(buffer.role in ROLES, f"%{buffer.name}: role {buffer.role} is not one of {', '.join(ROLES)}")
            require(at_most(0, buffer.size), f"%{buffer.name} has {buffer.size} elements")
            scratch_ended = buffer.role not in OWN_ROLES and any(b.role in OWN_ROLES for b in self.buffers.values())
            require(not scratch_ended, f"%{buffer.name} comes after a buffer of the kernel's own; those come last")
            self.buffers[buffer.name] = buffer

    def body(self, body: Sequence[Stmt]) -> None:
        for position, stmt in enumerate(body):
            self.path.append(position)
            _CHECKS[type(stmt)](self, stmt)
            self.path.pop()

    # ---- names

    def define(self, name: str, meaning: Any) -> None:
        good = _NAME.fullmatch(name) and name not in _KEYWORDS
        require(good, f"{name!r} cannot be a name")
        require(not any([name in scope for scope in self.scopes]), f"{name} is defined already")
        self.scopes[-1][name] = meaning

    def find(self, name: str) -> Any:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise VerifyError(f"{name} is not defined here")

    def scalar(self, ref: Ref) -> DType:
        if isinstance(ref, Const):
            return self.const(ref)
        meaning = self.find(ref)
        require(isinstance(meaning, DType), f"{ref} is not a scalar")
        return meaning

    def const(self, const: Const) -> DType:
        kind = {bool: "b", int: "iup", float: "fh"}.get(type(const.value), "")
        require(const.dtype.kind in (kind or "?"), f"literal {const.value!r} is not of type {const.dtype}")
        if const.value == const.value:
            same = number_of(element(const.value, const.dtype)) == const.value
            require(same, f"literal {const.value!r} is not rounded to {const.dtype}")
        return const.dtype

    def buffer(self, name: str) -> Buffer:
        require(name in self.buffers, f"there is no buffer %{name}")
        return self.buffers[name]

    def readable(self, buffer: Buffer) -> None:
        unwritten = buffer.role in ("out", *OWN_ROLES) and buffer.name not in self.written
        require(not unwritten, f"%{buffer.name} is read before it is written")

    def acc(self, name: str) -> tuple[Acc, int]:
        entry = self.find(name)
        require(isinstance(entry, tuple), f"{name} is not an accumulator")
        return entry

    # ---- indices

    def index(self, index: Index) -> None:
        for atom in atoms(index):
            meaning = self.find(atom.name)
            if isinstance(atom, Dynamic):
                require(isinstance(meaning, DType) and meaning.is_integer, f"{atom.name} is not an integer scalar")
                require_order([(atom.low, atom.high)], f"{atom.name}: the range {atom.low}..{atom.high} is empty")
            else:
                require(isinstance(meaning, Axis), f"{atom.name} is not an axis")
                if meaning != atom:
                    raise VerifyError(f"axis {atom.name} has extent {meaning.extent}, the index says {atom.extent}")

    def within(self, index: Index, guard: Guard, buffer: Buffer) -> None:
        self.index(index)
        for bound in guard:
            self.index(bound.index)
        if any(loop.axis.extent == 0 for loop in self.loops):
            return
        require_within(index, guard, buffer.size, buffer.name)

    # ---- statements

    def let(self, stmt: Let) -> None:
        result = result_type(stmt.op, tuple([self.scalar(a) for a in stmt.args]), stmt.dtype)
        if result is not stmt.dtype:
            raise VerifyError(f"{stmt.op} gives {result}, {stmt.name} is {stmt.dtype}")
        self.define(stmt.name, stmt.dtype)

    def index_let(self, stmt: IndexLet) -> None:
        self.index(stmt.index)
        require(stmt.dtype.name in ("i32", "i64"), f"an index is i64 or i32, not {stmt.dtype}")
        self.define(stmt.name, stmt.dtype)

    def load(self, stmt: Load) -> None:
        buffer = self.buffer(stmt.buffer)
        require(buffer.dtype is stmt.dtype, f"%{buffer.name} is {buffer.dtype}, {stmt.name} is {stmt.dtype}")
        self.readable(buffer)
        require(bool(stmt.guard) == (stmt.other is not None), "a load has a guard and 'else', or neither")
        if stmt.other is not None:
            other = self.const(stmt.other)
            require(other is stmt.dtype, f"the value after 'else' is {other}, {stmt.name} is {stmt.dtype}")
        self.within(stmt.index, stmt.guard, buffer)
        self.define(stmt.name, stmt.dtype)

    def store(self, stmt: Store) -> None:
        buffer = self.buffer(stmt.buffer)
        require(buffer.role != "in", f"%{buffer.name} cannot be written: its role is in")
        dtype = self.scalar(stmt.value)
        require(dtype is buffer.dtype, f"%{buffer.name} is {buffer.dtype}, the value is {dtype}")
        if stmt.combine is not None:
            self.combine(stmt.combine, buffer.dtype)
            self.readable(buffer)
        self.within(stmt.index, stmt.guard, buffer)
        if buffer.role not in OWN_ROLES and stmt.combine is None:
            self.distinct(stmt)
        self.written.add(buffer.name)

    def distinct(self, stmt: Store) -> None:
        for depth, loop in enumerate(self.loops):
            if loop.kind in ("parallel", "reduce", *SPREAD_KINDS, *SHARED_KINDS) and not at_most(loop.axis.extent, 1):
                good = touches(stmt.index, stmt.guard, loop.axis) or self.dynamic_inside(stmt.index, depth)
                require(good, f"every iteration of {loop.kind} axis {loop.axis} stores to the same element")

    def dynamic_inside(self, index: Index, depth: int) -> bool:
        """Check whether that loop computes a run-time term of the index, which may then differ by iteration."""
        inner = self.scopes[depth + 1 :]
        return any(isinstance(a, Dynamic) and any(a.name in scope for scope in inner) for a in atoms(index))

    def combine(self, combine: str, dtype: DType) -> None:
        require(combine in COMBINES, f"{combine} is not one of {', '.join(COMBINES)}")
        if combine != "last":
            result_type(combine, (dtype, dtype))

    def declare(self, stmt: Acc) -> None:
        self.combine(stmt.combine, stmt.dtype)
        init = self.scalar(stmt.init)
        require(init is stmt.dtype, f"{stmt.name} is {stmt.dtype}, it starts from {init}")
        self.define(stmt.name, (stmt, len(self.loops)))

    def update(self, stmt: Update) -> None:
        acc, depth = self.acc(stmt.acc)
        dtype = self.scalar(stmt.value)
        require(dtype is acc.dtype, f"{acc.name} is {acc.dtype}, the value is {dtype}")
        for loop in self.loops[depth:]:
            require(
                loop.kind not in ("parallel", *SPREAD_KINDS),
                f"{acc.name} lives outside of {loop.kind} axis {loop.axis}",
            )

    def read(self, stmt: Read) -> None:
        acc, depth = self.acc(stmt.acc)
        for loop in self.loops[depth:]:
            if loop.kind == "reduce":
                require(
                    not _updates(loop, acc.name), f"{acc.name} is read inside reduce axis {loop.axis} that updates it"
                )
        self.define(stmt.name, acc.dtype)

    def versions(self) -> None:
        loops = [s for s in self.kernel.body if isinstance(s, Loop) and s.kind == "version"]
        if loops:
            require(len(loops) == len(self.kernel.body), "the kernel has other statements besides its versions")
            runs = sum(loop.axis.extent for loop in loops)
            require(is_one(runs), f"{runs} versions of the kernel run instead of one")

    def prefetch(self, stmt: Prefetch) -> None:
        self.buffer(stmt.buffer)
        self.index(stmt.index)

    def barrier(self, stmt: Barrier) -> None:
        require(stmt.over in ("block", "warp"), f"a barrier is over a block or a warp, not over a {stmt.over}")

    def loop(self, stmt: Loop) -> None:
        require(stmt.kind in LOOP_KINDS, f"loop kind {stmt.kind} is not one of {', '.join(LOOP_KINDS)}")
        require(at_most(0, stmt.axis.extent), f"axis {stmt.axis} has extent {stmt.axis.extent}")
        if stmt.until:
            require(
                stmt.kind in ("reduce", "serial"),
                f"a {stmt.kind} loop runs over its whole axis, not until {stmt.until}",
            )
            require(self.scalar(stmt.until) is int64, f"the number of iterations {stmt.until} is not of type i64")
        require(stmt.kind != "version" or not self.loops, f"version {stmt.axis} is inside another loop")
        self.scopes.append({})
        self.loops.append(stmt)
        self.define(stmt.axis.name, stmt.axis)
        self.body(stmt.body)
        self.loops.pop()
        self.scopes.pop()


def verify_program(program: Program) -> None:
    """Raise VerifyError, with the text around the faulty line, when the program breaks a rule:

    - storages come in order of class (arguments, outputs, constants, temporaries), constants with data of their type;
      an alias names a storage of the same element type and at least the same size;
    - every kernel is valid, and every call binds storages of the element type and size stated by the kernel;
    - loops around calls have unique names, and subviews are within their storages in every iteration;
    - nothing is read before it is written, inputs and constants are never written, outputs are;
    - a call writes no memory that another of its arguments uses, unless that argument is ``inout``;
    - no param or state is written before the last call that may set the status, and no such call is repeated;
    - when the arena is planned: temporaries lie inside it, aligned, and no two overlap while both are in use.
    """
    _ProgramVerifier(program).run()


class _ProgramVerifier:
    """Visitor of storages, kernels and calls; ``present`` is the item to blame for an error."""

    def __init__(self, program: Program):
        self.program = program
        self.storages: dict[str, Storage] = {}
        self.roots: dict[str, Storage] = {}
        self.kernels: dict[str, Kernel] = {}
        self.present: Storage | Kernel | Call | None = None
        bound = dims_of_calls(program)
        self.inside = {k.name: bound.keys() & dims_of_kernel(k) for k in program.kernels} if bound else {}
        """By kernel, the names of the dimensions that calls must bind."""

    def run(self) -> None:
        try:
            self.each(self.program.storages, self.declare)
            self.each(self.program.storages, self.alias)
            self.each(self.program.kernels, self.kernel)
            self.calls()
            self.arena()
        except GraphcError as error:
            raise error if error.where else self.located(error) from error.__cause__

    def each(self, items: Sequence[Any], check: Callable[[Any], None]) -> None:
        for item in items:
            self.present = item
            check(item)
        self.present = None

    def located(self, error: GraphcError) -> VerifyError:
        lines = program_lines(self.program)
        number = next((i for i, (_, item) in enumerate(lines) if item is not None and item is self.present), 0)
        where = excerpt([line for line, _ in lines], number, error.what)
        return VerifyError(f"@{self.program.name}: {error.what}", where=where)

    # ---- storages

    def declare(self, storage: Storage) -> None:
        if storage.name in self.storages:
            raise VerifyError(f"two storages are called %{storage.name}")
        if storage.cls not in STORAGE:
            raise VerifyError(f"storage class {storage.cls} is not one of {', '.join(STORAGE)}")
        last = next(reversed(self.storages.values()), storage)
        if _RANK[last.cls] > _RANK[storage.cls]:
            raise VerifyError(f"{storage.cls} %{storage.name} comes after {last.cls} %{last.name}")
        self.storages[storage.name] = storage
        require((storage.data is not None) == (storage.cls == "constant"), "only constants have data, and all do")
        is_size_input = storage.cls == "input" and storage.dtype is int64 and storage.shape == ()
        require(is_size_input or storage.equals is None, "a size is given by an input of type i64[]")
        if storage.data is not None:
            same = storage.data.shape == storage.shape and storage.data.dtype == storage.dtype.numpy
            require(same, f"the data are {storage.data.dtype}{list(storage.data.shape)}")

    def alias(self, storage: Storage) -> None:
        root, visited = storage, {storage.name}
        while root.alias:
            require(root.alias in self.storages, f"there is no storage %{root.alias}")
            root = self.storages[root.alias]
            require(root.name not in visited, f"the alias of %{storage.name} leads back to itself")
            visited.add(root.name)
        if storage.alias:
            require(storage.cls in ("output", "temp"), f"{storage.cls} %{storage.name} cannot be an alias")
            fits = root.dtype is storage.dtype and at_most(storage.nbytes, root.nbytes)
            require(fits, f"%{root.name} is {print_type(root.dtype, root.shape)}")
        self.roots[storage.name] = root

    def kernel(self, kernel: Kernel) -> None:
        require(kernel.name not in self.kernels, f"two kernels are called @{kernel.name}")
        verify_kernel(kernel)
        self.kernels[kernel.name] = kernel

    # ---- calls

    def calls(self) -> None:
        written = {s.name for s in self.program.storages if s.cls not in ("output", "temp") or not s.size}
        self.loops()
        for number, call in enumerate(self.program.calls):
            self.present = call
            require(call.kernel in self.kernels, f"there is no kernel @{call.kernel}")
            self.check_sizes(call)
            bound = self.bind(call)
            for buffer, storage in bound:
                if buffer.role != "out" and storage.name not in written:
                    raise VerifyError(f"%{storage.name} is read before it is written")
            written.update(storage.name for buffer, storage in bound if buffer.role != "in")
            self.unchecked(number, call, bound)
        for storage in self.program.storages:
            self.present = storage
            good = storage.cls != "output" or self.roots[storage.name].name in written
            require(good, f"output %{storage.name} is never written")
        self.present = None

    def unchecked(self, number: int, call: Call, bound: list[tuple[Buffer, Storage]]) -> None:
        if number < self.program.checked:
            early = [s.name for b, s in bound if b.role != "in" and s.cls in ("param", "state")]
            require(not early, f"%{', %'.join(early)} is written before the last check")
            checks = any(s.cls == "status" for _, s in bound)
            require(not (checks and call.loops), "a check is repeated")

    def loops(self) -> None:
        """Check that loops have unique names, several iterations, and neighbouring calls only."""
        around: tuple[Axis, ...] = ()
        closed: set[str] = set()
        for call in self.program.calls:
            if not call.loops and not around and not call.offsets:
                continue
            self.present = call
            shared = [a for a, b in zip(around, call.loops, strict=False) if a == b]
            same = len(shared) if tuple(shared) == call.loops[: len(shared)] == around[: len(shared)] else 0
            closed.update(a.name for a in around[same:])
            names = [a.name for a in call.loops]
            require(len(set(names)) == len(names), "two loops around a call have the same name")
            require(closed.isdisjoint(names), f"the loops {', '.join(names)} are not all of neighbouring calls")
            require(all(at_most(int(not is_size(a.extent)), a.extent) for a in call.loops), "a loop has no iterations")
            require(
                not call.offsets or len(call.offsets) == len(call.args), f"@{call.kernel}: one base offset per storage"
            )
            around = call.loops

    def check_sizes(self, call: Call) -> None:
        """Check that a call binds each dimension of its kernel missing in the program, within its range."""
        bound = {d.name for d, _ in call.sizes}
        for dimension in self.inside.get(call.kernel, ()):
            require(dimension in bound, f"@{call.kernel}: the call does not bind the dimension {dimension}")
        for dimension, size in call.sizes:
            within = at_most(dimension.low, size) and at_most(size, dimension.high)
            require(within, f"{dimension} is {dimension.low}..{dimension.high}, not {size}")

    def bind(self, call: Call) -> list[tuple[Buffer, Storage]]:
        """Return the buffers of the called kernel with the storages whose memory they use."""
        buffers = self.kernels[call.kernel].arguments
        require(len(buffers) == len(call.args), f"@{call.kernel} takes {len(buffers)} storages, got {len(call.args)}")
        bound: list[tuple[Buffer, Storage]] = []
        spans: list[tuple[int, int]] = []
        for position, (buffer, name) in enumerate(zip(buffers, call.args, strict=True)):
            if name not in self.storages:
                raise VerifyError(f"there is no storage %{name}")
            storage, root = self.storages[name], self.roots[name]
            size = call.size(buffer.size)
            low, high = self.base(call, position, storage, size) if call.offsets else (0, 0)
            fits = storage.dtype is buffer.dtype and (bool(call.offsets) or storage.size == size)
            if not fits:
                type_text = print_type(storage.dtype, storage.shape)
                raise VerifyError(f"%{name} is {type_text}, %{buffer.name} of @{call.kernel} is {buffer.dtype}[{size}]")
            if buffer.role != "in" and root.cls in ("input", "weight", "constant"):
                raise VerifyError(f"{root.cls} %{root.name} is written")
            for (other, other_root), (start, stop) in zip(bound, spans, strict=True):
                if other_root is not root or buffer.role == other.role == "in":
                    continue
                disjoint = bool(call.offsets) and (at_most(stop, low) or at_most(high + size, start))
                good = disjoint or "inout" in (buffer.role, other.role)
                require(good, f"%{root.name} is written and used twice")
            bound.append((buffer, root))
            spans.append((low, high + size))
        return bound

    def base(self, call: Call, position: int, storage: Storage, size: int) -> tuple[int, int]:
        """Return the smallest and the largest base offset of an argument of ``size`` elements."""
        offset = call.offset(position)
        if not all(isinstance(a, Axis) and a in call.loops for a, _ in offset.terms):
            raise VerifyError(f"@{call.kernel}: {offset} is not affine in the enclosing loops")
        low, high = bounds(offset)
        inside = at_most(0, low) and at_most(high + size, storage.size)
        require(inside, f"%{storage.name} has {storage.size} elements, not {high + size}")
        return low, high

    # ---- arena

    def arena(self) -> None:
        temps = {s.name: s for s in self.program.storages if s.cls == "temp" and not s.alias and s.nbytes}
        planned = [s for s in temps.values() if s.offset != -1]
        if not planned:
            return
        room = self.program.arena - self.program.scratch
        for storage in temps.values():
            self.present = storage
            if not at_most(0, storage.offset):
                raise VerifyError(f"%{storage.name} has no offset in the arena, but others do")
            if storage.offset % ALIGNMENT:
                raise VerifyError(f"%{storage.name} is not aligned to {ALIGNMENT} bytes")
            if not ends_before(storage, room):
                raise VerifyError(f"%{storage.name} ends at {storage.offset + storage.nbytes} of {room} bytes")
        self.overlaps(temps)

    def overlaps(self, temps: dict[str, Storage]) -> None:
        spans = live_spans(self.program, lambda name: self.roots[name].name)
        starting: dict[int, list[str]] = {}
        ending: dict[int, list[str]] = {}
        for name, (first, last) in spans.items():
            if name in temps:
                starting.setdefault(first, []).append(name)
                ending.setdefault(last, []).append(name)
        live = SizedArena() if any(is_size(s.offset) or is_size(s.nbytes) for s in temps.values()) else FixedArena()
        for i, call in enumerate(self.program.calls):
            self.present = call
            for name in starting.get(i, ()):
                for first, second in live.add(temps[name]):
                    if not ends_before(first, second.offset):
                        require(False, f"%{first.name} and %{second.name} are in use at once and overlap in the arena")
            for name in ending.get(i, ()):
                live.remove(temps[name])


_RANK = {"input": 0, "param": 0, "state": 0, "weight": 0, "output": 1, "status": 2, "constant": 3, "temp": 4}


def require(condition: Any, message: str) -> None:
    """Raise VerifyError unless the condition holds. Frequent checks test by themselves, without writing the message."""
    if not condition:
        raise VerifyError(message)


def _line_count(stmt: Stmt) -> int:
    """Return the number of lines of a statement in the text."""
    count, stack = 0, [stmt]
    while stack:
        item = stack.pop()
        count += 2 if isinstance(item, Loop) else 1
        if isinstance(item, Loop):
            stack.extend(item.body)
    return count


def _updates(loop: Loop, acc: str) -> bool:
    stack: list[Iterable[Stmt]] = [loop.body]
    while stack:
        for stmt in stack.pop():
            if isinstance(stmt, Update) and stmt.acc == acc:
                return True
            if isinstance(stmt, Loop):
                stack.append(stmt.body)
    return False


_CHECKS: dict[type, Callable[[_Verifier, Any], None]] = {
    Let: _Verifier.let,
    IndexLet: _Verifier.index_let,
    Load: _Verifier.load,
    Store: _Verifier.store,
    Acc: _Verifier.declare,
    Update: _Verifier.update,
    Read: _Verifier.read,
    Prefetch: _Verifier.prefetch,
    Barrier: _Verifier.barrier,
    Loop: _Verifier.loop,
}
