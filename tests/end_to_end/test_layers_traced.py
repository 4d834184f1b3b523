"""Every layer, traced in training mode: the graph and its gradient graph give what eager mode gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import graphc
from graphc import nn
from graphc.ir.graph.interpret import Evaluator
from graphc.nn import functional as F
from graphc.ops.autodiff import vjp_graph
from graphc.tensors.structure import flatten
from graphc.tracing.trace import trace_function
from tests.nn.compare import classes, floats, positive

Case = tuple[Callable[[], Any], tuple[np.ndarray, ...]]
SEQUENCE, IMAGE = (2, 4, 6), (2, 4, 6, 5)
ELEMENTWISE = ["ReLU", "ReLU6", "LeakyReLU", "ELU", "CELU", "SELU", "GELU", "SiLU", "Mish", "Tanh", "Sigmoid"]
ELEMENTWISE += ["Hardshrink", "Softshrink", "Tanhshrink", "RReLU"]
ELEMENTWISE += ["LogSigmoid", "Softplus", "Softsign", "Hardtanh", "Hardsigmoid", "Hardswish", "GLU", "PReLU"]


class Attention(nn.Module):
    """Causal attention with dropout of its weights."""

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=0.2)


class MaskedAttention(nn.Module):
    """Attention that hides keys by a mask and later positions by another."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(6, 3, kdim=6, vdim=6, add_bias_kv=True, add_zero_attn=True)

    def forward(self, x: Any, hidden: Any) -> Any:
        mask = nn.Transformer.generate_square_subsequent_mask(4, dtype=x.dtype)
        keys = hidden[:, :4]
        return self.attention(x, x, x, key_padding_mask=keys, attn_mask=mask, average_attn_weights=False)


class Unpooled(nn.Module):
    """Maxima at their places."""

    def __init__(self) -> None:
        super().__init__()
        self.pool, self.back = nn.MaxPool2d(2, return_indices=True), nn.MaxUnpool2d(2)

    def forward(self, x: Any) -> Any:
        return self.back(*self.pool(x), output_size=x.shape)


class Transcript(nn.Module):
    """A loss over all alignments."""

    def forward(self, x: Any) -> Any:
        targets = graphc.tensor([[1, 2], [3, 3]])
        return F.ctc_loss(F.log_softmax(x, -1), targets, [5, 4], [2, 2])


class Loss(nn.Module):
    """A loss against a fixed target."""

    def __init__(self, function: Callable[..., Any], target: np.ndarray, **options: Any):
        super().__init__()
        self.function, self.options = function, options
        self.register_buffer("target", graphc.tensor(target))

    def forward(self, x: Any) -> Any:
        return self.function(x, self.target, **self.options)


class Call(nn.Module):
    """A functional."""

    def __init__(self, function: Callable[..., Any], *args: Any, **options: Any):
        super().__init__()
        self.function, self.args, self.options = function, args, options

    def forward(self, *x: Any) -> Any:
        return self.function(*x, *self.args, **self.options)


