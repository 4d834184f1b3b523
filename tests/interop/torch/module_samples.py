"""Small modules of every kind of torch.nn with arguments for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn = torch.nn

Sample = tuple[str, Callable[[], Any], tuple[Any, ...]]
"""Title, what makes the module, and its arguments: shapes of tensors to draw, or tensors."""


def classes(*shape: int) -> Any:
    """Numbers of three classes."""
    return torch.randint(0, 3, shape, generator=torch.Generator().manual_seed(0))


def plain(names: str, *args: Any, shape: Any = (2, 6, 4)) -> list[Sample]:
    """Modules that take the same arguments and one tensor of that shape."""
    return [(name, lambda name=name: getattr(nn, name)(*args), (shape,)) for name in names.split()]


ACTIVATIONS: list[Sample] = [
    *plain("ReLU ReLU6 ELU SELU CELU GELU SiLU Mish Tanh Sigmoid LogSigmoid Softplus Softsign Hardswish"),
    *plain("Hardtanh Hardshrink Softshrink Tanhshrink LeakyReLU PReLU GLU Identity Flatten"),
    *plain("RReLU", 0.2, 0.2),
    *plain("Softmax LogSoftmax Softmin", -1),
    *plain("Hardsigmoid"),
    *plain("Threshold", 0.1, 2.0),
    ("Softmax2d", nn.Softmax2d, ((2, 3, 4, 4),)),
    ("Unflatten", lambda: nn.Unflatten(1, (2, 3)), ((2, 6),)),
    ("GELU tanh", lambda: nn.GELU("tanh"), ((2, 6),)),
    ("ReLU in place", lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU(True), nn.Linear(3, 2)), ((2, 4),)),
    ("Dropout", lambda: nn.Sequential(*[d(0.0) for d in (nn.Dropout, nn.AlphaDropout)]), ((2, 4),)),
    ("Dropout2d", lambda: nn.Sequential(nn.Dropout2d(0.0), nn.FeatureAlphaDropout(0.0)), ((2, 4, 3, 3),)),
]
LINEAR: list[Sample] = [
    ("Linear", lambda: nn.Linear(4, 3), ((2, 5, 4),)),
    ("Bilinear", lambda: nn.Bilinear(4, 3, 2), ((2, 4), (2, 3))),
    ("Embedding", lambda: nn.Embedding(3, 4, padding_idx=1), (classes(2, 5),)),
    ("Embedding by frequency", lambda: nn.Embedding(3, 4, scale_grad_by_freq=True), (classes(2, 5),)),
    ("Embedding max_norm", lambda: nn.Embedding(3, 4, max_norm=0.5), (classes(2, 5),)),
    ("EmbeddingBag", lambda: nn.EmbeddingBag(3, 4, mode="mean"), (classes(2, 5),)),
    ("EmbeddingBag sum", lambda: nn.EmbeddingBag(3, 4, mode="sum"), (classes(6), torch.tensor([0, 2, 2]))),
    ("EmbeddingBag max", lambda: nn.EmbeddingBag(3, 4, mode="max"), (classes(2, 5),)),
    ("CosineSimilarity", nn.CosineSimilarity, ((2, 4), (2, 4))),
    ("PairwiseDistance", nn.PairwiseDistance, ((2, 4), (2, 4))),
]
CONVOLUTIONS: list[Sample] = [
    ("Conv1d", lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1, groups=2), ((2, 4, 8),)),
    ("Conv2d", lambda: nn.Conv2d(4, 6, 3, dilation=2), ((2, 4, 7, 8),)),
    ("Conv2d same", lambda: nn.Conv2d(4, 6, 3, padding="same"), ((2, 4, 7, 8),)),
    ("Conv2d reflect", lambda: nn.Conv2d(4, 6, 3, padding=1, padding_mode="reflect"), ((2, 4, 7, 8),)),
    ("Conv2d unbatched", lambda: nn.Conv2d(4, 6, 3), ((4, 7, 8),)),
    ("Conv3d", lambda: nn.Conv3d(2, 3, 2), ((2, 2, 4, 5, 3),)),
    ("ConvTranspose1d", lambda: nn.ConvTranspose1d(4, 6, 3, stride=2, output_padding=1), ((2, 4, 5),)),
    ("ConvTranspose2d", lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, padding=1, groups=2), ((2, 4, 5, 4),)),
    ("ConvTranspose3d", lambda: nn.ConvTranspose3d(2, 3, 2), ((2, 2, 3, 3, 3),)),
    ("Fold", lambda: nn.Fold((4, 5), (2, 2)), ((2, 8, 12),)),
    ("Unfold", lambda: nn.Unfold((2, 3), padding=1), ((2, 3, 4, 5),)),
    *plain("PixelShuffle PixelUnshuffle ChannelShuffle", 2, shape=(2, 4, 4, 6)),
    ("Upsample", lambda: nn.Upsample(scale_factor=2), ((2, 3, 4, 5),)),
    ("Upsample bilinear", lambda: nn.Upsample(size=(7, 6), mode="bilinear"), ((2, 3, 4, 5),)),
    ("Upsample bicubic", lambda: nn.Upsample(scale_factor=1.5, mode="bicubic"), ((1, 2, 4, 5),)),
    ("Upsample linear", lambda: nn.Upsample(size=7, mode="linear", align_corners=True), ((2, 3, 4),)),
    ("Upsample trilinear", lambda: nn.Upsample(scale_factor=2, mode="trilinear"), ((1, 2, 3, 2, 3),)),
    ("UpsamplingNearest2d", lambda: nn.UpsamplingNearest2d(scale_factor=2), ((1, 2, 3, 4),)),
    ("UpsamplingBilinear2d", lambda: nn.UpsamplingBilinear2d(scale_factor=2), ((1, 2, 3, 4),)),
]
_1D, _2D, _3D = (2, 4, 8), (2, 3, 6, 8), (1, 2, 6, 4, 8)
POOLING: list[Sample] = [
    *[s for n, d in ((1, _1D), (2, _2D), (3, _3D)) for s in plain(f"MaxPool{n}d AvgPool{n}d", 2, shape=d)],
    *[s for n, d in ((1, _1D), (2, _2D), (3, _3D)) for s in plain(f"AdaptiveAvgPool{n}d", 3, shape=d)],
    *[s for n, d in ((1, _1D), (2, _2D), (3, _3D)) for s in plain(f"AdaptiveMaxPool{n}d", 2, shape=d)],
    *[s for n, d in ((1, _1D), (2, _2D), (3, _3D)) for s in plain(f"LPPool{n}d", 2, 2, shape=d)],
    ("MaxPool2d ceil", lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True), (_2D,)),
    ("MaxPool2d places", lambda: nn.MaxPool2d(2, return_indices=True), (_2D,)),
    ("AvgPool2d counted", lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), (_2D,)),
    ("MaxUnpool1d", lambda: nn.MaxUnpool1d(2), ((1, 1, 3), torch.tensor([[[1, 2, 5]]]))),
    ("MaxUnpool2d", lambda: nn.MaxUnpool2d(2), ((1, 1, 1, 3), torch.tensor([[[[1, 8, 5]]]]))),
    ("MaxUnpool3d", lambda: nn.MaxUnpool3d(2), ((1, 1, 1, 1, 3), torch.tensor([[[[[1, 8, 5]]]]]))),
]
PADDING: list[Sample] = [
    *[
        (f"{kind}Pad{n}d", lambda k=kind, n=n: getattr(nn, f"{k}Pad{n}d")(1, *([0.5] if k == "Constant" else [])), (d,))
        for kind in ("Constant", "Reflection", "Replication", "Circular", "Zero")
        for n, d in ((1, _1D), (2, _2D), (3, _3D))
    ],
]
NORMALIZATION: list[Sample] = [
    ("BatchNorm1d", lambda: nn.BatchNorm1d(4), ((3, 4),)),
    ("BatchNorm1d 3d", lambda: nn.BatchNorm1d(4, affine=False), ((3, 4, 5),)),
    ("BatchNorm2d", lambda: nn.BatchNorm2d(3, momentum=0.3), (_2D,)),
    ("BatchNorm2d of the batch", lambda: nn.BatchNorm2d(3, track_running_stats=False), (_2D,)),
    ("BatchNorm3d", lambda: nn.BatchNorm3d(2), (_3D,)),
    ("SyncBatchNorm", lambda: nn.SyncBatchNorm(3), (_2D,)),
    ("InstanceNorm1d", lambda: nn.InstanceNorm1d(4, affine=True), (_1D,)),
    ("InstanceNorm2d", lambda: nn.InstanceNorm2d(3, track_running_stats=True), (_2D,)),
    ("InstanceNorm3d", lambda: nn.InstanceNorm3d(2), (_3D,)),
    ("LayerNorm", lambda: nn.LayerNorm((5, 4)), ((3, 5, 4),)),
    ("GroupNorm", lambda: nn.GroupNorm(2, 4), ((2, 4, 5),)),
    ("RMSNorm", lambda: nn.RMSNorm(4), ((2, 3, 4),)),
    ("LocalResponseNorm", lambda: nn.LocalResponseNorm(2), ((2, 4, 3, 3),)),
    ("weight_norm", lambda: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), ((2, 4),)),
    ("spectral_norm", lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)), ((2, 4),)),
]
_STATE = (2, 3, 5)
RECURRENT: list[Sample] = [
    ("RNN", lambda: nn.RNN(4, 5, nonlinearity="relu"), ((6, 3, 4),)),
    ("RNN tanh", lambda: nn.RNN(4, 5, 2, batch_first=True), ((3, 6, 4), _STATE)),
    ("LSTM", lambda: nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), ((3, 6, 4),)),
    ("LSTM projected", lambda: nn.LSTM(4, 5, proj_size=3), ((6, 3, 4),)),
    ("LSTM without bias", lambda: nn.LSTM(4, 5, bias=False), ((6, 4),)),
    ("GRU", lambda: nn.GRU(4, 5, bidirectional=True), ((6, 3, 4), _STATE)),
    ("RNNCell", lambda: nn.RNNCell(4, 5), ((3, 4),)),
    ("LSTMCell", lambda: nn.LSTMCell(4, 5), ((3, 4),)),
    ("GRUCell", lambda: nn.GRUCell(4, 5), ((3, 4), (3, 5))),
]
_X = (2, 5, 8)
TRANSFORMERS: list[Sample] = [
    ("MultiheadAttention", lambda: nn.MultiheadAttention(8, 2, batch_first=True), (_X, _X, _X)),
    ("MultiheadAttention sizes", lambda: nn.MultiheadAttention(8, 2, kdim=4, vdim=6), (_X, (3, 5, 4), (3, 5, 6))),
    ("TransformerEncoderLayer", lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), (_X,)),
    ("TransformerDecoderLayer", lambda: nn.TransformerDecoderLayer(8, 2, 16, 0.0), (_X, (3, 5, 8))),
    (
        "TransformerEncoder",
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, norm_first=True), 2, nn.LayerNorm(8)),
        (_X,),
    ),
    ("Transformer", lambda: nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True), (_X, (2, 3, 8))),
]
_SIGNS = torch.tensor([1.0, -1.0])
_UNIT = torch.tensor([[0.2, 0.7, 0.4], [0.9, 0.1, 0.5]])
LOSSES: list[Sample] = [
    *[
        (n, getattr(nn, n), ((2, 3), (2, 3)))
        for n in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "PoissonNLLLoss")
    ],
    ("CrossEntropyLoss", lambda: nn.CrossEntropyLoss(label_smoothing=0.1, ignore_index=1), ((4, 3), classes(4))),
    ("CrossEntropyLoss weighed", lambda: nn.CrossEntropyLoss(torch.tensor([1.0, 2, 3])), ((4, 3, 5), classes(4, 5))),
    ("CrossEntropyLoss soft", nn.CrossEntropyLoss, ((2, 3), _UNIT)),
    ("NLLLoss", lambda: nn.NLLLoss(reduction="none"), ((4, 3), classes(4))),
    ("NLLLoss images", nn.NLLLoss, ((4, 3, 2, 2), classes(4, 2, 2))),
    ("KLDivLoss", lambda: nn.KLDivLoss(reduction="batchmean"), ((2, 3), _UNIT)),
    ("BCELoss", lambda: _OfProbabilities(), ((2, 3), _UNIT)),
    ("BCEWithLogitsLoss", lambda: nn.BCEWithLogitsLoss(pos_weight=torch.tensor([1.0, 2, 3])), ((2, 3), _UNIT)),
    ("SoftMarginLoss", nn.SoftMarginLoss, ((2, 3), torch.sign(_UNIT - 0.3))),
    ("MarginRankingLoss", nn.MarginRankingLoss, ((2,), (2,), _SIGNS)),
    ("HingeEmbeddingLoss", nn.HingeEmbeddingLoss, ((2,), _SIGNS)),
    ("CosineEmbeddingLoss", nn.CosineEmbeddingLoss, ((2, 4), (2, 4), _SIGNS)),
    ("TripletMarginLoss", nn.TripletMarginLoss, ((2, 4), (2, 4), (2, 4))),
    ("TripletMarginWithDistanceLoss", nn.TripletMarginWithDistanceLoss, ((2, 4), (2, 4), (2, 4))),
    ("MultiMarginLoss", nn.MultiMarginLoss, ((4, 3), classes(4))),
    ("MultiLabelMarginLoss", nn.MultiLabelMarginLoss, ((2, 3), torch.tensor([[2, 0, -1], [1, -1, 0]]))),
    ("MultiLabelSoftMarginLoss", nn.MultiLabelSoftMarginLoss, ((2, 3), torch.round(_UNIT))),
]
CONTAINERS: list[Sample] = [
    ("ModuleList", lambda: _Listed(), ((2, 4),)),
]


class _OfProbabilities(nn.Module):
    """A loss that takes numbers in 0..1 alone."""

    def __init__(self):
        super().__init__()
        self.loss = nn.BCELoss()

    def forward(self, x: Any, target: Any) -> Any:
        return self.loss(x.sigmoid(), target)


class _Listed(nn.Module):
    """Modules and parameters in lists and dictionaries."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])
        self.named = nn.ModuleDict({"a": nn.Tanh(), "b": nn.LayerNorm(4)})
        self.scales = nn.ParameterList([torch.ones(4), torch.full((4,), 2.0)])
        self.more = nn.ParameterDict({"shift": torch.ones(4)})

    def forward(self, x: Any) -> Any:
        for layer, scale in zip(self.layers, self.scales, strict=True):
            x = self.named["b"](self.named["a"](layer(x) * scale)) + self.more["shift"]
        return x


FAMILIES = {
    "activations": ACTIVATIONS,
    "linear": LINEAR,
    "convolutions": CONVOLUTIONS,
    "pooling": POOLING,
    "padding": PADDING,
    "normalization": NORMALIZATION,
    "recurrent": RECURRENT,
    "transformers": TRANSFORMERS,
    "losses": LOSSES,
    "containers": CONTAINERS,
}
