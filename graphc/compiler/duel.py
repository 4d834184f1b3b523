"""Duels: time two programs of one graph in alternating rounds, and let the new one win only by a clear margin."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median

import numpy as np

from graphc.base.errors import CompileError, GraphcError
from graphc.base.records import dataclass
from graphc.compiler.cache import CacheEntry
from graphc.compiler.compile import describe
from graphc.compiler.ready import load_ready
from graphc.compiler.stages import Stages
from graphc.files.manifest import PREPACKED
from graphc.runtime.call import Executable
from graphc.runtime.threads import get_num_threads

GAIN, WINS, ROUNDS = 1.03, 7, 9
"""Speedup that wins a round, and how many of the rounds a new program has to win."""
ROUND_SECONDS = 0.05
"""Time for the calls of one program in a round; the fastest one counts."""
BATCH_SECONDS = 1e-4
"""Time of the calls that are timed together, so that the clock takes little of it: 2 us where the kernel is asked."""


class TimedProgram:
    """A built program with arrays for its calls. Calls write to copies, which each round starts from afresh."""

    def __init__(self, stages: Stages, inputs: Sequence[np.ndarray], weights: Mapping[str, np.ndarray]):
        self.stages = stages
        self._program = _loaded(stages)
        self._inputs, self._bound = inputs, bound_arrays(stages, self._program, weights)
        pairs = zip(self._program.bound, self._bound, strict=True)
        self._written = [(array, array.copy()) for spec, array in pairs if spec.written]
        # NOTE: on one thread, processor time leaves out the time of other programs on the core.
        self._clock = time.thread_time if get_num_threads() == 1 else time.perf_counter
        try:
            self._outputs = self._program.run(self._inputs, self._bound)
        except GraphcError as error:
            what = f"{stages.name} cannot be tuned with random arrays: {error.what}"
            raise CompileError(what, remedy="compile it without tuning") from error
        self._batch = 1
        self._batch = max(1, int(BATCH_SECONDS / self.time(0.0)))

    def time(self, seconds: float = ROUND_SECONDS) -> float:
        """Return the seconds of a call: of the fastest ones that fit into ``seconds``, one at least."""
        for array, initial in self._written:
            np.copyto(array, initial)
        shortest, end = float("inf"), time.perf_counter() + seconds
        while True:
            start = self._clock()
            for _ in range(self._batch):
                self._program.run(self._inputs, self._bound, self._outputs)
            shortest = min(shortest, (self._clock() - start) / self._batch)
            if time.perf_counter() >= end:
                return shortest


def _loaded(stages: Stages) -> Executable:
    manifest, constants = describe(stages.scheduled, stages.target)
    return load_ready(CacheEntry(manifest, stages.object, constants))


def bound_arrays(stages: Stages, program: Executable, weights: Mapping[str, np.ndarray]) -> tuple[np.ndarray, ...]:
    """Return copies of the arrays that a program is bound to, and what its prepacking program makes of weights."""
    arrays = dict(weights)
    if stages.prepacking is not None:
        first = _loaded(stages.prepacking)
        packed = first.run([weights[spec.path] for spec in first.inputs])
        arrays |= {PREPACKED + spec.name: array for spec, array in zip(first.outputs, packed, strict=True)}
    return tuple([np.array(arrays[spec.path]) for spec in program.bound])


@dataclass(frozen=True)
class Duel:
    """The result of a duel."""

    before: float
    """Seconds of a call of the old program, the median of the rounds."""
    after: float
    """Seconds of a call of the new program."""
    wins: int
    """Rounds that the new program won."""
    rounds: int
    """Rounds until the result was certain."""

    @property
    def is_won(self) -> bool:
        """Whether the new program won."""
        return self.wins >= WINS

    @property
    def gain(self) -> float:
        """Speedup of the new program."""
        return self.before / self.after if self.after else 1.0


def fight(old: Callable[[], float], new: Callable[[], float], gain: float = GAIN) -> Duel:
    """Time two programs in alternating rounds until the new one has won, or can win no more.

    The new program wins a round in which it is faster by ``gain``. ``old`` and ``new`` return the seconds of a
    program's call in a round. The program that begins alternates too.
    """
    times: list[tuple[float, float]] = []
    wins = 0
    while wins < WINS and len(times) - wins <= ROUNDS - WINS:
        if len(times) % 2:
            after, before = new(), old()
        else:
            before, after = old(), new()
        times.append((before, after))
        wins += after * gain < before
    return Duel(median([t[0] for t in times]), median([t[1] for t in times]), wins, len(times))
