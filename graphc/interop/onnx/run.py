"""Interpreter of ONNX graphs: runs each node with functions of graphc, eagerly or in a trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.dtypes import bool_
from graphc.base.errors import GraphcError, UnsupportedError, ValueNeededError
from graphc.base.lazy import deferred
from graphc.base.location import Location, at
from graphc.base.sizes.size import LARGEST
from graphc.base.sizes.size_relations import at_most
from graphc.interop.onnx.call import Call, Scope
from graphc.interop.onnx.elements import STRING, Element
from graphc.interop.onnx.graph import ABSENT, OnnxGraph, OnnxNode, TensorAttribute, captured
from graphc.interop.onnx.registry import OperatorEntry
from graphc.interop.onnx.table import find, host_function
from graphc.interop.onnx.values import MOST_KNOWN, Value, array_of_sizes, settled
from graphc.interop.onnx.widths import narrowed
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.reads import folded, may_read

FAULTS = (ArithmeticError, LookupError, TypeError, ValueError)
"""Exceptions of rules for inputs and attributes outside the operator's domain, in addition to graphc's errors.
AttributeError and AssertionError are bugs of a rule."""


_numbers_of_codes = deferred("graphc.interop.onnx.ops.quantized.quantization:numbers_of_codes")
MOST_READ = 8
"""Elements of the longest vector that is read as sizes."""


class Runner:
    """Interpreter of one OnnxGraph."""

    def __init__(self, graph: OnnxGraph):
        self.graph = graph
        self._inner = {id(g): Runner(g) for node in graph.nodes for g in node.graphs()}
        self._bodies = {id(n): Runner(n.body) for n in graph.nodes if n.body is not None}
        self._steps = [(n, None if n.body is not None else find(n.domain, n.op, n.version)) for n in graph.nodes]
        self._states: dict[int, Any] = {}
        """State of operators from call to call, by node."""
        result_names = {p.name for p in graph.outputs}
        last: dict[str, int] = {}
        for i, node in enumerate(graph.nodes):
            inner = [name for g in node.graphs() for name in captured(g)]
            last |= dict.fromkeys((*node.inputs, *inner, *node.outputs), i)
        self._done: list[list[str]] = [[] for _ in graph.nodes]
        """Values that no later node needs, by node."""
        for name, i in last.items():
            if name not in result_names and name not in graph.constants:
                self._done[i].append(name)

    def inner(self, graph: OnnxGraph) -> Runner:
        """Return the runner of a subgraph of a node."""
        return self._inner[id(graph)]

    def kept(self, node: OnnxNode, make: Callable[[], Any]) -> Any:
        """Return a node's state, which lives from call to call. ``make`` builds it at the first call."""
        if id(node) not in self._states:
            self._states[id(node)] = make()
        return self._states[id(node)]

    def run(
        self, enclosing: Mapping[str, Any], args: Sequence[Any], replacements: Mapping[str, Value] | None = None
    ) -> list[Any]:
        """Return the results for these inputs.

        ``enclosing`` holds values of enclosing scopes, by name. ``replacements`` holds values that replace
        initializers.
        """
        scope: Scope = {**enclosing, **{n: Value(c.element, None, c.array) for n, c in self.graph.constants.items()}}
        scope.update(replacements or {})
        scope.update(zip([p.name for p in self.graph.inputs], args, strict=False))
        for (node, entry), done in zip(self._steps, self._done, strict=True):
            with at(Location(node.name)):
                results = self._applied(node, entry, scope)
            for name, value in zip(node.outputs, results, strict=False):
                if name != ABSENT:
                    scope[name] = value
            for name in done:
                if name not in enclosing:
                    scope.pop(name, None)
        return [scope[p.name] for p in self.graph.outputs]

    def _applied(self, node: OnnxNode, entry: OperatorEntry | None, scope: Scope) -> Sequence[Any]:
        inputs = [None if name == ABSENT else scope[name] for name in node.inputs]
        if entry is None:
            left_out = len(self._bodies[id(node)].graph.inputs) - len(inputs)
            return self._bodies[id(node)].run({}, [*inputs, *[None] * left_out])
        try:
            raw_results = self._known(node, entry, inputs)
            if raw_results is None and entry.moves:
                raw_results = self._moved(node, entry, inputs, scope)
            if raw_results is None:
                raw_results = _computed(Call(node, self, scope, inputs), entry)
            results = _values(node, raw_results, inputs)
        except GraphcError as error:
            _explain(error, node)
            raise
        except FAULTS as error:
            raise refused(node, error) from error
        if len(results) < len(node.outputs):
            raise UnsupportedError(
                f"the model asks for {len(node.outputs)} results, the operator has {len(results)}", where=_place(node)
            )
        return results

    def _moved(self, node: OnnxNode, entry: OperatorEntry, inputs: Sequence[Any], scope: Scope) -> Value | None:
        """Return the result of an operator that moves numbers, computed from their codes; None without one scale."""
        codes = inputs[0].codes if isinstance(inputs[0], Value) else None
        if codes is None or codes.step is None or codes.step <= 0 or len(node.outputs) > 1:
            return None
        moved = _computed(Call(node, self, scope, [codes.codes, *inputs[1:]]), entry)
        return _numbers_of_codes(replace(codes, codes=Value(codes.codes.element, moved), axis=0))

    @staticmethod
    def _known(node: OnnxNode, entry: OperatorEntry, inputs: Sequence[Any]) -> Any:
        """Compute the node with its function of arrays where all inputs are static, or one holds strings. None if
        impossible.

        No tensor holds strings. Inputs whose values the rule reads decide the shape of the result; an array has no
        shape for all sizes.
        """
        rule = host_function(node.domain, node.op)
        if rule is None or not inputs:
            return None
        values = [v for v in inputs if v is not None]
        has_strings = any(isinstance(v, Value) and v.element is STRING for v in values)
        if not (has_strings or all(map(_is_short, values))):
            return None
        if any(v is not None and v.array.dtype == object and i in entry.host for i, v in enumerate(inputs)):
            return None
        return rule(*[None if v is None else v.array for v in inputs], **plain(node.attributes))


