"""Runs a graph of ONNX operators node by node with the functions of graphc, eagerly or in a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import GraphcError, UnsupportedError
from graphc.base.location import Location, at
from graphc.interop.onnx.call import Call, Scope
from graphc.interop.onnx.elements import Element
from graphc.interop.onnx.graph import ABSENT, Node, OnnxGraph, TensorAttribute, captured
from graphc.interop.onnx.registry import HOST, Entry
from graphc.interop.onnx.table import find
from graphc.interop.onnx.values import MOST_KNOWN, Value, settled
from graphc.interop.onnx.widths import narrowed
from graphc.tensors.tensor import Tensor

_FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What a rule raises for inputs and attributes that its operator cannot have, beside errors of graphc."""


class Runner:
    """An OnnxGraph as a function of its inputs."""

    def __init__(self, graph: OnnxGraph):
        self.graph = graph
        self._inner = {id(g): Runner(g) for node in graph.nodes for g in node.graphs()}
        self._bodies = {id(n): Runner(n.body) for n in graph.nodes if n.body is not None}
        self._steps = [(n, None if n.body is not None else find(n.domain, n.op, n.version)) for n in graph.nodes]
        self._kept: dict[int, Any] = {}
        """What operators remember from call to call, by node."""
        kept = {p.name for p in graph.outputs}
        last: dict[str, int] = {}
        for i, node in enumerate(graph.nodes):
            inner = [name for g in node.graphs() for name in captured(g)]
            last |= dict.fromkeys((*node.inputs, *inner, *node.outputs), i)
        self._done: list[list[str]] = [[] for _ in graph.nodes]
        """The values that no later node needs, by node."""
        for name, i in last.items():
            if name not in kept and name not in graph.constants:
                self._done[i].append(name)

    def inner(self, graph: OnnxGraph) -> Runner:
        """The runner of a graph inside of a node."""
        return self._inner[id(graph)]

    def kept(self, node: Node, make: Callable[[], Any]) -> Any:
        """What a node remembers from call to call, made at the first one."""
        if id(node) not in self._kept:
            self._kept[id(node)] = make()
        return self._kept[id(node)]

    def run(self, around: Mapping[str, Any], args: Sequence[Any], held: Mapping[str, Value] | None = None) -> list[Any]:
        """The results for these inputs; ``around`` are values that the graph may read by name, ``held`` such as take
        the place of initializers."""
        scope: Scope = {**around, **{n: Value(c.element, None, c.array) for n, c in self.graph.constants.items()}}
        scope.update(held or {})
        scope.update(zip([p.name for p in self.graph.inputs], args, strict=False))
        for (node, entry), done in zip(self._steps, self._done, strict=True):
            with at(Location(node.name)):
                found = self._applied(node, entry, scope)
            for name, value in zip(node.outputs, found, strict=False):
                if name != ABSENT:
                    scope[name] = value
            for name in done:
                if name not in around:
                    scope.pop(name, None)
        return [scope[p.name] for p in self.graph.outputs]

    def _applied(self, node: Node, entry: Entry | None, scope: Scope) -> Sequence[Any]:
        inputs = [None if name == ABSENT else scope[name] for name in node.inputs]
        if entry is None:
            left_out = len(self._bodies[id(node)].graph.inputs) - len(inputs)
            return self._bodies[id(node)].run({}, [*inputs, *[None] * left_out])
        try:
            found = self._known(node, inputs)
            if found is None:
                found = _computed(Call(node, self, scope, inputs), entry)
            results = _values(node, found, inputs)
        except GraphcError as error:
            if error.where is None:
                error.where = _place(node)
            raise
        except _FAULTS as error:
            raise UnsupportedError(
                f"the operator cannot be applied so: {type(error).__name__}: {error}"[:500], where=_place(node)
            ) from error
        if len(results) < len(node.outputs):
            raise UnsupportedError(f"{len(node.outputs)} results, of which {len(results)} are here", where=_place(node))
        return results

    @staticmethod
    def _known(node: Node, inputs: Sequence[Any]) -> Any:
        """What a function of arrays gives for inputs that are all known; None where there is none."""
        rule = HOST.get((node.domain, node.op))
        if rule is None or not inputs or not all(v is None or _is_short(v) for v in inputs):
            return None
        return rule(*[None if v is None else v.array for v in inputs], **_plain(node.attributes))


def _place(node: Node) -> str:
    return f"{node.title} {node.name}"[:200]


def _is_short(value: Any) -> bool:
    """Whether functions of arrays take it; texts have no others."""
    known = isinstance(value, Value) and value.is_known
    return known and (value.element.carrier is None or value.array.size <= MOST_KNOWN)


def check_rules(graph: OnnxGraph) -> None:
    """Raises UnsupportedError for operators that are not in the table; all of them are named."""
    missing = dict.fromkeys(_missing(graph))
    if missing:
        raise UnsupportedError(
            f"operators for which graphc has no rule: {', '.join(missing)}"[:1000],
            remedy="docs/onnx_ops.md lists those that it has",
        )


def _missing(graph: OnnxGraph) -> Iterator[str]:
    """The operators without a rule, with the version that the model asks for."""
    for node in graph.nodes:
        for inner in (*node.graphs(), *([node.body] if node.body is not None else [])):
            yield from _missing(inner)
        if node.body is None and find(node.domain, node.op, node.version) is None:
            yield f"{node.title} (version {node.version})"


def _computed(call: Call, entry: Entry) -> Any:
    """What the rule gives for the inputs as it wants them."""
    attributes = {k: v for k, v in call.node.attributes.items() if not isinstance(v, OnnxGraph)}
    if not entry.values:
        attributes = _plain(attributes)
    if entry.call:
        attributes["call"] = call
    if entry.values:
        return entry.rule(*call.inputs, **attributes)
    given = [_given(value, i in entry.host) for i, value in enumerate(call.inputs)]
    return entry.rule(*given, **attributes)


def _given(value: Any, asked: bool) -> Any:
    if isinstance(value, Value):
        return value.numbers if asked else value.tensor
    return value if value is None else [_given(v, asked) for v in value]


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes with arrays in the place of tensors."""
    return {k: v.array if isinstance(v, TensorAttribute) else v for k, v in attributes.items()}


def _values(node: Node, found: Any, inputs: Sequence[Any]) -> list[Any]:
    """Results as values with the element types that the operator's schema says."""
    results = found if isinstance(found, tuple) else (found,)
    if node.types:
        return [_value(result, _element(node, i, inputs)) for i, result in enumerate(results)]
    return [_value(result, _likely(result, inputs)) for result in results]


def _likely(found: Any, inputs: Sequence[Any]) -> Element | None:
    """Where there is no schema: the element type of the first input that is held as the result is."""
    if not isinstance(found, Tensor):
        return None
    elements = [value.element for value in inputs if isinstance(value, Value)]
    return next((e for e in elements if e.carrier is found.dtype), None)


def _value(found: Any, element: Element | None) -> Any:
    if found is None or isinstance(found, (list, Value)):
        return found
    if isinstance(found, Tensor):
        return Value(element, narrowed(found, element)) if element is not None else Value.of(found)
    array = settled(np.asarray(found))
    if element is not None and array.dtype != object and array.dtype != element.numpy:
        array = array.astype(element.numpy)
    return Value.of(array, element)


def _element(node: Node, number: int, inputs: Sequence[Any]) -> Element | None:
    source = node.types[number] if number < len(node.types) else None
    if not isinstance(source, int):
        return source
    value = inputs[source] if source < len(inputs) else None
    return value.element if isinstance(value, Value) else None
