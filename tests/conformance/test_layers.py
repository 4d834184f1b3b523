"""Layers with the state of PyTorch's: results, gradients of inputs and parameters, buffers, printing, initial ranges."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import graphc
from graphc import nn
from tests.conformance.compare import (
    equal,
    gradients,
    leaves,
    normal,
    operands,
    positive,
    spread,
    strided,
    truth,
    whole,
)


class Layer(NamedTuple):
    """A layer's constructor for the library ``t``, and the operands of its calls."""

    name: str
    make: Callable[[Any], Any]
    arrays: tuple[np.ndarray, ...]
    order: int = 2
    tolerance: float = 1e-7


VECTORS, SEQUENCE, IMAGE = normal(5, 6), normal(2, 4, 7), normal(2, 4, 6, 5)
VOLUME = normal(2, 3, 4, 4, 5)
TOKENS = whole(7, 3, 4)
TIME = normal(5, 2, 6)
SOURCE, TARGET = normal(4, 2, 6), normal(3, 2, 6, seed=1)
SIGNS = np.where(truth(5), 1.0, -1.0)
PLAIN = "Identity ReLU ReLU6 LeakyReLU ELU SELU CELU GELU SiLU Mish Softplus Softsign Tanh Sigmoid LogSigmoid Hardtanh"
PLAIN += " Hardsigmoid Hardswish Hardshrink Softshrink Tanhshrink GLU PReLU Flatten Softmax2d"
ONCE = {"Hardswish", "Hardsigmoid", "Hardshrink", "Softshrink"}
CONVOLUTIONS = [
    {},
    {"stride": 2, "padding": 1},
    {"dilation": 2, "bias": False},
    {"groups": 2, "padding": "same"},
    {"padding": 2, "padding_mode": "reflect"},
    {"padding": 1, "padding_mode": "replicate", "stride": 2},
    {"padding": 1, "padding_mode": "circular"},
    {"padding": "same", "padding_mode": "circular"},
    {"padding": "valid", "padding_mode": "circular"},
]

