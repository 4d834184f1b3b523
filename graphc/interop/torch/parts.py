"""Division of a torch.fx graph into as few native subgraphs as possible, and PyTorch's operators between them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx.graph import _BoxedCodeGen

from graphc.base.records import dataclass

LEAST = 2
"""Minimum number of operators of a native subgraph. PyTorch also runs a single operator between two of its own."""
UNREAD = "graphc_unread"
"""Metadata key of nodes whose arguments no longer are those that PyTorch reads, so that only graphc can compute
them."""
_OF_SHAPES = frozenset({"aten::sym_size", "aten::sym_numel", "aten::sym_stride", "aten::sym_storage_offset"})
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class NativeSubgraph:
    """Native subgraph as a graph of its own."""

    module: fx.GraphModule
    inputs: tuple[fx.Node, ...]
    """Nodes of the original graph for its placeholders, in order."""
    outputs: tuple[fx.Node, ...]
    """Nodes of the original graph for its results, in order."""
    nodes: tuple[fx.Node, ...]
    """Operators that it computes."""
    sources: dict[str, fx.Node]
    """Nodes of the original graph by their names in the subgraph."""


def value_of(node: fx.Node) -> Any:
    """Return the stand-in for the value of a node: a fake tensor, a number, or None."""
    return node.meta.get("val")


def is_number(node: fx.Node) -> bool:
    """Check whether the value of a node is a number, mostly a size."""
    return isinstance(value_of(node), _NUMBERS)


def owner(node: fx.Node) -> fx.Node:
    """Return the operator of a node. Each of several results belongs to the operator that computes them."""
    while node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem" and node.args:
        first = node.args[0]
        if not isinstance(first, fx.Node) or is_number(node):
            break
        node = first
    return node


def _is_follower(node: fx.Node) -> bool:
    """Check whether a node costs so little that each user recomputes it: views, constants, and arithmetic on sizes."""
    target = node.target
    if node.op != "call_function" or isinstance(target, HigherOrderOperator):
        return node.op == "get_attr"
    if not isinstance(target, OpOverload):
        return is_number(node) and all(is_number(n) for n in node.all_input_nodes)
    if target._schema.is_mutable or is_ordered(node) or value_of(node) is None:
        return False
    if is_number(node):
        return target._schema.name in _OF_SHAPES or not node.all_input_nodes
    return target.is_view or all(is_number(n) for n in node.all_input_nodes)


def is_ordered(node: fx.Node) -> bool:
    """Check whether a node must keep its order among such nodes: it draws random numbers or has visible effects."""
    return is_random(node) or (isinstance(node.target, (OpOverload, HigherOrderOperator)) and node.is_impure())


def is_random(node: fx.Node) -> bool:
    """Check whether a node draws random numbers."""
    return isinstance(node.target, OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def _writes(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def is_note(node: fx.Node) -> bool:
    """Check whether a node computes nothing, such as PyTorch's assertions about sizes."""
    return node.op == "call_function" and value_of(node) is None and not node.users and not _writes(node)


