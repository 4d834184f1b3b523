"""Makes graphs small on which a compile fails or native code is wrong, and writes them as programs that show it."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from graphc.base.errors import CompileError, GraphcError, PassError, TraceError, UnsupportedError
from graphc.base.sizes.named_dims import size_of
from graphc.base.sizes.size import hint
from graphc.checks.check import check_native
from graphc.codegen.machine.target import host_target
from graphc.compiler.cache import versions
from graphc.compiler.compile import CompiledGraph, compile_graph, compile_stages
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph, Node, Value, input_role
from graphc.ir.graph.interpret import Evaluator, Reemitter, bind, solved_sizes
from graphc.ir.graph.parse import parse_graph
from graphc.ir.graph.text import collect_data, print_graph

BUDGET = 20.0
"""Seconds that are spent on making a graph small."""
Arguments = Sequence[np.ndarray] | None
Test = Callable[[Graph, Arguments], bool]
"""Whether a graph, with these arguments where they matter, fails in the same way."""


@dataclass(frozen=True)
class Fault:
    """A graph on which the compiler fails."""

    what: str
    """An exception with its message, or how far native code is from the meaning of the graph."""
    kind: str
    """What stays the same while the graph becomes smaller: the class of the exception, or ``wrong``."""


def fault_of(graph: Graph, arguments: Arguments = None) -> Fault | None:
    """How the compile of a graph fails; or, for arguments, how its native code is wrong; None where all is well."""
    try:
        if arguments is None:
            compile_stages(Stages(graph))
            return None
        report = check_native(graph, arguments)
    # NOTE: whatever a compile, or what it has made, raises is the fault.
    except Exception as error:
        return Fault(f"{type(error).__name__}: {error}", _kind(error))
    return None if report.good else Fault(f"native code is wrong: {str(report).strip()}", "wrong")


def _kind(error: Exception) -> str:
    stage = error.what.partition(" failed")[0] if isinstance(error, PassError) else ""
    return f"{type(error).__name__} {stage}"


def reduced(graph: Graph, arguments: Arguments, fails: Test, budget: float = BUDGET) -> tuple[Graph, Arguments]:
    """A graph of fewer nodes that fails, too; what it reads of the others are arguments, with the values that they
    have. The sizes of named dimensions become those of the arguments where it still fails then."""
    end = time.monotonic() + budget
    graph = _with_numbers(graph, arguments, fails)
    values = _values(graph, arguments)
    kept = [n for n in graph.nodes() if not n.results or not n.results[0].is_scalar_constant]
    best: tuple[Graph, Arguments] = graph, arguments
    pieces = 2
    while len(kept) > 1 and time.monotonic() < end:
        for candidate in _candidates(kept, pieces):
            if time.monotonic() > end:
                return best
            part = _extracted(graph, candidate, values)
            if part is not None and fails(*part):
                kept, best = candidate, part
                pieces = max(pieces - 1, 2)
                break
        else:
            if pieces >= len(kept):
                break
            pieces = min(2 * pieces, len(kept))
    return best


def _with_numbers(graph: Graph, arguments: Arguments, fails: Test) -> Graph:
    """The graph for the sizes of the arguments, or those that are expected, where it fails for these, too."""
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
    """``extracted``; None where type rules ask more of the sizes of named dimensions than the part knows."""
    try:
        return extracted(graph, nodes, values)
    except GraphcError:
        return None


def _candidates(kept: list[Node], pieces: int) -> Iterator[list[Node]]:
    """One of so many pieces of what is kept, and then all but one (Zeller and Hildebrandt's ddmin, 2002)."""
    edges = [len(kept) * i // pieces for i in range(pieces + 1)]
    parts = [kept[a:b] for a, b in pairwise(edges) if a < b]
    yield from parts
    if pieces > 2:
        yield from ([n for part in parts if part is not left for n in part] for left in parts)


def _values(graph: Graph, arguments: Arguments) -> Mapping[Value, np.ndarray] | None:
    if arguments is None:
        return None
    evaluator = Evaluator()
    evaluator.run(graph, [np.asarray(a) for a in arguments])
    return evaluator.values


def extracted(
    graph: Graph, nodes: Sequence[Node], values: Mapping[Value, np.ndarray] | None = None
) -> tuple[Graph, Arguments]:
    """The graph of some nodes of another one: what they read of others are inputs, and what others or nobody reads of
    them are outputs. With the ``values`` of the whole graph there are arguments, too."""
    own, arguments = set(nodes), list[np.ndarray]()
    emitter = Reemitter()
    target = emitter.target = Graph(graph.name)
    images: dict[Value, Value] = {}
    inputs = set(graph.inputs)

    def image(value: Value) -> Value:
        if value not in images and value.is_scalar_constant:
            images[value] = emitter.copy_node(value.node, [])[0]
        elif value not in images:
            role = input_role(value) if value in inputs else ("input", "", None)
            images[value] = target.add_input(value.type, value.name, *role)
            if values is not None:
                arguments.append(np.asarray(values[value]))
        return images[value]

    for node in nodes:
        images.update(zip(node.results, emitter.copy_node(node, [image(v) for v in node.operands]), strict=True))
    results = [v for n in nodes for v in n.results if _is_wanted(graph, v, own)]
    target.set_outputs([images[v] for v in results])
    return target, None if values is None else arguments


def _is_wanted(graph: Graph, value: Value, own: set[Node]) -> bool:
    users = [user for user, _ in graph.uses(value)]
    return value in graph.outputs or not users or any(user not in own for user in users)


def written(graph: Graph, arguments: Arguments, what: str, folder: Path | None = None) -> Path:
    """Writes a graph, and arguments where they matter, as a program that shows what is wrong with it; returns its path,
    in a new folder for temporary files unless ``folder`` is given. Arrays stand in a file beside it."""
    folder = folder or Path(tempfile.mkdtemp(prefix="graphc_report_"))
    path = folder / f"{''.join(c if c.isalnum() else '_' for c in graph.name)[:60]}.py"
    data = dict(collect_data(graph))
    data |= {f"argument_{i}": np.asarray(a) for i, a in enumerate(arguments or ())}
    if data:
        np.savez_compressed(path.with_suffix(".npz"), **data)  # type: ignore[arg-type]
    built_by = ", ".join(f"{name} {version}" for name, version in sorted(versions().items()))
    head = "\n".join([what, "", f"With {built_by}, for {host_target().cpu}."]).replace("\\", "/").replace('"""', "'''")
    path.write_text(_PROGRAM.format(head=head, graph=print_graph(graph), count=len(arguments or ())), encoding="utf-8")
    return path


_PROGRAM = '''"""{head}

``python {{this file}}`` shows it; the arrays that it needs stand in the file .npz beside it. It needs graphc alone.
"""

import sys

from graphc.checks.reduce import replay

GRAPH = r"""
{graph}"""

if __name__ == "__main__":
    sys.exit(replay(GRAPH, __file__, {count}))
'''


def replay(text: str, file: str, count: int) -> int:
    """What a written program does: compiles its graph, and runs it with its so many arguments, which stand beside its
    file. Prints what is wrong; returns 1, or 0 where nothing is."""
    beside = Path(file).with_suffix(".npz")
    data: dict[str, Any] = {}
    if beside.exists():
        with np.load(beside) as arrays:
            data = dict(arrays)
    arguments = [data.pop(f"argument_{i}") for i in range(count)]
    found = fault_of(parse_graph(text, data), arguments or None)
    print(found.what if found else "nothing is wrong")
    return int(found is not None)


def report(graph: Graph, arguments: Arguments, fault: Fault) -> Path:
    """Reduces a graph that fails so, and writes the program."""

    def fails(candidate: Graph, given: Arguments) -> bool:
        found = fault_of(candidate, given)
        return found is not None and found.kind == fault.kind

    small, given = reduced(graph, arguments, fails)
    again = fault_of(small, given) or fault
    return written(small, given, again.what)


def compile_reported(graph: Graph) -> CompiledGraph:
    """``compile_graph``; where that fails for a reason that lies in the compiler, the error names a program that shows
    it. Raises CompileError then."""
    try:
        return compile_graph(graph)
    except (TraceError, UnsupportedError, MemoryError):
        raise
    # NOTE: whatever is not the user's fault is the compiler's, and is reported.
    except Exception as error:
        what = error.what if isinstance(error, GraphcError) else f"{type(error).__name__}: {error}"
        path = report(graph, None, Fault(what, _kind(error)))
        raise CompileError(
            f"{what}; {path} shows it",
            where=getattr(error, "where", None),
            origin=getattr(error, "origin", None),
            remedy="please report it with that file",
        ) from error
