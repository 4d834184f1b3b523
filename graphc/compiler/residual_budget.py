"""Budgets of residuals: a forward program that hands its backward program no more than so many bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphc.base.errors import MemoryLimitError
from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
from graphc.compiler.memory_budget import Budget
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
    """The two parts of a graph, and what was chosen."""

    split: Split
    report: MemoryReport
    is_optimized: bool
    """Whether the passes have run on them."""


def split_within(
    joint: Graph, inputs: int, outputs: int, budget: Budget, target: Target, passes: Sequence[Pass] = PIPELINE
) -> FittedSplit:
    """As ``split_forward_backward``, with residuals that take no more than the budget; a share is one of what they take
    without. Raises MemoryLimitError where that cannot be: inputs, parameters and states are no residuals."""
    plain = split_forward_backward(joint, inputs, outputs)
    before = _handed(plain, outputs)
    limit = budget.of(before)
    name = joint.name
    if before <= limit:
        return FittedSplit(plain, report_of(name, limit, before, before), False)
    optimized = optimize(joint, passes, target.costs)
    parts = TwoParts(optimized, _forward_nodes(optimized, inputs, outputs), target.costs.fusion)
    found = ResidualRecomputation(parts, target.roofline)
    least = before
    for choice in sorted([found.choice(Second()), *found.choices(())], key=lambda c: (c.nanoseconds, c.peak)):
        if choice.peak > limit and choice.peak >= least:
            continue
        split = split_forward_backward(_made(parts, choice), inputs, outputs)
        handed = _handed(split, outputs)
        least = min(least, handed)
        if handed <= limit:
            return FittedSplit(split, report_of(name, limit, before, handed, found, choice), True)
    raise MemoryLimitError(
        f"{name}: the memory budget {budget.text}, {limit} bytes of what forward keeps for backward, cannot be met: "
        f"without one that is {before} bytes, and the least that was reached is {least}",
        remedy=f"memory={least}, or a smaller batch",
    )


def _made(parts: TwoParts, choice: Choice) -> Graph:
    second = choice.second
    again = recompute(parts.graph, parts.place, parts.until, second.again, parts.is_late, second.kept)
    return DeadCodeElimination().run(again).graph


def _forward_nodes(graph: Graph, inputs: int, outputs: int) -> set:
    """Nodes of the forward program: what its outputs need, and its effects."""
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
