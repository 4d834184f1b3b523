"""Ordinary training loops over compiled models against the same loops in torch: forward, loss, backward, clip, step.

``python -m benchmarks.loop [LOOP...]`` is short for ``python -m benchmarks`` with these workloads and contenders.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks import __main__ as command
from benchmarks.models.small_loops import EAGER, LOOPS, SmallLoop


def make(name: str, lib: Any, compiled: bool) -> Callable[[], float]:
    """Return a step of a loop, which returns the loss; the model is compiled or not."""
    lib.manual_seed(0)
    loop = SmallLoop(EAGER[name], lib, lib.compile if compiled else lambda model: model)
    (batch,) = loop.batches()
    x, y = map(lib.tensor, batch)
    return lambda: loop.micro_step(x, y).item()


def main(argv: Sequence[str]) -> int:
    """Measure the loops; other options are those of ``python -m benchmarks``."""
    names = [name for name in argv if name in LOOPS]
    options = [word for word in argv if word not in LOOPS]
    workloads = ",".join(names or LOOPS)
    return command.main(["--workloads", workloads, "--own", "graphc.compile", "--peers", "torch", *options])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
