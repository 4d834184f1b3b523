"""Cost of ``first_nan``: training steps of four families, with it and without, called in turns."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import graphc
from benchmarks.loop import perceptron, tagger, transformer
from graphc import nn

CALLS = 5
"""Steps per time measurement."""


def convolutional(lib: Any) -> tuple[Any, list[np.ndarray], Any, Any]:
    """Return two convolutions with batch norm, batch 32, Adam."""
    first = [nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)]
    random = np.random.default_rng(0)
    batch = [random.standard_normal((32, 1, 28, 28), np.float32), random.integers(0, 10, 32)]
    return nn.Sequential(*first, *second, nn.Flatten(), nn.Linear(1568, 10)), batch, nn.functional.cross_entropy, _adam


def _adam(params: Any, lr: float) -> Any:
    return graphc.optim.Adam(params, lr=lr)


FAMILIES = {f.__name__: f for f in (perceptron, convolutional, tagger, transformer)}


def make(name: str, first_nan: Any) -> Callable[[], Any]:
    """Return a training step of one family, with its batch."""
    graphc.manual_seed(0)
    model, batch, loss, optimizer = FAMILIES[name](graphc)
    tensors = list(map(graphc.tensor, batch))
    step = graphc.compile_step(model, loss, optimizer(model.parameters(), lr=1e-4), first_nan=first_nan)
    return lambda: step(*tensors)


def compare(name: str, armed: Any, seconds: float) -> tuple[float, float, float]:
    """Return median microseconds of a step without and with ``first_nan``, and the median of the ratios of
    neighbours."""
    steps = make(name, False), make(name, armed)
    for step in steps:
        for _ in range(20):
            step()
    times: tuple[list[float], list[float]] = [], []
    end = time.perf_counter() + seconds
    number = 0
    while time.perf_counter() < end:
        number += 1
        for which in (0, 1) if number % 2 else (1, 0):
            begin = time.perf_counter()
            for _ in range(CALLS):
                steps[which]()
            times[which].append((time.perf_counter() - begin) / CALLS)
    ratio = statistics.median(b / a for a, b in zip(*times, strict=True))
    return 1e6 * statistics.median(times[0]), 1e6 * statistics.median(times[1]), ratio


def main() -> None:
    """Print one line for each family."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_nan", description=__doc__)
    parser.add_argument("families", nargs="*", choices=[[], *FAMILIES], help="families of models (default: all)")
    parser.add_argument("--seconds", type=float, default=10.0, help="seconds for each family (default: 10)")
    parser.add_argument("--all", action="store_true", help="arm with first_nan='all'")
    options = parser.parse_args()
    for name in options.families or FAMILIES:
        plain, armed, ratio = compare(name, "all" if options.all else True, options.seconds)
        print(f"{name:14} {plain:9.1f} us, armed {armed:9.1f} us: {ratio:.3f}", flush=True)


if __name__ == "__main__":
    main()
