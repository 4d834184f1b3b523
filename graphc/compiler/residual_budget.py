"""Budgets of residuals: forward programs that pass limited bytes to their backward programs."""

from __future__ import annotations

from collections.abc import Sequence

from graphc.base.errors import MemoryLimitError
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
from graphc.compiler.budget import Budget
from graphc.compiler.memory_report import MemoryReport, report_of
from graphc.ir.graph.graph import Graph
from graphc.ir.graph.interpret import live_nodes
from graphc.ir.op import Trait
from graphc.ops.autodiff import Split, split_forward_backward
from graphc.passes.base import Pass
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.pipeline import PIPELINE, optimize
from graphc.recompute.cut import Choice, Second
from graphc.recompute.residuals import ResidualRecomputation, TwoParts
from graphc.recompute.rewrite import recompute


@dataclass(frozen=True)
class FittedSplit:
    """The forward and backward graphs, and the report."""

    split: Split
    report: MemoryReport
    is_optimized: bool
    """Whether the passes have run on them."""


def split_within(
    joint: Graph, inputs: int, outputs: int, budget: Budget, target: Target, passes: Sequence[Pass] = PIPELINE
) -> FittedSplit:
    """Split a graph into forward and backward (see ``split_forward_backward``) with residuals that fit the budget.

    A percentage refers to the residuals without a budget. Inputs, parameters and states do not count. Raise
    MemoryLimitError where no split fits.
    """
    plain = split_forward_backward(joint, inputs, outputs)
    before = _handed(plain, outputs)
    limit = budget.of(before)
    name = joint.name
    if before <= limit:
        return FittedSplit(plain, report_of(name, limit, before, before), False)
    optimized = optimize(joint, passes, target.costs)
    two_parts = TwoParts(optimized, _forward_nodes(optimized, inputs, outputs), target.costs.fusion)
    recomputation = ResidualRecomputation(two_parts, target.roofline)
    least = before
    for choice in sorted(
        [recomputation.choice(Second()), *recomputation.choices(())], key=lambda c: (c.nanoseconds, c.peak)
    ):
        if choice.peak > limit and choice.peak >= least:
            continue
        split = split_forward_backward(_made(two_parts, choice), inputs, outputs)
        handed = _handed(split, outputs)
        least = min(least, handed)
        if handed <= limit:
            return FittedSplit(split, report_of(name, limit, before, handed, recomputation, choice), True)
    raise MemoryLimitError(
        f"{name}: the memory budget {budget.text}, {limit} bytes of values that forward keeps for backward, cannot be "
        f"met: without one they take {before} bytes, and the smallest split found takes {least}",
        remedy=f"pass memory={least}, or use a smaller batch",
    )


def _made(two_parts: TwoParts, choice: Choice) -> Graph:
    second = choice.second
    again = recompute(two_parts.graph, two_parts.place, two_parts.until, second.again, two_parts.is_late, second.kept)
    return DeadCodeElimination().run(again).graph


def _forward_nodes(graph: Graph, inputs: int, outputs: int) -> set:
    """Return the nodes of the forward program: dependencies of its outputs, and its effects."""
    late = {v.node for v in graph.inputs[inputs:]}
    effects = []
    for node in graph.nodes():
        if any(v.node in late for v in node.operands):
            late.add(node)
        elif not node.op.has(Trait.PURE):
            effects += node.results
    return live_nodes(graph, [*graph.outputs[:outputs], *effects])


def _handed(split: Split, outputs: int) -> int:
    return sum(hint(v.type.nbytes) for v in dict.fromkeys(split.forward.outputs[outputs:]))
