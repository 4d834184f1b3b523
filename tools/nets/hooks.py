"""Random sequences of adding hooks, removing them and calling the model: eager and compiled code see the same events.

``python -m tools.nets.hooks --sequences 1000`` exits 1 where a list of events differs, with the seed and the first
difference. ``--seed`` is the first seed; sequence ``n`` is the same whatever else runs.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Sequence
from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn.modules.module import register_module_forward_hook

Event = tuple[Any, ...]
ACTIONS = ("add", "add", "remove", "call", "call", "call without gradients", "mode")
KINDS = (
    "pre",
    "pre with kwargs",
    "forward",
    "forward with kwargs",
    "once",
    "replace",
    "pre backward",
    "backward",
    "all",
)


class Residual(nn.Module):
    """Nested modules, one of them called twice, and a residual branch."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(2, 3)
        self.block = nn.Sequential(nn.Linear(3, 3), nn.Tanh())

    def forward(self, x: gc.Tensor) -> gc.Tensor:
        h = self.first(x)
        return self.block(h + self.block(h))


def _number(tensor: gc.Tensor | None) -> float | None:
    return None if tensor is None else round(float(tensor.sum().item()), 9) + 0.0


class Sequences:
    """One model, compiled or not, its hooks and their events so far."""

    def __init__(self, seed: int, compiled: bool) -> None:
        gc.manual_seed(seed)
        self.random = random.Random(seed)
        self.net = Residual().double()
        self.call = gc.compile(self.net) if compiled else self.net
        self.x = gc.ones(1, 2, dtype=gc.float64, requires_grad=True)
        self.modules = list(self.net.modules())
        self.log: list[Event] = []
        self.handles: list[Any] = []

    def run(self, steps: int) -> list[Event]:
        """Return the events of some random actions and, behind them, one call more."""
        try:
            for step in range(steps):
                self._act(self.random.choice(ACTIONS), step)
            self._act("call", steps)
        finally:
            for handle in self.handles:
                handle.remove()
        return self.log

    def _act(self, action: str, step: int) -> None:
        if action == "add":
            module, kind = self.random.choice(self.modules), self.random.choice(KINDS)
            self.handles.append(self._add(module, kind, step, self.random.random() < 0.3))
        elif action == "remove" and self.handles:
            self.handles.pop(self.random.randrange(len(self.handles))).remove()
        elif action == "mode":
            self.net.train(not self.net.training)
        elif action == "call":
            out = self.call(self.x).sum()
            out.backward()
            self.log.append(("call", step, _number(out), _number(self.x.grad)))
        elif action == "call without gradients":
            with gc.no_grad():
                self.log.append(("no gradients", step, _number(self.call(self.x))))

    def _add(self, module: nn.Module, kind: str, step: int, first: bool) -> Any:
        log = self.log
        if kind == "pre":
            return module.register_forward_pre_hook(lambda m, a: log.append((kind, step, _number(a[0]))), prepend=first)
        if kind == "pre with kwargs":
            return module.register_forward_pre_hook(
                lambda m, a, k: log.append((kind, step, len(k), _number(a[0]))), with_kwargs=True, prepend=first
            )
        if kind == "forward with kwargs":
            return module.register_forward_hook(
                lambda m, a, k, o: log.append((kind, step, len(k), _number(o))), with_kwargs=True, prepend=first
            )
        if kind == "once":
            handle = module.register_forward_hook(lambda m, a, o: (log.append((kind, step)), handle.remove())[1])
            return handle
        if kind == "replace":
            return module.register_forward_hook(lambda m, a, o: o * 1.25, prepend=first)
        return self._add_other(module, kind, step, first)

    def _add_other(self, module: nn.Module, kind: str, step: int, first: bool) -> Any:
        log = self.log
        if kind == "pre backward":
            return module.register_full_backward_pre_hook(
                lambda m, g: log.append((kind, step, _number(g[0]))), prepend=first
            )
        if kind == "backward":
            return module.register_full_backward_hook(
                lambda m, i, o: log.append((kind, step, _number(i[0]), _number(o[0]))), prepend=first
            )
        if kind == "all":
            return register_module_forward_hook(lambda m, a, o: log.append((kind, step, type(m).__name__, _number(o))))
        return module.register_forward_hook(
            lambda m, a, o: log.append((kind, step, _number(a[0]), _number(o))), prepend=first
        )


def difference(seed: int, steps: int) -> tuple[int, str | None]:
    """Return the number of events in a sequence, and the first difference between compiled code and eager mode."""
    expected, compiled = Sequences(seed, False).run(steps), Sequences(seed, True).run(steps)
    for index, (right, got) in enumerate(zip(expected, compiled, strict=False)):
        if right != got:
            return len(expected), f"event {index}: eager {right}, compiled {got}"
    if len(expected) != len(compiled):
        return len(expected), f"{len(expected)} events in eager mode, {len(compiled)} compiled"
    return len(expected), None


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sequences; 1 where one differs."""
    parser = argparse.ArgumentParser(prog="python -m tools.nets.hooks", description=__doc__)
    parser.add_argument("--sequences", type=int, default=100)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    events, differing = 0, 0
    for seed in range(options.seed, options.seed + options.sequences):
        count, where = difference(seed, options.steps)
        events += count
        if where is not None:
            differing += 1
            print(f"seed {seed}: {where}", file=sys.stderr)
    print(json.dumps({"sequences": options.sequences, "events": events, "differing": differing}))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
