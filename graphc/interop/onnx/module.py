"""``graphc.from_onnx``: an ONNX model as a module, which is called, trained, compiled and exported like any other."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, DTypeError, GraphcError
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.base.sizes.size import hint, is_size
from graphc.interop.onnx.elements import Element, element_of
from graphc.interop.onnx.forests import joined_forests
from graphc.interop.onnx.graph import OnnxGraph, OnnxNode, Port, TensorAttribute
from graphc.interop.onnx.protos import MOST_NAME, Names
from graphc.interop.onnx.reader import read_model
from graphc.interop.onnx.registry import HOST
from graphc.interop.onnx.run import Runner, check_rules
from graphc.interop.onnx.table import find
from graphc.interop.onnx.values import Value
from graphc.interop.parts import ImportedRoot, Member
from graphc.nn.parameter import Parameter
from graphc.tensors.creation import as_tensor, zeros
from graphc.tensors.tensor import Tensor

_OF_SHAPES = frozenset({"Shape", "Size"})
"""Operators whose static results do not depend on the values of their inputs."""


def asked_constants(graph: OnnxGraph) -> set[str]:
    """Return the names of initializers whose values rules read, directly or through sizes computed from them.

    Includes all integer initializers of at most one dimension, which a graph may compute sizes with.
    """
    needed: set[str] = set()
    for node in reversed(graph.nodes):
        input_indices = _asked_inputs(node)
        needed |= {name for i, name in enumerate(node.inputs) if i in input_indices}
        if (node.domain, node.op) in HOST and node.op not in _OF_SHAPES and needed & set(node.outputs):
            needed |= set(node.inputs)
        for inner in node.graphs():
            needed |= asked_constants(inner)
    small = {n for n, c in graph.constants.items() if not c.element.is_floating_point and c.array.ndim <= 1}
    return needed | small


def _asked_inputs(node: OnnxNode) -> set[int]:
    """Return the indices of the inputs whose values an operator reads."""
    if node.body is not None:
        needed = asked_constants(node.body)
        return {i for i, port in enumerate(node.body.inputs) if port.name in needed}
    entry = find(node.domain, node.op, node.version)
    return set() if entry is None else set(entry.host)


MOST_PARTS = 64
"""Dot-separated components of an initializer's name. Each becomes a module within the one before."""


def from_onnx(source: Any) -> OnnxModule:
    """Convert an ONNX model to a Module.

    Nothing in the file is executed. External data is read from regular files in the file's folder only. Types that
    graphc lacks are stored in wider ones (f16 and bf16 in f32, i16 and u16 in i32, u32 and u64 in i64); values are
    rounded where the model casts. docs/onnx.md lists the operators.

    Args:
        source: path of a file, its bytes, or a ``ModelProto``.

    Returns:
        A Module that takes tensors or arrays, by position or name, and returns one result or a tuple. Initializers of
        real numbers are parameters, others buffers. ``module.dims`` holds the named dimensions, for ``compile``.

    Raises:
        ArtifactError: a damaged or foreign file.
        UnsupportedError: operators without a rule; the message names all of them.
        ArgumentError: the ``onnx`` package is missing.
        OSError: the file cannot be read.

    Example:
        >>> import graphc as gc
        >>> manifest = gc.export(gc.nn.ReLU(), gc.zeros(3), path="relu.onnx")
        >>> model = gc.from_onnx("relu.onnx")
        >>> model(gc.tensor([-1.0, 0.0, 2.0]))
        tensor([0., 0., 2.])
    """
    model = read_model(source)
    return OnnxModule(model.graph, model.graph.name or "OnnxModel")


