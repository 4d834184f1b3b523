"""Lowering: a graph and its fusion plan become kernels over storages."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from graphc.errors import CompileError
from graphc.ir.graph import CONSTANT, INPUT, Graph, Node, Value, input_class, input_path
from graphc.ir.index import Axis, Index, IndexLike, as_index, flatten, unflatten
from graphc.ir.kernel import Buffer, Call, Guard, Kernel, Load, Loop, Program, Stmt, Storage, Store, walk
from graphc.ir.lowering import OperandRef
from graphc.ir.nest import NestBuilder, Scalar
from graphc.ir.op import Trait
from graphc.ir.repeat import loop_spans
from graphc.ir.types import TensorType, row_major_strides
from graphc.passes.access import broadcast_index, climb, domain_axes, written_value
from graphc.passes.framing import framed_value
from graphc.passes.fuse import FusionPlan, fuse
from graphc.passes.group_key import group_key
from graphc.passes.layout import LAYOUTS, image_values, strides_of, turned_strides
from graphc.passes.one_hot import pick_elements
from graphc.passes.partition import Group, is_repeated
from graphc.passes.repetition import Part, Repetition
from graphc.passes.row_cache import cached_values
from graphc.passes.sibling_loops import merge_siblings


def lower_graph(graph: Graph, layout: str = LAYOUTS[0]) -> Program:
    """Needs: an optimized, decomposed graph. Does: fuses, makes one kernel per group, equal kernels once, and copies
    for outputs and written state that have no kernel of their own; temporaries that are images lie in ``layout`` (see
    passes.layout). Leaves: a Program without memory plan."""
    return lower_layouts(graph, (layout,))[0]


def lower_layouts(graph: Graph, layouts: Sequence[str]) -> list[Program]:
    """The program once per layout, fused once."""
    plan = fuse(graph)
    images = image_values(graph) if any(x != LAYOUTS[0] for x in layouts) else set()
    known: _Known = {}
    return [_ProgramBuilder(graph, plan, images, layout, known).build() for layout in layouts]


_Known = dict[Hashable, tuple[Kernel, tuple[int, ...]]]
"""Kernels of groups that were lowered, by their keys, and the positions of their arguments among a key's storages."""


