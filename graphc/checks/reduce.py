"""Reduction of graphs on which compilation fails or native code is wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np

from graphc.base.errors import GraphcError, PassError
from graphc.base.records import dataclass
from graphc.base.sizes.named_dims import size_of
from graphc.base.sizes.size import hint
from graphc.checks.check import check_native
from graphc.compiler.compile import compile_stages
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph, Node, Value, input_role
from graphc.ir.graph.interpret import Evaluator, Reemitter, bind, solved_sizes

BUDGET = 20.0
"""Time limit in seconds for reducing a graph."""
Arguments = Sequence[np.ndarray] | None
Test = Callable[[Graph, Arguments], bool]
"""Checks whether a graph, with these arguments where they matter, fails in the same way."""


@dataclass(frozen=True)
class CompilerFault:
    """A fault of the compiler on a graph."""

    what: str
    """An exception with its message, or the error of native code."""
    kind: str
    """The invariant of the reduction: the class of the exception, or ``wrong``."""


def fault_of(graph: Graph, arguments: Arguments = None) -> CompilerFault | None:
    """Return the fault of compiling a graph or, with arguments, of its native code; None without a fault."""
    try:
        if arguments is None:
            compile_stages(Stages(graph))
            return None
        report = check_native(graph, arguments)
    # NOTE: any exception of the compilation, or of the compiled code, is the fault.
    except Exception as error:
        return CompilerFault(f"{type(error).__name__}: {error}", kind_of(error))
    return None if report.good else CompilerFault(f"native code is wrong: {str(report).strip()}", "wrong")


def kind_of(error: Exception) -> str:
    """Return the class of a fault, which stays the same during its reduction."""
    stage = error.what.partition(" failed")[0] if isinstance(error, PassError) else ""
    return f"{type(error).__name__} {stage}"


def reduced(graph: Graph, arguments: Arguments, fails: Test, budget: float = BUDGET) -> tuple[Graph, Arguments]:
    """Return a graph of fewer nodes that still fails. Values of removed nodes become arguments.

    Named dimensions become the sizes of the arguments where the graph still fails then.
    """
    end = time.monotonic() + budget
    graph = _with_numbers(graph, arguments, fails)
    values = _values(graph, arguments)
    remaining = [n for n in graph.nodes() if not n.results or not n.results[0].is_scalar_constant]
    best: tuple[Graph, Arguments] = graph, arguments
    pieces = 2
    while len(remaining) > 1 and time.monotonic() < end:
        for candidate in _candidates(remaining, pieces):
            if time.monotonic() > end:
                return best
            subgraph = _extracted(graph, candidate, values)
            if subgraph is not None and fails(*subgraph):
                remaining, best = candidate, subgraph
                pieces = max(pieces - 1, 2)
                break
        else:
            if pieces >= len(remaining):
                break
            pieces = min(2 * pieces, len(remaining))
    return best


def _with_numbers(graph: Graph, arguments: Arguments, fails: Test) -> Graph:
    """Return the graph for the sizes of the arguments, or the expected sizes, where it still fails for these."""
    if not graph.dims:
        return graph
    sizes = solved_sizes(graph, arguments) if arguments is not None else {}
    chosen = {name: sizes.get(d, hint(size_of(d))) for name, d in graph.dims.items()}
    try:
        bound = bind(graph, chosen)
    except GraphcError:
        return graph
    return bound if fails(bound, arguments) else graph


def _extracted(
    graph: Graph, nodes: Sequence[Node], values: Mapping[Value, np.ndarray] | None
) -> tuple[Graph, Arguments] | None:
    """Return ``extracted``, or None where type rules need more facts about named dimensions than remain."""
    try:
        return extracted(graph, nodes, values)
    except GraphcError:
        return None


def _candidates(nodes: list[Node], pieces: int) -> Iterator[list[Node]]:
    """Yield each of several pieces of the nodes, then all but each piece (Zeller and Hildebrandt's ddmin, 2002)."""
    edges = [len(nodes) * i // pieces for i in range(pieces + 1)]
    chunks = [nodes[a:b] for a, b in pairwise(edges) if a < b]
    yield from chunks
    if pieces > 2:
        yield from ([n for chunk in chunks if chunk is not omitted for n in chunk] for omitted in chunks)


def _values(graph: Graph, arguments: Arguments) -> Mapping[Value, np.ndarray] | None:
    if arguments is None:
        return None
    evaluator = Evaluator()
    evaluator.run(graph, [np.asarray(a) for a in arguments])
    return evaluator.values


def extracted(
    graph: Graph, nodes: Sequence[Node], values: Mapping[Value, np.ndarray] | None = None
) -> tuple[Graph, Arguments]:
    """Return the graph of some nodes of another graph.

    Values from other nodes become inputs. Values for other nodes, and unused values, become outputs. With the
    ``values`` of the original graph, return arguments too.
    """
    own, arguments = set(nodes), list[np.ndarray]()
    emitter = Reemitter()
    target = emitter.target = Graph(graph.name)
    copies: dict[Value, Value] = {}
    inputs = set(graph.inputs)

    def copy_of(value: Value) -> Value:
        if value not in copies and value.is_scalar_constant:
            copies[value] = emitter.copy_node(value.node, [])[0]
        elif value not in copies:
            role = input_role(value) if value in inputs else ("input", "", None)
            copies[value] = target.add_input(value.type, value.name, *role)
            if values is not None:
                arguments.append(np.asarray(values[value]))
        return copies[value]

    for node in nodes:
        copies.update(zip(node.results, emitter.copy_node(node, [copy_of(v) for v in node.operands]), strict=True))
    results = [v for n in nodes for v in n.results if _is_wanted(graph, v, own)]
    target.set_outputs([copies[v] for v in results])
    return target, None if values is None else arguments


def _is_wanted(graph: Graph, value: Value, own: set[Node]) -> bool:
    users = [user for user, _ in graph.uses(value)]
    return value in graph.outputs or not users or any(user not in own for user in users)
