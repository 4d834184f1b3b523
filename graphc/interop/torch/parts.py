"""Divides a graph of torch.fx: native parts, as few as can be, and what PyTorch runs between them."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator, OpOverload
from torch.fx.graph import _BoxedCodeGen

LEAST = 2
"""Operators of a native part at least: where one stands alone between two of PyTorch, PyTorch runs it, too."""
UNREAD = "graphc_unread"
"""In what is known of a node where its arguments are no longer those that PyTorch reads, so that graphc alone can
compute it."""
_OF_SHAPES = frozenset({"aten::sym_size", "aten::sym_numel", "aten::sym_stride", "aten::sym_storage_offset"})
_NUMBERS = (int, float, torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclass(frozen=True)
class Part:
    """A native part as a graph of its own."""

    module: fx.GraphModule
    inputs: tuple[fx.Node, ...]
    """Nodes of the whole graph whose values it is given, in the order of its placeholders."""
    outputs: tuple[fx.Node, ...]
    """Nodes of the whole graph that it computes for others, in the order of its results."""
    nodes: tuple[fx.Node, ...]
    """The operators that it computes."""
    sources: dict[str, fx.Node]
    """The nodes of the whole graph by the names that they have in the part."""


def value_of(node: fx.Node) -> Any:
    """What stands for the value of a node: a fake tensor, a number, or None."""
    return node.meta.get("val")


def is_number(node: fx.Node) -> bool:
    """Whether the value of a node is a number: of sizes mostly."""
    return isinstance(value_of(node), _NUMBERS)


def owner(node: fx.Node) -> fx.Node:
    """The operator that a node belongs to: one result of several belongs to what computes them all."""
    while node.op == "call_function" and getattr(node.target, "__name__", "") == "getitem" and node.args:
        first = node.args[0]
        if not isinstance(first, fx.Node) or is_number(node):
            break
        node = first
    return node


def _is_follower(node: fx.Node) -> bool:
    """Whether a node costs next to nothing, so that it is computed wherever its value is needed: views, constants, and
    numbers made of sizes."""
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
    """Whether a node has to keep its place among others of this kind: it draws random numbers, or is seen outside."""
    return is_random(node) or (isinstance(node.target, (OpOverload, HigherOrderOperator)) and node.is_impure())


def is_random(node: fx.Node) -> bool:
    """Whether a node draws random numbers."""
    return isinstance(node.target, OpOverload) and torch.Tag.nondeterministic_seeded in node.target.tags


def _writes(node: fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and node.target._schema.is_mutable


def is_note(node: fx.Node) -> bool:
    """Whether a node computes nothing: what PyTorch asserts of sizes."""
    return node.op == "call_function" and value_of(node) is None and not node.users and not _writes(node)


class Division:
    """Which nodes of a graph are native, in which part each."""

    def __init__(self, module: fx.GraphModule, refused: Collection[fx.Node]):
        """PyTorch runs the nodes of ``refused``; and those that write to arguments, which come last."""
        self.module = module
        self.refused = {owner(n) for n in refused}
        self.lonely: set[fx.Node] = set()
        """Nodes that PyTorch runs because so few of them stand together."""
        calls = [n for n in module.graph.nodes if n.op == "call_function"]
        self._order = {n: i for i, n in enumerate(module.graph.nodes)}
        self._followers = {n for n in module.graph.nodes if _is_follower(n) and n not in self.refused}
        self._operators = [n for n in calls if owner(n) is n and n not in self._followers]
        self._bases = self._found_bases()
        self.phases = self._placed()
        while few := self._lonely():
            self.lonely |= few
            self.phases = self._placed()

    @property
    def native(self) -> list[list[fx.Node]]:
        """The operators of each native part, in an order in which the parts can run."""
        found: dict[int, list[fx.Node]] = {}
        for node in self._operators:
            if self.phases[node] % 2:
                found.setdefault(self.phases[node], []).append(node)
        return [found[phase] for phase in sorted(found)]

    def _found_bases(self) -> dict[fx.Node, set[fx.Node]]:
        """The values, none of them a follower's, of which the arguments of each node are made."""
        found: dict[fx.Node, set[fx.Node]] = {}
        for node in self.module.graph.nodes:
            found[node] = set()
            for given in node.all_input_nodes:
                found[node] |= found[given] if self._follows(given) else {given}
        return found

    def _follows(self, node: fx.Node) -> bool:
        return owner(node) in self._followers

    def _is_native(self, node: fx.Node) -> bool:
        return not (node in self.refused or node in self.lonely or _writes(node) or is_note(node))

    def _placed(self) -> dict[fx.Node, int]:
        """The phase of each operator, the first that its arguments and its side allow: PyTorch runs in even ones,
        native code in odd ones. No division has fewer native parts: as PyTorch begins, there are as many as on the
        longest way through the graph."""
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

    def parts(self) -> list[Part]:
        """The native parts."""
        return [self._part(nodes) for nodes in self.native]

    def _part(self, nodes: list[fx.Node]) -> Part:
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
        return Part(fx.GraphModule(self.module, graph), tuple(inputs), tuple(outputs), tuple(nodes), sources)

    def _inputs_of(self, own: set[fx.Node]) -> list[fx.Node]:
        """What a part is given, in the order of the graph."""
        found: set[fx.Node] = set()
        stack, seen = list(own), set(own)
        while stack:
            for given in stack.pop().all_input_nodes:
                if given in seen:
                    continue
                seen.add(given)
                if owner(given) in own or (self._follows(given) and not self._is_given(given, own)):
                    stack.append(given)
                else:
                    found.add(given)
        return sorted(found, key=self._order.__getitem__)

    def _is_given(self, node: fx.Node, own: set[fx.Node]) -> bool:
        """Whether a follower is given to a part: a plain size, of tensors that others make."""
        value = value_of(node)
        plain = isinstance(value, torch.SymInt) and value.node.expr.is_Symbol
        return plain and not any(owner(b) in own for b in self._bases[node])

    def _results_of(self, own: set[fx.Node]) -> list[fx.Node]:
        """What a part computes for others, in the order of the graph."""
        found: set[fx.Node] = set()
        for node in self.module.graph.nodes:
            if node.op == "output" or not (owner(node) in own or self._follows(node)):
                found |= {b for b in self._bases[node] if owner(b) in own}
        return sorted(found, key=self._order.__getitem__)

    def joined(self, parts: Sequence[tuple[Part, Callable[..., Any]]]) -> fx.GraphModule:
        """The whole graph with calls of these functions, which take a list, in the place of the parts; it takes a list,
        too, and empties it."""
        nodes = list(self.module.graph.nodes)
        graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
        held = {str(n.target): _attribute(self.module, str(n.target)) for n in nodes if n.op == "get_attr"}
        known = {self.phases[part.nodes[0]]: (part, function) for part, function in parts}
        for node in nodes:
            if node.op == "placeholder":
                _copied(node, graph, copies)
        for node in sorted(self._operators, key=lambda n: (self.phases[n], self._order[n])):
            phase = self.phases[node]
            if phase % 2 == 0:
                _copied(node, graph, copies)
            elif phase in known:
                part, function = known.pop(phase)
                name = f"native_{phase // 2}"
                held[name] = _Call(function)
                results = graph.call_module(name, tuple([_copied(n, graph, copies) for n in part.inputs]))
                for i, value in enumerate(part.outputs):
                    copies[value] = graph.call_function(operator.getitem, (results, i))
        _copied(nodes[-1], graph, copies)
        graph.set_codegen(_BoxedCodeGen())
        return fx.GraphModule(held, graph)


class _Call(torch.nn.Module):
    """A function that takes a list, as a module that takes arguments."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(list(args))


def _copied(node: fx.Node, graph: fx.Graph, copies: dict[fx.Node, fx.Node]) -> fx.Node:
    """A copy of a node in another graph, after what it needs of followers."""
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
    found: Any = module
    for name in path.split("."):
        found = getattr(found, name)
    return found
