"""Lowering: a graph and its fusion plan become kernels over storages."""

from __future__ import annotations

from collections.abc import Container, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_
from graphc.codegen.machine.costs import DEFAULT, FusionCosts
from graphc.fusion.layout import LAYOUTS, image_values, strides_of, turned_strides
from graphc.fusion.partition import Group, needs_stored_operands
from graphc.fusion.vertical import FusionPlan, fuse
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import CONSTANT, INPUT, Graph, Node, Value, input_class, input_equals, input_path, input_role
from graphc.ir.graph.interpret import Reemitter
from graphc.ir.kernel.index import Axis, Index, as_index, flatten
from graphc.ir.kernel.nest import NestBuilder
from graphc.ir.kernel.repeat import loop_spans
from graphc.ir.kernel.statements import Buffer, Call, Kernel, Program, Storage
from graphc.ir.op import Trait
from graphc.ir.types import TensorType, row_major_strides
from graphc.lowering.group import lower_group, lower_part, origin_of
from graphc.lowering.group_key import group_key
from graphc.lowering.in_place import StateMemory, overwrites_own_element
from graphc.lowering.moving_rows import in_order_of_rows
from graphc.lowering.scan_steps import Branch, Repetition, Subview
from graphc.passes.laid_out import starts
from graphc.passes.long_views import is_written_by_parts
from graphc.passes.operand_access import written_value
from graphc.passes.shared_kernels import share_kernels
from graphc.passes.updates import lying, stored_content, unmoved


def has_complex(graph: Graph) -> bool:
    """Check whether an argument or result of a graph is complex."""
    return any(v.dtype.is_complex for v in (*graph.inputs, *graph.outputs))


class _OnReal(Reemitter):
    def copy_input(self, value: Value) -> Value:
        """Return the input, with a complex one as real numbers of one more dimension."""
        if not value.dtype.is_complex:
            return super().copy_input(value)
        type = TensorType(value.dtype.real, (*value.shape, 2))
        return self.target.add_input(type, value.name, *input_role(value))

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        """Return the results of the node; ops that only reinterpret memory vanish.

        Complex constants remain only as results of the graph, and become real arrays.
        """
        if node.op is CONSTANT and node.results[0].dtype.is_complex:
            value = node.attrs["value"]
            attrs = {"value": np.stack([value.real, value.imag], axis=-1)}
            return emit(self.target, CONSTANT, (), attrs, node.location, node.results[0].name)
        return operands if node.op.has(Trait.REINTERPRETS) else self.copy_node(node, operands)


def on_real_memory(graph: Graph) -> Graph:
    """Return the graph with complex inputs and results as real arrays.

    Needs: a graph after SplitComplex. Leaves: an equivalent graph on real numbers only.
    """
    return _OnReal().transform(graph)


def on_complex_memory(program: Program, graph: Graph) -> Program:
    """Mark the complex arguments and results of ``graph`` in the program of ``on_real_memory(graph)``."""
    flags = [v.dtype.is_complex for v in (*graph.inputs, *graph.outputs)]
    bordering = [replace(s, complex=flag) for s, flag in zip(program.storages, flags, strict=False)]
    return replace(program, storages=(*bordering, *program.storages[len(bordering) :]))


def lower_graph(
    graph: Graph, layout: str = LAYOUTS[0], costs: FusionCosts = DEFAULT.fusion, plan: FusionPlan | None = None
) -> Program:
    """Lower a graph to a program of kernels over storages.

    Needs: an optimized, decomposed graph. Does: fuses; makes one kernel per group, with equal kernels shared; adds
    copies for outputs and written states that no kernel writes. Image temporaries are stored in ``layout`` (see
    fusion.layout); ``costs`` decide about fusion and row caches. Leaves: a Program without memory plan.
    """
    return lower_layouts(graph, (layout,), costs, plan)[0]


def plan_graph(graph: Graph, costs: FusionCosts = DEFAULT.fusion) -> FusionPlan:
    """Return the fusion plan from which a graph is lowered. A graph with complex values gets one on real memory."""
    return fuse(on_real_memory(graph) if has_complex(graph) else graph, costs)


def lower_layouts(
    graph: Graph, layouts: Sequence[str], costs: FusionCosts = DEFAULT.fusion, plan: FusionPlan | None = None
) -> list[Program]:
    """Return one program per layout. All share one plan: ``plan``, or that of ``plan_graph``."""
    plan = plan or plan_graph(graph, costs)
    images = image_values(plan.graph) if any(x != LAYOUTS[0] for x in layouts) else set()
    lowered_groups: _LoweredGroups = {}
    builders = [_ProgramBuilder(plan.graph, plan, images, layout, lowered_groups, costs) for layout in layouts]
    programs = [builder.build() for builder in builders]
    return programs if plan.graph is graph else [on_complex_memory(program, graph) for program in programs]


