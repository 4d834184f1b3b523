"""Autograd graphs as the plain data of a page: a record per operation, and one per leaf."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Any

from graphc.autograd.record import OpNode
from graphc.base.errors import ArgumentError
from graphc.pages.graph_data import Record, kind_of
from graphc.tape.node import AccumulateGrad, Node
from graphc.tensors.tensor import Tensor


def autograd_records(results: Iterable[Tensor], module: Any = None) -> list[Record]:
    """Return the records of the operations that computed ``results``, each after its operands.

    ``module`` gives names to its parameters, and groups operations by module: an operation that reads a parameter
    belongs to the parameter's module, and any other to the common module of its neighbours. Raises ArgumentError if no
    result has a ``grad_fn``.
    """
    results = list(results)
    roots = [t.grad_fn for t in results if t.grad_fn is not None]
    if not roots:
        raise ArgumentError(
            "the tensor has no autograd graph: it was not computed from one that requires gradients",
            remedy="compute it outside of no_grad(), or draw the graph of the whole model with graphc.trace",
        )
    nodes = _nodes(roots)
    names = {id(p): name for name, p in module.named_parameters()} if module is not None else {}
    paths = _paths(nodes, names)
    keys = {node: f"node.{i}" for i, node in enumerate(nodes)}
    records = [_record(node, keys, names, paths[node]) for node in nodes]
    for i, tensor in enumerate(results):
        if tensor.grad_fn is not None:
            title = "result" if len(results) == 1 else f"result {i}"
            end: Record = {"key": f"output:{i}", "op": title, "kind": "output", "path": [], "results": []}
            types = [["type", _type(tensor.dtype, tensor.shape)]]
            records.append(end | {"operands": [_result(keys, tensor.grad_fn, 0)], "attrs": types})
    return records


def _nodes(roots: Iterable[Node]) -> list[Node]:
    """Return all nodes, leaves first and then in the order of recording."""
    nodes = dict.fromkeys(roots)
    pending = list(nodes)
    while pending:
        for edge in pending.pop().edges:
            if edge is not None and edge[0] not in nodes:
                nodes[edge[0]] = None
                pending.append(edge[0])
    return sorted(nodes, key=lambda node: (not isinstance(node, AccumulateGrad), node.sequence))


def _paths(nodes: list[Node], names: dict[int, str]) -> dict[Node, tuple[str, ...]]:
    """Return the module path of each node.

    It is known for operations that read a parameter or a value derived from parameters alone. Others get the common
    path of the operations before and after them.
    """
    timeline: list[tuple[int, tuple[str, ...]]] = []
    derived: dict[Node, str] = {}
    for node in nodes:
        readers = [edge[0] for edge in node.edges if edge]
        owners = [derived.get(n) or _name_of(n, names) for n in readers]
        if any(owners):
            owner = next(filter(None, owners))
            timeline.append((node.sequence, tuple(owner.split(".")[:-1])))
            if all(owners) and len(owners) == len(node.edges):
                derived[node] = owner
    times = [time for time, _ in timeline]
    paths: dict[Node, tuple[str, ...]] = {}
    for node in nodes:
        after = bisect.bisect_left(times, node.sequence)
        if after < len(times) and times[after] == node.sequence:
            paths[node] = timeline[after][1]
        elif 0 < after < len(times):
            paths[node] = _common(timeline[after - 1][1], timeline[after][1])
        else:
            paths[node] = ()
    return paths


def _name_of(node: Node, names: dict[int, str]) -> str:
    """Return the name of the parameter whose gradient the node accumulates, or an empty string."""
    return names.get(id(node.variable), "") if isinstance(node, AccumulateGrad) else ""


def _common(a: tuple[str, ...], b: tuple[str, ...]) -> tuple[str, ...]:
    length = 0
    while length < min(len(a), len(b)) and a[length] == b[length]:
        length += 1
    return a[:length]


def _record(node: Node, keys: dict[Node, str], names: dict[int, str], path: tuple[str, ...]) -> Record:
    key = keys[node]
    if isinstance(node, AccumulateGrad):
        variable = node.variable
        name = names.get(id(variable), "")
        record: Record = {"key": key, "op": name or "leaf", "kind": "param" if name else "input", "path": []}
        record |= {"results": [[key, _type(variable.dtype, variable.shape)]], "operands": []}
        return record | ({"weights": True} if name else {})
    operands = [_result(keys, *edge) for edge in node.edges if edge is not None]
    record = {"key": key, "op": node.name().removesuffix("Backward"), "kind": "op", "path": list(path)}
    if not isinstance(node, OpNode):
        return record | {"results": [[key, ""]], "operands": operands}
    results = [[_result(keys, node, i), _type(r.dtype, r.shape)] for i, r in enumerate(node.results)]
    attrs = [[name, str(value)] for name, value in node.attrs.items()]
    return record | {"kind": kind_of(node.op), "results": results, "operands": operands, "attrs": attrs}


def _result(keys: dict[Node, str], node: Node, index: int) -> str:
    """Return the name of a result of a node."""
    return f"{keys[node]}.{index}" if isinstance(node, OpNode) else keys[node]


def _type(dtype: Any, shape: Iterable[int]) -> str:
    return f"{dtype.name}[{','.join(map(str, shape))}]"
