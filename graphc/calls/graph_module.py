"""A graph as a module: it is called on tensors, differentiated, compiled and exported like any other one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphc.base.errors import ArgumentError, DTypeError, GraphcError, ShapeError
from graphc.base.location import at
from graphc.base.sizes.assumptions import holding
from graphc.base.sizes.named_dims import chosen_sizes, dimensions
from graphc.base.sizes.shape_patterns import ShapePatterns, as_pattern
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
    """Calls a graph: one tensor (or array) per input, in order; one output by itself, several as a tuple.

    Params and states are the tensors of ``tensors``, by path, or those that ``graph.bound`` holds where the graph comes
    from ``graphc.trace``: the tensors themselves, so that what training or ``load_state_dict`` writes to them is seen,
    and what the graph writes is seen outside. A tensor that is put in the place of one in the module that was traced is
    not seen. The graph is copied and verified. Where it has named dimensions, each call has its own sizes of them.

    Raises ArgumentError for a param or state without a tensor, ShapeError and DTypeError where a tensor is not of the
    type that the graph states, VerifyError for a wrong graph.
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
            # NOTE: a generator's state is known to every trace by itself.
            if getattr(tensor, "_capture_path", None) is None:
                table = self._parameters if cls == "param" else self._buffers
                table[path] = tensor  # type: ignore[assignment]

    @property
    def graph(self) -> Graph:
        """A copy of the graph, bound to the same tensors."""
        with assumed(self._graph):
            found = copy(self._graph)
        found.bound = {path: tensor for path, (_, tensor) in self._bound.items()}
        found.assumptions = self._graph.assumptions
        return found

    def _at(self, inputs: Sequence[Any]) -> Graph:
        """The graph for the sizes that its named dimensions have in a call with these inputs; in a trace those may be
        sizes of its own."""
        if self._patterns is None:
            return self._graph
        sizes = self._patterns.solve([as_pattern(x, s) for x, s in zip(inputs, self._patterns.shapes, strict=True)])
        broken = next((a for a in self._graph.assumptions if not a.holds(sizes)), None)
        if broken is not None:
            known = ", ".join(f"{d.name} = {n}" for d, n in sizes.items())
            raise ShapeError(f"@{self._graph.name} was traced for {broken}, and is called with {known}")
        return bind(self._graph, {d.name: n for d, n in sizes.items()})

    def forward(self, *inputs: Any) -> Any:
        """The outputs; states are written when all of them are computed."""
        count = sum(input_class(v) == "input" for v in self._graph.inputs)
        if len(inputs) != count:
            raise ArgumentError(f"@{self._graph.name} takes {count} inputs, got {len(inputs)}")
        graph = self._at(inputs)
        tensors = [as_tensor(x) for x in inputs]
        plain = [v for v in graph.inputs if input_class(v) == "input"]
        given = {v: _fitting(v, x) for v, x in zip(plain, tensors, strict=True)}
        replay = _Replay()
        arguments = [given[v] if v in given else self._bound[input_path(v)][1] for v in graph.inputs]
        found = list(replay.run(graph, arguments))
        if replay.written:
            found = [x.clone() if _may_share(v) else x for v, x in zip(graph.outputs, found, strict=True)]
            with no_grad():
                for state, value in replay.written:
                    state.copy_(value)
        return found[0] if len(found) == 1 else tuple(found)

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
    """The shapes of the inputs of a graph, None where it has no named dimensions."""
    inputs = [v for v in graph.inputs if input_class(v) == "input"]
    return ShapePatterns(list(map(input_pattern, inputs)), [f"%{v.name}" for v in inputs]) if graph.dims else None


def as_callable(target: Any, tensors: Mapping[str, Tensor] | None = None) -> Any:
    """``target``, or the module of a graph."""
    if isinstance(target, Graph):
        return GraphModule(target, tensors)
    if tensors is not None:
        raise ArgumentError(
            f"tensors= says what the params of a graph are, and {type(target).__name__} is no graph",
            remedy="graphc.trace(model, x) is one",
        )
    return target


class _Replay(Interpreter):
    """Applies the nodes again, through the one door, each at the line that it came from."""

    def __init__(self) -> None:
        self.written: list[tuple[Tensor, Tensor]] = []

    def apply(self, node: Node, operands: list[Any]) -> Sequence[Any]:
        if node.op.has(Trait.STATE_WRITE):
            self.written.append((operands[0], operands[1]))
            return (operands[1],)
        with at(node.location):
            found = dispatch.apply(node.op, operands, node.attrs)
        return found if isinstance(found, tuple) else (found,)


def _may_share(value: Value) -> bool:
    return value.node.op is INPUT or value.node.op.has(Trait.VIEW)


def _bindings(graph: Graph, tensors: Mapping[str, Any]) -> dict[str, tuple[str, Tensor]]:
    """Class and tensor of each param and state, by path."""
    wanted = {input_path(v): v for v in graph.inputs if input_class(v) != "input"}
    missing = [path for path in wanted if path not in tensors]
    if missing:
        raise ArgumentError(
            f"@{graph.name} has params and states without a tensor: {', '.join(missing)}",
            remedy="graph.bound = {path: tensor, ...}, such as dict(model.named_parameters()), or tensors= of compile; "
            "the graph that graphc.trace(model, ...) gives knows them",
        )
    return {path: (input_class(v), _fitting(v, tensors[path])) for path, v in wanted.items()}


def _fitting(value: Value, tensor: Tensor) -> Tensor:
    """The tensor, if it is of the type of the argument."""
    if not isinstance(tensor, Tensor):
        raise ArgumentError(f"%{value.name}: {type(tensor).__name__} is no tensor", remedy="graphc.tensor(...)")
    wrong: type[GraphcError] | None = None
    if tuple(tensor.shape) != value.shape:
        wrong = ShapeError
    elif tensor.dtype is not value.dtype:
        wrong = DTypeError
    if wrong is not None:
        shape = ",".join(map(str, tensor.shape))
        raise wrong(
            f"%{value.name} is {value.type} in the graph, got {tensor.dtype.name}[{shape}]",
            remedy="a graph has the shapes of its trace: trace again with such an argument",
        )
    return tensor