class _ProgramBuilder:
    def __init__(self, graph: Graph, plan: FusionPlan, images: set[Value], layout: str, known: _Known):
        self.graph = graph
        self.plan = plan
        self.images = images
        self.layout = layout
        self.storages: dict[str, Storage] = {}
        self.place: dict[Value, str] = {}
        """Storage that holds a value."""
        self.strides: dict[str, tuple[int, ...]] = {}
        """Strides of storages that are not row-major."""
        self.known = known
        self.kernels: dict[tuple, Kernel] = {}
        self.calls: list[Call] = []
        self.loops = 0
        """How many loops around calls there are."""

    def build(self) -> Program:
        """The program; storages in the documented order."""
        for value in self.graph.inputs:
            self._add(value, value.name, input_class(value), input_path(value))
        pending = self._place_outputs()
        self._reorder_inputs()
        constants = [n for n in self.graph.nodes() if n.op is CONSTANT and n.results[0].shape]
        for node in constants:
            self._add(node.results[0], node.results[0].name, "constant", data=node.attrs["value"])
        in_place = _in_place_candidates(self.graph, self.plan)
        for group in self.plan.groups:
            self._lower(group, {v: in_place[v] for v in group.outputs if v in in_place and v not in self.place})
        for value, name in pending:
            self._emit(self._copy(value, self.place[value], name))
        self._write_states()
        used = {a for call in self.calls for a in call.args}
        kept = [s for s in self.storages.values() if s.cls not in ("constant", "temp") or s.name in used]
        order = {"input": 0, "param": 0, "state": 0, "weight": 0, "output": 1, "constant": 2, "temp": 3}
        kept.sort(key=lambda s: order[s.cls])
        return Program(self.graph.name, tuple(kept), tuple(self.kernels.values()), tuple(self.calls))

    def _reorder_inputs(self) -> None:
        """Lanes along the batch need images that come from the caller in that order too: one copy at the start."""
        if self.layout != "batch_last":
            return
        for value in self.graph.inputs:
            if value in self.images and input_class(value) == "input":
                source = self.place.pop(value)
                target = self._add(value, f"{value.name}.{self.layout}", "temp")
                self.strides[target] = strides_of(value.shape, self.layout)
                self._emit(self._copy(value, source, target))

    def _add(self, value: Value, name: str, cls: str, path: str = "", data: Any = None) -> str:
        name = self._unused(name)
        self.storages[name] = Storage(name, value.dtype, value.shape, cls, path, data)
        self.place.setdefault(value, name)
        return name

    def _unused(self, name: str) -> str:
        while name in self.storages:
            name = f"{name}_"
        return name

    def _lower(self, group: Group, in_place: dict[Value, Value]) -> None:
        """Emits a group's kernel, straight into a state where it overwrites no element that it still reads."""
        if is_repeated(group.nodes[0]):
            self._place_temporaries(group)
            self._repeat(group.nodes[0])
            return
        self.place.update({value: self.place[state] for value, state in in_place.items()})
        self._place_temporaries(group)
        kernel, args = self._lowered(group)
        unsafe = [v for v in in_place if not _overwrites_own_element(kernel, args, self.place[v])]
        if unsafe:
            for value in unsafe:
                del self.place[value]
            self._place_temporaries(group)
            kernel, args = self._lowered(group)
        self._emit((kernel, args), tuple(v.name for n in group.nodes for v in n.results))

    def _lowered(self, group: Group) -> tuple[Kernel, tuple[str, ...]]:
        """``lower_group``, or the kernel that a group like this one has become."""
        key, storages = group_key(group, self.place, self.plan.realized, self.strides)
        found = self.known.get(key)
        if found is None:
            kernel, args = lower_group(group, self.place, self.plan.realized, self.strides)
            self.known[key] = kernel, tuple(storages.index(a) for a in args)
            return kernel, args
        kernel, positions = found
        return replace(kernel, origin=_origin(group)), tuple(storages[i] for i in positions)

    def _place_temporaries(self, group: Group) -> None:
        # NOTE: the steps of a loop write parts of its results, whose places count in row-major order.
        free = not any(is_repeated(node) for node in group.nodes)
        for value in group.outputs:
            if value not in self.place:
                name = self._add(value, value.name, "temp")
                if free and value in self.images and self.layout != LAYOUTS[0]:
                    self.strides[name] = strides_of(value.shape, self.layout)
                elif free and value not in self.images and (strides := turned_strides(self.graph, value)):
                    self.strides[name] = strides

    def _repeat(self, node: Node) -> None:
        """The kernels of a scan's body, called once per step: carries lie where they shall be in the end, and are
        changed there; slices of sequences are parts of their storages."""
        loop = Repetition(node, self._loop_name())
        operands = [self._row_major(v) for v in node.operands]
        results = [self.place[v] for v in node.results]
        for value, source, target in zip(node.operands[: loop.carries], operands, results, strict=False):
            self._emit(self._copy(value, source, target))
        body = lower_graph(loop.body)
        bound = loop.bind(body, operands, results)
        for storage in body.storages[len(bound) :]:
            name = self._unused(f"{node.results[0].name}.{storage.name}")
            self.storages[name] = replace(storage, name=name)
            bound[storage.name] = Part(name)
        axes = {a: Axis(self._loop_name(), a.extent) for a in loop_spans(body.calls)}
        kernels = {k.name: k for k in body.kernels}
        for call in body.calls:
            parts = [bound[a].inside(call.place(i), axes) for i, a in enumerate(call.args)]
            places = tuple(p.place for p in parts) if any(p.place.terms for p in parts) else ()
            repeats = (loop.axis, *(axes[a] for a in call.repeats))
            values = tuple(f"{node.results[0].name}.{name}" for name in call.values)
            self._emit((kernels[call.kernel], tuple(p.storage for p in parts)), values, repeats, places)

    def _loop_name(self) -> str:
        self.loops += 1
        return f"r{self.loops - 1}"

    def _row_major(self, value: Value) -> str:
        """A storage with the elements of a value in row-major order."""
        source = self.place[value]
        if source not in self.strides:
            return source
        target = self._unused(f"{value.name}.{LAYOUTS[0]}")
        self.storages[target] = Storage(target, value.dtype, value.shape, "temp")
        self._emit(self._copy(value, source, target))
        return target

    def _write_states(self) -> None:
        """Copies into states what does not lie there yet; a state that is also a source is saved before."""
        copies: list[tuple[Value, str, str]] = []
        for node in self.graph.nodes():
            if node.op.has(Trait.STATE_WRITE):
                value, target = written_value(node.operands[1]), self.place[node.operands[0]]
                if self.place[value] != target:
                    copies.append((value, self.place[value], target))
        targets = {target for _, _, target in copies}
        for i, (value, source, target) in enumerate(copies):
            if source in targets:
                saved = self._add(value, f"{source}.old", "temp")
                self._emit(self._copy(value, source, saved))
                copies[i] = (value, saved, target)
        for copied in copies:
            self._emit(self._copy(*copied))

    def _place_outputs(self) -> list[tuple[Value, str]]:
        """Gives every output a storage; returns the copies needed where the value already lies elsewhere."""
        pending: list[tuple[Value, str]] = []
        nests = {v for g in self.plan.groups if g.kind == "nest" for v in g.outputs}
        for number, value in enumerate(self.graph.outputs):
            source = written_value(value)
            name = self._unused(f"out{number}")
            self.storages[name] = Storage(name, value.dtype, value.shape, "output")
            stored_constant = source.node.op is CONSTANT and bool(source.shape)
            # NOTE: a nest walks through its results in one order; a copy turns images faster than it would write them.
            turned = source in nests and source in self.images and self.layout != LAYOUTS[0]
            if source in self.place or source.node.op is INPUT or stored_constant or turned:
                pending.append((source, name))
            else:
                self.place[source] = name
        return pending

    def _copy(self, value: Value, source: str, target: str) -> tuple[Kernel, tuple[str, ...]]:
        """A kernel that copies a storage into another one, whatever their layouts."""
        nest, size = NestBuilder(), value.type.size
        row_major = row_major_strides(value.shape)
        with nest.loops(value.shape) as index:
            element = nest.load_at("b0", flatten(index, self.strides.get(source, row_major)), value.dtype)
            nest.store_at("b1", flatten(index, self.strides.get(target, row_major)), element)
        buffers = (Buffer("b0", value.dtype, size, "in"), Buffer("b1", value.dtype, size, "out"))
        return Kernel("copy", buffers, nest.body() if size else ()), (source, target)

    def _emit(
        self,
        lowered: tuple[Kernel, tuple[str, ...]],
        values: tuple[str, ...] = (),
        repeats: tuple[Axis, ...] = (),
        places: tuple[Index, ...] = (),
    ) -> None:
        kernel, args = lowered
        if not kernel.body:
            return
        key = (kernel.buffers, kernel.body)
        if key not in self.kernels:
            self.kernels[key] = replace(kernel, name=f"k{len(self.kernels)}")
        self.calls.append(Call(self.kernels[key].name, args, values, repeats, places))