class Division:
    """Assignment of the nodes of a graph to native subgraphs and PyTorch."""

    def __init__(self, module: fx.GraphModule, refused: Collection[fx.Node]):
        """Assign the nodes. PyTorch runs those of ``refused``, and those that write to arguments, which come last."""
        self.module = module
        self.refused = {owner(n) for n in refused}
        self.lonely: set[fx.Node] = set()
        """Nodes that PyTorch runs because too few of them are adjacent."""
        calls = [n for n in module.graph.nodes if n.op == "call_function"]
        self._order = {n: i for i, n in enumerate(module.graph.nodes)}
        self._followers = {n for n in module.graph.nodes if _is_follower(n) and n not in self.refused}
        self._operators = [n for n in calls if owner(n) is n and n not in self._followers]
        self._bases = self._compute_bases()
        self.phases = self._compute_phases()
        while few := self._lonely():
            self.lonely |= few
            self.phases = self._compute_phases()

    @property
    def native(self) -> list[list[fx.Node]]:
        """Return the operators of each native subgraph, in an order in which the subgraphs can run."""
        by_phase: dict[int, list[fx.Node]] = {}
        for node in self._operators:
            if self.phases[node] % 2:
                by_phase.setdefault(self.phases[node], []).append(node)
        return [by_phase[phase] for phase in sorted(by_phase)]

    def _compute_bases(self) -> dict[fx.Node, set[fx.Node]]:
        """Return the values from which followers compute the arguments of each node."""
        bases: dict[fx.Node, set[fx.Node]] = {}
        for node in self.module.graph.nodes:
            bases[node] = set()
            for operand in node.all_input_nodes:
                bases[node] |= bases[operand] if self._follows(operand) else {operand}
        return bases

    def _follows(self, node: fx.Node) -> bool:
        return owner(node) in self._followers

    def _is_native(self, node: fx.Node) -> bool:
        return not (node in self.refused or node in self.lonely or _writes(node) or is_note(node))

    def _compute_phases(self) -> dict[fx.Node, int]:
        """Return the phase of each operator, the earliest that its arguments and its side allow.

        PyTorch runs in even phases, native code in odd ones. No division has fewer native subgraphs: their number is
        the length of the longest alternating path through the graph, which begins with PyTorch.
        """
        phases: dict[fx.Node, int] = {}
        last = floor = highest = 0
        for node in self._operators:
            before = [phases[owner(b)] for b in self._bases[node] if owner(b) in phases]
            ordered = is_ordered(node) and not is_note(node)
            least: int = max([floor, *before, *([last] if ordered else []), *([highest] if _writes(node) else [])])
            phases[node] = phase = least + (least % 2 != self._is_native(node))
            highest = max(highest, phase)
            last = phase if ordered else last
            floor = phase if _writes(node) else floor
        return phases

    def _lonely(self) -> set[fx.Node]:
        counts = Counter(self.phases[n] for n in self._operators)
        native = {p for p, count in counts.items() if p % 2 and count < LEAST}
        few = {n for n in self._operators if self.phases[n] in native and not n.meta.get(UNREAD)}
        return few if self.refused else set()

    # ---- graphs

    def subgraphs(self) -> list[NativeSubgraph]:
        """Return the native subgraphs."""
        return [self._part(nodes) for nodes in self.native]

    def _part(self, nodes: list[fx.Node]) -> NativeSubgraph:
        own = set(nodes)
        inputs, outputs = self._inputs_of(own), self._results_of(own)
        graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
        for node in inputs:
            copies[node] = graph.placeholder(node.name)
            copies[node].meta = dict(node.meta)
        for node in nodes:
            _copied(node, graph, copies)
        graph.output(tuple([_copied(n, graph, copies) for n in outputs]))
        sources = {copy.name: node for node, copy in copies.items()}
        return NativeSubgraph(fx.GraphModule(self.module, graph), tuple(inputs), tuple(outputs), tuple(nodes), sources)

    def _inputs_of(self, own: set[fx.Node]) -> list[fx.Node]:
        """Return the inputs of a subgraph, in the order of the graph."""
        inputs: set[fx.Node] = set()
        stack, visited = list(own), set(own)
        while stack:
            for operand in stack.pop().all_input_nodes:
                if operand in visited:
                    continue
                visited.add(operand)
                if owner(operand) in own or (self._follows(operand) and not self._is_given(operand, own)):
                    stack.append(operand)
                else:
                    inputs.add(operand)
        return sorted(inputs, key=self._order.__getitem__)

    def _is_given(self, node: fx.Node, own: set[fx.Node]) -> bool:
        """Check whether a follower is an input of a subgraph: a plain size, of tensors that others compute."""
        value = value_of(node)
        plain = isinstance(value, torch.SymInt) and value.node.expr.is_Symbol
        return plain and not any(owner(b) in own for b in self._bases[node])

    def _results_of(self, own: set[fx.Node]) -> list[fx.Node]:
        """Return the results of a subgraph that others read, in the order of the graph."""
        results: set[fx.Node] = set()
        for node in self.module.graph.nodes:
            if node.op == "output" or not (owner(node) in own or self._follows(node)):
                results |= {b for b in self._bases[node] if owner(b) in own}
        return sorted(results, key=self._order.__getitem__)

    def joined(self, subgraphs: Sequence[tuple[NativeSubgraph, Callable[..., Any]]]) -> fx.GraphModule:
        """Return the original graph with calls of these functions in place of the subgraphs.

        The functions, and the result, take a list and empty it.
        """
        nodes = list(self.module.graph.nodes)
        graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
        modules = {str(n.target): _attribute(self.module, str(n.target)) for n in nodes if n.op == "get_attr"}
        by_phase = {self.phases[subgraph.nodes[0]]: (subgraph, function) for subgraph, function in subgraphs}
        for node in nodes:
            if node.op == "placeholder":
                _copied(node, graph, copies)
        for node in sorted(self._operators, key=lambda n: (self.phases[n], self._order[n])):
            phase = self.phases[node]
            if phase % 2 == 0:
                _copied(node, graph, copies)
            elif phase in by_phase:
                subgraph, function = by_phase.pop(phase)
                name = f"native_{phase // 2}"
                modules[name] = _Call(function)
                results = graph.call_module(name, tuple([_copied(n, graph, copies) for n in subgraph.inputs]))
                for i, value in enumerate(subgraph.outputs):
                    copies[value] = graph.call_function(operator.getitem, (results, i))
        _copied(nodes[-1], graph, copies)
        graph.set_codegen(_BoxedCodeGen())
        return fx.GraphModule(modules, graph)


class _Call(torch.nn.Module):
    """Module that takes arguments and calls a function of a list."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(list(args))


def _copied(node: fx.Node, graph: fx.Graph, copies: dict[fx.Node, fx.Node]) -> fx.Node:
    """Copy a node to another graph, after the followers it needs."""
    stack = [node]
    while stack:
        missing = [n for n in stack[-1].all_input_nodes if n not in copies]
        if missing:
            stack += missing
            continue
        last = stack.pop()
        if last not in copies:
            copies[last] = graph.node_copy(last, copies.__getitem__)
    return copies[node]


def _attribute(module: fx.GraphModule, path: str) -> Any:
    value: Any = module
    for name in path.split("."):
        value = getattr(value, name)
    return value
