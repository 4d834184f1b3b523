"""Lowering of one group: its values at the indices at which they are wanted, by the rules of their ops."""

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
from graphc.ir.kernel.index import Index, IndexLike, as_index, flatten, unflatten
from graphc.ir.kernel.lowering import OperandRef
from graphc.ir.kernel.nest import NestBuilder, Scalar
from graphc.ir.kernel.statements import Buffer, Guard, Kernel, Loop, Stmt
from graphc.ir.op import Halo, Trait
from graphc.ir.types import TensorType, row_major_strides
from graphc.lowering.group_key import lies_ready
from graphc.lowering.horizontal_loops import fuse_loops
from graphc.lowering.one_hot import pick_elements
from graphc.lowering.row_cache import cached_values
from graphc.passes.operand_access import broadcast_index, guarded_reads, is_dynamic, is_virtual
from graphc.passes.updates import lying


def lower_group(
    group: Group,
    place: dict[Value, str],
    stored: frozenset[Value],
    strides: Mapping[str, tuple[int, ...]] | None = None,
    costs: FusionCosts = DEFAULT.fusion,
) -> tuple[Kernel, tuple[str, ...]]:
    """(kernel, storages it is called with) of one group; ``strides`` of storages that are not row-major."""
    return _GroupLowering(group, place, stored, strides or {}, costs).run()


def lower_part(
    part: Value,
    whole: Value,
    place: dict[Value, str],
    stored: frozenset[Value],
    strides: Mapping[str, tuple[int, ...]],
) -> tuple[Kernel, tuple[str, ...]]:
    """(kernel, storages it is called with) that computes ``part`` and writes it into ``whole``, whose buffer begins
    with the first element of the part."""
    lowering = _GroupLowering(Group([whole.node], "nest", part.shape, outputs=[whole]), place, stored, strides)
    return lowering.part(part, whole)


def origin_of(group: Group) -> tuple[str, ...]:
    """Paths of the modules that a group comes from."""
    return tuple(dict.fromkeys(n.location.module for n in group.nodes if n.location.module))


_DEEP = 24
"""Rules inside rules from which what they read is computed before they ask for it."""
_Element = tuple[Value, tuple[Index, ...], Guard]
"""An element of a value, wanted where a condition holds."""


