"""The pipeline: the passes that an optimized graph has gone through, in order, and the loop that runs them."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from graphc.base import config
from graphc.base.errors import GraphcError, PassError
from graphc.ir.graph.graph import INPUT, Graph
from graphc.ir.graph.interpret import copy
from graphc.ir.graph.text import print_graph
from graphc.ir.graph.verify import verify_graph
from graphc.passes.base import Pass
from graphc.passes.batchnorm import BatchNormFolding
from graphc.passes.canonicalize import Canonicalize
from graphc.passes.checks import SettleChecks
from graphc.passes.cse import CommonSubexpressionElimination
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.decompose import Decompose
from graphc.passes.fold import ConstantFolding
from graphc.passes.padded_sums import JoinPaddedParts
from graphc.passes.recompute import Recompute
from graphc.passes.scans import MergeScans, OptimizeSteps, PruneScans
from graphc.passes.winograd import Winograd

_SIMPLIFY: tuple[Pass, ...] = (
    Canonicalize(),
    ConstantFolding(),
    CommonSubexpressionElimination(),
    DeadCodeElimination(),
)
PIPELINE: tuple[Pass, ...] = (
    # Small first: everything after it has less to look at.
    DeadCodeElimination(),
    Canonicalize(),
    ConstantFolding(),
    CommonSubexpressionElimination(),
    SettleChecks(),
    # A scan and the run of its step for its gradient; then the backward step asks for less of the forward one.
    MergeScans(),
    OptimizeSteps(_SIMPLIFY),
    PruneScans(),
    # From here on the graph is not differentiated any more.
    Decompose(),
    JoinPaddedParts(),
    Canonicalize(),
    BatchNormFolding(),
    # What decomposition and folding left: constants of weights, views of views, equal paddings.
    ConstantFolding(),
    Canonicalize(),
    Winograd(),
    CommonSubexpressionElimination(),
    SettleChecks(),
    DeadCodeElimination(),
    OptimizeSteps(_SIMPLIFY),
    PruneScans(),
    DeadCodeElimination(),
    # Last, for it makes equal nodes.
    Recompute(),
)
"""What ``optimize`` does, top to bottom."""


def optimize(graph: Graph, passes: Sequence[Pass] = PIPELINE) -> Graph:
    """A new graph of the same inputs, outputs and effects that went through ``passes``; ``graph`` stays as it is.

    Verifies the result, and with GRAPHC_VERIFY=pass the graph after every pass; prints it to stderr after those of
    GRAPHC_PRINT_AFTER. Raises PassError, naming the pass and those before it, when one fails or leaves a wrong graph.
    """
    options = config.read()
    present = copy(graph)
    for i, step in enumerate(passes):
        try:
            present = step.run(present).graph
            if options.verify == "pass" or (options.verify == "stage" and i == len(passes) - 1):
                verify_graph(present)
        except GraphcError as error:
            raise _failure(passes, i, error) from error
        if step.name in options.print_after or "all" in options.print_after:
            print(f"// after pass {i + 1}, {step.name}\n{print_graph(present)}", file=sys.stderr)
    _name_outputs(graph, present)
    return present


def _name_outputs(before: Graph, after: Graph) -> None:
    """Gives outputs their old names back where something simpler took their place."""
    taken = {v.name for v in (*after.inputs, *(r for n in after.nodes() for r in n.results))}
    for old, new in zip(before.outputs, after.outputs, strict=True):
        if old.name not in taken and new.node.op is not INPUT and not new.is_scalar_constant:
            after.rename(new, old.name)
            taken.add(old.name)


def _failure(passes: Sequence[Pass], i: int, error: GraphcError) -> PassError:
    before = ", ".join(p.name for p in passes[:i]) or "none"
    return PassError(
        f"pass {passes[i].name} failed (passes before it: {before}): {error.what}",
        where=error.where,
        origin=error.origin,
        remedy="GRAPHC_VERIFY=pass GRAPHC_PRINT_AFTER=all shows the graph after every pass",
    )
