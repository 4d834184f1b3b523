"""A model that reads from every source: globals, closures, defaults, class and plain attributes, containers.

Each case executes this file again, so that its changes do not reach the next case.
"""

from __future__ import annotations

from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tools.nets.changes.arguments import amount_of

GAIN = 1.25
WORD = "tanh"
OPTIONS = {"slope": 0.5}
STEPS = [0.5, 0.25]
PAIR = (0.5, 1.5)
CHOSEN = {1, 2}
TABLE = gc.tensor([0.5, -0.25, 0.125, 1.0])
LOOKUP = gc.tensor([1, 2, 1, 3])
TABLES = [gc.tensor([0.1, 0.2, 0.3, 0.4])]


class Settings:
    """A plain object."""

    bias = 0.125

    def __init__(self) -> None:
        self.amount = 0.75
        self.row = gc.tensor([0.2, 0.4, 0.6, 0.8])

    def shift(self) -> float:
        """Shift by the offset; the model calls this method."""
        return self.amount * 0.5


SETTINGS = Settings()


def bend(x: Any, strength: float = 0.5, *, more: float = 0.25) -> Any:
    """Return a function with defaults."""
    return x + strength * gc.tanh(x) + more


def make_closure() -> tuple[Any, Any]:
    """Return a function over a number and a tensor, and a function that changes either."""
    level, offset = 0.75, gc.tensor([0.1, 0.0, -0.1, 0.2])

    def closed(x: Any) -> Any:
        return x * level + offset

    def change(number: float | None = None, tensor: Any = None) -> None:
        nonlocal level, offset
        level = level if number is None else number
        offset = offset if tensor is None else tensor

    return closed, change


class Body(nn.Module):
    """The submodule that some modes compile by itself."""

    sign = 1.5

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.25)
        self.second = nn.Linear(4, 4)
        self.parts = nn.ModuleList([nn.Linear(4, 4), nn.PReLU()])
        self.scale = nn.Parameter(gc.tensor([1.0, 0.5, 1.5, 2.0]))
        self.register_buffer("shift", gc.tensor([0.1, 0.2, 0.3, 0.4]))
        self.register_buffer("hidden_shift", gc.tensor([0.01, 0.02, 0.03, 0.04]), persistent=False)
        self.factor = 1.5
        self.mode = "tanh"
        self.flag = True
        self.absent: Any = None
        self.sizes = [1.0, 2.0]
        self.nested = {"gain": 1.0, "deep": [0.5, {"low": 0.25}]}
        self.settings = Settings()
        self.memory = gc.tensor([0.3, 0.1, 0.2, 0.4])
        self.rows = [gc.tensor([0.5, 0.5, 0.5, 0.25])]
        self.closed, self.change = make_closure()

    def attributes(self, x: Any) -> Any:
        """Compute with the plain attributes."""
        x = x * self.factor * self.sign + self.sizes[0] - self.sizes[-1] * len(self.sizes)
        x = x + self.nested["gain"] * self.memory - self.rows[0] * len(self.rows)  # type: ignore[operator]
        x = x * self.nested["deep"][1]["low"] + self.settings.shift() + self.settings.row  # type: ignore[index]
        x = x * 0.5 + (gc.tanh(x) if self.mode == "tanh" else gc.sigmoid(x))
        return x + 1.0 if self.absent is None and self.flag else x

    def outside(self, x: Any) -> Any:
        """Compute with the module's globals."""
        x = self.closed(bend(x)) * GAIN + OPTIONS["slope"] * TABLE + sum(STEPS) * TABLES[0]
        x = x * LOOKUP + SETTINGS.amount * SETTINGS.bias * PAIR[0]
        if "extra" in OPTIONS or 7 in CHOSEN:
            x = x * 0.5
        return x * 0.5 + (gc.tanh(x) if WORD == "tanh" else gc.sigmoid(x))

    def forward(self, x: Any) -> Any:
        """Apply all parts, one after the other."""
        x = self.drop(self.first(self.norm(x))) * self.scale + self.shift + self.hidden_shift
        x = self.outside(self.attributes(x))
        for layer in self.parts:
            x = layer(x)
        return F.softplus(self.second(x)) + x


class Model(nn.Module):
    """A body and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.body = Body()
        self.head = nn.Linear(4, 3)

    def forward(self, x: Any, extra: Any = None) -> Any:
        """Apply the body and the head, and scale by the amount in ``extra``: a plain value, or a container."""
        x = self.body(x)
        if extra is not None:
            x = x * amount_of(extra)
        return self.head(x)


def make() -> Any:
    """Return the model, in the mode that uses most of it."""
    return Model().train()


def other_bend(x: Any, strength: float = 0.5, *, more: float = 0.25) -> Any:
    """Bend in another way; replaces ``bend``."""
    return x * strength - more