class _GroupLowering:
    """Computes any value of the group at any index: stored ones are loaded, others computed by their op's rule."""

    def __init__(
        self,
        group: Group,
        place: dict[Value, str],
        stored: frozenset[Value],
        strides: Mapping[str, tuple[int, ...]],
        costs: FusionCosts = DEFAULT.fusion,
    ):
        self.strides = strides
        self.group = group
        self.members = set(group.nodes)
        self.place = place
        self.stored = stored
        self.nest = NestBuilder()
        self.buffers: dict[str, Buffer] = {}
        """By storage name, in order of first use."""
        self.cache = cached_values(group, costs)
        self.ready: set[Value] = set()
        self.scratch: dict[Value, Buffer] = {}
        self.depth = 0
        """How many rules are being applied inside each other."""

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

    def part(self, part: Value, whole: Value) -> tuple[Kernel, tuple[str, ...]]:
        """See ``lower_part``."""
        if not part.type.size:
            return Kernel("k", (), ()), ()
        across = row_major_strides(whole.shape)
        with self.nest.loops(part.shape) as index:
            scalar = self.at(part, index)
            self.nest.store_at(self._buffer(whole, "out"), flatten(index, across), scalar)
        name, last = self.place[whole], flatten([e - 1 for e in part.shape], across).constant
        self.buffers[name] = replace(self.buffers[name], size=last + 1)
        return Kernel("k", tuple(self.buffers.values()), self.nest.body(), origin_of(self.group)), tuple(self.buffers)

    def _map(self) -> None:
        outputs, shape = self.group.outputs, self.group.shape
        inner = [self.halo_source(v) for v in outputs]
        with self.nest.loops(shape) as index:
            offset = flatten(index, row_major_strides(shape))
            places = [index if v.shape == shape else unflatten(offset, v.shape) for v in inner]
            values = [self.at(v, place) for v, place in zip(inner, places, strict=True)]
            for value, place, scalar in zip(outputs, places, values, strict=True):
                self._store(value, self.inside(value, place), scalar)
        self._halos()

    def halo_source(self, value: Value) -> Value:
        """What the loops over the domain compute of an output."""
        inner = halo_source(value, self.members)
        # A padding of nothing reads nothing, and may have been joined with that as any map: it is computed itself.
        return inner if inner.shape == self.group.shape else value

    def inside(self, value: Value, place: Sequence[IndexLike]) -> tuple[Index, ...]:
        """Where an element of what lies inside of an output's halo lies in that output."""
        halo = self._halo(value)
        if halo is None:
            return tuple(as_index(i) for i in place)
        return tuple(as_index(i) + low for i, low in zip(place, halo.low, strict=True))

    def _halo(self, value: Value) -> Halo | None:
        return None if self.halo_source(value) is value else halo_of(value.node)

    def _halos(self) -> None:
        """The halos of outputs that are padded: per dimension both sides, or one after the other where they
        differ."""
        for value in self.group.outputs:
            halo = self._halo(value)
            if halo is None:
                continue
            for d, (low, high) in enumerate(zip(halo.low, halo.high, strict=True)):
                last = value.shape[d] - high
                sides = [(2, 0, low)] if low == high else [(1, 0, low), (1, last, high)]
                for number, start, count in (s for s in sides if s[2]):
                    with self.nest.loops([*value.shape[:d], number, count, *value.shape[d + 1 :]]) as index:
                        at = index[d] * last + index[d + 1] + start
                        element = self.nest.const(halo.value, value.dtype)
                        self._store(value, (*index[:d], at, *index[d + 2 :]), element)

    def _row(self) -> None:
        group = self.group
        with self.nest.loops(group.kept) as kept:
            for node in group.nodes:
                if node.op.has(Trait.REDUCTION) and group.kind == "row":
                    self._reduction(node, kept)
            rows = [v for v in group.outputs if not group.is_full(v)]
            scalars = [self.at(v, self._row_index(v, kept)) for v in rows]
            for value, scalar in zip(rows, scalars, strict=True):
                self._store(value, self._row_index(value, kept), scalar)
            full = [v for v in group.outputs if group.is_full(v) and v.type.size]
            if full:
                with self.nest.loops([group.shape[a] for a in group.axes]) as inner:
                    index = self._full_index(kept, inner)
                    values = [self.at(v, index) for v in full]
                    for value, scalar in zip(full, values, strict=True):
                        self._store(value, index, scalar)

    def _reduction(self, node: Node, kept: tuple[Index, ...]) -> None:
        value = node.results[0]
        self.at(value, self._row_index(value, kept))
        self.ready |= set(self.scratch)

    def _row_index(self, value: Value, kept: tuple[Index, ...]) -> tuple[Index, ...]:
        if value.shape == self.group.kept:
            return kept
        return self._full_index(kept, tuple(Index() for _ in self.group.axes))

    def _full_index(self, kept: tuple[Index, ...], inner: tuple[Index, ...]) -> tuple[Index, ...]:
        rest, reduced = iter(kept), dict(zip(self.group.axes, inner, strict=True))
        return tuple(reduced[i] if i in reduced else next(rest) for i in range(len(self.group.shape)))

    def _nest(self, node: Node) -> None:
        assert node.op.lower_nest is not None, f"{node.op.name} has no kernel rule"
        context, operands = _NestContext(self, node), _operands(node)
        if node.op.updates is not None:
            self._begin_as(context, operands[node.op.updates])
        node.op.lower_nest(context, *operands, **node.attrs)
        self._halos()

    def _begin_as(self, context: _NestContext, operand: OperandRef) -> None:
        """Makes what lies where a result shall be that of an operand, unless the result takes over its memory."""
        result, old = context.node.results[0], lying(context.node.operands[operand.position], self.place)
        if old is not None and self.place[result] == self.place[old]:
            self._buffer(result, "inout")
            return
        with self.nest.loops(operand.shape) as index:
            context.store(index, context.load(operand, index))

    # ---- values

    def at(self, value: Value, index: tuple[Index, ...]) -> Scalar:
        """The element of ``value`` at ``index``."""
        node = value.node
        if self.is_loaded(value):
            return self._load(value, index)
        key = ("value", id(value), index)
        known = self.nest.recall(key)
        if known is not None:
            return known
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
        """The element of a node's result by its op's rule."""
        node = context.node
        assert node.op.lower is not None
        if self.depth >= _DEEP:
            self._compute_ahead(node, index, guard)
        self.depth += 1
        scalar = node.op.lower(context, index, *_operands(node), **node.attrs)
        self.depth -= 1
        return scalar

    def _compute_ahead(self, node: Node, index: tuple[Index, ...], guard: Guard) -> None:
        """Computes what lies behind the operands of a node, first things first, so that its rule finds them known: no
        graph is so long that rules inside of rules go deeper than Python can."""
        depth, self.depth = self.depth, 0
        stack = list(reversed(self._waiting(node, index, guard)))
        opened: set[_Element] = set()
        while stack:
            element = stack[-1]
            if element not in opened:
                opened.add(element)
                stack += reversed(self._waiting(element[0].node, *element[1:]))
                continue
            stack.pop()
            value, place, condition = element
            _GuardedReader(self, condition).at(value, place) if condition else self.at(value, place)
        self.depth = depth

    def _waiting(self, node: Node, index: tuple[Index, ...], guard: Guard) -> list[_Element]:
        """What a node's rule reads in the scope in which it is applied and has to be computed yet."""
        if node.op.lower is None or not (node.op.has(Trait.ELEMENTWISE) or is_virtual(node)):
            return []
        reads = [(node.operands[p], i, (*guard, *g)) for p, i, g in guarded_reads(node, index) if not is_dynamic(i)]
        return [element for element in reads if self._is_computed(*element)]

    def _is_computed(self, value: Value, index: tuple[Index, ...], guard: Guard) -> bool:
        """Whether an element is neither loaded nor known."""
        if self.is_loaded(value) or value in self.ready or value.node.op is CONSTANT:
            return False
        key = ("guarded", id(value), index, guard) if guard else ("value", id(value), index)
        return self.nest.recall(key) is None

    def is_loaded(self, value: Value) -> bool:
        """Whether a value lies in memory before the kernel runs."""
        return value.node not in self.members and lies_ready(value, self.stored, self.place)

    def _load(self, value: Value, index: tuple[Index, ...]) -> Scalar:
        return self.nest.load_at(self._buffer(value, "in"), self._offset(value, index), value.dtype)

    def _offset(self, value: Value, index: Sequence[IndexLike]) -> Index:
        strides = self.strides.get(self.place[value])
        return flatten(index, strides or row_major_strides(value.shape))

    def _buffer(self, value: Value, role: str) -> str:
        storage = self.place[value]
        known = self.buffers.get(storage)
        if known is None:
            known = Buffer(f"b{len(self.buffers)}", value.dtype, value.type.size, role)
        elif known.role != role:
            known = replace(known, role="inout")
        self.buffers[storage] = known
        return known.name

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
    """The LowerContext of one node inside a group."""

    def __init__(self, lowering: _GroupLowering, node: Node):
        self.lowering = lowering
        self.node = node
        self.nest = lowering.nest
        self.type: TensorType = node.results[0].type

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        """Element of an operand. Under a guard a load is guarded itself and a computed value is selected."""
        value = self.node.operands[operand.position]
        full = tuple(as_index(i) for i in index)
        if not guard:
            return self.lowering.at(value, full)
        return _GuardedReader(self.lowering, guard).read(value, full, other)

    def broadcast(self, operand: OperandRef, index: Sequence[Index]) -> Scalar:
        """Element of an operand that is broadcast to the result."""
        return self.load(operand, broadcast_index(operand.shape, index))