LAYERS = [
    *(Layer(n, lambda t, n=n: getattr(t.nn, n)(), (IMAGE[:, :, :, :4],), 1 if n in ONCE else 2) for n in PLAIN.split()),
    Layer("Threshold", lambda t: t.nn.Threshold(0.1, 3.0), (VECTORS,)),
    Layer("RReLU", lambda t: t.nn.RReLU(0.1, 0.3).eval(), (VECTORS,), 1),
    Layer("Softmax", lambda t: t.nn.Softmax(dim=1), (SEQUENCE,)),
    Layer("LogSoftmax", lambda t: t.nn.LogSoftmax(dim=-1), (SEQUENCE,)),
    Layer("Softmin", lambda t: t.nn.Softmin(dim=0), (SEQUENCE,)),
    Layer("Linear", lambda t: t.nn.Linear(6, 3), (VECTORS,)),
    Layer("Linear without bias", lambda t: t.nn.Linear(7, 3, bias=False), (SEQUENCE,)),
    Layer("Bilinear", lambda t: t.nn.Bilinear(6, 4, 3), (VECTORS, normal(5, 4))),
    Layer("Unflatten", lambda t: t.nn.Unflatten(1, (2, 3)), (VECTORS,)),
    *(Layer(f"Flatten {list(a)}", lambda t, a=a: t.nn.Flatten(*a), (IMAGE,)) for a in ((0,), (0, 2), (1, 2), (2, -1))),
    *(Layer(f"Unflatten {list(s)}", lambda t, s=s: t.nn.Unflatten(1, s), (normal(2, 12, 3),)) for s in ((2, 6), (3, -1), (2, 2, 3))),
    Layer("Embedding", lambda t: t.nn.Embedding(7, 3, padding_idx=2), (TOKENS,)),
    Layer("Embedding padded at the end", lambda t: t.nn.Embedding(7, 3, padding_idx=-1), (TOKENS,)),
    Layer("EmbeddingBag", lambda t: t.nn.EmbeddingBag(7, 3, mode="sum"), (TOKENS,), 1),
    Layer("EmbeddingBag offsets", lambda t: t.nn.EmbeddingBag(7, 3), (TOKENS.ravel(), np.array([0, 4, 9])), 1),
    *(
        Layer(f"{kind} {list(array.shape)} {o}", lambda t, k=kind, s=size, o=o: getattr(t.nn, k)(4, 6, s, **o), (array,))
        for kind, size, arrays in (("Conv2d", (3, 2), (IMAGE, IMAGE[0])), ("Conv1d", 3, (SEQUENCE,))) for array in arrays for o in CONVOLUTIONS
    ),
    *(
        Layer(f"{kind} {o}", lambda t, k=kind, o=o: getattr(t.nn, k)(4, 6, 3, **o), (array,))
        for kind, array in (("ConvTranspose2d", IMAGE), ("ConvTranspose1d", SEQUENCE))
        for o in ({}, {"stride": 2, "padding": 1, "output_padding": 1}, {"groups": 2, "dilation": 2}, {"bias": False, "stride": 3})
    ),
    Layer("Conv1d", lambda t: t.nn.Conv1d(4, 6, 3, stride=2, padding=1), (SEQUENCE,)),
    Layer("Conv1d circular", lambda t: t.nn.Conv1d(4, 6, 3, padding=1, padding_mode="circular"), (SEQUENCE,)),
    Layer("Conv2d", lambda t: t.nn.Conv2d(4, 6, 3), (IMAGE,)),
    Layer("Conv2d options", lambda t: t.nn.Conv2d(4, 6, (3, 2), (2, 1), (1, 0), (1, 2), groups=2, bias=False), (IMAGE,)),
    Layer("Conv2d same", lambda t: t.nn.Conv2d(4, 6, 2, padding="same", padding_mode="reflect"), (IMAGE,)),
    Layer("Conv2d of nothing", lambda t: t.nn.Conv2d(4, 6, 3), (normal(0, 4, 6, 5),), 1),
    Layer("ConvTranspose1d", lambda t: t.nn.ConvTranspose1d(4, 6, 3, stride=2), (SEQUENCE,)),
    Layer("ConvTranspose2d", lambda t: t.nn.ConvTranspose2d(4, 6, 3, 2, 1, 1, groups=2), (IMAGE,)),
    Layer("Conv3d", lambda t: t.nn.Conv3d(3, 4, (2, 3, 2), stride=(1, 2, 1), padding=(1, 0, 1), dilation=(2, 1, 1)), (VOLUME,)),
    Layer("ConvTranspose3d", lambda t: t.nn.ConvTranspose3d(3, 4, 3, 2, 1, 1), (VOLUME,)),
    Layer("ConvTranspose3d groups", lambda t: t.nn.ConvTranspose3d(3, 6, (2, 1, 3), groups=3, dilation=(2, 1, 1)), (VOLUME[0],)),
    Layer("Conv3d same", lambda t: t.nn.Conv3d(3, 6, 2, padding="same", groups=3), (VOLUME,)),
    Layer("MaxPool3d", lambda t: t.nn.MaxPool3d(2, stride=1, padding=1), (spread(2, 3, 4, 4, 5),), 1),
    Layer("AvgPool3d", lambda t: t.nn.AvgPool3d((2, 3, 2), 2, 1, ceil_mode=True, count_include_pad=False), (VOLUME,)),
    Layer("AdaptiveAvgPool3d", lambda t: t.nn.AdaptiveAvgPool3d((3, None, 2)), (VOLUME,)),
    Layer("AdaptiveMaxPool3d", lambda t: t.nn.AdaptiveMaxPool3d((3, 2, None)), (spread(2, 3, 4, 4, 5),), 1),
    Layer("MaxPool1d", lambda t: t.nn.MaxPool1d(3, 2, 1), (spread(2, 4, 7),), 1),
    Layer("MaxPool2d", lambda t: t.nn.MaxPool2d(2, ceil_mode=True), (spread(2, 4, 7, 5),), 1),
    Layer("MaxPool2d of an image", lambda t: t.nn.MaxPool2d((3, 2), stride=2, ceil_mode=True), (spread(4, 8, 7),), 1),
    Layer("MaxPool2d dilated", lambda t: t.nn.MaxPool2d(2, dilation=2, return_indices=True), (spread(2, 4, 8, 7),), 1),
    Layer("AvgPool1d of own elements", lambda t: t.nn.AvgPool1d(3, padding=1, count_include_pad=False), (SEQUENCE,)),
    Layer("AvgPool2d divisor", lambda t: t.nn.AvgPool2d(3, stride=2, padding=1, divisor_override=4), (IMAGE,)),
    Layer("MaxPool2d indices", lambda t: t.nn.MaxPool2d(3, 2, 1, return_indices=True), (spread(2, 4, 7, 5),), 1),
    Layer("AvgPool1d", lambda t: t.nn.AvgPool1d(3, 2, 1), (SEQUENCE,)),
    Layer("AvgPool2d", lambda t: t.nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), (IMAGE,)),
    Layer("AdaptiveAvgPool1d", lambda t: t.nn.AdaptiveAvgPool1d(3), (SEQUENCE,)),
    Layer("AdaptiveAvgPool2d", lambda t: t.nn.AdaptiveAvgPool2d((3, None)), (IMAGE,)),
    Layer("AdaptiveMaxPool1d", lambda t: t.nn.AdaptiveMaxPool1d(3), (spread(2, 4, 7),), 1),
    Layer("AdaptiveMaxPool2d", lambda t: t.nn.AdaptiveMaxPool2d((2, 3), return_indices=True), (spread(2, 4, 7, 5),), 1),
    Layer("LPPool1d", lambda t: t.nn.LPPool1d(2, 3), (positive(2, 4, 7),)),
    Layer("LPPool2d", lambda t: t.nn.LPPool2d(3, 2, stride=1), (positive(2, 4, 6, 5),)),
    Layer("Unfold", lambda t: t.nn.Unfold(2, stride=2, padding=1), (IMAGE,)),
    Layer("Fold", lambda t: t.nn.Fold((6, 5), (2, 3), stride=(2, 1)), (normal(2, 12, 9),)),
    Layer("BatchNorm1d", lambda t: t.nn.BatchNorm1d(6), (VECTORS,)),
    Layer("BatchNorm1d sequence", lambda t: t.nn.BatchNorm1d(4, momentum=None), (SEQUENCE,)),
    Layer("BatchNorm2d", lambda t: t.nn.BatchNorm2d(4, eps=0.1, momentum=0.3), (IMAGE,)),
    Layer("BatchNorm2d evaluation", lambda t: t.nn.BatchNorm2d(4).eval(), (IMAGE,), 1),
    Layer("BatchNorm2d untracked", lambda t: t.nn.BatchNorm2d(4, affine=False, track_running_stats=False), (IMAGE,)),
    Layer("BatchNorm3d", lambda t: t.nn.BatchNorm3d(3), (VOLUME,)),
    Layer("LayerNorm", lambda t: t.nn.LayerNorm(7), (SEQUENCE,)),
    Layer("LayerNorm of two", lambda t: t.nn.LayerNorm((4, 7), bias=False), (SEQUENCE,)),
    Layer("LayerNorm without weights", lambda t: t.nn.LayerNorm((4, 7), eps=0.1, elementwise_affine=False), (SEQUENCE,)),
    Layer("RMSNorm without weights", lambda t: t.nn.RMSNorm((4, 7), elementwise_affine=False), (SEQUENCE,)),
    Layer("RMSNorm", lambda t: t.nn.RMSNorm(7, eps=0.01), (SEQUENCE,)),
    *(Layer(f"GroupNorm {g}{' without weights' * (not a)}", lambda t, g=g, a=a: t.nn.GroupNorm(g, 4, affine=a), (IMAGE,)) for g in (1, 2, 4) for a in (True, False)),
    Layer("InstanceNorm1d", lambda t: t.nn.InstanceNorm1d(4, affine=True), (SEQUENCE,), 1),
    Layer("InstanceNorm2d", lambda t: t.nn.InstanceNorm2d(4, track_running_stats=True), (IMAGE,), 1),
    Layer("InstanceNorm3d", lambda t: t.nn.InstanceNorm3d(3), (VOLUME,), 1),
    Layer("LocalResponseNorm", lambda t: t.nn.LocalResponseNorm(3, alpha=0.1), (IMAGE,)),
    *(
        Layer(f"{kind}Pad{rank}d", lambda t, k=kind, r=rank: getattr(t.nn, f"{k}Pad{r}d")(1), (array,))
        for kind in ("Zero", "Reflection", "Replication", "Circular")
        for rank, array in ((1, SEQUENCE), (2, IMAGE), (3, VOLUME))
    ),
    *(
        Layer(f"ConstantPad{rank}d", lambda t, r=rank: getattr(t.nn, f"ConstantPad{r}d")(2, 1.5), (array,))
        for rank, array in ((1, SEQUENCE), (2, IMAGE), (3, VOLUME))
    ),
    *(
        Layer(f"{name} by side", lambda t, n=name, a=arguments: getattr(t.nn, n)(*a), (array,))
        for name, arguments, array in (
            ("ZeroPad2d", ((1, 0, 2, 1),), IMAGE), ("ConstantPad1d", ((2, 1), 1.5), SEQUENCE), ("ReflectionPad1d", ((2, 1),), SEQUENCE),
            ("ReflectionPad2d", (2,), IMAGE), ("ReplicationPad2d", ((1, 2, 3, 0),), IMAGE), ("CircularPad2d", ((1, 2, 3, 0),), IMAGE))
    ),
    Layer("Upsample linear", lambda t: t.nn.Upsample(None, 2, "linear", True), (SEQUENCE,), 2, 1e-5),
    Layer("Upsample to a size", lambda t: t.nn.Upsample((7, 9), None, "bilinear"), (IMAGE,), 2, 1e-5),
    Layer("Upsample", lambda t: t.nn.Upsample(scale_factor=1.5), (IMAGE,)),
    Layer("Upsample bilinear", lambda t: t.nn.Upsample((9, 3), mode="bilinear", align_corners=True), (IMAGE,), 2, 1e-5),
    Layer("UpsamplingNearest2d", lambda t: t.nn.UpsamplingNearest2d((3, 9)), (IMAGE,)),
    Layer("UpsamplingBilinear2d", lambda t: t.nn.UpsamplingBilinear2d(scale_factor=2), (IMAGE,), 2, 1e-5),
    Layer("PixelShuffle", lambda t: t.nn.PixelShuffle(2), (IMAGE,)),
    Layer("PixelUnshuffle", lambda t: t.nn.PixelUnshuffle(2), (IMAGE[..., :4],)),
    Layer("ChannelShuffle", lambda t: t.nn.ChannelShuffle(2), (IMAGE,)),
    Layer("CosineSimilarity", lambda t: t.nn.CosineSimilarity(dim=-1), (VECTORS, normal(5, 6, seed=1))),
    Layer("PairwiseDistance", lambda t: t.nn.PairwiseDistance(p=1, keepdim=True), (VECTORS, normal(5, 6, seed=1))),
    *(
        Layer(f"{n} without training", lambda t, n=n: getattr(t.nn, n)(0.3).eval(), (array,))
        for n, array in (
            ("Dropout", VECTORS), ("Dropout1d", SEQUENCE), ("Dropout2d", IMAGE), ("Dropout3d", VOLUME),
            ("AlphaDropout", VECTORS), ("FeatureAlphaDropout", SEQUENCE))
    ),
    *(
        Layer(f"{kind} {i}", lambda t, k=kind, o=options: getattr(t.nn, k)(6, 4, **o), (TIME,))
        for kind in ("LSTM", "GRU", "RNN")
        for i, options in enumerate(
            (
                *({}, {"num_layers": 2, "bias": False}, {"bidirectional": True, "num_layers": 2}, {"batch_first": True}),
                *({"bias": False}, {"num_layers": 3}, {"bidirectional": True}),
                {"num_layers": 2, "bidirectional": True, "batch_first": True},
            )
        )
    ),
    Layer("RNN relu", lambda t: t.nn.RNN(6, 4, nonlinearity="relu"), (TIME,)),
    Layer("LSTM states", lambda t: _Given(t, t.nn.LSTM(6, 4)), (TIME, normal(1, 2, 4), normal(1, 2, 4, seed=1))),
    Layer("GRU states", lambda t: _Given(t, t.nn.GRU(6, 4)), (TIME, normal(1, 2, 4))),
    Layer("LSTM projected", lambda t: t.nn.LSTM(6, 5, 2, bidirectional=True, proj_size=3), (TIME,)),
    Layer("LSTM states projected", lambda t: _Given(t, t.nn.LSTM(6, 4, proj_size=2)), (TIME, normal(1, 2, 2), normal(1, 2, 4))),
    Layer("LSTM without batch", lambda t: t.nn.LSTM(6, 4), (TIME[:, 0],)),
    *(
        Layer(f"{n} {array.ndim}d{' without bias' * (not b)}", lambda t, n=n, b=b: getattr(t.nn, n)(6, 4, bias=b), (array,))
        for n in ("LSTMCell", "GRUCell", "RNNCell") for b in (True, False) for array in (VECTORS, VECTORS[0])
    ),
    Layer("LSTMCell states", lambda t: _Given(t, t.nn.LSTMCell(6, 4)), (VECTORS, normal(5, 4), normal(5, 4, seed=1))),
    Layer("GRUCell", lambda t: t.nn.GRUCell(6, 4), (VECTORS, normal(5, 4))),
    Layer("RNNCell", lambda t: t.nn.RNNCell(6, 4, nonlinearity="relu"), (VECTORS[0],)),
    Layer("MultiheadAttention", lambda t: t.nn.MultiheadAttention(6, 3), (SOURCE, SOURCE, SOURCE)),
    Layer("MultiheadAttention cross", lambda t: t.nn.MultiheadAttention(6, 2, kdim=5, vdim=7), (TARGET, normal(4, 2, 5), normal(4, 2, 7))),
    Layer("MultiheadAttention batch first", lambda t: t.nn.MultiheadAttention(6, 2, bias=False, batch_first=True), (normal(2, 3, 6), normal(2, 4, 6), normal(2, 4, 6, seed=1))),
    Layer("MultiheadAttention single", lambda t: t.nn.MultiheadAttention(6, 2), (TARGET[:, 0], SOURCE[:, 0], SOURCE[:, 1])),
    Layer("MultiheadAttention appended", lambda t: _Options(t, t.nn.MultiheadAttention(6, 2, add_bias_kv=True, add_zero_attn=True), "kpm am", average_attn_weights=False), (TARGET, SOURCE, SOURCE, np.array([[False, False, True, False], [False] * 4]), normal(3, 4))),
    Layer("MultiheadAttention masks", lambda t: _Options(t, t.nn.MultiheadAttention(6, 2), "am", need_weights=False), (TARGET, SOURCE, SOURCE, truth(4, 3, 4) & (np.arange(4) > 0))),
    Layer("MultiheadAttention padded", lambda t: _Options(t, t.nn.MultiheadAttention(6, 2, batch_first=True), "kpm"), (normal(2, 3, 6), normal(2, 4, 6), normal(2, 4, 6, seed=1), np.array([[False, False, True, True], [False] * 3 + [True]]))),
    Layer("TransformerEncoderLayer", lambda t: t.nn.TransformerEncoderLayer(6, 2, 8, dropout=0.0), (SOURCE,)),
    Layer("TransformerEncoderLayer first", lambda t: t.nn.TransformerEncoderLayer(6, 3, 8, 0.0, "gelu", 0.1, True, True, False), (normal(2, 4, 6),)),
    Layer("TransformerEncoderLayer evaluation", lambda t: t.nn.TransformerEncoderLayer(6, 2, 8, batch_first=True).eval(), (normal(2, 4, 6),), 1),
    Layer("TransformerDecoderLayer", lambda t: t.nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0), (TARGET, SOURCE)),
    Layer("TransformerDecoderLayer first", lambda t: t.nn.TransformerDecoderLayer(6, 2, 8, dropout=0.0, norm_first=True, activation="gelu"), (TARGET, SOURCE)),
    Layer("TransformerEncoder", lambda t: t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(6, 2, 8, 0.0), 2, t.nn.LayerNorm(6), enable_nested_tensor=False), (SOURCE,)),
    Layer("TransformerDecoder", lambda t: t.nn.TransformerDecoder(t.nn.TransformerDecoderLayer(6, 2, 8, 0.0), 2), (TARGET, SOURCE)),
    Layer("Transformer", lambda t: t.nn.Transformer(6, 2, 1, 2, 8, dropout=0.0), (SOURCE, TARGET), 1),
    Layer("Sequential", lambda t: t.nn.Sequential(t.nn.Linear(6, 4), t.nn.ReLU(), t.nn.Sequential(t.nn.Linear(4, 3))), (VECTORS,)),
    *(Layer(n, lambda t, n=n: getattr(t.nn, n)(), (VECTORS, normal(5, 6, seed=1)), 1) for n in (
        "L1Loss", "MSELoss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss")),
    *(
        Layer(f"{n} {r}", lambda t, n=n, r=r, o=options: getattr(t.nn, n)(reduction=r, **o), (positive(4, 3), positive(4, 3, seed=1)), 1)
        for n, options in (
            ("L1Loss", {}), ("MSELoss", {}), ("SmoothL1Loss", {"beta": 0.5}), ("HuberLoss", {"delta": 0.5}), ("BCELoss", {}),
            ("BCEWithLogitsLoss", {}), ("KLDivLoss", {"log_target": True}))
        for r in ("mean", "sum", "none")
    ),
    Layer("KLDivLoss batchmean", lambda t: t.nn.KLDivLoss(reduction="batchmean"), (normal(4, 3), positive(4, 3))),
    *(
        Layer(f"{n} of weights and ignored targets", lambda t, n=n: getattr(t.nn, n)(t.linspace(0.5, 1, 6, dtype=t.float64), ignore_index=1), (VECTORS, whole(6, 5)))
        for n in ("CrossEntropyLoss", "NLLLoss")
    ),
    Layer("CrossEntropyLoss", lambda t: t.nn.CrossEntropyLoss(label_smoothing=0.1), (VECTORS, whole(6, 5))),
    Layer("CrossEntropyLoss weights", lambda t: t.nn.CrossEntropyLoss(t.tensor([0.5, 1.0, 2.0, 1.0, 1.0, 3.0], dtype=t.float64), reduction="sum"), (VECTORS, whole(6, 5))),
    Layer("NLLLoss", lambda t: t.nn.NLLLoss(ignore_index=2), (VECTORS, whole(6, 5))),
    Layer("BCELoss", lambda t: t.nn.BCELoss(), (positive(5), positive(5, seed=1)), 1),
    Layer("BCEWithLogitsLoss", lambda t: t.nn.BCEWithLogitsLoss(pos_weight=t.tensor(2.0, dtype=t.float64)), (VECTORS, positive(5, 6))),
    Layer("KLDivLoss", lambda t: t.nn.KLDivLoss(reduction="batchmean", log_target=True), (VECTORS, normal(5, 6, seed=1))),
    Layer("BCEWithLogitsLoss by column", lambda t: t.nn.BCEWithLogitsLoss(pos_weight=t.linspace(0.5, 4, 6, dtype=t.float64)), (VECTORS, positive(5, 6))),
    Layer("GaussianNLLLoss", lambda t: t.nn.GaussianNLLLoss(full=True), (VECTORS, normal(5, 6, seed=1), positive(5, 6))),
    Layer("MarginRankingLoss", lambda t: t.nn.MarginRankingLoss(0.2), (normal(5), normal(5, seed=1), SIGNS), 1),
    Layer("HingeEmbeddingLoss", lambda t: t.nn.HingeEmbeddingLoss(), (normal(5), SIGNS), 1),
    Layer("CosineEmbeddingLoss", lambda t: t.nn.CosineEmbeddingLoss(0.1), (VECTORS, normal(5, 6, seed=1), SIGNS), 1),
    Layer("TripletMarginLoss", lambda t: t.nn.TripletMarginLoss(swap=True), (VECTORS, normal(5, 6, seed=1), normal(5, 6, seed=2)), 1),
    Layer("TripletMarginWithDistanceLoss", lambda t: t.nn.TripletMarginWithDistanceLoss(margin=0.3), (VECTORS, normal(5, 6, seed=1), normal(5, 6, seed=2)), 1),
    Layer("SoftMarginLoss", lambda t: _Constant(t, t.nn.SoftMarginLoss()), (normal(5), SIGNS), 1),
    Layer("MultiMarginLoss", lambda t: t.nn.MultiMarginLoss(p=2), (VECTORS, whole(6, 5)), 1),
    Layer("MultiLabelMarginLoss", lambda t: t.nn.MultiLabelMarginLoss(), (normal(2, 4), np.array([[3, 0, -1, 1], [2, -1, 0, 0]])), 1),
    Layer("MultiLabelSoftMarginLoss", lambda t: _Constant(t, t.nn.MultiLabelSoftMarginLoss()), (VECTORS, positive(5, 6))),
]  # fmt: skip


