"""One training loop, measured in a process of its own: ``training_row KEY CONTENDERS ROUNDS SECONDS``."""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.sweep import OWN, Result, difference, measure
from benchmarks.models.loops import LOOPS, Batch, Loop
from benchmarks.workers.peer import first_line

STEPS, BATCHES = 5, 4
"""Steps whose losses are compared, and batches that the loop repeats."""
EAGER, INDUCTOR, ORDINARY, NARROW, AUTOCAST = "eager", "inductor", "graphc loop", "graphc bf16", "eager bf16"
NAMES = (OWN, NARROW, ORDINARY, EAGER, AUTOCAST, INDUCTOR)
TORCH = (EAGER, AUTOCAST, INDUCTOR)


class Run:
    """A loop as one contender runs it."""

    def __init__(self, key: str, name: str, weights: Sequence[Any] = ()):
        self.framework: ModuleType = graphc if name.startswith(OWN) else importlib.import_module("torch")
        self.framework.manual_seed(0)
        self.loop = LOOPS[key](self.framework, self._wrapper(name))
        for module, arrays in zip(self.loop.modules, weights, strict=False):
            module.load_state_dict({path: self.framework.tensor(array) for path, array in arrays.items()})
        self.call: Callable[..., Any] = self.loop.micro_step
        if name in (OWN, NARROW):
            self.call = graphc.compile(self.loop.micro_step, **({"precision": "bf16"} if name == NARROW else {}))
        if name == AUTOCAST:
            self.call = self.framework.autocast("cpu", dtype=self.framework.bfloat16)(self.loop.micro_step)
        self.batches = self._repeat(key)

    def _wrapper(self, name: str) -> Callable[[Any], Any]:
        if name == ORDINARY:
            return graphc.compile
        return partial(self.framework.compile, dynamic=False) if name == INDUCTOR else lambda module: module

    def _repeat(self, key: str) -> Iterator[tuple[Any, ...]]:
        batches = [tuple(map(self.framework.tensor, batch)) for batch in batches_of(LOOPS[key])]
        while True:
            yield from batches

    def weights(self) -> list[dict[str, np.ndarray]]:
        """Return copies of the models' weights, by path."""
        return [{path: np.array(v.detach().numpy()) for path, v in m.state_dict().items()} for m in self.loop.modules]

    def step(self) -> np.ndarray:
        """Make one update; return the loss of its last micro-batch."""
        count = self.loop.micro_batches
        for index in range(count):
            loss = self.call(*next(self.batches), *([index == count - 1] if count > 1 else []))
        self.loop.rest()
        return np.array(loss.detach().numpy())


def batches_of(loop: type[Loop]) -> list[Batch]:
    """Return the batches of a loop, the same ones each time."""
    random = np.random.default_rng(0)
    return [loop.batch(random) for _ in range(BATCHES * loop.micro_batches)]


def run(key: str, names: Sequence[str], rounds: int, seconds: float) -> Result:
    """Return a loop's row; times are those of a whole update."""
    start = Run(key, OWN if set(TORCH).isdisjoint(names) else EAGER).weights()
    result = Result(key, {"first_s": {}, "losses": {}, "parameters": sum(a.size for w in start for a in w.values())})

    def make(name: str) -> Callable[[], Any]:
        begin = time.perf_counter()
        running = Run(key, name, start)
        losses = [running.step()]
        result.facts["first_s"][name] = time.perf_counter() - begin
        losses += [running.step() for _ in range(STEPS - 1)]
        result.facts["losses"][name] = [float(x) for x in losses]
        return running.step

    measure(result, {name: partial(make, name) for name in names}, rounds, seconds)
    losses = {name: [np.array(values)] for name, values in result.facts["losses"].items()}
    reference = EAGER if EAGER in losses else next(iter(losses), "")
    result.errors = {
        name: difference(values, losses[reference]) for name, values in losses.items() if name != reference
    }
    return result


def main(argv: Sequence[str]) -> int:
    """Print the row as one line of JSON; output of libraries goes to stderr."""
    warnings.simplefilter("ignore")
    key, names, rounds, seconds = argv
    chosen = names.split(",")
    if not set(TORCH).isdisjoint(chosen):
        importlib.import_module("torch").set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answer:
        os.dup2(2, 1)
        try:
            result = run(key, chosen, int(rounds), float(seconds))
        except Exception as error:  # whatever a library raises is the row's problem
            result = Result(key, {}, problems={OWN: first_line(error)})
        answer.write(json.dumps(vars(result)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
