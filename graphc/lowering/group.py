"""Lowering of one group: its values computed on demand, at any index, by the rules of their ops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphc.base.dtypes import DType, number_of
from graphc.base.errors import CompileError
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.fusion.pad_fusion import halo_of, halo_source
from graphc.fusion.partition import Group
from graphc.ir.graph.graph import CONSTANT, Node, Value
from graphc.ir.kernel.index import Axis, Dynamic, Index, IndexLike, as_index, atoms, flatten, unflatten
from graphc.ir.kernel.lowering import OperandRef
from graphc.ir.kernel.map import map_indices, substitute_axes
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.statements import Acc, Buffer, Const, Guard, IndexLet, Kernel, Let, Load, Loop, Ref, Stmt, Update
from graphc.ir.op import Halo, Trait
from graphc.ir.types import TensorType, row_major_strides
from graphc.lowering.group_key import lies_ready
from graphc.lowering.horizontal_loops import fuse_loops
from graphc.lowering.row_cache import cached_values
from graphc.passes.operand_access import broadcast_index, guarded_reads, is_dynamic, is_virtual
from graphc.passes.updates import lying


def pick_elements(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Return the statements of one scope with each one-hot sum replaced by the iteration of its nonzero term."""
    accumulators = {s.name: s for s in body if isinstance(s, Acc)}
    result: list[Stmt] = []
    for stmt in body:
        picked = _picked(stmt, accumulators) if isinstance(stmt, Loop) and stmt.kind == "reduce" else None
        result += [stmt] if picked is None else picked
    return tuple(result)


def _picked(loop: Loop, accumulators: dict[str, Acc]) -> list[Stmt] | None:
    """Return the statements that replace a one-hot loop; None for other loops."""
    if not all(isinstance(s, Let | IndexLet | Load | Update) for s in loop.body):
        return None
    definitions = {s.name: s for s in loop.body if isinstance(s, Let | IndexLet | Load)}
    targets: set[str] = set()
    for stmt in loop.body:
        if isinstance(stmt, Update):
            acc = accumulators.get(stmt.acc)
            if acc is None or acc.combine != "add" or acc.dtype.kind not in "fi":
                return None
            condition = _condition(stmt.value, definitions)
            number = _picked_index(condition, definitions, loop.axis)
            if number is None:
                return None
            targets.add(number)
    if len(targets) != 1:
        return None
    return _iteration(loop, next(iter(targets)), definitions)


def _condition(value: Ref, definitions: dict[str, Let | IndexLet | Load]) -> str:
    """Return the condition outside of which a value is zero; empty if the value is not such a select."""
    stmt = definitions.get(value) if isinstance(value, str) else None
    while isinstance(stmt, Let) and stmt.op == "neg":
        stmt = definitions.get(stmt.args[0]) if isinstance(stmt.args[0], str) else None
    if not isinstance(stmt, Let) or stmt.op != "select":
        return ""
    condition, _, otherwise = stmt.args
    zero = isinstance(otherwise, Const) and otherwise.value == 0
    return condition if zero and isinstance(condition, str) else ""


def _picked_index(condition: str, definitions: dict[str, Let | IndexLet | Load], axis: Axis) -> str | None:
    """Return the loop-invariant integer scalar ``t`` of a condition ``axis == t``; None for other conditions."""
    stmt = definitions.get(condition)
    if not isinstance(stmt, Let) or stmt.op != "eq":
        return None
    for own, other in (stmt.args, stmt.args[::-1]):
        counter = definitions.get(own) if isinstance(own, str) else None
        if isinstance(counter, IndexLet) and counter.index == as_index(axis) and isinstance(other, str):
            return None if _varies(other, definitions, axis) else other
    return None


def _varies(name: str, definitions: dict[str, Let | IndexLet | Load], axis: Axis) -> bool:
    """Check whether a scalar may differ between iterations."""
    for source in _sources(name, definitions):
        stmt = definitions[source]
        if isinstance(stmt, Load) and stmt.guard:
            return True
        if not isinstance(stmt, Let) and any(atom == axis for atom in atoms(stmt.index)):
            return True
    return False


