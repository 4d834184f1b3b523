"""Nets of loops along time that can be streamed."""

from __future__ import annotations

from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tests.streams.cases import FRAMES, TIME, WAVE, Case, CausalConv, Lambda, net


def _tagger(kind: Any, first: bool, **options: Any) -> Lambda:
    layer = kind(4, 5, batch_first=first, **options)
    return Lambda(lambda self, x: self.out(self.layer(x)[0]), layer=layer, out=nn.Linear(5, 3))


@net
def gru_tagger() -> Case:
    return Case(_tagger(nn.GRU, True, num_layers=2), FRAMES)


@net
def lstm_tagger() -> Case:
    return Case(_tagger(nn.LSTM, False, num_layers=3), ((TIME, 2, 4),))


@net
def rnn_tagger() -> Case:
    return Case(_tagger(nn.RNN, True, num_layers=2, nonlinearity="relu"), FRAMES)


@net
def lstm_of_words() -> Case:
    def forward(self: Any, words: Any) -> Any:
        return self.out(self.lstm(self.table(words))[0]).argmax(-1)

    modules = {"table": nn.Embedding(11, 4), "lstm": nn.LSTM(4, 5, batch_first=True), "out": nn.Linear(5, 11)}
    return Case(Lambda(forward, **modules), ((2, TIME),), symbols=11)


@net
def last_state() -> Case:
    """Class of the sequence so far."""
    model = Lambda(
        lambda self, x: self.out(self.gru(x)[1][-1]), gru=nn.GRU(4, 5, batch_first=True), out=nn.Linear(5, 3)
    )
    return Case(model, FRAMES)


@net
def last_sample() -> Case:
    model = Lambda(
        lambda self, x: self.out(self.gru(x)[0][:, -1]), gru=nn.GRU(4, 5, batch_first=True), out=nn.Linear(5, 3)
    )
    return Case(model, FRAMES)


@net
def residual_lstms() -> Case:
    def forward(self: Any, x: Any) -> Any:
        for norm, lstm in zip(self.norms, self.lstms, strict=True):
            x = x + lstm(norm(x))[0]
        return x

    lstms = nn.ModuleList(nn.LSTM(4, 4, batch_first=True) for _ in range(2))
    return Case(Lambda(forward, norms=nn.ModuleList(nn.LayerNorm(4) for _ in range(2)), lstms=lstms), FRAMES)


@net
def gru_after_cropped_conv() -> Case:
    def forward(self: Any, x: Any) -> Any:
        return self.gru(self.conv(x).transpose(1, 2))[0]

    return Case(Lambda(forward, conv=nn.Conv1d(2, 4, 5, stride=2), gru=nn.GRU(4, 3, batch_first=True)), WAVE)


@net
def gru_of_delayed_samples() -> Case:
    model = Lambda(lambda self, x: self.gru(F.pad(x, (0, 0, 3, 0), value=0.5))[0], gru=nn.GRU(4, 3, batch_first=True))
    return Case(model, FRAMES)


@net
def own_cell() -> Case:
    def forward(self: Any, x: Any) -> Any:
        def step(state: Any, sample: Any) -> Any:
            state = self.cell(sample, state)
            return state, state

        return gc.scan(step, gc.zeros(2, 5), x.transpose(0, 1))[1].transpose(0, 1)

    return Case(Lambda(forward, cell=nn.GRUCell(4, 5)), FRAMES)


