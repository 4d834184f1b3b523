"""Cost of watching: ``first_nan`` in training steps, forward hooks, and a monitor, each with and without, in turns.

- ``first_nan``: steps of four families with ``first_nan=True`` and ``first_nan="all"``.
- ``hooks``: calls of a model of 40 modules with a hook on each.
- ``monitor``: steps of 100 layers of a width, with a batch of so many rows; the monitor watches the outputs of all
  layers, their gradients, and the gradients of all parameters.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import graphc
from benchmarks.harness.results import Result
from benchmarks.harness.sweep import Sweep
from benchmarks.harness.timing import Call, Makers, no_grad
from benchmarks.models import small_loops
from graphc import nn
from graphc.monitor import Monitor, Writer
from graphc.nn import functional as F

MODULES, ROWS, WIDTH = 40, 64, 256
"""Modules of the model with hooks, half of them linear, and the sizes of their inputs."""
LAYERS = 50
"""Linear layers of the step with a monitor, each followed by a tanh."""
PLAIN = "without"


def first_nan_step(family: str, first_nan: Any) -> Call:
    """Return a training step of one family, with its batch."""
    graphc.manual_seed(0)
    model, batch, loss, optimizer = getattr(small_loops, family)(graphc)
    step = graphc.compile_step(model, loss, optimizer(model.parameters(), lr=1e-4), first_nan=first_nan)
    return partial(step, *map(graphc.tensor, batch))


def _layers(count: int, width: int) -> list[nn.Module]:
    graphc.manual_seed(0)
    return [layer for _ in range(count) for layer in (nn.Linear(width, width), nn.Tanh())]


def hooked_call(compiled: bool, hooks: bool, modules: int = MODULES) -> tuple[Call, list[int]]:
    """Return a call of the model, and how often hooks were called."""
    layers, called = _layers(modules // 2, WIDTH), [0]
    model = nn.Sequential(*layers)

    def count(module: Any, args: Any, output: Any) -> None:
        called[0] += 1

    for layer in layers if hooks else ():
        layer.register_forward_hook(count)
    x = graphc.tensor(np.random.default_rng(0).standard_normal((ROWS, WIDTH), np.float32))
    return no_grad(graphc, graphc.compile(model) if compiled else model, x), called


def watched_step(compiled: bool, watched: bool, width: int, batch: int) -> Callable[[], None]:
    """Return one training step; its weights stay nearly as they are."""
    net = nn.Sequential(*_layers(LAYERS, width))
    optimizer = graphc.optim.SGD(net.parameters(), lr=1e-6)
    x, y = graphc.randn(batch, width), graphc.randn(batch, width)
    monitor = Monitor(net, Writer()) if watched else None
    native = graphc.compile_step(net, F.mse_loss, optimizer) if compiled else None

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


def _finish(makers: Makers, result: Result) -> None:
    """Say how many times as long it takes with what is named first, and how long one hook."""
    name = next(name for name in makers if name != PLAIN)
    result.facts["with / without"] = result.over(name, PLAIN)
    if name == "hooks":
        both, alone = result.ms(name) or 0.0, result.ms(PLAIN) or 0.0
        result.facts["one hook us"] = f"{1000 * (both - alone) / MODULES:.1f}"


CASES: dict[str, Makers] = {}
for _family in ("perceptron", "convolutional", "tagger", "transformer"):
    _kinds = {PLAIN: False, "first_nan": True, "all": "all"}
    CASES[f"first_nan {_family}"] = {name: partial(first_nan_step, _family, kind) for name, kind in _kinds.items()}
for _code in ("compiled", "eager"):
    _hooks = {PLAIN: False, "hooks": True}
    CASES[f"hooks {_code}"] = {n: (lambda c=_code, h=h: hooked_call(c == "compiled", h)[0]) for n, h in _hooks.items()}
    for _width, _batch in ((256, 128), (512, 512)):
        _watched = {PLAIN: False, "monitor": True}
        CASES[f"monitor {_code} {_width} x {_batch}"] = {
            name: partial(watched_step, _code == "compiled", watched, _width, _batch)
            for name, watched in _watched.items()
        }

SWEEP = Sweep(
    "benchmarks.overheads",
    __doc__,
    CASES,
    (),
    columns=("with / without", "one hook us"),
    finish=_finish,
    compare=False,
    own=(PLAIN, "first_nan", "all", "hooks", "monitor"),
    rounds=20,
    seconds=0.05,
    warm=10,
    unit_ms=1e-3,
)

if __name__ == "__main__":
    sys.exit(SWEEP.main())
