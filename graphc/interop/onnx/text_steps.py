"""Parts of models with texts as functions of arrays, called in order without tensors, element types and names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from graphc.interop.onnx.elements import STRING, Element
from graphc.interop.onnx.graph import ABSENT, OnnxGraph, OnnxNode
from graphc.interop.onnx.registry import HOST, TEXT
from graphc.interop.onnx.run import FAULTS, plain, refused
from graphc.interop.onnx.text_split import gives_text
from graphc.tensors.placement import on_host
from graphc.tensors.tensor import Tensor


class ArrayStep(NamedTuple):
    """One operator."""

    node: OnnxNode
    function: Callable[..., Any]
    dtype: np.dtype | None
    """Type of the result; None where the function decides."""

    def run(self, scope: dict[str, Any]) -> None:
        """Add the result to values by name, of which tensors are on any device."""
        try:
            result = self.function(
                *[on_host(v._data) if (v := scope[name]).__class__ is Tensor else v for name in self.node.inputs]
            )
        except FAULTS as error:
            raise refused(self.node, error) from error
        is_other = self.dtype is not None and result.dtype != self.dtype
        scope[self.node.outputs[0]] = result.astype(self.dtype) if is_other else result


class ArrayPart:
    """A part of a model with texts whose operators are functions of arrays."""

    def __init__(self, constants: Mapping[str, np.ndarray], steps: Sequence[ArrayStep]):
        self._constants, self._steps = dict(constants), tuple(steps)

    @staticmethod
    def of(graph: OnnxGraph) -> ArrayPart | None:
        """Return a part of a model; None where some operator needs more than arrays, or a type that NumPy lacks."""
        elements: dict[str, Element | None] = {p.name: p.element for p in graph.inputs}
        elements |= {name: constant.element for name, constant in graph.constants.items()}
        steps = []
        for node in graph.nodes:
            step = _step(node, elements)
            if step is None:
                return None
            steps.append(step)
        constants = {name: constant.array for name, constant in graph.constants.items()}
        return None if any(map(_is_foreign, elements.values())) else ArrayPart(constants, steps)

    def run(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return values by name, with those of the part."""
        scope = {**self._constants, **values, ABSENT: None}
        for step in self._steps:
            step.run(scope)
        return scope


def _step(node: OnnxNode, elements: dict[str, Element | None]) -> ArrayStep | None:
    """Return an operator with one result, and add its element type to those by name; None where it needs more."""
    texts = [name for name, element in elements.items() if element is STRING]
    if node.body is not None or len(node.outputs) != 1 or next(node.graphs(), None) is not None:
        return None
    is_text = gives_text(node, 0, texts)
    key = (node.domain, node.op)
    if key in TEXT and (is_text or node.inputs[0] in texts):
        function = TEXT[key](**node.attributes)
    elif key in HOST and any(name in texts for name in node.inputs):
        rule, attributes = HOST[key], plain(node.attributes)
        function = (lambda *arrays: rule(*arrays, **attributes)) if attributes else rule
    else:
        return None
    source = node.types[0] if node.types else None
    element = STRING if is_text else elements.get(node.inputs[source]) if isinstance(source, int) else source
    elements[node.outputs[0]] = element
    return ArrayStep(node, function, None if element is None or is_text else element.numpy)


def _is_foreign(element: Element | None) -> bool:
    """Return whether tensors hold an element type in another one."""
    return element is not None and element is not STRING and not element.is_native