CASES: dict[str, Case] = {
    **{name: (getattr(nn, name), (floats(*SEQUENCE),)) for name in ELEMENTWISE},
    "GELU tanh": (lambda: nn.GELU("tanh"), (floats(*SEQUENCE),)),
    "ReLU in place": (lambda: nn.Sequential(nn.Linear(6, 3), nn.ReLU(inplace=True)), (floats(*SEQUENCE),)),
    "Softmax": (lambda: nn.Softmax(dim=1), (floats(*SEQUENCE),)),
    "LogSoftmax": (lambda: nn.LogSoftmax(dim=-1), (floats(*SEQUENCE),)),
    "Linear": (lambda: nn.Linear(6, 3), (floats(*SEQUENCE),)),
    "Bilinear": (lambda: nn.Bilinear(6, 6, 3), (floats(*SEQUENCE), floats(*SEQUENCE, seed=1))),
    "Conv1d": (lambda: nn.Conv1d(4, 6, 3, padding=1, stride=2), (floats(*SEQUENCE),)),
    "Conv2d": (lambda: nn.Conv2d(4, 6, 3, padding=1, groups=2), (floats(*IMAGE),)),
    "Conv2d same": (lambda: nn.Conv2d(4, 6, 2, padding="same", padding_mode="reflect"), (floats(*IMAGE),)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(4, 6, 3, stride=2), (floats(*SEQUENCE),)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(4, 6, 3, 2, 1, 1), (floats(*IMAGE),)),
    "BatchNorm1d": (lambda: nn.BatchNorm1d(4), (floats(*SEQUENCE),)),
    "BatchNorm2d": (lambda: nn.BatchNorm2d(4, momentum=None), (floats(*IMAGE),)),
    "BatchNorm2d eval": (lambda: nn.BatchNorm2d(4).eval(), (floats(*IMAGE),)),
    "InstanceNorm2d": (lambda: nn.InstanceNorm2d(4, affine=True, track_running_stats=True), (floats(*IMAGE),)),
    "LayerNorm": (lambda: nn.LayerNorm((4, 6)), (floats(*SEQUENCE),)),
    "RMSNorm": (lambda: nn.RMSNorm(6), (floats(*SEQUENCE),)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (floats(*IMAGE),)),
    "Dropout": (lambda: nn.Sequential(nn.Dropout(0.3), nn.Dropout(0.5)), (floats(*SEQUENCE),)),
    "Dropout2d": (lambda: nn.Dropout2d(0.4), (floats(*IMAGE),)),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, stride=(1, 2, 1), padding=1), (floats(2, 2, 3, 4, 3),)),
    "MaxPool3d": (lambda: nn.Sequential(nn.MaxPool3d(2), nn.AvgPool3d(1)), (floats(2, 2, 4, 4, 3),)),
    "MaxPool1d": (lambda: nn.MaxPool1d(3, 2, 1), (floats(*SEQUENCE),)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2, ceil_mode=True), (floats(*IMAGE),)),
    "AvgPool2d": (lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True), (floats(*IMAGE),)),
    "AdaptiveAvgPool2d 1": (lambda: nn.AdaptiveAvgPool2d(1), (floats(*IMAGE),)),
    "AdaptiveAvgPool2d": (lambda: nn.AdaptiveAvgPool2d((3, 2)), (floats(*IMAGE),)),
    "AdaptiveMaxPool2d": (lambda: nn.AdaptiveMaxPool2d((4, 2)), (floats(*IMAGE),)),
    "Embedding": (lambda: nn.Embedding(7, 3, padding_idx=2), (np.asarray(classes(7, 4, 5)),)),
    "Flatten": (lambda: nn.Sequential(nn.Flatten(), nn.Unflatten(1, (3, -1))), (floats(*SEQUENCE),)),
    "Attention": (Attention, (floats(2, 3, 4), floats(2, 3, 4, seed=1), floats(2, 3, 4, seed=2))),
    "LSTM": (lambda: nn.LSTM(6, 3, bidirectional=True), (floats(*SEQUENCE),)),
    "GRU": (lambda: nn.GRU(6, 3, batch_first=True), (floats(*SEQUENCE),)),
    "RNNCell": (lambda: nn.RNNCell(6, 3), (floats(4, 6),)),
    "ReflectionPad2d": (lambda: nn.ReflectionPad2d(2), (floats(*IMAGE),)),
    "ZeroPad2d": (lambda: nn.ZeroPad2d((1, -1, 2, 0)), (floats(*IMAGE),)),
    "Upsample": (lambda: nn.Upsample(scale_factor=1.5), (floats(*IMAGE),)),
    "Upsample bilinear": (lambda: nn.Upsample((9, 3), mode="bilinear"), (floats(*IMAGE),)),
    "PixelShuffle": (lambda: nn.PixelShuffle(2), (floats(*IMAGE),)),
    "CosineSimilarity": (nn.CosineSimilarity, (floats(*SEQUENCE), floats(*SEQUENCE, seed=1))),
    "PairwiseDistance": (nn.PairwiseDistance, (floats(*SEQUENCE), floats(*SEQUENCE, seed=1))),
    "EmbeddingBag": (
        lambda: nn.EmbeddingBag(7, 3, padding_idx=2),
        (np.asarray(classes(7, 9)), np.array([0, 3, 3, 7])),
    ),
    "EmbeddingBag max": (lambda: nn.EmbeddingBag(7, 3, mode="max"), (np.asarray(classes(7, 4, 5)),)),
    "MultiheadAttention": (
        lambda: nn.MultiheadAttention(6, 2, dropout=0.2, batch_first=True),
        (floats(*SEQUENCE), floats(2, 5, 6, seed=1), floats(2, 5, 6, seed=2)),
    ),
    "MultiheadAttention masked": (MaskedAttention, (floats(4, 2, 6), classes(2, 2, 5) > 0)),
    "TransformerEncoder": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 2, nn.LayerNorm(6)),
        (floats(4, 2, 6),),
    ),
    "Transformer": (
        lambda: nn.Transformer(6, 3, 1, 1, 8, activation="gelu", norm_first=True, batch_first=True),
        (floats(*SEQUENCE), floats(2, 3, 6, seed=1)),
    ),
    "Unfold": (lambda: nn.Unfold(3, dilation=1, padding=1, stride=2), (floats(*IMAGE),)),
    "Fold": (lambda: nn.Fold((6, 5), (2, 3)), (floats(2, 12, 15),)),
    "AlphaDropout": (lambda: nn.Sequential(nn.AlphaDropout(0.3), nn.FeatureAlphaDropout(0.2)), (floats(*SEQUENCE),)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(3, 2, 2, stride=2, padding=1), (floats(1, 3, 2, 3, 2),)),
    "LSTM projected": (lambda: nn.LSTM(6, 4, proj_size=2), (floats(3, 2, 6),)),
    "MaxUnpool2d": (Unpooled, (floats(*IMAGE),)),
    "FractionalMaxPool2d": (
        lambda: nn.FractionalMaxPool2d(2, 3, _random_samples=graphc.tensor(positive(2, IMAGE[1], 2))),
        (floats(*IMAGE),),
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        lambda: nn.AdaptiveLogSoftmaxWithLoss(6, 9, [2, 5], 2.0),
        (floats(4, 6), np.array([0, 3, 8, 4])),
    ),
    "ctc_loss": (Transcript, (floats(5, 2, 4),)),
    "bicubic": (lambda: Call(F.interpolate, size=(4, 7), mode="bicubic"), (floats(*IMAGE),)),
    "LPPool2d": (lambda: nn.LPPool2d(2, 2), (positive(*IMAGE),)),
    "LocalResponseNorm": (lambda: nn.LocalResponseNorm(3), (floats(*IMAGE),)),
    "gumbel_softmax": (lambda: Call(F.gumbel_softmax, hard=True), (floats(*SEQUENCE),)),
    "grid_sample": (
        lambda: Call(F.grid_sample, align_corners=False, padding_mode="reflection"),
        (floats(*IMAGE), floats(2, 3, 3, 2, seed=1)),
    ),
    "affine_grid": (lambda: Call(F.affine_grid, size=(2, 3, 4, 5)), (floats(2, 2, 3),)),
    "multi_margin_loss": (lambda: Loss(F.multi_margin_loss, classes(5, 4)), (floats(4, 5),)),
    "multilabel_margin_loss": (
        lambda: Loss(F.multilabel_margin_loss, np.array([[2, 0, -1, 1], [3, -1, 0, 0]])),
        (floats(2, 4),),
    ),
    "multilabel_soft_margin_loss": (lambda: Loss(F.multilabel_soft_margin_loss, positive(4, 5)), (floats(4, 5),)),
    "normalize": (lambda: Call(F.normalize, dim=-1), (floats(*SEQUENCE),)),
    "cross_entropy": (lambda: Loss(F.cross_entropy, classes(4, 2, 6)), (floats(*SEQUENCE),)),
    "cross_entropy smooth": (
        lambda: Loss(F.cross_entropy, classes(4, 2, 6), ignore_index=1, label_smoothing=0.1),
        (floats(*SEQUENCE),),
    ),
    "cross_entropy soft": (lambda: Loss(F.cross_entropy, positive(*SEQUENCE)), (floats(*SEQUENCE),)),
    "nll_loss": (lambda: Loss(F.nll_loss, classes(4, 2, 6)), (floats(*SEQUENCE),)),
    "mse_loss": (lambda: Loss(F.mse_loss, floats(*SEQUENCE, seed=1)), (floats(*SEQUENCE),)),
    "l1_loss": (lambda: Loss(F.l1_loss, floats(*SEQUENCE, seed=1)), (floats(*SEQUENCE),)),
    "smooth_l1_loss": (lambda: Loss(F.smooth_l1_loss, floats(*SEQUENCE, seed=1)), (floats(*SEQUENCE),)),
    "huber_loss": (lambda: Loss(F.huber_loss, floats(*SEQUENCE, seed=1)), (floats(*SEQUENCE),)),
    "binary_cross_entropy": (lambda: Loss(F.binary_cross_entropy, positive(*SEQUENCE)), (positive(*SEQUENCE, seed=1),)),
    "with_logits": (lambda: Loss(F.binary_cross_entropy_with_logits, positive(*SEQUENCE)), (floats(*SEQUENCE),)),
    "kl_div": (lambda: Loss(F.kl_div, positive(*SEQUENCE), reduction="batchmean"), (floats(*SEQUENCE),)),
}


