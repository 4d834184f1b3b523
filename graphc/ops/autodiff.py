"""Reverse-mode autodiff of a graph: append gradients to the graph, and split it into forward and backward."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.base.errors import ArgumentError, GradientError, GraphcError
from graphc.base.records import dataclass
from graphc.ir.graph.cut import SubgraphCopier, is_cheap
from graphc.ir.graph.graph import INPUT, Graph, Node, Value, input_class, input_path
from graphc.ir.graph.interpret import Reemitter, live_nodes
from graphc.ir.op import Trait
from graphc.ops.dispatch import GraphDispatcher, use
from graphc.ops.effects.state import stop_gradient, untracked
from graphc.ops.movement.shape import broadcast_to, zeros_like
from graphc.ops.pointwise.elementwise import add
from graphc.ops.reduction.reduce import sum_to


def vjp_graph(graph: Graph, wrt: Sequence[Value], outputs: Sequence[int] | None = None, unit: bool = False) -> Graph:
    """Return a new graph that computes the outputs of ``graph`` and their gradients with respect to ``wrt``.

    Inputs: the inputs of ``graph``, then one gradient per chosen output, of its type, named ``grad.<output>``. With
    ``unit`` there are no gradient inputs: the only chosen output has one element, and its gradient is the constant 1.
    Outputs: the outputs of ``graph``, then the gradients in the
    order of ``wrt``, named ``grad.<path or name>``. A value that affects no chosen output has gradient zeros.

    ``outputs`` are positions in ``graph.outputs``; None chooses every floating-point output. Backward nodes carry the
    location of their forward node. The result can be differentiated again. Raises GradientError for values without a
    gradient (integers) and for ops without a gradient rule.
    """
    chosen = _choose(graph, outputs)
    for value in (*wrt, *(graph.outputs[i] for i in chosen)):
        if not value.dtype.is_differentiable:
            raise GradientError(f"%{value.name}: {value.type} has no gradient", remedy="cast it to f32 or f64")
    reverse = _Reverse(graph, wrt)
    for i in chosen:
        reverse.seed(graph.outputs[i], _unit_gradient(reverse.target, graph, chosen) if unit else None)
    reverse.run()
    reverse.target.set_outputs([*reverse.target.outputs, *reverse.gradients()])
    return reverse.target


def pullback_graph(graph: Graph, wrt: Sequence[int], outputs: Sequence[int]) -> tuple[Graph, list[int]]:
    """Return a separate graph with the gradients of some outputs with respect to some inputs, by position.

    Inputs: the inputs of ``graph``, all of class input, then one gradient per chosen output. Outputs: the gradients in
    the order of ``wrt``. Writes of ``graph`` are left out. Also returns the indices into ``wrt`` that have a gradient;
    no output depends on the others. Raises the errors of ``vjp_graph``.
    """
    values = [graph.inputs[i] for i in wrt]
    reverse = _Reverse(graph, values)
    for i in outputs:
        reverse.seed(graph.outputs[i], None)
    reverse.run()
    dependent = [position for position, value in enumerate(values) if value in reverse.adjoints]
    gradients = [reverse.adjoints[values[position]] for position in dependent]
    copier = SubgraphCopier(f"{graph.name}.grad", live_nodes(reverse.target, gradients))
    for value in reverse.target.inputs:
        copier.add_input(value, plain=True)
    copier.copy(reverse.target, gradients)
    return copier.target, dependent


def pushforward_graph(graph: Graph, moving: Sequence[int]) -> tuple[Graph, list[int]]:
    """Return a separate graph with the tangents of the outputs that follow from tangents of some inputs.

    Inputs: the inputs of ``graph``, all of class input, then one tangent per input in ``moving``. Writes of ``graph``
    are left out. Also returns the positions of the outputs that have a tangent; the others do not depend on these
    inputs. The gradient of ``w J t`` with respect to w is ``J t``: the pullback of the pullback, which is linear in w,
    so w disappears. Raises the errors of ``vjp_graph``.
    """
    floats = [i for i, v in enumerate(graph.outputs) if v.dtype.is_differentiable]
    pulled, dependent = pullback_graph(graph, moving, floats)
    first = len(graph.inputs)
    weights = list(range(first, first + len(floats)))
    pushed, reached = pullback_graph(pulled, weights, list(range(len(dependent))))
    copier = SubgraphCopier(f"{graph.name}.tangents", live_nodes(pushed, pushed.outputs))
    for value in pushed.inputs[:first]:
        copier.add_input(value, plain=True)
    with use(GraphDispatcher(copier.target)):
        copier.values.update((value, zeros_like(value)) for value in pushed.inputs[first : first + len(floats)])
    tangents = dict(zip(dependent, pushed.inputs[first + len(floats) :], strict=True))
    for number, i in enumerate(moving):
        if number in tangents:
            copier.add_input(tangents[number], plain=True)
        else:
            copier.target.add_input(graph.inputs[i].type, f"tangent.{i}")
    copier.copy(pushed, pushed.outputs)
    return copier.target, [floats[k] for k in reached]


def read_before_written(graph: Graph, joint: Graph) -> list[int]:
    """Return the positions of inputs that ``graph`` writes although gradients of ``joint``, its ``vjp_graph``, read
    their previous content."""
    written = {n.operands[0] for n in graph.nodes() if n.op.has(Trait.STATE_WRITE)}
    if not written:
        return []
    live = live_nodes(joint, joint.outputs[len(graph.outputs) :])
    return [i for i, old in enumerate(graph.inputs) if old in written and joint.inputs[i].node in live]


def stops_gradient(node: Node) -> bool:
    """Check whether a node passes its operand on but stops the gradient."""
    return node.op in (stop_gradient.op, untracked.op)


def _choose(graph: Graph, outputs: Sequence[int] | None) -> list[int]:
    if outputs is None:
        return [i for i, v in enumerate(graph.outputs) if v.dtype.is_differentiable]
    for i in outputs:
        if not 0 <= i < len(graph.outputs):
            raise ArgumentError(f"@{graph.name} has {len(graph.outputs)} outputs, there is no output {i}")
    return list(outputs)


def complex_loss(value: Any) -> GradientError:
    """Build the error for a complex output without an explicit gradient."""
    return GradientError(
        f"a gradient can be implied only for a real output, this one is {value.dtype.name}",
        remedy="call backward(gradient), or use a real loss, such as x.abs().sum()",
    )


def _unit_gradient(target: Graph, graph: Graph, chosen: Sequence[int]) -> Value:
    value = graph.outputs[chosen[0]]
    if len(chosen) != 1 or value.type.size != 1:
        types = ", ".join(str(graph.outputs[i].type) for i in chosen)
        raise GradientError(
            f"grad can be implicitly created only for scalar outputs, got {types}",
            remedy="reduce the output to one number, e.g. with sum() or mean()",
        )
    if value.dtype.is_complex:
        raise complex_loss(value)
    with use(GraphDispatcher(target, prefix=f"grad.{value.name}.")):
        one = target.scalar(1, value.dtype)
        return one if not value.shape else broadcast_to(one, shape=value.shape)


class _Reverse:
    """Reverse pass over the nodes of a graph, which emits their gradient rules after a copy of the graph."""

    def __init__(self, graph: Graph, wrt: Sequence[Value]):
        copier = Reemitter()
        self.graph = graph
        self.wrt = list(wrt)
        self.target = copier.transform(graph)
        self.copies: dict[Value, Value] = copier.values
        self.adjoints: dict[Value, Value] = {}
        self.active = _depending(graph, wrt)

    def seed(self, output: Value, gradient: Value | None) -> None:
        """Start from an output of the old graph; ``None`` adds an input for its gradient."""
        if gradient is None:
            gradient = self.target.add_input(output.type, f"grad.{output.name}")
        self.accumulate(output, gradient, GraphDispatcher(self.target, prefix=f"grad.{output.name}."))

    def accumulate(self, value: Value, gradient: Value, dispatcher: GraphDispatcher) -> None:
        """Add a gradient of an old value, summed to its shape where the value was broadcast."""
        with use(dispatcher):
            gradient = sum_to(gradient, value.shape)
            total = self.adjoints.get(value)
            self.adjoints[value] = gradient if total is None else add(total, gradient)

    def run(self) -> None:
        """Visit all nodes between wrt and a chosen output, last first."""
        for node in reversed(self.graph.nodes()):
            gradients = tuple(self.adjoints.get(r) if r in self.active else None for r in node.results)
            if any(g is not None for g in gradients) and any(v in self.active for v in node.operands):
                try:
                    self.step(node, gradients)
                except GraphcError as error:
                    error.origin = error.origin or node.location.describe() or None
                    raise

    def step(self, node: Node, gradients: tuple[Value | None, ...]) -> None:
        """Emit the gradient rule of one node and add its results to the gradients of the operands."""
        single = len(gradients) == 1
        g: Any = gradients[0] if single else gradients
        results = tuple(self.copies[r] for r in node.results)
        arguments = (g, results[0] if single else results, *(self.copies[v] for v in node.operands))
        dispatcher = GraphDispatcher(self.target, node.location, f"grad.{node.results[0].name}.")
        for operand, gradient in zip(node.operands, self._apply_rules(node, arguments, dispatcher), strict=True):
            if gradient is not None:
                self.accumulate(operand, gradient, dispatcher)

    def _apply_rules(self, node: Node, arguments: tuple[Any, ...], dispatcher: GraphDispatcher) -> list[Any]:
        rules, needed = node.op.vjp, [v in self.active for v in node.operands]
        if rules is None:
            raise GradientError(
                f"{node.op.name} has no gradient rule (%{node.results[0].name}: {node.results[0].type})",
                remedy="detach its operand, or compute it from operations that have one",
            )
        with use(dispatcher):
            if callable(rules):
                gradients = rules(*arguments, **node.attrs)
                return [g if w else None for g, w in zip(gradients, needed, strict=True)]
            return [
                rule(*arguments, **node.attrs) if w and rule is not None else None
                for rule, w in zip(rules, needed, strict=True)
            ]

    def gradients(self) -> list[Value]:
        """Return the gradient of each wrt, named after it."""
        named: set[Value] = set(self.target.outputs)
        result = []
        for value in self.wrt:
            name = f"grad.{input_path(value) or value.name}"
            gradient = self.adjoints.get(value)
            if gradient is None:
                with use(GraphDispatcher(self.target, prefix=f"{name}.")):
                    gradient = zeros_like(self.copies[value])
            if gradient.node.op is not INPUT and not gradient.is_scalar_constant and gradient not in named:
                self.target.rename(gradient, name)
            named.add(gradient)
            result.append(gradient)
        return result


def _depending(graph: Graph, wrt: Sequence[Value]) -> set[Value]:
    """Return the floating-point values that depend on ``wrt``, except along paths whose gradient is zero by
    definition."""
    active = set(wrt)
    for node in graph.nodes():
        if stops_gradient(node):
            continue
        rules = node.op.vjp
        for i, operand in enumerate(node.operands):
            if operand in active and not (isinstance(rules, tuple) and rules[i] is None):
                active.update(r for r in node.results if r.dtype.is_differentiable)
    return active


# ---- forward and backward as two graphs


@dataclass(frozen=True)
class Split:
    """A joint graph cut in two."""

    forward: Graph
    """Inputs: the first ``n_inputs`` of the joint graph. Outputs: the original ones, then ``residuals`` saved
    values."""
    backward: Graph
    """Inputs: the residuals in the order of forward's outputs, then the inputs listed in ``kept``, then gradients of
    the outputs. Outputs: the gradients."""
    residuals: int
    """Number of values that forward saves for backward."""
    kept: tuple[int, ...]
    """Positions of the inputs of forward that backward reads again; never a state, whose content changes."""
    gradients: int
    """Number of gradient inputs of backward."""


def split_forward_backward(graph: Graph, n_inputs: int, n_outputs: int) -> Split:
    """Cut the result of ``vjp_graph`` (or an optimized form of it) into a forward and a backward graph.

    The first ``n_inputs`` inputs of the joint graph are the original ones, the rest gradients; its first ``n_outputs``
    outputs are the original ones, the rest gradients. Constants and other values that are cheap to compute again
    (generators, and views no larger than their operands) are computed in both graphs rather than saved.
    """
    forward = live_nodes(graph, [*graph.outputs[:n_outputs], *_early_effects(graph, n_inputs)])
    for value in graph.inputs[n_inputs:]:
        if value.node in forward:
            raise GradientError(f"forward outputs of @{graph.name} depend on the gradient %{value.name}")
    cut = _Cut(graph, forward, n_inputs)
    cut.visit(graph.outputs[n_outputs:])
    first = SubgraphCopier(f"{graph.name}.forward", forward | {v.node for v in graph.inputs[:n_inputs]})
    second = SubgraphCopier(f"{graph.name}.backward", cut.later)
    for value in graph.inputs[:n_inputs]:
        first.add_input(value)
    for value in cut.residuals:
        second.add_input(value, plain=True)
    for value in (*cut.kept, *graph.inputs[n_inputs:]):
        second.add_input(value)
    first.copy(graph, [*graph.outputs[:n_outputs], *cut.residuals])
    second.copy(graph, graph.outputs[n_outputs:])
    reread = tuple(graph.inputs.index(v) for v in cut.kept)
    return Split(first.target, second.target, len(cut.residuals), reread, len(graph.inputs) - n_inputs)


def _early_effects(graph: Graph, n_inputs: int) -> list[Value]:
    """Return the results of nodes with effects independent of gradients."""
    late = {v.node for v in graph.inputs[n_inputs:]}
    effects = []
    for node in graph.nodes():
        if any(v.node in late for v in node.operands):
            late.add(node)
        elif not node.op.has(Trait.PURE):
            effects.extend(node.results)
    return effects


class _Cut:
    """Search for the nodes of the backward part and the values that cross into it."""

    def __init__(self, graph: Graph, forward: set[Node], n_inputs: int):
        self.graph, self.forward = graph, forward
        self.inputs = set(graph.inputs[:n_inputs])
        self.later: set[Node] = {v.node for v in graph.inputs[n_inputs:]}
        self.residuals: list[Value] = []
        self.kept: list[Value] = []

    def visit(self, roots: Sequence[Value]) -> None:
        """Collect all values that ``roots`` need, and sort the crossing ones in the order of the graph."""
        late_effects = [
            r for n in self.graph.nodes() if n not in self.forward and not n.op.has(Trait.PURE) for r in n.results
        ]
        stack, visited = [*roots, *late_effects], set[Value]()
        while stack:
            value = stack.pop()
            if value in visited:
                continue
            visited.add(value)
            if value in self.inputs:
                (self.residuals if input_class(value) == "state" else self.kept).append(value)
            elif value.node in self.forward and not is_cheap(value):
                self.residuals.append(value)
            else:
                self.later.add(value.node)
                stack.extend(value.node.operands)
        self.residuals.sort(key=lambda v: (v.node.id, v.index))
        self.kept.sort(key=lambda v: v.node.id)
