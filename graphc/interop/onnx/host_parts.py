"""ONNX models with texts and maps in parts: Python code computes them before and after a numeric program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphc.base.errors import ArgumentError, GraphcError
from graphc.base.sizes.named_dims import Dim, chosen_sizes, dimensions
from graphc.base.sizes.size import at
from graphc.interop.onnx.graph import OnnxGraph, Port
from graphc.interop.onnx.inputs import Inputs, results_of
from graphc.interop.onnx.run import Runner
from graphc.interop.onnx.text_record import read_parts, write_parts
from graphc.interop.onnx.text_split import Split
from graphc.interop.onnx.text_steps import ArrayPart
from graphc.interop.onnx.values import Value
from graphc.tape.grad_mode import no_grad
from graphc.tensors.tensor import Tensor
from graphc.tensors.tensor_base import front
from graphc.tracing.tracer import Tracer

REMEMBERED = 256
"""Limit on the forms of arguments that are known to be right."""
_PROBES = ((5, ""), (7, "a b c"))
"""Smallest size and text of two calls from which the shapes of results follow."""


class TextParts:
    """Both parts of a model that run in Python, and how the program's results become the model's."""

    def __init__(
        self, inputs: Sequence[Port], outputs: Sequence[str], before: OnnxGraph, after: OnnxGraph, program: Any
    ):
        """``program`` names the inputs and outputs of the numeric program."""
        self.ports, self.outputs = list(inputs), list(outputs)
        self.names = [p.name for p in self.ports]
        self.before, self.after = before, after
        self.program_inputs, self.program_outputs = program
        self._inputs = Inputs(self.ports)
        self._first, self._last = Runner(before), Runner(after)
        first, last = ArrayPart.of(before), ArrayPart.of(after)
        self._array_parts = None if first is None or last is None or not self.program_outputs else (first, last)
        self._seen: set[Any] = set()
        """Element types and shapes of calls whose arguments were found right."""

    def _bound(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs of a call by name."""
        return dict(zip(self.names, self._inputs.bind(args, kwargs), strict=True))

    @staticmethod
    def _run(runner: Runner, scope: dict[str, Any]) -> dict[str, Any]:
        """Add the results of a part to values by name."""
        graph = runner.graph
        with no_grad():
            results = runner.run({}, [scope[p.name] for p in graph.inputs])
        return scope | dict(zip([p.name for p in graph.outputs], results, strict=True))

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], program: Callable[..., Any]) -> Any:
        """Return the results of a call of the model. Arrays of the program stay arrays."""
        form = None if kwargs else self._form(args)
        if form is not None and form in self._seen and self._array_parts is not None:
            before, after = self._array_parts
            scope = before.run(dict(zip(self.names, args, strict=True)))
            computed = self._computed(program, [self._number(scope[name]) for name in self.program_inputs])
            scope = after.run(scope | computed)
            return _only([computed[n] if n in computed else self._result(scope[n]) for n in self.outputs])
        results = self._run_checked(args, kwargs, program)
        if form is not None:
            if len(self._seen) >= REMEMBERED:
                self._seen.clear()
            self._seen.add(form)
        return results

    def _run_checked(self, args: Sequence[Any], kwargs: Mapping[str, Any], program: Callable[..., Any]) -> Any:
        scope = self._run(self._first, self._bound(args, kwargs))
        computed = self._computed(program, self._numbers(scope, args, kwargs)) if self.program_outputs else {}
        scope = self._run(self._last, scope | {name: Value.of(value) for name, value in computed.items()})
        return _only([computed[name] if name in computed else results_of(scope[name]) for name in self.outputs])

    def _computed(self, program: Callable[..., Any], numbers: Sequence[Any]) -> dict[str, Any]:
        """Return the results of the program by name."""
        results = program(*numbers)
        listed = results if isinstance(results, (tuple, list)) else (results,)
        return dict(zip(self.program_outputs, listed, strict=True))

    def _form(self, args: Sequence[Any]) -> tuple[Any, ...] | None:
        """Return the element types and shapes of arguments, or None for a call that needs values or is traced."""
        if self._array_parts is None or isinstance(front(), Tracer):
            return None
        form: list[Any] = []
        for value in args:
            array = value._data if value.__class__ is Tensor else value
            if array.__class__ is not np.ndarray:
                return None
            form.append((value.__class__, value.dtype, array.shape))
        return tuple(form)

    @staticmethod
    def _number(value: Any) -> Any:
        """Return an argument of the program, from a value of the short way."""
        return value if value.__class__ is Tensor else front().constant(np.ascontiguousarray(value))

    def _result(self, value: Any) -> Any:
        """Return a result of a call, from a value of the short way."""
        return value if value.dtype == object else self._number(value)

    def _numbers(self, scope: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the program's arguments: tensors."""
        return [scope[name].tensor for name in self.program_inputs]

    def texts(self) -> list[str]:
        """Return the names of inputs and outputs that are texts. Dictionaries of scores are columns of the program."""
        names = [p.name for p in self.ports if p.kind == "map" or (p.element is not None and p.element.carrier is None)]
        makers = {name: node.op for node in self.after.nodes for name in node.outputs}
        return names + [n for n in self.outputs if n not in self.program_outputs and makers.get(n) != "ZipMap"]

    def record(self) -> str:
        """Return both parts as a text for files."""
        graphs = self.ports, self.outputs, self.before, self.after
        return write_parts(*graphs, self.program_inputs, self.program_outputs)


class ArrayParts(TextParts):
    """The same around a program that takes and returns arrays where the caller passes no tensor."""

    def run(self, args: Sequence[Any], kwargs: Mapping[str, Any], program: Callable[..., Any]) -> Any:
        result = super().run(args, kwargs, program)
        if any(isinstance(value, Tensor) for value in (*args, *kwargs.values())):
            return result
        return tuple(map(_array, result)) if isinstance(result, tuple) else _array(result)

    def _form(self, args: Sequence[Any]) -> tuple[Any, ...] | None:
        return super()._form(args) if all(value.__class__ is np.ndarray for value in args) else None

    @staticmethod
    def _number(value: Any) -> Any:
        return value

    def _numbers(self, scope: Mapping[str, Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        tensors = super()._numbers(scope, args, kwargs)
        if any(isinstance(value, Tensor) for value in (*args, *kwargs.values())):
            return tensors
        return [tensor.detach().numpy() for tensor in tensors]


def _only(results: list[Any]) -> Any:
    """Return one result by itself, several as a tuple."""
    return results[0] if len(results) == 1 else tuple(results)


def _array(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


def read_text_parts(text: str) -> ArrayParts:
    """Return the parts of a loaded model from the text in its file. Raises ArtifactError."""
    ports, results, before, after, inputs, outputs = read_parts(text)
    return ArrayParts(ports, results, before, after, (inputs, outputs))


class OnnxParts(TextParts):
    """The parts of an OnnxModule: the program is a module with the same parameters."""

    def __init__(self, module: Any, split: Split):
        names = [p.name for p in split.program.inputs], [p.name for p in split.program.outputs]
        graph = module.graph
        super().__init__(graph.inputs, [p.name for p in graph.outputs], split.before, split.after, names)
        if not self.program_outputs:
            raise ArgumentError("the model computes texts only, so nothing of it can be compiled", remedy="call it")
        self._any_text = Runner(_accepting(split.before))
        self.program = module.part(self._shaped(split.program))

    def arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return arguments of the program, from arguments of the model whose texts may be any."""
        return self._numbers(self._run(self._any_text, self._bound(args, kwargs)), args, kwargs)

    def dims(self, dims: Any) -> Any:
        """Return the named dimensions of the program's inputs, where the model's have any."""
        if dims is None or isinstance(dims, str):
            return dims
        names = {port.name: name for port, name in zip(self.ports, self._inputs.names.values(), strict=True)}
        own = self.program.dims or {}
        return {**own, **{n: spec for n, spec in dims.items() if n in own and n in names.values()}} or None

    def _shaped(self, graph: OnnxGraph) -> OnnxGraph:
        """Return the program's graph with shapes of the inputs that the part before computes.

        Two calls with other sizes and texts show which sizes are those of inputs, constant, or open.
        """
        own = {p.name for p in self.ports}
        if any(p.shape is None or p.element is None for p in self.ports):
            return graph
        try:
            (sizes, first), (other_sizes, second) = [self._probe(size, text, 2) for size, text in _PROBES]
        except GraphcError:  # Columns of several inputs are joined, so that their sizes must be equal.
            (sizes, first), (other_sizes, second) = [self._probe(size, text, 0) for size, text in _PROBES]
        inputs = []
        for port in graph.inputs:
            if port.name not in own:
                shapes = zip(first[port.name].shape, second[port.name].shape, strict=True)
                names = {(sizes[d], other_sizes[d]): d for d in reversed(sizes)}
                shape = tuple([_size(a, b, names, f"{port.name}_{i}") for i, (a, b) in enumerate(shapes)])
                port = Port(port.name, "tensor", first[port.name].element, shape)
            inputs.append(port)
        return OnnxGraph(graph.name, inputs, graph.outputs, graph.nodes, graph.constants)

    def _probe(self, size: int, text: str, step: int) -> tuple[dict[Any, int], dict[str, Any]]:
        """Return the sizes of named dimensions, which differ by ``step``, and all values of a call with these."""
        found = chosen_sizes(dimensions([n for p in self.ports for n in p.shape or ()]), {})
        chosen = {d: size + step * i for i, d in enumerate(found)}
        scope = {}
        for port in self.ports:
            assert port.element is not None
            shape = tuple([at(n, chosen) for n in port.shape or ()])
            is_text = port.element.carrier is None
            array = np.full(shape, text, object) if is_text else np.zeros(shape, port.element.numpy)
            scope[port.name] = Value(port.element, None, array)
        return {found[d]: n for d, n in chosen.items()}, self._run(self._any_text, scope)


def _accepting(graph: OnnxGraph) -> OnnxGraph:
    """Return the graph with encoders that take texts of no category, for examples and probes."""
    encoders = {i: n for i, n in enumerate(graph.nodes) if n.op == "OneHotEncoder"}
    accepting = {i: replace(n, attributes={**n.attributes, "zeros": 1}) for i, n in encoders.items()}
    return replace(graph, nodes=[accepting.get(i, n) for i, n in enumerate(graph.nodes)])


def _size(first: int, second: int, names: Mapping[tuple[int, int], Any], name: str) -> Any:
    if (first, second) in names:
        return names[first, second]
    return first if first == second else Dim("".join(c if c.isalnum() else "_" for c in name), min=0)
