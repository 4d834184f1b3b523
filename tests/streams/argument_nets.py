"""Nets of several inputs and outputs that can be streamed."""

from __future__ import annotations

from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tests.streams.cases import FRAMES, TIME, WAVE, Case, CausalConv, Lambda, net


@net
def two_inputs() -> Case:
    model = Lambda(lambda self, x, y: self.conv(gc.cat([x, F.pad(y, (2, 0))[..., :-2]], 1)), conv=CausalConv(3, 2, 3))
    return Case(model, ((1, 2, TIME), (1, 1, TIME)))


@net
def two_layouts() -> Case:
    model = Lambda(lambda self, x, y: self.conv(x) * y.transpose(1, 2), conv=CausalConv(4, 4, 3))
    return Case(model, ((2, 4, TIME), (2, TIME, 4)))


@net
def speaker() -> Case:
    """An input without time."""
    model = Lambda(lambda self, x, s: self.gru(x * s.unsqueeze(1))[0], gru=nn.GRU(4, 3, batch_first=True))
    return Case(model, ((2, TIME, 4), (2, 4)))


@net
def outputs_of_different_delays() -> Case:
    def forward(self: Any, x: Any) -> Any:
        y = self.conv(x)
        return y, x.abs(), self.conv2(y)

    return Case(Lambda(forward, conv=nn.Conv1d(2, 2, 4), conv2=nn.Conv1d(2, 1, 3)), WAVE)


@net
def outputs_by_name() -> Case:
    def forward(self: Any, x: Any) -> Any:
        states, last = self.gru(x)
        return {"states": states, "last": last[0], "speech": self.out(states).sigmoid()}

    return Case(Lambda(forward, gru=nn.GRU(4, 5, batch_first=True), out=nn.Linear(5, 1)), FRAMES)


@net
def large_batch() -> Case:
    return Case(nn.Sequential(CausalConv(2, 4, 3), nn.Tanh(), nn.Dropout(0.5), CausalConv(4, 2, 2, 3)), ((5, 2, TIME),))


@net
def speaker_beside_samples() -> Case:
    model = Lambda(
        lambda self, x, s: self.conv(gc.cat([x, s.unsqueeze(-1).expand(1, 3, x.shape[-1])], 1)),
        conv=CausalConv(5, 2, 3),
    )
    return Case(model, ((1, 2, TIME), (1, 3)))


@net
def constant_output() -> Case:
    return Case(lambda x: (x, gc.ones(3)), WAVE)