def _sources(name: str, definitions: dict[str, Let | IndexLet | Load]) -> set[str]:
    """Return the scalars of the loop from which a scalar is computed, including itself."""
    stack, visited = [name], set()
    while stack:
        stmt = definitions.get(stack.pop())
        if stmt is None or stmt.name in visited:
            continue
        visited.add(stmt.name)
        if isinstance(stmt, Let):
            stack += [a for a in stmt.args if isinstance(a, str)]
        else:
            stack += [a.name for a in atoms(stmt.index) if isinstance(a, Dynamic)]
    return visited


def _iteration(loop: Loop, number: str, definitions: dict[str, Let | IndexLet | Load]) -> list[Stmt]:
    """Return the iteration ``number``, clamped to the loop's range; out of range, its condition is false."""
    axis = loop.axis
    dtype = next(s.dtype for s in loop.body if isinstance(s, IndexLet) and s.index == as_index(axis))
    low, clamped_name = f"{number}_{axis.name}_low", f"{number}_{axis.name}"
    last = Const(axis.extent - 1, dtype) if type(axis.extent) is int else f"{number}_{axis.name}_last"
    clamped: list[Stmt] = [IndexLet(last, Index((), axis.extent - 1), dtype)] if isinstance(last, str) else []
    clamped += [Let(low, "max", (number, Const(0, dtype)), dtype), Let(clamped_name, "min", (low, last), dtype)]
    position = Index(((Dynamic(clamped_name, 0, axis.extent - 1), 1),))
    sources = _sources(number, definitions)
    first = [s for s in loop.body if isinstance(s, Let | IndexLet | Load) and s.name in sources]
    rest = tuple(s for s in loop.body if s not in first)
    return [*first, *clamped, *map_indices(rest, lambda index: substitute_axes(index, {axis: position}))]


def lower_group(
    group: Group,
    storage_of: dict[Value, str],
    stored: frozenset[Value],
    strides: Mapping[str, tuple[int, ...]] | None = None,
    costs: FusionCosts = DEFAULT.fusion,
) -> tuple[Kernel, tuple[str, ...]]:
    """Return the kernel of a group and the names of the storages to call it with.

    ``storage_of`` maps values to storages; ``strides`` holds the strides of storages in another than row-major order.
    """
    return _GroupLowering(group, storage_of, stored, strides or {}, costs).run()


def lower_part(
    operand: Value,
    result: Value,
    storage_of: dict[Value, str],
    stored: frozenset[Value],
    strides: Mapping[str, tuple[int, ...]],
) -> tuple[Kernel, tuple[str, ...]]:
    """Return a kernel that writes ``operand`` into the concatenation ``result``, and the storages to call it with.

    The buffer of ``result`` begins with the first element of the operand.
    """
    lowering = _GroupLowering(
        Group([result.node], "nest", operand.shape, outputs=[result]), storage_of, stored, strides
    )
    return lowering.part(operand, result)


def origin_of(group: Group) -> tuple[str, ...]:
    """Return the paths of the modules from which a group comes."""
    return tuple(dict.fromkeys(n.location.module for n in group.nodes if n.location.module))


_DEEP = 24
"""Nesting depth of rules at which their operands are computed ahead, to stay within Python's recursion limit."""
_Element = tuple[Value, tuple[Index, ...], Guard]
"""An element to compute: the value, its index, and the condition under which it is needed."""


