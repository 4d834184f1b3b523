"""Memory budgets: training steps whose temporaries fit a limit, by computing some values twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphc.base import config
from graphc.base.errors import MemoryLimitError
from graphc.base.records import dataclass
from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
from graphc.compiler.budget import Budget
from graphc.compiler.memory_report import MemoryReport, report_of
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.passes.base import Pass
from graphc.passes.dce import DeadCodeElimination
from graphc.passes.operand_access import written_value
from graphc.passes.pipeline import PIPELINE, optimize
from graphc.passes.update_order import EarlyUpdates
from graphc.recompute.cut import Choice, Recomputation, Second
from graphc.recompute.lifetimes import Lifetimes, profile
from graphc.recompute.rewrite import recompute

_ATTEMPTS = 12
"""Limit on the candidates that are planned in full for one budget."""
_CLOSER = 0.99
"""Factor on the next estimate, so that it shrinks by more than the last plan exceeded the limit."""
_LOW = 2
"""Divisor of the peak: a loss counts as the end of the forward pass only where more than peak / _LOW is alive."""


@dataclass(frozen=True)
class Fitted:
    """A graph that fits a budget."""

    graph: Graph
    """The original graph where it fits, else an equivalent optimized one."""
    report: MemoryReport


def fit_memory(graph: Graph, budget: Budget, target: Target, passes: Sequence[Pass] = PIPELINE) -> Fitted:
    """Return an equivalent graph whose memory plan fits the budget: the fastest found, by estimate.

    It serves training steps, and other graphs that read values long after computing them. The plan covers the arena:
    all values between kernels, packed operands of products, scratch memory of kernels; not parameters, states, inputs
    and outputs. Named dimensions have their expected sizes. Raise MemoryLimitError with the smallest size reached when
    no graph fits.
    """
    return _Search(graph, budget, target, passes).run()


class _Search:
    def __init__(self, graph: Graph, budget: Budget, target: Target, passes: Sequence[Pass]):
        self.given, self.target, self.passes = graph, target, passes
        self.optimized = optimize(graph, passes, target.costs)
        self.before = self.planned(self.optimized)
        self.budget, self.limit = budget, budget.of(self.before)
        self.log = config.logger("compile")

    def planned(self, graph: Graph) -> int:
        """Return the bytes of the arena of an optimized graph."""
        return hint(Stages(graph, target=self.target).scheduled.arena)

    def run(self) -> Fitted:
        """Return the first fitting graph among those planned in full."""
        if self.before <= self.limit:
            return Fitted(self.given, report_of(self.given.name, self.limit, self.before, self.before))
        early = EarlyUpdates().run(self.optimized).graph
        lifetimes = Lifetimes(early, self.target.costs.fusion)
        recomputation = Recomputation(lifetimes, _forward_end(lifetimes), self.target.roofline)
        reached: list[int] = []
        for choice in self._promising(recomputation, reached):
            candidate = self._made(lifetimes, recomputation.until, choice)
            reached.append(self.planned(candidate))
            self.log.info(
                "%s: %d values computed again, about %.1f ms: %d bytes of %d",
                *(self.given.name, len(choice.second.again), choice.nanoseconds / 1e6, reached[-1], self.limit),
            )
            if reached[-1] <= self.limit:
                return Fitted(
                    candidate, report_of(self.given.name, self.limit, self.before, reached[-1], recomputation, choice)
                )
        raise MemoryLimitError(
            f"{self.given.name}: the memory budget {self.budget.text}, {self.limit} bytes, cannot be met: without one "
            f"the plan takes {self.before} bytes, and the smallest plan found takes {min(reached)}",
            remedy=f"pass memory={min(reached)}, or use a smaller batch",
        )

    def _made(self, lifetimes: Lifetimes, until: int, choice: Choice) -> Graph:
        second = choice.second
        again = recompute(lifetimes.graph, lifetimes.place, until, second.again, lifetimes.is_stored, second.kept)
        return DeadCodeElimination().run(again).graph

    def _promising(self, recomputation: Recomputation, reached: list[int]) -> Iterator[Choice]:
        """Yield choices whose estimate fits, fastest first, then those with the smallest estimates.

        After each failure, correct the estimate by the size of its plan.
        """
        nothing = recomputation.choice(Second())
        choices = {c.second: c for borders in recomputation.segmentations() for c in recomputation.choices(borders)}
        choices = {nothing.second: nothing, **choices}
        most = float(self.limit)
        for _ in range(_ATTEMPTS):
            fitting = [c for c in choices.values() if c.peak <= most]
            if not choices:
                return
            if fitting:
                choice = min(fitting, key=lambda c: (c.nanoseconds, c.peak))
            else:
                choice = min(choices.values(), key=lambda c: (c.peak, c.nanoseconds))
            del choices[choice.second]
            yield choice
            most = min(most, choice.peak * self.limit / reached[-1]) * _CLOSER


def _forward_end(lifetimes: Lifetimes) -> int:
    """Return the last group of the forward pass. Values after it are late.

    It computes the first output, which is the loss of a training step, if much memory is alive there; else it is the
    group with the most live memory.
    """
    alive = profile(lifetimes.spans(), len(lifetimes.plan.groups))
    most = max(alive, default=0)
    for output in lifetimes.graph.outputs[:1]:
        dependents = lifetimes.behind(written_value(output))
        end = max((lifetimes.place.get(v.node, -1) for v in dependents), default=-1)
        if end >= 0 and alive[end] * _LOW > most:
            return end
    return alive.index(most) if alive else -1
