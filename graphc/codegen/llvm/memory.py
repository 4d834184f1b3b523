"""Addresses, loads and stores of kernels in LLVM: plain, broadcast, masked, gathered, guarded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.base.dtypes import DType, int32, int64
from graphc.base.sizes.size import bounds as size_bounds
from graphc.base.sizes.size import is_size, terms
from graphc.codegen.llvm.function import Coordinates, FunctionWriter, LaneValue
from graphc.codegen.llvm.indices import IndexWriter, ends
from graphc.codegen.llvm.scalar import literal, memory_type, register_type, splat_literal
from graphc.codegen.llvm.strided import SHORT_STRIDES, Pattern, Spans, vectors_of
from graphc.codegen.llvm.transpose import interleave_registers, transpose_registers, turning_function
from graphc.codegen.machine.instructions import (
    GATHER,
    MASKED_LOAD,
    MASKED_STORE,
    NON_TEMPORAL_STORE,
    PREFETCH,
    SCATTER,
)
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.lanes.choose import tail
from graphc.ir.kernel.access import GATHERED, UNIFORM, UNIT, access
from graphc.ir.kernel.index import Axis, Index
from graphc.ir.kernel.statements import Buffer, Const, Guard, Load, Store

_OPAQUE = "llvm.strip.invariant.group.p0"


class MemoryWriter(IndexWriter):
    """Turns loads and stores into instructions of ``target``."""

    def __init__(self, function: FunctionWriter, lookup: Callable[[str], LaneValue], target: Target):
        super().__init__(function, lookup)
        self.target = target
        self._hides = target.reduces_strength
        """Whether `opaque` hides anything."""
        self.buffers: dict[str, tuple[Buffer, str]] = {}
        self.non_temporal: frozenset[str] = frozenset()
        """Buffers that start at a cache line, and whose full lines non-temporal stores write."""
        self.spans: Spans = {}
        """Spans that the strided loads of the present statements share."""

    # ---- addresses

    def address(self, buffer: str, index: Index, at: Coordinates, inbounds: str = "inbounds ") -> str:
        """Return a pointer to ``buffer[index]``. Terms that depend on outer loops only are computed there, once.
        Without ``inbounds`` the element may be outside of the buffer."""
        info, pointer = self.buffers[buffer]
        step = f"getelementptr {inbounds}{memory_type(info.dtype)}, ptr"
        key = "gep", inbounds
        if is_size(index.constant):
            number = sum(c for monomial, c in terms(index.constant) if not monomial)
            offset = self.function.sizes.value(index.constant - number)
            start = self.function.memo(0, (key, pointer, offset), f"{step} {pointer}, i64 {offset}")
            pointer = self.opaque(start, 0)
            index = Index(index.terms, number)
        for depth, outer_terms in self._by_depth(index, at):
            offset, _ = self._sum(Index(tuple(outer_terms)), at)
            pointer = self.function.memo(depth, (key, pointer, offset), f"{step} {pointer}, i64 {offset}")
            if depth < self.function.depth:
                pointer = self.opaque(pointer, depth)
        if index.constant:
            last = (key, pointer, index.constant), f"{step} {pointer}, i64 {index.constant}"
            pointer = self.function.memo(self.function.depth, *last)
        return pointer

    def opaque(self, pointer: str, depth: int) -> str:
        """Return the same pointer, with its computation hidden from the loops inside of loop depth ``depth``."""
        # NOTE: otherwise LLVM's strength reduction analyzes each address inside every loop as a function of all
        # counters, a tenth of its time. LLVM removes the intrinsic right after, and alias analysis sees through it.
        if not self._hides:
            return pointer
        self.function.declare(_OPAQUE, f"declare ptr @{_OPAQUE}(ptr)")
        return self.function.memo(depth, ("opaque", pointer), f"call ptr @{_OPAQUE}(ptr {pointer})")

    def _addresses(self, buffer: str, index: Index, at: Coordinates, masked: bool) -> str:
        """Return a vector of pointers for a gather or scatter."""
        info, base = self.buffers[buffer]
        vector = self.vector
        assert vector is not None
        element, lanes, lane_access = memory_type(info.dtype), vector.lanes, self.access(index)
        if lane_access == GATHERED:
            offsets = self.vector_index(index, at)
            return self.function.line(f"getelementptr {element}, ptr {base}, <{lanes} x i64> {offsets}")
        # NOTE: one address and constant steps of 32 bits take a third of the instructions of 64-bit offsets.
        lowest = Index(tuple((a, c) for a, c in index.terms if a != vector.axis), index.constant)
        first = self._masked_base(info, lowest, at) if masked else self.address(buffer, lowest, at)
        reach = max(map(abs, size_bounds(lane_access.stride))) * lanes * info.dtype.itemsize
        step = int32 if reach < 2**31 else int64
        steps = self._steps(lane_access.stride, step)
        return self.function.line(f"getelementptr {element}, ptr {first}, {register_type(step, lanes)} {steps}")

    # ---- guards

    def guard(self, guard: Guard, at: Coordinates) -> tuple[str, int]:
        """Return (register, lanes) of a conjunction of bounds; lanes 0 if it is the same for every lane. Empty: ("",
        0)."""
        uniform, varying = "", ""
        for bound in guard:
            index = self.fix(bound.index, at)
            if self.varies(index):
                varying = self._bound(index, bound.low, bound.high, varying, at, True)
            else:
                uniform = self._bound(index, bound.low, bound.high, uniform, at, False)
        if not varying:
            return uniform, 0
        assert self.vector is not None
        lanes = self.vector.lanes
        if uniform:
            wide = self._splat_bit(uniform, lanes)
            varying = self.function.line(f"and <{lanes} x i1> {varying}, {wide}")
        return varying, lanes

    def _bound(self, index: Index, low: Any, high: Any, before: str, at: Coordinates, varying: bool) -> str:
        """Return the test of both ends at once: (index - low) < (high - low), unsigned."""
        f = self.function
        reach = f.sizes.not_negative(high - low)
        least, most = ends(index - low)
        kind = f.sizes.type_of(least, max(most, size_bounds(high - low)[1]))
        if varying:
            assert self.vector is not None
            lanes, dtype = self.vector.lanes, int64 if kind == "i64" else int32
            value = self.vector_index(index - low, at, dtype)
            bound = (
                f.splat(f.narrowed(reach, kind), dtype, lanes) if is_size(high - low) else self._wide(int(reach), dtype)
            )
            test = f.line(f"icmp ult <{lanes} x {kind}> {value}, {bound}")
            return f.line(f"and <{lanes} x i1> {before}, {test}") if before else test
        value = f.narrowed(self.scalar_index(index - low, at), kind)
        test = f.line(f"icmp ult {kind} {value}, {f.narrowed(reach, kind)}")
        return f.line(f"and i1 {before}, {test}") if before else test

    def _splat_bit(self, bit: str, lanes: int) -> str:
        f = self.function
        first = f.line(f"insertelement <{lanes} x i1> poison, i1 {bit}, i64 0")
        return f.line(f"shufflevector <{lanes} x i1> {first}, <{lanes} x i1> poison, <{lanes} x i32> zeroinitializer")

    def _full_mask(self, mask: str, mask_lanes: int) -> str:
        """Return a vector mask that also excludes unused lanes."""
        assert self.vector is not None
        lanes = self.vector.lanes
        if not mask:
            return self.mask() if self.vector.partial else ""
        wide = mask if mask_lanes else self._splat_bit(mask, lanes)
        if not self.vector.partial:
            return wide
        return self.function.line(f"and <{lanes} x i1> {wide}, {self.mask()}")

    # ---- loads and stores

    def load(self, buffer: str, index: Index, guard: Guard, other: Const | None, at: Coordinates) -> tuple[str, int]:
        """Return (register, lanes) of a load for one copy of the unrolled axes."""
        index = self.fix(index, at)
        info = self.buffers[buffer][0]
        mask, mask_lanes = self.guard(guard, at)
        if not self.varies(index) and not mask_lanes:
            return self._load_scalar(info, index, mask, other, at), 0
        full = self._full_mask(mask, mask_lanes)
        value = self._load_vector(info, index, full, other, at, bool(mask))
        assert self.vector is not None
        return self._from_memory(value, info.dtype, self.vector.lanes), self.vector.lanes

    def transposed_axis(self, index: Index, axes: tuple[Axis, ...]) -> Axis | None:
        """Return the contiguous unrolled axis of a strided load, if its copies fill a square block."""
        vector = self.vector
        if vector is None or not vector.fixed or vector.lanes < 4 or self.access(index).kind != "strided":
            return None
        return next((a for a in axes if a.extent == vector.lanes and access(index, a, ()) == UNIT), None)

    def load_transposed(self, buffer: str, index: Index, across: Axis, at: Coordinates) -> list[str]:
        """Return one register per copy along ``across``: each lane's row is read as a vector, and the block is
        transposed."""
        assert self.vector is not None
        info = self.buffers[buffer][0]
        kind, rows = memory_type(info.dtype, self.vector.lanes), []
        for lane in range(self.vector.lanes):
            if lane >= self.vector.axis.extent:
                rows.append("zeroinitializer")
                continue
            row = self.fix(index, {**at, across: 0, self.vector.axis: lane})
            pointer = self.address(buffer, row, at)
            rows.append(self.function.line(f"load {kind}, ptr {pointer}, align {info.dtype.itemsize}"))
        columns = transpose_registers(self.function, rows, info.dtype)
        return [self._from_memory(c, info.dtype, self.vector.lanes) for c in columns]

    def copy_turned(self, load: Load, store: Store, across: Axis, at: Coordinates) -> None:
        """Transpose a square block in memory, from rows along ``across`` to rows along the lanes, by one function of
        the module."""
        assert self.vector is not None
        info, first = self.buffers[load.buffer][0], {**at, across: 0, self.vector.axis: 0}
        turning = turning_function(info.dtype, self.vector.lanes)
        self.function.declare(turning.name, turning)
        steps = load.index.coefficient(self.vector.axis), store.index.coefficient(across)
        pointers = (self.address(s.buffer, self.fix(s.index, first), at) for s in (load, store))
        size, numbers = info.dtype.itemsize, self.function.sizes
        arguments = [f"ptr {p}, i64 {numbers.value(n * size)}" for p, n in zip(pointers, steps, strict=True)]
        self.function.statement(f"call void @{turning.name}({', '.join(arguments)})")

    def is_turned(self, load: Load, store: Store, across: Axis) -> bool:
        """Return whether a copying nest over ``across`` and the lanes fits ``copy_turned``."""
        info, vector = self.buffers[store.buffer][0], self.vector
        if vector is None or vector.partial or load.guard or store.guard or store.combine:
            return False
        if load.dtype.kind == "b" or store.buffer in self.non_temporal or store.buffer == load.buffer:
            return False
        is_plain_copy = (
            info.dtype == load.dtype
            and access(store.index, across, ()) != GATHERED
            and self.access(store.index) == UNIT
        )
        return is_plain_copy and self.transposed_axis(load.index, (across,)) == across

    def row_axis(self, index: Index, axes: tuple[Axis, ...]) -> Axis | None:
        """Return the contiguous unrolled axis of a scattered vector store."""
        vector = self.vector
        if vector is None or not vector.fixed or vector.lanes < 4 or self.access(index).kind != "strided":
            return None
        return next((a for a in axes if a.extent >= 4 and access(index, a, ()) == UNIT), None)

    def store_transposed(self, buffer: str, index: Index, across: Axis, rows: list[str], at: Coordinates) -> None:
        """Transpose the registers of the copies along ``across``, and store each lane's elements contiguously."""
        assert self.vector is not None
        info, lanes, f = self.buffers[buffer][0], self.vector.lanes, self.function
        rows = [self.to_memory(r, info.dtype, lanes) for r in rows]
        for start in range(0, len(rows), lanes):
            block = rows[start : start + lanes]
            columns = transpose_registers(f, [*block, *["poison"] * (lanes - len(block))], info.dtype)
            for lane in range(self.vector.axis.extent):
                first = self.fix(index, {**at, across: start, self.vector.axis: lane})
                pointer = self.address(buffer, first, at)
                if len(block) == lanes:
                    self._store_whole(info, first, columns[lane], pointer)
                else:
                    self._store_part(info, columns[lane], len(block), pointer)

    def interleaved_axis(self, index: Index, axes: tuple[Axis, ...]) -> Axis | None:
        """Return the unrolled axis whose copies of a vector store fill the gaps between its lanes."""
        vector = self.vector
        stride = self.access(index).stride if vector is not None and vector.fixed and vector.lanes >= 4 else 0
        if stride not in SHORT_STRIDES:
            return None
        return next((a for a in axes if a.extent == stride and access(index, a, ()) == UNIT), None)

    def store_interleaved(self, buffer: str, index: Index, across: Axis, copies: list[str], at: Coordinates) -> None:
        """Interleave the registers of the copies along ``across``, and store them as whole vectors."""
        assert self.vector is not None
        info, lanes = self.buffers[buffer][0], self.vector.lanes
        copies = [self.to_memory(r, info.dtype, lanes) for r in copies]
        total = self.vector.axis.extent * len(copies)
        for start in range(0, total, lanes):
            mixed = interleave_registers(self.function, copies, start, lanes, info.dtype)
            first = self.fix(index, {**at, across: 0, self.vector.axis: 0}) + start
            pointer = self.address(buffer, first, at)
            if total - start >= lanes:
                self._store_whole(info, first, mixed, pointer)
            else:
                self._store_part(info, mixed, total - start, pointer)

    def _store_part(self, info: Buffer, register: str, count: int, pointer: str) -> None:
        """Store the first ``count`` elements of a vector."""
        assert self.vector is not None
        lanes, f = self.vector.lanes, self.function
        kind = memory_type(info.dtype, lanes)
        if self.target.part_stores:
            for start, _, width in tail(0, count, lanes, masked=False):
                picks = ", ".join(f"i32 {start + i}" for i in range(width))
                part = f.line(f"shufflevector {kind} {register}, {kind} poison, <{width} x i32> <{picks}>")
                at = f.line(f"getelementptr inbounds {memory_type(info.dtype)}, ptr {pointer}, i64 {start}")
                f.statement(f"store {memory_type(info.dtype, width)} {part}, ptr {at}, align {info.dtype.itemsize}")
            return
        mask = ", ".join(f"i1 {'true' if i < count else 'false'}" for i in range(lanes))
        self._store_masked(info, register, pointer, f"<{mask}>", kind)

    def _store_masked(self, info: Buffer, register: str, pointer: str, mask: str, kind: str) -> None:
        """Store the elements of a vector that a mask selects."""
        f = self.function
        if info.dtype.kind != "f" and info.dtype.itemsize < 8:
            # NOTE: for a mask of one lane LLVM 22 stores an integer before its truncation (-mcpu=x86-64-v4), over the
            # next elements. It does not look through a freeze.
            register = f.line(f"freeze {kind} {register}")
        f.statement(MASKED_STORE.text(f, (register, pointer, mask), kind))

    def _load_scalar(self, info: Buffer, index: Index, mask: str, other: Const | None, at: Coordinates) -> str:
        f = self.function
        kind, align = memory_type(info.dtype), info.dtype.itemsize
        pointer = self.address(info.name, index, at) if not mask else self._safe_address(info, index, mask, at)
        value = f.line(f"load {kind}, ptr {pointer}, align {align}")
        value = self._from_memory(value, info.dtype, 0)
        if not mask or other is None:
            return value
        kind = register_type(info.dtype)
        return f.line(f"select i1 {mask}, {kind} {value}, {kind} {literal(other)}")

    def _safe_address(self, info: Buffer, index: Index, mask: str, at: Coordinates) -> str:
        """Return the address if the guard holds, else the start of the buffer."""
        f = self.function
        offset = self.scalar_index(index, at)
        chosen = f.line(f"select i1 {mask}, i64 {offset}, i64 0")
        base = self.buffers[info.name][1]
        return f.line(f"getelementptr {memory_type(info.dtype)}, ptr {base}, i64 {chosen}")

    def _load_vector(
        self, info: Buffer, index: Index, mask: str, other: Const | None, at: Coordinates, mask_given: bool
    ) -> str:
        assert self.vector is not None
        f, lanes = self.function, self.vector.lanes
        kind, align = memory_type(info.dtype, lanes), info.dtype.itemsize
        fill = self._fill(info.dtype, other, lanes)
        lane_access = self.access(index)
        if lane_access == UNIFORM:  # only the guard varies: read once if any lane may
            return self._load_uniform(info, index, mask, fill, at)
        if lane_access == UNIT:
            lowest = Index(tuple((a, c) for a, c in index.terms if a != self.vector.axis), index.constant)
            if not mask:
                return f.line(f"load {kind}, ptr {self.address(info.name, lowest, at)}, align {align}")
            return f.line(MASKED_LOAD.text(f, (self._masked_base(info, lowest, at), mask, fill), kind))
        if not mask_given and self.vector.fixed and lane_access.stride in SHORT_STRIDES and lanes >= 4:
            value = self._load_strided(info, index, lane_access.stride, at)
            if value:
                return value
        pointers = self._addresses(info.name, index, at, mask_given)
        return f.line(GATHER.text(f, (pointers, mask or "splat (i1 true)", fill), kind))

    def strided_read(self, buffer: str, index: Index, at: Coordinates) -> tuple[Pattern, int, int] | None:
        """Return the (pattern, first element, end) of a short-stride load; None for other loads."""
        index = self.fix(index, at)
        stride = self.access(index).stride
        if self.vector is None or not self.vector.fixed or stride not in SHORT_STRIDES:
            return None
        uniform = tuple((a, c) for a, c in index.terms if a != self.vector.axis)
        first = dict(terms(index.constant)).get((), 0)
        pattern_index = Index(uniform, index.constant - first)
        return (buffer, pattern_index), first, first + stride * (self.vector.axis.extent - 1) + 1

    def _load_strided(self, info: Buffer, index: Index, stride: int, at: Coordinates) -> str:
        """Return a short-stride load: read the span in whole vectors, and pick the lanes. The last vector ends at the
        last element, so that nothing beyond it is read. Loads with overlapping spans share the vectors. Return an empty
        string for a span shorter than a vector."""
        read = self.strided_read(info.name, index, at)
        assert self.vector is not None and read is not None
        lanes, f = self.vector.lanes, self.function
        pattern, low, high = read
        shared = next((s for s in self.spans.get(pattern, ()) if s[0] <= low and high <= s[1]), None)
        first, end = shared or (low, high)
        if end - first < lanes:
            return ""
        kind, result = memory_type(info.dtype, lanes), "poison"
        positions = [low - first + stride * lane for lane in range(self.vector.axis.extent)]
        for start, picks in vectors_of(positions, end - first, lanes):
            pointer = self.address(info.name, pattern[1] + (first + start), at)
            load = f"load {kind}, ptr {pointer}, align {info.dtype.itemsize}"
            piece = f.memo(f.depth, ("strided", pointer, lanes), load) if shared else f.line(load)
            mask = ", ".join("i32 poison" if p is None else f"i32 {p}" for p in picks)
            result = f.line(f"shufflevector {kind} {result}, {kind} {piece}, <{lanes} x i32> <{mask}>")
        return result

    def _load_uniform(self, info: Buffer, index: Index, mask: str, fill: str, at: Coordinates) -> str:
        assert self.vector is not None
        f, lanes = self.function, self.vector.lanes
        f.declare(f"llvm.vector.reduce.or.v{lanes}i1", f"declare i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1>)")
        some = f.line(f"call i1 @llvm.vector.reduce.or.v{lanes}i1(<{lanes} x i1> {mask})")
        pointer = self._safe_address(info, index, some, at)
        element, kind = memory_type(info.dtype), memory_type(info.dtype, lanes)
        value = f.line(f"load {element}, ptr {pointer}, align {info.dtype.itemsize}")
        first = f.line(f"insertelement {kind} poison, {element} {value}, i64 0")
        wide = f.line(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")
        return f.line(f"select <{lanes} x i1> {mask}, {kind} {wide}, {kind} {fill}")

    def _masked_base(self, info: Buffer, index: Index, at: Coordinates) -> str:
        """Return the start of a masked access; it may be before the buffer."""
        return self.address(info.name, index, at, inbounds="")

    def _fill(self, dtype: DType, other: Const | None, lanes: int) -> str:
        if other is None:
            return "zeroinitializer"
        if dtype.kind == "b":
            return f"splat (i8 {int(bool(other.value))})"
        return splat_literal(other, lanes)

    def _from_memory(self, value: str, dtype: DType, lanes: int) -> str:
        if dtype.kind != "b":
            return value
        zero = "zeroinitializer" if lanes else "0"
        return self.function.line(f"icmp ne {memory_type(dtype, lanes)} {value}, {zero}")

    def to_memory(self, value: str, dtype: DType, lanes: int) -> str:
        """Return a register in its storage format."""
        if dtype.kind != "b":
            return value
        return self.function.line(f"zext {register_type(dtype, lanes)} {value} to {memory_type(dtype, lanes)}")

    def prefetch(self, buffer: str, index: Index, at: Coordinates) -> None:
        """Prefetch the first lane's line of memory to L2."""
        f, vector = self.function, self.vector
        index = Index(tuple((a, c) for a, c in index.terms if vector is None or a != vector.axis), index.constant)
        pointer = self._masked_base(self.buffers[buffer][0], self.fix(index, at), at)
        f.statement(PREFETCH.text(f, (pointer,), ""))

    def store(self, buffer: str, index: Index, guard: Guard, value: str, at: Coordinates) -> None:
        """Store a register that has one element per lane (or is a scalar where nothing varies)."""
        index = self.fix(index, at)
        info = self.buffers[buffer][0]
        f, align = self.function, info.dtype.itemsize
        mask, mask_lanes = self.guard(guard, at)
        if not self.varies(index) and not mask_lanes:
            value, kind = self.to_memory(value, info.dtype, 0), memory_type(info.dtype)
            if not mask:
                f.statement(f"store {kind} {value}, ptr {self.address(buffer, index, at)}, align {align}")
                return
            one = f.line(f"insertelement <1 x {kind}> poison, {kind} {value}, i64 0")
            bit = f.line(f"insertelement <1 x i1> poison, i1 {mask}, i64 0")
            pointer = self._masked_base(info, index, at)
            f.statement(MASKED_STORE.text(f, (one, pointer, bit), f"<1 x {kind}>"))
            return
        self._store_vector(info, index, self._full_mask(mask, mask_lanes), value, at, bool(mask))

    def _store_vector(
        self, info: Buffer, index: Index, mask: str, value: str, at: Coordinates, mask_given: bool
    ) -> None:
        assert self.vector is not None
        f, lanes = self.function, self.vector.lanes
        value, kind = self.to_memory(value, info.dtype, lanes), memory_type(info.dtype, lanes)
        if self.access(index) == UNIT:
            lowest = Index(tuple((a, c) for a, c in index.terms if a != self.vector.axis), index.constant)
            if not mask:
                pointer = self.address(info.name, lowest, at)
                self._store_whole(info, lowest, value, pointer)
                return
            if self.target.part_stores and self.vector.fixed and not mask_given:
                self._store_part(info, value, self.vector.axis.extent, self.address(info.name, lowest, at))
                return
            self._store_masked(info, value, self._masked_base(info, lowest, at), mask, kind)
            return
        pointers = self._addresses(info.name, index, at, mask_given)
        f.statement(SCATTER.text(f, (value, pointers, mask or "splat (i1 true)"), kind))

    def _store_whole(self, info: Buffer, index: Index, value: str, pointer: str) -> None:
        """Store a full vector; non-temporally if it is a full line of such a buffer."""
        assert self.vector is not None
        lanes = self.vector.lanes
        kind = memory_type(info.dtype, lanes)
        is_aligned = all(c % lanes == 0 for _, c in index.terms) and index.constant % lanes == 0
        if info.name in self.non_temporal and is_aligned and lanes * info.dtype.itemsize == self.target.line_bytes:
            self.function.statement(NON_TEMPORAL_STORE.text(self.function, (value, pointer), kind))
        else:
            self.function.statement(f"store {kind} {value}, ptr {pointer}, align {info.dtype.itemsize}")