def refused(node: OnnxNode, error: Exception) -> UnsupportedError:
    """Return the error of an operator whose rule failed with another error."""
    what = f"the operator does not accept these inputs and attributes: {type(error).__name__}: {error}"
    return UnsupportedError(what[:500], where=_place(node))


def _explain(error: GraphcError, node: OnnxNode) -> None:
    """Say in an error at which operator of the model it is, unless an operator of an inner graph is there already."""
    if isinstance(error, ValueNeededError) and (error.where or "%").startswith("%"):
        error.what = error.what if error.what.startswith(node.op) else f"{node.title}: {error.what}"
        error.where = None
        error.remedy = "make the input an initializer of the model, or call the model without gc.compile"
    if error.where is None:
        error.where = _place(node)


def _place(node: OnnxNode) -> str:
    return f"{node.title} {node.name}"[:200]


def _is_short(value: Any) -> bool:
    """Check whether functions of arrays take ``value``. Strings qualify at any length: they have no other functions."""
    static = isinstance(value, Value) and value.is_known
    return static and (value.element.carrier is None or value.array.size <= MOST_KNOWN)


_OTHERS = "see docs/onnx_ops.md for the operators that it has"
_REMEDIES = {
    "nchwc.": "let onnxruntime optimize the model up to ORT_ENABLE_EXTENDED only: this layout is for one processor",
    "QOrdered": "quantize with onnxruntime.quantization.quantize_static: ordered layouts are for onnxruntime on CUDA",
    "WithOrder": "quantize with onnxruntime.quantization.quantize_static: ordered layouts are for onnxruntime on CUDA",
}
"""Remedies by parts of names of operators."""


