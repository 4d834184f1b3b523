"""Tuning: time candidate register blocks of a program's products, and keep those that beat the estimate's choice."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from graphc.base.records import dataclass
from graphc.codegen.schedule.pipeline import Blocks, find_blocks
from graphc.compiler.cache import Cache
from graphc.compiler.profile import load_stamped
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.ir.kernel.statements import Program
from graphc.runtime.call import Executable
from graphc.runtime.profile import time_calls

GAIN, TICKS = 1.03, 5e-8
"""Required speedup over the estimate's choice, and required gain in seconds per call."""
TURNS, ROUNDS = 3, 1000
"""Number of turns of each candidate, and limit on the runs of a turn; the best run counts."""


@dataclass(frozen=True)
class TunedKernel:
    """The result for one kernel with a sum of products."""

    kernel: str
    """Name in the program, as in ``explain``."""
    key: str
    calls: int
    candidates: int
    """Number of timed register blocks."""
    estimated: str
    """The estimate's choice: rows x vectors, axes, packed operands."""
    chosen: str
    estimated_seconds: float
    """Time of all calls in one run of the program, with packing."""
    seconds: float

    @property
    def gain(self) -> float:
        """Speedup of the chosen block."""
        return self.estimated_seconds / self.seconds if self.seconds else 1.0


@dataclass(frozen=True)
class Tuning:
    """The result for a program."""

    name: str
    kernels: tuple[TunedKernel, ...]
    before: float
    """Seconds of the program with the estimate's choices, on one thread."""
    after: float
    """Seconds with the tuned choices."""

    @property
    def kept(self) -> bool:
        """Whether the program became faster: then the choices are used from now on."""
        return self.after < self.before and any(k.chosen != k.estimated for k in self.kernels)

    def choices(self) -> dict[str, str | None]:
        """Return labels by key; None where the estimate's choice stays."""
        return {k.key: k.chosen if self.kept and k.chosen != k.estimated else None for k in self.kernels}

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        kernels = [{**asdict(k), "gain": k.gain} for k in self.kernels]
        return {"name": self.name, "before": self.before, "after": self.after, "kept": self.kept, "kernels": kernels}


def tune(
    stages: Stages,
    inputs: Sequence[np.ndarray],
    weights: Mapping[str, np.ndarray],
    disk: Cache | None = None,
    candidates: int = 6,
    seconds: float = 0.3,
    tell: Callable[[str], None] = lambda text: None,
) -> Tuning:
    """Time the best ``candidates`` register blocks of every product of a program, and keep the winners in ``disk``.

    Blocks run in place on one thread, for about ``seconds`` each time. For ``inputs`` and ``weights`` see ``profile``.
    ``tell`` receives the present activity. Raise CompileError on machines with an unreadable cycle counter.
    """
    blocks = find_blocks(stages.lowered, stages.target)
    bench = _Bench(stages, inputs, weights, seconds)
    most = min(candidates, max((len(b.labels) for b in blocks.values()), default=1))
    trials: list[_TuningTrial] = []
    for number in range(most):
        tell(f"building candidate {number + 1} of {most}")
        trials.append(bench.trial({b.key: b.labels[number] for b in blocks.values() if number < len(b.labels)}))
    for turn in range(TURNS if most > 1 else 1):
        for number, trial in enumerate(trials):
            tell(f"timing candidate {number + 1} of {most}, turn {turn + 1} of {TURNS}")
            bench.time(trial)
    kernels = tuple(_decide(name, tuning, trials) for name, tuning in blocks.items())
    chosen = {k.key: k.chosen for k in kernels if k.chosen != k.estimated}
    before = after = trials[0].total
    if chosen:
        tell("timing the choice")
        last = bench.trial(chosen)
        for _ in range(TURNS):
            bench.time(trials[0])
            bench.time(last)
        before, after = trials[0].total, last.total
    tuning = Tuning(stages.scheduled.name, kernels, before, after)
    if disk is not None:
        disk.choose(target_spec(stages.target), tuning.choices())
    return tuning


@dataclass
class _TuningTrial:
    """A program with one choice for each kernel."""

    program: Program
    executable: Executable
    bound: tuple[np.ndarray, ...]
    calls: np.ndarray
    """Best seconds of each call so far."""

    @property
    def total(self) -> float:
        """Seconds of all calls."""
        return float(self.calls.sum())

    def of(self, kernel: str) -> float:
        """Return the seconds of all calls of a kernel, including its packing."""
        names = (kernel, f"{kernel}_pack")
        return float(sum(t for t, call in zip(self.calls, self.program.calls, strict=True) if call.kernel in names))


class _Bench:
    """Builds and times programs that differ only in their register blocks."""

    def __init__(self, stages: Stages, inputs: Sequence[np.ndarray], weights: Mapping[str, np.ndarray], seconds: float):
        self.stages, self.inputs, self.weights, self.seconds = stages, inputs, weights, seconds

    def trial(self, chosen: Mapping[str, str]) -> _TuningTrial:
        """Build the program with these choices."""
        stages = Stages(lowered=self.stages.lowered, target=self.stages.target, tuned=chosen)
        executable = load_stamped(stages)
        bound = tuple(np.array(self.weights[spec.path]) for spec in executable.bound)
        count = len(stages.scheduled.calls)
        return _TuningTrial(stages.scheduled, executable, bound, np.full(count, np.inf))

    def time(self, trial: _TuningTrial) -> None:
        """Time a program once more."""
        times = time_calls(trial.executable, self.inputs, trial.bound, self.seconds, ROUNDS, quantile=0.0)
        trial.calls = np.minimum(trial.calls, times.calls)


def _decide(name: str, blocks: Blocks, trials: Sequence[_TuningTrial]) -> TunedKernel:
    """Return the fastest candidate of a kernel, or the estimate's choice where none is clearly faster."""
    timed = list(zip(blocks.labels, (trial.of(name) for trial in trials), strict=False))
    estimated, spent = timed[0]
    label, best = min(timed, key=lambda item: item[1])
    calls = sum(call.kernel == name for call in trials[0].program.calls)
    if best * GAIN > spent or spent - best < TICKS * calls:
        label, best = estimated, spent
    return TunedKernel(name, blocks.key, calls, len(timed), estimated, label, spent, best)
