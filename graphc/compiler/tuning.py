"""Tuning: measure settings and register blocks within a program, and keep those that make it faster."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from graphc.base.errors import CompileError
from graphc.base.records import dataclass
from graphc.codegen.machine.cuda.facts import is_gpu
from graphc.codegen.machine.settings import SETTINGS, Change, Setting, print_changes, with_changes
from graphc.codegen.machine.target import Target
from graphc.codegen.schedule.pipeline import Blocks, find_blocks
from graphc.compiler.cache import Cache
from graphc.compiler.duel import Duel, TimedProgram, bound_arrays, fight
from graphc.compiler.graph_programs import tuning_key
from graphc.compiler.profile import load_stamped
from graphc.compiler.ready import target_spec
from graphc.compiler.stages import Stages
from graphc.ir.graph.graph import Graph
from graphc.ir.kernel.statements import Program
from graphc.ir.op import Trait
from graphc.runtime.call import Executable
from graphc.runtime.profile import time_calls

BUDGET = 60.0
"""Seconds of a search without another budget."""
GAIN, TICKS = 1.03, 5e-8
"""Required speedup of a block over the estimate's choice, and required gain in seconds per call."""
TURNS, TURN_SECONDS, ROUNDS = 3, 0.3, 1000
"""Number of turns of each candidate block; seconds of a turn, and limit on its runs. The best run counts."""


@dataclass(frozen=True)
class TunedSetting:
    """The result for one setting."""

    setting: str
    changes: str
    """The changed costs."""
    outcome: str
    """``kept``, ``not faster``, ``no change`` (the program is the same), or ``not tried`` (the budget was spent)."""
    gain: float | None = None
    """Speedup of the whole program in its rounds, where it was timed."""
    wins: int = 0
    """Rounds in which the program was faster by the required factor."""
    rounds: int = 0


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
    key: str
    """Key of the program's settings in the cache; empty where settings do not apply."""
    settings: tuple[TunedSetting, ...]
    kernels: tuple[TunedKernel, ...]
    before: float
    """Seconds of a call of the program with the estimate's choices."""
    after: float
    """Seconds with the choices that won."""
    kept: bool
    """Whether the choices won against the estimate's: then they are used from now on."""
    changes: str
    """The changes of costs among these choices; empty for none."""
    blocks: bool
    """Whether register blocks are among these choices."""
    untried: int
    """Candidates for which the budget left no time; all blocks of products count as one."""
    seconds: float
    """Time of the search."""

    def choices(self) -> dict[str, str | None]:
        """Return the choices by key: None where the estimate's block stays, and empty text where all costs stay."""
        uses = self.kept and self.blocks
        labels = {k.key: k.chosen if uses and k.chosen != k.estimated else None for k in self.kernels}
        return {**labels, self.key: self.changes} if self.key else labels

    def as_json(self) -> dict[str, Any]:
        """Return plain data."""
        facts = {n: v for n, v in asdict(self).items() if n != "kernels"}
        return {**facts, "kernels": [{**asdict(k), "gain": k.gain} for k in self.kernels]}


def tune(
    stages: Stages,
    inputs: Sequence[np.ndarray],
    weights: Mapping[str, np.ndarray],
    disk: Cache | None = None,
    candidates: int = 6,
    seconds: float = BUDGET,
    tell: Callable[[str], None] = lambda text: None,
) -> Tuning:
    """Search for settings and register blocks that make a program faster, and keep the winners in ``disk``.

    Settings are tried one after the other, each within the whole program on as many threads as calls use. One that
    wins its duel (see ``compiler.duel``) stays for the next. Then the best ``candidates`` register blocks of every
    product are timed in place, on one thread. All those that make their kernel faster by GAIN must together make the
    program faster, in most rounds of another duel. In the end the choices must do so once more, against the program
    without any. No candidate begins after ``seconds``. For ``inputs``
    and ``weights`` see ``profile``. ``tell`` receives the present activity. Nothing is stored before the end.

    Raise CompileError for programs that no random arrays can time, and on machines with an unreadable cycle counter.
    """
    _check_timeable(stages)
    search = _ScheduleSearch(stages, inputs, weights, seconds, tell)
    settings = search.try_settings()
    kernels, blocks, untried = search.try_blocks(candidates)
    last = search.confirm()
    key = tuning_key(stages.traced) if search.has_settings else ""
    tuning = Tuning(
        stages.name,
        key,
        settings,
        kernels,
        last.before,
        last.after,
        last.is_won,
        print_changes(search.changes) if last.is_won else "",
        blocks,
        untried + sum(s.outcome == "not tried" for s in settings),
        search.elapsed,
    )
    if disk is not None:
        _store(tuning, disk, stages.machine)
    return tuning


