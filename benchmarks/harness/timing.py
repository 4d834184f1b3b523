"""Timing of calls: batches, turns in rounds, and contenders of one process compared before they are timed."""

from __future__ import annotations

import importlib
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.harness.results import OWN, Result, arrays_of, difference, first_line

Call = Callable[[], Any]
Makers = Mapping[str, Callable[[], Call]]
"""Functions that prepare each contender of a case and return a call of it, by name."""
Clock = Callable[[], float]
BATCH_S = 0.002
"""Approximate seconds of a batch of calls, long enough that the clock costs nothing."""


def measure_calls(call: Call, seconds: float, clock: Clock = time.perf_counter) -> dict[str, Any]:
    """Call once unmeasured, then in batches for about `seconds`; return the median milliseconds of one call."""
    start = time.perf_counter()
    call()
    size = max(1, int(BATCH_S / max(time.perf_counter() - start, 1e-7)))
    batches: list[float] = []
    end = time.perf_counter() + seconds
    while not batches or time.perf_counter() < end:
        start = clock()
        for _ in range(size):
            call()
        batches.append((clock() - start) / size)
    return {"ms": 1000 * statistics.median(batches), "calls": size * len(batches)}


def alternate(result: Result, names: Sequence[str], rounds: int, time_one: Callable[[str], Mapping[str, Any]]) -> None:
    """Time the contenders in turns, each round starting with another one, and add the times to the result; one that
    answers with an error is left out."""
    names = [name for name in names if name not in result.problems]
    for index in range(rounds):
        shift = index % len(names) if names else 0
        for name in [*names[shift:], *names[:shift]]:
            if name in result.problems:
                continue
            answer = time_one(name)
            if "error" in answer:
                result.problems[name] = str(answer["error"])
                result.rounds_ms.pop(name, None)
            else:
                result.rounds_ms.setdefault(name, []).append(answer["ms"])


def measure(
    result: Result,
    makers: Makers,
    rounds: int,
    seconds: float,
    clock: Clock = time.perf_counter,
    warm: int = 0,
    compare: bool = True,
) -> Result:
    """Build every contender, compare their results with the first peer's (graphc's own without a peer), and time them
    in turns."""
    calls: dict[str, Call] = {}
    numbers: dict[str, list[np.ndarray]] = {}
    for name, make in makers.items():
        try:
            call = make()
            value = call()
            numbers[name] = arrays_of(value) if compare else []
            for _ in range(warm):
                call()
            calls[name] = call
        except Exception as error:  # whatever a contender raises is a result of the measurement
            result.problems[name] = first_line(error)
    reference = next((n for n in numbers if n != OWN), OWN)
    for name, arrays in numbers.items() if compare else ():
        if name != reference:
            result.errors[name] = difference(arrays, numbers[reference])
    alternate(result, list(calls), rounds, lambda name: measure_calls(calls[name], seconds, clock))
    return result


def first_call(result: Result, name: str, make: Callable[[], Call]) -> Callable[[], Call]:
    """Return a maker that also calls its contender once, and adds the seconds of both, which compile, to the facts as
    ``NAME compile s``."""

    def prepare() -> Call:
        start = time.perf_counter()
        call = make()
        call()
        result.facts[f"{name} compile s"] = f"{time.perf_counter() - start:.2f}"
        return call

    return prepare


def find_library(name: str) -> ModuleType | None:
    """Return a peer's library, or None where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        return None


def no_grad(framework: ModuleType, function: Callable[..., Any], *inputs: Any) -> Call:
    """Return a call without gradients, of torch in inference mode."""
    context = framework.inference_mode if framework.__name__ == "torch" else framework.no_grad

    def call() -> Any:
        with context():
            return function(*inputs)

    return call
