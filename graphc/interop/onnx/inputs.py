"""Inputs of an ONNX model, which bind the arguments of calls, and results as callers get them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, DTypeError
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.interop.onnx.elements import Element, element_of
from graphc.interop.onnx.graph import Port
from graphc.interop.onnx.protos import MOST_NAME, Names
from graphc.interop.onnx.values import Value
from graphc.tensors.creation import as_tensor
from graphc.tensors.tensor import Tensor


def results_of(value: Any) -> Any:
    """Return tensors of a value. Texts and maps stay arrays and dictionaries."""
    if isinstance(value, Value):
        return value.tensor if value.element.carrier is not None else value.array
    return [results_of(v) for v in value] if isinstance(value, list) else value


class Inputs:
    """Inputs of a graph, which bind the arguments of calls."""

    def __init__(self, ports: Sequence[Port]):
        self.ports = ports
        self.names = _identifiers(ports)
        """Python identifiers by the names of the graph."""
        self._shaped = [i for i, p in enumerate(ports) if p.shape is not None]
        shapes = [ports[i].shape for i in self._shaped]
        self._patterns = ShapePatterns([s for s in shapes if s is not None], [ports[i].name for i in self._shaped])

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return values in the order of the inputs. Raises ArgumentError, DTypeError and ShapeError."""
        names = [*self.names.values()]
        if len(args) > len(names):
            raise ArgumentError(f"got {len(args)} inputs, the model has {len(names)}: {', '.join(names)}"[:400])
        bound: dict[str, Any] = dict(zip(names, args, strict=False))
        for name, value in kwargs.items():
            ours = self.names.get(name, name)
            if ours not in names or ours in bound:
                what = "given twice" if ours in bound else "not an input of the model"
                raise ArgumentError(f"input {name!r} is {what}", remedy=f"use the names {', '.join(names)}"[:400])
            bound[ours] = value
        missing = [n for n, p in zip(names, self.ports, strict=True) if n not in bound and p.kind != "optional"]
        if missing:
            raise ArgumentError(f"the call lacks {', '.join(missing)}"[:400])
        values = [_fitting(p, bound.get(n)) for n, p in zip(names, self.ports, strict=True)]
        self._patterns.solve([values[i].shape for i in self._shaped])
        return values


def _identifiers(ports: Sequence[Port]) -> dict[str, str]:
    """Return a unique Python identifier for each port. Valid identifiers stay as they are."""
    names = Names()
    identifiers = {p.name: names.take(p.name) for p in ports if p.name.isidentifier()}
    for name in [p.name for p in ports if p.name not in identifiers]:
        spelled = "".join(c if c.isalnum() else "_" for c in name[:MOST_NAME])
        identifiers[name] = names.take(spelled if spelled.isidentifier() else f"input_{spelled}")
    return {p.name: identifiers[p.name] for p in ports}


def _fitting(port: Port, value: Any) -> Any:
    """Convert the argument for an input to a value of its element type."""
    if value is None or isinstance(value, list):
        return value if value is None else [_fitting(Port(port.name, "tensor", port.element, None), v) for v in value]
    if isinstance(value, (Value, dict)):
        return value
    if isinstance(value, Tensor):
        return Value(_checked(port, value), value)
    array = np.asarray(value)
    if port.element is not None and (port.element.carrier is None or array.dtype == port.element.numpy):
        return _of_array(array, port.element)
    tensor = as_tensor(array)
    return Value(_checked(port, tensor), tensor)


def _of_array(array: np.ndarray, element: Element) -> Value:
    """Convert an argument to a value without a static array, for a trace would bake its numbers into the program."""
    static = Value(element, None, array)
    return static if element.carrier is None else Value(element, static.tensor)


def _checked(port: Port, tensor: Tensor) -> Element:
    """Return the element type of an input. Raises DTypeError where the tensor's dtype cannot hold it."""
    element = port.element or element_of(tensor.dtype)
    if element.carrier is not tensor.dtype:
        carrier = "a type that graphc lacks" if element.carrier is None else element.carrier.long_name
        raise DTypeError(
            f"input {port.name!r} is {element.name.lower()}, held in {carrier}; got {tensor.dtype.long_name}",
            remedy=f"pass x.to(graphc.{carrier})" if element.carrier is not None else None,
        )
    return element