def inputs_of(arrays: tuple[np.ndarray, ...]) -> list[Any]:
    made = [graphc.tensor(a) for a in arrays]
    return [t.requires_grad_() if t.is_floating_point() else t for t in made]


def weights_of(outputs: list[Any]) -> list[np.ndarray]:
    """Return the factor of each floating-point output before all are added up and differentiated."""
    return [floats(*t.shape, seed=50 + i) for i, t in enumerate(outputs) if t.requires_grad]


def eager(module: Any, arrays: tuple[np.ndarray, ...]) -> tuple[list[Any], list[np.ndarray], dict[str, np.ndarray]]:
    """Outputs, and gradients of inputs and parameters by name."""
    inputs = inputs_of(arrays)
    outputs = flatten(module(*inputs))[0]
    total = 0.0
    for output, weight in zip([t for t in outputs if t.requires_grad], weights_of(outputs), strict=True):
        total = total + (output * graphc.tensor(weight)).sum()
    total.backward()
    named = {f"input {i}": t for i, t in enumerate(inputs)} | dict(module.named_parameters())
    gradients = {name: np.asarray(t.grad) for name, t in named.items() if t.grad is not None}
    return outputs, weights_of(outputs), gradients


@pytest.mark.parametrize("name", CASES)
def test_graph_gives_what_eager_gives(name: str):
    make, arrays = CASES[name]
    graphc.manual_seed(0)
    module = make().double()
    graphc.manual_seed(1)
    traced = trace_function(module, inputs_of(arrays))
    state = {path: array.copy() for path, array in traced.state().items()}
    expected, weights, gradients = eager(module, arrays)

    expected_result = {f"input {i}": v for i, v in enumerate(traced.inputs) if v.dtype.kind == "f"}
    expected_result |= {a.value.node.attrs["path"]: a.value for a in traced.arguments if a.tensor.requires_grad}
    chosen = [i for i, differentiable in enumerate(traced.differentiable) if differentiable]
    graph = vjp_graph(traced.graph, list(expected_result.values()), chosen)
    given = dict(zip((v.name for v in traced.inputs), arrays, strict=True))
    operands = [
        given[v.name] if v.name in given else state[v.node.attrs["path"]] for v in graph.inputs[: -len(weights)]
    ]
    evaluator = Evaluator()
    result = evaluator.run(graph, [*operands, *weights])

    for value, output in zip(result, expected, strict=False):
        np.testing.assert_allclose(value, output.detach().numpy(), rtol=1e-9, atol=1e-12)
    assert set(expected_result) == set(gradients)
    for (path, value), gradient in zip(expected_result.items(), result[len(expected) :], strict=True):
        assert gradient.shape == value.shape
        np.testing.assert_allclose(gradient, gradients[path], rtol=1e-8, atol=1e-11, err_msg=path)
    written = {a.value.node.attrs["path"] for a in traced.arguments if a.written}
    assert set(evaluator.state) == written
    for path in written:
        np.testing.assert_allclose(evaluator.state[path], traced.state()[path], rtol=1e-9, err_msg=path)