class OnnxModule(ImportedRoot):
    """Graph of ONNX operators with its initializers as parameters and buffers."""

    def __init__(self, graph: OnnxGraph, kind: str):
        """Raise UnsupportedError for operators without a rule."""
        super().__init__("".join(c if c.isalnum() else "_" for c in kind)[:60] or "OnnxModel")
        self._traced_name = self._kind
        check_rules(graph)
        graph = joined_forests(graph)
        self._initializers: dict[str, tuple[str, Element]] = {}
        """Path of the tensor in this module, and its element type, by the name of the initializer."""
        static_names = asked_constants(graph)
        for name, constant in graph.constants.items():
            if name not in static_names and constant.element.carrier is not None:
                self._hold(name, constant)
        constants = {name: c for name, c in graph.constants.items() if name not in self._initializers}
        self._graph = replace(graph, constants=constants)
        self._runner = Runner(self._graph)
        self._patterns = _Inputs(graph.inputs)
        super().train(False)

    def _hold(self, name: str, constant: TensorAttribute) -> None:
        """Register an initializer as a parameter or a buffer."""
        tensor = Value(constant.element, None, constant.array).tensor
        trains = constant.element.is_floating_point
        components = name.split(".")
        plain = len(components) <= MOST_PARTS and all(component and component.isprintable() for component in components)
        flat = name.replace(".", "_")
        numbered = f"initializers.{flat}_{len(self._initializers)}"
        for candidate in (name if plain else flat, f"initializers.{flat}", numbered):
            try:
                self._add(Member(candidate, Parameter(tensor) if trains else tensor, "param" if trains else "buffer"))
            except (GraphcError, KeyError):
                continue
            self._initializers[name] = candidate, constant.element
            return
        raise ArtifactError(f"the name {name[:80]!r} of an initializer is already in use")

    @property
    def graph(self) -> OnnxGraph:
        """Return the operators as read. Initializers registered as parameters or buffers are not part of the graph."""
        return self._graph

    @property
    def dims(self) -> dict[str, Any] | None:
        """Return the open sizes of inputs by name, from 1 on, or None where there are none.

        ``dims=`` of ``graphc.compile`` and ``graphc.export`` takes them. Calls of the module itself take sizes of 0 as
        well.
        """
        shapes = {p.name: p.shape for p in self._graph.inputs if p.shape and any(map(is_size, p.shape))}
        names_of_sizes = dimensions(s for shape in shapes.values() for s in shape)
        dim_of = {str(d): Dim(name) for name, d in names_of_sizes.items()}
        specs = {name: tuple([dim_of.get(str(s)) for s in shape]) for name, shape in shapes.items()}
        names = self._patterns.names
        return {names[name]: spec for name, spec in specs.items()} or None

    def examples(self) -> list[Any]:
        """Return arguments with which a call can be traced: zeros of the expected sizes.

        Raises ArgumentError for an input whose type or rank the model does not say.
        """
        return [_example(port) for port in self._graph.inputs]

    @property
    def forward(self) -> Callable[..., Any]:  # type: ignore[override]
        """Return the function that computes the graph for its inputs, by position or by name."""
        return _Forward(self)

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the results of a call as values with their element types."""
        self._check_hooks()
        module_tensors = self._tensors()
        tensors = {name: Value(element, module_tensors[path]) for name, (path, element) in self._initializers.items()}
        return self._runner.run({}, self._patterns.bind(args, kwargs), tensors)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_runner"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._runner = Runner(self._graph)


class _Forward:
    """Callable behind ``OnnxModule.forward``, with the names of the graph's inputs as its signature."""

    def __init__(self, module: OnnxModule):
        self._module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        results = [_tensors(value) for value in self._module.run(args, kwargs)]
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(n, kind) for n in self._module._patterns.names.values()])


def _tensors(value: Any) -> Any:
    if isinstance(value, Value):
        return value.tensor if value.element.carrier is not None else value.array
    return [_tensors(v) for v in value] if isinstance(value, list) else value


def _example(port: Port) -> Any:
    if port.kind != "tensor" or port.element is None or port.element.carrier is None or port.shape is None:
        raise ArgumentError(f"input {port.name!r}: the model does not say the element type and rank of its tensors")
    return zeros(tuple([hint(s) if is_size(s) else s for s in port.shape]), dtype=port.element.carrier)


class _Inputs:
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