@net
def selective_scan() -> Case:
    """A state-space layer with input-dependent decay, gate and short convolution."""

    def forward(self: Any, x: Any) -> Any:
        u, gate = self.inner(x).chunk(2, -1)
        u = F.silu(self.conv(u.transpose(1, 2)).transpose(1, 2))
        decay = F.softplus(self.decay(u))
        enters, leaves = self.enters(u), self.leaves(u)

        def step(state: Any, sample: Any) -> Any:
            u, decay, enters, leaves = sample
            state = state * gc.exp(decay.unsqueeze(-1) * self.rates) + (decay * u).unsqueeze(-1) * enters.unsqueeze(1)
            return state, (state * leaves.unsqueeze(1)).sum(-1)

        sequences = tuple(s.transpose(0, 1) for s in (u, decay, enters, leaves))
        y = gc.scan(step, gc.zeros(2, 6, 3), sequences)[1].transpose(0, 1)
        return self.out(y * F.silu(gate)) + x

    modules = {
        "inner": nn.Linear(4, 12),
        "conv": CausalConv(6, 6, 4, groups=6),
        "decay": nn.Linear(6, 6),
        "enters": nn.Linear(6, 3),
        "leaves": nn.Linear(6, 3),
        "rates": nn.Parameter(-gc.rand(6, 3)),
        "out": nn.Linear(6, 4),
    }
    return Case(Lambda(forward, **modules), FRAMES)


@net
def linear_recurrence() -> Case:
    def forward(self: Any, x: Any) -> Any:
        keep = self.keep(x).sigmoid()
        step = lambda state, s: (s[0] * state + (1 - s[0]) * s[1],) * 2  # noqa: E731
        return gc.scan(step, gc.zeros(2, 4), (keep.transpose(0, 1), x.transpose(0, 1)))[1].transpose(0, 1)

    return Case(Lambda(forward, keep=nn.Linear(4, 4)), FRAMES)


@net
def second_order_filter() -> Case:
    def forward(x: Any) -> Any:
        def step(past: Any, sample: Any) -> Any:
            y = 0.3 * sample + 1.1 * past[0] - 0.4 * past[1]
            return (y, past[0]), y

        return gc.scan(step, (gc.zeros(2), gc.zeros(2)), x[0].transpose(0, 1))[1]

    return Case(forward, WAVE)


@net
def matrix_memory() -> Case:
    """Keys and values in a matrix that fades."""

    def forward(self: Any, x: Any) -> Any:
        q, k, v = self.inner(x).transpose(0, 1).chunk(3, -1)

        def step(memory: Any, sample: Any) -> Any:
            q, k, v = sample
            memory = 0.9 * memory + k.unsqueeze(-1) * v.unsqueeze(-2)
            return memory, (q.unsqueeze(-2) @ memory).squeeze(-2)

        return gc.scan(step, gc.zeros(2, 4, 4), (q, k, v))[1].transpose(0, 1)

    return Case(Lambda(forward, inner=nn.Linear(4, 12)), FRAMES)


@net
def gru_that_looks_ahead() -> Case:
    model = Lambda(
        lambda self, x: self.gru(self.conv(x).transpose(1, 2))[0],
        conv=nn.Conv1d(2, 4, 5, padding=2),
        gru=nn.GRU(4, 3, batch_first=True),
    )
    return Case(model, WAVE, {"lookahead": 2})


@net
def dual_path() -> Case:
    """Loops over the bands of each frame, then over the frames of each band."""

    def forward(self: Any, x: Any) -> Any:
        bands = self.bands(x.reshape(2 * x.shape[1], 4, 1))[0].reshape(2, x.shape[1], 4, 4)
        frames = self.frames(bands.transpose(1, 2).reshape(8, x.shape[1], 4))[0]
        return frames.reshape(2, 4, x.shape[1], 3).transpose(1, 2)

    bands = nn.GRU(1, 2, batch_first=True, bidirectional=True)
    return Case(Lambda(forward, bands=bands, frames=nn.GRU(4, 3, batch_first=True)), FRAMES)


@net
def loop_over_bands_of_late_frames() -> Case:
    def forward(self: Any, x: Any) -> Any:
        y = self.conv(x.transpose(1, 2)).permute(2, 1, 0)
        return self.lstm(y)[0].sum(-1)

    conv, lstm = nn.Conv1d(4, 6, 4), nn.LSTM(2, 3, batch_first=True)
    return Case(Lambda(forward, conv=conv, lstm=lstm), FRAMES)
