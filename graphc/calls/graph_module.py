"""A graph as a module: call, differentiate, compile and export it like any other module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError, DTypeError, GraphcError, ShapeError
from graphc.base.location import at
from graphc.base.sizes.assumptions import holding
from graphc.base.sizes.named_dims import chosen_sizes, dimensions
from graphc.base.sizes.shape_patterns import ShapePatterns
from graphc.base.sizes.size_limits import in_terms_of
from graphc.ir.graph.graph import INPUT, Graph, Node, Value, input_class, input_path, input_pattern
from graphc.ir.graph.interpret import Interpreter, assumed, bind, copy
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.ir.op import Trait
from graphc.nn.module import Module
from graphc.ops import dispatch
from graphc.tape.grad_mode import no_grad
from graphc.tensors.creation import as_tensor
from graphc.tensors.tensor import Tensor


class GraphModule(Module):
    """Module that runs a graph: one tensor (or array) per input, in order; returns one output by itself, several as a
    tuple.

    Params and states are the tensors of ``tensors``, by path, or of ``graph.bound`` for a graph of
    ``graphc.trace``. They are shared, not copied: the module sees writes by training and ``load_state_dict``, and the
    graph's writes are visible outside. It does not see a tensor that replaces one in the traced module. The graph is
    copied and verified. Named dimensions take their sizes from each call.

    Raise ArgumentError for a param or state without a tensor, ShapeError and DTypeError where a tensor does not have
    the type in the graph, VerifyError for an invalid graph.
    """

    def __init__(self, graph: Graph, tensors: Mapping[str, Tensor] | None = None):
        super().__init__()
        with assumed(graph):
            verify_graph(graph)
            self._graph = copy(graph)
        self._graph.bound = {}
        self._graph.assumptions = in_terms_of(graph.assumptions, graph.dims)
        self._patterns = _patterns(self._graph)
        self._traced_name = graph.name
        self._bound = _bindings(graph, graph.bound if tensors is None else tensors)
        for path, (cls, tensor) in self._bound.items():
            # NOTE: every trace finds the state of a generator by itself.
            if getattr(tensor, "_capture_path", None) is None:
                table = self._parameters if cls == "param" else self._buffers
                table[path] = tensor  # type: ignore[assignment]

    @property
    def graph(self) -> Graph:
        """A copy of the graph, bound to the same tensors."""
        with assumed(self._graph):
            result = copy(self._graph)
        result.bound = {path: tensor for path, (_, tensor) in self._bound.items()}
        result.assumptions = self._graph.assumptions
        return result

    def _at(self, inputs: Sequence[Any]) -> Graph:
        """Return the graph for the sizes of its named dimensions in a call with these inputs.

        Inside a trace they may be symbolic sizes of that trace.
        """
        if self._patterns is None:
            return self._graph
        sizes = self._patterns.sizes_of_call(inputs, self._graph.assumptions, f"@{self._graph.name}")
        return bind(self._graph, {d.name: n for d, n in sizes.items()})

    def forward(self, *inputs: Any) -> Any:
        """Return the outputs. Write states after all outputs are computed."""
        count = sum(input_class(v) == "input" for v in self._graph.inputs)
        if len(inputs) != count:
            raise ArgumentError(f"@{self._graph.name} takes {count} inputs, got {len(inputs)}")
        graph = self._at(inputs)
        tensors = [as_tensor(x) for x in inputs]
        plain = [v for v in graph.inputs if input_class(v) == "input"]
        converted = {v: _fitting(v, x) for v, x in zip(plain, tensors, strict=True)}
        replay = Replay()
        arguments = [converted[v] if v in converted else self._bound[input_path(v)][1] for v in graph.inputs]
        outputs = list(replay.run(graph, arguments))
        if replay.written:
            outputs = [x.clone() if _may_share(v) else x for v, x in zip(graph.outputs, outputs, strict=True)]
            with no_grad():
                for state, value in replay.written:
                    state.copy_(value)
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def replace(self, path: str, tensor: Tensor) -> None:
        """Use another tensor of the same type as the param or state at a path."""
        cls, before = self._bound[path]
        self._bound[path] = cls, tensor
        for table in (self._parameters, self._buffers):
            if table.get(path) is before:
                table[path] = tensor  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        text = print_graph(self._graph), collect_data(self._graph)
        return {**state, "_graph": text, "_patterns": tuple(self._graph.assumptions)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        assumptions = state["_patterns"]
        dims = dimensions(n for x in assumptions for n in (x.a, x.b))
        with holding(assumptions, chosen_sizes(dims, {})):
            graph = parse_graph(*state["_graph"])
        graph.assumptions = assumptions
        super().__setstate__({**state, "_graph": graph, "_patterns": _patterns(graph)})


def _patterns(graph: Graph) -> ShapePatterns | None:
    """Return the shapes of a graph's inputs as patterns; None where it has no named dimensions."""
    inputs = [v for v in graph.inputs if input_class(v) == "input"]
    return ShapePatterns(list(map(input_pattern, inputs)), [f"%{v.name}" for v in inputs]) if graph.dims else None


def as_callable(target: Any, tensors: Mapping[str, Tensor] | None = None) -> Any:
    """Return ``target``, or the module of a graph."""
    if isinstance(target, Graph):
        return GraphModule(target, tensors)
    if tensors is not None:
        raise ArgumentError(
            f"tensors= are the params of a graph, but {type(target).__name__} is not a graph",
            remedy="pass a graph, such as graphc.trace(model, x)",
        )
    return target


class Replay(Interpreter):
    """Applies the nodes of a graph again through the dispatcher, each at its original source line."""

    def __init__(self) -> None:
        self.written: list[tuple[Tensor, Tensor]] = []

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if node.op.has(Trait.STATE_WRITE):
            self.written.append((operands[0], operands[1]))
            return (operands[1],)
        with at(node.location):
            results = dispatch.apply(node.op, operands, node.attrs)
        return results if isinstance(results, tuple) else (results,)


def _may_share(value: Value) -> bool:
    return value.node.op is INPUT or value.node.op.has(Trait.VIEW)


def _bindings(graph: Graph, tensors: Mapping[str, Any]) -> dict[str, tuple[str, Tensor]]:
    """Return class and tensor of each param and state, by path."""
    arguments = {input_path(v): v for v in graph.inputs if input_class(v) != "input"}
    missing = [path for path in arguments if path not in tensors]
    if missing:
        raise ArgumentError(
            f"@{graph.name} has params and states without a tensor: {', '.join(missing)}",
            remedy="set graph.bound = {path: tensor, ...}, such as dict(model.named_parameters()), or pass tensors= to "
            "compile; graphs of graphc.trace(model, ...) have them",
        )
    return {path: (input_class(v), _fitting(v, tensors[path])) for path, v in arguments.items()}


def _fitting(value: Value, tensor: Tensor) -> Tensor:
    """Return the tensor if it has the type of the argument. Raise ShapeError or DTypeError."""
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"%{value.name}: {type(tensor).__name__} is not a tensor", remedy="pass graphc.tensor(...)")
    wrong: type[GraphcError] | None = None
    if tuple(tensor.shape) != value.shape:
        wrong = ShapeError
    elif tensor.dtype is not value.dtype:
        wrong = DTypeError
    if wrong is not None:
        shape = ",".join(map(str, tensor.shape))
        raise wrong(
            f"%{value.name} is {value.type} in the graph, got {tensor.dtype.name}[{shape}]",
            remedy="trace again with such an argument: a graph has the shapes of its trace",
        )
    return tensor