def _Given(t, layer):
    """A recurrent layer that takes its first states as further operands."""

    class Given(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, *states):
            return self.layer(x, states if len(states) > 1 else states[0])

    return Given()


def _Options(t, layer, masks, **options):
    """Attention that takes its masks as further operands."""

    class Masked(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, q, k, v, *given):
            names = {"kpm": "key_padding_mask", "am": "attn_mask"}
            return self.layer(q, k, v, **dict(zip((names[m] for m in masks.split()), given, strict=True)), **options)

    return Masked()


def _Constant(t, layer):
    """A loss whose target needs no gradient."""

    class Constant(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, target):
            return self.layer(x, target.detach())

    return Constant()


def _pair(torch, layer):
    """The layer in both libraries, with the same state."""
    torch.manual_seed(0)
    theirs = layer.make(torch).double()
    ours = layer.make(graphc).double()
    state = {k: v.detach().numpy().copy() for k, v in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    assert str(ours.load_state_dict(state)) == "<All keys matched successfully>"
    return ours, theirs


@pytest.mark.parametrize("layer", [pytest.param(c, id=c.name) for c in LAYERS])
def test_layers(torch, layer):
    # PyTorch differentiates its fused attention only once.
    plain = torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH)
    with warnings.catch_warnings(), plain:
        warnings.simplefilter("ignore")
        for arrays in (layer.arrays, [strided(a) for a in layer.arrays]):
            ours, theirs = _pair(torch, layer)
            mine, other = operands(graphc, arrays, True), operands(torch, arrays, True)
            results, expected = leaves(ours(*mine)), leaves(theirs(*other))
            assert len(results) == len(expected)
            for i, (a, b) in enumerate(zip(results, expected, strict=True)):
                equal(a, b, layer.tolerance, f"result {i}")
            mine += list(ours.parameters())
            other += list(theirs.parameters())
            order = layer.order if arrays is layer.arrays else 1
            for level in range(1, order + 1):
                results = gradients(graphc, results, mine, level < order, 100 * level)
                expected = gradients(torch, expected, other, level < order, 100 * level)
                pairs = [(a, b) for a, b in zip(results, expected, strict=True) if not (a is None and b is None)]
                for i, (a, b) in enumerate(pairs):
                    found = graphc.zeros(*b.shape, dtype=graphc.float64) if a is None else a
                    wanted = torch.zeros(*a.shape, dtype=torch.float64) if b is None else b
                    equal(found, wanted, layer.tolerance * 10, f"gradient {level}, {i}")
                usable = [
                    (a, b) for a, b in pairs if a is not None and b is not None and a.requires_grad and b.requires_grad
                ]
                results, expected = [a for a, _ in usable], [b for _, b in usable]
            for (name, a), b in zip(ours.named_buffers(), theirs.buffers(), strict=True):
                equal(a, b, layer.tolerance, name)