def built_with(
    tuning: Tuning, stages: Stages, inputs: Sequence[np.ndarray], weights: Mapping[str, np.ndarray]
) -> TimedProgram:
    """Build the program with the choices of a search."""
    choices = {key: label for key, label in tuning.choices().items() if label}
    return TimedProgram(stages.again(stages.machine, choices), inputs, weights)


def _check_timeable(stages: Stages) -> None:
    """Raise CompileError for a program whose calls do more than compute, or whose end depends on values."""
    reason = ""
    if stages.has_graph and _has_while_loop(stages.traced):
        reason = "values decide how long it loops"
    elif any(kernel.host >= 0 for kernel in stages.lowered.kernels):
        reason = "it calls Python functions"
    if reason:
        raise CompileError(
            f"{stages.name} cannot be tuned with random arrays: {reason}", remedy="compile it without tuning"
        )


def _has_while_loop(graph: Graph) -> bool:
    stack = [graph]
    while stack:
        for node in stack.pop().nodes():
            if node.op.has(Trait.WHILE):
                return True
            stack += [node.attrs[a.name] for a in node.op.attrs if a.kind == "graph" and node.attrs[a.name] is not None]
    return False


def _store(tuning: Tuning, disk: Cache, machine: Target) -> None:
    """Store the choices of a search. One without time for all candidates replaces earlier choices only by winners."""
    spec, choices = target_spec(machine), tuning.choices()
    if tuning.untried and not tuning.kept and tuning.key in disk.choices(spec):
        del choices[tuning.key]
    disk.choose(spec, choices)


