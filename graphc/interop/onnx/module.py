"""``graphc.from_onnx``: an ONNX model as a module, which is called, trained, compiled and exported like any other."""

from __future__ import annotations

import copy
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from graphc.base.errors import ArgumentError, ArtifactError, GraphcError
from graphc.base.lazy import deferred
from graphc.base.sizes.named_dims import Dim, dimensions
from graphc.base.sizes.size import hint, is_size
from graphc.interop.onnx.elements import Element
from graphc.interop.onnx.graph import OnnxGraph, OnnxNode, Port, TensorAttribute, every_node
from graphc.interop.onnx.inputs import Inputs, results_of
from graphc.interop.onnx.messages import LEAST
from graphc.interop.onnx.reader import read_model
from graphc.interop.onnx.run import Runner, check_rules
from graphc.interop.onnx.table import find, host_function
from graphc.interop.onnx.text_split import split_texts
from graphc.interop.onnx.values import Value
from graphc.interop.parts import ImportedRoot, Member
from graphc.nn.parameter import Parameter
from graphc.tensors.creation import zeros

if TYPE_CHECKING:
    from graphc.interop.onnx.host_parts import OnnxParts

_joined_forests = deferred("graphc.interop.onnx.forests:joined_forests")
_parts_of = deferred("graphc.interop.onnx.host_parts:OnnxParts")
_OF_SHAPES = frozenset({"Shape", "Size"})
"""Operators whose static results do not depend on the values of their inputs."""
_CONVERTING = frozenset({"Cast", "CastLike", "Identity"})
"""Operators without a function of arrays, whose results are static where their inputs are."""
_CONTROL = {"If": {0}, "Loop": {0, 1}}
"""Inputs that decide which graphs run, and how often: better static where they can be."""
_ROUNDS = re.compile("[Qq]uantize|Integer|^Q[A-Z]|MatMulNBits|MatMulBnb4")
"""Operators that round to integers or compute with them, and so have no useful gradient."""


def asked_constants(graph: OnnxGraph) -> set[str]:
    """Return the names of initializers whose values rules read, directly or through sizes computed from them.

    Includes all integer initializers of at most one dimension, which a graph may compute sizes with, and scales of one
    number, with which quotients become products.
    """
    needed: set[str] = set()
    for node in reversed(graph.nodes):
        input_indices = _asked_inputs(node)
        needed |= {name for i, name in enumerate(node.inputs) if i in input_indices}
        stays_static = host_function(node.domain, node.op) is not None or (not node.domain and node.op in _CONVERTING)
        if stays_static and node.op not in _OF_SHAPES and needed & set(node.outputs):
            needed |= set(node.inputs)
        for inner in node.graphs():
            needed |= asked_constants(inner)
    small = {n for n, c in graph.constants.items() if not c.element.is_floating_point and c.array.ndim <= 1}
    rounding = {name for node in graph.nodes if _ROUNDS.search(node.op) for name in node.inputs}
    scales = {n for n in rounding & {*graph.constants} if graph.constants[n].array.size == 1}
    return needed | small | scales


def _asked_inputs(node: OnnxNode) -> set[int]:
    """Return the indices of the inputs whose values an operator reads."""
    if node.body is not None:
        needed = asked_constants(node.body)
        return {i for i, port in enumerate(node.body.inputs) if port.name in needed}
    entry = find(node.domain, node.op, node.version)
    return set() if entry is None else {*entry.host, *(_CONTROL.get(node.op, ()) if not node.domain else ())}


