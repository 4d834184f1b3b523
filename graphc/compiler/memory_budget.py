"""Memory budgets: a training step whose temporaries fit so many bytes, by computing some values twice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from graphc.base import config
from graphc.base.errors import ArgumentError, MemoryLimitError
from graphc.base.sizes.size import hint
from graphc.codegen.machine.target import Target
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

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_TEXT = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-z]*|%)\s*", re.IGNORECASE)
_ATTEMPTS = 12
"""How many ways to meet a budget are planned in full before it is given up."""
_CLOSER = 0.99
"""By how much more than a plan was too large the next estimate has to be smaller."""
_LOW = 2
"""Where a loss is computed at least the most that is alive anywhere, divided by this, is alive."""


@dataclass(frozen=True)
class Budget:
    """Temporary memory that a program may take: bytes, or a share of what it takes without a budget."""

    text: str
    nbytes: int = 0
    share: float = 0.0

    @staticmethod
    def parse(given: int | str) -> Budget:
        """From bytes (``200_000_000``), a text with a unit (``"200MB"``, ``"1.5 GiB"``) or a share (``"70%"``)."""
        found = _TEXT.fullmatch(given) if isinstance(given, str) else None
        number, unit = (float(found[1]), found[2].lower()) if found else (0.0, "")
        if isinstance(given, int) and not isinstance(given, bool):
            number = float(given)
        if number <= 0 or (unit != "%" and unit not in _UNITS) or (unit == "%" and number > 100):
            raise ArgumentError(
                f"memory={given!r} is no memory budget",
                remedy='bytes, a text as "200MB", or a share of the plan as "70%"',
            )
        if unit == "%":
            return Budget(str(given), share=number / 100)
        return Budget(str(given), nbytes=int(number * _UNITS[unit]))

    def of(self, arena: int) -> int:
        """Bytes, where a program takes ``arena`` bytes without a budget."""
        return int(arena * self.share) if self.share else self.nbytes


@dataclass(frozen=True)
class Fitted:
    """A graph that fits a budget."""

    graph: Graph
    """The graph as it was given where it fits as it is, else an optimized one that computes the same."""
    report: MemoryReport


def fit_memory(graph: Graph, budget: Budget, target: Target, passes: Sequence[Pass] = PIPELINE) -> Fitted:
    """The graph of a training step, or of what else is read long after it was made, such that its memory plan takes no
    more than the budget; among the ways that were found the one that takes the least time, by estimate.

    Planned is the arena: all values between kernels, what products are packed into, scratch memory of kernels; not
    parameters, states, inputs and outputs. With named dimensions for expected sizes. Raises MemoryLimitError with the
    least that was reached when the budget cannot be met.
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
        """Bytes of the arena of an optimized graph."""
        return hint(Stages(graph, target=self.target).scheduled.arena)

    def run(self) -> Fitted:
        """The first way that fits, of those that are planned in full."""
        if self.before <= self.limit:
            return Fitted(self.given, report_of(self.given.name, self.limit, self.before, self.before))
        early = EarlyUpdates().run(self.optimized).graph
        lifetimes = Lifetimes(early, self.target.costs.fusion)
        found = Recomputation(lifetimes, _forward_end(lifetimes), self.target.roofline)
        reached: list[int] = []
        for choice in self._promising(found, reached):
            made = self._made(lifetimes, found.until, choice)
            reached.append(self.planned(made))
            self.log.info(
                "%s: %d values computed again, about %.1f ms: %d bytes of %d",
                *(self.given.name, len(choice.second.again), choice.nanoseconds / 1e6, reached[-1], self.limit),
            )
            if reached[-1] <= self.limit:
                return Fitted(made, report_of(self.given.name, self.limit, self.before, reached[-1], found, choice))
        raise MemoryLimitError(
            f"{self.given.name}: the memory budget {self.budget.text}, {self.limit} bytes, cannot be met: without one "
            f"the plan takes {self.before} bytes, and the least that was reached is {min(reached)}",
            remedy=f"memory={min(reached)}, or a smaller batch",
        )

    def _made(self, lifetimes: Lifetimes, until: int, choice: Choice) -> Graph:
        second = choice.second
        again = recompute(lifetimes.graph, lifetimes.place, until, second.again, lifetimes.is_stored, second.kept)
        return DeadCodeElimination().run(again).graph

    def _promising(self, found: Recomputation, reached: list[int]) -> Iterator[Choice]:
        """Choices whose estimate fits, the quickest first; after each that did not, the estimate is corrected by what
        its plan took. In the end those with the smallest estimates."""
        nothing = found.choice(Second())
        choices = {c.second: c for borders in found.segmentations() for c in found.choices(borders)}
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
    """The group behind which values are late: the one that computes the first output, which is the loss of a training
    step, where most is alive then; else the one at which most is."""
    alive = profile(lifetimes.spans(), len(lifetimes.plan.groups))
    most = max(alive, default=0)
    for output in lifetimes.graph.outputs[:1]:
        behind = lifetimes.behind(written_value(output))
        end = max((lifetimes.place.get(v.node, -1) for v in behind), default=-1)
        if end >= 0 and alive[end] * _LOW > most:
            return end
    return alive.index(most) if alive else -1
