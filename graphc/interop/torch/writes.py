"""Graphs that end with writes to their arguments, which become results that are copied to the arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch
from torch import fx

from graphc.interop.torch.fx import DTYPES
from graphc.interop.torch.layout import is_dense, is_lazy
from graphc.interop.torch.parts import value_of

_COPY = torch.ops.aten.copy_.default


class Writing:
    """Wrapper for a program whose last results are written to some arguments."""

    def __init__(self, run: Callable[[list[Any]], Sequence[Any]], written: Sequence[int]):
        """Wrap a program. ``written`` are the indices of the arguments to write to."""
        self._run = run
        self._written = tuple(written)
        self._boxed_call = True
        """Tells AOTAutograd that the call takes a list."""

    def __call__(self, args: list[Any]) -> list[Any]:
        """Return the results for these arguments. Empties the list."""
        tensors = [args[i].detach() for i in self._written]
        results = list(self._run(args))
        for tensor, value in zip(tensors, results[len(results) - len(tensors) :], strict=True):
            tensor.copy_(value)
        return results[: len(results) - len(tensors)]


def written_inputs(module: fx.GraphModule) -> set[int]:
    """Return the indices of the arguments to which a graph itself writes."""
    inputs = module.graph.find_nodes(op="placeholder")
    return {i for i, node in enumerate(inputs) if any(_writes_to(user, node) for user in node.users)}


def has_other_writes(module: fx.GraphModule) -> bool:
    """Check whether a graph has writes to arguments that ``without_writes`` does not handle."""
    inputs = module.graph.find_nodes(op="placeholder")
    return any(_writes_to(user, node) and not _is_last(user) for node in inputs for user in node.users)


def without_writes(module: fx.GraphModule, copy_all: bool) -> tuple[fx.GraphModule, list[int], list[int]]:
    """Return the graph with written values as its last results, and two lists of indices of their arguments.

    Values for the first list come first and are copied after the call. Values for the second list may be written in
    place: their arguments are dense and of fixed sizes. With ``copy_all`` the second list is empty.
    """
    inputs = module.graph.find_nodes(op="placeholder")
    writes = [n for n in module.graph.find_nodes(op="call_function", target=_COPY) if n.args[0] in inputs]
    if not writes:
        return module, [], []
    after = [n for n in writes if copy_all or not _lies_fixed(n)]
    within = [n for n in writes if n not in after]
    graph, copies = fx.Graph(), dict[fx.Node, fx.Node]()
    for node in module.graph.nodes:
        if node in writes:
            copies[node] = copies[node.all_input_nodes[0]]  # the argument itself, where it is a result
        elif node.op != "output":
            copies[node] = graph.node_copy(node, copies.__getitem__)
    results = [copies.get(r, r) if isinstance(r, fx.Node) else r for r in _results(module)]
    graph.output(tuple([*results, *[copies[n.args[1]] for n in (*after, *within)]]))
    first, second = ([inputs.index(n.args[0]) for n in group] for group in (after, within))
    return fx.GraphModule(module, graph), first, second


def _results(module: fx.GraphModule) -> Sequence[Any]:
    results = module.graph.output_node().args[0]
    assert isinstance(results, (list, tuple))
    return results


def _writes_to(user: fx.Node, node: fx.Node) -> bool:
    target = user.target
    if not isinstance(target, torch._ops.OpOverload) or not target._schema.is_mutable:
        return False
    positional = zip(target._schema.arguments, user.args, strict=False)
    bindings = [*positional, *((a, user.kwargs[a.name]) for a in target._schema.arguments if a.name in user.kwargs)]
    return any(a.is_write and (v is node or (isinstance(v, (list, tuple)) and node in v)) for a, v in bindings)


def _is_last(node: fx.Node) -> bool:
    """Check whether a node only sets the content of an argument after the call, with the same rank and element type."""
    if node.target is not _COPY or any(user.op != "output" for user in node.users):
        return False
    values = [value_of(n) if isinstance(n, fx.Node) else None for n in node.args[:2]]
    tensors = [v for v in values if isinstance(v, torch.Tensor)]
    return len(tensors) == 2 and tensors[0].dtype == tensors[1].dtype and tensors[0].dim() == tensors[1].dim()


def _lies_fixed(write: fx.Node) -> bool:
    tensor = value_of(write.all_input_nodes[0])
    return isinstance(tensor, torch.Tensor) and is_dense(tensor) and not is_lazy(tensor) and tensor.dtype in DTYPES


def prepared(weights: Collection[int], module: fx.GraphModule) -> set[int]:
    """Return the indices of the weights without those written by the graph."""
    return {*weights} - written_inputs(module)