class _ScheduleSearch:
    """A search for a program, with the fastest program so far."""

    def __init__(
        self,
        stages: Stages,
        inputs: Sequence[np.ndarray],
        weights: Mapping[str, np.ndarray],
        seconds: float,
        tell: Callable[[str], None],
    ):
        self._start = time.perf_counter()
        self._seconds, self._tell, self._stages = seconds, tell, stages
        self._inputs, self._weights = inputs, weights
        tell("building the program without tuning")
        self._untuned = self._best = self._timed(stages.again(stages.machine, {}))
        self.changes: Change = {}
        """The changes of costs of the fastest program so far."""
        self.has_settings = stages.has_graph and not stages.is_extended and not is_gpu(stages.machine)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    def _timed(self, stages: Stages) -> TimedProgram:
        return TimedProgram(stages, self._inputs, self._weights)

    def try_settings(self) -> tuple[TunedSetting, ...]:
        """Try the settings that keep the promises of the target."""
        if not self.has_settings:
            return ()
        strict = self._stages.machine.costs.strict_order
        allowed = [s for s in SETTINGS if not (strict and s.lowers)]
        return tuple([self._try_setting(s, f"{i + 1} of {len(allowed)}") for i, s in enumerate(allowed)])

    def _try_setting(self, setting: Setting, number: str) -> TunedSetting:
        text = print_changes(setting.changes)
        if self.elapsed > self._seconds:
            return TunedSetting(setting.name, text, "not tried")
        self._tell(f"building setting {number}: {setting.name}")
        changes: Change = {**self.changes, **setting.changes}
        machine = self._stages.machine
        candidate = self._stages.again(replace(machine, costs=with_changes(machine.costs, changes)), {})
        if _code(candidate) == _code(self._best.stages):
            return TunedSetting(setting.name, text, "no change")
        program = self._timed(candidate)
        self._tell(f"timing setting {number}: {setting.name}")
        duel = fight(self._best.time, program.time)
        if duel.is_won:
            self._best, self.changes = program, changes
        outcome = "kept" if duel.is_won else "not faster"
        return TunedSetting(setting.name, text, outcome, duel.gain, duel.wins, duel.rounds)

    def try_blocks(self, candidates: int) -> tuple[tuple[TunedKernel, ...], bool, int]:
        """Time register blocks. Return the kernels, whether the fastest blocks won, and the number of untried steps."""
        base = self._best.stages
        blocks = find_blocks(base.lowered, base.target)
        most = min(candidates, max((len(b.labels) for b in blocks.values()), default=1))
        if not blocks:
            return (), False, 0
        bench = _Bench(base, self._inputs, self._weights)
        trials: list[_TuningTrial] = []
        for number in range(most):
            if self.elapsed > self._seconds:
                return (), False, 1
            self._tell(f"building block {number + 1} of {most} of each product")
            trials.append(bench.trial({b.key: b.labels[number] for b in blocks.values() if number < len(b.labels)}))
        for turn in range(TURNS if most > 1 else 1):
            for number, trial in enumerate(trials):
                if turn and self.elapsed > self._seconds:
                    break
                self._tell(f"timing block {number + 1} of {most} of each product, turn {turn + 1} of {TURNS}")
                bench.time(trial)
        kernels = tuple(_decide(name, tuning, trials) for name, tuning in blocks.items())
        chosen = {k.key: k.chosen for k in kernels if k.chosen != k.estimated}
        if not chosen:
            return kernels, False, 0
        self._tell("timing the fastest blocks together")
        program = self._timed(self._stages.again(base.target, chosen))
        # NOTE: each block is clearly faster already, but its kernel may take a small share of the program.
        if won := fight(self._best.time, program.time, gain=1.0).is_won:
            self._best = program
        return kernels, won, 0

    def confirm(self) -> Duel:
        """Return the duel of all choices together against the program without any."""
        if self._best is self._untuned:
            seconds = self._untuned.time()
            return Duel(seconds, seconds, 0, 0)
        self._tell("timing all choices once more")
        return fight(self._untuned.time, self._best.time, gain=1.0)


def _code(stages: Stages) -> tuple[str, str]:
    """Return the text from which the code of a program is built, and that of its prepacking program."""
    return stages.llvm, "" if stages.prepacking is None else stages.prepacking.llvm


@dataclass
class _TuningTrial:
    """A program with one choice for each kernel."""

    program: Program
    executable: Executable
    bound: tuple[np.ndarray, ...]
    calls: np.ndarray
    """Best seconds of each call so far."""

    def of(self, kernel: str) -> float:
        """Return the seconds of all calls of a kernel, including its packing."""
        names = (kernel, f"{kernel}_pack")
        return float(sum(t for t, call in zip(self.calls, self.program.calls, strict=True) if call.kernel in names))


class _Bench:
    """Builds and times programs that differ only in their register blocks."""

    def __init__(self, stages: Stages, inputs: Sequence[np.ndarray], weights: Mapping[str, np.ndarray]):
        self.stages, self.inputs, self.weights = stages, inputs, weights

    def trial(self, chosen: Mapping[str, str]) -> _TuningTrial:
        """Build the program with these choices."""
        stages = self.stages.again(self.stages.target, chosen)
        executable = load_stamped(stages)
        bound = bound_arrays(stages, executable, self.weights)
        count = len(stages.scheduled.calls)
        return _TuningTrial(stages.scheduled, executable, bound, np.full(count, np.inf))

    def time(self, trial: _TuningTrial) -> None:
        """Time a program once more."""
        times = time_calls(trial.executable, self.inputs, trial.bound, TURN_SECONDS, ROUNDS, quantile=0.0)
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