SAME_TEXT = "Linear Conv2d ConvTranspose2d BatchNorm2d LayerNorm GroupNorm Embedding Dropout ReLU LeakyReLU Softmax"
SAME_TEXT += " MaxPool2d AvgPool2d Sequential LSTM GRU Identity Flatten"
TEXTS = {
    "Linear": (6, 3),
    "Conv2d": (4, 6, 3),
    "ConvTranspose2d": (4, 6, 3),
    "BatchNorm2d": (4,),
    "LayerNorm": (7,),
    "GroupNorm": (2, 4),
    "Embedding": (7, 3),
    "MaxPool2d": (2,),
    "AvgPool2d": (2,),
    "LSTM": (6, 4),
    "GRU": (6, 4),
    "Softmax": (1,),
    "Dropout": (0.3,),
}


@pytest.mark.parametrize("name", SAME_TEXT.split())
def test_layers_have_the_same_members(torch, name):
    ours, theirs = (getattr(t.nn, name)(*TEXTS.get(name, ())) for t in (graphc, torch))
    assert repr(ours).split("(")[0] == repr(theirs).split("(")[0]
    assert [n for n, _ in ours.named_parameters()] == [n for n, _ in theirs.named_parameters()]
    assert [n for n, _ in ours.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    public = {n for n, v in vars(theirs).items() if not n.startswith("_") and isinstance(v, (int, float, tuple, str))}
    assert public <= {n for n in dir(ours)} | {"transposed", "output_padding", "proj_size", "bias_k"}


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "ConvTranspose2d", "LSTM", "Embedding"])
def test_initial_values_have_the_same_spread(torch, name):
    graphc.manual_seed(0)
    torch.manual_seed(0)
    sizes = {"Linear": (100, 90), "Conv2d": (20, 30, 5), "ConvTranspose2d": (20, 30, 5), "LSTM": (40, 50)}
    ours, theirs = (getattr(t.nn, name)(*sizes.get(name, (100, 90))) for t in (graphc, torch))
    for (parameter, a), b in zip(ours.named_parameters(), theirs.parameters(), strict=True):
        x, y = a.detach().numpy(), b.detach().numpy()
        assert abs(x.std() / y.std() - 1) < 0.2, parameter
        assert abs(np.abs(x).max() / np.abs(y).max() - 1) < 0.25, parameter


def test_dropout_keeps_the_mean():
    for layer in (nn.Dropout(0.3), nn.Dropout2d(0.3), nn.AlphaDropout(0.3)):
        graphc.manual_seed(0)
        x = layer(
            graphc.randn(40, 50, 4, 4) + 1.0 if not isinstance(layer, nn.AlphaDropout) else graphc.randn(40, 50, 4, 4)
        )
        wanted = 0.0 if isinstance(layer, nn.AlphaDropout) else 1.0
        assert abs(float(x.mean()) - wanted) < 0.1
        if isinstance(layer, nn.AlphaDropout):
            assert abs(float(x.std()) - 1.0) < 0.1
