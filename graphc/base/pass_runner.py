"""Pass runner of both pipelines: runs, verifies, prints and times passes, and names the pass that fails."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from graphc.base import config
from graphc.base.errors import GraphcError, PassError
from graphc.base.progress import PASS, note
from graphc.base.records import dataclass


class Named(Protocol):
    """Pass as the runner needs it; its input and output types depend on the pipeline."""

    @property
    def name(self) -> str:
        """Name of the pass in options, errors and logs."""
        ...


P = TypeVar("P", bound=Named)
T = TypeVar("T")


SEEN: set[str] = set()
"""Names of all passes that have run in this process, users' passes included."""


@dataclass(frozen=True)
class PassRun:
    """Record of one pass that ran on one graph, program or nest."""

    name: str
    changed: int
    """Number of nodes, kernels, calls or decisions that the pass changed."""
    seconds: float
    reasons: tuple[str, ...] = ()
    """Reasons for its choices, a line each."""
    steps: tuple[PassRun, ...] = ()
    """For a pass that runs its own list of passes on each kernel: the totals of each of those."""


def added_up(runs: Iterable[PassRun]) -> tuple[PassRun, ...]:
    """Merge the runs of each name into one with total changes and time; reasons are dropped."""
    totals: dict[str, PassRun] = {}
    for run in runs:
        total = totals.get(run.name, PassRun(run.name, 0, 0.0))
        totals[run.name] = PassRun(run.name, total.changed + run.changed, total.seconds + run.seconds)
    return tuple(totals.values())


class Outcome(NamedTuple, Generic[T]):
    """Result of a pass: the new IR, and the changes."""

    left: T
    changed: int
    reasons: tuple[str, ...] = ()
    steps: tuple[PassRun, ...] = ()


@dataclass(frozen=True)
class PipelineRunner(Generic[P, T]):
    """Functions by which one pipeline applies, verifies and prints."""

    run: Callable[[P, T], Outcome[T]]
    """Apply a pass."""
    verify: Callable[[T], None]
    text: Callable[[T], str]
    is_stage: bool = True
    """Whether the last pass ends a stage, whose result GRAPHC_VERIFY=stage verifies."""

    def __call__(self, passes: Sequence[P], subject: T) -> tuple[T, list[PassRun]]:
        """Run passes in order; return the result and the record of each pass.

        GRAPHC_VERIFY=pass verifies each result; GRAPHC_PRINT_AFTER prints results to stderr. Raises PassError with the
        names of the failing pass and of those before it.
        """
        options = config.read()
        ends = self.is_stage and options.verify == "stage"
        present, runs = subject, list[PassRun]()
        for i, step in enumerate(passes):
            SEEN.add(step.name)
            start = time.perf_counter()
            try:
                present, changed, reasons, steps = self.run(step, present)
                seconds = time.perf_counter() - start
                note(PASS, step.name, start, changed=changed)
                if options.verify == "pass" or (ends and i == len(passes) - 1):
                    self.verify(present)
            except GraphcError as error:
                raise _failure(passes, i, error) from error
            runs.append(PassRun(step.name, changed, seconds, reasons, steps))
            config.logger("passes").debug("%s: %d changes, %.1f ms", step.name, changed, 1e3 * seconds)
            if step.name in options.print_after or "all" in options.print_after:
                print(f"// after pass {i + 1}, {step.name}\n{self.text(present)}", file=sys.stderr)
        return present, runs


def _failure(passes: Sequence[Named], i: int, error: GraphcError) -> PassError:
    before = ", ".join(p.name for p in passes[:i]) or "none"
    return PassError(
        f"pass {passes[i].name} failed (passes before it: {before}): {error.what}",
        where=error.where,
        origin=error.origin,
        remedy=error.remedy or "set GRAPHC_VERIFY=pass GRAPHC_PRINT_AFTER=all to see the result of every pass",
    )
