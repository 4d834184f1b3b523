"""Cost of a monitor: a compiled training step of 100 layers with and without one, in alternating rounds.

``python -m benchmarks.monitor [--width N] [--batch N] [--rounds N] [--json]``. It watches the outputs of all layers,
their gradients, and the gradients of all parameters.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import graphc as gc
from graphc import nn
from graphc.monitor import Monitor, Writer
from graphc.nn import functional as F

LAYERS = 50
STEPS = 5
"""Steps of each kind in a round."""
WARM_SECONDS = 0.15
"""Before these: for so long NumPy's threads keep a core busy after a product."""


def model(width: int) -> nn.Module:
    """Return LAYERS linear layers, each followed by a tanh."""
    gc.manual_seed(0)
    return nn.Sequential(*[layer for _ in range(LAYERS) for layer in (nn.Linear(width, width), nn.Tanh())])


def contender(watched: bool, compiled: bool, width: int = 256, batch: int = 128) -> Callable[[], None]:
    """Return one training step, compiled or eager; its weights stay nearly as they are."""
    net = model(width)
    optimizer = gc.optim.SGD(net.parameters(), lr=1e-6)
    x, y = gc.randn(batch, width), gc.randn(batch, width)
    monitor = Monitor(net, Writer()) if watched else None
    native = gc.compile_step(net, F.mse_loss, optimizer) if compiled else None

    def step() -> None:
        if native is not None:
            loss: Any = native(x, y)
        else:
            optimizer.zero_grad()
            loss = F.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
        if monitor is not None:
            monitor.step(loss=loss)

    return step


def measure(rounds: int, width: int, batch: int) -> dict[str, float]:
    """Return microseconds of a step, medians, by name."""
    runs = {
        f"{kind}, {'watched' if watched else 'alone'}": contender(watched, kind == "compiled", width, batch)
        for kind in ("compiled", "eager")
        for watched in (False, True)
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run()
    for _ in range(rounds):
        for name, run in runs.items():
            warm = time.perf_counter() + WARM_SECONDS
            while time.perf_counter() < warm:
                run()
            for _ in range(STEPS):
                start = time.perf_counter()
                run()
                times[name].append(1e6 * (time.perf_counter() - start))
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=256, help="width of all layers (default: 256)")
    parser.add_argument("--batch", type=int, default=128, help="rows of the input (default: 128)")
    parser.add_argument("--rounds", type=int, default=20, help="rounds, each of a few steps of each kind (default: 20)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    medians = measure(options.rounds, options.width, options.batch)
    ratios = {kind: medians[f"{kind}, watched"] / medians[f"{kind}, alone"] for kind in ("compiled", "eager")}
    if options.json:
        print(json.dumps({"microseconds": medians, "watched / alone": ratios}, indent=1))
        return
    for name, value in medians.items():
        print(f"{name:20} {value:10,.0f} us")
    for kind, ratio in ratios.items():
        print(f"{kind}: watched / alone {ratio:.3f}")


if __name__ == "__main__":
    main()