class _GroupLowering:
    """Builder of a group's kernel: loads stored values and computes others, at any index, by their op's rule."""

    def __init__(
        self,
        group: Group,
        storage_of: dict[Value, str],
        stored: frozenset[Value],
        strides: Mapping[str, tuple[int, ...]],
        costs: FusionCosts = DEFAULT.fusion,
    ):
        self.strides = strides
        self.group = group
        self.members = set(group.nodes)
        self.storage_of = storage_of
        self.stored = stored
        self.nest = NestBuilder()
        self.buffers: dict[str, Buffer] = {}
        """Buffers by storage name, in order of first use."""
        self.cache = cached_values(group, costs)
        self.ready: set[Value] = set()
        self.scratch: dict[Value, Buffer] = {}
        self.depth = 0
        """Current nesting depth of rules."""

    def run(self) -> tuple[Kernel, tuple[str, ...]]:
        if not any(v.type.size for v in self.group.outputs):
            return Kernel("k", (), ()), ()
        if self.group.kind == "nest":
            self._nest(self.group.nest)
        elif self.group.kind == "row":
            self._row()
        else:
            self._map()
        buffers = (*self.buffers.values(), *self.scratch.values())
        body = self.nest.body()
        if self.group.kind == "row":
            body = _merged_rows(body)
        return Kernel("k", buffers, body, origin_of(self.group)), tuple(self.buffers)

    # ---- kernel forms

    def part(self, operand: Value, result: Value) -> tuple[Kernel, tuple[str, ...]]:
        """Run ``lower_part`` for one operand of the concatenation ``result``."""
        if not operand.type.size:
            return Kernel("k", (), ()), ()
        strides = row_major_strides(result.shape)
        with self.nest.loops(operand.shape) as index:
            scalar = self.at(operand, index)
            self.nest.store_at(self._buffer(result, "out"), flatten(index, strides), scalar)
        name, last = self.storage_of[result], flatten([e - 1 for e in operand.shape], strides).constant
        self.buffers[name] = replace(self.buffers[name], size=last + 1)
        return Kernel("k", tuple(self.buffers.values()), self.nest.body(), origin_of(self.group)), tuple(self.buffers)

    def _map(self) -> None:
        outputs, shape = self.group.outputs, self.group.shape
        inner = [self.halo_source(v) for v in outputs]
        with self.nest.loops(shape) as index:
            offset = flatten(index, row_major_strides(shape))
            indices = [index if v.shape == shape else unflatten(offset, v.shape) for v in inner]
            values = [self.at(v, own) for v, own in zip(inner, indices, strict=True)]
            for value, own, scalar in zip(outputs, indices, values, strict=True):
                self._store(value, self.inside(value, own), scalar)
        self._halos()

    def halo_source(self, value: Value) -> Value:
        """Return the value computed for an output in the loops over the domain: the operand of its padding, if any."""
        inner = halo_source(value, self.members)
        # A padding of an empty array may have been merged with it as a map; it reads nothing and is computed itself.
        return inner if inner.shape == self.group.shape else value

    def inside(self, value: Value, index: Sequence[IndexLike]) -> tuple[Index, ...]:
        """Return the index in an output of the element at ``index`` inside its halo."""
        halo = self._halo(value)
        if halo is None:
            return tuple(as_index(i) for i in index)
        return tuple(as_index(i) + low for i, low in zip(index, halo.low, strict=True))

    def _halo(self, value: Value) -> Halo | None:
        return None if self.halo_source(value) is value else halo_of(value.node)

    def _halos(self) -> None:
        """Store the halos of padded outputs: both sides of a dimension in one loop, or in two where widths differ."""
        for value in self.group.outputs:
            halo = self._halo(value)
            if halo is None:
                continue
            for d, (low, high) in enumerate(zip(halo.low, halo.high, strict=True)):
                last = value.shape[d] - high
                sides = [(2, 0, low)] if low == high else [(1, 0, low), (1, last, high)]
                for number, start, count in (s for s in sides if s[2]):
                    with self.nest.loops([*value.shape[:d], number, count, *value.shape[d + 1 :]]) as index:
                        position = index[d] * last + index[d + 1] + start
                        element = self.nest.const(halo.value, value.dtype)
                        self._store(value, (*index[:d], position, *index[d + 2 :]), element)

    def _row(self) -> None:
        group = self.group
        with self.nest.loops(group.kept) as outer:
            for node in group.nodes:
                if node.op.has(Trait.REDUCTION) and group.kind == "row":
                    self._reduction(node, outer)
            rows = [v for v in group.outputs if not group.is_full(v)]
            scalars = [self.at(v, self._row_index(v, outer)) for v in rows]
            for value, scalar in zip(rows, scalars, strict=True):
                self._store(value, self._row_index(value, outer), scalar)
            full = [v for v in group.outputs if group.is_full(v) and v.type.size]
            if full:
                with self.nest.loops([group.shape[a] for a in group.axes]) as inner:
                    index = self._full_index(outer, inner)
                    values = [self.at(v, index) for v in full]
                    for value, scalar in zip(full, values, strict=True):
                        self._store(value, index, scalar)

    def _reduction(self, node: Node, outer: tuple[Index, ...]) -> None:
        value = node.results[0]
        self.at(value, self._row_index(value, outer))
        self.ready |= set(self.scratch)

    def _row_index(self, value: Value, outer: tuple[Index, ...]) -> tuple[Index, ...]:
        if value.shape == self.group.kept:
            return outer
        return self._full_index(outer, tuple(Index() for _ in self.group.axes))

    def _full_index(self, outer: tuple[Index, ...], inner: tuple[Index, ...]) -> tuple[Index, ...]:
        rest, reduced = iter(outer), dict(zip(self.group.axes, inner, strict=True))
        return tuple(reduced[i] if i in reduced else next(rest) for i in range(len(self.group.shape)))

    def _nest(self, node: Node) -> None:
        assert node.op.lower_nest is not None, f"{node.op.name} has no kernel rule"
        context, operands = _NestContext(self, node), _operands(node)
        if node.op.updates is not None:
            self._copy_operand(context, operands[node.op.updates])
        node.op.lower_nest(context, *operands, **node.attrs)
        self._halos()

    def _copy_operand(self, context: _NestContext, operand: OperandRef) -> None:
        """Copy an operand into the result, which then updates it, unless both share one storage."""
        result, old = context.node.results[0], lying(context.node.operands[operand.position], self.storage_of)
        if old is not None and self.storage_of[result] == self.storage_of[old]:
            self._buffer(result, "inout")
            return
        with self.nest.loops(operand.shape) as index:
            context.store(index, context.load(operand, index))

    # ---- values

    def at(self, value: Value, index: tuple[Index, ...]) -> Scalar:
        """Return the element of ``value`` at ``index``."""
        node = value.node
        if self.is_loaded(value):
            return self._load(value, index)
        key = ("value", id(value), index)
        computed = self.nest.recall(key)
        if computed is not None:
            return computed
        if value in self.ready:
            return self._from_scratch(value, index)
        if node.op is CONSTANT:
            return self.nest.const(number_of(node.attrs["value"]), value.dtype)
        if node.op.lower is None:
            raise CompileError(f"{node.op.name} has no kernel rule")
        scalar = self.apply(_Context(self, node), index)
        if value in self.cache:
            self._to_scratch(value, index, scalar)
        return self.nest.remember(key, scalar)

    def apply(self, context: _Context, index: tuple[Index, ...], guard: Guard = ()) -> Scalar:
        """Return the element of a node's result, by its op's rule."""
        node = context.node
        assert node.op.lower is not None
        if self.depth >= _DEEP:
            self._compute_ahead(node, index, guard)
        self.depth += 1
        scalar = node.op.lower(context, index, *_operands(node), **node.attrs)
        self.depth -= 1
        return scalar

    def _compute_ahead(self, node: Node, index: tuple[Index, ...], guard: Guard) -> None:
        """Compute the transitive operands of a node in dependence order, so that its rule recalls them.

        Long chains of rules would otherwise exceed Python's recursion limit.
        """
        depth, self.depth = self.depth, 0
        stack = list(reversed(self._waiting(node, index, guard)))
        expanded: set[_Element] = set()
        while stack:
            element = stack[-1]
            if element not in expanded:
                expanded.add(element)
                stack += reversed(self._waiting(element[0].node, *element[1:]))
                continue
            stack.pop()
            value, element_index, condition = element
            _GuardedReader(self, condition).at(value, element_index) if condition else self.at(value, element_index)
        self.depth = depth

    def _waiting(self, node: Node, index: tuple[Index, ...], guard: Guard) -> list[_Element]:
        """Return the elements read by a node's rule in its own scope which are still to be computed."""
        if node.op.lower is None or not (node.op.has(Trait.ELEMENTWISE) or is_virtual(node)):
            return []
        reads = [(node.operands[p], i, (*guard, *g)) for p, i, g in guarded_reads(node, index) if not is_dynamic(i)]
        return [element for element in reads if self._is_computed(*element)]

    def _is_computed(self, value: Value, index: tuple[Index, ...], guard: Guard) -> bool:
        """Check whether an element has to be computed: it is neither loaded nor already computed."""
        if self.is_loaded(value) or value in self.ready or value.node.op is CONSTANT:
            return False
        key = ("guarded", id(value), index, guard) if guard else ("value", id(value), index)
        return self.nest.recall(key) is None

    def is_loaded(self, value: Value) -> bool:
        """Check whether a value is in memory before the kernel runs."""
        return value.node not in self.members and lies_ready(value, self.stored, self.storage_of)

    def _load(self, value: Value, index: tuple[Index, ...]) -> Scalar:
        return self.nest.load_at(self._buffer(value, "in"), self._offset(value, index), value.dtype)

    def _offset(self, value: Value, index: Sequence[IndexLike]) -> Index:
        strides = self.strides.get(self.storage_of[value])
        return flatten(index, strides or row_major_strides(value.shape))

    def _buffer(self, value: Value, role: str) -> str:
        storage = self.storage_of[value]
        buffer = self.buffers.get(storage)
        if buffer is None:
            buffer = Buffer(f"b{len(self.buffers)}", value.dtype, value.type.size, role)
        elif buffer.role != role:
            buffer = replace(buffer, role="inout")
        self.buffers[storage] = buffer
        return buffer.name

    def _store(self, value: Value, index: Sequence[IndexLike], scalar: Scalar) -> None:
        self.nest.store_at(self._buffer(value, "out"), self._offset(value, index), scalar)

    def _scratch_offset(self, index: tuple[Index, ...]) -> Index:
        inner = [index[a] for a in self.group.axes]
        return flatten(inner, row_major_strides(tuple(self.group.shape[a] for a in self.group.axes)))

    def _to_scratch(self, value: Value, index: tuple[Index, ...], scalar: Scalar) -> None:
        if value not in self.scratch:
            size = 1
            for a in self.group.axes:
                size *= self.group.shape[a]
            self.scratch[value] = Buffer(f"s{len(self.scratch)}", value.dtype, size, "scratch")
        self.nest.store_at(self.scratch[value].name, self._scratch_offset(index), scalar)

    def _from_scratch(self, value: Value, index: tuple[Index, ...]) -> Scalar:
        return self.nest.load_at(self.scratch[value].name, self._scratch_offset(index), value.dtype)