class _GuardedReader:
    """Computes a value under a guard: every load behind it carries the guard, so nothing is read where it is false."""

    def __init__(self, lowering: _GroupLowering, guard: Guard):
        self.lowering = lowering
        self.guard = guard

    def read(self, value: Value, index: tuple[Index, ...], other: Any) -> Scalar:
        """The element, or ``other`` where the guard is false."""
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
        """The element where the guard holds, anything elsewhere."""
        lowering, node = self.lowering, value.node
        if lowering.is_loaded(value):
            return self._load(value, index, 0)
        if node.op is CONSTANT:
            return lowering.nest.const(number_of(node.attrs["value"]), value.dtype)
        key = ("guarded", id(value), index, self.guard)
        known = lowering.nest.recall(key)
        if known is not None:
            return known
        return lowering.nest.remember(key, lowering.apply(_GuardedContext(self, node), index, self.guard))


class _GuardedContext(_Context):
    """The LowerContext of a node whose value is wanted under a guard."""

    def __init__(self, reader: _GuardedReader, node: Node):
        super().__init__(reader.lowering, node)
        self.reader = reader

    def load(self, operand: OperandRef, index: Sequence[IndexLike], guard: Guard = (), other: Any = 0) -> Scalar:
        """Element of an operand under the guard around and its own."""
        value = self.node.operands[operand.position]
        full = tuple(as_index(i) for i in index)
        if not guard:
            return self.reader.at(value, full)
        return _GuardedReader(self.lowering, (*self.reader.guard, *guard)).read(value, full, other)


class _NestContext(_Context):
    """The LowerContext of an op that lowers itself as a whole nest."""

    def store(self, index: Sequence[IndexLike], value: Scalar, guard: Guard = (), combine: str | None = None) -> None:
        """Writes an element of the result, and of what follows it element by element."""
        result = self.node.results[0]
        lowering, place = self.lowering, tuple(as_index(i) for i in index)
        lowering.nest.remember(("value", id(result), place), value)
        lowering.nest.remember(("guarded", id(result), place, guard), value)
        for output in lowering.group.outputs:
            inner = lowering.halo_source(output)
            if inner is not result:
                value = _GuardedReader(lowering, guard).at(inner, place) if guard else lowering.at(inner, place)
            offset = lowering._offset(output, lowering.inside(output, place))
            # NOTE: what combines with a buffer that nothing here has filled combines with what was there before.
            role = "inout" if combine and lowering.place[output] not in lowering.buffers else "out"
            lowering.nest.store_at(lowering._buffer(output, role), offset, value, guard, combine)

    def scratch(self, dtype: DType, size: int) -> str:
        """A buffer of the kernel's own."""
        result = self.node.results[0]
        assert result not in self.lowering.scratch, f"{self.node.op.name} has scratch memory already"
        self.lowering.scratch[result] = Buffer(f"s{len(self.lowering.scratch)}", dtype, size, "scratch")
        return self.lowering.scratch[result].name


def _merged_rows(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The passes over a row, inside the loops over rows, as few as possible."""
    only = body[0] if len(body) == 1 else None
    if isinstance(only, Loop) and only.kind == "parallel":
        return (replace(only, body=_merged_rows(only.body)),)
    return fuse_loops(pick_elements(body))


def _operands(node: Node) -> list[OperandRef]:
    return [OperandRef(i, v.type) for i, v in enumerate(node.operands)]