_LoweredGroups = dict[Hashable, tuple[Kernel, tuple[int, ...]]]
"""Memo of lowered groups, by key: the kernel, and the positions of its arguments among the key's storages."""


class _ProgramBuilder:
    def __init__(
        self,
        graph: Graph,
        plan: FusionPlan,
        images: set[Value],
        layout: str,
        lowered_groups: _LoweredGroups,
        costs: FusionCosts,
    ):
        self.graph = graph
        self.costs = costs
        self.plan = plan
        self.images = images
        self.layout = layout
        self.storages: dict[str, Storage] = {}
        self.storage_of: dict[Value, str] = {}
        """The storage of each value."""
        self.strides: dict[str, tuple[int, ...]] = {}
        """Strides of storages that are not row-major."""
        self.lowered_groups = lowered_groups
        self.overwrites: dict[tuple[int, tuple[bool, ...]], bool] = {}
        """Memo of ``_overwrites_own_element``."""
        self.kernels: dict[tuple, Kernel] = {}
        self.named: dict[tuple[int, int], Kernel] = {}
        """Kernels of the program by the identities of buffers and body, which they hold: comparing bodies takes
        longer."""
        self.calls: list[Call] = []
        self.products: set[str] = set()
        """Names of kernels that are contractions."""
        self.updated: dict[Value, Value] = {}
        """Values that are a state with some elements replaced, with that state."""
        self.within: dict[Value, tuple[Value, int]] = {}
        """Values computed directly into a concatenation: its result, and the element at which they begin there."""
        self.loops = 0
        """Number of loops around calls so far."""

    def build(self) -> Program:
        """Return the program, with its storages in the documented order."""
        for value in self.graph.inputs:
            name = self._add(value, value.name, input_class(value), input_path(value))
            if (equals := input_equals(value)) is not None:
                self.storages[name] = replace(self.storages[name], equals=equals)
        for node in self.graph.having(Trait.CHECK):
            self.storage_of[node.results[0]] = self._status()
        memory = StateMemory(self.graph, self.plan)
        self.updated = memory.updated()
        pending = self._place_outputs()
        self._reorder_inputs()
        constants = [n for n in self.graph.nodes_of(lambda op: op is CONSTANT) if n.results[0].shape]
        for node in constants:
            self._add(node.results[0], node.results[0].name, "constant", data=node.attrs["value"])
        in_place = memory.overwriting() | self.updated
        self._lay_out(in_place)
        for group in self.plan.groups:
            self._lower(group, {v: in_place[v] for v in group.outputs if v in in_place and v not in self.storage_of})
        for value, name in pending:
            self._emit(self._copy(value, self.storage_of[value], name))
        self._write_states()
        self._redirect_parts()
        used = {a for call in self.calls for a in call.args}
        storages = [s for s in self.storages.values() if s.cls not in ("constant", "temp") or s.name in used]
        order = {"input": 0, "param": 0, "state": 0, "weight": 0, "output": 1, "status": 2, "constant": 3, "temp": 4}
        storages.sort(key=lambda s: order[s.cls])
        program = Program(self.graph.name, tuple(storages), tuple(self.kernels.values()), tuple(self.calls))
        return share_kernels(program, self.products, self.costs)

    def _status(self) -> str:
        """Return the name of the one storage that all checks set."""
        name = next((s.name for s in self.storages.values() if s.cls == "status"), None)
        if name is None:
            name = self._unused("status")
            self.storages[name] = Storage(name, bool_, (), "status")
        return name

    def _reorder_inputs(self) -> None:
        """Copy the caller's images into layout ``batch_last`` at the start, because lanes run along the batch."""
        if self.layout != "batch_last":
            return
        for value in self.graph.inputs:
            if value in self.images and input_class(value) == "input":
                source = self.storage_of.pop(value)
                target = self._add(value, f"{value.name}.{self.layout}", "temp")
                self.strides[target] = strides_of(value.shape, self.layout)
                self._emit(self._copy(value, source, target))

    def _add(self, value: Value, name: str, cls: str, path: str = "", data: Any = None) -> str:
        name = self._unused(name)
        self.storages[name] = Storage(name, value.dtype, value.shape, cls, path, data)
        self.storage_of.setdefault(value, name)
        return name

    def _unused(self, name: str) -> str:
        while name in self.storages:
            name = f"{name}_"
        return name

    def _lower(self, group: Group, in_place: dict[Value, Value]) -> None:
        """Emit a group's kernel; it writes straight into a state if it overwrites no element before reading it."""
        if self._is_by_parts(group.nodes[0]):
            self._place_temporaries(group)
            self._write_parts(group.nodes[0])
            return
        self.storage_of.update({value: self.storage_of[state] for value, state in in_place.items()})
        self._place_temporaries(group)
        if needs_stored_operands(group.nodes[0]):
            self._emit_calls(group.nodes[0])
            return
        if all(self._shares_memory(node) for node in group.nodes):
            return
        kernel, args = self._lowered(group)
        unsafe = [v for v in in_place if not self._overwrites_own_element(kernel, args, self.storage_of[v])]
        if len(unsafe) == 1:
            moving = in_order_of_rows(kernel, args, self.storage_of[unsafe[0]])
            kernel, unsafe = (kernel, unsafe) if moving is None else (moving, [])
        if unsafe:
            for value in unsafe:
                del self.storage_of[value]
            self._place_temporaries(group)
            kernel, args = self._lowered(group)
        name = self._emit((kernel, args), tuple(v.name for n in group.nodes for v in n.results))
        if group.kind == "contraction":
            self.products.add(name)

    def _overwrites_own_element(self, kernel: Kernel, args: Sequence[str], storage: str) -> bool:
        """Check ``overwrites_own_element`` once for kernels with one body; ``lowered_groups`` holds the bodies."""
        key = id(kernel.body), tuple([arg == storage for arg in args])
        if key not in self.overwrites:
            self.overwrites[key] = overwrites_own_element(kernel, args, storage)
        return self.overwrites[key]

    def _emit_calls(self, node: Node) -> None:
        """Emit the calls of a node whose operands and results are all stored."""
        kinds = {
            Trait.LOOP: self._repeat,
            Trait.WHILE: self._while,
            Trait.BRANCH: self._branch,
            Trait.HOST: self._call_host,
        }
        next(emit for trait, emit in kinds.items() if node.op.has(trait))(node)

    def _shares_memory(self, node: Node) -> bool:
        """Check whether a view shares the memory of its operand, element for element (a view of an updated state)."""
        source = unmoved(node.results[0])
        old = None if source is None else lying(source, self.storage_of)
        return old is not None and self.storage_of.get(node.results[0]) == self.storage_of[old]

    def _lowered(self, group: Group) -> tuple[Kernel, tuple[str, ...]]:
        """Return the kernel of a group and its storages; reuse the kernel of an equal group."""
        key, storages = group_key(group, self.storage_of, self.plan.stored, self.strides)
        lowered = self.lowered_groups.get(key)
        if lowered is None:
            kernel, args = lower_group(group, self.storage_of, self.plan.stored, self.strides, self.costs)
            self.lowered_groups[key] = kernel, tuple(storages.index(a) for a in args)
            return kernel, args
        kernel, positions = lowered
        return replace(kernel, origin=origin_of(group)), tuple(storages[i] for i in positions)

    def _place_temporaries(self, group: Group) -> None:
        # NOTE: calls that write operands of a concatenation compute their offsets in row-major order.
        free = not any(needs_stored_operands(node) or self._is_by_parts(node) for node in group.nodes)
        for value in group.outputs:
            if value not in self.storage_of:
                name = self._add(value, value.name, "temp")
                if value in self.within:
                    continue
                if free and value in self.images and self.layout != LAYOUTS[0]:
                    self.strides[name] = strides_of(value.shape, self.layout)
                elif free and value not in self.images and (strides := turned_strides(self.graph, value)):
                    self.strides[name] = strides

    def _is_by_parts(self, node: Node) -> bool:
        return node in self.plan.laid_out or is_written_by_parts(node, self.costs)

    def _lay_out(self, in_place: Container[Value]) -> None:
        """Find the operands of concatenations that can be computed directly into the result: those without storage."""
        for node in (g.nodes[0] for g in self.plan.groups if g.nodes[0] in self.plan.laid_out):
            for operand, start in zip(node.operands, starts(node), strict=True):
                value = lying(operand, self.plan.stored)
                if value is not None and not (value in self.storage_of or value in in_place or value in self.within):
                    self.within[value] = node.result, start

    def _redirect_parts(self) -> None:
        """Replace the storages of such operands by the concatenation's storage and an offset, in all calls."""
        subviews = {self.storage_of[v]: (self.storage_of[result], start) for v, (result, start) in self.within.items()}
        for number, call in enumerate(self.calls):
            if not subviews.keys().isdisjoint(call.args):
                args = [subviews.get(name, (name, 0)) for name in call.args]
                offsets = tuple(call.offset(i) + start for i, (_, start) in enumerate(args))
                self.calls[number] = replace(call, args=tuple(name for name, _ in args), offsets=offsets)

    def _write_parts(self, node: Node) -> None:
        """Emit a call per operand of a concatenation that writes it at its offset of the result."""
        result = node.results[0]
        for operand, start in zip(node.operands, starts(node), strict=True):
            value = lying(operand, self.within)
            if value is not None and self.within[value] == (result, start):
                continue
            kernel, args = lower_part(operand, result, self.storage_of, self.plan.stored, self.strides)
            offsets = tuple(as_index(start if name == self.storage_of[result] else 0) for name in args)
            self._emit((kernel, args), (result.name,), offsets=offsets)

    def _repeat(self, node: Node) -> None:
        """Emit the kernels of a scan's body, called once per step.

        Carries are updated in place in the storages of their results; slices of sequences are subviews.
        """
        loop = Repetition(node, self._loop_name())
        operands = [self._row_major(v) for v in node.operands]
        results = [self.storage_of[v] for v in node.results]
        for value, source, target in zip(node.operands[: loop.carries], operands, results, strict=False):
            if source != target:
                self._emit(self._copy(value, source, target))
        body = lower_graph(loop.body, costs=self.costs)
        self._insert(node, body, loop.bind(body, operands, results), loop.axis)

    def _insert(self, node: Node, body: Program, bound: dict[str, Subview], around: Axis | None) -> None:
        """Emit the calls of a lowered inner graph of a node, inside the loop ``around`` if there is one."""
        for storage in body.storages[len(bound) :]:
            name = self._unused(f"{node.results[0].name}.{storage.name}")
            self.storages[name] = replace(storage, name=name)
            bound[storage.name] = Subview(name)
        axes = {a: Axis(self._loop_name(), a.extent, a.flag and bound[a.flag].storage) for a in loop_spans(body.calls)}
        kernels = {k.name: k for k in body.kernels}
        for call in body.calls:
            subviews = [bound[a].inside(call.offset(i), axes) for i, a in enumerate(call.args)]
            offsets = tuple(p.offset for p in subviews) if call.offsets or any(p.offset.terms for p in subviews) else ()
            loops = (*(() if around is None else (around,)), *(axes[a] for a in call.loops))
            values = tuple(f"{node.results[0].name}.{name}" for name in call.values)
            self._emit((kernels[call.kernel], tuple(p.storage for p in subviews)), values, loops, offsets)

    def _flag(self, node: Node, name: str) -> str:
        flag = self._unused(f"{node.results[0].name}.{name}")
        self.storages[flag] = Storage(flag, bool_, (), "temp")
        return flag

    def _while(self, node: Node) -> None:
        """Emit the condition, then a loop over the kernels of a step and of the condition, which sets the loop's flag.

        Carries are updated in place in the storages of their results.
        """
        carries, flag = node.attrs["carries"], self._flag(node, "more")
        operands = [self._row_major(v) for v in node.operands]
        results = [self.storage_of[v] for v in node.results]
        for value, source, target in zip(node.operands[:carries], operands, results, strict=False):
            if source != target:
                self._emit(self._copy(value, source, target))
        arguments = [*results, *operands[carries:]]
        test, step = Branch(node.attrs["test"]), Branch(node.attrs["body"], carries)
        axis = Axis(self._loop_name(), MOST_STEPS, flag)
        for graph, around in ((test, None), (step, axis), (test, axis)):
            body = lower_graph(graph.body, costs=self.costs)
            self._insert(node, body, graph.bind(body, arguments, [] if graph is step else [flag]), around)

    def _branch(self, node: Node) -> None:
        """Emit the kernels of both branches, each in a loop of at most one iteration; both write the same results."""
        pred, *operands = (self._row_major(v) for v in node.operands)
        results = [self.storage_of[v] for v in node.results]
        for name in ("then", "otherwise"):
            flag = self._flag(node, name)
            self._emit((_flag_kernel(name == "then"), (pred, flag)))
            branch = Branch(node.attrs[name])
            body = lower_graph(branch.body, costs=self.costs)
            self._insert(node, body, branch.bind(body, operands, results), Axis(self._loop_name(), 1, flag))

    def _call_host(self, node: Node) -> None:
        """Emit the call of a Python function: a kernel without statements, whose first buffer is the new token."""
        token, *results = node.results
        values = [(token, "out"), *((v, "in") for v in node.operands), *((v, "out") for v in results)]
        buffers = tuple(Buffer(f"b{i}", v.dtype, v.type.size, role) for i, (v, role) in enumerate(values))
        args = tuple(self._row_major(v) if role == "in" else self.storage_of[v] for v, role in values)
        self._emit((Kernel("host", buffers, (), host=node.attrs["number"]), args), tuple(v.name for v in node.results))

    def _loop_name(self) -> str:
        self.loops += 1
        return f"r{self.loops - 1}"

    def _row_major(self, value: Value) -> str:
        """Return a storage with the elements of a value in row-major order; copy the value if necessary."""
        source = self.storage_of[value]
        if source not in self.strides:
            return source
        target = self._unused(f"{value.name}.{LAYOUTS[0]}")
        self.storages[target] = Storage(target, value.dtype, value.shape, "temp")
        self._emit(self._copy(value, source, target))
        return target

    def _write_states(self) -> None:
        """Copy new contents into states unless they are there already; before that, save states read by such copies."""
        copies: list[tuple[Value, str, str]] = []
        for node in self.graph.having(Trait.STATE_WRITE):
            value, target = stored_content(node), self.storage_of[node.operands[0]]
            if self.storage_of[value] != target:
                copies.append((value, self.storage_of[value], target))
        targets = {target for _, _, target in copies}
        for i, (value, source, target) in enumerate(copies):
            if source in targets:
                saved = self._add(value, f"{source}.old", "temp")
                self._emit(self._copy(value, source, saved))
                copies[i] = (value, saved, target)
        for copied in copies:
            self._emit(self._copy(*copied))

    def _place_outputs(self) -> list[tuple[Value, str]]:
        """Give every output a storage; return the (value, output) copies of values stored elsewhere."""
        pending: list[tuple[Value, str]] = []
        nests = {v for g in self.plan.groups if g.kind == "nest" for v in g.outputs}
        for number, value in enumerate(self.graph.outputs):
            source = written_value(value)
            name = self._unused(f"out{number}")
            self.storages[name] = Storage(name, value.dtype, value.shape, "output")
            stored_constant = source.node.op is CONSTANT and bool(source.shape)
            # NOTE: a nest writes its results in a fixed order; a copy transposes images faster than it could.
            turned = source in nests and source in self.images and self.layout != LAYOUTS[0]
            stored_elsewhere = source in self.storage_of or source in self.updated or source.node.op is INPUT
            if stored_elsewhere or stored_constant or turned:
                pending.append((source, name))
            else:
                self.storage_of[source] = name
        return pending

    def _copy(self, value: Value, source: str, target: str) -> tuple[Kernel, tuple[str, ...]]:
        """Return a kernel that copies a storage into another one, between any two layouts."""
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
        loops: tuple[Axis, ...] = (),
        offsets: tuple[Index, ...] = (),
    ) -> str:
        """Append a call; return the kernel's name in the program, or "" if the kernel is empty."""
        kernel, args = lowered
        if not kernel.body and kernel.host < 0:
            return ""
        identity = id(kernel.buffers), id(kernel.body)
        named = self.named.get(identity)
        if named is None or named.host != kernel.host:
            key = (kernel.buffers, kernel.body, kernel.host)
            if key not in self.kernels:
                self.kernels[key] = replace(kernel, name=f"k{len(self.kernels)}")
            named = self.kernels[key]
            if named.buffers is kernel.buffers and named.body is kernel.body:
                self.named[identity] = named
        self.calls.append(Call(named.name, args, values, loops, offsets))
        return named.name


MOST_STEPS = 2**40
"""Bound of a loop that only its flag ends; 2**40 steps would take days."""


def _flag_kernel(is_then: bool) -> Kernel:
    """Return a kernel that sets the flag of a branch: the condition for ``then``, its negation otherwise."""
    nest = NestBuilder()
    condition = nest.load_at("b0", as_index(0), bool_)
    nest.store_at("b1", as_index(0), condition.eq(is_then))
    return Kernel("flag", (Buffer("b0", bool_, 1, "in"), Buffer("b1", bool_, 1, "out")), nest.body())