def check_rules(graph: OnnxGraph) -> None:
    """Raise UnsupportedError that names all operators which are not in the table."""
    missing = dict.fromkeys(_missing(graph))
    if missing:
        raise UnsupportedError(
            f"graphc has no rule for these operators: {', '.join(missing)}"[:1000],
            remedy=next(
                (remedy for part, remedy in _REMEDIES.items() if any(part in name for name in missing)), _OTHERS
            ),
        )


def _missing(graph: OnnxGraph) -> Iterator[str]:
    """Yield the operators without a rule, with the version that the model imports."""
    for node in graph.nodes:
        for inner in (*node.graphs(), *([node.body] if node.body is not None else [])):
            yield from _missing(inner)
        if node.body is None and find(node.domain, node.op, node.version) is None:
            yield f"{node.title} (version {node.version})"


def _computed(call: Call, entry: OperatorEntry) -> Any:
    """Apply the rule to the inputs in its form: Values, tensors, or values on the host."""
    attributes = {k: v for k, v in call.node.attributes.items() if not isinstance(v, OnnxGraph)}
    if not entry.values:
        attributes = plain(attributes)
    if entry.call:
        attributes["call"] = call
    inputs = [_as_sizes(v, call.node) if i in entry.host else v for i, v in enumerate(call.inputs)]
    if entry.values:
        return entry.rule(*inputs, **attributes)
    arguments = [_argument(value, i in entry.host) for i, value in enumerate(inputs)]
    return entry.rule(*arguments, **attributes)


def _as_sizes(value: Any, node: OnnxNode) -> Any:
    """Return integers that only calls know as sizes that each call reads, where it may; anything else as it is."""
    if not isinstance(value, Value) or not value.is_open or not may_read(sizes=True) or value.element.is_floating_point:
        return value
    tensor = value.tensor
    if tensor.ndim > 1 or tensor.dtype is bool_ or not (tensor.ndim == 0 or at_most(tensor.shape[0], MOST_READ)):
        return value
    if folded(tensor) is not None:
        return value
    title = f"an input of {node.title}, a number of 0 or more,"
    sizes = [front().size(element, LARGEST, title) for element in tensor.reshape(-1)]
    return Value(value.element, None, array_of_sizes(sizes).reshape(tuple(tensor.shape)))


def _argument(value: Any, on_host: bool) -> Any:
    if isinstance(value, Value):
        return value.numbers if on_host else value.tensor
    return value if value is None else [_argument(v, on_host) for v in value]


def plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes with arrays in place of tensors."""
    return {k: v.array if isinstance(v, TensorAttribute) else v for k, v in attributes.items()}


def _values(node: OnnxNode, raw: Any, inputs: Sequence[Any]) -> list[Any]:
    """Return results as values with the element types of the operator's schema."""
    results = raw if isinstance(raw, tuple) else (raw,)
    if node.types:
        return [_value(result, _element(node, i, inputs)) for i, result in enumerate(results)]
    return [_value(result, _likely(result, inputs)) for result in results]


def _likely(result: Any, inputs: Sequence[Any]) -> Element | None:
    """Guess the element type without a schema: the first input whose carrier is the result's dtype decides."""
    if not isinstance(result, Tensor):
        return None
    elements = [value.element for value in inputs if isinstance(value, Value)]
    return next((e for e in elements if e.carrier is result.dtype), None)


def _value(result: Any, element: Element | None) -> Any:
    if result is None or isinstance(result, (list, dict, Value)):
        return result
    if isinstance(result, Tensor):
        return Value(element, narrowed(result, element)) if element is not None else Value.of(result)
    array = settled(np.asarray(result))
    if element is not None and array.dtype != object and array.dtype != element.numpy:
        array = array.astype(element.numpy)
    return Value.of(array, element)


def _element(node: OnnxNode, number: int, inputs: Sequence[Any]) -> Element | None:
    source = node.types[number] if number < len(node.types) else None
    if not isinstance(source, int):
        return source
    value = inputs[source] if source < len(inputs) else None
    return value.element if isinstance(value, Value) else None
