"""Report faults of the compiler: reduce the graph, write it as a case, and name the command that runs it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from graphc.base.errors import CompileError, GraphcError, TraceError, UnsupportedError
from graphc.base.sizes.size_limits import question_behind
from graphc.checks.check_case import COMPILE, write_case
from graphc.checks.pass_check import Fault
from graphc.checks.pass_points import Point
from graphc.checks.reduce import Arguments, CompilerFault, fault_of, kind_of, reduced
from graphc.compiler.compile import CompiledGraph, compile_graph
from graphc.ir.graph.graph import Graph


def written(graph: Graph, arguments: Arguments, what: str) -> Path:
    """Write a graph that does not compile, or whose native code is wrong on ``arguments``, to a new folder."""
    fault = Fault(graph.name, Point(COMPILE, 0, COMPILE), what, "", graph, tuple(map(np.asarray, arguments or ())))
    return write_case(fault, expected=())


def report(graph: Graph, arguments: Arguments, fault: CompilerFault) -> Path:
    """Reduce a failing graph, and write it."""

    def fails(candidate: Graph, arguments_now: Sequence[np.ndarray] | None) -> bool:
        candidate_fault = fault_of(candidate, arguments_now)
        return candidate_fault is not None and candidate_fault.kind == fault.kind

    small, arguments_now = reduced(graph, arguments, fails)
    final = fault_of(small, arguments_now) or fault
    return written(small, arguments_now, final.what)


def compile_reported(graph: Graph) -> CompiledGraph:
    """Compile a graph. On a compiler fault, write a case and raise CompileError, which names the command to run it."""
    try:
        return compile_graph(graph)
    except (TraceError, UnsupportedError, MemoryError):
        raise
    # NOTE: any other exception is a fault of the compiler, and is reported.
    except Exception as error:
        if question_behind(error) is not None:
            raise  # the trace can answer it, which makes another graph
        what = error.what if isinstance(error, GraphcError) else f"{type(error).__name__}: {error}"
        path = report(graph, None, CompilerFault(what, kind_of(error)))
        raise CompileError(
            f"{what}; graphc check {path} reproduces it",
            where=getattr(error, "where", None),
            origin=getattr(error, "origin", None),
            remedy="please report it with that file and the .npz file next to it",
        ) from error
