"""check: every stage of compiling a model against the meaning of its trace."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.compiler.check import Report, check_graph
from graphc.ir.graph import input_class, input_path
from graphc.model_file import snapshot
from graphc.structure import flatten


def check(model: Any, *examples: Any, rtol: float | None = None, atol: float | None = None) -> Report:
    """Traces a module or function on example tensors or arrays and compares the optimized graph, the kernels and the
    native code with the numpy meaning of the trace, on these examples.

    ``print(report)`` shows the largest differences per stage and the first bad node with the user's line;
    ``report.good`` says whether all is well. Nothing is written to the model. Raises what tracing raises.
    """
    traced = snapshot(model, examples)
    tensors, _ = flatten((examples, {}))
    given = dict(zip(traced.inputs, (np.array(t.detach().numpy()) for t in tensors), strict=True))
    state = traced.state()
    arguments = [state[input_path(v)] if input_class(v) != "input" else given[v] for v in traced.graph.inputs]
    return check_graph(traced.graph, arguments, rtol=rtol, atol=atol)