def _joined(graph: OnnxGraph) -> OnnxGraph:
    """Return the graph with joined tree ensembles, see ``forests``."""
    return _joined_forests(graph) if any(node.domain == "ai.onnx.ml" for node in graph.nodes) else graph


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
        ArgumentError: the model needs the ``onnx`` package, which is missing.
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
    """Graph of ONNX operators with its initializers as parameters and buffers; of a quantised model all are buffers."""

    def __init__(self, graph: OnnxGraph, kind: str):
        """Raise UnsupportedError for operators without a rule."""
        super().__init__("".join(c if c.isalnum() else "_" for c in kind)[:60] or "OnnxModel")
        self._traced_name = self._kind
        check_rules(graph)
        self._split = split_texts(graph)
        graph = _joined(graph)
        self._initializers: dict[str, tuple[str, Element]] = {}
        """Path of the tensor in this module, and its element type, by the name of the initializer."""
        static_names = asked_constants(graph)
        self._trains = not any(_ROUNDS.search(node.op) for node in every_node(graph))
        for name, constant in graph.constants.items():
            if name not in static_names and constant.element.carrier is not None:
                self._hold(name, constant)
        # NOTE: arrays of large initializers are views of the mapped file, which somebody may write to later.
        constants = {
            name: c if c.array.nbytes < LEAST else replace(c, array=c.array.copy())
            for name, c in graph.constants.items()
            if name not in self._initializers
        }
        self._graph = replace(graph, constants=constants)
        self._parts: OnnxParts | None = None
        self._runner = Runner(self._graph)
        self._patterns = Inputs(graph.inputs)
        super().train(False)

    def _hold(self, name: str, constant: TensorAttribute) -> None:
        """Register an initializer as a parameter or a buffer."""
        tensor = Value(constant.element, None, constant.array).tensor
        trains = self._trains and constant.element.is_floating_point
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
        """Return the open sizes of inputs by name, from 0 on, or None where there are none.

        ``dims=`` of ``graphc.compile`` and ``graphc.export`` takes them.
        """
        shapes = {p.name: p.shape for p in self._graph.inputs if p.shape and any(map(is_size, p.shape))}
        names_of_sizes = dimensions(s for shape in shapes.values() for s in shape)
        dim_of = {str(d): Dim(name, min=0) for name, d in names_of_sizes.items()}
        specs = {name: tuple([dim_of.get(str(s)) for s in shape]) for name, shape in shapes.items()}
        names = self._patterns.names
        return {names[name]: spec for name, spec in specs.items()} or None

    def examples(self) -> list[Any]:
        """Return arguments with which a call can be traced: zeros of the expected sizes.

        Raises ArgumentError for an input whose type or rank the model does not say.
        """
        return [_example(port) for port in self._graph.inputs]

    @property
    def host_parts(self) -> OnnxParts | None:
        """Return the model as Python code around a numeric module, or None where it has neither texts nor maps."""
        if self._parts is None and self._split is not None:
            self._parts = _parts_of(self, self._split)
        return self._parts

    def part(self, graph: OnnxGraph) -> OnnxModule:
        """Return a module with the same parameters and buffers that computes another graph of its initializers."""
        module = copy.copy(self)
        constants = {name: c for name, c in graph.constants.items() if name not in self._initializers}
        module._graph = _joined(replace(graph, constants=constants))
        module._split, module._parts = None, None
        module._runner, module._patterns = Runner(module._graph), Inputs(module._graph.inputs)
        return module

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
        return super().__getstate__() | {"_runner": None, "_parts": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._runner = Runner(self._graph)


class _Forward:
    """Callable behind ``OnnxModule.forward``, with the names of the graph's inputs as its signature."""

    def __init__(self, module: OnnxModule):
        self._module = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        results = [results_of(value) for value in self._module.run(args, kwargs)]
        return results[0] if len(results) == 1 else tuple(results)

    @property
    def __signature__(self) -> inspect.Signature:
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(n, kind) for n in self._module._patterns.names.values()])


def _example(port: Port) -> Any:
    if port.kind != "tensor" or port.element is None or port.shape is None:
        raise ArgumentError(f"input {port.name!r}: the model does not say the element type and rank of its tensors")
    shape = tuple([hint(s) if is_size(s) else s for s in port.shape])
    return np.full(shape, "", object) if port.element.carrier is None else zeros(shape, dtype=port.element.carrier)
