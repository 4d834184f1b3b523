"""Models of sequences that run as streams: amplifiers, a residual convolution net, keywords, a denoiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc import nn
from graphc.base.records import dataclass

AUDIO_HZ, FRAME_HZ = 48_000, 100
_TEN = tuple(2**i for i in range(10))


class CausalConv(nn.Module):
    """Convolution along time (dimension 2) that sees earlier samples only."""

    def __init__(self, channels: int, filters: int, kernel: int, dilation: int = 1):
        super().__init__()
        self.pad = nn.ConstantPad1d(((kernel - 1) * dilation, 0), 0.0)
        self.conv = nn.Conv1d(channels, filters, kernel, dilation=dilation)

    def forward(self, x: Any) -> Any:
        return self.conv(self.pad(x))


class Layer(nn.Module):
    """Layer of a WaveNet without gates: the input is mixed in, and the activation goes to the head."""

    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.conv = CausalConv(channels, channels, 3, dilation)
        self.mix = nn.Conv1d(1, channels, 1, bias=False)
        self.one = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Any, sound: Any) -> tuple[Any, Any]:
        a = (self.conv(x) + self.mix(sound)).tanh()
        return x + self.one(a), a


class WaveNet(nn.Module):
    """Amplifier [1, 1, time] of two stacks of layers, in the sizes of Neural Amp Modeler."""

    def __init__(self, channels: tuple[int, int], dilations: tuple[Sequence[int], Sequence[int]]):
        super().__init__()
        self.channels, self.dilations = channels, dilations
        a, b = channels
        self.first_a, self.first_b = nn.Conv1d(1, a, 1, bias=False), nn.Conv1d(a, b, 1, bias=False)
        self.a = nn.ModuleList([Layer(a, d) for d in dilations[0]])
        self.b = nn.ModuleList([Layer(b, d) for d in dilations[1]])
        self.head_a, self.head_b = nn.Conv1d(a, b, 1, bias=False), nn.Conv1d(b, 1, 1)

    def forward(self, sound: Any) -> Any:
        x, head = self.first_a(sound), None
        for layer in self.a:
            x, a = layer(x, sound)
            head = a if head is None else head + a
        x, head = self.first_b(x), self.head_a(head)
        for layer in self.b:
            x, a = layer(x, sound)
            head = head + a
        return self.head_b(head)

    def packed(self) -> np.ndarray:
        """Return the weights in the order of the C loop: inputs first, then filters."""
        parts = [_inputs_first(self.first_a)]
        for layer in self.a:
            parts += _packed_layer(layer)
        parts += [_inputs_first(self.head_a), _inputs_first(self.first_b)]
        for layer in self.b:
            parts += _packed_layer(layer)
        return np.concatenate([*parts, _inputs_first(self.head_b), _array(self.head_b.bias)])

    @property
    def macros(self) -> dict[str, str]:
        """Sizes for the C loop."""
        macros = {"MAX_DILATION": str(max(map(max, self.dilations)))}
        for stack, channels, dilations in zip("AB", self.channels, self.dilations, strict=True):
            macros |= {f"CHANNELS_{stack}": str(channels), f"REACH_{stack}": str(sum(dilations))}
            macros[f"DILATIONS_{stack}"] = ",".join(map(str, dilations))
        return macros


def _array(tensor: Any) -> np.ndarray:
    return tensor.detach().numpy()


def _inputs_first(conv: Any) -> np.ndarray:
    return _array(conv.weight).transpose(2, 1, 0).reshape(-1)


def _packed_layer(layer: Any) -> list[np.ndarray]:
    conv, one = layer.conv.conv, layer.one
    return [_inputs_first(conv), _array(conv.bias), _inputs_first(layer.mix), _inputs_first(one), _array(one.bias)]


class LstmAmplifier(nn.Module):
    """Amplifier [1, time, 1] of an LSTM and a linear layer, whose result is added to the input."""

    def __init__(self, hidden: int):
        super().__init__()
        self.hidden = hidden
        self.lstm, self.linear = nn.LSTM(1, hidden, batch_first=True), nn.Linear(hidden, 1)

    def forward(self, sound: Any) -> Any:
        return self.linear(self.lstm(sound)[0]) + sound

    def gates(self, order: str) -> list[np.ndarray]:
        """Return weights [gates, inputs] of the state and of the input, and the bias, gates in this order."""
        lstm = self.lstm
        arrays = [_array(lstm.weight_hh_l0), _array(lstm.weight_ih_l0), _array(lstm.bias_ih_l0 + lstm.bias_hh_l0)]
        return [np.concatenate([np.split(a, 4)["ifgo".index(g)] for g in order]) for a in arrays]

    def packed(self) -> np.ndarray:
        """Return the weights in the order of the C loop."""
        recurrent, sound, bias = self.gates("ifog")
        rest = [_array(self.linear.weight), _array(self.linear.bias)]
        return np.concatenate([a.reshape(-1) for a in (recurrent.T, sound, bias, *rest)])

    @property
    def macros(self) -> dict[str, str]:
        """Sizes for the C loop."""
        return {"HIDDEN": str(self.hidden)}


class Residual(nn.Module):
    """Two convolutions along time around which the input goes."""

    def __init__(self, channels: int, dilation: int):
        super().__init__()
        self.a = CausalConv(channels, channels, 3, dilation)
        self.b = CausalConv(channels, channels, 3, dilation)

    def forward(self, x: Any) -> Any:
        return (x + self.b(self.a(x).relu()).relu()).relu()


def tcn() -> nn.Module:
    """Return a convolution net [1, 32, time] of four residual blocks."""
    return nn.Sequential(*(Residual(32, 2**i) for i in range(4)))


class CausalConv2d(nn.Module):
    """Convolution over (time, frequency) that sees earlier frames only, with batch norm and ReLU."""

    def __init__(self, channels: int, filters: int, kernel: tuple[int, int], stride: int = 1, groups: int = 1):
        super().__init__()
        side = (kernel[1] - 1) // 2
        self.pad = nn.ConstantPad2d((side, side, kernel[0] - 1, 0), 0.0)
        self.conv = nn.Conv2d(channels, filters, kernel, stride=(1, stride), groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x: Any) -> Any:
        return self.norm(self.conv(self.pad(x))).relu()


class Keywords(nn.Module):
    """Scores of 12 keywords for each frame: depthwise convolutions on features [1, 1, time, 40]."""

    def __init__(self):
        super().__init__()
        layers = [CausalConv2d(1, 64, (10, 4), 2)]
        for _ in range(4):
            layers += [CausalConv2d(64, 64, (3, 3), groups=64), CausalConv2d(64, 64, (1, 1))]
        self.layers = nn.Sequential(*layers)
        self.pad, self.mean = nn.ConstantPad1d((49, 0), 0.0), nn.AvgPool1d(50, stride=1)
        self.last = nn.Conv1d(64, 12, 1)

    def forward(self, features: Any) -> Any:
        return self.last(self.mean(self.pad(self.layers(features).mean(3))))


class Denoiser(nn.Module):
    """Gains of 32 bands for each frame, from energies [1, 1, time, 32], in the shape of DeepFilterNet's first stage."""

    def __init__(self, channels: int = 64, hidden: int = 256):
        super().__init__()

        def separable(stride: int) -> nn.Module:
            return nn.Sequential(
                CausalConv2d(channels, channels, (1, 3), stride, channels), CausalConv2d(channels, channels, (1, 1))
            )

        self.first = CausalConv2d(1, channels, (3, 3))
        self.down = nn.ModuleList([separable(2), separable(2), separable(1)])
        self.skips = nn.ModuleList([CausalConv2d(channels, channels, (1, 1)) for _ in range(4)])
        self.into, self.out = nn.Linear(8 * channels, hidden), nn.Linear(hidden, 8 * channels)
        self.gru = nn.GRU(hidden, hidden, batch_first=True)
        self.even = separable(1)
        self.up = nn.ModuleList(
            [
                nn.ConvTranspose2d(channels, channels, (1, 3), stride=(1, 2), padding=(0, 1), output_padding=(0, 1))
                for _ in range(2)
            ]
        )
        self.gains = nn.Conv2d(channels, 1, (1, 3), padding=(0, 1))

    def forward(self, bands: Any) -> Any:
        levels = [self.first(bands)]
        for layer in self.down:
            levels.append(layer(levels[-1]))
        x = levels[-1]
        batch, channels, frames, width = x.shape
        rows = x.permute(0, 2, 1, 3).reshape(batch, frames, channels * width)
        rows = self.out(self.gru(self.into(rows).relu())[0]).relu()
        x = rows.reshape(batch, frames, channels, width).permute(0, 2, 1, 3)
        x = self.even(x + self.skips[3](levels[3]))
        for up, skip, level in zip(self.up, self.skips[1:3][::-1], levels[1:3][::-1], strict=True):
            x = up(x + skip(level)).relu()
        return self.gains(x + self.skips[0](levels[0])).sigmoid()


