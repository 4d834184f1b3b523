"""Nets of rates, shifts, norms and means that can be streamed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tests.streams.cases import FRAMES, TIME, WAVE, Case, CausalConv, Lambda, net

# ---- rates


def _unet(up: Callable[[int, int], nn.Module]) -> Lambda:
    def forward(self: Any, x: Any) -> Any:
        a = self.down1(x).relu()
        b = self.down2(a).relu()
        a = gc.cat([self.up2(b)[..., : a.shape[-1]], a], 1)
        return gc.cat([self.up1(a)[..., : x.shape[-1]], x], 1)

    down = {"down1": CausalConv(2, 3, 4, stride=2), "down2": CausalConv(3, 4, 4, stride=2)}
    return Lambda(forward, **down, up2=up(4, 3), up1=up(6, 2))


@net
def unet() -> Case:
    return Case(_unet(lambda inputs, outputs: nn.ConvTranspose1d(inputs, outputs, 4, stride=2)), WAVE)


@net
def unet_of_nearest_samples() -> Case:
    def up(inputs: int, outputs: int) -> nn.Module:
        return nn.Sequential(nn.Upsample(scale_factor=2, mode="nearest"), CausalConv(inputs, outputs, 3))

    return Case(_unet(up), WAVE)


@net
def pixels_shuffled() -> Case:
    def forward(self: Any, x: Any) -> Any:
        y = self.conv(x)
        return y.reshape(1, 3, 2, y.shape[-1]).transpose(2, 3).reshape(1, 3, 2 * y.shape[-1])

    return Case(Lambda(forward, conv=CausalConv(2, 6, 3)), WAVE)


@net
def pixels_gathered() -> Case:
    def forward(self: Any, x: Any) -> Any:
        pairs = x.reshape(1, 2, x.shape[-1] // 2, 2).permute(0, 1, 3, 2).reshape(1, 4, x.shape[-1] // 2)
        y = self.conv(pairs).reshape(1, 2, 2, x.shape[-1] // 2).permute(0, 1, 3, 2)
        return y.reshape(1, 2, x.shape[-1])

    return Case(Lambda(forward, conv=CausalConv(4, 4, 2)), WAVE)


@net
def repeated_samples() -> Case:
    model = Lambda(lambda self, x: self.conv(x.repeat_interleave(3, -1)), conv=CausalConv(2, 2, 4))
    return Case(model, WAVE)


@net
def every_third_sample() -> Case:
    model = Lambda(lambda self, x: self.conv(x[..., 2::3]), conv=CausalConv(2, 2, 2))
    return Case(model, WAVE, length=63)


@net
def largest_of_pairs() -> Case:
    return Case(nn.Sequential(CausalConv(2, 4, 3), nn.MaxPool1d(2), CausalConv(4, 4, 3), nn.AvgPool1d(2)), WAVE)


# ---- shifts, sums and means


@net
def delay() -> Case:
    return Case(lambda x: F.pad(x, (3, 0))[..., : x.shape[-1]], WAVE)


@net
def delay_by_concatenation() -> Case:
    return Case(lambda x: gc.cat([gc.zeros(1, 2, 5), x], -1)[..., : x.shape[-1]] + x, WAVE)


@net
def echoes() -> Case:
    return Case(lambda x: x + 0.5 * F.pad(x[..., :-4], (4, 0)) - 0.25 * F.pad(x[..., :-9], (9, 0)), WAVE)


@net
def differences() -> Case:
    return Case(lambda x: x[..., 1:] - x[..., :-1], WAVE)


@net
def moving_average() -> Case:
    return Case(lambda x: F.avg_pool1d(F.pad(x, (4, 0)), 5, 1), WAVE)


@net
def moving_maximum() -> Case:
    return Case(lambda x: F.max_pool1d(F.pad(x, (4, 0), value=-1e4), 5, 1), WAVE)


@net
def running_mean() -> Case:
    return Case(lambda x: x.cumsum(-1) / gc.arange(1, x.shape[-1] + 1), WAVE)


@net
def squeeze_excite() -> Case:
    def forward(self: Any, x: Any) -> Any:
        x = self.conv(x)
        count = gc.arange(x.shape[-1]) + 1.0
        weights = self.gate((x.cumsum(-1) / count).transpose(1, 2)).sigmoid()
        return x * weights.transpose(1, 2)

    gate = nn.Sequential(nn.Linear(4, 2), nn.ReLU(), nn.Linear(2, 4))
    return Case(Lambda(forward, conv=CausalConv(2, 4, 3), gate=gate), WAVE)


@net
def cumulative_norm() -> Case:
    """Mean and variance of all channels and samples so far, as in causal separation nets."""

    def forward(self: Any, x: Any) -> Any:
        count = (gc.arange(x.shape[-1]) + 1.0) * x.shape[1]
        mean = x.sum(1, keepdim=True).cumsum(-1) / count
        square = (x * x).sum(1, keepdim=True).cumsum(-1) / count
        return self.conv((x - mean) / (square - mean * mean + 0.1).sqrt())

    return Case(Lambda(forward, conv=CausalConv(2, 3, 3)), WAVE)


@net
def program_for_multiples() -> Case:
    return Case(lambda x: x * 2 if x.shape[-1] % 4 == 0 else x * 3, WAVE)


@net
def cropped() -> Case:
    return Case(lambda x: x[..., 4:-2] * 2, WAVE)


@net
def interleaved() -> Case:
    def forward(self: Any, x: Any) -> Any:
        return gc.stack([self.even(x), self.odd(x)], -1).flatten(-2)

    return Case(Lambda(forward, even=CausalConv(2, 2, 2), odd=CausalConv(2, 2, 3)), WAVE)


@net
def halves_of_rate() -> Case:
    def forward(self: Any, x: Any) -> Any:
        return self.a(x)[..., : x.shape[-1] // 2] + self.b(x)[..., : x.shape[-1] // 2]

    return Case(Lambda(forward, a=CausalConv(2, 2, 4, stride=2), b=CausalConv(2, 2, 2, stride=2)), WAVE)


@net
def last_five() -> Case:
    return Case(lambda x: x[..., -5:] + 1, WAVE)


@net
def channels_of_positions() -> Case:
    def forward(self: Any, x: Any) -> Any:
        ones, wave = gc.ones(1, 1, x.shape[-1]), (gc.arange(x.shape[-1]) * 0.1).sin().expand(1, 1, -1)
        return self.conv(gc.cat([x, ones, wave], 1))

    return Case(Lambda(forward, conv=nn.Conv1d(4, 2, 3)), WAVE)


# ---- norms of each sample


@net
def layer_norm() -> Case:
    return Case(nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.GELU(), nn.Linear(6, 3)), FRAMES)


@net
def rms_norm() -> Case:
    return Case(nn.Sequential(nn.RMSNorm(4), nn.Linear(4, 3), nn.SiLU()), FRAMES)


@net
def batch_norm() -> Case:
    layers = nn.Sequential(CausalConv(2, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), CausalConv(4, 2, 3))
    for _ in range(3):
        layers(gc.randn(1, 2, 16))
    return Case(layers, WAVE)


@net
def channels_sorted() -> Case:
    return Case(
        lambda x: x.softmax(-1).argsort(-1) * (x.amax(-1, keepdim=True) - x.max(-1, keepdim=True)[0] + x), FRAMES
    )


@net
def distances() -> Case:
    model = Lambda(lambda self, x: gc.cdist(x, self.points), points=nn.Buffer(gc.randn(2, 3, 4)))
    return Case(model, FRAMES)


@net
def products_by_letters() -> Case:
    model = Lambda(lambda self, x: gc.einsum("btc,dc->btd", x, self.weight), weight=nn.Parameter(gc.randn(3, 4)))
    return Case(model, FRAMES)


@net
def frames_in_batch() -> Case:
    """A net for images on each frame, with batch and time in one dimension."""

    def forward(self: Any, x: Any) -> Any:
        batch, time, _ = x.shape
        y = self.conv(F.pad(x, (0, 0, 2, 0))[:, :time].reshape(batch * time, 1, 4))
        y = self.norm(y).relu().reshape(batch * time, 6) - 0.5
        return self.out(y).reshape(batch, time, 3) + x[..., :3]

    modules = {"conv": nn.Conv1d(1, 2, 2), "norm": nn.BatchNorm1d(2), "out": nn.Linear(6, 3)}
    return Case(Lambda(forward, **modules), FRAMES)


@net
def late_frames_in_batch() -> Case:
    def forward(self: Any, x: Any) -> Any:
        y = self.conv(x.transpose(1, 2)).transpose(1, 2)
        rows = y.reshape(2 * y.shape[1], 4).softmax(-1) * x[:, 3:].reshape(2 * y.shape[1], 4)
        return rows.reshape(2, y.shape[1], 4)

    return Case(Lambda(forward, conv=nn.Conv1d(4, 4, 4)), FRAMES)


@net
def means_of_frames() -> Case:
    return Case(lambda x: x.unfold(-1, 8, 8).mean(-1), WAVE)


@net
def every_second_sample() -> Case:
    return Case(lambda x: F.interpolate(x, scale_factor=0.5, mode="nearest"), WAVE)


@net
def codebook() -> Case:
    """Nearest entry of a table."""

    def forward(self: Any, x: Any) -> Any:
        distance = ((x.unsqueeze(2) - self.table.weight) ** 2).sum(-1)
        return self.table(distance.argmin(-1))

    return Case(Lambda(forward, table=nn.Embedding(7, 4)), FRAMES)


# ---- reads and writes within samples


@net
def values_sorted() -> Case:
    return Case(lambda x: x.sort(-1)[0] + x.median(-1, keepdim=True)[0], FRAMES)


@net
def late_values_sorted() -> Case:
    model = Lambda(lambda self, x: self.conv(x).sort(1)[0] * x[..., 3:], conv=nn.Conv1d(2, 2, 4))
    return Case(model, WAVE)


@net
def largest_channels() -> Case:
    """The two largest channels of each sample, and zeros in the others."""

    def forward(x: Any) -> Any:
        values, channels = x.topk(2, 1)
        return gc.zeros_like(x).scatter(1, channels, values) + gc.zeros_like(x).scatter_add(1, channels, 2 * values)

    return Case(forward, ((2, 5, TIME),))


@net
def experts() -> Case:
    """The outputs of the two best experts of each sample."""

    def forward(self: Any, x: Any) -> Any:
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        outputs = self.experts(x).reshape(2, x.shape[1], 3, 4)
        index = chosen.unsqueeze(-1).expand(2, x.shape[1], 2, 4)
        return (gc.take_along_dim(outputs, index, 2) * weights.unsqueeze(-1)).sum(2)

    return Case(Lambda(forward, gate=nn.Linear(4, 3), experts=nn.Linear(4, 12)), FRAMES)


@net
def channels_in_another_order() -> Case:
    """Reads by fixed numbers, and by those that other samples of the same time give."""

    def forward(x: Any) -> Any:
        order = gc.tensor([2, 0, 3, 1]).reshape(1, 4, 1).expand(1, 4, x.shape[-1])
        return x.gather(1, order) - x.gather(1, x.argsort(1)) * x.cumsum(-1)

    return Case(forward, ((1, 4, TIME),))
