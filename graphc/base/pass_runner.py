"""The loop that runs the passes of both pipelines: it verifies, prints and times, and names the pass that fails."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

from graphc.base import config
from graphc.base.errors import GraphcError, PassError


class Named(Protocol):
    """What the loop asks of a pass; what it takes and returns is the business of its pipeline."""

    @property
    def name(self) -> str:
        """The name under which options, errors and logs mention the pass."""
        ...


P = TypeVar("P", bound=Named)
T = TypeVar("T")


SEEN: set[str] = set()
"""Names of all passes that have run in this process, those of users too."""


@dataclass(frozen=True)
class PassRun:
    """What one pass of a pipeline did to one graph, program or nest."""

    name: str
    changed: int
    """How many nodes, kernels, calls or decisions are not as they were; 0 where it found nothing to do."""
    seconds: float
    reasons: tuple[str, ...] = ()
    """Why it chose what it chose, a line for each choice."""
    steps: tuple[PassRun, ...] = ()
    """For a pass that runs a list of its own on each kernel: what each step did to all of them together."""


def added_up(runs: Iterable[PassRun]) -> tuple[PassRun, ...]:
    """One run for each name, with changes and times added up, without reasons."""
    found: dict[str, PassRun] = {}
    for run in runs:
        known = found.get(run.name, PassRun(run.name, 0, 0.0))
        found[run.name] = PassRun(run.name, known.changed + run.changed, known.seconds + run.seconds)
    return tuple(found.values())


class Outcome(NamedTuple, Generic[T]):
    """What the application of a pass gives."""

    left: T
    changed: int
    reasons: tuple[str, ...] = ()
    steps: tuple[PassRun, ...] = ()


@dataclass(frozen=True)
class Runner(Generic[P, T]):
    """How the passes of one pipeline are run."""

    run: Callable[[P, T], Outcome[T]]
    """Applies a pass."""
    verify: Callable[[T], None]
    text: Callable[[T], str]
    is_stage: bool = True
    """Whether what the last pass leaves is the end of a stage, and verified with GRAPHC_VERIFY=stage."""

    def __call__(self, passes: Sequence[P], given: T) -> tuple[T, list[PassRun]]:
        """What the passes leave, one after the other, and what each of them did.

        With GRAPHC_VERIFY=pass each result is verified; those of GRAPHC_PRINT_AFTER are printed to stderr. Raises
        PassError, naming the pass and those before it, when one fails or leaves something wrong."""
        options = config.read()
        ends = self.is_stage and options.verify == "stage"
        present, runs = given, list[PassRun]()
        for i, step in enumerate(passes):
            SEEN.add(step.name)
            start = time.perf_counter()
            try:
                present, changed, reasons, steps = self.run(step, present)
                seconds = time.perf_counter() - start
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
        remedy="GRAPHC_VERIFY=pass GRAPHC_PRINT_AFTER=all shows what every pass leaves",
    )
