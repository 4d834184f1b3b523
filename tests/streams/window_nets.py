"""Nets of convolutions and spectra that can be streamed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import graphc as gc
from graphc import nn
from graphc.nn import functional as F
from tests.streams.cases import IMAGE, TIME, WAVE, Case, CausalConv, Lambda, net


@net
def tcn() -> Case:
    def forward(self: Any, x: Any) -> Any:
        x = self.first(x)
        for conv in self.convs:
            x = x + conv(x).relu()
        return x

    return Case(
        Lambda(
            forward,
            first=nn.Conv1d(2, 4, 1),
            convs=nn.ModuleList(CausalConv(4, 4, 3, dilation) for dilation in (1, 2, 4)),
        ),
        WAVE,
    )


@net
def tcn_cropped() -> Case:
    def forward(self: Any, x: Any) -> Any:
        x = self.first(x)
        for conv in self.convs:
            y = conv(x).relu()
            x = x[..., x.shape[-1] - y.shape[-1] :] + y
        return x

    convs = nn.ModuleList(nn.Conv1d(4, 4, 3, dilation=dilation) for dilation in (1, 2, 4))
    return Case(Lambda(forward, first=nn.Conv1d(2, 4, 1), convs=convs), WAVE)


def _wavenet(padded: bool) -> Case:
    def forward(self: Any, x: Any) -> Any:
        x, skips = self.first(x), []
        for index in range(3):
            gates, past = self.gates[index], 2**index
            y = gates(F.pad(x, (past, 0)) if padded else x)
            y = y[:, :4].tanh() * y[:, 4:].sigmoid()
            skips.append(self.skips[index](y))
            x = x[..., 0 if padded else past :] + self.rests[index](y)
        count = skips[-1].shape[-1]
        total = sum(skip[..., skip.shape[-1] - count :] for skip in skips)
        return self.last(total.relu())

    modules = {
        "first": nn.Conv1d(2, 4, 1),
        "gates": nn.ModuleList(nn.Conv1d(4, 8, 2, dilation=2**i) for i in range(3)),
        "skips": nn.ModuleList(nn.Conv1d(4, 3, 1) for _ in range(3)),
        "rests": nn.ModuleList(nn.Conv1d(4, 4, 1) for _ in range(3)),
        "last": nn.Conv1d(3, 5, 1),
    }
    return Case(Lambda(forward, **modules), WAVE)


@net
def wavenet() -> Case:
    return _wavenet(padded=True)


@net
def wavenet_cropped() -> Case:
    return _wavenet(padded=False)


def _tasnet(causal: bool) -> Lambda:
    def forward(self: Any, x: Any) -> Any:
        frames = self.encoder(F.pad(x, (2, 0)) if causal else x).relu()
        masks = self.masks(frames).sigmoid()
        y = self.decoder(frames * masks)
        return y[..., : x.shape[-1]]

    masks = nn.Sequential(nn.Conv1d(6, 4, 1), nn.PReLU(), CausalConv(4, 4, 3), nn.Conv1d(4, 6, 1))
    encoder = nn.Conv1d(1, 6, 4, stride=2, bias=False)
    return Lambda(forward, encoder=encoder, masks=masks, decoder=nn.ConvTranspose1d(6, 1, 4, stride=2))


@net
def tasnet() -> Case:
    return Case(_tasnet(causal=True), ((1, 1, TIME),))


@net
def tasnet_with_lookahead() -> Case:
    return Case(_tasnet(causal=False), ((1, 1, TIME),), {"lookahead": 2})


@net
def depthwise_separable() -> Case:
    return Case(
        nn.Sequential(CausalConv(2, 4, 5, groups=2), nn.Conv1d(4, 6, 1), nn.Hardswish(), CausalConv(6, 6, 3, groups=6)),
        WAVE,
    )


@net
def gated_convs() -> Case:
    return Case(nn.Sequential(CausalConv(2, 8, 3), nn.GLU(1), CausalConv(4, 6, 3), nn.GLU(1)), WAVE)


@net
def conv_in_batches_of_time_first() -> Case:
    model = Lambda(lambda self, x: self.conv(x.permute(1, 2, 0)).permute(2, 0, 1), conv=CausalConv(4, 3, 4))
    return Case(model, ((TIME, 3, 4),))


@net
def strided_convs() -> Case:
    return Case(nn.Sequential(nn.Conv1d(2, 4, 4, stride=2), nn.ReLU(), nn.Conv1d(4, 3, 3, stride=3)), WAVE, length=72)


@net
def normalized_image_time_first() -> Case:
    def forward(self: Any, x: Any) -> Any:
        a = self.down(F.pad(x, (1, 1, 2, 0))).relu()
        return self.up(a)[:, :, : x.shape[2], : x.shape[3]] + x

    down, up = nn.Conv2d(1, 3, (3, 3), stride=(1, 2)), nn.ConvTranspose2d(3, 1, (1, 4), stride=(1, 2), padding=(0, 1))
    return Case(Lambda(forward, down=down, up=up), IMAGE)


@net
def image_time_last() -> Case:
    layers = [
        nn.ZeroPad2d((2, 0, 1, 1)),
        nn.Conv2d(1, 3, 3),
        nn.ELU(),
        nn.ZeroPad2d((2, 0, 1, 1)),
        nn.Conv2d(3, 2, (3, 2), dilation=(1, 2)),
    ]
    return Case(nn.Sequential(*layers), ((2, 1, 6, TIME),))


@net
def deep_filter() -> Case:
    """Three taps in time for each band, from coefficients of a net."""

    def forward(self: Any, x: Any) -> Any:
        taps = F.pad(x, (0, 0, 2, 0)).unfold(2, 3, 1)
        weights = self.net(F.pad(x, (1, 1, 1, 0))).permute(0, 2, 3, 1)
        return (taps[:, 0] * weights).sum(-1)

    return Case(Lambda(forward, net=nn.Conv2d(1, 3, (2, 3))), IMAGE)


@net
def convolutional_recurrent() -> Case:
    def forward(self: Any, x: Any) -> Any:
        y = self.conv(F.pad(x, (0, 0, 1, 0))).relu()
        batch, channels, time, bands = y.shape
        rows = y.permute(0, 2, 1, 3).reshape(batch, time, channels * bands)
        return self.out(self.gru(rows)[0]).sigmoid() * x[:, 0]

    modules = {"conv": nn.Conv2d(1, 2, (2, 2), stride=(1, 2)), "gru": nn.GRU(8, 5, batch_first=True)}
    return Case(Lambda(forward, **modules, out=nn.Linear(5, 8)), IMAGE)


# ---- spectra


def _mel(bins: int, bands: int) -> Any:
    weights = np.maximum(0, 1 - np.abs(np.arange(bins)[:, None] / 2 - np.arange(bands)[None]))
    return gc.from_numpy(weights.astype(np.float32))


@net
def spectrum() -> Case:
    def forward(x: Any) -> Any:
        frames = gc.stft(x, 16, 8, window=gc.hann_window(16), center=False, return_complex=True)
        return frames.abs()

    return Case(forward, ((1, TIME),))


@net
def keywords() -> Case:
    def forward(self: Any, x: Any) -> Any:
        frames = x.unfold(-1, 16, 8) * self.window
        power = (frames @ self.cosines) ** 2 + (frames @ self.sines) ** 2
        mel = (power @ self.mel + 1e-3).log()
        y = self.convs(mel.transpose(1, 2))
        return self.out(y.transpose(1, 2)).log_softmax(-1)

    angles = 2 * math.pi / 16 * np.arange(16)[:, None] * np.arange(9)[None]
    modules = {
        "window": nn.Buffer(gc.hann_window(16)),
        "cosines": nn.Buffer(gc.from_numpy(np.cos(angles).astype(np.float32))),
        "sines": nn.Buffer(gc.from_numpy(np.sin(angles).astype(np.float32))),
        "mel": nn.Buffer(_mel(9, 5)),
        "convs": nn.Sequential(CausalConv(5, 5, 3, groups=5), nn.BatchNorm1d(5), nn.ReLU(), nn.Conv1d(5, 4, 1)),
        "out": nn.Linear(4, 3),
    }
    return Case(Lambda(forward, **modules), ((1, TIME),))


@net
def mel_of_stft() -> Case:
    def forward(self: Any, x: Any) -> Any:
        frames = gc.stft(x, 16, 4, window=gc.hann_window(16), center=False, return_complex=True)
        power = gc.view_as_real(frames).pow(2).sum(-1)
        return self.gru((power.transpose(1, 2) @ self.mel + 1e-3).log())[0]

    return Case(Lambda(forward, mel=nn.Buffer(_mel(9, 5)), gru=nn.GRU(5, 3, batch_first=True)), ((1, TIME),))


@net
def overlapping_frames() -> Case:
    """Frames, a net for each, and their sum at the places where they were."""

    def forward(self: Any, x: Any) -> Any:
        frames = F.pad(x, (4, 0)).unfold(-1, 8, 4)
        y = self.net(frames[:, 0]).transpose(1, 2)
        return F.conv_transpose1d(y, gc.eye(8).reshape(8, 1, 8), stride=4)[..., : x.shape[-1]]

    return Case(Lambda(forward, net=nn.Sequential(nn.Linear(8, 8), nn.Tanh())), ((1, 1, TIME),))


def _masked_spectrum(hop: int, lookahead: int = 0, pad_mode: str = "reflect", **options: Any) -> Case:
    """A mask for each bin of a spectrum, and the signal of the masked spectrum."""
    window = gc.hamming_window(16)

    def forward(self: Any, x: Any) -> Any:
        spectrum = gc.stft(x, 16, hop, window=window, pad_mode=pad_mode, return_complex=True, **options)
        mask = self.mask((spectrum.abs() + 1e-2).log().transpose(1, 2)).sigmoid().transpose(1, 2)
        return gc.istft(spectrum * mask, 16, hop, window=window, **options)

    return Case(Lambda(forward, mask=nn.Linear(9, 9)), ((2, TIME),), {"lookahead": lookahead})


@net
def masked_spectrum() -> Case:
    return _masked_spectrum(4, 12, center=False)


@net
def masked_spectrum_of_centred_frames() -> Case:
    return _masked_spectrum(4, 16)


@net
def masked_spectrum_of_frames_with_zeros() -> Case:
    return _masked_spectrum(8, 8, "constant")


@net
def masked_spectrum_of_frames_with_gaps_at_the_end() -> Case:
    """Frames whose hop does not divide them."""
    return _masked_spectrum(6, 10, center=False)


@net
def masked_spectrum_of_the_same_length() -> Case:
    window = gc.hann_window(16)

    def forward(x: Any) -> Any:
        spectrum = gc.stft(x, 16, 8, window=window, return_complex=True)
        return gc.istft(spectrum * 0.5, 16, 8, window=window, length=x.shape[-1])

    return Case(forward, ((1, TIME),), {"lookahead": 16})


@net
def centred_spectrum() -> Case:
    def forward(x: Any) -> Any:
        return gc.stft(x, 16, 8, window=gc.hann_window(16), return_complex=True).abs()

    return Case(forward, ((1, TIME),), {"lookahead": 2})


@net
def recurrent_mask_of_a_folded_spectrum() -> Case:
    """Frames by `unfold`, a net for each, and their sum by `fold`, divided by the number of frames."""

    def forward(self: Any, x: Any) -> Any:
        frames = F.unfold(x, (1, 12), stride=(1, 4))
        y = self.gru(frames.transpose(1, 2))[0].transpose(1, 2)
        shape = (1, (frames.shape[-1] - 1) * 4 + 12)
        return F.fold(y, shape, (1, 12), stride=(1, 4)) / F.fold(gc.ones_like(y), shape, (1, 12), stride=(1, 4))

    return Case(Lambda(forward, gru=nn.GRU(12, 12, batch_first=True)), ((2, 1, 1, TIME),), {"lookahead": 8})


@net
def patches_of_images() -> Case:
    """Patches of a spectrogram that overlap in time and bands, and their sum."""

    def forward(self: Any, x: Any) -> Any:
        patches = F.unfold(x, (1, 3), padding=(0, 1)).reshape(1, 3, x.shape[2], 8)
        y = self.conv(F.pad(patches, (0, 0, 1, 0))).relu()
        lines = y.permute(0, 1, 3, 2).reshape(1, 16, x.shape[2])
        return F.fold(lines, (x.shape[2] + 2, 8), (2, 8), dilation=(2, 1))[:, :, : x.shape[2]]

    return Case(Lambda(forward, conv=nn.Conv2d(3, 2, (2, 1))), IMAGE)


# ---- windows that look ahead


@net
def pool_with_padding() -> Case:
    return Case(nn.Sequential(CausalConv(2, 2, 2), nn.MaxPool1d(3, 2, 1)), WAVE, {"lookahead": 1})


@net
def conv_with_padding() -> Case:
    return Case(nn.Conv1d(2, 2, 5, padding="same"), WAVE, {"lookahead": 2})


@net
def transposed_conv_with_padding() -> Case:
    model = nn.ConvTranspose1d(2, 2, 4, stride=2, padding=1, output_padding=1)
    return Case(nn.Sequential(CausalConv(2, 2, 2), model), WAVE, {"lookahead": 2})


@net
def lines_between_samples() -> Case:
    model = Lambda(lambda self, x: self.conv(F.interpolate(x, scale_factor=4, mode="linear")), conv=CausalConv(2, 2, 3))
    return Case(model, WAVE, {"lookahead": 4})


@net
def reflected_start() -> Case:
    model = Lambda(lambda self, x: self.conv(F.pad(x, (3, 0), mode="reflect")), conv=nn.Conv1d(2, 3, 4))
    return Case(model, WAVE, {"lookahead": 6})


@net
def reflected_start_of_late_samples() -> Case:
    def forward(self: Any, x: Any) -> Any:
        return self.conv(F.pad(self.first(F.pad(x, (6, 0))), (3, 0), mode="reflect"))

    return Case(Lambda(forward, first=nn.Conv1d(2, 2, 3), conv=nn.Conv1d(2, 3, 4)), WAVE, {"lookahead": 6})


@net
def first_sample_repeated() -> Case:
    model = Lambda(lambda self, x: self.conv(F.pad(x, (2, 0), mode="replicate")), conv=nn.Conv1d(2, 3, 4, stride=2))
    return Case(model, WAVE, {"lookahead": 1})


@net
def first_sample_repeated_in_time_first() -> Case:
    def forward(self: Any, x: Any) -> Any:
        return self.conv(F.pad(x.permute(1, 2, 0), (3, 0), mode="replicate")).permute(2, 0, 1)

    return Case(Lambda(forward, conv=nn.Conv1d(2, 3, 4)), ((TIME, 1, 2),), {"lookahead": 3})


@net
def video() -> Case:
    """A net for images on each frame, with batch and time in one dimension."""

    def forward(self: Any, x: Any) -> Any:
        y = self.conv(x.reshape(2 * x.shape[1], 1, 4, 4)).relu()
        return self.out(F.adaptive_avg_pool2d(y, 1).flatten(1)).reshape(2, x.shape[1], 3)

    return Case(Lambda(forward, conv=nn.Conv2d(1, 2, 3), out=nn.Linear(2, 3)), ((2, TIME, 4, 4),))


@net
def volumes() -> Case:
    return Case(
        nn.Sequential(nn.ConstantPad3d((0, 0, 0, 0, 2, 0), 0.0), nn.Conv3d(1, 2, (3, 2, 2))), ((1, 1, TIME, 4, 4),)
    )


@net
def spectrum_with_gain() -> Case:
    def forward(x: Any) -> Any:
        frames = gc.stft(x, 16, 8, window=gc.hann_window(16), center=False, return_complex=True)
        return gc.view_as_real(frames * (0.5 + 0.1j))

    return Case(forward, ((1, TIME),))


@net
def long_dilation() -> Case:
    """Few samples of a long window."""
    return Case(
        nn.Sequential(CausalConv(2, 3, 3, dilation=40), nn.Tanh(), CausalConv(3, 2, 2, dilation=50)), WAVE, length=256
    )