class _Context:
    """LowerContext of one node in a group."""

    def __init__(self, lowering: _GroupLowering, node: Node):
        self.lowering = lowering
        self.node = node
        self.nest = lowering.nest
        self.type: TensorType = node.results[0].type

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        """Return an element of an operand. Under a guard, loads are guarded and computed values are selected."""
        value = self.node.operands[operand.position]
        full = tuple(as_index(i) for i in index)
        if not guard:
            return self.lowering.at(value, full)
        return _GuardedReader(self.lowering, guard).read(value, full, other)

    def broadcast(self, operand: OperandRef, index: Sequence[Index]) -> Scalar:
        """Return an element of an operand broadcast to the result's shape."""
        return self.load(operand, broadcast_index(operand.shape, index))


class _GuardedReader:
    """Reader of values under a guard: all loads of a computed value carry the guard, so none happens where it is
    false."""

    def __init__(self, lowering: _GroupLowering, guard: Guard):
        self.lowering = lowering
        self.guard = guard

    def read(self, value: Value, index: tuple[Index, ...], other: Any) -> Scalar:
        """Return the element, or ``other`` where the guard is false."""
        lowering = self.lowering
        if lowering.is_loaded(value):
            return self._load(value, index, other)
        scalar = self.at(value, index)
        condition = lowering.nest.condition(self.guard)
        return lowering.nest.select(condition, scalar, lowering.nest.const(other, value.dtype))

    def _load(self, value: Value, index: tuple[Index, ...], other: Any) -> Scalar:
        lowering = self.lowering
        offset = lowering._offset(value, index)
        return lowering.nest.load_at(lowering._buffer(value, "in"), offset, value.dtype, self.guard, other)

    def at(self, value: Value, index: tuple[Index, ...]) -> Scalar:
        """Return the element where the guard holds; unspecified elsewhere."""
        lowering, node = self.lowering, value.node
        if lowering.is_loaded(value):
            return self._load(value, index, 0)
        if node.op is CONSTANT:
            return lowering.nest.const(number_of(node.attrs["value"]), value.dtype)
        key = ("guarded", id(value), index, self.guard)
        scalar = lowering.nest.recall(key)
        if scalar is not None:
            return scalar
        return lowering.nest.remember(key, lowering.apply(_GuardedContext(self, node), index, self.guard))


