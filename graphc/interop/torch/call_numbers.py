"""Whole numbers that come from sizes by way of fractions, which each call computes and gives to its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from graphc.interop.torch.parts import value_of

_EXTREMES = (torch.sym_min, torch.sym_max)
_OF_ARGUMENTS = frozenset({"aten::sym_size", "aten::sym_numel", "aten::sym_stride"})


class Numbered:
    """Runs what takes such numbers behind its other arguments."""

    def __init__(self, run: Callable[[list[Any]], Sequence[Any]], numbers: Callable[..., Sequence[int]]):
        """``numbers`` computes them of the other arguments."""
        self._run = run
        self._numbers = numbers
        self._boxed_call = True
        """By which AOTAutograd knows that it takes a list."""

    def __call__(self, args: list[Any]) -> Sequence[Any]:
        """The results for these arguments; the list is emptied."""
        args += self._numbers(*args)
        return self._run(args)


def with_call_numbers(module: fx.GraphModule) -> tuple[fx.GraphModule, list[Any], Callable[..., Sequence[int]] | None]:
    """The graph with more arguments, in the places of whole numbers that are rounded fractions of sizes or the least
    and largest of several; what stands for these arguments, and what computes them of the others as PyTorch does. The
    graph itself, nothing and None where there are none.

    ``trunc(n * 0.7)`` has roundings that no exact expression of n has; with a name of its own it is a size as any
    other."""
    found = [n for n in module.graph.nodes if _is_opaque(n) and _is_known_before(n)]
    if not found:
        return module, [], None
    return _opened(module, found), [value_of(n) for n in found], _computing(module, found)


def _is_opaque(node: fx.Node) -> bool:
    if node.op != "call_function" or isinstance(node.target, OpOverload) or not _is_open(value_of(node)):
        return False
    return node.target in _EXTREMES or any(isinstance(value_of(n), torch.SymFloat) for n in node.all_input_nodes)


def _is_open(value: Any) -> bool:
    return isinstance(value, torch.SymInt) and value.node.maybe_as_int() is None


def _is_known_before(node: fx.Node) -> bool:
    """Whether a number follows from the arguments' sizes and from numbers among them."""
    stack = [node]
    while stack:
        last = stack.pop()
        if last.op == "placeholder" and isinstance(value_of(last), (int, torch.SymInt)):
            continue
        if last.op != "call_function":
            return False
        if isinstance(last.target, OpOverload):
            of_argument = last.target._schema.name in _OF_ARGUMENTS and last.all_input_nodes[0].op == "placeholder"
            if not of_argument:
                return False
            continue
        stack += last.all_input_nodes
    return True


def _opened(module: fx.GraphModule, found: Sequence[fx.Node]) -> fx.GraphModule:
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    nodes = list(module.graph.nodes)
    for node in nodes:
        if node.op == "placeholder":
            copies[node] = graph.node_copy(node)
    for node in found:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in nodes:
        if node not in copies:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph)


def _computing(module: fx.GraphModule, found: Sequence[fx.Node]) -> Callable[..., Sequence[int]]:
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            copies[node] = graph.node_copy(node)
        elif node.op == "call_function" and all(n in copies for n in node.all_input_nodes) and _is_of_sizes(node):
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple([copies[n] for n in found]))
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph).forward


def _is_of_sizes(node: fx.Node) -> bool:
    """Whether a node is what such numbers are made of."""
    return not isinstance(node.target, OpOverload) or node.target._schema.name in _OF_ARGUMENTS
