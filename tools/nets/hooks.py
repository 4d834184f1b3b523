"""Random sequences of adding hooks, removing them and calling the model: eager and compiled code see the same events.

``python -m tools.nets.hooks --count 1000``; a case is a number, the seed of its sequence.
"""

from __future__ import annotations

import itertools
import random
import sys
from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn.modules.module import register_module_forward_hook
from tools.nets.run import DIFFERENT, EQUAL, Net, Outcome, main

Event = tuple[Any, ...]
STEPS = 12
"""Actions of a sequence."""
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
        if kind == "once":
            handle = module.register_forward_hook(lambda m, a, o: (log.append((kind, step)), handle.remove())[1])
            return handle
        if kind == "replace":
            return module.register_forward_hook(lambda m, a, o: o * 1.25, prepend=first)
        if kind == "all":
            return register_module_forward_hook(lambda m, a, o: log.append((kind, step, type(m).__name__, _number(o))))

        def note(m: Any, *given: Any) -> None:
            """Log the numbers of tensors, of the first of several, and the number of keyword arguments."""
            values = [len(g) if isinstance(g, dict) else _number(g[0] if isinstance(g, tuple) else g) for g in given]
            log.append((kind, step, *values))

        register = {
            "pre": module.register_forward_pre_hook,
            "forward": module.register_forward_hook,
            "pre backward": module.register_full_backward_pre_hook,
            "backward": module.register_full_backward_hook,
        }[kind.removesuffix(" with kwargs")]
        return register(note, prepend=first, **({"with_kwargs": True} if kind.endswith("kwargs") else {}))


def judge(case: str) -> Outcome:
    """Compare the events of a sequence in compiled code with those in eager mode."""
    expected, compiled = Sequences(int(case), False).run(STEPS), Sequences(int(case), True).run(STEPS)
    for index, (right, got) in enumerate(zip(expected, compiled, strict=False)):
        if right != got:
            return Outcome(DIFFERENT, f"event {index}: eager {right}, compiled {got}")
    if len(expected) != len(compiled):
        return Outcome(DIFFERENT, f"{len(expected)} events in eager mode, {len(compiled)} compiled")
    return Outcome(EQUAL)


NET = Net("hooks", __doc__ or "", lambda seed: map(str, itertools.count(1_000_000 * seed)), judge)

if __name__ == "__main__":
    sys.exit(main(NET))