@dataclass(frozen=True)
class Net:
    """A model as a stream."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    """Shape of a sequence."""
    dim: int
    """The dimension of time."""
    rate: int
    """Samples of a second."""
    steps: tuple[int, ...] = (1,)
    """Samples of a tick."""


def _amplifier(make: Callable[[], nn.Module], dim: int) -> Net:
    shape = (1, 1, 8192) if dim == 2 else (1, 8192, 1)
    return Net(make, shape, dim, AUDIO_HZ, (1, 64))


NETS: dict[str, Net] = {
    "wavenet-standard": _amplifier(lambda: WaveNet((16, 8), (_TEN, _TEN)), 2),
    "wavenet-nano": _amplifier(lambda: WaveNet((4, 2), (_TEN[:7], _TEN[7:] + _TEN)), 2),
    "lstm-8": _amplifier(lambda: LstmAmplifier(8), 1),
    "lstm-20": _amplifier(lambda: LstmAmplifier(20), 1),
    "lstm-40": _amplifier(lambda: LstmAmplifier(40), 1),
    "tcn": Net(tcn, (1, 32, 256), 2, AUDIO_HZ),
    "keywords": Net(Keywords, (1, 1, 256, 40), 2, FRAME_HZ),
    "denoiser": Net(Denoiser, (1, 1, 256, 32), 2, FRAME_HZ),
}