class _GuardedContext(_Context):
    """LowerContext of a node whose value is needed only under a guard."""

    def __init__(self, reader: _GuardedReader, node: Node):
        super().__init__(reader.lowering, node)
        self.reader = reader

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        """Return an element of an operand under both the enclosing guard and ``guard``."""
        value = self.node.operands[operand.position]
        full = tuple(as_index(i) for i in index)
        if not guard:
            return self.reader.at(value, full)
        return _GuardedReader(self.lowering, (*self.reader.guard, *guard)).read(value, full, other)


class _NestContext(_Context):
    """LowerContext of an op that lowers itself to a nest."""

    def store(self, index: Sequence[IndexLike], value: Scalar, guard: Guard = (), combine: str | None = None) -> None:
        """Store an element of the result, and the same element of the group's elementwise outputs after it."""
        result = self.node.results[0]
        lowering, full = self.lowering, tuple(as_index(i) for i in index)
        lowering.nest.remember(("value", id(result), full), value)
        lowering.nest.remember(("guarded", id(result), full, guard), value)
        for output in lowering.group.outputs:
            inner = lowering.halo_source(output)
            if inner is not result:
                value = _GuardedReader(lowering, guard).at(inner, full) if guard else lowering.at(inner, full)
            offset = lowering._offset(output, lowering.inside(output, full))
            # NOTE: combining with a buffer that this kernel has not written reads its content from before the call.
            role = "inout" if combine and lowering.storage_of[output] not in lowering.buffers else "out"
            lowering.nest.store_at(lowering._buffer(output, role), offset, value, guard, combine)

    def scratch(self, dtype: DType, size: int) -> str:
        """Return the name of a new scratch buffer of the kernel, of ``size`` elements."""
        result = self.node.results[0]
        assert result not in self.lowering.scratch, f"{self.node.op.name} has scratch memory already"
        self.lowering.scratch[result] = Buffer(f"s{len(self.lowering.scratch)}", dtype, size, "scratch")
        return self.lowering.scratch[result].name


def _merged_rows(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Fuse the passes over a row, inside the loops over rows, into as few as possible."""
    only = body[0] if len(body) == 1 else None
    if isinstance(only, Loop) and only.kind == "parallel":
        return (replace(only, body=_merged_rows(only.body)),)
    return fuse_loops(pick_elements(body))


def _operands(node: Node) -> list[OperandRef]:
    return [OperandRef(i, v.type) for i, v in enumerate(node.operands)]
