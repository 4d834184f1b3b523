"""Integers derived from sizes by way of fractions, which each call computes and passes to its program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload

from graphc.interop.torch.parts import value_of

_OF_ARGUMENTS = frozenset({"aten::sym_size", "aten::sym_numel", "aten::sym_stride"})


class Numbered:
    """Wrapper for a program that takes such numbers after its other arguments."""

    def __init__(self, run: Callable[[list[Any]], Sequence[Any]], numbers: Callable[..., Sequence[int]]):
        """Wrap a program. ``numbers`` computes its further arguments from the others."""
        self._run = run
        self._numbers = numbers
        self._boxed_call = True
        """Tells AOTAutograd that the call takes a list."""

    def __call__(self, args: list[Any]) -> Sequence[Any]:
        """Return the results for these arguments. Empties the list."""
        args += self._numbers(*args)
        return self._run(args)


def with_call_numbers(module: fx.GraphModule) -> tuple[fx.GraphModule, list[Any], Callable[..., Sequence[int]] | None]:
    """Turn rounded fractions of sizes into arguments of the graph.

    Returns the graph, stand-ins for the new arguments, and a function that computes them from the others as PyTorch
    does. Without such numbers, returns the graph itself, an empty list and None.

    ``trunc(n * 0.7)`` has roundings that no exact expression of n has. With a name of its own it is a size like any
    other.
    """
    opaque = [n for n in module.graph.nodes if _is_opaque(n) and _is_computable_before(n)]
    if not opaque:
        return module, [], None
    return _with_arguments(module, opaque), [value_of(n) for n in opaque], _computing(module, opaque)


def _is_opaque(node: fx.Node) -> bool:
    if node.op != "call_function" or isinstance(node.target, OpOverload) or not _is_open(value_of(node)):
        return False
    return any(isinstance(value_of(n), torch.SymFloat) for n in node.all_input_nodes)


def _is_open(value: Any) -> bool:
    return isinstance(value, torch.SymInt) and value.node.maybe_as_int() is None


def _is_computable_before(node: fx.Node) -> bool:
    """Check whether a number follows from the sizes of the arguments and from numbers among them."""
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


def _with_arguments(module: fx.GraphModule, opaque: Sequence[fx.Node]) -> fx.GraphModule:
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    nodes = list(module.graph.nodes)
    for node in nodes:
        if node.op == "placeholder":
            copies[node] = graph.node_copy(node)
    for node in opaque:
        copies[node] = graph.placeholder(node.name)
        copies[node].meta = dict(node.meta)
    for node in nodes:
        if node not in copies:
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph)


def _computing(module: fx.GraphModule, opaque: Sequence[fx.Node]) -> Callable[..., Sequence[int]]:
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in module.graph.nodes:
        if node.op == "placeholder":
            copies[node] = graph.node_copy(node)
        elif node.op == "call_function" and all(n in copies for n in node.all_input_nodes) and _is_of_sizes(node):
            copies[node] = graph.node_copy(node, copies.__getitem__)
    graph.output(tuple([copies[n] for n in opaque]))
    graph.eliminate_dead_code()
    return fx.GraphModule(module, graph).forward


def _is_of_sizes(node: fx.Node) -> bool:
    """Check whether a node can occur in the computation of such numbers."""
    return not isinstance(node.target, OpOverload) or node.target._schema.name in _OF_ARGUMENTS
