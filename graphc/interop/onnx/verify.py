"""What must hold of a graph of ONNX operators before anything is made of it: names, counts, and kinds of attributes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.interop.onnx.graph import ABSENT, Node, OnnxGraph, Port, TensorAttribute
from graphc.interop.onnx.package import schema
from graphc.interop.onnx.registry import Entry
from graphc.interop.onnx.table import find

_ONE: dict[int, type] = {
    **{1: float, 2: int, 3: str, 4: TensorAttribute, 5: OnnxGraph},
    **{11: TensorAttribute, 13: Port},
}
"""What attributes hold, by the number of their type."""
_SEVERAL: dict[int, type] = {6: float, 7: int, 8: str, 9: TensorAttribute, 10: OnnxGraph}


def verify_graph(graph: OnnxGraph, around: Sequence[set[str]] = ()) -> None:
    """Every name has one definition, which stands before its uses, ``around`` being those of the graphs that this one
    lies in; operators have as many inputs and results, and the attributes, that their schema allows. Raises
    ArtifactError."""
    scopes = (set(), *around)
    _define([p.name for p in graph.inputs], scopes[0], f"input of graph {graph.name[:60]!r}")
    _define(graph.constants, scopes[0], f"initializer of graph {graph.name[:60]!r}")
    for node in graph.nodes:
        _check_known([n for n in node.inputs if n != ABSENT], scopes, _place(node))
        _verify_node(node)
        for inner in node.graphs():
            verify_graph(inner, scopes)
        if node.body is not None:
            verify_graph(node.body)
        _define([n for n in node.outputs if n != ABSENT], scopes[0], f"result of {_place(node)}")
    _check_known([p.name for p in graph.outputs], scopes, f"results of graph {graph.name[:60]!r}")


def _define(names: Iterable[str], known: set[str], what: str) -> None:
    """Adds names to those that are known. Raises ArtifactError."""
    for name in names:
        if name in known or name == ABSENT:
            raise ArtifactError(f"the name {name[:80]!r} is defined twice, or is none", where=what)
        known.add(name)


def _check_known(names: Iterable[str], scopes: Sequence[set[str]], where: str) -> None:
    """Raises ArtifactError for a name that is not known."""
    for name in names:
        if not any(name in scope for scope in scopes):
            raise ArtifactError(f"{name[:80]!r} is used before it is computed, or never is", where=where)


def _place(node: Node) -> str:
    return f"{node.title} {node.name}"[:200]


def _verify_node(node: Node) -> None:
    known = schema(node.domain, node.op, node.version) if node.version else None
    if node.version == 0 and node.body is not None:
        _verify_count(node, "inputs", len(node.inputs), 0, len(node.body.inputs))
        _verify_count(node, "results", len(node.outputs), 0, len(node.body.outputs))
    elif known is not None:
        least_inputs, most_inputs, least_results, most_results = known.counts
        _verify_count(node, "inputs", len(node.inputs), least_inputs, most_inputs)
        _verify_count(node, "results", len(node.outputs), least_results, most_results)
        for i, name in enumerate(node.inputs):
            if name == ABSENT and i in known.needed:
                raise ArtifactError(f"input {i} is left out", where=_place(node))
        _verify_attributes(node, known.attributes)
    else:
        _verify_call(node)


def _verify_count(node: Node, what: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise ArtifactError(f"{count} {what}, where there are to be {wanted}", where=_place(node))


def _verify_attributes(node: Node, known: Any) -> None:
    for name, value in node.attributes.items():
        if name not in known:
            raise ArtifactError(f"there is no attribute {name[:80]!r}", where=_place(node))
        if not _is_of_type(value, known[name][0]):
            raise ArtifactError(f"the attribute {name[:80]!r} is of another type", where=_place(node))
    missing = [name for name, (_, needed) in known.items() if needed and name not in node.attributes]
    if missing:
        raise ArtifactError(f"the attribute {missing[0]!r} is missing", where=_place(node))


def _is_of_type(value: Any, code: int) -> bool:
    if code in _ONE:
        return isinstance(value, _ONE[code])
    return isinstance(value, tuple) and (not value or isinstance(value[0], _SEVERAL.get(code, object)))


def _verify_call(node: Node) -> None:
    """An operator that has no schema, by the parameters of its rule."""
    entry = find(node.domain, node.op, node.version)
    if entry is None:
        return
    try:
        inspect.signature(entry.rule).bind(*node.inputs, **_named(node, entry))
    except TypeError as error:
        raise ArtifactError(f"its inputs or attributes are other ones: {error}"[:300], where=_place(node)) from None


def _named(node: Node, entry: Entry) -> dict[str, Any]:
    own = {name: value for name, value in node.attributes.items() if not isinstance(value, OnnxGraph)}
    return own | ({"call": None} if entry.call else {})