def _in_place_candidates(graph: Graph, plan: FusionPlan) -> dict[Value, Value]:
    """Values that might be computed straight into the param or state they are written to: no later group reads its old
    content, and no copy at the end does."""
    number = {n: i for i, g in enumerate(plan.groups) for n in g.nodes}
    writes = [n for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)]
    copied = {written_value(v) for v in (*graph.outputs, *(n.operands[1] for n in writes))}
    last = _last_readers(plan)
    result: dict[Value, Value] = {}
    for node in writes:
        target, value = node.operands[0], written_value(node.operands[1])
        computed = number.get(value.node, -1)
        if value not in result and target not in copied and last.get(target, -1) <= computed >= 0:
            result[value] = target
    return result


def _last_readers(plan: FusionPlan) -> dict[Value, int]:
    """The number of the last group that reads each graph input."""
    last: dict[Value, int] = {}
    for number, group in enumerate(plan.groups):
        for node in group.nodes:
            for operand in node.operands:
                for access in climb(operand, domain_axes(operand.shape)):
                    if access.value.node.op is INPUT:
                        last[access.value] = number
    return last


def _overwrites_own_element(kernel: Kernel, args: Sequence[str], storage: str) -> bool:
    """True when the kernel reads the storage only at the element that it writes next."""
    if storage not in args:
        return True
    buffer = kernel.buffers[args.index(storage)].name
    reads: list[tuple[Index, tuple[Loop, ...]]] = []
    stored: tuple[Index, tuple[Loop, ...]] | None = None
    for stmt, loops in walk(kernel.body):
        if isinstance(stmt, Load) and stmt.buffer == buffer:
            reads.append((stmt.index, loops))
        if not isinstance(stmt, Store) or stmt.buffer != buffer:
            continue
        ahead = all(index == stmt.index and around == loops[: len(around)] for index, around in reads)
        if stored is not None or not ahead:
            return False
        stored, reads = (stmt.index, loops), []
    return not reads


def lower_group(
    group: Group,
    place: dict[Value, str],
    realized: frozenset[Value],
    strides: Mapping[str, tuple[int, ...]] | None = None,
) -> tuple[Kernel, tuple[str, ...]]:
    """(kernel, storages it is called with) of one group; ``strides`` of storages that are not row-major."""
    return _GroupLowering(group, place, realized, strides or {}).run()


def _origin(group: Group) -> tuple[str, ...]:
    """Paths of the modules that a group comes from."""
    return tuple(dict.fromkeys(n.location.module for n in group.nodes if n.location.module))