def test_every_layer_is_here():
    """A layer that is added is added here too, unless it is made of, or differs in its arguments from, one that is."""
    layers = {type(m).__name__ for make, _ in CASES.values() for m in make().modules()}
    similar = {"AdaptiveAvgPool1d", "AdaptiveMaxPool1d", "AvgPool1d", "ChannelShuffle", "Dropout1d", "Identity"}
    similar |= {"BatchNorm3d", "InstanceNorm3d", "SyncBatchNorm", "Dropout3d", "FeatureAlphaDropout", "LPPool1d"}
    similar |= {
        "AdaptiveAvgPool3d",
        "AdaptiveMaxPool3d",
        "LPPool3d",
        "MaxUnpool1d",
        "MaxUnpool3d",
        "FractionalMaxPool3d",
    }
    similar |= {n for n in nn.modules.__all__ if n.startswith("Lazy")}
    similar |= {"Threshold", "RNNCellBase", "TransformerDecoder", "TransformerDecoderLayer"}
    similar |= {"InstanceNorm1d", "LSTMCell", "GRUCell", "RNN", "RNNBase", "PixelUnshuffle", "Softmax2d", "Softmin"}
    similar |= {
        n for n in nn.modules.__all__ if "Pad" in n or "Upsampling" in n or n.endswith(("Loss", "List", "Dict"))
    }
    options = {"LinearCrossEntropyOptions"}
    assert set(nn.modules.__all__) - layers - similar - options == {"Module"}
