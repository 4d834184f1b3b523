"""Scans: merge equal ones, drop unused carries, stacks and operands, share and hoist invariants, optimize each step."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from graphc.base.records import dataclass
from graphc.base.sizes.size import always
from graphc.codegen.machine.costs import DEFAULT, Costs
from graphc.ir.graph.build import emit
from graphc.ir.graph.graph import Graph, Node, Value
from graphc.ir.graph.interpret import copy, live_nodes
from graphc.ir.op import Trait
from graphc.ops.dispatch import GraphDispatcher, current, use
from graphc.ops.flow.control import inline
from graphc.ops.movement.shape import broadcast_to
from graphc.passes.base import Pass, PassResult, held_graphs, holding_graphs, run_inside, with_costs
from graphc.passes.cse import CommonSubexpressionElimination


@dataclass(frozen=True)
class MergeScans:
    """Merge scans over the same operands whose carries are equal.

    Needs: any valid graph. Does: joins a scan and the second run of its step that provides intermediate values for the
    gradient (see ops.flow.loop). Leaves: one scan whose step returns the results of both.

        %a, %b = scan(%c, %x) {body: new, y}
        %d, %e = scan(%c, %x) {body: new, z}   ->   %a, %b, %e = scan(%c, %x) {body: new, y, z}
    """

    name: str = "merge-scans"

    def run(self, graph: Graph) -> PassResult:
        """Count merged scans."""
        groups: dict[tuple[Any, ...], list[Node]] = {}
        for node in _scans(graph):
            attrs = node.attrs
            key = (node.operands, attrs["carries"], attrs["sequences"], attrs["length"], attrs["reverse"])
            groups.setdefault(key, []).append(node)
        merged = 0
        for first, *others in groups.values():
            for other in others:
                joined = _joined(graph, first, other)
                merged += joined is not None
                first = joined or first
        return PassResult(graph, merged)


def _scans(graph: Graph) -> list[Node]:
    return graph.having(Trait.LOOP)


def _joined(graph: Graph, first: Node, other: Node) -> Node | None:
    """Return one node for the two, or None when their carries differ."""
    bodies: tuple[Graph, Graph] = (first.attrs["body"], other.attrs["body"])
    carries = first.attrs["carries"]
    body = Graph(bodies[0].name)
    arguments = [body.add_input(v.type, v.name) for v in bodies[0].inputs]
    with use(GraphDispatcher(body)):
        results = [inline(b, arguments) for b in bodies]
    body.set_outputs([*results[0], *results[1]])
    body = CommonSubexpressionElimination().run(body).graph
    own, others = body.outputs[: len(results[0])], body.outputs[len(results[0]) :]
    if own[:carries] != others[:carries]:
        return None
    body.set_outputs([*own, *others[carries:]])
    node = _emit(graph, first, first.operands, body)
    for i, value in enumerate(first.results):
        graph.replace_uses(value, node.results[i])
    for i, value in enumerate(other.results):
        graph.replace_uses(value, node.results[i if i < carries else i + len(own) - carries])
    graph.erase(first)
    graph.erase(other)
    return node


def _emit(graph: Graph, like: Node, operands: Sequence[Value], body: Graph, **attrs: int) -> Node:
    """Emit a scan with another step."""
    name = like.results[0].name.removesuffix(".0")
    return emit(graph, like.op, operands, {**like.attrs, **attrs, "body": body}, like.location, name)[0].node


@dataclass(frozen=True)
class PruneScans:
    """Drop unused and duplicate results of scans, and operands that their steps do not need.

    Needs: any valid graph. Does: removes unused and duplicate stacks, carries that only feed themselves,
    and operands that no step reads; merges equal operands. Leaves: smaller steps.

        %a, %b, %c = scan(%i, %x, %y) {body: new, u, v}   ->   %a, %b = scan(%i, %x) {body: new, u}
        return %a, %b                                          return %a, %b
    """

    name: str = "prune-scans"

    def run(self, graph: Graph) -> PassResult:
        """Count the scans that got smaller."""
        changed = 0
        for node in reversed(_scans(graph)):
            if not any(graph.is_used(v) for v in node.results):
                continue
            plan = _Pruning(graph, node)
            if not plan.is_complete():
                plan.apply()
                changed += 1
        return PassResult(graph, changed)


class _Pruning:
    """Plan of the carries, stacks and operands of a scan to keep."""

    def __init__(self, graph: Graph, node: Node):
        self.graph, self.node = graph, node
        self.body: Graph = node.attrs["body"]
        self.carries: int = node.attrs["carries"]
        self.sequences: int = node.attrs["sequences"]
        self.stacks = self._stacks()
        self.live_carries = self._live_carries()
        self.inputs = self._inputs()

    def _stacks(self) -> dict[int, int]:
        """Map every used stack to the first stack that equals it."""
        first: dict[Value, int] = {}
        representative: dict[int, int] = {}
        for i, value in enumerate(self.body.outputs):
            if i >= self.carries and self.graph.is_used(self.node.results[i]):
                representative[i] = first.setdefault(value, i)
        return representative

    def _needed(self, carries: Sequence[int]) -> set[Node]:
        return live_nodes(self.body, [self.body.outputs[i] for i in (*carries, *self.stacks.values())])

    def _live_carries(self) -> list[int]:
        """Return the used carries, and all others which they or a used stack depend on."""
        live = [i for i in range(self.carries) if self.graph.is_used(self.node.results[i])]
        while True:
            needed = self._needed(live)
            grown = [i for i in range(self.carries) if i in live or self.body.inputs[i].node in needed]
            if grown == live:
                return live
            live = grown

    def _inputs(self) -> dict[int, int]:
        """Map every operand to keep to the first operand that equals it; each carry maps to itself."""
        needed = self._needed(self.live_carries)
        first: dict[tuple[bool, Value], int] = {}
        representative = {i: i for i in self.live_carries}
        for i in range(self.carries, len(self.body.inputs)):
            if self.body.inputs[i].node in needed:
                sliced = i < self.carries + self.sequences
                representative[i] = first.setdefault((sliced, self.node.operands[i]), i)
        return representative

    def is_complete(self) -> bool:
        """Check whether nothing would change."""
        same = all(i == j for i, j in (*self.stacks.items(), *self.inputs.items()))
        return (
            same and len(self.inputs) == len(self.body.inputs) and self._outputs() == [*range(len(self.body.outputs))]
        )

    def _outputs(self) -> list[int]:
        return [*self.live_carries, *dict.fromkeys(self.stacks.values())]

    def apply(self) -> None:
        """Replace the old scan by the smaller one."""
        remaining = list(dict.fromkeys(self.inputs.values()))
        body = Graph(self.body.name)
        inputs = {i: body.add_input(self.body.inputs[i].type, self.body.inputs[i].name) for i in remaining}
        arguments = [inputs[self.inputs[i]] if i in self.inputs else None for i in range(len(self.body.inputs))]
        outputs = self._outputs()
        with use(GraphDispatcher(body)):
            body.set_outputs(_partial(self.body, arguments, [self.body.outputs[i] for i in outputs]))
        sequences = sum(self.carries <= i < self.carries + self.sequences for i in remaining)
        operands = [self.node.operands[i] for i in remaining]
        node = _emit(self.graph, self.node, operands, body, carries=len(self.live_carries), sequences=sequences)
        results = {i: node.results[k] for k, i in enumerate(outputs)}
        for i, value in enumerate(self.node.results):
            new = results.get(self.stacks.get(i, i))
            if new is not None:
                self.graph.replace_uses(value, new)
        self.graph.erase(self.node)


def _partial(graph: Graph, arguments: Sequence[Any], outputs: Sequence[Value]) -> list[Value]:
    """Apply the nodes that some outputs of a graph need, and return these outputs."""
    needed = live_nodes(graph, outputs)
    values = dict(zip(graph.inputs, arguments, strict=True))
    for node in graph.nodes():
        if node in needed:
            results = current().apply(node.op, [values[v] for v in node.operands], node.attrs)
            results = results if isinstance(results, tuple) else (results,)
            values.update(zip(node.results, results, strict=True))
    return [values[v] for v in outputs]


@dataclass(frozen=True)
class ShareInvariantStacks:
    """Do not stack a value that is the same in all steps, as gradients keep parts of shared operands.

    Needs: any valid graph. Does: computes such a value outside, replaces its stack by a broadcast, and passes a
    sequence that is a broadcast as a shared operand. Leaves: unused stacks, which ``prune-scans`` drops.

        %a, %b = scan(%c, %w) {body: mul(%c, %s), %s = slice(%w)}   ->   %s = slice(%w)
        %d = scan(%g, %b) {body: mul(%g, %b)}                            %d = scan(%g, %s) {body: mul(%g, %s)}
    """

    name: str = "share-invariant-stacks"

    def run(self, graph: Graph) -> PassResult:
        """Count stacks and sequences."""
        changed = sum([_unstack(graph, node) for node in _scans(graph)])
        return PassResult(graph, changed + sum([_share(graph, node) for node in _scans(graph)]))


def _unstack(graph: Graph, node: Node) -> int:
    """Replace the stacks of invariants by broadcasts, and return their number."""
    body: Graph = node.attrs["body"]
    shared = node.attrs["carries"] + node.attrs["sequences"]
    outside: dict[Value, Value] = dict(zip(body.inputs[shared:], node.operands[shared:], strict=True))
    invariant = set(outside)
    for inner in body.nodes():
        operands = [v for v in inner.operands if not v.is_scalar_constant]
        pure = inner.op.has(Trait.PURE) and not inner.op.has(Trait.RANDOM) and not held_graphs(inner)
        if pure and operands and len(inner.results) == 1 and invariant.issuperset(operands):
            invariant.add(inner.result)
    changed = 0
    carries = node.attrs["carries"]
    for value, stack in zip(body.outputs[carries:], node.results[carries:], strict=True):
        if value in invariant and graph.is_used(stack):
            with use(GraphDispatcher(graph, node.location)):
                single = _computed_outside(graph, value, outside)
                graph.replace_uses(stack, broadcast_to(single, shape=stack.shape))
            changed += 1
    return changed


def _computed_outside(graph: Graph, value: Value, outside: dict[Value, Value]) -> Value:
    """Return the value that an invariant of a step has in the graph of the scan."""
    pending = [value]
    while pending:
        inner = pending[-1].node
        missing = [v for v in inner.operands if v not in outside and not v.is_scalar_constant]
        pending += missing
        if not missing:
            operands = [outside.get(v) or graph.scalar(v.node.attrs["value"], v.dtype) for v in inner.operands]
            top = pending.pop()
            if top not in outside:
                outside[top] = emit(graph, inner.op, operands, inner.attrs, inner.location, top.name)[0]
    return outside[value]


def _share(graph: Graph, node: Node) -> int:
    """Pass the sequences of a scan whose slices are all one value as shared operands, and return their number."""
    last = node.attrs["carries"] + node.attrs["sequences"]
    singles: dict[int, Value] = {}
    for i in range(node.attrs["carries"], last):
        source = node.operands[i].node
        if source.op is broadcast_to.op and source.operands[0].shape == node.operands[i].shape[1:]:
            singles[i] = source.operands[0]
    if not singles:
        return 0
    body: Graph = copy(node.attrs["body"])
    order = [*(i for i in range(len(node.operands)) if i not in singles), *singles]
    body.inputs[:] = [body.inputs[i] for i in order]
    operands = [singles.get(i, node.operands[i]) for i in order]
    new = _emit(graph, node, operands, body, sequences=node.attrs["sequences"] - len(singles))
    for old, value in zip(node.results, new.results, strict=True):
        graph.replace_uses(old, value)
    graph.erase(node)
    return len(singles)


_STAYS = Trait.VIEW | Trait.GENERATOR | Trait.CONVERSION
"""Ops that cost a step nothing, or whose results take more memory than their operands."""


@dataclass(frozen=True)
class HoistFromSteps:
    """Compute once before a scan what all of its steps compute alike.

    Needs: any valid graph. Does: moves pure nodes whose operands all steps share in front of the scan, unless their
    results are larger than their operands: each step reads them from memory. Leaves: results as shared operands.

        %a = scan(%c, %w) {body: mul(%c, exp(%w))}   ->   %e = exp(%w)
                                                          %a = scan(%c, %e) {body: mul(%c, %e)}
    """

    name: str = "hoist-from-steps"

    def run(self, graph: Graph) -> PassResult:
        """Count moved nodes."""
        changed = run_inside(self, graph)
        return PassResult(graph, changed + sum([_hoist(graph, node) for node in _scans(graph)]))


def _hoist(graph: Graph, node: Node) -> int:
    """Move the invariants of one scan in front of it, and return their number."""
    body: Graph = copy(node.attrs["body"])
    shared = node.attrs["carries"] + node.attrs["sequences"]
    outside: dict[Value, Value] = dict(zip(body.inputs[shared:], node.operands[shared:], strict=True))
    moved: dict[Node, None] = {}
    for inner in body.nodes():
        if _is_invariant(inner, outside):
            operands = [outside.get(v) or graph.scalar(v.node.attrs["value"], v.dtype) for v in inner.operands]
            outside[inner.result] = emit(graph, inner.op, operands, inner.attrs, inner.location, inner.result.name)[0]
            moved[inner] = None
    if not moved:
        return 0
    results = [
        n.result
        for n in moved
        if n.result in body.outputs or any(reader not in moved for reader, _ in body.uses(n.result))
    ]
    for value in results:
        body.replace_uses(value, body.add_input(value.type, value.name))
    for inner in reversed(moved):
        body.erase(inner)
    new = _emit(graph, node, [*node.operands, *(outside[v] for v in results)], body)
    for old, value in zip(node.results, new.results, strict=True):
        graph.replace_uses(old, value)
    graph.erase(node)
    return len(moved)


def _is_invariant(node: Node, outside: Collection[Value]) -> bool:
    """Check for a node that computes something from shared values alone, no larger than these."""
    operands = [v for v in node.operands if not v.is_scalar_constant]
    if not operands or len(node.results) != 1 or not node.op.has(Trait.PURE) or node.op.has_any(_STAYS):
        return False
    if held_graphs(node) or any(v not in outside for v in operands):
        return False
    return always("<=", node.result.type.nbytes, sum(v.type.nbytes for v in operands))


@dataclass(frozen=True)
class OptimizeSteps:
    """Run passes over the step of every scan and the branches of every cond, nested ones included.

    Needs: the preconditions of the passes. Does: replaces the step by its optimized form. Leaves: operands and results.

        body: mul(%x, f32(1.0))   ->   body: %x
    """

    passes: tuple[Pass, ...]
    name: str = "optimize-steps"
    costs: Costs = DEFAULT

    def run(self, graph: Graph) -> PassResult:
        """Add up the counts of the passes."""
        changed = 0
        nested = [(node, name) for node in holding_graphs(graph) for name in held_graphs(node)]
        for node, name in nested:
            inner = self.run(copy(node.attrs[name]))
            body, changed = inner.graph, changed + inner.changed
            for step in (with_costs(step, self.costs) for step in self.passes):
                result = step.run(body)
                body, changed = result.graph, changed + result.changed
            node.attrs = {**node.attrs, name: body}
        return PassResult(graph, changed)