class _GroupLowering:
    """Computes any value of the group at any index: stored ones are loaded, others computed by their op's rule."""

    def __init__(
        self, group: Group, place: dict[Value, str], realized: frozenset[Value], strides: Mapping[str, tuple[int, ...]]
    ):
        self.strides = strides
        self.group = group
        self.members = set(group.nodes)
        self.place = place
        self.realized = realized
        self.nest = NestBuilder()
        self.buffers: dict[str, Buffer] = {}
        """By storage name, in order of first use."""
        self.cache = cached_values(group)
        self.ready: set[Value] = set()
        self.scratch: dict[Value, Buffer] = {}

    def run(self) -> tuple[Kernel, tuple[str, ...]]:
        if not any(v.type.size for v in self.group.outputs):
            return Kernel("k", (), ()), ()
        if self.group.kind == "nest":
            self._nest(self.group.nodes[0])
        elif self.group.kind == "row":
            self._row()
        else:
            self._map()
        buffers = (*self.buffers.values(), *self.scratch.values())
        body = self.nest.body()
        if self.group.kind == "row":
            body = _merged_rows(body)
        return Kernel("k", buffers, body, _origin(self.group)), tuple(self.buffers)

    # ---- kernel forms

    def _map(self) -> None:
        outputs, shape = self.group.outputs, self.group.shape
        inner = [self.framed(v) for v in outputs]
        with self.nest.loops(shape) as index:
            offset = flatten(index, row_major_strides(shape))
            places = [index if v.shape == shape else unflatten(offset, v.shape) for v in inner]
            values = [self.at(v, place) for v, place in zip(inner, places, strict=True)]
            for value, place, scalar in zip(outputs, places, values, strict=True):
                self._store(value, self.inside(value, place), scalar)
        self._frames()

    def framed(self, value: Value) -> Value:
        """What the loops over the domain compute of an output."""
        return framed_value(value, self.members)

    def inside(self, value: Value, place: Sequence[IndexLike]) -> tuple[Index, ...]:
        """Where an element of what an output is a frame of lies in that output."""
        if self.framed(value) is value:
            return tuple(as_index(i) for i in place)
        return tuple(as_index(i) + low for i, low in zip(place, value.node.attrs["low"], strict=True))

    def _frames(self) -> None:
        """What lies around the elements of outputs that are frames: per dimension both sides, or one after the other
        where they differ."""
        for value in self.group.outputs:
            attrs = value.node.attrs
            if self.framed(value) is value:
                continue
            for d, (low, high) in enumerate(zip(attrs["low"], attrs["high"], strict=True)):
                last = value.shape[d] - high
                sides = [(2, 0, low)] if low == high else [(1, 0, low), (1, last, high)]
                for number, start, count in (s for s in sides if s[2]):
                    with self.nest.loops([*value.shape[:d], number, count, *value.shape[d + 1 :]]) as index:
                        at = index[d] * last + index[d + 1] + start
                        element = self.nest.const(attrs["value"], value.dtype)
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
        context = _NestContext(self, node)
        node.op.lower_nest(context, *_operands(node), **node.attrs)
        self._frames()

    # ---- values

    def at(self, value: Value, index: tuple[Index, ...]) -> Scalar:
        """The element of ``value`` at ``index``."""
        node = value.node
        if node not in self.members and (value in self.realized or value in self.place):
            return self._load(value, index)
        key = ("value", id(value), index)
        known = self.nest.recall(key)
        if known is not None:
            return known
        if value in self.ready:
            return self._from_scratch(value, index)
        if node.op is CONSTANT:
            return self.nest.const(node.attrs["value"].item(), value.dtype)
        if node.op.lower is None:
            raise CompileError(f"{node.op.name} has no kernel rule")
        scalar = node.op.lower(_Context(self, node), index, *_operands(node), **node.attrs)
        if value in self.cache:
            self._to_scratch(value, index, scalar)
        return self.nest.remember(key, scalar)

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
        if value.node not in lowering.members and (value in lowering.realized or value in lowering.place):
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
        if node not in lowering.members and (value in lowering.realized or value in lowering.place):
            return self._load(value, index, 0)
        if node.op is CONSTANT:
            return lowering.nest.const(node.attrs["value"].item(), value.dtype)
        key = ("guarded", id(value), index, self.guard)
        known = lowering.nest.recall(key)
        if known is not None:
            return known
        assert node.op.lower is not None
        scalar = node.op.lower(_GuardedContext(self, node), index, *_operands(node), **node.attrs)
        return lowering.nest.remember(key, scalar)


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
            inner = lowering.framed(output)
            if inner is not result:
                value = _GuardedReader(lowering, guard).at(inner, place) if guard else lowering.at(inner, place)
            offset = lowering._offset(output, lowering.inside(output, place))
            lowering.nest.store_at(lowering._buffer(output, "out"), offset, value, guard, combine)


def _merged_rows(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """The passes over a row, inside the loops over rows, as few as possible."""
    only = body[0] if len(body) == 1 else None
    if isinstance(only, Loop) and only.kind == "parallel":
        return (replace(only, body=_merged_rows(only.body)),)
    return merge_siblings(pick_elements(body))


def _operands(node: Node) -> list[OperandRef]:
    return [OperandRef(i, v.type) for i, v in enumerate(node.operands)]
