"""Cost of forward hooks: calls of a model of 40 modules with a hook on each and without, compiled and eager."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import graphc
from benchmarks.loop import measure

MODULES, ROWS, WIDTH = 40, 64, 256
"""Modules, half of them linear, and the sizes of their inputs."""


def make(compiled: bool, hooks: bool, modules: int = MODULES) -> tuple[Callable[[], float], list[int]]:
    """Return a call of the model, which gives one number of the result, and how often hooks were called."""
    graphc.manual_seed(0)
    layers: list[Any] = []
    for _ in range(modules // 2):
        layers += [graphc.nn.Linear(WIDTH, WIDTH), graphc.nn.Tanh()]
    model = graphc.nn.Sequential(*layers)
    run = graphc.compile(model) if compiled else model
    x = graphc.tensor(np.random.default_rng(0).standard_normal((ROWS, WIDTH), np.float32))
    called = [0]

    def count(module: Any, args: Any, output: Any) -> None:
        called[0] += 1

    for layer in layers if hooks else ():
        layer.register_forward_hook(count)

    def call() -> float:
        with graphc.no_grad():
            return run(x).numpy()[0, 0].item()

    return call, called


def row(code: str, rounds: int, calls: int) -> dict[str, Any]:
    """Return figures of compiled or eager code: milliseconds of a call, microseconds of one hook."""
    steps = {"without": make(code == "compiled", False)[0], "with": make(code == "compiled", True)[0]}
    times = measure(steps, rounds, calls)
    hook = (times["with"] - times["without"]) / MODULES
    return {"code": code, "without_ms": 1e3 * times["without"], "with_ms": 1e3 * times["with"], "hook_us": 1e6 * hook}


def main(argv: Sequence[str] | None = None) -> int:
    """Print milliseconds of a call, compiled and eager, with hooks and without, and microseconds of one hook."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.hooks", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=20, help="number of calls per round")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    rows = [row(code, options.rounds, options.calls) for code in ("compiled", "eager")]
    if options.json:
        print(json.dumps(rows))
        return 0
    print(f"{'code':10} {'without':>10} {'with hooks':>11} {'one hook':>10}")
    for r in rows:
        print(f"{r['code']:10} {r['without_ms']:7.2f} ms {r['with_ms']:8.2f} ms {r['hook_us']:7.1f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main())
