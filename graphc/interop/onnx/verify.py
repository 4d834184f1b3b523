"""Verifier of ONNX graphs, which runs before anything is built from them: names, counts, and kinds of attributes."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from graphc.base.errors import ArtifactError
from graphc.interop.onnx.graph import ABSENT, OnnxGraph, OnnxNode, Port, TensorAttribute
from graphc.interop.onnx.package import schema
from graphc.interop.onnx.registry import OperatorEntry
from graphc.interop.onnx.table import find

_ONE: dict[int, type] = {
    **{1: float, 2: int, 3: str, 4: TensorAttribute, 5: OnnxGraph},
    **{11: TensorAttribute, 13: Port},
}
"""Python type of an attribute's value, by its type code."""
_SEVERAL: dict[int, type] = {6: float, 7: int, 8: str, 9: TensorAttribute, 10: OnnxGraph}


def verify_graph(graph: OnnxGraph, enclosing: Sequence[set[str]] = ()) -> None:
    """Check that names have one definition before their uses, and that nodes fit the schemas of their operators.

    ``enclosing`` holds the names of enclosing graphs. Schemas limit the counts of inputs and results, and the
    attributes. Raises ArtifactError.
    """
    scopes = (set(), *enclosing)
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


def _define(names: Iterable[str], defined: set[str], what: str) -> None:
    """Add names to the defined ones. Raises ArtifactError for a duplicate or empty name."""
    for name in names:
        if name in defined or name == ABSENT:
            raise ArtifactError(f"the name {name[:80]!r} is defined twice, or is empty", where=what)
        defined.add(name)


def _check_known(names: Iterable[str], scopes: Sequence[set[str]], where: str) -> None:
    """Raise ArtifactError for a name that no scope defines."""
    for name in names:
        if not any(name in scope for scope in scopes):
            raise ArtifactError(f"{name[:80]!r} is used before it is computed, or is never computed", where=where)


def _place(node: OnnxNode) -> str:
    return f"{node.title} {node.name}"[:200]


def _verify_node(node: OnnxNode) -> None:
    operator_schema = schema(node.domain, node.op, node.version) if node.version else None
    if node.version == 0 and node.body is not None:
        _verify_count(node, "inputs", len(node.inputs), 0, len(node.body.inputs))
        _verify_count(node, "results", len(node.outputs), 0, len(node.body.outputs))
    elif operator_schema is not None:
        least_inputs, most_inputs, least_results, most_results = operator_schema.counts
        _verify_count(node, "inputs", len(node.inputs), least_inputs, most_inputs)
        _verify_count(node, "results", len(node.outputs), least_results, most_results)
        for i, name in enumerate(node.inputs):
            if name == ABSENT and i in operator_schema.needed:
                raise ArtifactError(f"input {i} is left out", where=_place(node))
        _verify_attributes(node, operator_schema.attributes)
    else:
        _verify_call(node)


def _verify_count(node: OnnxNode, what: str, count: int, least: int, most: int) -> None:
    if not least <= count <= most:
        expected = str(least) if least == most else f"{least} to {most}"
        raise ArtifactError(f"the node has {count} {what}, its operator takes {expected}", where=_place(node))


def _verify_attributes(node: OnnxNode, specs: Any) -> None:
    for name, value in node.attributes.items():
        if name not in specs:
            raise ArtifactError(f"the operator has no attribute {name[:80]!r}", where=_place(node))
        if not _is_of_type(value, specs[name][0]):
            raise ArtifactError(f"the attribute {name[:80]!r} has the wrong type", where=_place(node))
    missing = [name for name, (_, needed) in specs.items() if needed and name not in node.attributes]
    if missing:
        raise ArtifactError(f"the attribute {missing[0]!r} is missing", where=_place(node))


def _is_of_type(value: Any, code: int) -> bool:
    if code in _ONE:
        return isinstance(value, _ONE[code])
    return isinstance(value, tuple) and (not value or isinstance(value[0], _SEVERAL.get(code, object)))


def _verify_call(node: OnnxNode) -> None:
    """Check an operator without a schema against the parameters of its rule."""
    entry = find(node.domain, node.op, node.version)
    if entry is None:
        return
    try:
        inspect.signature(entry.rule).bind(*node.inputs, **_named(node, entry))
    except TypeError as error:
        raise ArtifactError(f"its inputs or attributes do not fit: {error}"[:300], where=_place(node)) from None


def _named(node: OnnxNode, entry: OperatorEntry) -> dict[str, Any]:
    own = {name: value for name, value in node.attributes.items() if not isinstance(value, OnnxGraph)}
    return own | ({"call": None} if entry.call else {})
